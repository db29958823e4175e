"""Activation functions as layers: the functional ones, with nothing to learn."""

from __future__ import annotations

from typing import Any

from tinytorch.core import functional, ops
from tinytorch.core.layers import Module
from tinytorch.core.tensor import Tensor

__all__ = ["GELU", "ReLU", "Sigmoid", "Softmax", "Tanh"]


class ReLU(Module):
    """`max(x, 0)`.

    Example:
        >>> ReLU()(Tensor([-1.0, 2.0]))
        Tensor([0., 2.])
    """

    def forward(self, x: Any) -> Tensor:
        """Apply elementwise."""
        return functional.relu(x)


class GELU(Module):
    """The Gaussian error linear unit, tanh form.

    Example:
        >>> GELU()(Tensor([1.0]))
        Tensor([0.8412])
    """

    def forward(self, x: Any) -> Tensor:
        """Apply elementwise."""
        return functional.gelu(x)


class Tanh(Module):
    """The hyperbolic tangent.

    Example:
        >>> Tanh()(Tensor([0.0]))
        Tensor([0.])
    """

    def forward(self, x: Any) -> Tensor:
        """Apply elementwise."""
        return ops.tanh(x)


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`.

    Example:
        >>> Sigmoid()(Tensor([0.0]))
        Tensor([0.5])
    """

    def forward(self, x: Any) -> Tensor:
        """Apply elementwise."""
        return functional.sigmoid(x)


class Softmax(Module):
    """Positive numbers that sum to one along `axis`.

    Example:
        >>> Softmax()(Tensor([0.0, 0.0]))
        Tensor([0.5, 0.5])
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Any) -> Tensor:
        """Normalise along the axis."""
        return functional.softmax(x, axis=self.axis)
