r"""What the best possible reader believes about a speaker's dialect, and expects next.

Bayes' rule: the belief in a dialect is in proportion to its prior times the probability of all the
words so far; words are independent once the dialect is given, so only how often each was said
counts, and in no order. The forecast weights each dialect's own by the belief.

There are two such readers. `listed_forecast` knows a list of dialects, all as likely, and no other.
`family_forecast` believes that any dialect may come, which makes the sum over all of them a product
over things. They agree when the list holds them all:

    >>> from tinytorch_book.stories.word_dialects import all_dialects, dialect_table
    >>> table, words = dialect_table(all_dialects(2)), [[0, 2, 0]]
    >>> np.allclose(listed_forecast(table, words), family_forecast(words, things=2))
    True
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch_book.stories.word_dialects import LOYALTY, WORD_PAIRS

__all__ = ["dialect_posterior", "family_forecast", "listed_forecast"]


def dialect_posterior(table: Any, words: Any) -> np.ndarray:
    """The belief in each listed dialect, before each word: all are as likely before the first.

    Args:
        table: the probability of each word in each dialect, `(dialects, words)`, all above 0.
        words: ids `(..., n)`.

    Returns:
        Probabilities `(..., n, dialects)`; entry `i` is after the words before `i`.

    Raises:
        ValueError: a word has no probability in some dialect, or there is no such word.

    Example:
        >>> dialect_posterior([[0.9, 0.1], [0.1, 0.9]], [0, 0, 1]).round(3).tolist()
        [[0.5, 0.5], [0.9, 0.1], [0.988, 0.012]]
    """
    table = np.asarray(table, dtype=float)
    if not (table > 0).all():
        raise ValueError("dialect_posterior: each word must be possible in each dialect")
    scores = _counted_before(words, table.shape[1]) @ np.log(table).T  # (..., n, dialects)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def listed_forecast(table: Any, words: Any) -> np.ndarray:
    """The next word as expected by who knows a list of dialects, and that it is one of these.

    Args:
        table: as for `dialect_posterior`.
        words: ids `(..., n)`.

    Returns:
        Probabilities `(..., n, words)` of each word, given those before it.

    Example:
        >>> listed_forecast([[0.9, 0.1], [0.1, 0.9]], [0, 0]).round(2).tolist()
        [[0.5, 0.5], [0.82, 0.18]]
    """
    return dialect_posterior(table, words) @ np.asarray(table, dtype=float)


def family_forecast(
    words: Any, things: int = len(WORD_PAIRS), loyalty: float = LOYALTY
) -> np.ndarray:
    """The next word as expected by who thinks every dialect of the family as likely.

    Of a thing it knows only what that thing has been called so far.

    Args:
        words: ids `(..., n)`.
        things: how many things there are to name.
        loyalty: how often a thing is called by its dialect's word.

    Returns:
        Probabilities `(..., n, 2 * things)` of each word, given those before it.

    Example:
        >>> family_forecast([0, 0, 2], things=2).round(2).tolist()
        [[0.25, 0.25, 0.25, 0.25], [0.41, 0.09, 0.25, 0.25], [0.45, 0.05, 0.25, 0.25]]
    """
    counts = _counted_before(words, 2 * things)
    ahead = counts[..., 0::2] - counts[..., 1::2]  # (..., n, things)
    odds = ahead * np.log(loyalty / (1 - loyalty))  # of the first name, their logarithm
    first = (1 + np.tanh(odds / 2)) / 2  # the belief that the dialect's is the first
    says = (1 - loyalty) + (2 * loyalty - 1) * first
    return np.stack([says, 1 - says], axis=-1).reshape(counts.shape) / things


def _counted_before(words: Any, size: int) -> np.ndarray:
    """How often each word has been said before each place, `(..., n, size)`."""
    words = np.asarray(words)
    wrong = words[(words < 0) | (words >= size)]
    if wrong.size:
        raise ValueError(f"the ids of {size} words are 0 to {size - 1}, got {wrong[0]}")
    said = np.eye(size)[words]
    return said.cumsum(axis=-2) - said
