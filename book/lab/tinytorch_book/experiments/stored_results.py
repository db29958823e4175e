"""The results of runs that come with the package: read, written, and made again by a command.

They are JSON with one run a line, so that a change shows which runs have changed.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tinytorch.files.atomic_files import write_atomically
from tinytorch.files.command_line import add_output, run_command


def read_results(path: Path) -> Any:
    """Read the results in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_results(path: Path, results: Any) -> None:
    """Write runs, or named groups of runs, one run a line.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "results.json"
        >>> write_results(path, {"first": [{"seed": 0}, {"seed": 1}]})
        >>> print(path.read_text(), end="")
        {
        "first": [
        {"seed": 0},
        {"seed": 1}
        ]
        }
    """
    if isinstance(results, dict):
        groups = (f'"{name}": {_lines(runs)}' for name, runs in results.items())
        text = "{\n" + ",\n".join(groups) + "\n}"
    else:
        text = _lines(results)
    write_atomically(path, f"{text}\n".encode())


def _lines(runs: Sequence[Any]) -> str:
    return "[\n" + ",\n".join(map(json.dumps, runs)) + "\n]"


def run_recipe(
    name: str, about: str, make: Callable[[Path], None], stored: Path, arguments: Any,
    stopped: str = "",
) -> int:  # fmt: skip
    """Run the command of a recipe here by its name; `stored` has its results in the package."""
    program = f"python -m tinytorch_book.experiments.{name}"
    parser = argparse.ArgumentParser(prog=program, description=about)
    add_output(parser, stored.name, stored)
    options = parser.parse_args(arguments)
    return run_command(lambda: make(options.output), options.output, stopped)
