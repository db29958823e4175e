"""Strong and weak scaling of a training step over the ranks of one machine.

    python tests/bench/ranks.py

measures, and keeps the table that the chapter on more than one machine shows.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tinytorch.files.atomic_files import write_atomically
from tinytorch_book.experiments import distributed

BATCH, STEPS, TURNS = 8, 20, 3
SIZES = ((64, 2), (256, 4))  # width, layers
TABLE = Path(distributed.__file__).with_name("data") / "ranks.json"


def measured(most: int | None = None) -> list[dict[str, Any]]:
    """The median step of runs of 1, 2, 4 ... ranks, in seconds, in the quickest of three turns."""
    most = most or max(2, os.cpu_count() or 1)
    counts = [1 << i for i in range(most.bit_length())]
    kinds = [("strong", *size, n, BATCH) for size in SIZES for n in counts]
    kinds += [("weak", *size, n, BATCH * n) for size in SIZES for n in counts[1:]]
    found: dict[Any, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(TURNS):
        for kind in kinds:
            found[kind].append(one_run(*kind[1:]))
    names = ("scaling", "width", "layers", "ranks", "batch")
    return [
        {**dict(zip(names, kind, strict=True)),
         **dict(zip(("step", "waiting"), min(times), strict=True))}
        for kind, times in found.items()
    ]  # fmt: skip


def one_run(width: int, layers: int, ranks: int, batch: int) -> tuple[float, float]:
    """Seconds of a step, and those of them that rank 0 spends waiting."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        sizes = {"--embed-dim": width, "--layers": layers, "--batch-size": batch, "--ranks": ranks}
        more = {"--steps": STEPS, "--num-stories": 200, "--report": report}
        options = [str(word) for pair in {**sizes, **more}.items() for word in pair]
        command = [sys.executable, "-m", "tinytorch_book.experiments.distributed", *options]
        subprocess.run(command, check=True, capture_output=True)
        told = json.loads(report.read_text())
    return told["step"], told["waiting"]


if __name__ == "__main__":
    with open("/proc/cpuinfo") as file:
        names = {line.split(":")[1].strip() for line in file if line.startswith("model name")}
    about = {"date": time.strftime("%Y-%m-%d"), "cores": f"{os.cpu_count()} cores"}
    about["processor"] = ", ".join(sorted(names)) or platform.processor()
    table = {"machine": about, "runs": measured(4)}
    write_atomically(TABLE, (json.dumps(table, indent=1) + "\n").encode())
    print(TABLE.read_text())
