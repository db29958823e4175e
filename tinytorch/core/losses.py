"""Losses as layers: what a model is asked to make small."""

from __future__ import annotations

from typing import Any

from tinytorch.core import functional
from tinytorch.core.layers import Module
from tinytorch.core.tensor import Tensor

__all__ = ["CrossEntropyLoss", "MSELoss"]


class CrossEntropyLoss(Module):
    """Mean of `-log softmax(logits)[target]`, in nats.

    Example:
        >>> CrossEntropyLoss()(Tensor([[0.0, 0.0]]), Tensor([1]))
        Tensor(0.6931)
    """

    def forward(self, logits: Any, targets: Any) -> Tensor:
        """Compare logits `(..., classes)` with integer targets `(...)`."""
        return functional.cross_entropy(logits, targets)


class MSELoss(Module):
    """Mean squared error.

    Example:
        >>> MSELoss()(Tensor([1.0, 2.0]), Tensor([1.0, 4.0]))
        Tensor(2.)
    """

    def forward(self, prediction: Any, target: Any) -> Tensor:
        """Compare two tensors of one shape."""
        return functional.mse(prediction, target)
