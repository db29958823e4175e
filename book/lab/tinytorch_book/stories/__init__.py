"""Stories whose entropy is known exactly: the corpus of the book.

The grammar (`grammar`, its `rules` and `story_rules`, and the check that it is unambiguous), what
the best possible reader expects next, in characters (`oracle`) and in tokens (`tokens`), what it
believes meanwhile (`posteriors`, `cast`), the exact entropy (`entropy`), and a second dialect of
the stories (`dialect`). Beside them, thousands of dialects that differ in single words
(`word_dialects`), and what can be known of a speaker's from the words so far
(`dialect_posterior`); and the best that a reward could make of the stories (`tilted`). This
package needs NumPy and none of the other packages.
"""

from tinytorch_book.stories.cast import cast_beliefs
from tinytorch_book.stories.dialect import story_dialect
from tinytorch_book.stories.dialect_posterior import (
    dialect_posterior,
    family_forecast,
    listed_forecast,
)
from tinytorch_book.stories.entropy import StoryEntropy
from tinytorch_book.stories.grammar import StoryGrammar
from tinytorch_book.stories.oracle import Oracle
from tinytorch_book.stories.posteriors import beliefs, hidden_values, token_beliefs
from tinytorch_book.stories.rules import Rules
from tinytorch_book.stories.tokens import next_token_probs, next_token_table
from tinytorch_book.stories.word_dialects import (
    WORDS,
    all_dialects,
    dialect_table,
    draw_dialects,
    speak,
)

__all__ = [
    "WORDS",
    "Oracle",
    "Rules",
    "StoryEntropy",
    "StoryGrammar",
    "all_dialects",
    "beliefs",
    "cast_beliefs",
    "dialect_posterior",
    "dialect_table",
    "draw_dialects",
    "family_forecast",
    "hidden_values",
    "listed_forecast",
    "next_token_probs",
    "next_token_table",
    "speak",
    "story_dialect",
    "token_beliefs",
]
