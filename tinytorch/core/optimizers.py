"""Optimisers: from a gradient to a step; weight decay.

All optimisers accept a row-sparse gradient and then update only its rows: the cost of a step on an
embedding table depends on the batch, not on the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import EllipsisType

import numpy as np

from tinytorch.core.arguments import check_not_negative, check_probability
from tinytorch.core.freed_memory import keep_freed_memory
from tinytorch.core.gradient_clipping import clip_grad_norm as clip_grad_norm
from tinytorch.core.gradient_clipping import norm_of as norm_of
from tinytorch.core.held_parts import Holding
from tinytorch.core.schedules import CosineSchedule as CosineSchedule
from tinytorch.core.sparse import RowSparse
from tinytorch.core.state_dicts import restore
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike

Rows = np.ndarray | EllipsisType  # of a parameter: those of its gradient, or all


def only_matrices(parameter: Tensor) -> bool:
    """Whether weight decay applies to a parameter, as is usual for language models.

    Matrices and tables decay to zero; biases and the scales and shifts of norms, which have one
    axis, do not.

    Example:
        >>> only_matrices(Tensor(np.ones((2, 3)))), only_matrices(Tensor(np.ones(3)))
        (True, False)
    """
    return parameter.ndim >= 2


class Optimizer:
    """The base class of the optimisers: keeps the parameters, updates those with a gradient.

    Making one means that training is about to begin: from then on the process keeps freed memory
    for the next step (`keep_freed_memory`).

    Args:
        params: the tensors to update, each once.
        lr: the learning rate, not negative; may be changed between steps.

    Raises:
        ValueError: no parameters, or a negative learning rate.
        TypeError: something that is not a tensor requiring a gradient, or one in half precision.
    """

    def __init__(self, params: Iterable[Tensor], lr: float) -> None:
        if isinstance(params, Tensor):
            raise TypeError("an optimiser takes a list of parameters, got one tensor; write [w]")
        self.params = list({id(p): p for p in params}.values())
        if not self.params:
            why = "; is the model frozen or quantized?" if hasattr(params, "module") else ""
            raise ValueError(f"an optimiser needs at least one parameter; got an empty list{why}")
        for p in self.params:
            if not isinstance(p, Tensor) or not p.requires_grad:
                got = f"got {p!r:.60}; model.trainable_parameters() are those that do"
                raise TypeError(f"an optimiser updates tensors that require a gradient, {got}")
            if not p.is_leaf:
                got = f"one of shape {p.shape} that was computed from others; pass those instead"
                raise ValueError(f"an optimiser updates tensors that you made, got {got}")
            if p.dtype.itemsize < 4:
                remedy = "train in float32: p.data = p.data.astype(numpy.float32)"
                raise TypeError(f"an optimiser loses small steps in {p.dtype}; {remedy}")
        check_not_negative(lr=lr)
        self.lr, self._steps = lr, np.zeros((), dtype=np.int64)
        self.holding = Holding(self.params, getattr(params, "module", None))
        keep_freed_memory()

    def zero_grad(self) -> None:
        """Clear all gradients; call it before each backward pass."""
        for p in self.params:
            p.zero_grad()

    def step(self) -> None:
        """Update every parameter that has a gradient.

        For a dense gradient that is the whole array; for a row-sparse one its rows.

        Raises:
            ValueError: the model has other parameters than when the optimiser was made.
        """
        self.holding.check()
        self._steps += 1
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            once = p.grad.coalesce() if isinstance(p.grad, RowSparse) else None
            rows, g = (..., p.grad) if once is None else (once.rows, once.values)
            self._update(i, p.data, rows, g)
            p.mark_changed()

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of all that the next step depends on, except the learning rate and gradients."""
        return {name: array.copy() for name, array in self._state().items()}

    def load_state_dict(self, state: Mapping[str, TensorLike]) -> None:
        """Continue from the state of another optimiser of the same parameters.

        Raises:
            ValueError: names are missing, unexpected or of another shape; nothing is changed.
        """
        restore(self._state(), state, type(self).__name__)

    def _state(self) -> dict[str, np.ndarray]:
        """The arrays that `step` changes, except the parameters.

        Those in a list, one for each parameter, are named by its attribute: `m.0`, `m.1` ...
        """
        return {}

    def _update(self, i: int, data: np.ndarray, rows: Rows, g: np.ndarray) -> None:
        """Change `data[rows]`, parameter number `i`, according to its gradient `g`."""
        raise NotImplementedError


class SGD(Optimizer):
    """Stochastic gradient descent, with optional momentum.

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
        check_not_negative(weight_decay=weight_decay)
        check_probability(momentum, "momentum")
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocity = [np.zeros_like(p.data) for p in self.params] if momentum else []

    def _state(self) -> dict[str, np.ndarray]:
        return {f"velocity.{i}": v for i, v in enumerate(self.velocity)}

    def _update(self, i: int, data: np.ndarray, rows: Rows, g: np.ndarray) -> None:
        if self.weight_decay:
            g = g + self.weight_decay * data[rows]
        if self.momentum:
            g = self.momentum * self.velocity[i][rows] + g
            self.velocity[i][rows] = g
        data[rows] -= self.lr * g


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015, algorithm 1).

    Each element keeps a running mean `m` of its gradient and `v` of its square, both corrected for
    their start at zero, and moves by `lr m / (sqrt(v) + eps)`. Weight decay is that of L2
    regularisation: `weight_decay w` is added to the gradient, and so enters `m` and `v`. `AdamW`
    keeps it out of them.

    With a row-sparse gradient the update is *lazy*: only the rows in the gradient have their means
    updated, move and decay. The others stay exactly as they are, while the bias correction counts
    all steps. With a dense gradient an unseen row would go on drifting along its last gradients.

    Args:
        params: the tensors to update.
        lr: the learning rate.
        betas: how much of the two running means is kept at each step.
        eps: added to the square root.
        weight_decay: strength of the pull to zero; None for `usual_decay`, here 0.
        decay: which parameters are pulled, a function of the parameter, `only_matrices` for
            instance; None for all.

    Example:
        >>> w = Tensor([1.0], requires_grad=True)
        >>> (w * w).backward()
        >>> Adam([w], lr=0.1).step()
        >>> w.data.round(4)
        array([0.9], dtype=float32)
    """

    usual_decay = 0.0

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float | None = None,
        decay: Callable[[Tensor], bool] | None = None,
    ) -> None:
        super().__init__(params, lr)
        weight_decay = self.usual_decay if weight_decay is None else weight_decay
        check_not_negative(eps=eps, weight_decay=weight_decay)
        if np.shape(betas) != (2,):
            raise ValueError(f"betas must be two numbers, got {betas!r}")
        betas = betas[0], betas[1]
        for name, beta in zip(("beta1", "beta2"), betas, strict=True):
            check_probability(beta, name)
        if not all(p.dtype.type(eps) > 0 for p in self.params):
            raise ValueError(f"eps must stay above 0, got {eps}; a gradient of 0 is divided by it")
        self.betas, self.eps, self.weight_decay = betas, eps, weight_decay
        self.decays = [decay is None or bool(decay(p)) for p in self.params]
        self.m = [np.zeros_like(p.data) for p in self.params]
        self.v = [np.zeros_like(p.data) for p in self.params]

    @property
    def steps(self) -> int:
        """How many steps were made; the bias correction depends on it."""
        return int(self._steps)

    def _state(self) -> dict[str, np.ndarray]:
        means = {f"m.{i}": m for i, m in enumerate(self.m)}
        return {"steps": self._steps, **means, **{f"v.{i}": v for i, v in enumerate(self.v)}}

    def _update(self, i: int, data: np.ndarray, rows: Rows, g: np.ndarray) -> None:
        g = np.asarray(g, dtype=data.dtype)
        if self.weight_decay and self.decays[i]:
            g = self._decay(data, rows, g)
        beta1, beta2 = self.betas
        whole = self.m[i], self.v[i], data
        parts = whole if rows is ... else tuple(array.take(rows, axis=0) for array in whole)
        m, v, w = parts
        m *= beta1
        m += (1 - beta1) * g
        v *= beta2
        v += (1 - beta2) * (g * g)
        correction1, correction2 = 1 - beta1**self.steps, 1 - beta2**self.steps
        w -= (self.lr / correction1) * m / (np.sqrt(v / correction2) + self.eps)
        if rows is not ...:
            for array, part in zip(whole, parts, strict=True):
                array[rows] = part

    def _decay(self, data: np.ndarray, rows: Rows, g: np.ndarray) -> np.ndarray:
        """The gradient with weight decay added."""
        return g + self.weight_decay * data[rows]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019, algorithm 2).

    Weight decay shrinks the parameter itself by `lr weight_decay` and never enters the means. In
    language models biases and norms are spared: `decay=only_matrices`. All else is as in `Adam`.

    Args:
        params: the tensors to update.
        lr: the learning rate.
        betas: how much of the two running means is kept at each step.
        eps: added to the square root.
        weight_decay: strength of the pull to zero; None for `usual_decay`, here 0.01.
        decay: which parameters are pulled, a function of the parameter; None for all.

    Example:
        >>> w = Tensor([1.0], requires_grad=True)
        >>> (w * w).backward()
        >>> AdamW([w], lr=0.1, weight_decay=0.0).step()
        >>> w.data.round(4)
        array([0.9], dtype=float32)
    """

    usual_decay = 0.01

    def _decay(self, data: np.ndarray, rows: Rows, g: np.ndarray) -> np.ndarray:
        """The gradient as it is: the parameter itself decays here."""
        data[rows] *= 1 - self.lr * self.weight_decay
        return g
