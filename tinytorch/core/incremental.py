"""Reading a text piece by piece: how a part declares that it can.

A model that generates text reads one new token at a time, and continues from what it has kept of
the earlier ones (incremental decoding). Not every part can: attention must look at cached keys and
values, and a layer of positions must count from a given one. A part that can has a mark on its
`forward`, so that a custom `forward`, which replaces ours, does not inherit the promise.
"""

from __future__ import annotations

from tinytorch.core.types import Method

__all__ = ["incremental", "is_incremental"]


def incremental(forward: Method) -> Method:
    """Mark a `forward` that can read a text piece by piece, to the same result as all at once.

    It must take these arguments: in an attention and a block `cache=`, one layer of a `KVCache`; in
    a layer of positions or a rotation `start`, the position of the first vector; in a model
    `cache=`, a whole `KVCache`, and `last_only=`, whether to score the last position alone.

    Args:
        forward: the method; returned as it is, with the mark.

    Example:
        >>> class Shift:
        ...     @incremental
        ...     def forward(self, x, start=0):
        ...         return x + start
        >>> class Doubled(Shift):  # another forward, which has promised nothing
        ...     def forward(self, x):
        ...         return 2 * x
        >>> is_incremental(Shift()), is_incremental(Doubled())
        (True, False)
    """
    setattr(forward, "is_incremental", True)  # noqa: B010 (mypy knows no such attribute)
    return forward


def is_incremental(part: object) -> bool:
    """Whether a part, a module or any other callable, can read a text piece by piece."""
    called = getattr(part, "forward", getattr(part, "__call__", None))  # noqa: B004
    return any(getattr(each, "is_incremental", False) for each in (part, called))
