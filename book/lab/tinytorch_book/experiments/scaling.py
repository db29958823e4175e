"""A scaling law: how the loss falls with a model's size and with the tokens that it reads.

    L(N, D) = E + A / N^alpha + B / D^beta

(Hoffmann et al., 2022, equation 2): a floor E that no model gets below, the cost of having only N
parameters, and the cost of reading only D tokens. `fit_scaling_law` finds the five numbers from
trained models by their third approach (appendix D.3): the sum of the Huber losses of the errors in
log L, from many starts. `bootstrap` says how far to trust them.

    law = fit_scaling_law(parameters, tokens, losses)
    law(1e6, 1e8)  # the loss of a model that nobody has trained
"""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.arguments import check_sizes
from tinytorch.core.seeding import default_rng

__all__ = ["ScalingLaw", "bootstrap", "fit_scaling_law"]

DELTA = 1e-3  # Hoffmann et al., 2022, appendix D.3
TOLERANCE = 1e-9
_MOST_STEPS = 2000
_STEEPEST = 10.0  # the largest exponent tried: a term that vanishes cannot be fitted
_LEAST = 1e-9  # a search also ends when a step gains less than this fraction of the sum


class ScalingLaw(NamedTuple):
    """The five numbers of a law; called with sizes and tokens, it gives losses.

    Attributes:
        floor: `E`, in the unit of the losses.
        size: `A`.
        size_exponent: `alpha`.
        reading: `B`.
        reading_exponent: `beta`.

    Example:
        >>> law = ScalingLaw(1.69, 406.4, 0.34, 410.7, 0.28)  # Hoffmann et al., 2022, equation 10
        >>> round(float(law(70e9, 1.4e12)), 3)
        1.937
    """

    floor: float
    size: float
    size_exponent: float
    reading: float
    reading_exponent: float

    def __call__(self, parameters: Any, tokens: Any) -> Any:
        """The loss of models of these sizes after these numbers of tokens."""
        parameters, tokens = np.asarray(parameters, float), np.asarray(tokens, float)
        lacks_size = self.size / parameters**self.size_exponent
        return self.floor + lacks_size + self.reading / tokens**self.reading_exponent

    def best_split(self, compute: Any) -> tuple[Any, Any]:
        """The size and the number of tokens with the lowest loss for a given amount of compute.

        Training takes `6 * parameters * tokens` floating-point operations; the minimum of the law
        along that line is Hoffmann et al., 2022, equation 4.

        Args:
            compute: floating-point operations, one number or many.

        Returns:
            Parameters and tokens.

        Example:
            >>> law = ScalingLaw(1.69, 406.4, 0.34, 410.7, 0.28)
            >>> parameters, tokens = law.best_split(6e20)
            >>> bool(np.isclose(6 * parameters * tokens, 6e20))
            True
        """
        a, b = self.size_exponent, self.reading_exponent
        balance = (a * self.size / (b * self.reading)) ** (1 / (a + b))
        both = np.asarray(compute, float) / 6  # parameters times tokens
        return balance * both ** (b / (a + b)), both ** (a / (a + b)) / balance


def fit_scaling_law(
    parameters: Any,
    tokens: Any,
    losses: Any,
    *,
    floor: float | None = None,
    delta: float = DELTA,
    tolerance: float = TOLERANCE,
    average: bool = False,
    starts: Any = None,
) -> ScalingLaw:
    """Find the law that trained models follow (Hoffmann et al., 2022, appendix D.3).

    Args:
        parameters: the sizes of the models, `(n,)`.
        tokens: how many tokens each has read, `(n,)`.
        losses: what each came to, `(n,)`.
        floor: `E`, if it is known; by default it is found with the others.
        delta: larger errors in `log L` count by their size, smaller ones by their square.
        tolerance: a search ends when no entry of the gradient is larger, or when a step gains
            next to nothing.
        average: whether to divide the sum of the errors by n. The minimum stays where it is, but
            the gradient is n times smaller, so the tolerance is reached before the minimum:
            Besiroglu et al., 2024, found that this happened in the paper.
        starts: where the searches begin, rows of `log E, log A, alpha, log B, beta`; by default 144
            of them. The best result is kept.

    Raises:
        ValueError: the numbers are not positive and finite, or there are fewer than 5 models.

    Example:
        >>> truth = ScalingLaw(0.1, 20.0, 0.5, 300.0, 0.6)
        >>> sizes, tokens = np.meshgrid([1e3, 1e4, 1e5, 1e6], [1e5, 1e6, 1e7])
        >>> law = fit_scaling_law(sizes.ravel(), tokens.ravel(), truth(sizes, tokens).ravel())
        >>> [round(float(number), 3) for number in law]
        [0.1, 20.0, 0.5, 300.0, 0.6]
    """
    logs = _logs(parameters, tokens, losses)
    starts = _starts(logs) if starts is None else np.atleast_2d(np.asarray(starts, float))
    n = len(logs[0])
    tolerance *= n if average else 1
    found, value = _search(starts, logs, np.ones((1, n)), delta, tolerance, floor)
    return _law(found[np.nanargmin(value)])


def bootstrap(
    parameters: Any,
    tokens: Any,
    losses: Any,
    *,
    samples: int = 200,
    rng: Any = 0,
    floor: float | None = None,
    delta: float = DELTA,
) -> list[ScalingLaw]:
    """The laws of many samples of the models, each as many as there are, drawn with replacement.

    How much they differ says how much depends on which models happen to have been trained (Efron,
    1979). It says nothing about errors in the form of the law.

    Each search begins only at the law of all models. A lower minimum far from there is missed, so
    the laws differ a little less than they should.

    Args:
        parameters: the sizes of the models, `(n,)`.
        tokens: how many tokens each has read, `(n,)`.
        losses: what each came to, `(n,)`.
        samples: how many laws.
        rng: which samples.
        floor: `E`, if it is known.
        delta: as for `fit_scaling_law`.

    Example:
        >>> truth = ScalingLaw(0.1, 20.0, 0.5, 300.0, 0.6)
        >>> sizes, tokens = np.meshgrid([1e3, 1e4, 1e5, 1e6], [1e5, 1e6, 1e7])
        >>> losses = truth(sizes, tokens) * [1.01, 0.99, 1.01, 0.99]
        >>> laws = bootstrap(sizes.ravel(), tokens.ravel(), losses.ravel(), samples=20)
        >>> len(laws), bool(np.std([law.floor for law in laws]) > 0)
        (20, True)
    """
    check_sizes(samples=samples)
    logs = _logs(parameters, tokens, losses)
    n, rng = len(logs[0]), default_rng(rng)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=samples).astype(float)  # (samples, n)
    whole = fit_scaling_law(parameters, tokens, losses, floor=floor, delta=delta)
    start = np.array(whole)
    start[[0, 1, 3]] = np.log(start[[0, 1, 3]])
    found, _ = _search(np.tile(start, (samples, 1)), logs, counts, delta, TOLERANCE, floor)
    return [_law(row) for row in found]


# Helpers -------------------------------------------------------------------------------------


def _logs(parameters: Any, tokens: Any, losses: Any) -> tuple[np.ndarray, ...]:
    """The logarithms of what was measured, checked."""
    given = {"parameters": parameters, "tokens": tokens, "losses": losses}
    arrays = {name: np.asarray(values, float) for name, values in given.items()}
    shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    if len({array.shape for array in arrays.values()}) > 1 or arrays["losses"].ndim != 1:
        raise ValueError(f"a scaling law needs three arrays of equal length, got {shapes}")
    if arrays["losses"].size < 5:
        raise ValueError(f"five constants need at least 5 models, got {arrays['losses'].size}")
    for name, array in arrays.items():
        if not (np.isfinite(array) & (array > 0)).all():
            raise ValueError(f"{name} must be positive and finite, got {array.tolist()}")
    return tuple(np.log(array) for array in arrays.values())


def _law(row: np.ndarray) -> ScalingLaw:
    log_e, log_a, alpha, log_b, beta = row.tolist()
    return ScalingLaw(math.exp(log_e), math.exp(log_a), alpha, math.exp(log_b), beta)


def _starts(logs: Sequence[np.ndarray]) -> np.ndarray:
    """A grid: floors below the lowest loss, and slopes through the middle of the measurements."""
    log_n, log_d, log_l = logs
    floors = log_l.min() + np.log([0.2, 0.6, 0.9, 0.99])
    exponents = (0.1, 0.3, 0.6, 1.0, 1.5, 2.0)
    middle = np.median(log_l) - 1.0
    return np.array([
        (e, middle + alpha * log_n.mean(), alpha, middle + beta * log_d.mean(), beta)
        for e, alpha, beta in product(floors, exponents, exponents)
    ])  # fmt: skip


def _errors(theta: Any, logs: Sequence[np.ndarray]) -> tuple[Any, Any]:
    """The errors in log L, `(s, n)`, and their derivatives for the five numbers, `(s, n, 5)`."""
    log_n, log_d, log_l = logs
    e, a, alpha, b, beta = (column[:, None] for column in np.asarray(theta).T)
    terms = np.stack([e + 0 * log_n, a - alpha * log_n, b - beta * log_d], axis=-1)  # (s, n, 3)
    top = terms.real.max(axis=-1, keepdims=True)
    parts = np.exp(terms - top)
    total = parts.sum(axis=-1, keepdims=True)
    log_loss = (top + np.log(total))[..., 0]  # the logarithm of the sum
    of_floor, of_size, of_reading = np.moveaxis(parts / total, -1, 0)  # the share of each
    slopes = of_floor, of_size, -of_size * log_n, of_reading, -of_reading * log_d
    return log_loss - log_l, np.stack(slopes, axis=-1)


def _huber(errors: Any, delta: float) -> Any:
    """Huber, 1964: squares near 0, lengths beyond."""
    size = np.where(errors.real < 0, -errors, errors)
    return np.where(size.real <= delta, size * size / 2, delta * (size - delta / 2))


def _objective(theta: Any, logs: Sequence[np.ndarray], counts: Any, delta: float) -> Any:
    """The objective to minimise, `(s,)`."""
    return (counts * _huber(_errors(theta, logs)[0], delta)).sum(axis=-1)


def _gradient(theta: Any, logs: Sequence[np.ndarray], counts: Any, delta: float) -> Any:
    """Its gradient `(s, 5)`, and the matrix `(s, 5, 5)` of a least-squares step."""
    errors, slopes = _errors(theta, logs)
    weights = counts * np.minimum(1.0, delta / np.maximum(np.abs(errors), 1e-300))
    gradient = ((weights * errors)[..., None] * slopes).sum(axis=1)
    weighted = slopes * weights[..., None]
    return gradient, np.swapaxes(slopes, 1, 2) @ weighted


def _search(
    starts: np.ndarray,
    logs: Sequence[np.ndarray],
    counts: np.ndarray,
    delta: float,
    tolerance: float,
    floor: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Go down from every start at once (Levenberg, 1944; Marquardt, 1963, on weighted squares).

    Errors beyond `delta` get the weight `delta / size`, so that a least-squares step also reduces
    the sum of the Huber losses; if it does not, it is shortened.
    """
    free = np.array([floor is None, True, True, True, True])
    lowest = logs[2].min() - 20 if floor is None else -np.inf  # a floor of 0 has no logarithm
    theta = starts.copy()
    if floor is not None:
        theta[:, 0] = np.log(floor)
    counts = np.broadcast_to(counts, (len(theta), counts.shape[1]))
    value = _objective(theta, logs, counts, delta)
    damping, going = np.full(len(theta), 1e-2), np.arange(len(theta))
    gain = np.full(len(theta), np.inf)  # of the last step that went down
    for _ in range(_MOST_STEPS):
        gradient, matrix = _gradient(theta[going], logs, counts[going], delta)
        gradient = gradient * free
        still = np.abs(gradient).max(axis=1) > tolerance
        still &= (damping[going] < 1e12) & (gain[going] > _LEAST * value[going])  # it still pays
        going, gradient, matrix = going[still], gradient[still], matrix[still]
        if not going.size:
            break
        matrix *= np.outer(free, free)
        diagonal = np.einsum("sii->si", matrix)
        diagonal += damping[going, None] * diagonal + 1e-15
        tried = theta[going] - np.linalg.solve(matrix, gradient[..., None])[..., 0]
        tried[:, 0] = np.maximum(tried[:, 0], lowest)
        tried[:, [2, 4]] = np.clip(tried[:, [2, 4]], -_STEEPEST, _STEEPEST)
        with np.errstate(over="ignore", invalid="ignore"):
            new = _objective(tried, logs, counts[going], delta)
        better = new < value[going]
        gain[going[better]] = (value[going] - new)[better]
        theta[going[better]], value[going[better]] = tried[better], new[better]
        damping[going] *= np.where(better, 0.3, 4.0)
        damping[going] = np.maximum(damping[going], 1e-12)
    return theta, value
