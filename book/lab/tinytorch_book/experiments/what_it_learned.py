"""What can be known at each token of a story, and what the story GPT has there.

`study_stories` are stories that no model has read, cut into tokens, with the words that are about
to come. `story_truth` and `story_beliefs` are what can be known in them, exactly; `study_stream` is
the stream of a model that reads them, and `readable` how well a linear probe reads one off the
other.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tinytorch.inside.probes import LinearProbe, r_squared
from tinytorch.inside.stream import residual_stream
from tinytorch_book.experiments.story_gpt import story_tokenizer
from tinytorch_book.stories import StoryGrammar, hidden_values, next_token_table, token_beliefs
from tinytorch_book.stories.rules import WORD

__all__ = [
    "NEEDED",
    "StudyStories",
    "asked",
    "readable",
    "story_beliefs",
    "story_truth",
    "study_stories",
    "study_stream",
]

#: What is hidden, and the word that depends on it: of which kind, and whether it is one that the
#: story has had before.
NEEDED = {
    "child": ("pronouns", False),
    "hero": ("names", True),
    "animal": ("animals", False),
    "thing": ("things", True),
}
_RIDGE = 0.03


class StudyStories(NamedTuple):
    """Stories as a model reads them, one in a row.

    Attributes:
        ids: `(n, seq)`; a row begins with the newline before its story, and is filled with more.
        lengths: how many tokens of each row are read, `(n,)`: all but the newline at the end.
        kinds: `(n, seq)`: of which kind the word is that begins with the *next* token, `"animals"`
            for instance; empty if none begins or it is of no kind. Those of `StoryGrammar.kinds`,
            and `"pronouns"`.
        again: `(n, seq)`: whether the story has had that word before.
        within: `(n, seq)`: of which kind the word is that each token itself is a part of.
    """

    ids: np.ndarray
    lengths: np.ndarray
    kinds: np.ndarray
    again: np.ndarray
    within: np.ndarray

    def before(self, kind: str, again: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Where the first word of a kind is about to begin; `again`, one that the story had before.

        Returns:
            The rows that have one, and the positions of the last token before it.
        """
        found = (self.kinds == kind) & (self.again == again)
        rows = np.flatnonzero(found.any(axis=1))
        return rows, found[rows].argmax(axis=1)


def study_stories(num_stories: int = 300, seed: int = 5) -> StudyStories:
    r"""Stories that no model has read, ready to be studied.

    Args:
        num_stories: how many.
        seed: which; those to train on have seed 0.

    Example:
        >>> stories = study_stories(2)
        >>> rows, at = stories.before("animals")
        >>> story_tokenizer().decode(stories.ids[0, at[0] - 5 : at[0] + 2])
        ' A sleepy rabbit'
    """
    stories = _grammar().generate(num_stories, seed).splitlines(keepends=True)
    texts = [story_tokenizer().encode("\n" + story) for story in stories]
    (newline,) = story_tokenizer().encode("\n")
    ids = np.full((num_stories, max(map(len, texts)) - 1), newline)
    kinds, within = (np.full(ids.shape, "", dtype="U9") for _ in range(2))
    again = np.zeros(ids.shape, dtype=bool)
    for row, (text, story) in enumerate(zip(texts, stories, strict=True)):
        ids[row, : len(text) - 1] = text[:-1]
        seen: set[str] = set()
        for word, first, end in _words(story):
            kinds[row, first - 1] = within[row, first:end] = _kind_of().get(word, "")
            again[row, first - 1] = word in seen
            seen.add(word)
    return StudyStories(ids, np.array([len(text) - 1 for text in texts]), kinds, again, within)


def story_beliefs(stories: StudyStories, name: str) -> np.ndarray:
    """The exact posterior over what is hidden under a name, `(n, seq, values)`.

    Row `i` is after token `i`; NaN where nothing is read.
    """
    values = hidden_values(_grammar(), name)
    return _along(stories, len(values), lambda ids: token_beliefs(_grammar(), _cut(), ids, name))


def story_truth(stories: StudyStories) -> np.ndarray:
    """The exact distribution of the next token, `(n, seq, vocab)`; NaN where nothing is read."""
    size = story_tokenizer().vocab_size
    return _along(stories, size, lambda ids: next_token_table(_grammar(), _cut(), ids, size))


def readable(x: np.ndarray, y: np.ndarray, ridge: float = _RIDGE) -> float:
    """The R² of a linear probe that reads `y` off `x`: fitted to two thirds, tested on the rest.

    Args:
        x: activations `(n, d)`.
        y: posteriors `(n, k)`.
        ridge: as for `LinearProbe`.
    """
    cut = 2 * len(x) // 3
    return r_squared(y[cut:], LinearProbe(x[:cut], y[:cut], ridge)(x[cut:]))


def study_stream(model: Any, stories: StudyStories, batch_size: int = 100) -> np.ndarray:
    """The stream of a model that reads all the stories, a batch of them at a time.

    Args:
        model: a `GPT`.
        stories: what it reads.
        batch_size: how many rows at a time.

    Returns:
        `(layers + 1, n, seq, embed_dim)`.

    Example:
        >>> from tinytorch_book.experiments.story_gpt import load_story_gpt
        >>> study_stream(load_story_gpt(), study_stories(3), batch_size=2).shape[:2]
        (3, 3)
    """
    starts = range(0, len(stories.ids), batch_size)
    streams = [residual_stream(model, stories.ids[i : i + batch_size]) for i in starts]
    return np.concatenate(streams, axis=1)


def asked(stories: StudyStories, hidden: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the positions at which a probe reads what is hidden.

    `where` is `"needed"`, the last token before the word that depends on it, or `"before"`, one
    token earlier.
    """
    rows, at = stories.before(*NEEDED[hidden])
    return rows, at - (where == "before")


# Helpers -------------------------------------------------------------------------------------

_grammar = cache(StoryGrammar)
_cut = story_tokenizer
_PRONOUNS = "he", "He", "him", "his"


@cache
def _kind_of() -> dict[str, str]:
    """The kind of every word that has one."""
    kinds = {word: kind for kind, words in _grammar().kinds.items() for word in words}
    pronouns = (word for name in _PRONOUNS for word in hidden_values(_grammar(), name))
    return {**kinds, **dict.fromkeys((word for word in pronouns if word), "pronouns")}


def _words(story: str) -> list[tuple[str, int, int]]:
    """Every word of a story, and which tokens it is made of, after one newline."""
    pieces = story_tokenizer().pieces("\n" + story)
    starts = np.cumsum([0, *map(len, pieces)]) - 1  # of the tokens, in the story
    found = []
    for match in WORD.finditer(story):
        first = np.searchsorted(starts, match.start(), side="right") - 1
        end = np.searchsorted(starts, match.end() - 1, side="right")
        found.append((match.group(), int(first), int(end)))
    return found


def _along(stories: StudyStories, size: int, known: Any) -> np.ndarray:
    """The values of `known` after every token of every row."""
    result = np.full((*stories.ids.shape, size), np.nan)
    for row, length in enumerate(stories.lengths):
        result[row, :length] = known(stories.ids[row, 1:length])  # without the newline
    return result
