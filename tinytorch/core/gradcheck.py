"""Proof that a gradient is right: compare it with finite differences.

Move one input a little up and down, and divide the change of the result by the distance: that is
the derivative, without any calculus. The error of this central difference falls with the square of
the step, and in float64 a step of 1e-6 leaves about ten correct digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinytorch.core.grad_mode import no_grad
from tinytorch.core.module import Module
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike

Result = Callable[[], Tensor]  # a function of tensors, which change from call to call


@dataclass(frozen=True)
class GradientCheck:
    """The outcome of `check_gradients`: true if every derivative agrees.

    Attributes:
        ok: whether all derivatives agree within `tol`.
        count: how many derivatives were compared.
        tol: the largest relative error allowed.
        error: the largest relative error found.
        worst: which derivative that is, for instance `input 0 at (1, 2)`.
        analytic: its value from `backward()`.
        numeric: its value from finite differences.
    """

    ok: bool
    count: int
    tol: float
    error: float
    worst: str
    analytic: float
    numeric: float

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        if self.ok:
            return f"ok: {self.count} derivatives agree with finite differences within {self.tol:g}"
        differences = f"finite differences give {self.numeric:.4g}"
        return f"WRONG: {self.worst}: backward() gives {self.analytic:.4g}, {differences}"


def check_gradients(
    f: Callable[..., Tensor], *inputs: TensorLike, eps: float = 1e-6, tol: float = 1e-5
) -> GradientCheck:
    """Compare the gradients of `f` at `inputs` with central differences, in float64.

    A result with several elements is reduced to one number by fixed random weights, so that an
    error in any element shows. The relative error of a derivative is
    `|analytic - numeric| / max(1, |analytic|, |numeric|)`.

    Args:
        f: a function of tensors that returns a tensor, or a `Module`, whose parameters are then
            checked as well. It must be deterministic: call `eval()` on a module with dropout.
        inputs: tensors or arrays. Floating-point ones are checked, integer ones are passed through.
        eps: the step of the differences.
        tol: the largest relative error that counts as agreement.

    Returns:
        A `GradientCheck`, which is true if all agree and says which derivative is worst if not.

    Raises:
        ValueError: there is nothing to check, or `f` is not deterministic.

    Example:
        >>> check_gradients(lambda x, y: x * y + x.exp(), [1.0, 2.0], [3.0, 4.0])
        ok: 4 derivatives agree with finite differences within 1e-05
    """
    tensors = [_in_float64(value) for value in inputs]
    named = [(f"input {i}", t) for i, t in enumerate(tensors) if t.requires_grad]
    learned = f.named_parameters() if isinstance(f, Module) else []
    before = [(p, p.data, p.grad) for _, p in learned]
    for _, p in learned:
        p.data, p.grad = p.data.astype(np.float64), None
    named += learned
    if not named:
        raise ValueError("check_gradients: no floating-point input and no parameter to check")
    try:
        return _compare(lambda: f(*tensors), named, eps, tol)
    finally:
        for p, data, grad in before:
            p.data, p.grad = data, grad


def _in_float64(value: TensorLike) -> Tensor:
    array = np.asarray(value.data if isinstance(value, Tensor) else value)
    if array.dtype.kind != "f":
        return Tensor(array)
    return Tensor(array, requires_grad=True, dtype=np.float64)


def _compare(f: Result, named: list[tuple[str, Tensor]], eps: float, tol: float) -> GradientCheck:
    result = f()
    if not isinstance(result, Tensor):
        raise TypeError(f"check_gradients: f must return a Tensor, got {type(result).__name__}")
    weights = np.random.default_rng(0).normal(size=result.shape)
    if result.requires_grad:
        result.backward(weights)
    with no_grad():
        if not np.array_equal(f().data, result.data, equal_nan=True):
            remedy = "switch dropout off with .eval() or fix the seed inside f"
            raise ValueError(f"check_gradients: two calls of f gave different results; {remedy}")
        pairs = [(_analytic(tensor), _numeric(f, weights, tensor.data, eps)) for _, tensor in named]
    errors = [_relative_error(a, n) for a, n in pairs]
    k = int(np.argmax([e.max(initial=0.0) for e in errors]))
    at = np.unravel_index(int(errors[k].argmax()), errors[k].shape)
    place = f"{named[k][0]} at {tuple(int(i) for i in at)}"
    error, analytic, numeric = (float(array[at]) for array in (errors[k], *pairs[k]))
    count = sum(e.size for e in errors)
    return GradientCheck(error <= tol, count, tol, error, place, analytic, numeric)


def _analytic(tensor: Tensor) -> np.ndarray:
    return np.zeros(tensor.shape) + (0 if tensor.grad is None else tensor.grad)


def _numeric(f: Result, weights: np.ndarray, data: np.ndarray, eps: float) -> np.ndarray:
    """The central difference for every element of `data`, which is changed and restored."""
    slopes = np.empty(data.shape)
    for at in np.ndindex(data.shape):
        value = data[at]
        data[at] = value + eps
        above = f().data
        data[at] = value - eps
        below = f().data
        data[at] = value
        slopes[at] = ((above - below) * weights).sum() / (2 * eps)
    return slopes


def _relative_error(analytic: np.ndarray, numeric: np.ndarray) -> np.ndarray:
    error = np.abs(analytic - numeric)
    scale = np.maximum(1.0, np.maximum(np.abs(analytic), np.abs(numeric)))
    return np.where(np.isfinite(error), error / scale, np.inf)
