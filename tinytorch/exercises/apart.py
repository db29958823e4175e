"""One handed-in answer, judged in a process of its own.

What stands in a file that a stranger has handed in is code, and to judge it means to run it. So
`judged` is called in a process that is thrown away. Before the code runs, files, the network,
other programs and the memory of the process are closed to it; the builtins that lead around this
are missing, and names that do are refused unread. The verdict is that of the check as it was
before: what the code has replaced in the package is found, and so is a check that accepts
nonsense.

None of this is a wall. Code and judge share one Python, and whoever knows Python well and means to
cheat can still forge a verdict; nobody does it by accident. What can be seen from outside holds
whatever the code does: its time, its memory, and the size of what it answers.
"""

import ast
import builtins
import json
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch import check
from tinytorch.core.freed_memory import keep_freed_memory

__all__ = ["checks", "judge_apart", "judged"]

MEMORY = 4 << 30  # bytes of a process, where the system can limit them
_LIBRARIES = (
    "abc bisect cmath collections contextlib copy dataclasses enum fractions functools heapq "
    "itertools math numbers numpy operator random re statistics textwrap tinytorch typing "
    "unicodedata __future__"
).split()
_DUNDERS = (
    "abs add bool call contains copy deepcopy doc enter eq exit float floordiv ge getitem gt iadd "
    "imul init init_subclass int invert isub iter itruediv le len lt matmul mod mul name ne neg "
    "new next or and xor post_init pos pow radd repr reversed rmatmul rmul rpow rsub rtruediv "
    "setitem str sub truediv"
).split()
_CLOSED = set(
    "attrgetter builtins check ctypes ctypeslib f2py f_back f_builtins f_globals f_locals "
    "gc get_field get_type_hints gi_frame cr_frame ag_frame inspect make_dataclass methodcaller "
    "os subprocess sys tb_frame tb_next testing ForwardRef Formatter".split()
)
_MISSING = set(
    "breakpoint compile delattr eval exec exit globals help input license locals open quit setattr "
    "vars __import__".split()
)
_EVENTS = ("os.", "socket.", "subprocess.", "ctypes.", "shutil.", "gc.", "mmap.", "winreg.",
           "_winapi.", "_posixsubprocess.", "pty.", "signal.", "sys.settrace", "fcntl.",
           "sys.unraisablehook", "sys.excepthook", "sys.addaudithook")  # fmt: skip
_HARMLESS = {"os.listdir", "os.scandir"}  # what an import asks for
_INSTALLED = (sys.prefix, sys.base_prefix, str(Path(__file__).parents[1]))
_READABLE = tuple(os.path.join(os.path.realpath(folder), "") for folder in _INSTALLED)
_NONSENSE: tuple[Any, ...] = (3, lambda *a, **k: 3, lambda *a, **k: (3, 3), lambda *a: np.ones(3))


class Refused(Exception):
    """Why an answer is not run at all, or not judged further."""


def checks() -> dict[str, Callable[..., Any]]:
    """Every check of the book, by its name.

    Example:
        >>> checks()["token_lookup"].points
        1
    """
    return {name: value for name, value in vars(check).items() if hasattr(value, "points")}


def judged(name: str, cells: Sequence[str]) -> dict[str, str]:
    """Run an answer, and ask its check: the verdict, and what to say of it.

    Args:
        name: that of the check.
        cells: the code, in order; the last cell has the answer and calls the check.

    Returns:
        `verdict`, which is "solved", "not yet" or "refused", and a `note`.

    Example:
        >>> cells = ["import numpy as np", "def f(x): return x - x.mean()", "check.token_cost(3)"]
        >>> judged("token_cost", cells)["verdict"]
        'not yet'
        >>> judged("token_cost", ["open('marks.csv')"])
        {'verdict': 'refused', 'note': 'it uses open'}
    """
    try:
        trees = [ast.parse(cell) for cell in cells]
        for tree in trees:
            screen(tree, known=checks())
        return _verdict(name, trees)
    except Refused as reason:
        return {"verdict": "refused", "note": str(reason)}
    except BaseException as error:  # whatever a stranger's code raises
        return {"verdict": "not yet", "note": f"{type(error).__name__}: {error}"}


def _verdict(name: str, trees: Sequence[ast.Module]) -> dict[str, str]:
    asked, before = checks()[name], dict(_callables())
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": _builtins(), "check": check}
    statements = [statement for tree in trees for statement in _pieces(tree)]
    calls = [i for i, statement in enumerate(statements) if _asks(statement, name)]
    if not calls:
        return {"verdict": "not yet", "note": f"it does not call check.{name}"}
    missed = []
    for statement in statements[: calls[-1]]:
        try:
            _run(statement, names)
        except ImportError as error:
            missed.append(str(error))
        except Exception:  # what the answer needs of it, it will miss
            continue
    call: Any = statements[calls[-1]]
    given = [eval(_compiled(ast.Expression(each)), names) for each in call.value.args]
    report = asked(*given)
    if report:
        _find_tampering(asked, len(given), before)
        return {"verdict": "solved", "note": ""}
    if report.untouched:
        return {"verdict": "not yet", "note": "nothing written yet"}
    failed = [case.claim for case in report.cases if not case.passed][:1]
    return {"verdict": "not yet", "note": "; ".join([*failed, *missed])}


def _pieces(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a cell, an import of several names as one for each."""
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                yield ast.ImportFrom(statement.module, [alias], statement.level)
        else:
            yield statement


def _asks(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is the call of this check."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) == f"check.{name}"


def _compiled(tree: Any) -> types.CodeType:
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    return compile(ast.fix_missing_locations(tree), "<answer>", mode, dont_inherit=True)


def _run(statement: ast.stmt, names: dict[str, Any]) -> None:
    exec(_compiled(ast.Module([statement], [])), names)


# What an answer may use ----------------------------------------------------------------------


def screen(tree: ast.AST, known: Any = ()) -> None:
    """Refuse code that names what leads around the rules.

    Args:
        tree: the code.
        known: the names of the checks.

    Raises:
        Refused: it does; the message says what it names.

    Example:
        >>> screen(ast.parse("[].__class__.__base__"))
        Traceback (most recent call last):
        ...
        tinytorch.exercises.apart.Refused: it uses __base__
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in _MISSING:
            raise Refused(f"it uses {node.id}")
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                _look_at(alias.name, f"{node.module}" == "tinytorch")
        if isinstance(node, ast.Attribute):
            of_check = isinstance(node.value, ast.Name) and node.value.id == "check"
            if of_check and node.attr not in known:
                raise Refused(f"it uses check.{node.attr}")
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "other")
            _look_at(node.attr, own and not node.attr.startswith("__"))


def _look_at(name: str, is_fine: bool = False) -> None:
    """Refuse a name that leads out of an answer, unless it is fine where it stands."""
    hidden = name.startswith("_") and name.strip("_") not in _DUNDERS
    if (hidden or name in _CLOSED) and not is_fine:
        raise Refused(f"it uses {name}")


def _builtins() -> dict[str, Any]:
    """Python's own names, as far as an answer may have them."""
    allowed = {k: v for k, v in vars(builtins).items() if k not in _MISSING}

    def imported(name: str, *others: Any) -> Any:
        room = f"{name}.".split(".")
        names = [*(others[2] or ())] if len(others) > 2 else []
        closed = "check" in room and (len(room) > 3 or not {*names} <= {*checks()})
        if room[0] not in _LIBRARIES or closed:
            raise ImportError(f"an answer cannot import {name}")
        return builtins.__import__(name, *others)

    def taken(thing: Any, name: str, *default: Any) -> Any:
        _look_at(str(name))
        return getattr(thing, str(name), *default)

    def put(thing: Any, name: str, value: Any) -> None:
        _look_at(str(name))
        setattr(thing, str(name), value)

    return {**allowed, "__import__": imported, "getattr": taken, "setattr": put}


# What an answer has done ---------------------------------------------------------------------


def _callables() -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """All functions and classes of Python, NumPy and the package, and the code that they run."""
    watched = ("tinytorch", "numpy", "builtins")
    for module in [m for n, m in [*sys.modules.items()] if n.split(".")[0] in watched]:
        for name, value in [*vars(module).items()]:
            if callable(value) or isinstance(value, types.ModuleType):
                yield (module.__name__, name), _contents(value)
            ours = str(getattr(value, "__module__", "")).startswith("tinytorch")
            if isinstance(value, type) and ours:
                for attribute, inner in [*vars(value).items()]:
                    yield (module.__name__, name, attribute), _contents(inner)


def _contents(value: Any) -> tuple[Any, ...]:
    parts = ("__code__", "__defaults__", "__kwdefaults__") if callable(value) else ()
    return (value, *(getattr(value, part, None) for part in parts))


def _find_tampering(asked: Callable[..., Any], number: int, before: dict[Any, Any]) -> None:
    """Refuse an answer that has changed what judges it."""
    after = dict(_callables())
    for place, parts in before.items():
        there = after.get(place, ())
        if len(there) != len(parts) or any(a is not b for a, b in zip(parts, there, strict=True)):
            raise Refused(f"it has replaced {'.'.join(place)}")
    for nonsense in _NONSENSE:
        if asked(*[nonsense] * number):
            raise Refused("after it, its check accepts anything")


# The process ---------------------------------------------------------------------------------


def judge_apart(answer: Any, name: str, cells: Sequence[str], seconds: int) -> None:
    """In a process of its own: close what shall be closed, judge, and send the verdict as JSON.

    Args:
        answer: the end of a pipe; it gets bytes.
        name: the check.
        cells: the code.
        seconds: of processor time, where the system can limit it.

    Example:
        >>> judge_apart.__name__  # it would close the files of this process as well
        'judge_apart'
    """
    os.environ["TINYTORCH_PARTS"] = ""  # nothing is kept
    keep_freed_memory()  # while it can still be set
    _limit(seconds)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    sys.dont_write_bytecode = True
    sys.addaudithook(_closed)
    told = judged(name, cells)
    answer.send_bytes(json.dumps(told).encode())


def _limit(seconds: int) -> None:
    """Limit what the process may use: memory, time, files; Windows has no such limits."""
    if sys.platform == "win32":
        return
    import resource

    limits = {"AS": MEMORY, "CPU": seconds + 1, "FSIZE": 0, "CORE": 0}
    for what, most in limits.items():
        with suppress(ValueError, OSError):  # the system has a lower one, or none
            resource.setrlimit(getattr(resource, f"RLIMIT_{what}"), (most, most))


def _closed(event: str, given: tuple[Any, ...]) -> None:
    """The hook that Python asks before it opens anything; once set it cannot be taken away."""
    if event == "open":
        path, _, flags = given
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        known = isinstance(path, str) and os.path.realpath(path).startswith(_READABLE)
        if known and not (flags or 0) & writes:
            return
    elif event in _HARMLESS or not event.startswith(_EVENTS):
        return
    raise PermissionError(f"{event} is closed to an answer")
