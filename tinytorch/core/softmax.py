"""Softmax: from scores to probabilities, with its logarithm, as functions and as a layer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tinytorch.core import kernels
from tinytorch.core.module import Module
from tinytorch.core.ops import Result
from tinytorch.core.primitive import floats, primitive
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike


@primitive
def softmax(x: TensorLike, *, axis: int = -1) -> Result:
    """`exp(x) / sum(exp(x))` along `axis`: positive numbers that sum to one.

    The largest element is subtracted first, which changes nothing but the size of the exponents.
    A row in which every element is -inf (nothing is allowed) gives zeros.

    Raises:
        ValueError: `axis` has length 0, or an element is +inf.

    Example:
        >>> softmax([0.5, 1.0, 1.5])
        Tensor([0.1863, 0.3072, 0.5065])
    """
    if np.isposinf(np.asarray(x)).any():
        raise ValueError(f"softmax: {_INFINITE}")
    y = softmax_array(x, axis)
    return y, lambda g: y * (g - (g * y).sum(axis=axis, keepdims=True))


@primitive
def log_softmax(x: TensorLike, *, axis: int = -1) -> Result:
    """The logarithm of `softmax`, computed without the small probabilities themselves.

    Raises:
        ValueError: `axis` has length 0, a row is -inf everywhere, or an element is +inf.

    Example:
        >>> log_softmax([0.0, 0.0])
        Tensor([-0.6931, -0.6931])
    """
    y = log_softmax_array(x, axis)
    return y, lambda g: g - kernels.exp(y) * g.sum(axis=axis, keepdims=True)


class Softmax(Module):
    """Positive numbers that sum to one along `axis`.

    Example:
        >>> Softmax()(Tensor([0.0, 0.0]))
        Tensor([0.5, 0.5])
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: TensorLike) -> Tensor:
        """Normalise along the axis."""
        return softmax(x, axis=self.axis)


# Formulas in NumPy ---------------------------------------------------------------------------


def softmax_array(x: TensorLike, axis: int, out: np.ndarray | None = None) -> np.ndarray:
    """`softmax` of an array, written into `out` if given, for instance `x` itself.

    Example:
        >>> softmax_array(np.zeros(4), axis=-1)
        array([0.25, 0.25, 0.25, 0.25])
    """
    x = floats(x)
    _check_axis(x, axis, "softmax")
    largest = np.maximum.reduce(x, axis, keepdims=True, initial=_lowest(x.dtype))
    e = np.subtract(x, largest, out=np.empty_like(x) if out is None else out)
    e = kernels.exp(e, e)
    e /= np.maximum(np.add.reduce(e, axis, keepdims=True), 1)  # exp(0) or more unless all are -inf
    return e


@lru_cache
def _lowest(dtype: np.dtype[Any]) -> np.floating:
    """The smallest float, subtracted where all elements are -inf: exp then gives zeros."""
    return np.finfo(dtype).min


def log_softmax_array(x: TensorLike, axis: int) -> np.ndarray:
    """`log_softmax` of an array.

    Example:
        >>> log_softmax_array(np.zeros(4), axis=-1).round(4)
        array([-1.3863, -1.3863, -1.3863, -1.3863])
    """
    x = floats(x)
    _check_axis(x, axis, "log_softmax")
    largest = x.max(axis=axis, keepdims=True)
    if np.isinf(largest).any():
        empty = "a row is -inf everywhere; it has no probabilities"
        raise ValueError(f"log_softmax: {_INFINITE if np.isposinf(largest).any() else empty}")
    shifted = x - largest
    return shifted - np.log(kernels.exp(shifted).sum(axis=axis, keepdims=True))


_INFINITE = "a score is +inf, so its row would be nan; the only infinity allowed is -inf"


def _check_axis(x: np.ndarray, axis: int, name: str) -> None:
    if 0 in x.shape and x.ndim and x.shape[axis] == 0:
        raise ValueError(f"{name}: shape {x.shape} has nothing to choose from along axis {axis}")
