"""Where an answer is judged: a case is run on it; the finding says whether it passed, or why not.

Whatever the answer does, `judge` never raises. `exercise.py` passes it one case after another.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tinytorch_book.exercises import values
from tinytorch_book.exercises.cases import FROM_REFERENCE, Case, NotYet
from tinytorch_book.exercises.rules import breach_of, watched

_ELLIPSIS = "nothing yet: replace the ..."
_NONE = "None: write the body and return the result"
_ITERATOR = (
    "Its items come one at a time, and only once: collect them, with list(...) for instance."
)
_AS_NUMBERS = "The right values, but as numbers: a Boolean array is asked for."
_AS_A_NUMBER = "Right, but as a number: True or False is asked for."
_ON_A_COPY = "Work on a copy: whoever called the function still needs what was passed to it."


@dataclass(frozen=True)
class Finding:
    """A case that was run: whether its claim held and, if not, what the report says, as text.

    Attributes:
        claim: what should be true, a short clause: "sums repeated tokens".
        passed: whether it was true.
        given: the input.
        expected: what was expected.
        got: what the answer gave instead.
        hint: where to look.
    """

    claim: str
    passed: bool
    given: str = ""
    expected: str = ""
    got: str = ""
    hint: str = ""


def judge(posed: Case) -> Finding:
    """Run a case on the answer; the finding says whether it passed, and if not, why.

    Example:
        >>> from tinytorch_book.exercises.cases import case
        >>> found = judge(case("adds", max, 1, 2, expected=3, hint="Not the larger one."))
        >>> found.passed, found.given, found.expected, found.got, found.hint
        (False, '1, 2', '3', '2', 'Not the larger one.')
    """
    value, error, told, breach = None, None, "", ("", "")
    called = partial(posed.run, posed.answer) if posed.run else posed.answer
    given = values.show_all(posed.given, called)
    failed = Finding(posed.claim, False, given, hint=posed.hint)
    try:
        value, breach = _called(posed)
    except (Exception, SystemExit) as caught:  # whatever the reader's code raises is reported
        text = f"{type(caught).__name__}: {caught}".removesuffix(": ")
        told, error = str(caught) if isinstance(caught, NotYet) else values.shortened(text), caught
    if posed.error and isinstance(error, posed.error):
        return Finding(posed.claim, True)
    if posed.error:
        name = posed.error.__name__
        expected = f"an {name}" if name[0] in "AEIOU" else f"a {name}"
        got = told or f"{values.show(value)}, and no error"
        return replace(failed, expected=expected, got=got)
    known = posed.expected is not FROM_REFERENCE
    expected = posed.expected if known else _result(posed, posed.reference)
    if told or not _equal(posed, value, expected):
        wanted, got = values.show(expected), told
        if not told:
            wanted, got = values.compared(expected, value, posed.rtol, posed.atol)
            got = _labelled(posed.part, got)
        wanted = _labelled(posed.part, wanted) if posed.show_expected else ""
        hint = _advice(posed, value, expected, told, error)
        return replace(failed, expected=wanted, got=got, hint=hint)
    if breach[0]:
        return replace(failed, got=f"the right result, but {breach[0]}", hint=breach[1])
    return Finding(posed.claim, True)


def _called(posed: Case) -> tuple[Any, tuple[str, str]]:
    """The part of the answer's result to compare, and the rule it breaks; `NotYet` if nothing."""
    answer, given, function = posed.answer, posed.given, callable(posed.answer)
    if given and not function and answer is not ...:
        raise NotYet(f"{values.show(answer)}, which is not a function")
    passed = [values.copied(value) for value in given]
    with np.errstate(all="ignore"), watched(posed.rules) as breaches:
        value = _run(posed, answer, passed) if function else answer
    if value is None or value is ...:
        predicted = not function and not posed.show_expected  # a value, which has no body
        raise NotYet(_ELLIPSIS if value is ... else "None" if predicted else _NONE)
    breach = breaches[0] if breaches else breach_of(posed.rules, answer)
    pairs = enumerate(zip(given, passed, strict=True))
    spoilt = [i for i, (before, after) in pairs if not values.unchanged(before, after)]
    if spoilt:
        name = _name_of_argument(posed.run or answer, spoilt[0] + (posed.run is not None))
        breach = f"`{name}` is no longer what it was", _ON_A_COPY
    try:
        return posed.part[1](value) if posed.part else value, breach
    except Exception as error:
        told = f"{values.show(value)}, which has no {posed.part[0] if posed.part else 'such part'}"
        raise error if isinstance(error, NotYet) else NotYet(told) from None


def _run(posed: Case, function: Any, given: Sequence[Any]) -> Any:
    return posed.run(function, *given) if posed.run else function(*given)


def _result(posed: Case, function: Any) -> Any:
    """What a reference or a mistake returns for the inputs of a case, in float64."""
    with np.errstate(all="ignore"):
        value = _run(posed, function, [values.copied(v, in_float64=True) for v in posed.given])
        return posed.part[1](value) if posed.part else value


def _equal(posed: Case, got: Any, wanted: Any) -> bool:
    """Whether the answer's result is the expected one, or what a function returns."""
    try:
        wanted = _result(posed, wanted) if callable(wanted) else wanted
        return values.same(got, wanted, posed.rtol, posed.atol)
    except Exception:  # the reader's own comparison fails, or a mistake has no result here
        return False


def _advice(posed: Case, value: Any, expected: Any, told: str, error: BaseException | None) -> str:
    """The hint of the first mistake with the same result; that of the case if there is none."""
    if isinstance(error, NotYet) and error.hint:
        return error.hint
    for wrong, hint in posed.mistakes:
        if isinstance(wrong, type) and issubclass(wrong, BaseException):
            if isinstance(error, wrong):
                return hint
        elif not told and _equal(posed, value, wrong):
            return hint
    boolean = isinstance(expected, (bool, np.ndarray)) and np.asarray(expected).dtype == np.bool_
    if boolean and posed.show_expected and _equal(posed, value, 1 * expected):
        return _AS_A_NUMBER if isinstance(expected, bool) else _AS_NUMBERS
    return _ITERATOR if isinstance(value, Iterator) else posed.hint


def _name_of_argument(answer: Callable[..., Any], i: int) -> str:
    try:
        return list(inspect.signature(answer).parameters)[i]
    except (IndexError, TypeError, ValueError):
        return f"argument {i + 1}"


def _labelled(part: tuple[str, Any] | None, text: str) -> str:
    line = f"{part[0]}: {text}" if part else text
    fits = part is None or ("\n" not in text and len(line) <= values.WIDTH)
    return line if fits else line.replace(": ", ":\n", 1)
