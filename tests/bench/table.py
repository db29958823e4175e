"""The benchmark's results: one table for each kind of processor, kept with its date and load."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

_LAYOUT = "{:40} {:>15} {:>15} {:>5} {}"


def heading(machine: dict[str, Any]) -> str:
    """What was measured on, then the names of the columns."""
    about = textwrap.wrap(", ".join(f"{name} {value}" for name, value in machine.items()), 90)
    names = _LAYOUT.format("case", "ours", "other", "ratio", "goal")
    return "\n".join([*about, "", names])


def line(row: dict[str, Any]) -> str:
    """One case: both figures, their ratio and the goal; `<` or `>` says which side is good."""
    goal = ""
    if "reach" in row:
        sign = {"lower": "<", "higher": ">"}[row["better"]]
        goal = f"{sign} {row['reach']:.2f} {'met' if met(row) else 'no'}"
    case = row["case"] + (f", {row['threads']} threads" if row["threads"] > 1 else "")
    return _LAYOUT.format(case, row["ours"], row["theirs"], f"{row['ratio']:.2f}", goal).rstrip()


def met(row: dict[str, Any]) -> bool:
    """Whether a case reaches its goal."""
    short: float = row["reach"] - row["ratio"]
    return short >= 0 if row["better"] == "lower" else short <= 0


def keep(column: dict[str, Any], folder: Path) -> None:
    """Write this table in place of the one of the same processor; those of others stay.

    Args:
        column: `machine` and `rows`.
        folder: where `bench.json` and `bench.txt` are.
    """
    file = folder / "bench.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    name = column["machine"]["processor"]
    columns = [column] + [other for other in before if other["machine"]["processor"] != name]
    file.write_text(json.dumps(columns, indent=1) + "\n", encoding="utf-8")
    tables = [
        "\n".join([heading(each["machine"]), *map(line, each["rows"])]) + "\n" for each in columns
    ]
    (folder / "bench.txt").write_text("\n\n".join(tables), encoding="utf-8")
