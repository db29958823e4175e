"""The stored benchmark: what `make bench` measured, on which machine and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["STORED", "header", "heading", "line", "stored", "table"]

STORED = Path(__file__).parent / "bench.json"
_LAYOUT = "{:58.58} {:>7} {:>15} {:>15} {:>6} {:>7} {:>6}"


def stored() -> dict[str, Any]:
    """The machine, and the rows of the table.

    Example:
        >>> sorted(stored())
        ['machine', 'rows']
    """
    return json.loads(STORED.read_text(encoding="utf-8"))


def table(results: dict[str, Any]) -> str:
    """The results as text, one line a case; see `line`.

    Example:
        >>> table(stored()).splitlines()[1].split()
        ['case', 'threads', 'ours', 'PyTorch', 'ratio', 'reach', 'aim']
    """
    lines = [line(row) for row in results["rows"]]
    return "\n".join([heading(results["machine"]), header(), *lines])


def heading(machine: dict[str, Any]) -> str:
    """One line about the machine.

    Example:
        >>> heading({"date": "2026-11-20", "cores": 2})
        'date 2026-11-20, cores 2'
    """
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def header() -> str:
    """The names of the columns.

    Example:
        >>> header().split()[0]
        'case'
    """
    return _LAYOUT.format("case", "threads", "ours", "PyTorch", "ratio", "reach", "aim")


def line(row: dict[str, Any]) -> str:
    """One case: both figures, their ratio, and the targets, `<` or `>` saying which side is good.

    Example:
        >>> line({"case": "gelu", "threads": 1, "ours": "1 ms", "theirs": "4 ms", "ratio": 0.25,
        ...       "better": "lower", "reach": 0.95}).split()
        ['gelu', '1', '1', 'ms', '4', 'ms', '0.25', '<0.95', '-']
    """
    sign = {"lower": "<", "higher": ">"}[row["better"]]
    goals = [f"{sign}{row[name]:.2f}" if name in row else "-" for name in ("reach", "aim")]
    return _LAYOUT.format(
        row["case"], row["threads"], row["ours"], row["theirs"], f"{row['ratio']:.2f}", *goals
    )
