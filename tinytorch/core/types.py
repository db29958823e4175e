"""What the functions of the library take, by name: each says what it is turned into.

A type checker reads these names, and so does a reader; nothing is checked by them when a program
runs. The text of an alias is not evaluated, so `numpy.random`, which loads slowly, is not loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import EllipsisType
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

Element = TypeVar("Element", covariant=True)


class SupportsArray(Protocol):
    """What NumPy reads as an array: an array, a NumPy number or a `Tensor`."""

    def __array__(self) -> np.ndarray: ...


class Nested(Protocol[Element]):
    """A list or tuple of elements, or of such lists, to any depth; a string is none."""

    def __iter__(self) -> Iterator[Element | Nested[Element]]: ...

    def __getitem__(self, part: slice, /) -> object: ...

    def __contains__(self, element: object, /) -> bool: ...


TensorLike: TypeAlias = "SupportsArray | float | Nested[SupportsArray | float]"
"""A tensor, an array, a number, or nested lists of numbers, which become a tensor."""

Mask: TypeAlias = "TensorLike | None"
"""What is added to the scores of attention, or None for nothing."""

TokenIds: TypeAlias = "SupportsArray | Nested[SupportsArray | int]"
"""An array or tensor of integers, or nested lists of them, which become an array of ids."""

Rng: TypeAlias = "np.random.Generator | int | None"
"""A NumPy `Generator`, a seed for one, or None for that of `manual_seed`."""

DType: TypeAlias = "np.typing.DTypeLike | None"
"""What NumPy takes for a dtype, `numpy.float64` for instance; None leaves the choice."""

Axis: TypeAlias = "int | tuple[int, ...] | None"
"""The axis or axes over which something is computed; None for all of them."""

Index: TypeAlias = "IndexPart | tuple[IndexPart, ...]"
"""What stands between square brackets."""

IndexPart: TypeAlias = "TokenIds | int | slice | EllipsisType | None"
"""The index of one axis, such as an integer, a slice, a mask or an array of integers."""

Model: TypeAlias = "Callable[[np.ndarray], TensorLike]"
"""A `GPT`, or any function from ids `(batch, seq)` to logits `(batch, seq, vocab)`."""


class WindowedModel(Protocol):
    """A `Model` that says how many tokens it can read."""

    @property
    def max_seq_len(self) -> int: ...

    def __call__(self, ids: np.ndarray, /) -> TensorLike: ...


Method = TypeVar("Method", bound=Callable[..., Any])  # what a decorator returns as it is


class ModuleLike(Protocol):
    """A `Module`, as the files see it that it imports itself."""

    def named_modules(self) -> list[tuple[str, Any]]: ...

    def named_parameters(self) -> list[tuple[str, Any]]: ...

    def trainable_parameters(self) -> list[Any]: ...


class CachedLayer(Protocol):
    """What an attention has read before: one layer of a `KVCache`."""

    @property
    def length(self) -> int: ...

    def extend(self, k: TensorLike, v: TensorLike, /) -> tuple[np.ndarray, np.ndarray]: ...
