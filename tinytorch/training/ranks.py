"""The processes of one training run, which exchange arrays by MPI."""

from __future__ import annotations

import json
import os
import sys
import time
import zlib
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["RankLost", "Ranks"]

PATIENCE = 600.0  # seconds
TOGETHER = 10.0  # seconds from the first rank that ends with a message to the last
INSTALL = "pip install mpi4py mpich"
NUMBERS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")  # where launchers write a rank
TOTALS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


class RankLost(RuntimeError):
    """Another rank has ended, or no longer answers."""


class Ranks:
    """The processes of one run, seen from one of them.

    Nothing here waits forever: each wait checks whether the run is still complete, and raises
    `RankLost` if another rank has ended, or has not answered for `patience` seconds.

    Args:
        comm: an mpi4py communicator.
        patience: seconds to wait for the slowest rank.

    Attributes:
        rank: the number of this process, from 0.
        size: how many there are.
        waited: seconds spent in communication.
    """

    def __init__(self, comm: Any, patience: float = PATIENCE) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self._apart = comm.Dup()  # never used by the work itself
        self._in_place = None if isinstance(comm, OnlyRank) else _mpi().IN_PLACE
        self.patience, self.waited = patience, 0.0
        self._parent = os.getppid()

    def sum(self, array: np.ndarray) -> None:
        """Replace an array, in place, by its sum over all ranks."""
        self._finish(self.comm.Iallreduce(self._in_place, array))

    def sum_of_own_part(self, array: np.ndarray) -> np.ndarray:
        """This rank's part of the sum over all ranks: the array is cut into one part for each."""
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
        """The bytes that rank 0 passed."""
        length = np.array(len(data))
        self.from_first(length)
        content = np.zeros(int(length), np.uint8)
        if self.rank == 0:
            content[:] = np.frombuffer(data, np.uint8)
        self.from_first(content)
        return content.tobytes()

    def check_alike(self, facts: dict[str, str]) -> None:
        """Raise on every rank unless all ranks have the same facts.

        Raises:
            ValueError: a rank differs from rank 0; the message names the first, and both values.
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
        """Whether all ranks end now with the same message; a rank that goes on has none."""
        own = np.array([zlib.crc32(words.encode())])
        found = np.zeros(self.size, own.dtype)
        request = self._apart.Iallgather(own, found)
        until = time.monotonic() + min(TOGETHER, self.patience)
        while not request.Test():
            if time.monotonic() > until or os.getppid() != self._parent:
                return False
            time.sleep(0.0005)
        return bool((found == own).all())

    def _finish(self, request: Any) -> None:
        """Wait for a request, as long as all ranks are there."""
        began = now = time.perf_counter()
        while not request.Test():
            if os.getppid() != self._parent:  # ended by mpiexec, as when a rank fails
                raise RankLost("another rank has ended, and said why if it could")
            if now - began > self.patience:
                raise RankLost(f"the other ranks have not answered for {self.patience:g} seconds")
            time.sleep(0 if now - began < 0.1 else 0.0005)
            now = time.perf_counter()
        self.waited += time.perf_counter() - began


class OnlyRank:
    """What a communicator does for a single rank, without MPI; it is its own finished request."""

    rank, size = 0, 1

    def Iallreduce(self, own: np.ndarray | None, whole: np.ndarray) -> OnlyRank:
        if own is not None:  # it is in place
            whole[...] = own
        return self

    Iallgather = Ireduce_scatter_block = Iallreduce

    def Ibcast(self, array: np.ndarray, root: int) -> OnlyRank:
        return self

    def Dup(self) -> OnlyRank:
        return self

    def Test(self) -> bool:
        return True


def connected(patience: float) -> Ranks:
    """All ranks of this run."""
    expected = started()
    try:
        comm = _mpi().COMM_WORLD
    except (ImportError, RuntimeError) as error:
        if expected == 1:
            return Ranks(OnlyRank(), patience)
        raise OSError(f"there is no MPI for {sys.executable} ({error}); {INSTALL}") from None
    if expected not in (None, comm.size):
        what = f"mpiexec has started {expected} processes, mpi4py sees {comm.size}"
        why = "they belong to different MPI installations"
        raise OSError(f"{what}: {why}; use the mpiexec beside {sys.executable}")
    return Ranks(comm, patience)


def _mpi() -> ModuleType:
    from mpi4py import MPI

    return MPI


def started() -> int | None:
    """How many processes a launcher has started; 1 without one, None if it does not say."""
    totals = [int(os.environ[name]) for name in TOTALS if name in os.environ]
    return totals[0] if totals else None if any(n in os.environ for n in NUMBERS) else 1
