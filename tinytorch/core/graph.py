"""The graph: which operation made an array, and from which others.

Every result of an operation is a `Node`, an array together with a `Record` of how it was made;
`backward.py` reads the records in reverse. Operations write them (`primitive.py`). The class
`Tensor`, a node with operators, is in `tensor.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tinytorch.core.arguments import refuse_mask
from tinytorch.core.sparse import RowSparse
from tinytorch.core.types import TensorLike

if TYPE_CHECKING:  # operations return one, though it is made of them
    from tinytorch.core.tensor import Tensor

Gradient = Any  # an array or a RowSparse
Pullback = Callable[[np.ndarray], Any]
FLOAT32 = np.dtype(np.float32)


class Record:
    """How a tensor was made: all that the backward pass needs, without the array itself.

    A pullback keeps the arrays that it uses; the others are freed when nothing else refers to them.

    Attributes:
        name: the operation.
        _parents: for each operand its record, itself if it is a leaf, or None if it is no tensor.
        pullback: the operation's; None once it has been used.
        time: when it was made; see `Node`.
        shape: of the tensor; `dtype` likewise.
    """

    __slots__ = ("_changed", "_parents", "dtype", "name", "pullback", "shape", "time")
    _requires_grad = True  # or nothing would have been recorded

    def __init__(
        self, name: str, parents: list[Record | Node | None], pullback: Pullback, made: np.ndarray
    ) -> None:
        self.name, self._parents, self.time = name, parents, next(_ticks)
        self.pullback: Pullback | None = pullback
        self.shape, self.dtype = made.shape, made.dtype
        self._changed: list[int] | None = None


class Node:
    """An array, its gradient, and the record of the operation that made it.

    A time here is a number that no other record or change has. A record stores the time when it was
    made, a node that of its last change, and `backward` compares the two.
    """

    result_class: ClassVar[type[Any]]  # what operations return: a node with operators, `Tensor`
    __slots__ = ("__weakref__", "_array", "_changed", "_grad", "_record", "_requires_grad")

    _parents = ()  # of a leaf; of a result, its record has them
    _array: np.ndarray
    _grad: Gradient
    _requires_grad: bool
    _record: Record | None  # None for a leaf
    # the time of the last change, shared by all that share the data; a result's is in its record
    _changed: list[int] | None

    @property
    def data(self) -> np.ndarray:
        """The array itself.

        Assigning to it (`t.data = a`, `t.data -= a`) is noted, and a backward pass through an
        operation that used the old numbers is refused. Writing into the array (`t.data[...] = a`)
        cannot be detected: call `mark_changed()` after it if a graph is open. Floats without a
        dtype, a list for instance, take that of the tensor.
        """
        return self._array

    @data.setter
    def data(self, array: TensorLike) -> None:
        refuse_mask(array, "data")
        has_dtype, array = hasattr(array, "dtype"), native(np.asarray(array))
        if array.dtype.kind == "f" and not has_dtype:
            array = array.astype(self._array.dtype if self._array.dtype.kind == "f" else FLOAT32)
        kinds, wanted = ("f", "floating-point") if self._requires_grad else ("fiub", "real")
        if array.dtype.kind not in kinds:
            raise TypeError(f"this tensor holds {wanted} numbers, got data of {array.dtype}")
        if array is not self._array:
            self._array = array
            (self._record or self)._changed = None  # no longer that of a detached twin
        self.mark_changed()

    @property
    def grad(self) -> Any:
        """The gradient that `backward()` stored: an array, a `RowSparse`, or None."""
        return self._grad

    @grad.setter
    def grad(self, gradient: TensorLike | RowSparse | None) -> None:
        self._grad = None if gradient is None else as_gradient(gradient, self._array.shape)
        if isinstance(self._grad, np.ndarray) and self._array.dtype.kind == "f":
            self._grad = self._grad.astype(self._array.dtype, copy=False)

    @property
    def requires_grad(self) -> bool:
        """Whether `backward()` carries a gradient to this tensor; may be set on a leaf."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted and self._array.dtype.kind != "f":
            why = "only floating-point numbers vary continuously: pass dtype=numpy.float32"
            raise TypeError(f"a tensor of {self.data.dtype} cannot require a gradient; {why}")
        if not wanted and self._record is not None:
            made = "computed from others that require a gradient, which would be lost"
            raise RuntimeError(f"this tensor was {made}; use detach() for its data alone")
        self._requires_grad = bool(wanted)

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was created directly, not computed from others with a gradient."""
        return self._record is None

    def mark_changed(self) -> None:
        """Note that the data were changed in place, so that no stale gradient is computed.

        Example:
            >>> from tinytorch import Tensor
            >>> w = Tensor([2.0], requires_grad=True)
            >>> y = w * w
            >>> w.data[...] = 5.0
            >>> w.mark_changed()
            >>> y.backward()  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            RuntimeError: backward() through mul: its operand 0 of shape (1,) was changed ...
        """
        self.clock()[0] = next(_ticks)

    def clock(self) -> list[int]:
        """The time of the last change of the data, shared by every tensor that shares them."""
        holder = self._record or self
        holder._changed = holder._changed or [0]
        return holder._changed


_ticks = itertools.count(1)  # of all threads


def as_gradient(gradient: TensorLike | RowSparse, shape: tuple[int, ...]) -> Gradient:
    """A gradient of a tensor of `shape` as an array, or the `RowSparse` that it is."""
    array = gradient if isinstance(gradient, RowSparse) else np.asarray(gradient)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"a gradient must hold real numbers, got {array.dtype}")
    if array.shape != shape:
        wrong = f"has its shape, got {array.shape}"
        raise ValueError(f"the gradient of a tensor of shape {shape} {wrong}")
    return array


def wrap(array: np.ndarray) -> Tensor:
    """A tensor around an existing array: no copy, no conversion, no record."""
    node = _new(Node.result_class)
    node._array = array
    node._grad = node._record = node._changed = None
    node._requires_grad = False
    return node


_new = object.__new__


def native(array: np.ndarray) -> np.ndarray:
    """The same numbers in the byte order of this machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)
