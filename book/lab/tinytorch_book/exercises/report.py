"""The report on an answer, as text and as data: what was found, case by case."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from tinytorch_book.exercises import values
from tinytorch_book.exercises.capstone import parts
from tinytorch_book.exercises.cases import Case
from tinytorch_book.exercises.judging import Finding, judge

_UNTOUCHED = "nothing yet: write it, then run the cell"


@dataclass(frozen=True)
class Report:
    """What a check found; true if every case passed. Its `repr` is the report itself.

    Attributes:
        name: the exercise.
        points: how much it is worth.
        cases: the cases that were run, the failing one last.
        untouched: whether nothing has been written yet; then there is nothing to report.
        part: what the reader's own GPT takes from this answer, see `capstone.parts`.
        kept: where that is kept, or why it is not; "" if the exercise builds no part.
        later: the cases after the failing one, which `told` runs.

    Example:
        >>> Report("double", 2, [Finding("doubles a number", True)])
        double: solved, 2 of 2 points
          [x] doubles a number
        >>> Report("double", 2, untouched=True)
        double: not yet
          nothing yet: write it, then run the cell
    """

    name: str
    points: int
    cases: list[Finding] = field(default_factory=list)
    untouched: bool = False
    part: parts.Part | None = None
    kept: str = ""
    later: Iterator[Case] = field(default_factory=lambda: iter(()), compare=False)

    def __bool__(self) -> bool:
        return bool(self.cases) and all(case.passed for case in self.cases)

    def __repr__(self) -> str:
        head = f"solved, {self.points} of {self.points} points" if self else "not yet"
        lines = [f"{self.name}: {head}", *([f"  {_UNTOUCHED}"] if self.untouched else [])]
        for found in [] if self.untouched else self.cases:
            mark = "x" if found.passed else " "
            lines.append(_wrapped(f"  [{mark}] {found.claim}", values.WIDTH + 10, 6))
            for label in ("given", "expected", "got", "hint"):
                if text := getattr(found, label):
                    lines.append(f"      {label:<9} {_wrapped(text, values.WIDTH, 16)}")
        lines += [_wrapped(f"  {self.kept}", values.WIDTH + 10, 2)] if self.kept else []
        return "\n".join(lines)

    def told(self) -> Iterator[dict[str, Any]]:
        """The report as data, for a page: at once, and again with the findings of later cases.

        Each check is in one of three states: "passed", "not yet" or "not reached". An answer may
        run forever in a later case; what was found before has been shown by then.

        Example:
            >>> from tinytorch_book.exercises.cases import case
            >>> from tinytorch_book.exercises.exercise import exercise
            >>> @exercise()
            ... def double(answer):
            ...     yield case("doubles 3", answer, 3, expected=6)
            ...     yield case("doubles 2", answer, 2, expected=4)
            >>> first, last = double(lambda x: x * x).told()
            >>> [check["state"] for check in first["checks"]], first["passed"]
            (['not yet', 'not reached'], False)
            >>> [check["state"] for check in last["checks"]]
            ['not yet', 'passed']
        """
        later: list[Case] = []
        with suppress(Exception):  # what poses a case may rely on those before it
            for posed in self.later:
                later.append(posed)
        found = [] if self.untouched else [*self.cases]
        claims = [] if found else [case.claim for case in self.cases]
        claims += [posed.claim for posed in later]
        yield self._data(found, claims)
        if found and later:
            yield self._data(found + [judge(posed) for posed in later], [])

    def _data(self, found: Sequence[Finding], unreached: Sequence[str]) -> dict[str, Any]:
        states = {True: "passed", False: "not yet"}
        checks = [{**asdict(finding), "state": states[finding.passed]} for finding in found]
        checks += [{"claim": claim, "state": "not reached"} for claim in unreached]
        told = {"name": self.name, "points": self.points, "untouched": self.untouched}
        part = self.part and {"name": self.part.name, "section": parts.section(self.part)}
        kept = {"kept": self.kept, "part": part}
        return {**told, **kept, "passed": bool(self), "checks": checks, "text": repr(self)}


def _wrapped(text: str, width: int, indent: int) -> str:
    """Lines of at most `width` if the words allow it, all but the first indented."""
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    pieces = (piece for line in text.split("\n") for piece in wrap(line) or [""])
    return ("\n" + " " * indent).join(pieces)
