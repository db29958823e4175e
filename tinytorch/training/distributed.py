"""One training run over several processes, on one machine or on many, by MPI.

A script needs two names. Every process, a *rank*, runs all of it, and sees the whole batches:

    from tinytorch.training.distributed import RankTrainer, run_ranks

    run_ranks(lambda ranks: RankTrainer(ranks, model, batches).run(200))

`mpiexec -n 4 python script.py` starts it in four. The extra `mpi` installs all that is needed, as
does `pip install mpi4py mpich`; a single rank needs neither.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.gradient_clipping import clip_grad_norm
from tinytorch.core.losses import cross_entropy
from tinytorch.core.module import Module
from tinytorch.core.sparse import RowSparse
from tinytorch.files.atomic_files import StrPath
from tinytorch.text.batches import Batches
from tinytorch.training.rank_processes import run_ranks
from tinytorch.training.ranks import RankLost, Ranks
from tinytorch.training.sharded_optimizer import Shard
from tinytorch.training.shared_draws import drawing_whole_batches
from tinytorch.training.trainer import Trainer

__all__ = ["RankLost", "RankTrainer", "Ranks", "run_ranks"]


class RankTrainer(Trainer):
    """`Trainer`, with the rows of each batch shared among the ranks of a run.

    The run is that of one process: the gradients are averaged over the ranks before they are
    clipped, dropout is drawn for the whole batch, the validation windows are shared too, and the
    checkpoint is the one that `Trainer` writes. So a run may resume with another number of ranks.
    Losses differ only by rounding. Only rank 0 writes and shows progress.

    Args:
        ranks: the processes of the run, from `run_ranks`.
        model: as for `Trainer`; every rank starts with the weights of rank 0.
        batches: the whole batches. Every rank reads all of them and takes its rows.
        shard_optimizer: whether each rank keeps the optimiser's state only for its share of the
            parameters (ZeRO stage 1; Rajbhandari et al., 2020). While a checkpoint is written or
            read, every rank has all of it.
        options: as for `Trainer`.

    Attributes:
        times: for each step of this process, its seconds, and how many of them were spent waiting.

    Raises:
        ValueError: the batch does not divide among the ranks.
        TypeError: the parameters are not all of one dtype.
    """

    def __init__(
        self,
        ranks: Ranks,
        model: Module,
        batches: Batches,
        *,
        shard_optimizer: bool = False,
        **options: Any,
    ) -> None:
        rows, n = batches.batch_size, ranks.size
        if rows % n:
            near = f"{rows - rows % n or n} or {rows - rows % n + n}"
            remedy = f"make the batch {near}, or use a number of ranks that divides {rows}"
            raise ValueError(f"a batch of {rows} rows does not divide among {n} ranks; {remedy}")
        shown = options.pop("progress", True) and ranks.rank == 0
        super().__init__(model, batches, progress=shown, **options)
        self.ranks = ranks
        self.times: list[tuple[float, float]] = []
        params = self.optimizer.params
        if len(kinds := {str(p.dtype) for p in params}) > 1:
            raise TypeError(f"the parameters must all be of one dtype, got {sorted(kinds)}")
        ends = np.cumsum([p.size for p in params])
        self._cuts = [slice(end - p.size, end) for p, end in zip(params, ends, strict=True)]
        self._flat = np.zeros(-(-ends[-1] // n) * n, params[0].dtype)  # ends with zeros
        self._shard = Shard(self.optimizer, self._cuts, ranks) if shard_optimizer else None

    def run(self, steps: int) -> list[dict[str, Any]]:
        """Train for more steps, as `Trainer.run` does.

        Raises:
            RankLost: another rank has ended. The last checkpoint can be resumed.
            ValueError: the ranks differ in version, settings or data.
        """
        shapes = {name: str(p.shape) for name, p in self.model.named_parameters()}
        versions = {"tinytorch": sys.modules["tinytorch"].__version__, "NumPy": np.__version__}
        counts = {"steps": steps, "eval_every": self.eval_every, "save_every": self.save_every}
        counts |= {"step_number": self.step_number, "sharded": self._shard is not None}
        named = {name: str(count) for name, count in counts.items()}
        self.ranks.check_alike({**versions, **named, **self._settings(self.step_number), **shapes})
        for p in self.model.parameters():
            p.data = np.ascontiguousarray(p.data)
            self.ranks.from_first(p.data)
        return super().run(steps)

    def save(self, path: StrPath) -> None:
        """Write the checkpoint of the run; rank 0 writes, and every rank must call this."""
        with self._shard.whole() if self._shard else nullcontext():
            if self.ranks.rank == 0:
                super().save(path)
        self.ranks.sum(np.zeros(1))  # no rank continues or ends before the file is written

    def load(self, path: StrPath, strict: bool = True) -> None:
        """Resume from a checkpoint that rank 0 can read; every rank must call this.

        Raises:
            FileNotFoundError: there is no such file, on rank 0.
            ValueError: as for `Trainer`.
        """
        content = self.ranks.bytes_from_first(
            Path(path).read_bytes() if self.ranks.rank == 0 else b""
        )
        with tempfile.TemporaryDirectory() as folder:
            own = Path(folder) / "checkpoint"
            own.write_bytes(content)
            try:
                with self._shard.whole() if self._shard else nullcontext():
                    super().load(own, strict)
            except ValueError as error:
                raise ValueError(str(error).replace(str(own), os.fspath(path))) from None

    # What differs from a single process ---------------------------------------------------------

    def _step(self) -> dict[str, Any]:
        """Take one step, with the gradients of all ranks averaged before they are clipped."""
        began, waited = time.perf_counter(), self.ranks.waited
        self.model.train()
        self.model.zero_grad()
        with drawing_whole_batches(self.model, self.ranks, self.batches.batch_size):
            loss = self._backward_of_own_rows()
        loss, used = self._sums_over_ranks(loss)
        self._check_loss(loss)
        self._average(used)
        shard, limit = self._shard, self._max_norm
        norm = shard.clip(limit) if shard else clip_grad_norm(self.optimizer.params, limit)
        self.optimizer.lr = self._learning_rate()
        if shard:
            shard.step(self._flat)
        else:
            self.optimizer.step()
        self.times.append((time.perf_counter() - began, self.ranks.waited - waited))
        return self._record(loss, norm)

    def _backward_of_own_rows(self) -> float:
        """The mean loss of this rank's rows; if it is not finite, all ranks stop."""
        own = self.batches.batch_size // self.ranks.size
        rows = slice(self.ranks.rank * own, (self.ranks.rank + 1) * own)
        total = 0.0
        for part in range(self.accumulate):
            inputs, targets = self.batches[self.step_number * self.accumulate + part]
            loss = cross_entropy(self.model(inputs[rows]), targets[rows]) * (1 / self.accumulate)
            total += loss.item()
            if not math.isfinite(total):
                break
            loss.backward()
        return total

    def _sums_over_ranks(self, loss: float) -> tuple[float, list[bool]]:
        """The mean loss of all ranks, and for each parameter whether any of them has a gradient."""
        found = np.array([loss, *(p.grad is not None for p in self.optimizer.params)])
        self.ranks.sum(found)
        return float(found[0]) / self.ranks.size, [bool(anywhere) for anywhere in found[1:]]

    def _average(self, anywhere: list[bool]) -> None:
        """Replace the gradients by their averages; a shard takes only its part."""
        params, flat = self.optimizer.params, self._flat
        for p, cut in zip(params, self._cuts, strict=True):
            if isinstance(p.grad, RowSparse):
                remedy = "make the Embedding with sparse=False"
                raise TypeError(f"row-sparse gradients have no place in one flat array; {remedy}")
            flat[cut] = 0 if p.grad is None else p.grad.ravel()
        if self._shard:
            self._shard.take(self.ranks.sum_of_own_part(flat) / self.ranks.size, anywhere)
            return
        self.ranks.sum(flat)
        flat /= self.ranks.size
        for p, cut, some in zip(params, self._cuts, anywhere, strict=True):
            p.grad = flat[cut].reshape(p.shape) if some else None

    def _note_changes(self) -> None:
        with self._shard.whole() if self._shard else nullcontext():
            super()._note_changes()

    def _evaluate(self, inputs: Any, targets: Any) -> float:
        own = slice(self.ranks.rank, None, self.ranks.size)  # may be empty
        share = len(targets[own])
        mean = super()._evaluate(inputs[own], targets[own]) if share else 0.0
        total = np.array([mean * share, share])
        self.ranks.sum(total)
        return float(total[0] / total[1])

    def _stops(self, interrupts: list[int]) -> bool:
        noted = np.array(len(interrupts))
        self.ranks.sum(noted)
        return bool(noted)
