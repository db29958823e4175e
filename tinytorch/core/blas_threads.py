"""One thread for NumPy's products in commands, and a hint where several slow each other down.

Threads that share a small matrix wait for each other in a loop; when another program takes a
processor from one of them, all wait. With two busy processors a step took 7 to 20 times as long.

NumPy's BLAS reads the number when it is loaded. So `tinytorch/__init__.py` imports this module
first: `python -m tinytorch...` begins with one thread, unless the environment says otherwise.
Programs that import it, and the commands that run published models, keep theirs: for large
matrices.
"""

import os
import re
import sys
import time

#: What OpenBLAS, MKL, OpenMP and Apple's Accelerate read; if one is set, all are left alone.
VARIABLES = (
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
HINT = (
    "NumPy's threads seem to slow each other down: "
    "set OPENBLAS_NUM_THREADS=1 before NumPy is imported"
)


def is_chosen() -> bool:
    """Whether the environment says how many threads there are."""
    return any(name in os.environ for name in VARIABLES)


def clocks() -> tuple[float, float, float]:
    """Seconds by the clock, of all threads and of this one; zeros if there is nothing to say."""
    if is_chosen() or sys.platform == "emscripten":  # a browser has one thread
        return 0.0, 0.0, 0.0
    return time.perf_counter(), time.process_time(), time.thread_time()


def compete(wall: float, process: float, thread: float) -> bool:
    """Whether a computation of these seconds was slowed down by its own threads.

    They are busy, so the process takes more time than the thread that computes, yet that thread
    lacks a processor part of the time. A single thread has no other to wait for.

    Example:
        >>> compete(wall=10.9, process=4.4, thread=2.2)  # two threads beside other programs
        True
        >>> compete(wall=10.9, process=2.2, thread=2.2)  # one thread beside other programs
        False
    """
    return wall > max(5, 1.25 * thread) and process > 1.5 * thread


# of `python -m tinytorch...` while its module is looked for, before it runs
_pairs = zip(sys.orig_argv, [*sys.orig_argv[1:], ""], strict=True)
_named = ((re.fullmatch(r"-[bBdEhiIOPqRsSuvVx]*m(.*)", word), after) for word, after in _pairs)
_command = next((found[1] or after for found, after in _named if found), "")
_command = _command if sys.argv[:1] == ["-m"] else ""
_large = "tinytorch.models.gpt2", "tinytorch.models.llama"
_ours = _command.split(".")[0] in ("tinytorch", "tinytorch_book")
_ours = _ours and not _command.startswith(_large)
if _ours and not is_chosen():
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
