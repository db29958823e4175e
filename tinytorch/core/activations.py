"""Activation functions, each beside its derivative, and as layers without parameters.

Softmax is in a file of its own.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tinytorch.core import kernels, ops
from tinytorch.core.chunks import chunks
from tinytorch.core.grad_mode import is_recording
from tinytorch.core.module import Module
from tinytorch.core.ops import Result
from tinytorch.core.primitive import floats, primitive
from tinytorch.core.softmax import Softmax as Softmax
from tinytorch.core.softmax import log_softmax_array as log_softmax_array
from tinytorch.core.softmax import softmax_array as softmax_array
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike

# Operations ----------------------------------------------------------------------------------


@primitive
def relu(x: TensorLike) -> Result:
    """`max(x, 0)`, elementwise; its gradient at 0 is taken as 0.

    Example:
        >>> relu([-1.0, 2.0])
        Tensor([0., 2.])
    """
    return np.maximum(x, 0), lambda g: g * np.greater(x, 0)


@primitive
def sigmoid(x: TensorLike) -> Result:
    """`1 / (1 + exp(-x))`, elementwise, computed so that it cannot overflow.

    Example:
        >>> sigmoid([0.0, -1000.0])
        Tensor([0.5, 0. ])
    """
    x = floats(x)
    e = np.exp(-np.abs(x))  # at most 1
    y = np.where(np.greater_equal(x, 0), 1, e) / (1 + e)
    return y, lambda g: g * e / ((1 + e) * (1 + e))


@primitive
def log_sigmoid(x: TensorLike, *, scale: float = 1.0) -> Result:
    """The logarithm of the `sigmoid` of `scale * x`, exact and with a slope for any number.

    Example:
        >>> log_sigmoid([0.0, -1000.0])
        Tensor([-6.9315e-01, -1.0000e+03])
    """
    x = floats(x) * scale
    e = np.exp(-np.abs(x))  # at most 1
    slope = scale * np.where(np.greater(x, 0), e, 1) / (1 + e)
    return np.minimum(x, 0) - np.log1p(e), lambda g: g * slope


@primitive
def gelu(x: TensorLike) -> Result:
    """The Gaussian error linear unit, `x Phi(x)` (Hendrycks and Gimpel, 2016, section 2).

    `Phi(x)` is the probability that a standard normal number is below x. As in GPT-2 it is
    `(1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`; the result differs from the exact one by less
    than 0.0005.

    Example:
        >>> gelu([-1.0, 0.0, 1.0])
        Tensor([-0.1588,  0.    ,  0.8412])
    """
    x = floats(x)
    flat, shape = x.reshape(-1), x.shape
    value, slope = np.empty_like(flat), np.empty_like(flat if is_recording() else flat[:0])
    for at in chunks(x.size):  # bench: gelu
        part, phi = flat[at], _phi(flat[at])
        np.multiply(part, phi, out=value[at])
        if slope.size:  # the derivative of x Phi(x), while its parts are in memory
            np.add(phi, part * _phi_slope(part, phi), out=slope[at])

    return value.reshape(shape), lambda g: g * slope.reshape(shape)


# Layers --------------------------------------------------------------------------------------


class ReLU(Module):
    """`max(x, 0)`.

    Example:
        >>> ReLU()(Tensor([-1.0, 2.0]))
        Tensor([0., 2.])
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Apply elementwise."""
        return relu(x)


class GELU(Module):
    """The Gaussian error linear unit, in the form of GPT-2.

    Example:
        >>> GELU()(Tensor([1.0]))
        Tensor([0.8412])
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Apply elementwise."""
        return gelu(x)


class Tanh(Module):
    """The hyperbolic tangent.

    Example:
        >>> Tanh()(Tensor([0.0]))
        Tensor([0.])
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Apply elementwise."""
        return ops.tanh(x)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`.

    Example:
        >>> Sigmoid()(Tensor([0.0]))
        Tensor([0.5])
    """

    def forward(self, x: TensorLike) -> Tensor:
        """Apply elementwise."""
        return sigmoid(x)


# Formulas in NumPy ---------------------------------------------------------------------------


def gelu_array(x: np.ndarray) -> np.ndarray:
    """`gelu` of an array.

    Example:
        >>> gelu_array(np.array([1.0])).round(4)
        array([0.8412])
    """
    x = floats(x)
    y = _phi(x)
    y *= x
    return y


_C, _K = math.sqrt(2 / math.pi), 0.044715


def _phi(x: np.ndarray) -> np.ndarray:
    """The tanh form of `Phi(x)`; `x**3` would be a general power, far slower than products."""
    a, b, half = _constants(x.dtype)
    y = np.multiply(x, x, out=np.empty_like(x))
    y *= a
    y += b
    y *= x
    y = kernels.tanh(y, y)
    y *= half
    y += half
    return y


@lru_cache
def _constants(dtype: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    """Those of `_phi` as arrays: for small arrays the cast of a number takes longer."""
    return tuple(np.array(number, dtype) for number in (_C * _K, _C, 0.5))


def _phi_slope(x: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """The derivative of that `Phi(x)`: of a tanh t it is 1 - t^2, which is 4 phi (1 - phi)."""
    return (x * x * (6 * _C * _K) + 2 * _C) * phi * (1 - phi)
