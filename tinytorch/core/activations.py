"""Activation functions, each beside its derivative, and as layers without parameters.

Softmax is in a file of its own.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tinytorch.core import ops, products
from tinytorch.core.arguments import check_choice
from tinytorch.core.chunks import chunks
from tinytorch.core.module import Module
from tinytorch.core.ops import Result
from tinytorch.core.recording import is_recording
from tinytorch.core.softmax import Softmax as Softmax
from tinytorch.core.softmax import log_softmax_array as log_softmax_array
from tinytorch.core.softmax import softmax_array as softmax_array
from tinytorch.core.tensor import Tensor
from tinytorch.core.tracing import floats, primitive
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
def gelu(x: TensorLike, *, approximate: str = "tanh") -> Result:
    """The Gaussian error linear unit, `x Phi(x)` (Hendrycks and Gimpel, 2016, section 2).

    `Phi(x)` is the probability that a standard normal number is below x. GPT-2 uses the tanh form,
    `Phi(x) = (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`; its result differs from the exact one
    by less than 0.0005.

    Args:
        x: an array of any shape.
        approximate: `'tanh'` for that form, `'none'` for the exact one.

    Raises:
        ValueError: `approximate` is something else.

    Example:
        >>> gelu([-1.0, 0.0, 1.0])
        Tensor([-0.1588,  0.    ,  0.8412])
        >>> gelu([-1.0, 0.0, 1.0], approximate="none")
        Tensor([-0.1587,  0.    ,  0.8413])
    """
    check_choice(approximate, "gelu: approximate", ("tanh", "none"))
    phi_of, slope_of = _FORMS[approximate]
    x = floats(x)
    flat, shape = x.reshape(-1), x.shape
    value, slope = np.empty_like(flat), np.empty_like(flat if is_recording() else flat[:0])
    for at in chunks(x.size):  # bench: gelu
        part, phi = flat[at], phi_of(flat[at])
        np.multiply(part, phi, out=value[at])
        if slope.size:  # the derivative of x Phi(x), while its parts are in memory
            np.add(phi, part * slope_of(part, phi), out=slope[at])

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
    """The Gaussian error linear unit.

    Args:
        approximate: `'tanh'`, as in GPT-2, or `'none'` for the exact form.

    Raises:
        ValueError: `approximate` is something else.

    Example:
        >>> GELU()(Tensor([1.0]))
        Tensor([0.8412])
    """

    def __init__(self, approximate: str = "tanh") -> None:
        check_choice(approximate, "GELU: approximate", ("tanh", "none"))
        self.approximate = approximate

    def forward(self, x: TensorLike) -> Tensor:
        """Apply elementwise."""
        return gelu(x, approximate=self.approximate)


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
    """The tanh form of `gelu` of an array.

    Example:
        >>> gelu_array(np.array([1.0])).round(4)
        array([0.8412])
    """
    x = floats(x)
    y = _tanh_phi(x)
    y *= x
    return y


_C, _K = math.sqrt(2 / math.pi), 0.044715


def _tanh_phi(x: np.ndarray) -> np.ndarray:
    """The tanh form of `Phi(x)`; `x**3` would be a general power, far slower than products."""
    a, b, half = _constants(x.dtype)
    y = np.multiply(x, x, out=np.empty_like(x))
    y *= a
    y += b
    y *= x
    y = products.tanh(y, y)
    y *= half
    y += half
    return y


@lru_cache
def _constants(dtype: np.dtype[Any]) -> tuple[np.ndarray, ...]:
    """Those of `_tanh_phi` as arrays: for small arrays the cast of a number takes longer."""
    return tuple(np.array(number, dtype) for number in (_C * _K, _C, 0.5))


def _tanh_slope(x: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """The derivative of the tanh form: that of a tanh t is 1 - t^2, which is 4 phi (1 - phi)."""
    return (x * x * (6 * _C * _K) + 2 * _C) * phi * (1 - phi)


def _exact_phi(x: np.ndarray) -> np.ndarray:
    """The exact `Phi(x)`."""
    tail = 0.5 * _erfc(np.abs(x) / math.sqrt(2))  # the probability beyond |x|
    return np.where(x < 0, tail, 1 - tail)


def _density(x: np.ndarray, phi: np.ndarray) -> np.ndarray:
    """The derivative of `Phi(x)`: the normal density."""
    return np.exp(-0.5 * (x * x)) / math.sqrt(2 * math.pi)


_FORMS = {"tanh": (_tanh_phi, _tanh_slope), "none": (_exact_phi, _density)}


def _erfc(z: np.ndarray) -> np.ndarray:
    """The complementary error function of `z >= 0`, `2 / sqrt(pi)` times the integral from z on.

    In float32 it is a fit with a relative error below 1.2e-7 (Press et al., 1992, Numerical Recipes
    in C, section 6.2); in float64 Python's `erfc` for each number, exact and some 50 times slower.
    """
    if z.dtype != np.float32:
        return np.frompyfunc(math.erfc, 1, 1)(z).astype(z.dtype)
    t = 1 / (1 + 0.5 * z)
    fit = np.polynomial.polynomial.polyval(t, np.array(_ERFC_FIT, np.float32))
    return t * np.exp(fit - z * z)


_ERFC_FIT = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806,
    0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip
