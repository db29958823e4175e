"""Gradient clipping: all gradients scaled together where their norm is too large."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor


def clip_grad_norm(params: Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients together so that their norm is at most `max_norm`.

    The norm is that of all gradients joined into one long vector, so the direction of the step
    stays the same (Pascanu et al., 2013, section 3.2).

    Args:
        params: tensors; those without a gradient are skipped.
        max_norm: the largest norm allowed; infinity to measure only.

    Returns:
        The norm before clipping.

    Raises:
        TypeError: one tensor instead of a list.
        ValueError: `max_norm` is not positive.
        FloatingPointError: the norm is not finite; nothing is changed.

    Example:
        >>> w = Tensor([3.0, 4.0], requires_grad=True)
        >>> (w * w).sum().backward()  # the gradient is (6, 8)
        >>> clip_grad_norm([w], max_norm=5.0)
        10.0
        >>> w.grad
        array([3., 4.], dtype=float32)
    """
    if isinstance(params, Tensor):
        raise TypeError("clip_grad_norm takes a list of parameters, got one tensor; write [w]")
    with_gradient = list({id(p): p for p in params if p.grad is not None}.values())  # each once
    for p in with_gradient:
        if isinstance(p.grad, RowSparse):
            p.grad = p.grad.coalesce()  # a row listed twice has one gradient, the sum
    norm = norm_of([getattr(p.grad, "values", p.grad) for p in with_gradient])
    scale_gradients(with_gradient, norm, max_norm)
    return norm


def scale_gradients(params: Iterable[Tensor], norm: float, max_norm: float) -> None:
    """Scale gradients, whose norm together with others elsewhere is known, to at most `max_norm`.

    Raises:
        ValueError: `max_norm` is not positive.
        FloatingPointError: the norm is not finite; nothing is changed.

    Example:
        >>> w = Tensor([3.0, 4.0], requires_grad=True)
        >>> w.sum().backward()
        >>> scale_gradients([w], norm=10.0, max_norm=5.0)
        >>> w.grad
        array([0.5, 0.5], dtype=float32)
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm must be > 0, got {max_norm}")
    if not math.isfinite(norm):
        remedy = "lower the learning rate, or lengthen the warm-up"
        cause = "a loss or a weight has overflowed"
        raise FloatingPointError(f"the norm of the gradients is {norm}: {cause}; {remedy}")
    if norm > max_norm:
        factor = float(max_norm / norm)  # a NumPy number would widen the gradients
        for p in params:
            p.grad = p.grad * factor


def norm_of(arrays: Sequence[np.ndarray]) -> float:
    """The norm of all arrays as one vector; where squares leave the range, they are scaled first.

    Example:
        >>> round(norm_of([np.array([3e200]), np.array([4e200])]) / 1e200, 4)
        5.0
    """
    wide = [x if x.itemsize > 2 else x.astype(np.float32) for x in arrays]
    with np.errstate(over="ignore"):
        norm = math.sqrt(sum(float(np.vdot(x, x)) for x in wide))
    if 1e-15 < norm < math.inf:
        return norm
    largest = float(np.max([np.abs(x).max(initial=0) for x in arrays], initial=0))
    if not 0 < largest < math.inf:
        return largest
    return largest * norm_of([x.astype(np.float64) / largest for x in arrays])
