"""Numbers that checks draw: the same whenever they are asked, and others to ask once more."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_MORE = 1000  # seeds that a check may use itself
others: ContextVar[int] = ContextVar("others", default=0)  # what `other_numbers` sets
has_drawn: ContextVar[bool] = ContextVar("draws", default=False)  # whether a check has drawn


def drawn(*shapes: Any, seed: int = 0) -> list[np.ndarray]:
    """Normally distributed numbers, an array for each shape, the same for the same seed.

    Example:
        >>> [array.shape for array in drawn(2, (3, 4))]
        [(2,), (3, 4)]
    """
    rng = generator(seed)
    return [rng.normal(size=shape) for shape in shapes]


def generator(seed: int = 0) -> "np.random.Generator":  # quoted: it is loaded when used
    """A generator for what `drawn` does not draw: whole numbers, an order, shares of one.

    Example:
        >>> bool(generator(1).integers(10) == generator(1).integers(10))
        True
    """
    return np.random.default_rng(seed_of(seed))


def seed_of(seed: int) -> int:
    """A seed for what a check draws without `drawn`: stories, whole numbers.

    Args:
        seed: the number of the draw, below 1,000.

    Example:
        >>> with other_numbers(2):
        ...     seed_of(7)
        2007
        >>> seed_of(7)
        7
    """
    has_drawn.set(True)
    return seed + _MORE * others.get()


@contextmanager
def other_numbers(seed: int) -> Iterator[None]:
    """Let the checks draw other numbers: an answer must not rely on those that a reader can see.

    Args:
        seed: at least 1; each has its own numbers.

    Example:
        >>> with other_numbers(1):
        ...     [others] = drawn(2)
        >>> others == drawn(2)[0]
        array([False, False])
    """
    before = others.set(seed)
    try:
        yield
    finally:
        others.reset(before)
