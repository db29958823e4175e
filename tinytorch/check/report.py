"""How an exercise is checked: cases in order, a report that never raises.

An exercise is declared once, with a reference function, the mistakes that readers make, as
functions too, and the rules that its statement names. A check is then a generator of cases, each of
them a claim, the answer, and inputs. What is expected comes from the reference, in float64; an
answer that returns what a mistake returns is shown the hint of that mistake::

    @exercise(
        points=2, reference=lambda x: 2 * x, mistakes=[(lambda x: x * x, "Add, do not square.")]
    )
    def double(answer):
        yield case("doubles a number", answer, 3, hint="Add it to itself.")
        yield case("keeps the sign", answer, -1)
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import numpy as np

from tinytorch.check.rules import Rule, breach_of, watched
from tinytorch.check.values import (
    WIDTH,
    compared,
    copied,
    in_float64,
    same,
    shortened,
    show,
    show_all,
    unchanged,
)

_ELLIPSIS = "nothing yet: replace the ..."
_NONE = "None: write the body and return the result"
_ON_A_COPY = "Work on a copy: whoever called the function still needs what was passed to it."
_FROM_REFERENCE = object()

Mistakes = Sequence[tuple[Any, str]]


class NotYet(Exception):
    """Raised by the helpers of a check to say in their own words what came.

    Example:
        >>> def run(answer):
        ...     raise NotYet("a tensor without a gradient")
        >>> judge(case("has a gradient", print, expected=1, run=run)).came
        'a tensor without a gradient'
    """


@dataclass(frozen=True)
class Case:
    """One thing that an answer should do: `case` and `raises` make it, `judge` runs it.

    Attributes:
        claim: what should hold.
        answer: the reader's function; with no `given` and not callable, the value itself.
        given: what it is called with (copies of it).
        expected: what should come; without it, what the reference returns.
        error: the error that should come instead.
        hint: shown if something else came.
        rtol: the largest difference that counts as equal, as a share of what is expected.
        atol: and in absolute terms, the same number unless given: 0 where tiny results count.
        part: what of the result is compared: its name, and a function that takes it out.
        mistakes: pairs of a wrong result, a function that returns it, or the class of an error, and
            the hint shown for it; those of the exercise come after them.
        show_expected: whether the report tells what was expected.
        reference: the right function, if it is not that of the exercise.
        run: how a function is called, if not as the exercise says.
        rules: those of the exercise.
    """

    claim: str
    answer: Any
    given: tuple[Any, ...] = ()
    expected: Any = _FROM_REFERENCE
    error: type[Exception] | None = None
    hint: str = ""
    rtol: float = 1e-5
    atol: float | None = None
    part: tuple[str, Callable[[Any], Any]] | None = None
    mistakes: Mistakes = ()
    show_expected: bool = True
    reference: Callable[..., Any] | None = None
    run: Callable[..., Any] | None = None
    rules: Sequence[Rule] = ()


@dataclass(frozen=True)
class Finding:
    """A case that was run: whether its claim held and, if not, what the report says, as text.

    Attributes:
        claim: what should hold, a short clause: "sums repeated tokens".
        passed: whether it held.
        given: the input.
        expected: what was expected.
        came: what came.
        hint: where to look.
    """

    claim: str
    passed: bool
    given: str = ""
    expected: str = ""
    came: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Report:
    """What a check found; true if every case passed. Its `repr` is the report itself.

    Attributes:
        name: the exercise.
        points: what it is worth.
        cases: the cases that were run, the failing one last.

    Example:
        >>> Report("double", 2, [Finding("doubles a number", True)])
        double: solved, 2 of 2 points
          [x] doubles a number
    """

    name: str
    points: int
    cases: list[Finding] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.cases) and all(case.passed for case in self.cases)

    def __repr__(self) -> str:
        head = f"solved, {self.points} of {self.points} points" if self else "not yet"
        lines = [f"{self.name}: {head}"]
        for found in self.cases:
            mark = "x" if found.passed else " "
            lines.append(_wrapped(f"  [{mark}] {found.claim}", WIDTH + 10, 6))
            for label in ("given", "expected", "came", "hint") if not found.passed else ():
                if text := getattr(found, label):
                    lines.append(f"      {label:<9} {_wrapped(text, WIDTH, 16)}")
        return "\n".join(lines)


def exercise(
    points: int = 1,
    reference: Callable[..., Any] | None = None,
    mistakes: Mistakes = (),
    rules: Sequence[Rule] = (),
    run: Callable[..., Any] | None = None,
    show_expected: bool = True,
) -> Callable[[Callable[..., Iterator[Case]]], Callable[..., Report]]:
    """Turn a generator of cases into a check that returns a `Report`.

    Args:
        points: what the exercise is worth.
        reference: the right function: what it returns is expected where a case does not say.
        mistakes: pairs of a wrong function, and the hint for an answer that returns the same.
        rules: what the statement says about how the answer is written.
        run: how the answer, the reference and the mistakes are called: `run(answer, *given)`; by
            default `answer(*given)`.
        show_expected: whether the report tells what was expected: not if it is to be predicted.

    Example:
        >>> squared = (lambda x: x * x, "Add it to itself.")
        >>> @exercise(points=2, reference=lambda x: 2 * x, mistakes=[squared])
        ... def double(answer):
        ...     yield case("doubles a number", answer, 3)
        >>> double(lambda x: x * x)
        double: not yet
          [ ] doubles a number
              given     3
              expected  6
              came      9
              hint      Add it to itself.
        >>> bool(double(lambda x: x + x))
        True
    """

    def decorate(cases_of: Callable[..., Iterator[Case]]) -> Callable[..., Report]:
        @wraps(cases_of)
        def check(*answers: Any) -> Report:
            found = []
            for posed in cases_of(*answers):
                posed = replace(
                    posed,
                    reference=posed.reference or reference,
                    mistakes=(*posed.mistakes, *mistakes),
                    rules=rules,
                    run=posed.run or run,
                    show_expected=posed.show_expected and show_expected,
                )
                found.append(judge(posed))
                if not found[-1].passed:
                    break
            return Report(cases_of.__name__, points, found)

        return check

    return decorate


def case(claim: str, answer: Any, *given: Any, **options: Any) -> Case:
    """Call `answer(*given)` and compare the result with what is expected, as `values.same` does.

    An answer that raises an error, returns nothing, breaks a rule of the exercise, or changes the
    arrays, tensors, lists or dictionaries that it is given, has not passed.

    Args:
        claim: what should hold.
        answer: the reader's function; with no `given` and not callable, the value itself.
        given: what it is called with (copies of it).
        options: the other attributes of a `Case`.

    Example:
        >>> judge(case("adds", lambda x, y: x + y, 1, 2, expected=3)).passed
        True
        >>> judge(case("adds", lambda x, y: ..., 1, 2, expected=3)).came
        'nothing yet: replace the ...'
        >>> larger = (max, "That is the larger one.")
        >>> judge(case("adds", lambda x, y: y, 1, 2, expected=3, mistakes=[larger])).hint
        'That is the larger one.'
    """
    return Case(claim, answer, given, **options)


def raises(claim: str, answer: Any, *given: Any, error: type[Exception], hint: str = "") -> Case:
    """Call `answer(*given)` and require that it raises `error`.

    Example:
        >>> judge(raises("refuses text", int, "a", error=ValueError)).passed
        True
    """
    return Case(claim, answer, given, error=error, hint=hint)


def cases(
    answer: Any, table: Mapping[str, tuple[Any, ...]], mistakes: Mistakes = (), **options: Any
) -> Iterator[Case]:
    """A case for each line of a table, all with the same mistakes and options of `case`.

    Args:
        answer: the reader's function.
        table: for each claim a hint, and what the answer is given.
        mistakes: as for `case`, and so are the others.
        options: `run`, `part`, `rtol`, `atol`.

    Example:
        >>> table = {"adds": ("Sum them.", 1, 2), "takes a negative number": ("Sum them.", 1, -2)}
        >>> [(posed.claim, posed.given) for posed in cases(sum, table)]
        [('adds', (1, 2)), ('takes a negative number', (1, -2))]
    """
    for claim, (hint, *given) in table.items():
        yield case(claim, answer, *given, hint=hint, mistakes=mistakes, **options)


def predictions(answer: Any, results: Mapping[str, tuple[Any, ...]]) -> Iterator[Case]:
    """A case for each value that is to be predicted in a dictionary, none of them told.

    Args:
        answer: the reader's dictionary.
        results: for each of its keys what is expected, a hint, and pairs of a mistake and its hint.

    Example:
        >>> [judge(posed).passed for posed in predictions({"1 + 1": 2}, {"1 + 1": (2, "Count.")})]
        [True]
    """
    for name, (expected, hint, *mistakes) in results.items():
        predicted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(
            name, predicted, expected=expected, hint=hint, mistakes=mistakes, show_expected=False
        )


def one_of_pair(i: int, names: str) -> Callable[[Any], Any]:
    """Something to give as the second half of `part`: takes item `i` of a result that is a pair.

    Args:
        i: 0 or 1.
        names: what the pair holds, for the report: "(runs, bytes)".

    Example:
        >>> one_of_pair(1, "(runs, bytes)")((2, 8))
        8
    """

    def take(result: Any) -> Any:
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise NotYet(f"{show(result)}, which is no pair {names}")
        return result[i]

    return take


def judge(posed: Case) -> Finding:
    """Run a case on the answer: it passes, or the finding says why not.

    Example:
        >>> found = judge(case("adds", max, 1, 2, expected=3, hint="Not the larger one."))
        >>> found.passed, found.given, found.expected, found.came, found.hint
        (False, '1, 2', '3', '2', 'Not the larger one.')
    """
    got = _called(posed)
    failed = Finding(posed.claim, False, show_all(posed.given), hint=posed.hint)
    if posed.error is not None:
        if isinstance(got.error, posed.error):
            return Finding(posed.claim, True)
        article = "an" if posed.error.__name__[0] in "AEIOU" else "a"
        came = got.told or f"{show(got.value)}, and no error"
        return replace(failed, expected=f"{article} {posed.error.__name__}", came=came)
    known = posed.expected is not _FROM_REFERENCE
    expected = posed.expected if known else _result(posed, posed.reference)
    came, wanted = got.told, show(expected)
    if not got.told and not _equal(posed, got.value, expected):
        wanted, came = compared(expected, got.value, *_tolerance(posed))
        came = _labelled(posed.part, came)
    if came:
        wanted = _labelled(posed.part, wanted) if posed.show_expected else ""
        return replace(failed, expected=wanted, came=came, hint=_advice(posed, got))
    if got.breach:
        return replace(failed, came=f"the right result, but {got.breach}", hint=got.remedy)
    return Finding(posed.claim, True)


# Helpers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Got:
    """What came of a call: a value, or words for the report where there is none to compare."""

    value: Any = None
    told: str = ""
    error: BaseException | None = None
    breach: str = ""
    remedy: str = ""


def _called(posed: Case) -> _Got:
    """Run the answer on copies, see which rules it breaks, and take out the part to compare."""
    answer, given = posed.answer, posed.given
    if answer is ...:
        return _Got(told=_ELLIPSIS)
    if given and not callable(answer):
        return _Got(told=f"{show(answer)}, which is not a function")
    passed = [copied(value) for value in given]
    try:
        with np.errstate(all="ignore"), watched(posed.rules) as breaches:
            value = _run(posed, answer, passed) if callable(answer) else answer
    except NotYet as told:
        return _Got(told=str(told))
    except (Exception, SystemExit) as error:  # whatever the reader's code raises is reported
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        return _Got(told=shortened(text), error=error)
    if value is None or value is ...:
        return _Got(told=_NONE if value is None else _ELLIPSIS)
    spoilt = [i for i, pair in enumerate(zip(given, passed, strict=True)) if not unchanged(*pair)]
    breach, remedy = breaches[0] if breaches else breach_of(posed.rules, answer)
    if spoilt:
        name = _name_of_argument(posed.run or answer, spoilt[0] + (posed.run is not None))
        breach, remedy = f"`{name}` is no longer what it was", _ON_A_COPY
    try:
        taken = posed.part[1](value) if posed.part else value
    except NotYet as told:
        return _Got(told=str(told))
    except Exception:
        return _Got(told=f"{show(value)}, which has no {posed.part[0] if posed.part else ''}")
    return _Got(taken, breach=breach, remedy=remedy)


def _run(posed: Case, function: Any, given: Sequence[Any]) -> Any:
    return posed.run(function, *given) if posed.run else function(*given)


def _result(posed: Case, function: Any) -> Any:
    """What a function of ours returns for the inputs of a case, in float64."""
    with np.errstate(all="ignore"):
        value = _run(posed, function, [in_float64(copied(value)) for value in posed.given])
        return posed.part[1](value) if posed.part else value


def _tolerance(posed: Case) -> tuple[float, float]:
    return posed.rtol, posed.rtol if posed.atol is None else posed.atol


def _equal(posed: Case, came: Any, expected: Any) -> bool:
    try:
        return same(came, expected, *_tolerance(posed))
    except Exception:  # a comparison may be the reader's own code
        return False


def _advice(posed: Case, got: _Got) -> str:
    """The hint of the first mistake that gives what came; that of the case if none does."""
    for wrong, hint in posed.mistakes:
        if isinstance(wrong, type) and issubclass(wrong, BaseException):
            if isinstance(got.error, wrong):
                return hint
        elif not got.told:
            try:
                result = _result(posed, wrong) if callable(wrong) else wrong
            except Exception:  # this mistake has no result here
                continue
            if _equal(posed, got.value, result):
                return hint
    return posed.hint


def _name_of_argument(answer: Callable[..., Any], i: int) -> str:
    try:
        return list(inspect.signature(answer).parameters)[i]
    except (IndexError, TypeError, ValueError):
        return f"argument {i + 1}"


def _labelled(part: tuple[str, Any] | None, text: str) -> str:
    if part is None:
        return text
    line = f"{part[0]}: {text}"
    return line if "\n" not in text and len(line) <= WIDTH else f"{part[0]}:\n{text}"


def _wrapped(text: str, width: int, indent: int) -> str:
    """Lines of at most `width`, if the words allow it, all but the first indented."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    return ("\n" + " " * indent).join(lines)
