"""What was measured on, and whether anything else ran meanwhile."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

TUNING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # settings that slow a current NumPy
BUSY = 0.1  # of a processor; with more than that taken by others, a table is not stored


def machine() -> dict[str, Any]:
    """The processor and the libraries, with the kernels that NumPy's BLAS has chosen for it."""
    import numpy as np
    import torch
    from threadpoolctl import threadpool_info

    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = {line.split(":")[1].strip() for line in info if line.startswith("model name")}
    flags = next((line for line in info if line.startswith("flags")), "")
    blas = next(found for found in threadpool_info() if "numpy" in found["filepath"])
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": ", ".join(sorted(names)) or platform.processor(),
        "AVX-512": "yes" if " avx512f" in flags else "no",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "BLAS": f"{blas['internal_api']} {blas['version']}",
        "kernels": blas.get("architecture", "unknown"),
        "torch": torch.__version__,
    }


def tuned() -> list[str]:
    """Which settings of the BLAS are set here."""
    return [name for name in TUNING if name in os.environ]


class OtherWork:
    """How much of a processor other programs have taken since this was made.

    Example:
        >>> others = OtherWork()
        >>> others.share() < os.cpu_count()
        True
    """

    def __init__(self) -> None:
        self._began = time.perf_counter(), *_seconds()

    def share(self) -> float:
        """Processors in use by others on average; 1.0 is one of them, all the time."""
        began, busy, own = self._began
        busy_now, own_now = _seconds()
        wall = max(time.perf_counter() - began, 1e-9)
        return max(0.0, (busy_now - busy) - (own_now - own)) / wall


def _seconds() -> tuple[float, float]:
    """Processor seconds of the whole machine, stolen ones included, and of this program."""
    first = Path("/proc/stat").read_text(encoding="utf-8").splitlines()[0]
    user, nice, system, _, _, irq, softirq, steal = map(int, first.split()[1:9])
    busy = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
    return busy, sum(os.times()[:4])
