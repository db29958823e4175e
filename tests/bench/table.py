"""The benchmark's results as text."""

from __future__ import annotations

import textwrap
from typing import Any

_LAYOUT = "{:46} {:>14} {:>14} {:>6}  {}"


def heading(machine: dict[str, Any]) -> str:
    """What was measured on, then the names of the columns."""
    about = textwrap.wrap(", ".join(f"{name} {value}" for name, value in machine.items()), 90)
    names = _LAYOUT.format("case", "ours", "other", "ratio", "goal")
    return "\n".join([*about, "", names])


def line(row: dict[str, Any]) -> str:
    """One case: both figures, their ratio and the goal; `<` or `>` says which side is good."""
    sign = {"lower": "<", "higher": ">"}[row["better"]]
    goal = ""
    if "reach" in row:
        short = row["reach"] - row["ratio"]
        met = short >= 0 if row["better"] == "lower" else short <= 0
        goal = f"{sign} {row['reach']:.2f} {'met' if met else 'missed'}"
    case = row["case"] + (f", {row['threads']} threads" if row["threads"] > 1 else "")
    return _LAYOUT.format(case, row["ours"], row["theirs"], f"{row['ratio']:.2f}", goal).rstrip()
