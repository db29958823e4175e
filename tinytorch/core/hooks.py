"""Look into a model while it runs, and change what one part passes to the next.

No part is replaced or changed: `Module.__call__` passes inputs and outputs to the hooks. They are
active in one `with` block and one thread, and leave the model as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.graph import wrap
from tinytorch.core.types import ModuleLike

__all__ = ["hooks"]

Hook = Callable[[Any], Any]  # receives a value; returns its replacement, or None to leave it


class _Around(NamedTuple):
    """The hooks of one block around its modules, by their identity."""

    before: dict[int, Hook]
    after: dict[int, Hook]


_open: ContextVar[tuple[_Around, ...]] = ContextVar("open hooks", default=())


@contextmanager
def hooks(
    model: ModuleLike,
    after: Mapping[str, Hook] | None = None,
    before: Mapping[str, Hook] | None = None,
) -> Iterator[None]:
    """A context in which functions see what goes through the parts of a model, and may replace it.

    Blocks may be nested: the inner one sees what the outer one has replaced.

    Args:
        model: a `Module`, whose parts are named as in `model.named_modules()`: `"blocks.0.mlp"`.
        after: for names of parts, a function of what the part returns.
        before: for names of parts, a function of the part's first argument. Each returns a
            replacement, a tensor or an array of the same shape, which is converted to the same
            dtype, or None to leave the value as it is.

    Raises:
        ValueError: the model has no part of this name; or, when it runs, a hook has returned
            another shape.
        TypeError: a hook cannot be called, or has returned floats instead of ids.

    Example:
        >>> from tinytorch import GPT
        >>> model, shapes = GPT(5, 8, 2, 2, rng=0), []
        >>> with hooks(model, after={"blocks.1.mlp": lambda x: shapes.append(x.shape)}):
        ...     before = model([[1, 2, 3]])
        >>> shapes
        [(1, 3, 8)]
        >>> with hooks(model, after={"blocks.1.mlp": lambda x: 0 * x}):  # the part is silent
        ...     changed = model([[1, 2, 3]])
        >>> bool((changed.data == before.data).all())
        False
    """
    parts = dict(model.named_modules())
    around = _Around({}, {})
    for asked, found in zip((before or {}, after or {}), around, strict=True):
        for name, hook in asked.items():
            if name not in parts:
                there = ", ".join(filter(None, parts))
                raise ValueError(f"hooks: the model has no part {name!r}; its parts are {there}")
            if not callable(hook):
                raise TypeError(f"hooks: the hook of {name!r} must be a function, got {hook!r:.60}")
            found[id(parts[name])] = hook
    token = _open.set((*_open.get(), around))
    try:
        yield
    finally:
        _open.reset(token)


def opened() -> tuple[_Around, ...]:
    """The blocks of hooks that are open here and now."""
    return _open.get()


def called(part: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a part returns once its hooks have seen and replaced its input and output."""
    for around in _open.get():  # the outer block first
        if (hook := around.before.get(id(part))) is not None and args:
            args = (_replaced(hook, args[0]), *args[1:])
    result = part.forward(*args, **kwargs)
    for around in _open.get():
        if (hook := around.after.get(id(part))) is not None:
            result = _replaced(hook, result)
    return result


def _replaced(hook: Hook, value: Any) -> Any:
    """What a hook returns if it can replace `value`, otherwise `value`."""
    new = hook(value)
    if new is None or isinstance(value, tuple):  # a tuple of tensors is not checked
        return value if new is None else new
    like = value if hasattr(value, "dtype") else np.asarray(value)  # ids may be a list
    new = new if hasattr(new, "dtype") else np.asarray(new)
    if new.shape != like.shape:
        raise ValueError(f"hooks: a replacement must keep the shape {like.shape}, got {new.shape}")
    if not np.can_cast(new.dtype, like.dtype, "same_kind"):
        raise TypeError(f"hooks: a replacement must keep the dtype {like.dtype}, got {new.dtype}")
    if isinstance(new, (np.ndarray, np.generic)):
        return wrap(np.asarray(new, like.dtype))
    return new if new.dtype == like.dtype else new.astype(like.dtype)
