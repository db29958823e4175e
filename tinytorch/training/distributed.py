"""One training run over several processes, on one machine or on many, by MPI.

    mpiexec -n 4 python -m tinytorch.training.distributed --steps 200 --checkpoint run.safetensors

trains the story GPT in four processes, the *ranks*; over two machines:

    python -m tinytorch.training.distributed --hosts first,second --ranks 4 --steps 200

which starts `mpiexec -hosts first,second -n 4` by ssh: each machine needs the package and the same
Python at the same path, and rank 0, on the first of them, keeps the checkpoint. The same command
resumes from it, with any number of ranks. The extra `mpi` brings all that is needed,
as does `pip install mpi4py mpich`; one rank alone needs neither. `--help` lists the options.

A script of one's own needs two names. Every rank runs all of it, and sees the whole batches:

    from tinytorch.training.distributed import RankTrainer, run_ranks

    run_ranks(lambda ranks: RankTrainer(ranks, model, batches).run(200))
"""

import argparse
import copy
import json
import math
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tinytorch.core.atomic_files import StrPath, write_atomically
from tinytorch.core.command_line import file_name, real, run_command, whole
from tinytorch.core.layers import Module
from tinytorch.core.optimizers import AdamW, Optimizer, clip_grad_norm, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.core.seeding import default_rng, drawing_from, manual_seed
from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import GPT
from tinytorch.text.batches import Batches
from tinytorch.training.resuming import generators
from tinytorch.training.story_gpt import SEQ_LEN, VOCAB_SIZE, story_batches, story_windows
from tinytorch.training.trainer import Trainer

__all__ = ["RankLost", "RankTrainer", "Ranks", "measured_ranks", "run_ranks"]

_CHILD = "TINYTORCH_RANK_OF"  # set for the process that trains: who waits for its end
_PATIENCE = 600.0  # seconds
_GRACE = 2.0  # seconds for a last word
_TOGETHER = 10.0  # seconds from the first rank that ends with some words to the last
_MEASURED = Path(__file__).with_name("data") / "ranks.json"
_INSTALL = "pip install mpi4py mpich"
_NUMBERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # where launchers write a rank
_TOTALS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


class RankLost(RuntimeError):
    """Another rank has ended, or no longer answers."""


class Ranks:
    """The processes of one run, seen from one of them.

    Nothing here waits for ever: a wait looks whether the run is still whole, and raises `RankLost`
    if another rank has ended, or has not answered for `patience` seconds.

    Args:
        comm: an mpi4py communicator.
        patience: seconds to wait for the slowest rank.

    Attributes:
        rank: the number of this process, from 0.
        size: how many there are.
        waited: seconds spent in communication.
    """

    def __init__(self, comm: Any, patience: float = _PATIENCE) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self._apart = comm.Dup()  # where nothing of the work is under way
        self._in_place = None if isinstance(comm, _OnlyRank) else _mpi().IN_PLACE
        self.patience, self.waited = patience, 0.0
        self._parent = os.getppid()

    def sum(self, array: np.ndarray) -> None:
        """Replace an array, in place, by its sum over all ranks."""
        self._finish(self.comm.Iallreduce(self._in_place, array))

    def sum_of_own_part(self, array: np.ndarray) -> np.ndarray:
        """Of the sum over all ranks this rank's part: the array cut into as many as there are."""
        own = np.empty(len(array) // self.size, array.dtype)
        self._finish(self.comm.Ireduce_scatter_block(array, own))
        return own

    def join_parts(self, own: np.ndarray, whole: np.ndarray) -> None:
        """Fill an array with the parts of all ranks, one after the other."""
        self._finish(self.comm.Iallgather(own, whole))

    def from_first(self, array: np.ndarray) -> None:
        """Replace an array, in place, by that of rank 0."""
        self._finish(self.comm.Ibcast(array, root=0))

    def bytes_from_first(self, data: bytes) -> bytes:
        """What rank 0 passed."""
        length = np.array(len(data))
        self.from_first(length)
        content = np.zeros(int(length), np.uint8)
        if self.rank == 0:
            content[:] = np.frombuffer(data, np.uint8)
        self.from_first(content)
        return content.tobytes()

    def check_alike(self, facts: dict[str, str]) -> None:
        """Raise on every rank unless all have the same facts.

        Raises:
            ValueError: some rank has others than rank 0; the first such rank is named with both.
        """
        text = json.dumps(facts).encode()
        lengths = np.zeros(self.size, np.int64)
        self.join_parts(np.array([len(text)]), lengths)
        rows = np.zeros((self.size, lengths.max()), np.uint8)
        own = np.frombuffer(text.ljust(lengths.max()), np.uint8)
        self.join_parts(own, rows)
        first, *others = (json.loads(row.tobytes()) for row in rows)
        for number, theirs in enumerate(others, 1):
            names = [name for name in {**first, **theirs} if first.get(name) != theirs.get(name)]
            if names:
                lines = (f"\n  {n}: {first.get(n)} in rank 0, {theirs.get(n)} there" for n in names)
                rule = "all ranks need the same versions, options and data"
                raise ValueError(f"rank {number} differs from rank 0; {rule}:{''.join(lines)}")

    def all_end_with(self, words: str) -> bool:
        """Whether all ranks end now, and with the same words; one that goes on says nothing."""
        own = np.array([zlib.crc32(words.encode())])
        found = np.zeros(self.size, own.dtype)
        request = self._apart.Iallgather(own, found)
        until = time.monotonic() + min(_TOGETHER, self.patience)
        while not request.Test():
            if time.monotonic() > until or os.getppid() != self._parent:
                return False
            time.sleep(0.0005)
        return bool((found == own).all())

    def _finish(self, request: Any) -> None:
        """Wait for a request, as long as all ranks are there."""
        began = now = time.perf_counter()
        while not request.Test():
            if os.getppid() != self._parent:  # mpiexec has ended it, as it does when one fails
                raise RankLost("another rank has ended, and said why if it could")
            if now - began > self.patience:
                raise RankLost(f"the other ranks have not answered for {self.patience:g} seconds")
            time.sleep(0 if now - began < 0.1 else 0.0005)
            now = time.perf_counter()
        self.waited += time.perf_counter() - began


class _OnlyRank:
    """What a communicator does for a single rank, without MPI; it is its own finished request."""

    rank, size = 0, 1

    def Iallreduce(self, own: np.ndarray | None, whole: np.ndarray) -> "_OnlyRank":
        if own is not None:  # it is in place
            whole[...] = own
        return self

    Iallgather = Ireduce_scatter_block = Iallreduce

    def Ibcast(self, array: np.ndarray, root: int) -> "_OnlyRank":
        return self

    def Dup(self) -> "_OnlyRank":
        return self

    def Test(self) -> bool:
        return True


class RankTrainer(Trainer):
    """`Trainer`, with the rows of each batch shared among the ranks of a run.

    The run is that of one process: the gradients are averaged over the ranks before they are
    clipped, dropout is drawn for the whole batch, the validation windows are shared too, and the
    checkpoint is the one that `Trainer` writes. So a run may go on with another number of ranks.
    Losses differ by rounding alone. Rank 0 alone writes and shows progress.

    Args:
        ranks: the processes of the run, from `run_ranks`.
        model: as for `Trainer`; rank 0's weights are everybody's.
        batches: the whole batches. Every rank reads all of them and takes its rows.
        shard_optimizer: whether each rank keeps the optimiser's state for its share of the
            parameters alone (ZeRO stage 1; Rajbhandari et al., 2020). While a checkpoint is
            written or read, every rank has the whole of it.
        options: as for `Trainer`.

    Attributes:
        times: for each step of this process, its seconds, and those of them spent waiting.

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
        self._shard = _Shard(self.optimizer, self._cuts, ranks) if shard_optimizer else None

    def run(self, steps: int) -> list[dict[str, Any]]:
        """Train for more steps, as `Trainer.run` does.

        Raises:
            RankLost: another rank has ended. What was saved last can be resumed.
            ValueError: the ranks differ in version, settings or data.
        """
        shapes = {name: str(p.shape) for name, p in self.model.named_parameters()}
        versions = {"tinytorch": sys.modules["tinytorch"].__version__, "NumPy": np.__version__}
        counts = {"steps": steps, "eval_every": self.eval_every, "save_every": self.save_every}
        counts |= {"step_number": self.step_number, "sharded": self._shard is not None}
        named = {name: str(count) for name, count in counts.items()}
        self.ranks.check_alike({**versions, **named, **self._settings(), **shapes})
        for p in self.model.parameters():
            p.data = np.ascontiguousarray(p.data)
            self.ranks.from_first(p.data)
        return super().run(steps)

    def save(self, path: StrPath) -> None:
        """Write the checkpoint of the run: rank 0 does, and all must call."""
        with self._shard.whole() if self._shard else nullcontext():
            if self.ranks.rank == 0:
                super().save(path)
        self.ranks.sum(np.zeros(1))  # no rank goes on, or ends, before the file is there

    def load(self, path: StrPath, strict: bool = True) -> None:
        """Resume from a checkpoint that rank 0 can read; all must call.

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

    # What ranks do in another way than one process ---------------------------------------------

    def _step(self) -> dict[str, Any]:
        began, before = time.perf_counter(), self.ranks.waited
        record = super()._step()
        self.times.append((time.perf_counter() - began, self.ranks.waited - before))
        return record

    def _backward(self) -> float:
        with _drawing_whole_batches(self.model, self.ranks, self.batches.batch_size):
            loss = super()._backward()
        params = self.optimizer.params
        found = np.array([loss, *(p.grad is not None for p in params)])
        self.ranks.sum(found)
        if math.isfinite(found[0]):
            self._average([bool(anywhere) for anywhere in found[1:]])
        return float(found[0]) / self.ranks.size

    def _average(self, anywhere: list[bool]) -> None:
        """Replace the gradients by their averages, of which a shard takes its part."""
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

    def _batch(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        own = self.batches.batch_size // self.ranks.size
        rows = slice(self.ranks.rank * own, (self.ranks.rank + 1) * own)
        inputs, targets = self.batches[number]
        return inputs[rows], targets[rows]

    def _clip(self, limit: float) -> float:
        return self._shard.clip(limit) if self._shard else super()._clip(limit)

    def _update(self) -> None:
        if self._shard:
            self._shard.step(self._flat)
        else:
            super()._update()

    def _evaluate(self, inputs: Any, targets: Any) -> float:
        own = slice(self.ranks.rank, None, self.ranks.size)  # may be none
        share = len(targets[own])
        mean = super()._evaluate(inputs[own], targets[own]) if share else 0.0
        total = np.array([mean * share, share])
        self.ranks.sum(total)
        return float(total[0] / total[1])

    def _stops(self, interrupts: list[int]) -> bool:
        noted = np.array(len(interrupts))
        self.ranks.sum(noted)
        return bool(noted)


class _Shard:
    """A rank's part of an optimiser: that of a piece of the flat array of all parameters."""

    def __init__(self, whole: Optimizer, cuts: list[slice], ranks: Ranks) -> None:
        self.optimizer, self.cuts, self.ranks = whole, cuts, ranks
        size = -(-cuts[-1].stop // ranks.size)
        self.begin, self.end = size * ranks.rank, size * (ranks.rank + 1)
        self.own = copy.copy(whole)  # shares the count of steps
        self.pieces = [  # number of a parameter, and what of it is here
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
        squares = np.zeros(1)
        for p in self.own.params:
            if p.grad is not None:
                squares += float(np.vdot(p.grad, p.grad))
        self.ranks.sum(squares)
        norm = Tensor([0.0], requires_grad=True, dtype=np.float64)
        norm.grad = np.sqrt(squares)
        before = clip_grad_norm([norm], limit)
        for p in self.own.params:
            if p.grad is not None and before > limit:
                p.grad = p.grad * (limit / before)
        return before

    def step(self, flat: np.ndarray) -> None:
        """Update the own part, and give and take the others; `flat` has room for all."""
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
        for name in self._states():
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
        """Keep of the state what belongs to the own part."""
        if hasattr(self.optimizer, "decays"):
            vars(self.own)["decays"] = [self.optimizer.decays[i] for i, _ in self.pieces]
        for name in self._states():
            arrays = getattr(self.optimizer, name)
            setattr(self.own, name, [arrays[i].reshape(-1)[cut].copy() for i, cut in self.pieces])
            setattr(self.optimizer, name, [np.zeros(0)] * len(arrays))

    def _states(self) -> list[str]:
        """The names of the optimiser's lists of arrays, one array a parameter."""
        return [
            name
            for name, value in vars(self.optimizer).items()
            if isinstance(value, list) and value and isinstance(value[0], np.ndarray)
        ]


class _WholeBatch(np.random.Generator):
    """Draws for the whole batch what is as long as this rank's share, and keeps its rows.

    Every rank's generator so moves on as that of one process does, and all remain alike.
    """

    def __init__(self, bits: Any, ranks: Ranks, rows: int) -> None:
        super().__init__(bits)
        self._rows, self._ranks = rows, ranks

    def _draw(self, draw: Callable[..., Any], size: Any, **options: Any) -> Any:
        if np.ndim(size) != 1 or not len(size) or size[0] != self._rows:
            return draw(size=size, **options)
        whole = draw(size=(size[0] * self._ranks.size, *size[1:]), **options)
        return whole[self._ranks.rank * self._rows :][: self._rows]

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._draw(super().random, size, dtype=dtype)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return self._draw(super().uniform, size, low=low, high=high)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return self._draw(super().normal, size, loc=loc, scale=scale)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._draw(super().standard_normal, size, dtype=dtype)


@contextmanager
def _drawing_whole_batches(model: Module, ranks: Ranks, batch_size: int) -> Iterator[None]:
    """A context in which dropout is that of the whole batch."""
    share, held = batch_size // ranks.size, generators(model).values()
    for part, attribute, rng in held:
        vars(part)[attribute] = _WholeBatch(rng.bit_generator, ranks, share)
    try:
        with drawing_from(_WholeBatch(default_rng().bit_generator, ranks, share)):
            yield
    finally:
        for part, attribute, rng in held:
            vars(part)[attribute] = rng


# Starting and ending ---------------------------------------------------------------------------


def run_ranks(work: Callable[[Ranks], Any], patience: float = _PATIENCE) -> None:
    """Run the same work in every rank, and see to it that all of them end.

    A script that says this is started by `mpiexec -n 4 python script.py`; without `mpiexec` it is
    a single rank. mpiexec ends every process it has started as soon as one of them fails, without
    a word. Therefore the work is done by a process that this one starts and waits for: when
    its rank fails, it says why, and when another one's does, it has the time to say that. Over
    several machines, a killed rank's own machine says so; what the others say may be lost.

    Args:
        work: what to do, given the ranks.
        patience: how many seconds a rank waits for the slowest one.

    Raises:
        SystemExit: the work is done, with 0, or any rank has failed.

    Example:
        >>> def work(ranks):
        ...     RankTrainer(ranks, model, batches).run(200)
        >>> run_ranks(work)  # doctest: +SKIP
    """
    if not hasattr(os, "fork"):
        if _started() != 1:
            remedy = "on Windows, use its Linux (WSL)"
            sys.exit(f"several ranks need Linux or macOS; {remedy}")
        sys.exit(_work(work, lambda: Ranks(_OnlyRank())))
    parent, told = (int(number) for number in os.environ.get(_CHILD, "0 0").split())
    if parent != os.getppid():
        code = _start_and_wait(patience)
        if code < 0:  # all ranks have ended in the same way, and said so
            sys.exit(-code)
        if code and any(name in os.environ for name in _NUMBERS):
            # A signal makes mpiexec end the ranks on all machines; of a code it takes no notice.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        sys.exit(code)

    def connected() -> Ranks:
        ranks = _connected(patience)
        os.write(told, b"1")
        return ranks

    end = _work(work, connected)
    if end > 0:
        os._exit(end)  # MPI's own ending would wait for the ranks that are gone
    sys.exit(100 - end if end else 0)


def _work(work: Callable[[Ranks], Any], connect: Callable[[], Ranks]) -> int:
    """Do a rank's work: 0, or how it ended; as a negative number if all have ended so.

    What all ranks would say is said by rank 0 alone.
    """
    ranks = None
    try:
        ranks = connect()
        work(ranks)
        return 0
    except KeyboardInterrupt as stopped:
        code, words, common = 130, str(stopped) or "stopped", True
    except Exception as error:
        common = isinstance(error, (ValueError, OSError, FloatingPointError, TypeError))
        known = common or isinstance(error, RankLost)
        code, words = 1, str(error) if known else f"{type(error).__name__}: {error}"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first = ranks is None or ranks.rank == 0
    if first:
        _say(ranks, words)
    alike = common and ranks is not None and ranks.all_end_with(words)
    if not (first or alike):
        _say(ranks, words)
    return -code if alike else code


def _start_and_wait(patience: float) -> int:
    """Run this program again, in a group of its own that mpiexec does not know, and wait.

    Returns:
        Its exit status; that of a failure of all ranks in the same way as a negative number.
    """
    heard, told = os.pipe()  # one byte when MPI has started; closed at the end
    os.set_inheritable(told, True)
    threads = {"OPENBLAS_NUM_THREADS": "1", **os.environ}  # the cores belong to the ranks
    command = [sys.executable, *sys.orig_argv[1:]]
    environment = {**threads, _CHILD: f"{os.getpid()} {told}"}
    child = subprocess.Popen(command, env=environment, close_fds=False, process_group=0)
    os.close(told)
    if not os.fork():
        _watch(child.pid, heard, patience)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: child.send_signal(number))
    code = child.wait()
    if code in (101, 230):
        return 100 - code
    if code >= 0:
        return code
    hint = "; a machine without memory does that too" if code == -signal.SIGKILL else ""
    _say(None, f"its process was ended by {signal.Signals(-code).name}{hint}")
    return 128 - code


def _watch(child: int, heard: int, patience: float) -> NoReturn:
    """End a rank that cannot notice by itself that the run is broken.

    It may be computing when mpiexec has ended its parent, or MPI may be waiting for a rank that
    never starts, which nothing interrupts.
    """
    parent, until, reason = os.getppid(), time.monotonic() + patience, ""
    os.setpgid(0, 0)
    while not reason:
        if select.select([heard], [], [], 0.1)[0]:
            if not os.read(heard, 1):
                os._exit(0)
            until = math.inf
        if os.getppid() != parent and not select.select([heard], [], [], _GRACE)[0]:
            reason = "another rank has ended while this one was busy"
        if time.monotonic() > until:
            reason = f"MPI has not started within {patience:g} seconds: a rank is missing"
    _say(None, reason)
    for number in (signal.SIGTERM, signal.SIGCONT):
        os.kill(child, number)
    os._exit(0)


def _connected(patience: float) -> Ranks:
    """All ranks of this run.

    Raises:
        OSError: there is no MPI, or not the one that has started this process.
    """
    started = _started()
    try:
        comm = _mpi().COMM_WORLD
    except (ImportError, RuntimeError) as error:
        if started == 1:
            return Ranks(_OnlyRank(), patience)
        raise OSError(f"there is no MPI for {sys.executable} ({error}); {_INSTALL}") from None
    if started not in (None, comm.size):
        what = f"mpiexec has started {started} processes, mpi4py sees {comm.size}"
        raise OSError(f"{what}: they are of two MPIs; use the mpiexec beside {sys.executable}")
    return Ranks(comm, patience)


def _mpi() -> Any:
    from mpi4py import MPI

    return MPI


def _started() -> int | None:
    """How many processes a launcher has started; 1 without one, None if it does not say."""
    totals = [int(os.environ[name]) for name in _TOTALS if name in os.environ]
    return totals[0] if totals else None if any(n in os.environ for n in _NUMBERS) else 1


def _say(ranks: Ranks | None, what: str) -> None:
    """One line to standard error that says who says it, if there are several."""
    number = next((os.environ[name] for name in _NUMBERS if name in os.environ), "0")
    who = f"rank {number if ranks is None else ranks.rank}: "
    with suppress(OSError):  # mpiexec may be gone already
        sys.stderr.write(f"{'' if ranks and ranks.size == 1 else who}{what}\n")
        sys.stderr.flush()


def measured_ranks() -> dict[str, Any]:
    """The times of training steps on several ranks that the book shows, and their machine.

    Returns:
        `machine`, a dictionary of texts, and `runs`: one dictionary each with `scaling` (strong or
        weak), `width`, `layers`, `ranks`, `batch`, and the seconds of a `step` and, of these, of
        `waiting`.

    Example:
        >>> sorted({run["ranks"] for run in measured_ranks()["runs"]})
        [1, 2, 4]
    """
    return json.loads(_MEASURED.read_text())


# The command -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tinytorch.training.distributed",
        description="Train the story GPT, in one process or in several ranks.",
    )

    def add(name: str, read: Any, default: Any, text: str, kind: str = "N") -> None:
        shown = "" if default is None else f" ({default})"
        parser.add_argument(name, type=read, default=default, metavar=kind, help=text + shown)

    add("--steps", whole(1), 200, "of the whole run, those of a checkpoint included")
    add("--batch-size", whole(1), 8, "rows of a batch, of all ranks together")
    add("--accumulate", whole(1), 1, "batches in a step")
    add("--dropout", real(0, 1, without=1), 0.0, "share that training drops", "X")
    add("--embed-dim", _width, 64, "the model's width; its heads are 16 wide")
    add("--layers", whole(1), 2, "blocks of the model")
    add("--learning-rate", real(0), 6e-3, "the highest rate, after a tenth of the steps", "X")
    add("--num-stories", whole(2), 20_000, "to train on")
    add("--seed", whole(0), 0, "of the first weights")
    add("--checkpoint", file_name, None, "resume from it if it is there, and save to it", "FILE")
    add("--save-every", whole(1), 100, "steps from one checkpoint to the next")
    add("--eval-every", whole(1), 100, "steps from one evaluation to the next")
    parser.add_argument("--shard-optimizer", action="store_true",
                        help="each rank keeps its part of the state")  # fmt: skip
    add("--patience", real(0, without=0), _PATIENCE, "seconds to wait for the slowest rank", "X")
    add("--report", file_name, None, "write the losses and times to it, as JSON", "FILE")
    add("--ranks", whole(1), None, "start this many ranks with mpiexec")
    add("--hosts", _hosts, None, "on these machines", "A,B")
    return parser


def _width(text: str) -> int:
    width = whole(1)(text)
    heads = max(1, width // 16)
    if width % (2 * heads):
        what = f"{width} does not divide into {heads} heads of an even width"
        raise argparse.ArgumentTypeError(f"{what}; take a multiple of 16")
    return width


def _hosts(text: str) -> str:
    if not all(re.fullmatch(r"\w[\w.:-]*", host) for host in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of machines such as first,second")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, or becomes mpiexec."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    return run_command(lambda: _begin(options, arguments))


def _begin(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    if options.hosts or (options.ranks or 1) > 1:
        _launch(options, _without_launch(arguments))
    run_ranks(lambda ranks: _train(ranks, options), options.patience)


def _launch(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    """Become an mpiexec that starts this command on the machines named.

    Raises:
        OSError: there is no mpiexec.
    """
    mpiexec = Path(sys.executable).with_name("mpiexec")
    found = str(mpiexec) if mpiexec.exists() else shutil.which("mpiexec")
    if found is None:
        raise OSError(f"no mpiexec beside {sys.executable} or on the PATH; {_INSTALL}")
    hosts = ["-hosts", options.hosts] if options.hosts else []
    ranks = options.ranks or len(options.hosts.split(","))
    module = [sys.executable, "-m", "tinytorch.training.distributed"]
    os.execv(found, [found, *hosts, "-n", str(ranks), *module, *arguments])


def _without_launch(arguments: Sequence[str]) -> list[str]:
    """The arguments that are for the ranks."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--ranks")
    parser.add_argument("--hosts")
    return parser.parse_known_args(arguments)[1]


class _CommandTrainer(RankTrainer):
    """A trainer that keeps the command's options in its checkpoints, and names what differs."""

    remedy = "repeat the options of that run, or name another --checkpoint"

    def __init__(self, ranks: Ranks, options: argparse.Namespace, *given: Any, **more: Any) -> None:
        self.options = {
            f"--{name.replace('_', '-')}": str(vars(options)[name]) for name in _OF_THE_RUN
        }
        super().__init__(ranks, *given, **more)

    def _settings(self) -> dict[str, str]:
        return {**super()._settings(), **self.options}

    def _check_settings(self, saved: dict[str, str]) -> None:
        there = {name: saved.get(name, own) for name, own in self.options.items()}  # or of old
        wrong = [f"{n} {there[n]}, not {own}" for n, own in self.options.items() if there[n] != own]
        if wrong:
            raise ValueError(f"its run has {', and '.join(wrong)}; {self.remedy}")
        super()._check_settings({**self.options, **saved})


# What a run must keep from its beginning to its end.
_OF_THE_RUN = (
    "steps", "batch_size", "accumulate", "dropout", "embed_dim", "layers", "learning_rate",
    "num_stories", "seed",
)  # fmt: skip


def _train(ranks: Ranks, options: argparse.Namespace) -> None:
    """Train a story GPT, in the size and for as long as the options say."""
    manual_seed(options.seed)
    width, held_out = options.embed_dim, story_windows()
    model = GPT(
        VOCAB_SIZE, width, options.layers, max(1, width // 16), SEQ_LEN, pos_encoding="rotary",
        init_std=0.8 / width**0.5, dropout=options.dropout, rng=options.seed,
    )  # fmt: skip
    trainer = _CommandTrainer(
        ranks, options, model, story_batches(options.batch_size, num_stories=options.num_stories),
        optimizer=AdamW(
            model.parameters(), betas=(0.9, 0.99), weight_decay=0.01, decay=only_matrices
        ),
        schedule=CosineSchedule(options.learning_rate, options.steps // 10, options.steps),
        accumulate=options.accumulate, shard_optimizer=options.shard_optimizer,
        validation=(held_out.inputs, held_out.targets), floor=float(held_out.floor.mean()),
        eval_every=options.eval_every, checkpoint=options.checkpoint, save_every=options.save_every,
    )  # fmt: skip
    begun = ranks.rank == 0 and options.checkpoint is not None and options.checkpoint.exists()
    if ranks.bytes_from_first(b"yes" if begun else b""):
        trainer.load(options.checkpoint)
    _go_on(trainer, options)
    if options.report and ranks.rank == 0:
        step, waiting = np.median(trainer.times or [(0, 0)], axis=0).tolist()  # seconds
        report = {"step": step, "waiting": waiting, "history": trainer.history}
        write_atomically(options.report, json.dumps(report).encode())


def _go_on(trainer: RankTrainer, options: argparse.Namespace) -> None:
    """Take the steps that are still to be taken."""
    left = options.steps - trainer.step_number
    if left <= 0 and trainer.ranks.rank == 0:
        sys.stdout.write(f"{options.checkpoint}: all {options.steps} steps are done already\n")
    try:
        if left > 0:
            trainer.run(left)
    except KeyboardInterrupt:
        kept = "the same command goes on from there" if options.checkpoint else "nothing is kept"
        step = f"stopped after step {trainer.step_number} of {options.steps}"
        raise KeyboardInterrupt(f"{step}; {kept}") from None


if __name__ == "__main__":
    sys.exit(main())
