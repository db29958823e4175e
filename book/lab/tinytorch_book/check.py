"""Checks for the exercises of the book: `check.name(your_answer)` reports and never raises.

Each is defined in the module of `tinytorch_book.exercises` named after its chapter.
"""

from tinytorch_book.exercises.a_model_that_answers import *  # noqa: F403
from tinytorch_book.exercises.autograd import *  # noqa: F403
from tinytorch_book.exercises.block import *  # noqa: F403
from tinytorch_book.exercises.cases import Case
from tinytorch_book.exercises.counting_letters import *  # noqa: F403
from tinytorch_book.exercises.data_and_loss import *  # noqa: F403
from tinytorch_book.exercises.embedding_layer import *  # noqa: F403
from tinytorch_book.exercises.fine_tuning import *  # noqa: F403
from tinytorch_book.exercises.first_network import *  # noqa: F403
from tinytorch_book.exercises.gpt import *  # noqa: F403
from tinytorch_book.exercises.gpt2 import *  # noqa: F403
from tinytorch_book.exercises.kv_cache import *  # noqa: F403
from tinytorch_book.exercises.learning_from_context import *  # noqa: F403
from tinytorch_book.exercises.more_than_one_machine import *  # noqa: F403
from tinytorch_book.exercises.multi_head import *  # noqa: F403
from tinytorch_book.exercises.normalisation_and_mlp import *  # noqa: F403
from tinytorch_book.exercises.optimisation import *  # noqa: F403
from tinytorch_book.exercises.positional_encodings import *  # noqa: F403
from tinytorch_book.exercises.positions_in_attention import *  # noqa: F403
from tinytorch_book.exercises.preferences import *  # noqa: F403
from tinytorch_book.exercises.report import Report
from tinytorch_book.exercises.sampling import *  # noqa: F403
from tinytorch_book.exercises.scaled_dot_product import *  # noqa: F403
from tinytorch_book.exercises.scaling import *  # noqa: F403
from tinytorch_book.exercises.smaller_and_faster import *  # noqa: F403
from tinytorch_book.exercises.talk import *  # noqa: F403
from tinytorch_book.exercises.tensors import *  # noqa: F403
from tinytorch_book.exercises.token_embeddings import *  # noqa: F403
from tinytorch_book.exercises.tokenization import *  # noqa: F403
from tinytorch_book.exercises.what_it_knows import *  # noqa: F403
from tinytorch_book.exercises.what_it_looks_at import *  # noqa: F403
from tinytorch_book.exercises.which_is_better import *  # noqa: F403
from tinytorch_book.exercises.why_it_is_fast import *  # noqa: F403
from tinytorch_book.exercises.your_gpt import *  # noqa: F403
from tinytorch_book.exercises.your_text import *  # noqa: F403

__all__ = ["Case", "Report"]
