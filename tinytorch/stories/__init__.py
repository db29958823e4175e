"""Stories whose entropy is known exactly: the corpus of the book.

The grammar (`grammar`, its `rules` and `story_rules`, and the check that it is unambiguous), what
the best possible reader expects next, in characters (`oracle`) and in tokens (`tokens`), what it
believes meanwhile (`posteriors`), the exact entropy (`entropy`), a second dialect of the stories
(`dialect`), and the best that a reward could make of them (`tilted`). This package needs NumPy and
none of the other packages.
"""

from tinytorch.stories.dialect import story_dialect
from tinytorch.stories.entropy import StoryEntropy
from tinytorch.stories.grammar import StoryGrammar
from tinytorch.stories.oracle import Oracle
from tinytorch.stories.posteriors import beliefs, hidden_values, token_beliefs
from tinytorch.stories.rules import Rules
from tinytorch.stories.tokens import next_token_probs, next_token_table

__all__ = [
    "Oracle",
    "Rules",
    "StoryEntropy",
    "StoryGrammar",
    "beliefs",
    "hidden_values",
    "next_token_probs",
    "next_token_table",
    "story_dialect",
    "token_beliefs",
]
