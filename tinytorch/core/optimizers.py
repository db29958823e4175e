"""Optimisers: how a gradient becomes a step.

Both take a row-sparse gradient as it comes and then touch its rows alone: the cost of a step on an
embedding table follows the batch, not the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor

__all__ = ["SGD", "AdamW", "Optimizer"]


class Optimizer:
    """The base of the optimisers: holds the parameters and visits those that have a gradient.

    Args:
        params: the tensors to update, each once.
        lr: the learning rate, not negative; may be changed between steps.

    Raises:
        ValueError: no parameters, or a negative learning rate.
        TypeError: something that is not a tensor requiring a gradient.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        if isinstance(params, Tensor):
            raise TypeError("an optimiser takes a list of parameters, got one tensor; write [w]")
        self.params = list({id(p): p for p in params}.values())
        if not self.params:
            raise ValueError("an optimiser needs at least one parameter; got an empty list")
        for p in self.params:
            if not isinstance(p, Tensor) or not p.requires_grad:
                raise TypeError(
                    f"an optimiser updates tensors that require a gradient, got {p!r:.60}"
                )
            if not p.is_leaf:
                raise ValueError(
                    f"an optimiser updates tensors that you made, got one of shape {p.shape} that "
                    "was computed from others; pass those instead"
                )
        _check_not_negative(lr=lr)
        self.lr = lr

    def zero_grad(self) -> None:
        """Forget all gradients; call it before each backward pass."""
        for p in self.params:
            p.zero_grad()

    def step(self) -> None:
        """Update every parameter that has a gradient.

        For a dense gradient that is the whole array; for a row-sparse one its rows.
        """
        for i, p in enumerate(self.params):
            if isinstance(p.grad, RowSparse):
                g = p.grad.coalesce()
                self._update(i, p.data, g.rows, g.values)
            elif p.grad is not None:
                self._update(i, p.data, ..., p.grad)

    def _update(self, i: int, data: np.ndarray, rows: Any, g: np.ndarray) -> None:
        """Change `data[rows]`, parameter number `i`, according to its gradient `g`."""
        raise NotImplementedError


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum if asked for.

    `v = momentum v + g + weight_decay w`, then `w = w - lr v`. With a row-sparse gradient only
    the rows in it move, decay and keep their momentum going.

    Args:
        params: the tensors to update.
        lr: the learning rate.
        momentum: how much of the last step is kept, in `0 <= momentum < 1`.
        weight_decay: strength of the pull to zero.

    Example:
        >>> w = Tensor([1.0], requires_grad=True)
        >>> (w * w).backward()
        >>> SGD([w], lr=0.25).step()
        >>> w.data
        array([0.5], dtype=float32)
    """

    def __init__(
        self, params: Iterable[Tensor], lr: float, momentum: float = 0, weight_decay: float = 0
    ) -> None:
        super().__init__(params, lr)
        _check_not_negative(weight_decay=weight_decay)
        _check_fraction(momentum=momentum)
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocity = [np.zeros_like(p.data) for p in self.params] if momentum else []

    def _update(self, i: int, data: np.ndarray, rows: Any, g: np.ndarray) -> None:
        if self.weight_decay:
            g = g + self.weight_decay * data[rows]
        if self.momentum:
            g = self.momentum * self.velocity[i][rows] + g
            self.velocity[i][rows] = g
        data[rows] -= self.lr * g


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019, algorithm 2).

    Each element keeps a running mean `m` of its gradient and `v` of its square, both corrected for
    their start at zero, and moves by `lr m / (sqrt(v) + eps)`. Weight decay shrinks the parameter
    itself by `lr weight_decay` and never enters `m` or `v`.

    With a row-sparse gradient the update is *lazy*: only the rows in the gradient have their means
    updated, move and decay; the others stay exactly as they are, as if the step had not happened to
    them, while the bias correction counts all steps. Dense AdamW would also let an unseen row drift
    on the memory of its last gradients.

    Args:
        params: the tensors to update.
        lr: the learning rate.
        betas: how much of the two running means is kept at each step.
        eps: added to the square root.
        weight_decay: strength of the pull to zero.

    Example:
        >>> w = Tensor([1.0], requires_grad=True)
        >>> (w * w).backward()
        >>> AdamW([w], lr=0.1, weight_decay=0.0).step()
        >>> w.data
        array([0.9], dtype=float32)
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, lr)
        _check_not_negative(eps=eps, weight_decay=weight_decay)
        _check_fraction(beta1=betas[0], beta2=betas[1])
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.steps = 0
        self.m = [np.zeros_like(p.data) for p in self.params]
        self.v = [np.zeros_like(p.data) for p in self.params]

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        self.steps += 1
        super().step()

    def _update(self, i: int, data: np.ndarray, rows: Any, g: np.ndarray) -> None:
        beta1, beta2 = self.betas
        m = beta1 * self.m[i][rows] + (1 - beta1) * g
        v = beta2 * self.v[i][rows] + (1 - beta2) * g * g
        self.m[i][rows], self.v[i][rows] = m, v
        correction1, correction2 = 1 - beta1**self.steps, 1 - beta2**self.steps
        step = (m / correction1) / (np.sqrt(v / correction2) + self.eps)
        data[rows] -= self.lr * (step + self.weight_decay * data[rows])


def _check_not_negative(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, got {value}")


def _check_fraction(**values: float) -> None:
    for name, value in values.items():
        if not 0 <= value < 1:
            raise ValueError(f"{name} must be in 0 <= {name} < 1, got {value}")
