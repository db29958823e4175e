"""Which of two models is better? Means with their standard errors, and what follows from them.

Everything is measured a text at a time, since the tokens of one text depend on each other. Two
models that read the *same* texts are compared by the mean of their differences, which is far more
certain than the difference of their means:

    >>> a, b = np.array([20.0, 27.0, 24.0]), np.array([20.1, 27.2, 24.1])
    >>> print(unpaired(b, a), "|", estimate(b - a))
    0.133 ± 2.887 | 0.133 ± 0.033

For language models this is told by Miller (2024, "Adding error bars to evals", arXiv 2411.00640).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tinytorch.core.types import TensorLike

__all__ = ["Estimate", "estimate", "texts_needed", "unpaired"]


class Estimate(NamedTuple):
    """A mean, and how far off it may be.

    Attributes:
        mean: the mean over the texts that were read.
        error: its standard error: the deviation of the mean from one set of texts to another.
    """

    mean: float
    error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval that holds the true mean in a share `level` of all sets of many texts.

        Example:
            >>> low, high = Estimate(0.5, 0.1).interval()
            >>> round(low, 3), round(high, 3)
            (0.304, 0.696)
        """
        reach = -_normal(level, "level", (1 - level) / 2) * self.error
        return self.mean - reach, self.mean + reach

    @property
    def p_value(self) -> float:
        """How often the mean of many texts is as far from 0 as this, if the true mean is 0.

        Example:
            >>> round(Estimate(0.196, 0.1).p_value, 3)
            0.05
        """
        if self.error == 0:
            return float(self.mean == 0)
        return math.erfc(abs(self.mean / self.error) / math.sqrt(2))

    def __str__(self) -> str:
        """The mean and its error."""
        return f"{self.mean:.3f} ± {self.error:.3f}"


def estimate(
    values: TensorLike, known: TensorLike | None = None, known_mean: float = 0.0
) -> Estimate:
    """The mean of one value a text, made more certain by something whose true mean is known.

    With `known`, a *control variate*, the luck of which texts they are is removed as far as it can
    be seen in it: `mean(values) - c (mean(known) - known_mean)`, with the `c` that leaves the least
    variance, `cov(values, known) / var(known)` (Owen, 2013, "Monte Carlo theory", section 8.9).

    Args:
        values: `(n,)`, for instance a model's surprise at each text, or the difference of two.
        known: `(n,)`, for instance the oracle's surprise at the same texts; changes nothing if it
            does not vary.
        known_mean: its true mean, for instance the entropy of a story.

    Raises:
        ValueError: the lengths differ, a value is not finite, or under 2 texts (3 with `known`).

    Example:
        >>> print(estimate([1.0, 2.0, 3.0, 4.0]))
        2.500 ± 0.645
        >>> print(estimate([1.0, 2.1, 2.9, 4.0], known=[0, 1, 2, 3], known_mean=1.0))
        2.010 ± 0.047
    """
    y = _texts(values, 2 if known is None else 3)
    apart = y - y[0]  # exactly 0 if all are equal
    if known is None:
        return Estimate(float(y[0] + apart.mean()), float(apart.std(ddof=1)) / math.sqrt(len(y)))
    x = _texts(known, 3)
    if len(x) != len(y):
        raise ValueError(f"one known value for each text: got {len(x)} for {len(y)} texts")
    spread = x - x.mean()
    if np.abs(spread).max() <= 1e-12 * np.abs(x).max():  # what never varies tells nothing
        return estimate(y)
    x, spread = (numbers / np.abs(spread).max() for numbers in (x - known_mean, spread))
    left = apart - float(spread @ apart) / float(spread @ spread) * x
    deviation = math.sqrt(left.var() * len(y) / (len(y) - 2))  # two numbers are fitted
    return Estimate(float(y[0] + left.mean()), deviation / math.sqrt(len(y)))


def unpaired(a: TensorLike, b: TensorLike) -> Estimate:
    """The mean of `a` minus that of `b`, which come from different texts.

    Args:
        a: `(n,)`, one value a text.
        b: `(m,)`, for other texts.

    Raises:
        ValueError: a side has fewer than two texts.

    Example:
        >>> print(unpaired([1.0, 2.0, 3.0], [1.0, 1.5, 2.0, 2.5]))
        0.250 ± 0.661
    """
    one, other = estimate(a), estimate(b)
    return Estimate(one.mean - other.mean, math.hypot(one.error, other.error))


def texts_needed(
    difference: float, deviation: float, level: float = 0.05, power: float = 0.8
) -> int:
    """How many texts a two-sided test needs to find a difference.

    `n = (z(1 - level / 2) + z(power))² deviation² / difference²`, where `z` gives the quantiles of
    the normal distribution.

    Args:
        difference: the true one.
        deviation: the standard deviation of the difference from text to text; of unpaired models
            that read `n` texts each, the root of the sum of their variances.
        level: how often the test may find a difference where there is none.
        power: how often it is to find this one.

    Raises:
        ValueError: the difference is 0, the deviation negative, or a number out of its range.

    Example:
        >>> texts_needed(0.1, 0.33)
        86
        >>> texts_needed(0.1, 3.06)
        7350
    """
    if not (0 < abs(difference) < math.inf and 0 <= deviation < math.inf):
        rule = "the difference must not be 0, nor the deviation negative, and both must be finite"
        raise ValueError(f"texts_needed: {rule}; got {difference} and {deviation}")
    z = _normal(power, "power", power) - _normal(level, "level", level / 2)
    return math.ceil((max(z, 0.0) * deviation / difference) ** 2)


def _texts(values: TensorLike, least: int) -> np.ndarray:
    """One number a text, enough of them."""
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or len(numbers) < least:
        need = f"one number a text, for at least {least} texts"
        raise ValueError(f"expected {need}; got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        text = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"the value of text {text} is {numbers[text]}; a mean needs finite ones")
    return numbers


def _normal(share: float, name: str, at: float) -> float:
    """The quantile of the normal distribution at `at`, which follows from `share`."""
    if not 0 < share < 1:
        raise ValueError(f"{name} must be between 0 and 1, got {share}")
    return NormalDist().inv_cdf(at)
