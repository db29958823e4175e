"""The published file of SmolLM2, where it is: a test without it is skipped."""

import os
from pathlib import Path

import pytest

__all__ = ["smollm2_file"]

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2_file():
    build = Path(__file__).parents[1] / "_build"
    found = [Path(os.environ["SMOLLM2"])] if "SMOLLM2" in os.environ else [*build.rglob(FILE)]
    if not found:
        pytest.skip(f"{FILE} is not here")
    return found[0]
