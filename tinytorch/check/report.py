"""How an exercise is checked: cases in order, a report that never raises.

A check is a generator of cases. Each case runs the reader's answer on one input and compares what
came with what was expected; `exercise` collects them, stops at the first that does not hold, and
says what was given, what was expected, what came, and a hint::

    @exercise(points=2)
    def double(answer):
        yield case("doubles a number", answer, 3, expected=6, hint="Add it to itself.")
        yield case("keeps the sign", answer, -1, expected=-2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import numpy as np

from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor


@dataclass(frozen=True)
class Case:
    """One thing an answer should do, and whether it did.

    Attributes:
        claim: what should hold, a short clause: "sums repeated tokens".
        passed: whether it held.
        given: the input, as text.
        expected: what was expected, as text.
        came: what came, as text.
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
        >>> Report("double", 2, [Case("doubles a number", True)])
        double: solved, 2 of 2 points
          [x] doubles a number
    """

    name: str
    points: int
    cases: list[Case] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.cases) and all(case.passed for case in self.cases)

    def __repr__(self) -> str:
        head = f"solved, {self.points} of {self.points} points" if self else "not yet"
        lines = [f"{self.name}: {head}"]
        for case in self.cases:
            lines.append(f"  [{'x' if case.passed else ' '}] {case.claim}")
            if not case.passed:
                lines += [
                    f"      {label:<9} {_indented(text)}"
                    for label, text in (
                        ("given", case.given),
                        ("expected", case.expected),
                        ("came", case.came),
                        ("hint", case.hint),
                    )
                    if text
                ]
        return "\n".join(lines)


def exercise(points: int = 1) -> Callable[[Callable[..., Iterator[Case]]], Callable[..., Report]]:
    """Turn a generator of cases into a check that returns a `Report`.

    Args:
        points: what the exercise is worth.

    Example:
        >>> @exercise(points=2)
        ... def double(answer):
        ...     yield case("doubles a number", answer, 3, expected=6, hint="Add it to itself.")
        >>> double(lambda x: x * x)
        double: not yet
          [ ] doubles a number
              given     3
              expected  6
              came      9
              hint      Add it to itself.
        >>> bool(double(lambda x: 2 * x))
        True
    """

    def decorate(cases_of: Callable[..., Iterator[Case]]) -> Callable[..., Report]:
        @wraps(cases_of)
        def check(*answers: Any) -> Report:
            cases = []
            for found in cases_of(*answers):
                cases.append(found)
                if not found.passed:
                    break
            return Report(cases_of.__name__, points, cases)

        return check

    return decorate


def case(
    claim: str, answer: Any, *given: Any, expected: Any, hint: str = "", atol: float = 1e-5
) -> Case:
    """Call `answer(*given)` and compare the result with `expected`.

    Numbers and arrays are compared by shape and, within `atol` (absolute and relative), by value;
    tensors by their data; tuples, lists and dictionaries item by item; anything else by type and
    `==`. An answer that raises an error, or returns nothing, has not passed.

    Args:
        claim: what should hold.
        answer: the reader's function; with no `given` and not callable, the value itself.
        given: what it is called with.
        expected: what should come.
        hint: shown if something else came.
        atol: the largest difference that counts as equal.

    Example:
        >>> case("adds", lambda x, y: x + y, 1, 2, expected=3).passed
        True
        >>> case("adds", lambda x, y: ..., 1, 2, expected=3).came
        'nothing yet: replace the ...'
    """
    shown = ", ".join(_show(value) for value in given)
    failed = Case(claim, False, shown, _show(expected), hint=hint)
    if not given and not callable(answer):
        came = answer
    elif not callable(answer):
        return _but(failed, f"{_show(answer)}, which is not a function")
    else:
        try:
            came = answer(*given)
        except Exception as error:  # whatever the reader's code raises belongs in the report
            return _but(failed, f"{type(error).__name__}: {error}")
    if came is None or came is ...:
        return _but(failed, "nothing yet: replace the ...")
    if _same(came, expected, atol):
        return Case(claim, True)
    return _but(failed, _show(came))


def raises(claim: str, answer: Any, *given: Any, error: type[Exception], hint: str = "") -> Case:
    """Call `answer(*given)` and require that it raises `error`.

    Example:
        >>> raises("refuses text", int, "a", error=ValueError).passed
        True
    """
    failed = Case(
        claim, False, ", ".join(_show(value) for value in given), f"a {error.__name__}", hint=hint
    )
    try:
        came = answer(*given)
    except error:
        return Case(claim, True)
    except Exception as other:
        return _but(failed, f"{type(other).__name__}: {other}")
    if came is None or came is ...:
        return _but(failed, "nothing yet: replace the ...")
    return _but(failed, f"{_show(came)}, and no error")


def _but(failed: Case, came: str) -> Case:
    return Case(failed.claim, False, failed.given, failed.expected, came, failed.hint)


def _same(came: Any, expected: Any, atol: float) -> bool:
    if isinstance(expected, (bool, np.bool_)):
        return isinstance(came, (bool, np.bool_)) and bool(came) == bool(expected)
    if isinstance(expected, dict):
        return (
            isinstance(came, dict)
            and came.keys() == expected.keys()
            and all(_same(came[key], value, atol) for key, value in expected.items())
        )
    if isinstance(expected, (tuple, list)) and not _is_numeric(expected):
        return (
            isinstance(came, (tuple, list))
            and len(came) == len(expected)
            and all(_same(c, e, atol) for c, e in zip(came, expected, strict=True))
        )
    if _is_numeric(expected):
        if not _is_numeric(came):
            return False
        c, e = _array(came), _array(expected)
        return c.shape == e.shape and bool(np.allclose(c, e, rtol=atol, atol=atol))
    return isinstance(came, type(expected)) and bool(came == expected)


def _array(value: Any) -> np.ndarray:
    if isinstance(value, RowSparse):
        return value.to_dense()
    return np.asarray(value.data if isinstance(value, Tensor) else value)


def _is_numeric(value: Any) -> bool:
    try:
        return _array(value).dtype.kind in "fiub"
    except (TypeError, ValueError):
        return False


def _show(value: Any) -> str:
    """A value as a reader would type it, shortened."""
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if isinstance(value, (Tensor, RowSparse, np.ndarray)):
        array = _array(value)
        text = np.array2string(
            array, separator=", ", precision=4, suppress_small=True, threshold=40
        )
        return f"{text}, shape {array.shape}" if array.ndim else text
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _indented(text: str) -> str:
    return text.replace("\n", "\n" + " " * 16)
