"""Losses, which training makes small: each beside its derivative, and as layers.

Integers and half precision are computed in float32 at least. A loss is float32, or float64 if a
tensor among its operands is.
"""

from __future__ import annotations

import operator

import numpy as np

from tinytorch.core import kernels
from tinytorch.core.arguments import check_choice, check_ids
from tinytorch.core.module import Module
from tinytorch.core.ops import Result
from tinytorch.core.primitive import floats, primitive
from tinytorch.core.softmax import log_softmax_array
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike, TokenIds

_REDUCTIONS = ("mean", "sum", "none")


@primitive
def cross_entropy(
    logits: TensorLike,
    targets: TokenIds | int,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    weight: TensorLike | None = None,
) -> Result:
    """The negative log-likelihood `-log softmax(logits)[target]`, in nats, of all positions.

    Args:
        logits: `(..., num_classes)`, unnormalised.
        targets: integers of the shape of `logits` without its last axis; an array is copied.
        ignore_index: a target that means "none", -100 for instance: such a position has loss and
            gradient 0 and is not counted. None ignores nothing.
        reduction: `'mean'` over the positions that count, their `'sum'`, or `'none'` for one
            number a position.
        weight: `(num_classes,)`, the weight of each class: the mean is then the sum of
            `weight[target] * loss` over the sum of `weight[target]`. None weighs all equally.

    Returns:
        A single number, or with `'none'` the shape of `targets`. The gradient of the mean is
        `(softmax(logits) - one_hot(targets)) / positions`.

    Raises:
        TypeError: the targets are not integers.
        ValueError: the shapes do not fit, no position counts, a weight is negative or not finite,
            or `reduction` is something else.
        IndexError: a target is outside `0..num_classes - 1`.

    Example:
        >>> cross_entropy([[0.0, 0.0]], [1])
        Tensor(0.6931)
        >>> cross_entropy([[0.0, 0.0], [5.0, 0.0]], [1, -100], ignore_index=-100)
        Tensor(0.6931)
    """
    logits, targets = floats(logits), np.asarray(targets)
    shape = logits.shape
    if not shape or targets.shape != shape[:-1]:
        wanted = f"logits {shape} need targets of shape {shape[:-1]}"
        raise ValueError(f"cross_entropy: {wanted}, got {targets.shape}")
    check_choice(reduction, "cross_entropy: reduction", _REDUCTIONS)
    rows = logits.reshape(-1, logits.shape[-1])  # (N, classes)
    labels, counts = _labels_and_counts(rows, targets, ignore_index, weight)  # (N,) each
    if reduction == "mean":
        if not counts.any():
            raise ValueError(
                f"cross_entropy: logits {logits.shape} leave no position to average over"
            )
        counts = counts / counts.sum()
    if not counts.all():  # what does not count may hold anything, nan for instance
        rows = np.where(counts[:, None] > 0, rows, rows.dtype.type(0))
    log_probs = log_softmax_array(rows, -1)
    at = np.arange(len(rows)), labels
    losses = counts * -log_probs[at]

    def pullback(g: np.ndarray) -> tuple[np.ndarray, None]:
        grad = kernels.exp(log_probs)
        grad[at] -= 1
        grad *= (counts * g.reshape(-1))[:, None]
        return grad.reshape(shape), None

    return losses.reshape(targets.shape) if reduction == "none" else losses.sum(), pullback


@primitive
def mse(prediction: TensorLike, target: TensorLike) -> Result:
    """Mean squared error over all elements.

    Raises:
        ValueError: the shapes differ; broadcasting would almost always be a mistake here.

    Example:
        >>> mse([1.0, 2.0], [1.0, 4.0])
        Tensor(2.)
    """
    prediction, target = floats(prediction), floats(target)
    if prediction.shape != target.shape:
        shapes = f"prediction {prediction.shape} and target {target.shape}"
        raise ValueError(f"mse: {shapes} must have the same shape")
    if target.size == 0:
        raise ValueError(f"mse: shape {target.shape} has no elements to average over")
    error = prediction - target
    scaled = 2 / error.size * error
    return (error * error).mean(), lambda g: (g * scaled, -g * scaled)


class CrossEntropyLoss(Module):
    """The negative log-likelihood `-log softmax(logits)[target]`, in nats; see `cross_entropy`.

    Args:
        weight: `(num_classes,)`, the weight of each class, or None.
        ignore_index: a target that means "none", or None.
        reduction: `'mean'`, `'sum'` or `'none'`.

    Raises:
        ValueError: `reduction` is something else.

    Example:
        >>> CrossEntropyLoss()(Tensor([[0.0, 0.0]]), Tensor([1]))
        Tensor(0.6931)
    """

    def __init__(
        self,
        weight: TensorLike | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> None:
        check_choice(reduction, "CrossEntropyLoss: reduction", _REDUCTIONS)
        self.weight, self.ignore_index, self.reduction = weight, ignore_index, reduction

    def forward(self, logits: TensorLike, targets: TokenIds | int) -> Tensor:
        """Compare logits `(..., classes)` with integer targets `(...)`."""
        rule, reduction = self.ignore_index, self.reduction
        return cross_entropy(
            logits, targets, ignore_index=rule, reduction=reduction, weight=self.weight
        )


class MSELoss(Module):
    """Mean squared error.

    Example:
        >>> MSELoss()(Tensor([1.0, 2.0]), Tensor([1.0, 4.0]))
        Tensor(2.)
    """

    def forward(self, prediction: TensorLike, target: TensorLike) -> Tensor:
        """Compare two tensors of the same shape."""
        return mse(prediction, target)


def _labels_and_counts(
    rows: np.ndarray, targets: np.ndarray, ignore_index: int | None, weight: TensorLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """The class of each position, 0 where it is ignored, and the weight of each position."""
    num_classes = rows.shape[-1]
    ignored = np.zeros(targets.shape, bool)
    if ignore_index is not None:
        ignored = targets == operator.index(ignore_index)
    labels = targets * ~ignored if ignored.any() else targets
    remedy = f"there are {num_classes} classes; ignore_index= names a target that stands for none"
    labels = check_ids(labels, num_classes, "target", remedy)
    weights = np.ones(num_classes) if weight is None else np.asarray(weight)
    if weights.shape != (num_classes,):
        wanted = f"one number for each of the {num_classes} classes"
        raise ValueError(f"cross_entropy: weight {weights.shape} must have {wanted}")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"cross_entropy: weights must be finite and >= 0, got {weights}")
    counts = weights[labels] * ~ignored
    return labels.reshape(-1), counts.reshape(-1).astype(np.result_type(rows, np.float32))
