"""Learning from probabilities in place of labels: soft labels, and a smaller model from a larger.

A *hard* label is the token that came; a *soft* one is a probability for every token, from a teacher
or from the truth. `soft_cross_entropy` takes probabilities, `distillation_loss` the logits of a
teacher, and `total_variation_loss` is how probably speculative decoding rejects a drafted token.

Positions that a mask leaves out may hold anything, nan for instance. A loss is float32, or float64
if a tensor among its operands is; integers and half precision count as float32.
"""

from __future__ import annotations

import numpy as np

from tinytorch.core import functional
from tinytorch.core.arguments import check_distributions, check_number
from tinytorch.core.ops import Result, where
from tinytorch.core.primitive import as_operand, primitive
from tinytorch.core.softmax import log_softmax_array
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike

__all__ = ["distillation_loss", "soft_cross_entropy", "total_variation_loss"]


def soft_cross_entropy(
    logits: TensorLike, probs: TensorLike, mask: TensorLike | None = None
) -> Tensor:
    """The mean surprise at a token that is drawn from `probs`: `-sum(probs * log softmax(logits))`.

    With one-hot `probs` it is `functional.cross_entropy`. It is smallest where the model's
    probabilities are `probs`, and then it is their entropy.

    Args:
        logits: `(..., vocab)`, with a gradient; -inf for a token that the model never writes.
        probs: soft labels `(..., vocab)`; no gradient flows into them.
        mask: Boolean `(...)`, the positions that count; None for all.

    Returns:
        The mean over the positions that count, in nats.

    Raises:
        ValueError: the shapes differ, a row that counts does not sum to 1, or none counts.

    Example:
        >>> soft_cross_entropy([[0.0, 0.0]], [[0.9, 0.1]])
        Tensor(0.6931)
    """
    logits, probs, mask = _checked("soft_cross_entropy", logits, probs, mask)
    check_distributions("soft_cross_entropy: soft labels", probs[mask])
    logs = _where_possible(functional.log_softmax(logits), probs)
    return _mean(-(logs * probs).sum(axis=-1), mask)


def distillation_loss(
    logits: TensorLike,
    teacher_logits: TensorLike,
    temperature: float = 1.0,
    mask: TensorLike | None = None,
) -> Tensor:
    """The divergence of a model from its teacher, both at a temperature (Hinton et al., 2015).

    The scores of both are divided by the temperature. The divergence is multiplied by its square,
    so that the gradient keeps its size (section 2 of the paper).

    Args:
        logits: the logits of the student, `(..., vocab)`, with a gradient.
        teacher_logits: `(..., vocab)`, -inf forbids a token; no gradient flows into them.
        temperature: above 0; above 1 both forecasts are flatter, and unlikely tokens count more.
        mask: Boolean `(...)`, the positions that count; None for all.

    Returns:
        `temperature**2` times the mean of `KL(teacher, student)`, in nats.

    Raises:
        ValueError: the shapes differ, the temperature is not in 1e-6 .. 1e6, or no position counts.

    Example:
        >>> distillation_loss([[0.0, 0.0]], [[np.log(3.0), 0.0]])  # log 2 minus an entropy
        Tensor(0.1308)
    """
    check_number(temperature, "distillation_loss: temperature")
    if not 1e-6 <= temperature <= 1e6:
        what = f"temperature must be in 1e-6 .. 1e6, got {temperature}; outside, rounding decides"
        raise ValueError(f"distillation_loss: {what}")
    logits, teacher, mask = _checked("distillation_loss", logits, teacher_logits, mask)
    return _mean(divergence(logits, teacher, temperature=temperature), mask)


def total_variation_loss(
    logits: TensorLike, probs: TensorLike, mask: TensorLike | None = None
) -> Tensor:
    """The mean total variation distance: `1 - sum(min(softmax(logits), probs))` at a position.

    It is the probability that a drafted token is rejected if all before it were kept.

    Args:
        logits: the logits of the draft, `(..., vocab)`, with a gradient.
        probs: the probabilities of the target, `(..., vocab)`; no gradient flows into them.
        mask: Boolean `(...)`, the positions that count; None for all.

    Raises:
        ValueError: as for `soft_cross_entropy`.

    Example:
        >>> total_variation_loss([[0.0, 0.0]], [[0.75, 0.25]])
        Tensor(0.25)
    """
    logits, probs, mask = _checked("total_variation_loss", logits, probs, mask)
    check_distributions("total_variation_loss: soft labels", probs[mask])
    return _mean(functional.relu(probs - functional.softmax(logits)).sum(axis=-1), mask)


# Helpers -------------------------------------------------------------------------------------


@primitive
def divergence(logits: TensorLike, teacher: TensorLike, *, temperature: float = 1.0) -> Result:
    """`temperature**2 * KL(teacher, student)` at each position, computed in float64."""
    wide = np.float64(temperature)
    known, ours = (log_softmax_array(x / wide, -1) for x in map(np.asarray, (teacher, logits)))
    p, q = np.exp(known), np.exp(ours)
    with np.errstate(invalid="ignore"):  # -inf may meet -inf
        apart = np.where(p > 0, known - ours, 0)
    value = temperature**2 * (p * apart).sum(axis=-1)
    return value, lambda g: (temperature * g[..., None] * (q - p), None)


def _checked(
    name: str, logits: TensorLike, other: TensorLike, mask: TensorLike | None
) -> tuple[Tensor, np.ndarray, np.ndarray]:
    kinds = [x.dtype for x in (logits, other) if isinstance(x, Tensor) and x.dtype.kind == "f"]
    dtype = np.result_type(np.float32, *kinds)
    if not isinstance(logits, Tensor):
        logits = Tensor(logits, dtype=dtype)
    logits = logits if logits.dtype == dtype else logits.astype(dtype)
    other = np.asarray(as_operand(other), dtype=dtype)
    if logits.ndim == 0 or logits.shape != other.shape:
        remedy = "do student and teacher have the same vocabulary?"
        raise ValueError(f"{name}: {logits.shape} and {other.shape} must be equal; {remedy}")
    mask = np.ones(logits.shape[:-1], dtype=bool) if mask is None else np.asarray(mask)
    if mask.shape != logits.shape[:-1] or mask.dtype != bool:
        wanted = f"mask must be Boolean {logits.shape[:-1]}"
        raise ValueError(f"{name}: {wanted}, got {mask.dtype} {mask.shape}")
    if not mask.any():
        raise ValueError(f"{name}: logits {logits.shape} leave no position to average over")
    if not mask.all():
        logits = where(logits, 0.0, condition=mask[..., None])
        other = np.where(mask[..., None], other, dtype.type(0))
    return logits, other, mask


def _where_possible(logs: Tensor, probs: np.ndarray) -> Tensor:
    """Logarithms, but 0 where `probs` is 0: there -inf would turn 0 into nan."""
    return where(logs, 0.0, condition=probs > 0)


def _mean(losses: Tensor, mask: np.ndarray) -> Tensor:
    counts = mask / mask.sum()
    return (losses * counts.astype(losses.dtype)).sum()
