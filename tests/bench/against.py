"""Training and decoding, beside the package of another commit: `make bench BENCH="--against REV"`.

Both are imported into one process and take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
from models import SIZES, batch, gpt

import tinytorch

LIMIT = 1.05  # a step backwards of more than 5 % is named


@contextmanager
def checked_out(rev: str) -> Iterator[str]:
    """A folder with the files of a commit, as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", folder, rev], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], check=True)


def package(folder: str) -> ModuleType:
    """The package in a folder, as modules of its own beside those imported before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "tinytorch"]:
        del sys.modules[name]
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("tinytorch")
    finally:
        sys.path.remove(folder)


def step(tt: ModuleType, size: str) -> Callable[[], float]:
    """A training step: forward, loss, backward and AdamW."""
    model, (inputs, targets) = gpt(size, tt.GPT), batch(size)
    optimizer = tt.AdamW(model.parameters(), lr=1e-4)

    def once() -> float:
        optimizer.zero_grad()
        loss = tt.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return once


def written(tt: ModuleType, size: str, new: int = 100) -> Callable[[], Any]:
    """Greedy writing of `new` tokens after a prompt of eight."""
    model = gpt(size, tt.GPT, max_seq_len=256)
    return lambda: model.generate(np.arange(8)[None], new, temperature=0).data


def programs(rev: str) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Each case with its two programs: of the package here, and of that commit."""
    with checked_out(rev) as folder:
        there = package(folder)
        for size in SIZES:
            yield f"training step {size}", step(tinytorch, size), step(there, size)
        for size in SIZES:
            yield f"decoding {size}", written(tinytorch, size), written(there, size)
