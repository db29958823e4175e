"""Every report on every answer that the tests hand in, to compare before and after a rewrite.

A check that is only written otherwise says the same, word by word, about each answer: the page's
solution, what stands in `answers`, the mistakes that the check declares, and junk. Before the
rewrite and after it,

    python tests/lab/exercises/reports.py write before.json tensors autograd
    python tests/lab/exercises/reports.py write after.json tensors autograd
    python tests/lab/exercises/reports.py compare before.json after.json

Names are those of chapters or of checks. The differences are printed; addresses are masked, and the
other numbers that an answer is tried with are the same each time.
"""

import argparse
import ast
import contextlib
import difflib
import inspect
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "book"), str(ROOT / "book/_static/live")]
from _ext.teaching.nbgrader_course import chapters, with_what_acts  # noqa: E402
from cell_names import missing_names, needed_cells  # noqa: E402

from tinytorch import Tensor  # noqa: E402
from tinytorch_book import check  # noqa: E402
from tinytorch_book.exercises import exercise as declaring  # noqa: E402
from tinytorch_book.exercises.cases import _SHARE, Case  # noqa: E402
from tinytorch_book.exercises.judging import judge  # noqa: E402
from tinytorch_book.exercises.report import Report  # noqa: E402

EXERCISES = {e.check: (chapter, e) for chapter in chapters() for e in chapter.exercises}
MODULES = {name: chapter.name.replace("-", "_") for name, (chapter, _) in EXERCISES.items()}
ANSWERS = {name: import_module(f"answers.{name}") for name in sorted({*MODULES.values()})}
JUNK = {
    "None": None,
    "the dots": ...,
    "a number": 3,
    "text": "a",
    "an empty list": [],
    "an empty dictionary": {},
    "an array": np.ones((2, 3)),
    "a tensor": Tensor([1.0]),
    "returns None": lambda *a, **k: None,
    "returns the dots": lambda *a, **k: ...,
    "returns a number": lambda *a, **k: 3,
    "returns NaN": lambda *a, **k: float("nan"),
    "returns text": lambda *a, **k: "a",
    "returns an array": lambda *a, **k: np.ones(3),
    "returns a tensor": lambda *a, **k: Tensor([[2.0]]),
    "returns a tuple": lambda *a, **k: (1, None),
    "returns a function": lambda *a, **k: lambda *b: 3,
    "raises": lambda *a, **k: 1 / 0,
    "leaves": lambda *a, **k: exit(),
    "takes nothing": lambda: 1,
    "a class": type("Nothing", (), {}),
}


# What is handed in ----------------------------------------------------------------------------


@cache
def solution(name: str, *edits: str) -> Any:
    """What the page's solution hands to a check; of two answers a pair.

    Args:
        name: the check.
        edits: what is written otherwise in the solution: a piece of it, and what stands there, in
            turn.
    """
    chapter, one = EXERCISES[name]
    code, cells = one.solution, [*chapter.needed]
    for before, after in zip(edits[::2], edits[1::2], strict=True):
        assert before in code, f"{before!r} is not in the solution"
        code = code.replace(before, after)
    tree = ast.parse(code)  # without what it prints
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Expr, ast.Assert))]
    used = missing_names(f"{one.stub}\n\n{ast.unparse(tree)}")
    above = [cells[i] for i in with_what_acts(cells, needed_cells(cells, used))]
    asked = SimpleNamespace(**{name: lambda *answers: answers})
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for cell in (*above, one.stub, ast.unparse(tree)):
            exec(cell, names)
        answers = eval(one.call, {**names, "check": asked})
    return answers if len(answers) > 1 else answers[0]


def is_prediction(name: str) -> bool:
    """Whether a dictionary of values is asked for."""
    return re.search(r"^\w+ = \{\n.*: \.\.\.", EXERCISES[name][1].stub, re.MULTILINE) is not None


def judged(name: str, answer: Any) -> Report:
    """The report of a check; where it asks for several answers they come as a tuple."""
    checked = getattr(check, name)
    several = len(inspect.signature(checked.__wrapped__).parameters) > 1
    report: Report = checked(*answer) if several else checked(answer)
    return report


def completed(name: str, answer: Any) -> Any:
    """An answer as it is handed in.

    Of a prediction only what is wrong is listed; edits stand for the solution that they make.
    """
    if isinstance(answer, tuple) and isinstance(answer[0], str):
        return solution(name, *answer)
    return solution(name) | answer if is_prediction(name) and isinstance(answer, dict) else answer


# What is declared -----------------------------------------------------------------------------


class Mistake(NamedTuple):
    """A mistake that a check declares: of which value, what is wrong, and its hint."""

    key: str
    wrong: Any
    hint: str

    @property
    def row(self) -> tuple[str, str, Any]:
        """What is the same for a mistake that several cases have, each with its own numbers."""
        value = repr(self.wrong) if self.key else ""
        return self.key, without_numbers(self.hint), getattr(self.wrong, "__code__", value)

    @property
    def is_answer(self) -> bool:
        """Whether it can be handed in: a function, or the value of one prediction."""
        is_error = isinstance(self.wrong, type) and issubclass(self.wrong, BaseException)
        return bool(self.key) or (callable(self.wrong) and not is_error)


def without_numbers(hint: str) -> str:
    """A hint without the numbers of its case."""
    return re.sub(r"\d+", "0", hint)


@contextlib.contextmanager
def posed_cases(with_rules: bool = True) -> Iterator[list[Case]]:
    """Collect the cases that a check poses, each with the mistakes that are declared for it."""
    posed: list[Case] = []

    def look(case: Case) -> Any:
        posed.append(case)
        return judge(case if with_rules else replace(case, rules=()))

    declaring.judge = look  # type: ignore[attr-defined]
    try:
        yield posed
    finally:
        declaring.judge = judge  # type: ignore[attr-defined]


def mistakes_of(name: str, posed: Sequence[Case]) -> list[Mistake]:
    """Those of some cases, none twice; the percentages that all predictions know are no row."""
    keys = solution(name) if is_prediction(name) else {}
    found: dict[Any, Mistake] = {}
    for case in posed:
        key = max([key for key in keys if key in case.claim], key=len, default="")
        for pair in case.mistakes:
            mistake = Mistake(key, *pair)
            if mistake.hint != _SHARE:
                found.setdefault(mistake.row, mistake)
    return [*found.values()]


@cache
def declared(name: str) -> list[Mistake]:
    """The mistakes that a check declares."""
    with posed_cases() as posed:
        assert judged(name, solution(name)), name
    return mistakes_of(name, posed)


# Snapshots ------------------------------------------------------------------------------------


def handed_in(name: str) -> Iterator[tuple[str, Any]]:
    """Every answer to an exercise that the tests know."""
    module = ANSWERS[MODULES[name]]
    yield "solution", solution(name)
    for i, answer in enumerate(module.RIGHT.get(name, [])):
        yield f"right {i}", completed(name, answer)
    for what, answer in module.WRONG[name].items():
        yield f"wrong: {what}", completed(name, answer)
    for i, mistake in enumerate(filter(lambda each: each.is_answer, declared(name))):
        wrong = {mistake.key: mistake.wrong} if mistake.key else mistake.wrong
        yield f"mistake: {mistake.hint} ({i})", completed(name, wrong)
    several = len(inspect.signature(getattr(check, name).__wrapped__).parameters)
    for what, junk in JUNK.items():
        yield f"junk: {what}", (junk,) * several if several > 1 else junk


def told(name: str, answer: Any) -> str:
    """All that a report says, of later cases too, without addresses in memory."""
    report = judged(name, answer)
    said = [json.dumps(found) for data in report.told() for found in data["checks"]]
    return re.sub(r"0x[0-9a-f]+", "0x", "\n".join([repr(report), *said]))


def write(path: str, names: Sequence[str]) -> None:
    """Write the reports of some exercises or chapters; of all without a name."""
    known = {*EXERCISES, *MODULES.values()}
    if unknown := {*names} - known:
        raise SystemExit(f"no chapter and no check: {', '.join(sorted(unknown))}")
    asked = [name for name in EXERCISES if {name, MODULES[name]} & {*names} or not names]
    declaring.os.urandom = lambda n: bytes(n)  # the other numbers
    texts = {f"{n}, {what}": told(n, answer) for n in asked for what, answer in handed_in(n)}
    Path(path).write_text(json.dumps(texts, indent=0), encoding="utf-8")
    print(f"{len(texts)} reports of {len(asked)} exercises")


def compare(before: str, after: str) -> int:
    """Print what is said otherwise, and of which answers one knows nothing; the exit status."""
    a, b = (json.loads(Path(path).read_text(encoding="utf-8")) for path in (before, after))
    for name in sorted({*a, *b}):
        if a.get(name) != b.get(name):
            print(f"--- {name}")
            print(*difflib.unified_diff(a.get(name, "").split("\n"), b.get(name, "").split("\n"),
                                        lineterm="", n=0), sep="\n")  # fmt: skip
    same = sum(a[name] == b.get(name) for name in a)
    print(f"{same} of {len(a)} reports are the same, {len({*b} - {*a})} are new")
    return same < len(a)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("command", choices=["write", "compare"])
    parser.add_argument("path")
    parser.add_argument("rest", nargs="*", help="names to write, or the snapshot to compare with")
    options = parser.parse_args(arguments)
    os.environ["TINYTORCH_PARTS"] = ""  # nothing is kept
    if options.command == "write":
        write(options.path, options.rest)
        return 0
    return compare(options.path, *options.rest)


if __name__ == "__main__":
    sys.exit(main())
