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

_COUNTS = int, float, np.number


class Shard:
    """A rank's part of an optimiser: for one piece of the flat array of all parameters."""

    def __init__(self, whole: Optimizer, cuts: list[slice], ranks: Ranks) -> None:
        self.optimizer, self.cuts, self.ranks = whole, cuts, ranks
        size = -(-cuts[-1].stop // ranks.size)
        self.begin, self.end = size * ranks.rank, size * (ranks.rank + 1)
        self.own = copy.copy(whole)  # shares the count of steps
        self.own.holding = Holding([], None)  # its pieces are made again for each step
        self.kinds = {name: getattr(whole, name)[0].dtype for name in _lists_of_state(whole)}
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
        for name in {*vars(self.own)} - {*self.kinds, "params"}:
            if _has_array(getattr(self.own, name)):
                what = "make its arrays in __init__, a list with one array per parameter"
                raise ValueError(f"{type(self.own).__name__}.{name} cannot be divided: {what}")
        counts = {n: x for n, x in vars(self.own).items() if isinstance(x, _COUNTS)}
        vars(self.optimizer).update(counts)
        for name, kind in self.kinds.items():
            own = np.zeros(self.end - self.begin, np.float64)
            parts = getattr(self.own, name)
            own[: sum(map(len, parts))] = np.concatenate(parts) if parts else ()
            flat = np.zeros(len(own) * self.ranks.size)
            self.ranks.join_parts(own, flat)
            of = zip(self.optimizer.params, self.cuts, strict=True)
            arrays = [flat[cut].reshape(p.shape).astype(kind) for p, cut in of]
            setattr(self.optimizer, name, arrays)
        try:
            yield
        finally:
            self._cut()

    def _cut(self) -> None:
        """Keep only this rank's part of the state."""
        for name, value in vars(self.optimizer).items():
            if _is_per_parameter(value, len(self.cuts)):
                vars(self.own)[name] = [value[i] for i, _ in self.pieces]
            elif isinstance(value, _COUNTS):
                vars(self.own)[name] = value
        for name in self.kinds:
            arrays = getattr(self.optimizer, name)
            setattr(self.own, name, [arrays[i].reshape(-1)[cut].copy() for i, cut in self.pieces])
            setattr(self.optimizer, name, [np.zeros(0)] * len(arrays))


def _lists_of_state(optimizer: Optimizer) -> list[str]:
    """The names of an optimiser's lists of arrays that are divided, as its `_state` has them.

    Raises:
        ValueError: it keeps arrays that cannot be divided among the ranks.
    """
    shapes = [p.shape for p in optimizer.params]
    state = {name.partition(".")[0] for name in optimizer._state()} - {"steps"}
    divided = []
    for name in [*state, *(set(vars(optimizer)) - state - {"params"})]:
        found = getattr(optimizer, name, None)
        arrays = found if isinstance(found, list) else []
        of_arrays = any(isinstance(x, np.ndarray) for x in arrays)
        if of_arrays and [np.shape(x) for x in arrays] == shapes:
            divided.append(name)
        elif name in state or of_arrays:
            what = "expected a list with one array per parameter, of the same shapes"
            raise ValueError(f"{type(optimizer).__name__}.{name} cannot be divided: {what}")
    return sorted(divided)


def _has_array(value: object) -> bool:
    inside = [*value.values()] if isinstance(value, dict) else value
    return isinstance(inside, list) and any(isinstance(x, np.ndarray) for x in inside)


def _is_per_parameter(value: object, count: int) -> bool:
    """Whether a value is a list of one setting for each parameter, like Adam's `decays`."""
    is_plain = isinstance(value, list) and not any(hasattr(x, "shape") for x in value)
    return is_plain and len(value) == count  # type: ignore[arg-type]
