"""Stories whose entropy is known exactly: the corpus of the book.

The grammar (`grammar`, its `rules` and `story_rules`, and the check that it is unambiguous), what
the best possible reader expects next, in characters (`oracle`) and in tokens (`tokens`), and the
exact entropy (`entropy`); and a second dialect of them (`dialect`). This room needs NumPy and none
of the other rooms.
"""

from tinytorch.stories.dialect import story_dialect
from tinytorch.stories.entropy import StoryEntropy
from tinytorch.stories.grammar import StoryGrammar
from tinytorch.stories.oracle import Oracle
from tinytorch.stories.rules import Rules
from tinytorch.stories.tokens import next_token_probs

__all__ = ["Oracle", "Rules", "StoryEntropy", "StoryGrammar", "next_token_probs", "story_dialect"]
