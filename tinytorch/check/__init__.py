"""Checks for the exercises of the book: `check.name(your_answer)` reports and never raises.

One module a chapter; all checks are importable from here.
"""

from tinytorch.check.autograd import *  # noqa: F403
from tinytorch.check.block import *  # noqa: F403
from tinytorch.check.counting_letters import *  # noqa: F403
from tinytorch.check.data_and_loss import *  # noqa: F403
from tinytorch.check.embedding_layer import *  # noqa: F403
from tinytorch.check.fine_tuning import *  # noqa: F403
from tinytorch.check.gpt import *  # noqa: F403
from tinytorch.check.gpt2 import *  # noqa: F403
from tinytorch.check.kv_cache import *  # noqa: F403
from tinytorch.check.more_than_one_machine import *  # noqa: F403
from tinytorch.check.multi_head import *  # noqa: F403
from tinytorch.check.normalisation_and_mlp import *  # noqa: F403
from tinytorch.check.optimisation import *  # noqa: F403
from tinytorch.check.positional_encodings import *  # noqa: F403
from tinytorch.check.positions_in_attention import *  # noqa: F403
from tinytorch.check.report import Case, Report
from tinytorch.check.sampling import *  # noqa: F403
from tinytorch.check.scaled_dot_product import *  # noqa: F403
from tinytorch.check.scaling import *  # noqa: F403
from tinytorch.check.tensors import *  # noqa: F403
from tinytorch.check.token_embeddings import *  # noqa: F403
from tinytorch.check.tokenization import *  # noqa: F403
from tinytorch.check.what_it_learned import *  # noqa: F403
from tinytorch.check.why_it_is_fast import *  # noqa: F403
from tinytorch.check.your_gpt import *  # noqa: F403
from tinytorch.check.your_text import *  # noqa: F403

__all__ = ["Case", "Report"]
