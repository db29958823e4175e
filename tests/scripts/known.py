"""What the package computes, for the tests of the scripts to compare with.

Each function of `known_*.py` that is listed here gives what a file of tests reads as
`known("its name")`: numbers, texts, lists of them and, for large arrays, their bytes.
"""

import base64
import json
from pathlib import Path

import numpy as np
from known_asked import questions, rewards
from known_engine import choices, engine, tokens
from known_figures import figures
from known_map import on_the_map
from known_oracle import oracle
from known_training import trained

ALL = tokens, engine, on_the_map, choices, oracle, questions, rewards, figures, trained


def write(folder: Path) -> None:
    """Write all of it, a file for each function."""
    for make in ALL:
        values = json.dumps(make(), default=as_bytes)
        (folder / f"{make.__name__}.json").write_text(values, encoding="utf-8")


def as_bytes(array):
    """A large array as the base64 of its float32 numbers, a small one as a list."""
    array = np.asarray(array)
    if array.size < 1000:
        return array.tolist()
    return base64.b64encode(np.asarray(array, np.float32).tobytes()).decode()
