"""The primitive operations: each a NumPy function beside its pullback.

Read an operation as one line of calculus. `mul` says: the value is `x * y`, and a gradient `g` of
the value becomes a gradient `g * y` of x and `g * x` of y. Operands come first and may be tensors,
arrays or numbers; settings are keyword arguments.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tinytorch.core import kernels
from tinytorch.core.graph import Pullback
from tinytorch.core.primitive import floats, primitive
from tinytorch.core.types import Axis, Index, TensorLike

Result = tuple[Any, Pullback]

# Arithmetic ----------------------------------------------------------------------------------


@primitive
def add(x: TensorLike, y: TensorLike) -> Result:
    """Elementwise `x + y`.

    Example:
        >>> add([1.0, 2.0], 10.0)
        Tensor([11., 12.])
    """
    return x + y, lambda g: (g, g)


@primitive
def sub(x: TensorLike, y: TensorLike) -> Result:
    """Elementwise `x - y`.

    Example:
        >>> sub([1.0, 2.0], 10.0)
        Tensor([-9., -8.])
    """
    return x - y, lambda g: (g, -g)


@primitive
def mul(x: TensorLike, y: TensorLike) -> Result:
    """Elementwise `x * y`.

    Example:
        >>> mul([1.0, 2.0], [3.0, 4.0])
        Tensor([3., 8.])
    """
    return x * y, lambda g: (g * y, g * x)


@primitive
def div(x: TensorLike, y: TensorLike) -> Result:
    """Elementwise `x / y`.

    Example:
        >>> div([1.0, 3.0], 2.0)
        Tensor([0.5, 1.5])
    """
    z = np.true_divide(x, y)
    return z, lambda g: (g / y, -g * z / y)


@primitive
def neg(x: TensorLike) -> Result:
    """Elementwise `-x`.

    Example:
        >>> neg([1.0, -2.0])
        Tensor([-1.,  2.])
    """
    return -x, lambda g: -g


@primitive
def power(x: TensorLike, *, exponent: float) -> Result:
    """Elementwise `x` to a fixed power.

    Raises:
        TypeError: the exponent is not a number; write `(exponent * x.log()).exp()` for a tensor.

    Example:
        >>> power([2.0, 3.0], exponent=2)
        Tensor([4., 9.])
    """
    is_number = isinstance(exponent, numbers.Real)
    if not is_number:
        raise TypeError(f"power: the exponent must be a number, got {type(exponent).__name__}")
    if exponent == 0:
        return np.power(x, 0), lambda g: np.zeros_like(g)  # at x = 0 too
    x = np.asarray(x)  # whose ** is a product where the exponent is 2; np.power is far slower
    return x**exponent, lambda g: g * exponent * x ** (exponent - 1)


@primitive
def matmul(x: TensorLike, y: TensorLike) -> Result:
    """Matrix product over the last two axes; the axes before them broadcast.

    Args:
        x: `(..., m, k)` or `(k,)`.
        y: `(..., k, n)` or `(k,)`.

    Returns:
        `(..., m, n)`; a one-dimensional operand loses its axis, as in NumPy.

    Raises:
        ValueError: the inner sizes differ, or an operand is a single number.

    Example:
        >>> matmul([[1.0, 2.0], [3.0, 4.0]], [[1.0], [10.0]])
        Tensor([[21.],
                [43.]])
    """
    x, y = np.asarray(x), np.asarray(y)
    _check_inner_sizes(x, y)
    value = kernels.matmul(x, y)

    def pullback(g: np.ndarray) -> tuple[Any, ...]:
        a, b = np.atleast_2d(x), y[:, None] if y.ndim == 1 else y  # vectors as matrices
        g = g[..., None] if y.ndim == 1 else g
        g = g[..., None, :] if x.ndim == 1 else g

        def grad_x() -> np.ndarray:
            grad = kernels.matmul(g, b.swapaxes(-1, -2))
            return grad[..., 0, :] if x.ndim == 1 else grad

        def grad_y() -> np.ndarray:
            grad = kernels.matmul(a.swapaxes(-1, -2), g)
            return grad[..., 0] if y.ndim == 1 else grad

        return grad_x, grad_y  # functions: a frozen matrix costs no product

    return value, pullback


# Elementwise functions -----------------------------------------------------------------------


@primitive
def exp(x: TensorLike) -> Result:
    """Elementwise e to the power of x.

    Example:
        >>> exp([0.0, 1.0])
        Tensor([1.    , 2.7183])
    """
    y = np.exp(floats(x))
    return y, lambda g: g * y


@primitive
def log(x: TensorLike) -> Result:
    """Elementwise natural logarithm.

    Example:
        >>> log([1.0, 10.0])
        Tensor([0.    , 2.3026])
    """
    x = floats(x)
    return np.log(x), lambda g: g / x


@primitive
def sqrt(x: TensorLike) -> Result:
    """Elementwise square root.

    Example:
        >>> sqrt([4.0, 9.0])
        Tensor([2., 3.])
    """
    y = np.sqrt(floats(x))
    return y, lambda g: g / (2 * y)


@primitive
def tanh(x: TensorLike) -> Result:
    """Elementwise hyperbolic tangent.

    Example:
        >>> tanh([0.0, 1.0])
        Tensor([0.    , 0.7616])
    """
    y = np.tanh(floats(x))
    return y, lambda g: g * (1 - y * y)


@primitive
def sin(x: TensorLike) -> Result:
    """Elementwise sine of an angle in radians.

    Example:
        >>> sin([0.0, 1.0])
        Tensor([0.    , 0.8415])
    """
    x = floats(x)
    return np.sin(x), lambda g: g * np.cos(x)


@primitive
def cos(x: TensorLike) -> Result:
    """Elementwise cosine of an angle in radians.

    Example:
        >>> cos([0.0, 1.0])
        Tensor([1.    , 0.5403])
    """
    x = floats(x)
    return np.cos(x), lambda g: -g * np.sin(x)


@primitive
def abs(x: TensorLike) -> Result:
    """Elementwise absolute value; its gradient at 0 is taken as 0.

    Example:
        >>> abs([-2.0, 3.0])
        Tensor([2., 3.])
    """
    return np.abs(x), lambda g: g * np.sign(x)


@primitive
def maximum(x: TensorLike, y: TensorLike) -> Result:
    """Elementwise larger of two; where they are equal, each gets half of the gradient.

    Example:
        >>> maximum([1.0, 5.0], 3.0)
        Tensor([3., 5.])
    """
    share = 0.5 * (np.greater(x, y) + np.greater_equal(x, y).astype(np.float32))
    return np.maximum(x, y), lambda g: (g * share, g * (1 - share))


@primitive
def clip(
    x: TensorLike, *, min: np.ndarray | float | None = None, max: np.ndarray | float | None = None
) -> Result:
    """Elementwise `x`, but at least `min` and at most `max`; outside, the gradient is 0.

    Raises:
        ValueError: neither bound is given, or `min` is above `max`.

    Example:
        >>> clip([-2.0, 0.5, 3.0], min=0, max=1)
        Tensor([0. , 0.5, 1. ])
    """
    if min is None and max is None:
        raise ValueError("clip: needs min, max or both")
    if min is not None and max is not None and np.any(np.greater(min, max)):
        raise ValueError(f"clip: min {min} is above max {max}")
    value = np.clip(x, min, max)
    return value, lambda g: g * (value == x)


@primitive
def cast(x: TensorLike, like: TensorLike) -> Result:
    """`x` in the dtype of the tensor `like`; `x.astype(dtype)` is shorter.

    Example:
        >>> from tinytorch import Tensor
        >>> cast([1.5, -1.5], Tensor(0))
        Tensor([ 1, -1], dtype=int64)
    """
    return np.asarray(x).astype(np.asarray(like).dtype), lambda g: (g, None)


@primitive
def where(x: TensorLike, y: TensorLike, *, condition: TensorLike) -> Result:
    """`x` where `condition` is true and `y` elsewhere.

    Example:
        >>> where([1.0, 2.0], 0.0, condition=[True, False])
        Tensor([1., 0.])
    """
    chosen = np.array(condition, dtype=bool)  # a copy, which the pullback keeps
    return np.where(chosen, x, y), lambda g: (np.where(chosen, g, 0), np.where(chosen, 0, g))


# Reductions ----------------------------------------------------------------------------------


@primitive
def sum(x: TensorLike, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """Sum over `axis`, or over everything.

    Example:
        >>> sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
        Tensor([4., 6.])
    """
    x = np.asarray(x)
    value = x.sum(axis=axis, keepdims=keepdims)
    shape = x.shape
    return value, lambda g: np.broadcast_to(_restore_axes(g, shape, axis), shape)


@primitive
def mean(x: TensorLike, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """Mean over `axis`, or over everything.

    Raises:
        ValueError: there is nothing to take the mean of.

    Example:
        >>> mean([[1.0, 2.0], [3.0, 4.0]], axis=0)
        Tensor([2., 3.])
    """
    x = np.asarray(x)
    count = _count(x, axis, "mean")
    value = x.mean(axis=axis, keepdims=keepdims)
    shape = x.shape
    return value, lambda g: np.broadcast_to(_restore_axes(g, shape, axis) / count, shape)


@primitive
def var(x: TensorLike, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """Variance over `axis`, or over everything: the mean squared deviation (divided by n).

    Example:
        >>> var([1.0, 3.0])
        Tensor(1.)
    """
    x = floats(x)
    count = _count(x, axis, "var")
    centred = x - x.mean(axis=axis, keepdims=True)
    value = (centred * centred).mean(axis=axis, keepdims=keepdims)
    return value, lambda g: _restore_axes(g, centred.shape, axis) * centred * (2 / count)


@primitive
def std(x: TensorLike, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """Standard deviation over `axis`, or over everything: the square root of `var`.

    Where all elements are equal its gradient is taken as 0.

    Example:
        >>> std([1.0, 3.0])
        Tensor(1.)
    """
    x = floats(x)
    count = _count(x, axis, "std")
    centred = x - x.mean(axis=axis, keepdims=True)
    root = np.sqrt((centred * centred).mean(axis=axis, keepdims=True))
    direction = centred / np.where(root == 0, 1, root * count)
    value = root if keepdims else root.squeeze(axis)
    return value, lambda g: _restore_axes(g, direction.shape, axis) * direction


@primitive
def max(x: TensorLike, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """Largest element over `axis`; elements that tie share the gradient equally.

    Example:
        >>> max([[1.0, 4.0], [3.0, 2.0]], axis=1)
        Tensor([4., 3.])
    """
    return _extreme(np.max, np.asarray(x), axis, keepdims)


@primitive
def min(x: TensorLike, *, axis: Axis = None, keepdims: bool = False) -> Result:
    """Smallest element over `axis`; elements that tie share the gradient equally.

    Example:
        >>> min([[1.0, 4.0], [3.0, 2.0]], axis=1)
        Tensor([1., 2.])
    """
    return _extreme(np.min, np.asarray(x), axis, keepdims)


# Shape ---------------------------------------------------------------------------------------


@primitive
def reshape(x: TensorLike, *, shape: int | Sequence[int]) -> Result:
    """The same elements in another shape.

    Example:
        >>> reshape([1.0, 2.0, 3.0, 4.0], shape=(2, 2))
        Tensor([[1., 2.],
                [3., 4.]])
    """
    x = np.asarray(x)
    before = x.shape
    return x.reshape(shape), lambda g: g.reshape(before)


@primitive
def transpose(x: TensorLike, *, axis0: int = -2, axis1: int = -1) -> Result:
    """Two axes swapped.

    Raises:
        ValueError: `x` has fewer than two axes.

    Example:
        >>> transpose([[1.0, 2.0], [3.0, 4.0]])
        Tensor([[1., 3.],
                [2., 4.]])
    """
    x = np.asarray(x)
    if x.ndim < 2:
        raise ValueError(f"transpose: shape {x.shape} has fewer than two axes to swap")
    return x.swapaxes(axis0, axis1), lambda g: g.swapaxes(axis0, axis1)


@primitive
def permute(x: TensorLike, *, axes: Sequence[int]) -> Result:
    """The axes in another order.

    Example:
        >>> permute(np.zeros((2, 3, 4)), axes=(2, 0, 1)).shape
        (4, 2, 3)
    """
    x = np.asarray(x)
    back = np.argsort(np.arange(x.ndim)[list(axes)])
    return x.transpose(axes), lambda g: g.transpose(back)


@primitive
def getitem(x: TensorLike, *, index: Index) -> Result:
    """`x[index]`: slices, integers, masks or arrays of indices.

    An element taken several times collects a gradient for each time.

    Example:
        >>> getitem([10.0, 20.0, 30.0], index=[2, 0])
        Tensor([30., 10.])
    """
    x, at = np.asarray(x), _plain_index(index)
    value, shape = x[at], x.shape

    def pullback(g: np.ndarray) -> np.ndarray:
        grad = np.zeros(shape, dtype=g.dtype)
        if _is_basic(at):
            grad[at] = g  # a slice takes no element twice
        else:
            np.add.at(grad, at, g)
        return grad

    return value, pullback


@primitive
def concatenate(*tensors: TensorLike, axis: int = -1) -> Result:
    """Tensors joined along an existing axis.

    Example:
        >>> concatenate([1.0, 2.0], [3.0])
        Tensor([1., 2., 3.])
    """
    arrays = [np.asarray(tensor) for tensor in tensors]
    value = np.concatenate(arrays, axis)
    ends = np.cumsum([array.shape[axis] for array in arrays])[:-1]
    return value, lambda g: tuple(np.split(g, ends, axis))


@primitive
def stack(*tensors: TensorLike, axis: int = 0) -> Result:
    """Tensors of one shape joined along a new axis.

    Example:
        >>> stack([1.0, 2.0], [3.0, 4.0]).shape
        (2, 2)
    """
    arrays = [np.asarray(tensor) for tensor in tensors]
    return np.stack(arrays, axis), lambda g: tuple(np.moveaxis(g, axis, 0))


# Helpers -------------------------------------------------------------------------------------


def _check_inner_sizes(x: np.ndarray, y: np.ndarray) -> None:
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(f"matmul: {x.shape} @ {y.shape}: use * to multiply by a single number")
    inner = y.shape[-2] if y.ndim > 1 else y.shape[0]
    if x.shape[-1] != inner:
        sizes = f"inner sizes {x.shape[-1]} and {inner} differ"
        raise ValueError(f"matmul: {x.shape} @ {y.shape}: {sizes}")


def _count(x: np.ndarray, axis: Axis, name: str) -> int:
    """How many elements each mean over `axis` covers; at least one."""
    axes = range(x.ndim) if axis is None else normalize_axis_tuple(axis, x.ndim)
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    if count == 0:
        raise ValueError(f"{name}: shape {x.shape} has no elements to average over axis {axis}")
    return count


def _restore_axes(g: np.ndarray, shape: tuple[int, ...], axis: Axis) -> np.ndarray:
    """Restore the axes of length 1 in the gradient of a reduction of `shape`."""
    axes = range(len(shape)) if axis is None else normalize_axis_tuple(axis, len(shape))
    return g.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _extreme(reduce: Callable[..., Any], x: np.ndarray, axis: Axis, keepdims: bool) -> Result:
    value = reduce(x, axis=axis, keepdims=True)
    tied = ((x == value) | (x != x)).astype(np.result_type(x, np.float32))  # a NaN is the extreme
    share = tied / tied.sum(axis=axis, keepdims=True)
    value = value if keepdims else value.squeeze(axis)
    return value, lambda g: _restore_axes(g, share.shape, axis) * share


def _plain_index(index: object) -> Any:  # noqa: ANN401
    """Indices with copies of their arrays and tensors: a pullback keeps them."""
    if isinstance(index, tuple):
        return tuple(_plain_index(part) for part in index)
    if isinstance(index, list):
        return np.asarray(index) if index else np.empty(0, dtype=np.intp)
    is_array = isinstance(index, np.ndarray) or hasattr(index, "requires_grad")
    return np.array(index) if is_array else index


def _is_basic(index: object) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(isinstance(p, (int, np.integer, slice, type(None), type(Ellipsis))) for p in parts)
