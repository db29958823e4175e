"""An optimiser whose state is spread over the ranks (ZeRO stage 1; Rajbhandari et al., 2020)."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from tinytorch.core.gradient_clipping import norm_of, scale_gradients
from tinytorch.core.held_parts import Holding
from tinytorch.core.optimizers import Optimizer
from tinytorch.core.tensor import Tensor
from tinytorch.training.ranks import Ranks


class Shard:
    """A rank's part of an optimiser: for one piece of the flat array of all parameters."""

    def __init__(self, whole: Optimizer, cuts: list[slice], ranks: Ranks) -> None:
        self.optimizer, self.cuts, self.ranks = whole, cuts, ranks
        size = -(-cuts[-1].stop // ranks.size)
        self.begin, self.end = size * ranks.rank, size * (ranks.rank + 1)
        self.own = copy.copy(whole)  # shares the count of steps
        self.own.holding = Holding([], None)  # its pieces are made again for each step
        self.names = _lists_of_state(whole)
        self.pieces = [  # number of a parameter, and which part of it is here
            (i, slice(max(cut.start, self.begin) - cut.start, min(cut.stop, self.end) - cut.start))
            for i, cut in enumerate(cuts)
            if cut.start < self.end and self.begin < cut.stop
        ]
        self._cut()

    def take(self, gradient: np.ndarray, anywhere: list[bool]) -> None:
        """Make the own parameters, with their gradient."""
        self.own.params, first = [], 0
        for i, piece in self.pieces:
            p = Tensor(self.optimizer.params[i].data.reshape(-1)[piece], requires_grad=True)
            p.data = p.data.copy()
            if anywhere[i]:
                p.grad = gradient[first : first + p.size]
            self.own.params.append(p)
            first += p.size

    def clip(self, limit: float) -> float:
        """Clip by the norm of the gradients of all ranks."""
        with_gradient = [p for p in self.own.params if p.grad is not None]
        squares = np.array([norm_of([p.grad for p in with_gradient]) ** 2])
        self.ranks.sum(squares)
        norm = float(np.sqrt(squares[0]))
        scale_gradients(with_gradient, norm, limit)
        return norm

    def step(self, flat: np.ndarray) -> None:
        """Update this rank's part and exchange the others; `flat` has space for all."""
        self.own.lr = self.optimizer.lr
        self.own.step()
        own = np.zeros(self.end - self.begin, flat.dtype)
        parts = [p.data for p in self.own.params]
        own[: sum(map(len, parts))] = np.concatenate(parts) if parts else ()
        self.ranks.join_parts(own, flat)
        for p, cut in zip(self.optimizer.params, self.cuts, strict=True):
            p.data[...] = flat[cut].reshape(p.shape)
            p.mark_changed()

    @contextmanager
    def whole(self) -> Iterator[None]:
        """A context in which the optimiser has the state of all parameters, on every rank."""
        for name in self.names:
            own = np.zeros(self.end - self.begin, np.float64)
            parts = getattr(self.own, name)
            own[: sum(map(len, parts))] = np.concatenate(parts) if parts else ()
            flat = np.zeros(len(own) * self.ranks.size)
            self.ranks.join_parts(own, flat)
            of = zip(self.optimizer.params, self.cuts, strict=True)
            arrays = [flat[cut].reshape(p.shape).astype(p.dtype) for p, cut in of]
            setattr(self.optimizer, name, arrays)
        try:
            yield
        finally:
            self._cut()

    def _cut(self) -> None:
        """Keep only this rank's part of the state."""
        if hasattr(self.optimizer, "decays"):
            vars(self.own)["decays"] = [self.optimizer.decays[i] for i, _ in self.pieces]
        for name in self.names:
            arrays = getattr(self.optimizer, name)
            setattr(self.own, name, [arrays[i].reshape(-1)[cut].copy() for i, cut in self.pieces])
            setattr(self.optimizer, name, [np.zeros(0)] * len(arrays))


def _lists_of_state(optimizer: Optimizer) -> list[str]:
    """The names of an optimiser's lists of arrays, as its `_state` has them.

    Raises:
        ValueError: it keeps an array that no rank can have a part of.
    """
    state, shapes = optimizer._state(), [p.shape for p in optimizer.params]
    names = list(dict.fromkeys(name.partition(".")[0] for name in state if name != "steps"))
    kept = [name for name, x in vars(optimizer).items() if name != "params" and _has_array(x)]
    for name in dict.fromkeys([*names, *kept]):
        arrays = getattr(optimizer, name, None)
        is_list = isinstance(arrays, list) and [np.shape(array) for array in arrays] == shapes
        if name != "_steps" and not (name in names and is_list):
            rule = "it is no list of one array for each parameter, of its shape, named by _state()"
            raise ValueError(f"{type(optimizer).__name__}.{name} cannot be divided: {rule}")
    return names


def _has_array(value: object) -> bool:
    inside = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(each, np.ndarray) for each in inside)
