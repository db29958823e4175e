"""What the code of a cell says of itself: the names it needs and defines, and what is no Python.

The build asks, so that a page knows what each of its cells needs before Python is loaded
(`book/_ext/live/live_cells.py`); the page's Python asks again, for what a reader has written. Only
the standard library is needed.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterable
from functools import lru_cache

MAGIC = re.compile(r"(\s*)(?:\w+\s*=\s*)?([%!].*)")
PYTHON_BELOW = ("%%time", "%%timeit", "%%capture", "%%prun")  # cell magic with Python under it
# what a cell finds without any other: the runner gives the last two
ALWAYS = {*dir(builtins), "__name__", "display", "input"}


def missing_names(source: str, known: Iterable[str] = ()) -> list[str]:
    """Name what a cell uses and nothing has defined: it needs cells above it.

    Args:
        source: the cell's code.
        known: the names that there are.

    Example:
        >>> missing_names("print(a + b)", known=["a"])
        ['b']
    """
    return sorted(used_names(source) - set(known) - ALWAYS)


def needed_cells(above: list[str], names: Iterable[str]) -> list[int]:
    """Choose among the cells above those that define what is missing, and what these need.

    Args:
        above: the code of the cells above, in order.
        names: what the cell needs.

    Returns:
        Indices into `above`, in order. A cell that only changes a value is not among them.

    Example:
        >>> needed_cells(["import numpy as np", "c = 5", "a = np.ones(3)"], ["a"])
        [0, 2]
    """
    wanted, chosen = set(names), []
    for i in reversed(range(len(above))):
        bound = bound_names(above[i])
        if wanted & bound:
            chosen.append(i)
            wanted = wanted - bound | used_names(above[i])
    return chosen[::-1]


def bound_names(source: str, imports: bool = True) -> set[str]:
    """Names that a cell defines, by an import too if `imports`; none if it cannot be read."""
    top = symbols(source)
    found = top.get_symbols() if top else []
    return {
        symbol.get_name()
        for symbol in found
        if (imports and symbol.is_imported()) or (symbol.is_assigned() and not symbol.is_imported())
    }


def used_names(source: str) -> set[str]:
    """Names that a cell takes from outside itself; none if it cannot be read."""
    top = symbols(source)
    found: set[str] = set()
    waiting = [top] if top else []
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        for symbol in table.get_symbols():
            outside = symbol.is_global() or table is top
            if symbol.is_referenced() and outside:
                found.add(symbol.get_name())
    return found - bound_names(source)


@lru_cache(maxsize=1)  # one cell is asked for several things in turn
def symbols(source: str) -> symtable.SymbolTable | None:
    """Read the names of a cell as Python's compiler sees them; None if it cannot."""
    try:
        return symtable.symtable(split_magic(source)[0], "cell", "exec")
    except SyntaxError:
        return None


def split_magic(source: str) -> tuple[str, list[tuple[int, str]]]:
    r"""Separate Python from IPython's commands: lines that begin with `%` or `!`.

    Returns:
        The Python, in which every line keeps its number, and each command with its line. What
        Python can read holds none: there `%` and `!` are operators.

    Example:
        >>> split_magic("!pip install torch\nx = 1")
        ('pass\nx = 1', [(1, '!pip install torch')])
    """
    try:
        ast.parse(source)
        return source, []
    except SyntaxError:
        pass
    lines, commands = source.splitlines(), []
    for i, line in enumerate(lines):
        if found := MAGIC.fullmatch(line):
            lines[i] = found[1] + "pass"
            commands.append((i + 1, found[2]))
            if found[2].startswith("%%") and not found[2].startswith(PYTHON_BELOW):
                return "\n".join(lines[: i + 1]), commands  # what follows is another language
    return "\n".join(lines), commands
