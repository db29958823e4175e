"""How much there is to read: lines of code, without docstrings, comments and blank lines.

`make size` prints the table.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "tinytorch"

# What a reader reads in an evening, from the first number to a trained model.
SPINE = [
    "core/recording", "core/tracing", "core/broadcasting", "core/tensor", "core/backward",
    "core/ops", "core/functional", "core/activations", "core/losses", "core/module",
    "core/layers", "core/attention", "core/positions", "core/optimizers",
    "text/embeddings", "text/batches", "models/transformer", "training/trainer",
]  # fmt: skip
WORKS = ("core", "text", "models", "training")

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """The lines of a source that hold code.

    >>> code_lines('\"\"\"What it is.\"\"\"\\n\\nx = [  # a list\\n    1,\\n]\\n')
    3
    """
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def sizes(package: Path = PACKAGE) -> dict[str, int]:
    """The size of each file, by its path in the package."""
    return {
        path.relative_to(package).as_posix(): code_lines(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def totals(files: dict[str, int]) -> dict[str, int]:
    """The size of each room, of the rooms that do the work together, and of the spine."""
    rooms: Counter[str] = Counter()
    for name, lines in files.items():
        rooms[name.partition("/")[0] if "/" in name else "tinytorch"] += lines
    together = sum(rooms[room] for room in WORKS)
    spine = sum(files.get(f"{name}.py", 0) for name in SPINE)
    return {**rooms, " + ".join(WORKS): together, "the spine": spine}


if __name__ == "__main__":
    files = sizes()
    for name, lines in files.items():
        star = "*" if name.removesuffix(".py") in SPINE else " "
        print(f"{lines:6,} {star} {name}")
    print(f"\n{'':9}(* belongs to the spine)\n")
    for name, lines in totals(files).items():
        print(f"{lines:6,}   {name}")
