"""One thread for NumPy's products in commands, and a hint where several slow each other down.

The matrices of this book are small. The threads that share a product wait for each other in a loop;
when another program takes a processor from one of them, all wait for it. On a busy machine with two
processors a training step of a small model took 7 to 20 times as long as with one thread.

NumPy's BLAS reads the number when it is loaded. So `tinytorch/__init__.py` imports this module
first: `python -m tinytorch...` begins with one thread, unless the environment says otherwise. A
program that imports the package keeps its threads, for its own matrices may be large, and so does
`python -m tinytorch.models.gpt2`. Such a program sets the variable itself, before its first import:

    import os
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
"""

import os
import sys
import time

#: What OpenBLAS, MKL, OpenMP and Apple's Accelerate read; one that is set is left alone.
VARIABLES = (
    "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
HINT = (
    "NumPy's threads wait for each other on this busy machine: "
    "set OPENBLAS_NUM_THREADS=1 before NumPy is imported"
)
_LARGE = "tinytorch.models.gpt2"  # the command whose matrices are worth several threads


def is_chosen() -> bool:
    """Whether the environment says how many threads there are."""
    return any(name in os.environ for name in VARIABLES)


def clocks() -> tuple[float, float, float]:
    """Seconds on the wall, of all threads and of this one; zeros where there is nothing to say."""
    if is_chosen() or sys.platform == "emscripten":  # a browser has one thread
        return 0.0, 0.0, 0.0
    return time.perf_counter(), time.process_time(), time.thread_time()


def compete(wall: float, process: float, thread: float) -> bool:
    """Whether a computation was slowed down by its own threads.

    They are busy, so the process takes more time than the thread that computes, yet that thread
    lacks a processor part of the time. On an idle machine it does not; a single thread has no other
    to wait for.

    Args:
        wall: how many seconds it took; below 5 nothing is concluded.
        process: the processor time of all threads of the program.
        thread: the processor time of the one that computes.

    Example:
        >>> compete(wall=10.9, process=4.4, thread=2.2)  # two threads beside other programs
        True
        >>> compete(wall=10.9, process=4.4, thread=4.4), compete(10.0, 19.8, 9.9)
        (False, False)
    """
    return wall > max(5, 1.25 * thread) and process > 1.5 * thread


def _is_command() -> bool:
    """Whether this is `python -m tinytorch...`, whose module is looked for but does not yet run."""
    words = [word.removeprefix("-m") for word in sys.orig_argv[1:]]
    ours = [word for word in words if word.partition(".")[0] == "tinytorch"]
    return sys.argv[:1] == ["-m"] and bool(ours) and not ours[0].startswith(_LARGE)


if _is_command() and not is_chosen():
    os.environ.update(dict.fromkeys(VARIABLES, "1"))
