"""A linear probe: what a weighted sum can read off activations, and how well.

A probe that succeeds shows that its inputs can be told apart, not what the model knows about them,
nor that it uses any of it. Compare it with the same probe on targets drawn at random for each type
of input, the control task of Hewitt and Liang (2019; `what_it_learned.readable_controls`), and with
one on an untrained model (Belinkov, 2022).
"""

from __future__ import annotations

import numpy as np

from tinytorch.core.types import TensorLike

__all__ = ["LinearProbe", "calibration_table", "r_squared"]


class LinearProbe:
    """Ridge regression in closed form: `y = x W + b`, the least squares with small weights.

    Of all `W` and `b` those that minimise `sum |x W + b - y|^2 + ridge * n |S W|^2`, where the
    columns of `x` have the deviations `S`: the penalty does not depend on their units, and `b` is
    not penalised. So the mean of the predictions is the mean of the targets.

    Args:
        x: activations `(n, d)`.
        y: what to read off them, `(n, k)`, a distribution in each row for instance.
        ridge: the penalty; 0 for plain least squares.

    Attributes:
        weight: `W`, `(d, k)`.
        bias: `b`, `(k,)`.

    Raises:
        ValueError: the shapes do not fit, or `ridge` is negative.

    Example:
        >>> x = np.array([[0.0], [1.0], [2.0]])
        >>> probe = LinearProbe(x, 3 * x + 1, ridge=0)
        >>> probe([[10.0]]).round(6)
        array([[31.]])
    """

    def __init__(self, x: TensorLike, y: TensorLike, ridge: float = 1e-4) -> None:
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if x.ndim != 2 or y.ndim != 2 or len(x) != len(y) or not x.size:
            got = f"got shapes {x.shape} and {y.shape}"
            raise ValueError(f"LinearProbe: x must be (n, d) and y (n, k), not empty; {got}")
        if not ridge >= 0:
            raise ValueError(f"LinearProbe: ridge must be 0 or more, got {ridge}")
        centre, mean = x.mean(axis=0), y.mean(axis=0)
        deviation = x.std(axis=0)
        deviation[deviation == 0] = 1  # a constant column is uninformative
        scaled = (x - centre) / deviation  # (n, d)
        # least squares of it below sqrt(ridge n) I: the same minimum, without squaring x
        below = np.sqrt(ridge * len(x)) * np.eye(x.shape[1])
        padded = np.concatenate([y - mean, np.zeros((x.shape[1], y.shape[1]))])
        solved = np.linalg.lstsq(np.concatenate([scaled, below]), padded, rcond=None)[0]
        self.weight = solved / deviation[:, None]  # (d, k)
        self.bias = mean - centre @ self.weight  # (k,)

    @property
    def directions(self) -> np.ndarray:
        """An orthonormal basis of what it reads, `(d, rank)`: the span of the columns of `W`.

        The part of `x` that it reads is `x @ Q @ Q.T`; it ignores everything orthogonal to that.

        Example:
            >>> x = np.eye(3)
            >>> LinearProbe(x, x[:, :1], ridge=0).directions.shape
            (3, 1)
        """
        basis, sizes, _ = np.linalg.svd(self.weight, full_matrices=False)
        return basis[:, sizes > 1e-6 * sizes[0]]

    def __call__(self, x: TensorLike) -> np.ndarray:
        """What it reads off activations `(..., d)`: `(..., k)`, which may lie outside 0 to 1."""
        return np.asarray(x, dtype=float) @ self.weight + self.bias


def r_squared(truth: TensorLike, predicted: TensorLike) -> float:
    """The share of the variance that is explained: 1 is perfect, 0 no better than the mean.

    All columns count together: `1 - sum (truth - predicted)^2 / sum (truth - mean)^2`. On data
    that a probe has not seen it can be negative.

    Args:
        truth: `(n, k)`.
        predicted: `(n, k)`.

    Raises:
        ValueError: the shapes differ, or the truth never changes.

    Example:
        >>> r_squared([[0.0], [1.0]], [[0.0], [0.5]])
        0.5
    """
    truth, predicted = np.asarray(truth, dtype=float), np.asarray(predicted, dtype=float)
    if truth.shape != predicted.shape or truth.ndim != 2:
        got = f"got shapes {truth.shape} and {predicted.shape}"
        raise ValueError(f"r_squared: truth and predicted must both be (n, k); {got}")
    total = ((truth - truth.mean(axis=0)) ** 2).sum()
    if not total:
        raise ValueError("r_squared: truth is constant, so there is no variance to explain")
    return float(1 - ((truth - predicted) ** 2).sum() / total)


def calibration_table(truth: TensorLike, predicted: TensorLike, bins: int = 10) -> np.ndarray:
    """How often do things with a predicted probability come true?

    Args:
        truth: probabilities or outcomes (0 or 1), any shape.
        predicted: the predicted probabilities, of the same shape; clipped to 0 and 1.
        bins: how many intervals of equal width.

    Returns:
        `(bins, 3)`: for each interval the mean prediction, the mean of the truth, and how many
        there are; the means are NaN where there are none.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> calibration_table([0, 1, 1, 1], [0.2, 0.2, 0.9, 0.7], bins=2)
        array([[0.2, 0.5, 2. ],
               [0.8, 1. , 2. ]])
    """
    truth, predicted = np.asarray(truth, dtype=float), np.asarray(predicted, dtype=float)
    if truth.shape != predicted.shape:
        got = f"got shapes {truth.shape} and {predicted.shape}"
        raise ValueError(f"calibration_table: truth and predicted must have the same shape; {got}")
    said = predicted.clip(0, 1).ravel()
    at = np.minimum((said * bins).astype(int), bins - 1)
    count = np.bincount(at, minlength=bins)
    sums = [np.bincount(at, weights=values, minlength=bins) for values in (said, truth.ravel())]
    with np.errstate(invalid="ignore"):
        return np.column_stack([*(s / count for s in sums), count])
