"""One documented source of randomness.

Every initialiser and every sampler in this package takes an `rng`. Without one it draws from the
generator kept here, so that a single `manual_seed(0)` at the top of a page makes all of it
reproducible.
"""

from __future__ import annotations  # numpy.random, which loads slowly, is named but not loaded

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

_default: np.random.Generator | None = None  # made at the first draw: numpy.random loads slowly
_instead: ContextVar[np.random.Generator | None] = ContextVar("drawing from", default=None)


def manual_seed(seed: int) -> np.random.Generator:
    """Restart the package's default random generator from `seed` and return it.

    Example:
        >>> first = manual_seed(7).random(2)
        >>> again = manual_seed(7).random(2)
        >>> bool((first == again).all())
        True
    """
    global _default
    _default = np.random.default_rng(seed)
    return _default


def default_rng(rng: np.random.Generator | int | None = None) -> np.random.Generator:
    """The generator to draw from: `rng` itself, one seeded by an integer, or the default one.

    Args:
        rng: a NumPy `Generator`, a seed, or None for the generator set by `manual_seed`.

    Raises:
        TypeError: `rng` is something else, a legacy `RandomState` for instance.
        ValueError: a negative seed.

    Example:
        >>> default_rng(3).integers(0, 10, size=4).tolist()
        [8, 0, 1, 2]
        >>> default_rng() is default_rng()
        True
    """
    if rng is None:
        return _instead.get() or _default or manual_seed(0)
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        if rng < 0:
            raise ValueError(f"a seed must be at least 0, got {rng}")
        return np.random.default_rng(int(rng))
    got = f"got {type(rng).__name__}; make one with numpy.random.default_rng(seed)"
    raise TypeError(f"rng must be a numpy Generator, a seed or None, {got}")


@contextmanager
def drawing_from(rng: np.random.Generator) -> Iterator[None]:
    """A context in which `rng` replaces the default generator, in this thread alone.

    Example:
        >>> rng, before = np.random.default_rng(0), default_state()
        >>> with drawing_from(rng):
        ...     default_rng() is rng
        True
        >>> default_state() == before
        True
    """
    before = _instead.set(rng)
    try:
        yield
    finally:
        _instead.reset(before)


def default_state() -> dict[str, Any]:
    """The state of the default generator, as plain numbers and lists that JSON can hold."""
    return _state_of(default_rng().bit_generator)


def _state_of(generator: np.random.BitGenerator) -> dict[str, Any]:
    names = ("entropy", "spawn_key", "n_children_spawned")  # spawn() must not repeat itself
    seed = {name: getattr(generator.seed_seq, name) for name in names}
    return {"seed": {**seed, "spawn_key": list(seed["spawn_key"])}, "state": generator.state}


def restore_default(state: dict[str, Any]) -> None:
    """Set the default generator to a state that `default_state` returned."""
    global _default
    try:
        generator = np.random.PCG64(np.random.SeedSequence(**state["seed"]))
        generator.state = state["state"]
        if _state_of(generator) != state:
            raise ValueError(state)
    except (KeyError, TypeError, OverflowError, ValueError) as error:
        raise ValueError(f"this is not a state of the default generator: {error!r}") from None
    _default = np.random.Generator(generator)
