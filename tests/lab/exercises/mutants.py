"""Mutants of every exercise's solution: small changes of its code, each of which its check refuses.

A solution is changed in one place, by its syntax tree: another operator, constant or axis, a
statement or an argument left out, a slice off by one, a result in another order or precision. Each
mutant is run against its check in a process of its own, with a limit on its time; one that never
ends is refused. A mutant that is as right as the solution stands in `equivalent/CHAPTER.txt`, below
its exercise and the reason:

    count_loss: a mean surprise is never negative
        mean_surprise(followers, unseen) -> abs(mean_surprise(followers, unseen))

A line that ends with … stands for every mutant that begins so. `mutants.py` alone
runs them all; with names, those of some exercises or chapters. It prints what was accepted without
being listed, and what is listed but refused or no longer made.
"""

import argparse
import ast
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT), str(ROOT / "book")]
from _ext.teaching.nbgrader_course import Chapter, Exercise, chapters  # noqa: E402

LISTS = Path(__file__).parent / "equivalent"
SECONDS, WAIT, MEMORY = 1, 10, 4 << 30  # more than a solution takes; times that, idle; bytes
AROUND, LONG = 24, 100  # letters: what is shown around a change; what is too long to show in full
Listed = dict[str, dict[str, str]]
NONE: Mapping[str, int] = MappingProxyType({})


class Mutant(NamedTuple):
    """A changed solution: what was changed, as `before -> after`, and its code."""

    change: str
    code: str


@dataclass
class Outcome:
    """What became of the mutants of an exercise."""

    exercise: str
    made: int = 0
    refused: int = 0
    unlisted: list[str] = field(default_factory=list)  # accepted, and nobody says why
    outdated: list[str] = field(default_factory=list)  # listed, but refused or no longer made
    seconds: float = 0.0


# Changes --------------------------------------------------------------------------------------

OPERATORS = {
    ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult, ast.FloorDiv],
    ast.FloorDiv: [ast.Div], ast.Mod: [ast.FloorDiv], ast.Pow: [ast.Mult], ast.MatMult: [ast.Mult],
    ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.GtE], ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE], ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.In: [ast.NotIn],
    ast.NotIn: [ast.In], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.And: [ast.Or],
    ast.Or: [ast.And],
}  # fmt: skip
PAIRS = (
    "max min,sum mean,any all,zeros ones,argmax argmin,maximum minimum,floor ceil,split rsplit,"
    "tril triu,float32 float64"
)
NAMES = {a: b for pair in PAIRS.split(",") for a, b in (pair.split(), pair.split()[::-1])} | {
    "rint": "floor", "round": "int", "argsort": "sort", "deepcopy": "copy"
}  # fmt: skip
WRAPS = ("abs", "sorted", "_rounded")  # a result in float32 is as right, unless a dtype is named
SYMMETRIC = {"max", "min", "maximum", "minimum", "logaddexp", "isclose", "allclose"}


def mutants(source: str) -> list[Mutant]:
    """Every change of some code, in the order of the code, none twice."""
    tree = ast.parse(source)
    found: dict[str, Mutant] = {}
    for path in [*_paths(tree)]:
        *_, (_, holder, index) = path
        node, around = _get(holder, index), [step[0] for step in path]
        for new in _variants(node, around):
            before = [*map(_line, around), _line(node)]
            _set(holder, index, new)
            code = ast.unparse(ast.fix_missing_locations(tree))
            after = [*map(_line, around), _line(new)]
            _set(holder, index, node)
            told = zip(before, after, [*around, node], strict=True)
            enough = [(a, b) for a, b, at in told if len(a) >= AROUND or isinstance(at, ast.stmt)]
            found.setdefault(code, Mutant(_told(*enough[-1]), code))
    found.pop(ast.unparse(tree), None)
    return [*found.values()]


def _told(before: str, after: str) -> str:
    """The change; of long lines the part that differs, and a little around it."""
    if max(len(before), len(after)) > LONG:
        same = _alike(before, after)
        rest = _alike(before[same:][::-1], after[same:][::-1])
        cut = slice(max(0, same - AROUND), -max(0, rest - AROUND) or None)
        before, after = before[cut], after[cut]
    return f"{before} -> {after}"


def _alike(a: str, b: str) -> int:
    """How many letters two texts begin with in common."""
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def _paths(node: ast.AST, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree: the nodes that lead to it, and where in each of them one goes on."""
    for name, value in ast.iter_fields(node):
        inside = [(value, i) for i in range(len(value))] if isinstance(value, list) else []
        for holder, index in inside or [(node, name)]:
            child = _get(holder, index)
            if isinstance(child, ast.AST) and not _is_free(child, node, name):
                path = (*above, (node, holder, index))
                yield path
                yield from _paths(child, path)


def _is_free(node: ast.AST, parent: ast.AST, name: str) -> bool:
    """Whether no check looks at it: a type, a docstring, an error's words, what a cell prints."""
    at_the_end = isinstance(parent, ast.Module) and isinstance(node, ast.Expr)
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return at_the_end or docstring or name in ("annotation", "returns", "exc")


def _get(holder: Any, index: Any) -> Any:
    return holder[index] if isinstance(holder, list) else getattr(holder, index)


def _set(holder: Any, index: Any, value: Any) -> None:
    if isinstance(holder, list):
        holder[index] = value
    else:
        setattr(holder, index, value)


def _line(node: ast.AST) -> str:
    """The first line of some code, without what is put around a change that takes two lines."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "_in_place":
        return "; ".join(map(ast.unparse, node.body))
    return ast.unparse(node).strip().partition("\n")[0]


def _variants(node: ast.AST, around: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """What may stand in place of a node, inside the nodes `around` it."""
    parent = around[-1]
    for operator in OPERATORS.get(type(node), []):
        yield operator()
    if isinstance(node, ast.stmt):
        yield from _statements(node, around)
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value, isinstance(parent, ast.Subscript))
    elif isinstance(node, ast.Slice):
        yield from _slices(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
        yield from _names(node, parent)
    elif isinstance(node, ast.comprehension):
        for i in range(len(node.ifs)):
            yield _with(node, ifs=node.ifs[:i] + node.ifs[i + 1 :])
    if isinstance(parent, (ast.Return, ast.Lambda)) and isinstance(node, ast.expr):
        for name in WRAPS:
            yield _call(name, node)


def _statements(node: ast.stmt, around: Sequence[ast.AST]) -> Iterator[ast.stmt]:
    if not isinstance(around[-1], ast.Module) and not isinstance(
        node, (ast.Import, ast.ImportFrom)
    ):
        yield ast.Pass()
    if isinstance(node, (ast.If, ast.While)):
        yield _with(node, test=ast.Constant(True))
        yield _with(node, test=ast.Constant(False))
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        for i in range(len(node.decorator_list)):
            yield _with(node, decorator_list=node.decorator_list[:i] + node.decorator_list[i + 1 :])
    if isinstance(node, ast.AugAssign):
        yield ast.Assign([node.target], node.value)
    if isinstance(node, (ast.Assign, ast.Return)) and isinstance(node.value, ast.BinOp):
        given = [a.arg for f in around if isinstance(f, ast.FunctionDef) for a in f.args.args]
        value, left = node.value, _name(node.value.left)
        if left in given:  # an argument is changed in place
            change = ast.AugAssign(ast.Name(left, ast.Store()), value.op, value.right)
            yield ast.If(ast.Name("_in_place"), [change, _with(node, value=value.left)], [])


def _constants(value: Any, is_index: bool) -> Iterator[ast.Constant]:
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        others = [value + 1, value - 1, type(value)(0), value if is_index else -value]
        yield from (ast.Constant(other) for other in dict.fromkeys(others) if other != value)
    elif isinstance(value, str):
        yield ast.Constant("" if value else " ")


def _slices(node: ast.Slice) -> Iterator[ast.Slice]:
    one = ast.Constant(1)
    for name, absent in (("lower", one), ("upper", ast.UnaryOp(ast.USub(), one))):
        bound = getattr(node, name)
        if bound is None:
            yield _with(node, **{name: absent})
        elif not isinstance(bound, ast.Constant):
            yield _with(node, **{name: ast.BinOp(bound, ast.Add(), one)})
            yield _with(node, **{name: ast.BinOp(bound, ast.Sub(), one)})
        if bound is not None:
            yield _with(node, **{name: None})


def _calls(node: ast.Call) -> Iterator[ast.expr]:
    if isinstance(node.func, ast.Attribute):
        yield node.func.value
    args = node.args
    for i, argument in enumerate(args):
        yield argument.value if isinstance(argument, ast.Starred) else argument
        yield _with(node, args=args[:i] + args[i + 1 :])
        if i + 1 < len(args) and _name(node.func) not in SYMMETRIC:
            yield _with(node, args=[*args[:i], args[i + 1], argument, *args[i + 2 :]])
    for i in range(len(node.keywords)):
        yield _with(node, keywords=node.keywords[:i] + node.keywords[i + 1 :])
    if isinstance(node.func, ast.Name) and node.func.id == "range":
        for change in (ast.Add(), ast.Sub()):
            at = min(1, len(args) - 1)
            changed = ast.BinOp(args[at], change, ast.Constant(1))
            yield _with(node, args=[*args[:at], changed, *args[at + 1 :]])
        if len(args) == 1:
            yield _with(node, args=[ast.Constant(1), *args])


def _names(node: ast.Name | ast.Attribute, parent: ast.AST) -> Iterator[ast.expr]:
    if other := NAMES.get(_name(node)):
        yield _with(node, **{"id" if isinstance(node, ast.Name) else "attr": other})
    if isinstance(parent, ast.Subscript) and parent.slice is node:
        for change in (ast.Add(), ast.Sub()):
            yield ast.BinOp(node, change, ast.Constant(1))


def _name(node: ast.AST) -> str:
    return getattr(node, "id", getattr(node, "attr", ""))


def _with(node: Any, **fields: Any) -> Any:
    """The same node with other fields."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [*arguments], [])


# Runs -----------------------------------------------------------------------------------------


def run(chapter: Chapter, listed: Listed, shares: Mapping[str, int] = NONE) -> list[Outcome]:
    """Run the mutants of a chapter's exercises, in this process's children.

    Args:
        chapter: with the code that its exercises need.
        listed: for each exercise the changes that are no mistakes, and why, see `equivalents`.
        shares: for an exercise, that one mutant in so many is run, beside all that are listed.
    """
    import numpy as np

    from tinytorch_book import check

    os.environ["TINYTORCH_PARTS"] = ""  # nothing is kept
    os.chdir(tempfile.mkdtemp())
    _silence()
    np.seterr(all="ignore")
    names = {"__name__": "__main__", "check": check}
    names |= {"_rounded": _rounded, "_in_place": True}
    for cell in chapter.needed:
        exec(cell, names)
    return [
        _outcome(one, names, listed.get(one.check, {}), shares.get(one.check, 1))
        for one in chapter.exercises
    ]


def _rounded(x: Any) -> Any:
    import numpy as np

    if np.asarray(x).dtype.kind != "f":
        raise TypeError("what is whole is as it was")
    return np.round(x, 3)


def _silence() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):
        os.dup2(null, stream)


def _outcome(exercise: Exercise, names: Any, listed: dict[str, str], share: int) -> Outcome:
    prepared, answer = _parts(exercise)
    names = _defined(names, exercise.stub, prepared)
    outcome, start = Outcome(exercise.check), _processor_time()
    assert eval(exercise.call, _defined(names, answer)), exercise.check
    seconds = SECONDS + 4 * (_processor_time() - start)
    found: dict[str, bool] = {}  # whether all that read alike are refused
    for i, mutant in enumerate(mutants(answer)):
        if i % share and not _listed(mutant.change, listed):
            continue
        refused = _is_refused(exercise.call, mutant.code, names, seconds)
        outcome.made += 1
        outcome.refused += refused
        found[mutant.change] = found.get(mutant.change, True) and refused
    accepted = [change for change, refused in found.items() if not refused]
    outcome.unlisted = [change for change in accepted if not _listed(change, listed)]
    outcome.outdated = [line for line in listed if not any(_listed(a, [line]) for a in accepted)]
    outcome.seconds = _processor_time() - start
    return outcome


def _processor_time() -> float:
    """Of this process and its children that have ended."""
    return sum(os.times()[:4])


def _listed(change: str, lines: Iterable[str]) -> bool:
    return any(
        change.startswith(line[:-1]) if line.endswith("…") else change == line for line in lines
    )


def _parts(exercise: Exercise) -> tuple[str, str]:
    """What a solution prepares before it defines what is asked for, and the rest."""
    body = ast.parse(exercise.solution).body
    defined = [
        i for i, each in enumerate(body) if isinstance(each, (ast.FunctionDef, ast.ClassDef))
    ]
    asked = {body[i].name for i in defined} & {*exercise.call[:-1].replace(",", "(").split("(")}
    start = defined[0] if asked else 0
    prepared, answer = (ast.unparse(ast.Module(part, [])) for part in (body[:start], body[start:]))
    return prepared, answer


def _defined(names: Any, *cells: str) -> Any:
    """The names of a notebook, and those that some cells bind."""
    here = dict(names)
    for cell in cells:
        exec(cell, here)
    return here


def _is_refused(call: str, code: str, names: Any, seconds: float) -> bool:
    """Whether a check refuses a mutant, or the mutant does not come to an end."""
    import resource

    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    status = 1
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.alarm(int(WAIT * seconds))  # for one that waits for itself
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        status = 0 if eval(call, _defined(names, code)) else 1
    finally:
        os._exit(status)


def equivalents() -> Listed:
    """The mutants that are as right as the solution: for each exercise the change, and why."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted(LISTS.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith(" "):
                exercise, _, reason = line.partition(": ")
            elif line.strip():
                found.setdefault(exercise, {})[line.strip()] = reason
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("names", nargs="*", help="of exercises or chapters; all without one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args(arguments)
    read = chapters()
    known = {name for c in read for name in (c.name, *(e.check for e in c.exercises))}
    if missing := sorted({*options.names} - known | {*_out_of_step(read)}):
        parser.error(f"not as in book/notebooks: {', '.join(missing)}; run `make notebooks` first")
    asked = [named for chapter in read if (named := _named(chapter, options.names)).exercises]
    total = Outcome("all")
    print(
        f"{'exercise':28}{'made':>6}{'refused':>9}{'equivalent':>12}{'unlisted':>10}{'seconds':>9}"
    )
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=1) as pool:
        for outcomes in pool.map(run, asked, [equivalents()] * len(asked)):
            for one in outcomes:
                _print(one)
                for name in ("made", "refused", "unlisted", "outdated", "seconds"):
                    setattr(total, name, getattr(total, name) + getattr(one, name))
    _print(total)
    return bool(total.unlisted or total.outdated)


def _out_of_step(read: Sequence[Chapter]) -> Iterator[str]:
    """The chapters whose solutions are others than those of their notebooks."""
    solutions = {chapter.name: [one.solution for one in chapter.exercises] for chapter in read}
    for page in (ROOT / "book").glob("*/*.md"):
        text, made = page.read_text(encoding="utf-8"), solutions.get(page.stem, [])
        if text.count("exercise-solution]") != len(made) or any(each not in text for each in made):
            yield page.stem


def _named(chapter: Chapter, names: Sequence[str]) -> Chapter:
    own = [e for e in chapter.exercises if {e.check, chapter.name} & {*names} or not names]
    return replace(chapter, exercises=tuple(own))


def _print(one: Outcome) -> None:
    left = one.made - one.refused
    numbers = f"{one.made:6}{one.refused:9}{left - len(one.unlisted):12}{len(one.unlisted):10}"
    print(f"{one.exercise:28}{numbers}{one.seconds:9.1f}")
    if one.exercise != "all":
        for mark, changes in (("+", one.unlisted), ("-", one.outdated)):
            print(*(f"  {mark} {change}\n" for change in changes), sep="", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
