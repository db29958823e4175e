"""Random numbers for a whole batch: every rank draws the same ones, and keeps its rows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinytorch.core.module import Module
from tinytorch.core.seeding import default_rng, drawing_from
from tinytorch.training.ranks import Ranks
from tinytorch.training.resuming import generators


class _WholeBatch(np.random.Generator):
    """Draws for the whole batch where this rank's share is asked for, and keeps its rows.

    So every rank's generator advances as that of a single process would, and all stay equal.
    """

    def __init__(self, bits: Any, ranks: Ranks, rows: int) -> None:
        super().__init__(bits)
        self._rows, self._ranks = rows, ranks

    def _draw(self, draw: Callable[..., Any], size: Any, **options: Any) -> Any:
        if np.ndim(size) != 1 or not len(size) or size[0] != self._rows:
            return draw(size=size, **options)
        whole = draw(size=(size[0] * self._ranks.size, *size[1:]), **options)
        return whole[self._ranks.rank * self._rows :][: self._rows]

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._draw(super().random, size, dtype=dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._draw(super().uniform, size, low=low, high=high)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._draw(super().normal, size, loc=loc, scale=scale)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._draw(super().standard_normal, size, dtype=dtype)


@contextmanager
def drawing_whole_batches(model: Module, ranks: Ranks, batch_size: int) -> Iterator[None]:
    """A context in which dropout is that of the whole batch."""
    share, held = batch_size // ranks.size, generators(model).values()
    for part, attribute, rng in held:
        vars(part)[attribute] = _WholeBatch(rng.bit_generator, ranks, share)
    try:
        with drawing_from(_WholeBatch(default_rng().bit_generator, ranks, share)):
            yield
    finally:
        for part, attribute, rng in held:
            vars(part)[attribute] = rng
