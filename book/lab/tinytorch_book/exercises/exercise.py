"""How an exercise is declared: `@exercise` makes a check, which reports and never raises, of cases.

An exercise is declared once, with a reference function, the mistakes that readers make, as
functions too, and the rules that its statement names. A check is then a generator of cases, each
a claim, the answer, and its inputs. The expected result comes from the reference, in float64; an
answer that returns what a mistake returns gets the hint for that mistake::

    @exercise(
        points=2, reference=lambda x: 2 * x, mistakes=[(lambda x: x * x, "Add, do not square.")]
    )
    def double(answer):
        yield case("doubles a number", answer, 3, hint="Add it to itself.")
        yield case("keeps the sign", answer, -1)

Numbers that a check draws, by `drawn` or with a seed from `seed_of`, are the same whenever it is
asked, so that a report can be repeated; an answer that passes is asked once more, with others.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from tinytorch_book.exercises.capstone import parts
from tinytorch_book.exercises.cases import Case, Cases, Mistakes
from tinytorch_book.exercises.drawn_numbers import has_drawn, other_numbers, others
from tinytorch_book.exercises.judging import judge
from tinytorch_book.exercises.report import Report
from tinytorch_book.exercises.rules import is_empty


def exercise(
    points: int = 1, mistakes: Mistakes = (), stub: str = "", **common: Any
) -> Callable[[Callable[..., Cases]], Callable[..., Report]]:
    """Turn a generator of cases into a check that returns a `Report`.

    Args:
        points: what the exercise is worth.
        mistakes: pairs of a wrong function, and the hint for an answer that returns the same.
        stub: the attribute of the answer that is to be written, if the rest of it is given.
        common: attributes of a `Case` for every case that does not set its own, among them
            `reference`, the right function; `rules`, what the statement says about how the answer
            is written; `run`, how the answer, the reference and the mistakes are called:
            `run(answer, *given)`; `show_expected=False` where a value is to be predicted.

    Example:
        >>> from tinytorch_book.exercises.cases import case
        >>> squared = (lambda x: x * x, "Add it to itself.")
        >>> @exercise(points=2, reference=lambda x: 2 * x, mistakes=[squared])
        ... def double(answer):
        ...     yield case("doubles a number", answer, 3)
        >>> double(lambda x: x * x)
        double: not yet
          [ ] doubles a number
              given     x = 3
              expected  6
              got       9
              hint      Add it to itself.
        >>> bool(double(lambda x: x + x))
        True
    """

    def decorate(cases_of: Callable[..., Cases]) -> Callable[..., Report]:
        @wraps(cases_of)
        def check(*answers: Any) -> Report:
            has_drawn.set(False)
            posed = map(completed, cases_of(*answers))
            untouched = all(is_empty(getattr(answer, stub, answer)) for answer in answers)
            report = Report(cases_of.__name__, points, untouched=untouched, later=posed)
            for one in posed:
                report.cases.append(judge(one))
                if not report.cases[-1].passed:
                    break
            if report and has_drawn.get() and not others.get():
                with other_numbers(1 + int.from_bytes(os.urandom(3), "big")):
                    again = map(judge, map(completed, cases_of(*answers)))
                    failed = next((found for found in again if not found.passed), None)
                if failed:
                    told = replace(failed, claim=f"{failed.claim}, with other numbers")
                    report.cases.append(told)
            if not report:
                return report
            part, kept = parts.keep(report.name, answers[0])
            return replace(report, part=part, kept=kept)

        check.points = points  # type: ignore[attr-defined]
        return check

    def completed(posed: Case) -> Case:
        unset = {k: v for k, v in common.items() if getattr(posed, k) == getattr(Case, k)}
        return replace(posed, mistakes=(*posed.mistakes, *mistakes), **unset)

    return decorate
