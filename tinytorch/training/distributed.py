"""The gradients of one batch, in one process or in several, each with its share of the rows.

Threads would get in each other's way: most operations on a small model take microseconds, and
Python runs one thread at a time. Processes do not. Each helper is a fork of this process, has a
copy of the model, and reads the parameters from memory that all of them share.
"""

import copy
import math
import os
import pickle
import signal
import weakref
from contextlib import suppress
from typing import Any

import numpy as np

from tinytorch.core.backward import total_gradient
from tinytorch.core.functional import cross_entropy
from tinytorch.core.layers import Module, check_sizes
from tinytorch.core.seeding import default_rng, manual_seed
from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor
from tinytorch.training.resuming import generators

_PATIENCE = 10.0  # seconds after which an idle helper checks whether anybody could still ask


def add_gradients(model: Module, inputs: Any, targets: Any, scale: float = 1.0) -> float:
    """Add the gradients of `scale` times the mean cross-entropy to those of the parameters.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`.
        inputs: ids `(batch, seq)`.
        targets: the ids that follow, of the same shape.
        scale: what the loss is multiplied by.

    Returns:
        The loss in nats a token, times `scale`. If it is not finite, no gradient is added.

    Example:
        >>> from tinytorch import Linear
        >>> layer = Linear(2, 3)
        >>> round(add_gradients(layer, np.zeros((1, 2)), np.array([0])), 4)  # ln 3
        1.0986
    """
    loss: Tensor = cross_entropy(model(inputs), targets) * scale
    if math.isfinite(loss.item()):
        loss.backward()
    return loss.item()


class DataParallel:
    """Computes the loss of a batch and its gradients in several processes.

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
        >>> from tinytorch.core import functional
        >>> whole = functional.cross_entropy(model(ids), ids)
        >>> abs(loss - whole.item()) < 1e-6, model.ln_f.gamma.grad.shape
        (True, (8,))
    """

    def __init__(self, model: Module, workers: int = 2) -> None:
        check_sizes(workers=workers)
        self.model, self.parameters, self.workers = model, model.parameters(), workers
        self._kinds = _kinds_of(self.parameters)
        self._weights = [_shared(p.data) for p in self.parameters]
        self._start()

    def _start(self) -> None:
        self._helpers = [_Helper(self.model, self._weights) for _ in range(self.workers - 1)]
        self._asked = False  # whether answers may still lie in the pipes

    def backward(self, inputs: Any, targets: Any, scale: float = 1.0) -> float:
        """Add the gradients of `scale` times the mean cross-entropy to those of the parameters.

        Args:
            inputs: ids `(batch, seq)`.
            targets: ids of the same shape.
            scale: what the loss is multiplied by.

        Returns:
            The loss, `scale` included. If it is not finite, no gradient is added.

        Raises:
            ValueError: the batch is empty.
            RuntimeError: a helper has ended, and the next call starts new ones; or parameters have
                another dtype or shape, or are frozen, since this object was made.

        An error in any share is raised here, and leaves the gradients as they were.
        """
        inputs, targets = np.asarray(inputs), np.asarray(targets)
        if inputs.size == 0:
            raise ValueError(f"DataParallel: a batch of shape {inputs.shape} holds no tokens")
        if _kinds_of(self.parameters) != self._kinds:
            what = "a parameter's dtype, shape or requires_grad has changed"
            raise RuntimeError(f"DataParallel: {what}; make a new DataParallel")
        if self._asked:  # not all have answered: one has ended, or there was an interrupt
            self._start()
        helpers = self._helpers[: max(0, len(inputs) - 1)]
        cut = (np.array_split(x, len(helpers) + 1) for x in (inputs, targets))
        own, *others = [(x, y, scale * x.size / inputs.size) for x, y in zip(*cut, strict=True)]
        for shared, parameter in zip(self._weights, self.parameters, strict=True):
            shared[...] = parameter.data
        self._asked = True
        for helper, share in zip(helpers, others, strict=True):
            helper.begin(share, _state_of(self.model))
        before = [p.grad for p in self.parameters]
        try:
            self.model.zero_grad()
            loss = add_gradients(self.model, *own)
            gradients = [p.grad for p in self.parameters]
        finally:
            for parameter, earlier in zip(self.parameters, before, strict=True):
                parameter.grad = earlier
            answers = [helper.end() for helper in helpers]  # no answer stays in a pipe
            self._asked = False
        for error, _, _ in answers:
            if error is not None:
                raise error
        loss += math.fsum(part for _, part, _ in answers)
        if math.isfinite(loss):
            for found in [gradients, *(theirs for *_, theirs in answers)]:
                _add(self.parameters, found)
        return loss


class _Helper:
    """A forked process that computes the gradients of one share."""

    def __init__(self, model: Module, weights: list[np.ndarray]) -> None:
        try:
            import multiprocessing

            fork = multiprocessing.get_context("fork")
            self.pipe, answering = fork.Pipe()
        except (ImportError, ValueError, OSError) as error:  # Windows, a browser
            what = f"this system cannot fork a process ({error})"
            raise RuntimeError(f"DataParallel: {what}; use workers=1") from None
        self.gradients = [_shared(weight) for weight in weights]
        arguments = os.getpid(), model, weights, self.gradients, answering, self.pipe
        process = fork.Process(target=_work, args=arguments, daemon=True)
        process.start()
        answering.close()
        weakref.finalize(self, _end, os.getpid(), process)

    def begin(self, share: tuple[Any, ...], state: tuple[Any, ...]) -> None:
        with suppress(OSError):  # a helper that has ended: end() says so
            self.pipe.send((share, state))

    def end(self) -> Any:
        """An error or None, the share's loss and its gradients (arrays, `RowSparse` or None)."""
        try:
            error, loss, others = self.pipe.recv()
        except (EOFError, OSError):
            ended = "DataParallel: a helper process has ended; the next call starts new ones"
            raise RuntimeError(ended) from None
        return error, loss, [others.get(i, dense) for i, dense in enumerate(self.gradients)]


def _end(owner: int, process: Any) -> None:
    """End a helper that nobody can ask any more; its siblings hold this object too."""
    if os.getpid() == owner:
        process.kill()


def _work(parent: int, model: Module, weights: Any, gradients: Any, pipe: Any, asking: Any) -> None:
    """What a helper does until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the process that asks
    asking.close()  # so that the pipe can break
    parameters = model.parameters()
    for parameter, shared in zip(parameters, weights, strict=True):
        parameter.data = shared
    with suppress(EOFError, OSError):  # nobody asks any more
        while True:
            while not pipe.poll(_PATIENCE):
                if os.getppid() != parent:  # another fork of it may hold the pipe open
                    return
            pipe.send(_answer(model, parameters, gradients, *pipe.recv()))


def _answer(model: Module, parameters: list[Tensor], gradients: Any, share: Any, state: Any) -> Any:
    """An error or None, a share's loss, and by number the gradients that are no dense arrays."""
    try:
        _set_state(model, *state)
        model.zero_grad()
        loss, others = add_gradients(model, *share), {}
        for i, (parameter, dense) in enumerate(zip(parameters, gradients, strict=True)):
            if parameter.grad is None or isinstance(parameter.grad, RowSparse):
                others[i] = parameter.grad
            else:
                dense[...] = parameter.grad
        return None, loss, others
    except Exception as error:
        with suppress(Exception):  # an error of the reader's own may not survive pickling
            return pickle.loads(pickle.dumps(error)), math.nan, {}
        return RuntimeError(f"{type(error).__name__}: {error}"), math.nan, {}


def _add(parameters: list[Tensor], gradients: list[Any]) -> None:
    """Add gradients to those of the parameters, as copies: helpers use their arrays again."""
    for parameter, g in zip(parameters, gradients, strict=True):
        if g is not None:
            held = parameter.grad
            parameter.grad = copy.copy(g) if held is None else total_gradient(held, g)


def _state_of(model: Module) -> tuple[list[bool], dict[str, int]]:
    """The parts' modes, and seeds for their generators and for the default one."""
    modes = [part.training for _, part in model.named_modules()]
    rngs = {"": default_rng(), **{name: rng for name, (_, _, rng) in generators(model).items()}}
    return modes, {name: int(rng.integers(2**63)) for name, rng in rngs.items()}


def _set_state(model: Module, modes: list[bool], seeds: dict[str, int]) -> None:
    manual_seed(seeds[""])
    for (_, part), mode in zip(model.named_modules(), modes, strict=True):
        part.training = mode
    for name, (part, attribute, _) in generators(model).items():
        vars(part)[attribute] = np.random.default_rng(seeds[name])


def _kinds_of(parameters: list[Tensor]) -> list[Any]:
    return [(p.shape, p.dtype, p.requires_grad) for p in parameters]


def _shared(array: np.ndarray) -> np.ndarray:
    """An array like this one in memory that forked processes share."""
    import mmap

    memory = mmap.mmap(-1, max(1, array.nbytes))
    return np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
