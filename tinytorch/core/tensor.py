"""Arrays that know their gradient.

A `Tensor` is a NumPy array together with a record of how it was made: the tensors it was computed
from and a function that carries a gradient back to them. The record is written in `graph.py` and
read in `backward.py`; the operations are in `ops.py`. Here they come together as one class.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tinytorch.core import ops
from tinytorch.core.arguments import refuse_mask
from tinytorch.core.backward import backward
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.graph import Node, native, wrap
from tinytorch.core.numpy_calls import OPERATORS, call_function, call_ufunc, refuse_if_lost
from tinytorch.core.primitive import primitive
from tinytorch.core.types import Axis, DType, Index, TensorLike

__all__ = ["Tensor", "no_grad", "primitive"]


class Tensor(Node):
    """A NumPy array that can carry a gradient.

    Args:
        data: numbers, nested lists, an array or another Tensor; always copied. Floats become
            float32 unless `dtype` says otherwise, integers and booleans stay what they are.
        requires_grad: whether `backward()` stores a gradient in `.grad`.
        dtype: a NumPy dtype to convert to.

    Raises:
        TypeError: the data are not numbers, or `requires_grad` is set for integers.
        ValueError: nested lists of unequal length.

    Example:
        >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        array([2., 4., 6.], dtype=float32)
    """

    __slots__ = ()

    def __init__(self, data: TensorLike, requires_grad: bool = False, dtype: DType = None) -> None:
        self._array = _as_array(data, dtype)
        self._grad = self._record = self._changed = None
        self.requires_grad = requires_grad

    # What it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.data.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.data.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self.data.dtype

    @property
    def T(self) -> Tensor:
        """The tensor with its last two axes swapped."""
        return self.transpose()

    def item(self) -> Any:
        """The single element as a Python number."""
        return self._single("item()")

    def __float__(self) -> float:
        return float(self._single("float()"))

    def __int__(self) -> int:
        return int(self._single("int()"))

    def __round__(self, digits: int | None = None) -> Any:
        return round(self._single("round()"), digits)

    def __format__(self, spec: str) -> str:
        return format(self._single(f"the format {spec!r}"), spec) if spec else str(self)

    def _single(self, what: str) -> Any:
        if self.size != 1:
            shape = f"this tensor has shape {self.shape}"
            raise ValueError(f"{what} needs one element, {shape}; reduce it to one value")
        return self._array.item()

    def numpy(self) -> np.ndarray:
        """The array itself, not a copy."""
        return self.data

    def detach(self) -> Tensor:
        """The same data, detached from the graph."""
        twin = wrap(self._array)
        twin._changed = self.clock()  # a change of one is a change of the other
        return twin

    def __array__(self, dtype: DType = None, copy: bool | None = None) -> np.ndarray:
        refuse_if_lost("converting to a NumPy array", self, "the operations of tinytorch.ops")
        return np.array(self._array, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        return call_ufunc(ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, _: object, args: Any, settings: Any) -> Any:
        return call_function(function, args, settings)

    def __getstate__(self) -> tuple[Any, ...]:
        if not self.is_leaf:
            lost = "its graph would be lost; use detach() for the numbers alone"
            raise TypeError(f"a tensor computed from others cannot be copied or pickled: {lost}")
        return self._array, self._grad, self._requires_grad

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._array, self._grad, self._requires_grad = state
        self._record = self._changed = None

    def __copy__(self) -> Tensor:
        return copy.deepcopy(self)  # as NumPy copies arrays: with the numbers

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a tensor without axes has no length")
        return len(self.data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        return bool(self._single("bool()"))

    def __repr__(self) -> str:
        shown = np.array2string(self.data, separator=", ", prefix="Tensor(", precision=4)
        dtype = "" if self.dtype == np.float32 else f", dtype={self.dtype}"
        return f"Tensor({shown}{dtype}{', requires_grad=True' if self.requires_grad else ''})"

    # Gradients -------------------------------------------------------------------------------

    def zero_grad(self) -> None:
        """Clear the gradient."""
        self.grad = None

    def backward(self, gradient: TensorLike | None = None) -> None:
        """Store the gradient of this tensor in `.grad` of every leaf that requires one.

        Gradients add up over repeated calls, until `zero_grad()`, and the graph is freed.

        Args:
            gradient: the gradient of the final result with respect to this tensor, an array of
                the same shape; needed unless the tensor holds a single element.

        Raises:
            ValueError: a gradient is missing or has the wrong shape.
            TypeError: the gradient does not consist of real numbers.
            RuntimeError: there is nothing to differentiate, the graph was already used, or data
                that it needs were changed; no gradient is touched then.
        """
        backward(self, gradient)

    # Operators: each is one primitive of ops.py ------------------------------------------------

    __add__ = __radd__ = ops.add
    __sub__, __mul__, __truediv__, __matmul__ = ops.sub, ops.mul, ops.div, ops.matmul
    __rmul__, __neg__, __abs__ = ops.mul, ops.neg, ops.abs

    def __rsub__(self, other: TensorLike) -> Tensor:
        return ops.sub(other, self)

    def __rtruediv__(self, other: TensorLike) -> Tensor:
        return ops.div(other, self)

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        return ops.matmul(other, self)

    def __pow__(self, exponent: float) -> Tensor:
        return ops.power(self, exponent=exponent)

    def __getitem__(self, index: Index) -> Tensor:
        return ops.getitem(self, index=index)

    __eq__, __ne__ = OPERATORS[np.equal], OPERATORS[np.not_equal]
    __lt__, __le__ = OPERATORS[np.less], OPERATORS[np.less_equal]
    __gt__, __ge__ = OPERATORS[np.greater], OPERATORS[np.greater_equal]
    __hash__ = object.__hash__

    __and__ = __rand__ = OPERATORS[np.bitwise_and]
    __or__ = __ror__ = OPERATORS[np.bitwise_or]
    __xor__ = __rxor__ = OPERATORS[np.bitwise_xor]
    __invert__ = OPERATORS[np.invert]

    abs, exp, log, sqrt, tanh = ops.abs, ops.exp, ops.log, ops.sqrt, ops.tanh

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The sum over `axis`, or over everything."""
        return ops.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The mean over `axis`, or over everything."""
        return ops.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The variance (divided by n, not n - 1) over `axis`, or over everything."""
        return ops.var(self, axis=axis, keepdims=keepdims)

    def std(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The standard deviation, the root of `var`, over `axis`, or over everything."""
        return ops.std(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The largest element along `axis`, or of all."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The smallest element along `axis`, or of all."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None) -> Tensor:
        """Where the largest element is (integers: no gradient)."""
        return wrap(np.asarray(self.data.argmax(axis)))

    def argmin(self, axis: int | None = None) -> Tensor:
        """Where the smallest element is (integers: no gradient)."""
        return wrap(np.asarray(self.data.argmin(axis)))

    def clip(self, min: float | None = None, max: float | None = None) -> Tensor:
        """The elements, limited to at least `min` and at most `max`."""
        return ops.clip(self, min=min, max=max)

    def astype(self, dtype: DType) -> Tensor:
        """The elements converted to another dtype; the gradient is converted back.

        Example:
            >>> x = Tensor([1.5, 2.5], requires_grad=True)
            >>> x.astype(np.float64).sum().backward()
            >>> x.grad
            array([1., 1.], dtype=float32)
            >>> x.astype(int)  # integers have no gradient
            Tensor([1, 2], dtype=int64)
        """
        return ops.cast(self, Tensor(0, dtype=dtype))

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The same elements in another shape; one length may be -1."""
        return ops.reshape(self, shape=_flatten(shape))

    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Tensor:
        """The axes from `start_axis` to `end_axis` (inclusive) merged into one; by default all.

        Example:
            >>> Tensor(np.zeros((2, 3, 4))).flatten(1).shape
            (2, 12)
        """
        if self.ndim == 0:
            return self.reshape(1)
        start, end = (normalize_axis_index(a, self.ndim) for a in (start_axis, end_axis))
        if start > end:
            raise ValueError(f"flatten: axis {start} comes after axis {end} of shape {self.shape}")
        merged = math.prod(self.shape[start : end + 1])
        return self.reshape(*self.shape[:start], merged, *self.shape[end + 1 :])

    def ravel(self) -> Tensor:
        """All elements in one axis, the last axis varying fastest."""
        return self.reshape(-1)

    def squeeze(self, axis: Axis = None) -> Tensor:
        """Without the axes of length 1, or without those named, which must be of length 1.

        Example:
            >>> Tensor(np.zeros((1, 3, 1))).squeeze().shape
            (3,)
            >>> Tensor(np.zeros((1, 3, 1))).squeeze(-1).shape
            (1, 3)
        """
        return self.reshape(self._array.squeeze(axis).shape)

    def unsqueeze(self, axis: int) -> Tensor:
        """With a new axis of length 1 at the position `axis`.

        Example:
            >>> Tensor(np.zeros((2, 3))).unsqueeze(1).shape
            (2, 1, 3)
        """
        return self.reshape(np.expand_dims(self._array, axis).shape)

    def transpose(self, axis0: int = -2, axis1: int = -1) -> Tensor:
        """The tensor with two axes swapped, by default the last two."""
        return ops.transpose(self, axis0=axis0, axis1=axis1)

    def permute(self, *axes: int | Sequence[int]) -> Tensor:
        """The tensor with its axes in the given order."""
        return ops.permute(self, axes=_flatten(axes))


Node.result_class = Tensor

# Helpers -------------------------------------------------------------------------------------


def _as_array(data: TensorLike, dtype: DType) -> np.ndarray:
    """A fresh numeric array holding `data`."""
    if isinstance(data, Tensor):
        refuse_if_lost("Tensor(t)", data, "the tensor itself")
    refuse_mask(data, "Tensor")
    try:
        array = np.array(data.data if isinstance(data, Tensor) else data, dtype=dtype)
    except ValueError as error:
        remedy = "; all rows must have the same length" if "inhomogeneous" in str(error) else ""
        raise ValueError(f"Tensor: {error}{remedy}") from None
    if array.dtype.kind not in "fiub":
        remedy = "give real numbers or lists of them"
        raise TypeError(f"Tensor: cannot hold {array.dtype} data; {remedy}")
    if dtype is None and array.dtype.kind == "f":
        return array.astype(np.float32, copy=False)
    return native(array)


def _flatten(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Accept both f(2, 3) and f((2, 3))."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
