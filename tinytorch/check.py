"""Checks for the exercises of the book: `check.name(your_answer)` reports and never raises.

Each is defined in the module of `tinytorch.exercises` named after its chapter.
"""

from tinytorch.exercises.a_model_that_answers import *  # noqa: F403
from tinytorch.exercises.autograd import *  # noqa: F403
from tinytorch.exercises.block import *  # noqa: F403
from tinytorch.exercises.cases import Case
from tinytorch.exercises.counting_letters import *  # noqa: F403
from tinytorch.exercises.data_and_loss import *  # noqa: F403
from tinytorch.exercises.embedding_layer import *  # noqa: F403
from tinytorch.exercises.fine_tuning import *  # noqa: F403
from tinytorch.exercises.first_network import *  # noqa: F403
from tinytorch.exercises.gpt import *  # noqa: F403
from tinytorch.exercises.gpt2 import *  # noqa: F403
from tinytorch.exercises.kv_cache import *  # noqa: F403
from tinytorch.exercises.learning_from_context import *  # noqa: F403
from tinytorch.exercises.more_than_one_machine import *  # noqa: F403
from tinytorch.exercises.multi_head import *  # noqa: F403
from tinytorch.exercises.normalisation_and_mlp import *  # noqa: F403
from tinytorch.exercises.optimisation import *  # noqa: F403
from tinytorch.exercises.positional_encodings import *  # noqa: F403
from tinytorch.exercises.positions_in_attention import *  # noqa: F403
from tinytorch.exercises.preferences import *  # noqa: F403
from tinytorch.exercises.report import Report
from tinytorch.exercises.sampling import *  # noqa: F403
from tinytorch.exercises.scaled_dot_product import *  # noqa: F403
from tinytorch.exercises.scaling import *  # noqa: F403
from tinytorch.exercises.smaller_and_faster import *  # noqa: F403
from tinytorch.exercises.tensors import *  # noqa: F403
from tinytorch.exercises.token_embeddings import *  # noqa: F403
from tinytorch.exercises.tokenization import *  # noqa: F403
from tinytorch.exercises.what_it_knows import *  # noqa: F403
from tinytorch.exercises.what_it_looks_at import *  # noqa: F403
from tinytorch.exercises.which_is_better import *  # noqa: F403
from tinytorch.exercises.why_it_is_fast import *  # noqa: F403
from tinytorch.exercises.your_gpt import *  # noqa: F403
from tinytorch.exercises.your_text import *  # noqa: F403

__all__ = ["Case", "Report"]
