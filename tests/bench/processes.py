"""What only a fresh process shows: the time to import, and the peak of the memory."""

from __future__ import annotations

import atexit
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable

IMPORT = "import time; began = time.perf_counter(); import {}; print(time.perf_counter() - began)"


def import_seconds(module: str) -> float:
    """How long one import takes in a fresh interpreter, from bytecode as a user has it."""
    command = [sys.executable, "-c", IMPORT.format(module)]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(found.stdout)


def import_pair(rounds: int = 15) -> tuple[float, float, float]:
    """Seconds of ours, of NumPy alone, and the median ratio of neighbouring imports."""
    pairs = [(import_seconds("tinytorch"), import_seconds("numpy")) for _ in range(rounds + 2)][2:]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    return ours, theirs, statistics.median(a / b for a, b in pairs)


def peak_of_step(whose: str, size: str) -> float:
    """MiB that three training steps take at most, beyond what the process had before the model."""
    command = [sys.executable, __file__, whose, size]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(found.stdout)


def steps_elsewhere(size: str, memory: str) -> Callable[[], object]:
    """What has a process of its own take a training step; it keeps freed memory if `"kept"`."""
    command = [sys.executable, __file__, memory, size]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    asked, done = child.stdin, child.stdout
    assert asked is not None and done is not None
    atexit.register(child.communicate)  # it ends, and its time is booked as ours
    return lambda: (asked.write("\n"), asked.flush(), done.readline())


def _resident() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


if __name__ == "__main__":
    import training

    if sys.argv[1] in ("kept", "given back"):
        from tinytorch.core import optimizers

        if sys.argv[1] == "given back":
            optimizers.keep_freed_memory = bool
        step = training.ours(sys.argv[2])
        for _ in sys.stdin:
            step()
            print(flush=True)
        sys.exit()
    before = _resident()
    step = training.ours(sys.argv[2]) if sys.argv[1] == "ours" else training.theirs(sys.argv[2])
    for _ in range(3):
        step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before)
