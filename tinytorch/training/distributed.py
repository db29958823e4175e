"""Gradients of one batch in several processes, each with its share of the rows.

Threads would get in each other's way: most operations on a small model take microseconds, and
Python runs one thread at a time. Processes do not. Each helper is a fork of this process, has a
copy of the model, and reads the parameters from memory that all of them share.
"""

from __future__ import annotations

import copy
import math
import signal
import weakref
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.backward import total_gradient
from tinytorch.core.layers import Module, check_sizes
from tinytorch.core.seeding import default_rng, manual_seed
from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor

__all__ = ["DataParallel", "add_gradients"]

_asking: Any = weakref.WeakSet()  # this process's ends of all pipes to helpers


class DataParallel:
    """Computes the loss of a batch and its gradients with several processes.

    The shares are weighted so that the sum is the mean over the batch; it differs from that of one
    process by rounding alone. A helper's random numbers follow from the generators of this
    process, so that a seed gives the same run for the same number of workers. BLAS should have one
    thread in each (`OPENBLAS_NUM_THREADS=1`). Helpers end with the object, or with the process.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`. Its parts must not be
            replaced afterwards; parameters may change as they like.
        workers: how many processes, this one included; a batch with fewer rows uses fewer.

    Raises:
        RuntimeError: the system cannot fork a process (Windows, a browser).

    Example:
        >>> from tinytorch import GPT
        >>> ids = np.arange(8).reshape(2, 4) % 5
        >>> model = GPT(5, 8, 1, 2, max_seq_len=4, rng=0)
        >>> loss = DataParallel(model, workers=2).backward(ids, ids)
        >>> whole = functional.cross_entropy(model(ids), ids)
        >>> abs(loss - whole.item()) < 1e-6, model.ln_f.gamma.grad.shape
        (True, (8,))
    """

    def __init__(self, model: Module, workers: int = 2) -> None:
        check_sizes(workers=workers)
        self.model, self.parameters = model, model.parameters()
        self._kinds = _kinds_of(self.parameters)
        self._parts = [part for _, part in model.named_modules()]
        self._weights = [_shared(p.data) for p in self.parameters]
        pipes = [_pipe() for _ in range(workers - 1)]
        self._helpers = [_Helper(self, pipe, pipes) for pipe in pipes]

    def backward(self, inputs: Any, targets: Any, scale: float = 1.0) -> float:
        """Add the gradients of `scale` times the mean cross-entropy to those of the parameters.

        Args:
            inputs: ids `(batch, seq)`.
            targets: ids of the same shape.
            scale: what the loss is multiplied by.

        Returns:
            The loss, `scale` included. If it is not finite there are no new gradients.

        Raises:
            ValueError: the batch is empty.
            RuntimeError: a helper has ended, or parameters have another dtype or shape, or are
                frozen, since the helpers began.
        """
        inputs, targets = np.asarray(inputs), np.asarray(targets)
        if inputs.size == 0:
            raise ValueError(f"DataParallel: a batch of shape {inputs.shape} holds no tokens")
        if _kinds_of(self.parameters) != self._kinds:
            raise RuntimeError(
                "DataParallel: a parameter has another dtype or shape, or was frozen, since the "
                "helpers began; make a new DataParallel"
            )
        helpers = self._helpers[: max(0, len(inputs) - 1)]
        cut = (np.array_split(x, len(helpers) + 1) for x in (inputs, targets))
        own, *others = [(x, y, scale * x.size / inputs.size) for x, y in zip(*cut, strict=True)]
        for shared, parameter in zip(self._weights, self.parameters, strict=True):
            shared[...] = parameter.data
        for helper, share in zip(helpers, others, strict=True):
            helper.begin(share, _state_of(self._parts))
        before = [p.grad for p in self.parameters]
        _forget(self.parameters)
        try:
            loss = add_gradients(self.model, *own)
        finally:
            answers = [helper.end() for helper in helpers]  # no answer stays in a pipe
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        loss += math.fsum(part for part, _ in answers)
        found = [[p.grad for p in self.parameters], *(gradients for _, gradients in answers)]
        for parameter, earlier, *terms in zip(self.parameters, before, *found, strict=True):
            parameter.grad = earlier
            for g in terms if math.isfinite(loss) else []:
                if g is not None:  # a sum or a copy: a helper's array is used again
                    held = parameter.grad
                    parameter.grad = copy.copy(g) if held is None else total_gradient(held, g)
        return loss


class _Helper:
    """A forked process that computes the gradients of one share."""

    def __init__(self, owner: DataParallel, pipe: Any, pipes: list[Any]) -> None:
        import multiprocessing

        self.gradients = [_shared(p.data) for p in owner.parameters]
        self.pipe = pipe[0]
        _asking.add(self.pipe)
        arguments = owner.model, owner._weights, self.gradients, pipe[1], pipes
        fork = multiprocessing.get_context("fork")
        fork.Process(target=_work, args=arguments, daemon=True).start()
        pipe[1].close()

    def begin(self, share: tuple[Any, ...], state: tuple[Any, ...]) -> None:
        try:
            self.pipe.send((share, state))
        except OSError:
            raise _ended() from None

    def end(self) -> Any:
        """The loss of the share and the gradients (arrays, `RowSparse` or None), or an error."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            return _ended()
        if isinstance(answer, BaseException):
            return answer
        loss, others = answer
        return loss, [others.get(i, dense) for i, dense in enumerate(self.gradients)]


def _work(model: Module, weights: Any, gradients: Any, pipe: Any, pipes: list[Any]) -> None:
    """What a helper does until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that asks
    for asking in [*_asking, *(ends[0] for ends in pipes)]:  # so that the pipe can break
        asking.close()
    for _, answering in pipes:
        if answering is not pipe:
            answering.close()
    parameters, parts = model.parameters(), [part for _, part in model.named_modules()]
    for parameter, shared in zip(parameters, weights, strict=True):
        parameter.data = shared
    while True:
        try:
            share, state = pipe.recv()
        except EOFError:
            return
        try:
            _set_state(parts, *state)
            _forget(parameters)
            loss, others = add_gradients(model, *share), {}
            for i, (parameter, dense) in enumerate(zip(parameters, gradients, strict=True)):
                if parameter.grad is None or isinstance(parameter.grad, RowSparse):
                    others[i] = parameter.grad
                else:
                    dense[...] = parameter.grad
            pipe.send((loss, others))
        except Exception as error:
            pipe.send(error)


def add_gradients(model: Module, inputs: Any, targets: Any, scale: float = 1.0) -> float:
    """What `DataParallel.backward` does, in this process alone.

    Example:
        >>> from tinytorch import Linear
        >>> layer = Linear(2, 3)
        >>> round(add_gradients(layer, np.zeros((1, 2)), np.array([0])), 4)  # ln 3
        1.0986
    """
    loss: Tensor = functional.cross_entropy(model(inputs), targets) * scale
    if math.isfinite(loss.item()):
        loss.backward()
    return loss.item()


def _forget(parameters: list[Tensor]) -> None:
    for parameter in parameters:
        parameter.zero_grad()


def _state_of(parts: list[Module]) -> tuple[int, list[bool], list[int | None]]:
    """Seeds for the default generator and those of the parts, and the parts' modes."""
    own = [vars(part).get("rng") for part in parts]
    seeds = [_seed(rng) if isinstance(rng, np.random.Generator) else None for rng in own]
    return _seed(default_rng()), [part.training for part in parts], seeds


def _set_state(parts: list[Module], seed: int, modes: list[bool], seeds: list[int | None]) -> None:
    manual_seed(seed)
    for part, mode, own in zip(parts, modes, seeds, strict=True):
        part.training = mode
        if own is not None:
            vars(part)["rng"] = np.random.default_rng(own)


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))


def _kinds_of(parameters: list[Tensor]) -> list[Any]:
    return [(p.shape, p.dtype, p.requires_grad) for p in parameters]


def _shared(array: np.ndarray) -> np.ndarray:
    """An array like this one in memory that forked processes share."""
    import mmap

    memory = mmap.mmap(-1, max(1, array.nbytes))
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)


def _pipe() -> tuple[Any, Any]:
    """The two ends of a pipe."""
    try:
        import multiprocessing

        return multiprocessing.get_context("fork").Pipe()
    except (ImportError, ValueError, OSError) as error:  # Windows, a browser
        raise RuntimeError(
            f"DataParallel: this system cannot fork a process ({error}); use workers=1"
        ) from None


def _ended() -> RuntimeError:
    return RuntimeError("DataParallel: a helper process has ended; make a new DataParallel")
