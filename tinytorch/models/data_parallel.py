"""Gradients of one batch in several threads, each with its share of the rows.

NumPy lets other threads run while it works on an array, so two threads on two processors take
little more than half the time. Every thread has a replica of the model: other objects, whose
parameters have gradients of their own but share their arrays with the model's.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.layers import Module, Parameter, check_sizes
from tinytorch.core.seeding import default_rng, drawing_from

__all__ = ["DataParallel"]


class DataParallel:
    """Computes the loss of a batch and its gradients with several threads.

    The shares are weighted so that the sum is the mean over the batch; it differs from that of a
    single thread by rounding alone. Dropout draws from a generator for each thread, seeded from
    the one that the model would use, so that a seed gives the same run for the same number of
    threads. BLAS should have one thread for each of these (`OPENBLAS_NUM_THREADS=1`).

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`.
        threads: how many; a batch with fewer rows uses as many as it has rows.

    Example:
        >>> from tinytorch import GPT
        >>> ids = np.arange(8).reshape(2, 4) % 5
        >>> model = GPT(5, 8, 1, 2, max_seq_len=4, rng=0)
        >>> loss = DataParallel(model, threads=2).backward(ids, ids)
        >>> whole = functional.cross_entropy(model(ids), ids)
        >>> abs(loss - whole.item()) < 1e-6, model.ln_f.gamma.grad.shape
        (True, (8,))
    """

    def __init__(self, model: Module, threads: int = 2) -> None:
        from concurrent.futures import ThreadPoolExecutor  # not needed by those who use one thread

        check_sizes(threads=threads)
        self.model = model
        self.replicas = [_replica(model, {}) for _ in range(threads - 1)]
        self._pool = ThreadPoolExecutor(max_workers=max(1, threads - 1))

    def backward(self, inputs: Any, targets: Any, scale: float = 1.0) -> float:
        """Add the gradients of `scale` times the mean cross-entropy to those of the parameters.

        Args:
            inputs: ids `(batch, seq)`.
            targets: ids of the same shape.
            scale: what the loss is multiplied by.

        Returns:
            The loss, `scale` included. If it is not finite there are no new gradients.
        """
        inputs, targets = np.asarray(inputs), np.asarray(targets)
        workers = [self.model, *self.replicas][: len(inputs)]
        for replica in workers[1:]:
            _follow(replica, self.model)
        generators = [None, *(_branch(default_rng()) for _ in workers[1:])]
        shares = [
            (worker, generator, part, goal, scale * part.size / inputs.size)
            for worker, generator, part, goal in zip(
                workers, generators, *(np.array_split(x, len(workers)) for x in (inputs, targets)),
                strict=True,
            )
        ]  # fmt: skip
        waiting = [self._pool.submit(_loss, *share) for share in shares[1:]]
        losses = [_loss(*shares[0]), *(future.result() for future in waiting)]
        total = sum(loss.item() for loss in losses)
        if not np.isfinite(total):
            return total
        waiting = [self._pool.submit(loss.backward) for loss in losses[1:]]
        losses[0].backward()
        for future in waiting:
            future.result()
        for replica in workers[1:]:
            for own, other in zip(self.model.parameters(), replica.parameters(), strict=True):
                if other.grad is not None:
                    own.grad = other.grad if own.grad is None else own.grad + other.grad
        return total


def _loss(model: Any, generator: Any, inputs: np.ndarray, targets: np.ndarray, weight: float) -> Any:
    with drawing_from(generator):
        return functional.cross_entropy(model(inputs), targets) * weight


def _branch(rng: np.random.Generator) -> np.random.Generator:
    """A generator of its own, which follows from the state of `rng`."""
    return np.random.default_rng(int(rng.integers(2**63)))


def _replica(part: Any, made: dict[int, Any]) -> Any:
    """Another object like `part`; the arrays of its parameters are the same."""
    if isinstance(part, list | tuple):
        return type(part)(_replica(x, made) for x in part)
    if isinstance(part, dict):
        return {name: _replica(x, made) for name, x in part.items()}
    if not isinstance(part, Module | Parameter):
        return part
    if id(part) not in made:  # what is shared in the model is shared in the replica
        twin = made[id(part)] = copy.copy(part)
        if isinstance(part, Module):
            vars(twin).update({name: _replica(x, made) for name, x in vars(part).items()})
    return made[id(part)]


def _follow(replica: Module, model: Module) -> None:
    """Give a replica the model's arrays and modes as they are now, and no gradients."""
    for own, other in zip(model.parameters(), replica.parameters(), strict=True):
        other.data, other.grad = own.data, None
    for (_, own), (_, other) in zip(model.named_modules(), replica.named_modules(), strict=True):
        other.training = own.training
        if getattr(own, "rng", None) is not None:
            other.rng = _branch(own.rng)
