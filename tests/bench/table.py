"""The benchmark's results as text."""

from __future__ import annotations

import textwrap
from typing import Any

_LAYOUT = "{:46} {:>14} {:>14} {:>6}  {}"


def heading(machine: dict[str, Any]) -> str:
    """What was measured on, then the names of the columns."""
    about = textwrap.wrap(", ".join(f"{name} {value}" for name, value in machine.items()), 90)
    names = _LAYOUT.format("case", "ours", "PyTorch", "ratio", "reach (aim)")
    return "\n".join([*about, "", names])


def line(row: dict[str, Any]) -> str:
    """One case: both figures, their ratio and the targets; `<` or `>` says which side is good."""
    sign = {"lower": "<", "higher": ">"}[row["better"]]
    reach = f"{sign} {row['reach']:.2f}" if "reach" in row else ""
    aim = f" ({row['aim']:.2f})" if "aim" in row else ""
    case = row["case"] + (f", {row['threads']} threads" if row["threads"] > 1 else "")
    return _LAYOUT.format(
        case, row["ours"], row["theirs"], f"{row['ratio']:.2f}", reach + aim
    ).rstrip()
