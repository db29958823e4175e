"""Arrays that know their gradient.

A `Tensor` is a NumPy array together with a note of how it was made: the tensors it was computed
from and a function that carries a gradient back to them. The note is taken in `tracing.py` and read
in `backward.py`; each operation is written in `ops.py`. Here they come together as one class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.core import ops
from tinytorch.core.backward import backward
from tinytorch.core.tracing import Node, as_operand, no_grad, primitive, result_class, wrap

__all__ = ["Tensor", "no_grad", "primitive"]


@result_class
class Tensor(Node):
    """A NumPy array that can carry a gradient.

    Args:
        data: numbers, nested lists, an array or another Tensor; always copied. Floats become
            float32 unless `dtype` says otherwise, integers and booleans stay what they are.
        requires_grad: whether `backward()` shall leave a gradient in `.grad`.
        dtype: a NumPy dtype to convert to.

    Raises:
        TypeError: the data are not numbers, or integers are asked to require a gradient.
        ValueError: nested lists of unequal length.

    Example:
        >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        array([2., 4., 6.], dtype=float32)
    """

    __slots__ = ()
    __array_ufunc__ = None  # array * tensor is answered by Tensor.__rmul__

    def __init__(self, data: Any, requires_grad: bool = False, dtype: Any = None) -> None:
        self._data = _as_array(data, dtype)
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
        if self.size != 1:
            raise ValueError(f"item() needs one element, this tensor has shape {self.shape}")
        return self.data.item()

    def numpy(self) -> np.ndarray:
        """The array itself, not a copy."""
        return self.data

    def detach(self) -> Tensor:
        """The same data, cut off from the graph."""
        twin = wrap(self._data)
        if self._changed is None:
            self._changed = [0]
        twin._changed = self._changed  # a change of one is a change of the other
        return twin

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.data, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a tensor without axes has no length")
        return len(self.data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"the truth of a tensor of shape {self.shape} is ambiguous; reduce it to one value"
            )
        return bool(self.data.item())

    def __repr__(self) -> str:
        shown = np.array2string(self.data, separator=", ", prefix="Tensor(", precision=4)
        dtype = "" if self.dtype == np.float32 else f", dtype={self.dtype}"
        return f"Tensor({shown}{dtype}{', requires_grad=True' if self.requires_grad else ''})"

    # Gradients -------------------------------------------------------------------------------

    def zero_grad(self) -> None:
        """Forget the gradient."""
        self.grad = None

    def backward(self, gradient: Any = None) -> None:
        """Leave the gradient of this tensor in `.grad` of every leaf that requires one.

        Gradients add up over the paths that lead to a leaf, and over repeated calls, until
        `zero_grad()`. The graph is freed on the way.

        Args:
            gradient: the gradient of the final result with respect to this tensor, an array of
                the same shape; needed unless the tensor holds a single element.

        Raises:
            ValueError: a gradient is missing or has the wrong shape.
            RuntimeError: there is nothing to differentiate, or the graph was already used.
        """
        backward(self, gradient)

    # Operators: each is one primitive of ops.py ------------------------------------------------

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return ops.sub(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return ops.mul(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return ops.div(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return ops.div(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(other, self)

    def __pow__(self, exponent: float) -> Tensor:
        return ops.power(self, exponent=exponent)

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index=index)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _compare(np.equal, self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _compare(np.not_equal, self, other)

    def __lt__(self, other: Any) -> Tensor:
        return _compare(np.less, self, other)

    def __le__(self, other: Any) -> Tensor:
        return _compare(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _compare(np.greater, self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _compare(np.greater_equal, self, other)

    __hash__ = object.__hash__

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The sum over `axis`, or over everything."""
        return ops.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The mean over `axis`, or over everything."""
        return ops.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The variance (divided by n, not n - 1) over `axis`, or over everything."""
        return ops.var(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The largest element along `axis`, or of all."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The smallest element along `axis`, or of all."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None) -> Tensor:
        """Where the largest element is (integers: no gradient)."""
        return wrap(np.asarray(self.data.argmax(axis)))

    def exp(self) -> Tensor:
        """Elementwise e to the power of x."""
        return ops.exp(self)

    def log(self) -> Tensor:
        """Elementwise natural logarithm."""
        return ops.log(self)

    def sqrt(self) -> Tensor:
        """Elementwise square root."""
        return ops.sqrt(self)

    def tanh(self) -> Tensor:
        """Elementwise hyperbolic tangent."""
        return ops.tanh(self)

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape; one length may be -1."""
        return ops.reshape(self, shape=_flatten(shape))

    def transpose(self, axis0: int = -2, axis1: int = -1) -> Tensor:
        """The tensor with two axes swapped, the last two unless told otherwise."""
        return ops.transpose(self, axis0=axis0, axis1=axis1)

    def permute(self, *axes: Any) -> Tensor:
        """The tensor with its axes in the given order."""
        return ops.permute(self, axes=_flatten(axes))


# Helpers -------------------------------------------------------------------------------------


def _as_array(data: Any, dtype: Any) -> np.ndarray:
    """A fresh numeric array holding `data`."""
    try:
        array = np.array(data.data if isinstance(data, Tensor) else data, dtype=dtype)
    except ValueError as error:
        remedy = "; all rows must have the same length" if "inhomogeneous" in str(error) else ""
        raise ValueError(f"Tensor: {error}{remedy}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"Tensor: cannot hold {array.dtype} data; numbers, lists of numbers and numeric arrays "
            "are allowed"
        )
    if dtype is None and array.dtype.kind == "f":
        array = array.astype(np.float32, copy=False)
    return array


def _compare(relation: Callable[..., Any], x: Tensor, y: Any) -> Tensor:
    return wrap(np.asarray(relation(x.data, as_operand(y))))


def _flatten(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Accept both f(2, 3) and f((2, 3))."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
