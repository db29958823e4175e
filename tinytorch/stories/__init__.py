"""Stories whose entropy is exactly known: the corpus of the book.

The grammar (`grammar`, its `rules` and `story_rules`, and the proof that it is not ambiguous), what
the best possible reader would believe (`oracle`), and how surprising a story is (`entropy`). This
room uses NumPy and nothing of the others.
"""

from tinytorch.stories.entropy import StoryEntropy
from tinytorch.stories.grammar import StoryGrammar
from tinytorch.stories.oracle import Oracle
from tinytorch.stories.rules import Rules

__all__ = ["Oracle", "Rules", "StoryEntropy", "StoryGrammar"]
