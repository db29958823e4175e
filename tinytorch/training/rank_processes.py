"""How the processes of a run start and end: all together, and each with a reason.

mpiexec ends every process that it has started as soon as one fails, without a message. So each of
them starts another process, which does the work, and waits for it.
"""

import math
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

from tinytorch.training.ranks import (
    NUMBERS,
    PATIENCE,
    OnlyRank,
    RankLost,
    Ranks,
    connected,
    started,
)

__all__ = ["run_ranks"]

_CHILD = "TINYTORCH_RANK_OF"  # set for the process that trains: the process that waits for it
_GRACE = 2.0  # seconds for a last message


def run_ranks(work: Callable[[Ranks], Any], patience: float = PATIENCE) -> None:
    """Run the same work in every rank, and make sure that all of them end.

    Start a script that calls this with `mpiexec -n 4 python script.py`; without `mpiexec` there is
    a single rank. mpiexec ends every process it has started as soon as one of them fails, without
    a message. Therefore this process starts another one, which does the work, and waits for it:
    when its own rank fails, it reports why, and when another rank fails, it has time to report
    that. Over several machines, a killed rank's own machine reports it; other reports may be lost.

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
        if started() != 1:
            remedy = "on Windows, use its Linux (WSL)"
            sys.exit(f"several ranks need Linux or macOS; {remedy}")
        sys.exit(_work(work, lambda: Ranks(OnlyRank())))
    parent, told = (int(number) for number in os.environ.get(_CHILD, "0 0").split())
    if parent != os.getppid():
        code = _start_and_wait(patience)
        if code < 0:  # all ranks have ended in the same way, and reported it
            sys.exit(-code)
        if code and any(name in os.environ for name in NUMBERS):
            # A signal makes mpiexec end the ranks on all machines; it ignores an exit code.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        sys.exit(code)

    def connect() -> Ranks:
        ranks = connected(patience)
        os.write(told, b"1")
        return ranks

    end = _work(work, connect)
    if end > 0:
        os._exit(end)  # MPI's own shutdown would wait for ranks that are gone
    sys.exit(100 - end if end else 0)


def _work(work: Callable[[Ranks], Any], connect: Callable[[], Ranks]) -> int:
    """Do a rank's work: its exit status, negated if all ranks have ended in the same way.

    A message that all ranks share is printed only by rank 0.
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
    """Run this program again, in a separate process group unknown to mpiexec, and wait.

    Returns:
        Its exit status, negated if all ranks have failed in the same way.
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
    """End a rank that cannot detect by itself that the run is broken.

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


def _say(ranks: Ranks | None, what: str) -> None:
    """Write one line to standard error, with the rank if there are several."""
    number = next((os.environ[name] for name in NUMBERS if name in os.environ), "0")
    who = f"rank {number if ranks is None else ranks.rank}: "
    with suppress(OSError):  # mpiexec may be gone already
        sys.stderr.write(f"{'' if ranks and ranks.size == 1 else who}{what}\n")
        sys.stderr.flush()
