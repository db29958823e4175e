"""Dialects that differ in words: for each of twelve things, one of two names.

A dialect is a row of twelve bits, so there are `2**12 = 4096` of them. Who speaks it names things,
each as likely as any other, and nine times in ten by the dialect's word. No single word tells which
dialect it is; many words do. `dialect_posterior` has what the best possible reader makes of them.

    >>> dialects = draw_dialects(3, rng=0)
    >>> said = speak(dialects, 5, rng=0)  # five words of each
    >>> for row in said:
    ...     print(" ".join(WORDS[word] for word in row))
    torch garbage lorry apartment apartment
    autumn autumn autumn movie tap
    garbage flashlight lorry garbage trousers
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

__all__ = ["LOYALTY", "WORDS", "WORD_PAIRS", "all_dialects", "dialect_table", "draw_dialects",
           "speak"]  # fmt: skip

#: The two names of each thing. A dialect's bit says which of them it uses.
WORD_PAIRS = (
    ("autumn", "fall"), ("biscuit", "cookie"), ("film", "movie"), ("flat", "apartment"),
    ("holiday", "vacation"), ("lift", "elevator"), ("lorry", "truck"), ("rubbish", "garbage"),
    ("sweets", "candy"), ("tap", "faucet"), ("torch", "flashlight"), ("trousers", "pants"),
)  # fmt: skip
#: All words; the id of a word is its place here: thing `i` is called `2 * i` or `2 * i + 1`.
WORDS = tuple(word for pair in WORD_PAIRS for word in pair)
#: How often a thing is called by its dialect's word.
LOYALTY = 0.9


def all_dialects(things: int = len(WORD_PAIRS)) -> np.ndarray:
    """Every dialect, one in a row, `(2**things, things)`.

    Args:
        things: how many things there are to name.

    Example:
        >>> all_dialects(2).tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.array(list(product((0, 1), repeat=things)))


def draw_dialects(count: int, rng: Any = None) -> np.ndarray:
    """Dialects of all twelve things, no two alike, in a random order, `(count, 12)`.

    The first ones are the same for every count, so those of 4 are among those of 16.

    Args:
        count: how many, from 1 to 4096.
        rng: a seed or a generator of NumPy.

    Raises:
        ValueError: there are not so many.

    Example:
        >>> bool((draw_dialects(16, rng=0)[:4] == draw_dialects(4, rng=0)).all())
        True
    """
    every = all_dialects()
    if not 1 <= count <= len(every):
        raise ValueError(f"draw_dialects: there are {len(every)} dialects; got count={count}")
    return every[np.random.default_rng(rng).permutation(len(every))[:count]]


def dialect_table(dialects: Any, loyalty: float = LOYALTY) -> np.ndarray:
    """How likely each word is as the next one, in each dialect: rows that sum to 1.

    Args:
        dialects: bits `(dialects, things)`.
        loyalty: how often a thing is called by its dialect's word.

    Returns:
        Probabilities `(dialects, 2 * things)`.

    Example:
        >>> dialect_table([[0, 1]]).tolist()
        [[0.45, 0.05, 0.05, 0.45]]
    """
    bits = np.asarray(dialects)[..., None]  # (dialects, things, 1)
    of_thing = np.where(bits == [0, 1], loyalty, 1 - loyalty)
    return of_thing.reshape(len(bits), -1).round(15) / bits.shape[1]


def speak(dialects: Any, length: int, rng: Any = None, loyalty: float = LOYALTY) -> np.ndarray:
    """Words of speakers, each of a dialect of its own.

    Args:
        dialects: bits `(speakers, things)`; a dialect may occur more than once.
        length: how many words each of them says.
        rng: a seed or a generator of NumPy.
        loyalty: how often a thing is called by its dialect's word.

    Returns:
        The ids of the words, `(speakers, length)`.

    Example:
        >>> said = speak([[0] * 12, [1] * 12], 4, rng=1, loyalty=1)
        >>> [" ".join(WORDS[word] for word in row) for row in said]
        ['lift lorry tap trousers', 'fall cookie faucet pants']
    """
    bits, rng = np.asarray(dialects), np.random.default_rng(rng)
    thing = rng.integers(bits.shape[1], size=(len(bits), length))
    strays = rng.random(thing.shape) >= loyalty
    return 2 * thing + (np.take_along_axis(bits, thing, axis=1) ^ strays)
