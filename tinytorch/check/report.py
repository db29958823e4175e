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

import copy
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import numpy as np

from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor

_ELLIPSIS = "nothing yet: replace the ..."
_NONE = "None: write the body and return the result"
_ON_A_COPY = "Work on a copy: whoever called the function still needs what was passed to it."
_WIDTH = 60  # of a value or a hint: 76 columns, less the 16 of its label
_NUMBERS = 24  # an array of more is not shown in full
_ROWS = 4  # nor one of more lines
_ARRAYS = (np.ndarray, Tensor, RowSparse)


class NotYet(Exception):
    """Raised by the helpers of a check to say in their own words what came."""


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
            mark = "x" if case.passed else " "
            lines.append(_wrapped(f"  [{mark}] {case.claim}", _WIDTH + 10, 6))
            if not case.passed:
                lines += [
                    f"      {label:<9} {_wrapped(text, _WIDTH, 16)}"
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
    claim: str,
    answer: Any,
    *given: Any,
    expected: Any,
    hint: str = "",
    atol: float = 1e-5,
    part: tuple[str, Callable[[Any], Any]] | None = None,
    mistakes: Sequence[tuple[Any, str]] = (),
    show_expected: bool = True,
) -> Case:
    """Call `answer(*given)` and compare the result with `expected`.

    Numbers and arrays are compared by shape and, within `atol` (absolute and relative), by value;
    tensors by their data; tuples, lists and dictionaries item by item; anything else by type and
    `==`. An answer that raises an error, returns nothing, or changes the arrays, lists or
    dictionaries that it is given, has not passed.

    Args:
        claim: what should hold.
        answer: the reader's function; with no `given` and not callable, the value itself.
        given: what it is called with (copies of it).
        expected: what should come.
        hint: shown if something else came.
        atol: the largest difference that counts as equal.
        part: what of the result is compared: its name, and a function that takes it out.
        mistakes: pairs of a wrong result, or the class of an error, and the hint shown for it.
        show_expected: whether the report tells what was expected: not if it is to be predicted.

    Example:
        >>> case("adds", lambda x, y: x + y, 1, 2, expected=3).passed
        True
        >>> case("adds", lambda x, y: ..., 1, 2, expected=3).came
        'nothing yet: replace the ...'
        >>> case("adds", max, 1, 2, expected=3, mistakes=[(2, "That is the larger one.")]).hint
        'That is the larger one.'
    """
    got = _call(answer, given, part)
    failed = Case(claim, False, _show_all(given), hint=hint)
    came, wanted = got.told, _show(expected)
    if not got.told and not _same(got.value, expected, atol):
        wanted, came = _compared(expected, got.value, atol)
    if came:
        advice = next((text for wrong, text in mistakes if _is_mistake(got, wrong, atol)), hint)
        came = came if got.told else _labelled(part, came)
        wanted = _labelled(part, wanted) if show_expected else ""
        return replace(failed, expected=wanted, came=came, hint=advice)
    if got.changed:
        came = f"the right result, but `{got.changed}` is no longer what it was"
        return replace(failed, came=came, hint=_ON_A_COPY)
    return Case(claim, True)


def raises(claim: str, answer: Any, *given: Any, error: type[Exception], hint: str = "") -> Case:
    """Call `answer(*given)` and require that it raises `error`.

    Example:
        >>> raises("refuses text", int, "a", error=ValueError).passed
        True
    """
    got = _call(answer, given)
    if isinstance(got.error, error):
        return Case(claim, True)
    article = "an" if error.__name__[0] in "AEIOU" else "a"
    came = got.told or f"{_show(got.value)}, and no error"
    return Case(claim, False, _show_all(given), f"{article} {error.__name__}", came, hint)


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
            raise NotYet(f"{_show(result)}, which is no pair {names}")
        return result[i]

    return take


@dataclass(frozen=True)
class _Got:
    """What came of a call: a value, or words for the report where there is none to compare."""

    value: Any = None
    told: str = ""
    error: Exception | None = None
    changed: str = ""


def _call(
    answer: Any, given: Sequence[Any], part: tuple[str, Callable[[Any], Any]] | None = None
) -> _Got:
    if answer is ...:
        return _Got(told=_ELLIPSIS)
    if given and not callable(answer):
        return _Got(told=f"{_show(answer)}, which is not a function")
    passed = [_copied(value) for value in given]
    try:
        value = answer(*passed) if callable(answer) else answer
    except NotYet as told:
        return _Got(told=str(told))
    except Exception as error:  # whatever the reader's code raises belongs in the report
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        return _Got(told=_shortened(text), error=error)
    if value is None or value is ...:
        return _Got(told=_NONE if value is None else _ELLIPSIS)
    spoilt = [i for i, pair in enumerate(zip(given, passed, strict=True)) if not _kept(*pair)]
    changed = _name_of_argument(answer, spoilt[0]) if spoilt else ""
    if part is None:
        return _Got(value, changed=changed)
    try:
        return _Got(part[1](value), changed=changed)
    except NotYet as told:
        return _Got(told=str(told))
    except Exception:
        return _Got(told=f"{_show(value)}, which has no {part[0]}")


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    return copy.deepcopy(value) if isinstance(value, (list, dict)) else value


def _kept(before: Any, after: Any) -> bool:
    """Whether an argument is, after the call, what it was before."""
    if isinstance(before, np.ndarray):
        return before.shape == after.shape and before.tobytes() == after.tobytes()
    return not isinstance(before, (list, dict)) or repr(before) == repr(after)


def _name_of_argument(answer: Callable[..., Any], i: int) -> str:
    try:
        return list(inspect.signature(answer).parameters)[i]
    except (IndexError, TypeError, ValueError):
        return f"argument {i + 1}"


def _is_mistake(got: _Got, wrong: Any, atol: float) -> bool:
    if isinstance(wrong, type):
        return isinstance(got.error, wrong)
    return not got.told and _same(got.value, wrong, atol)


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


def _is_array(value: Any) -> bool:
    return isinstance(value, _ARRAYS)


def _is_numeric(value: Any) -> bool:
    try:
        return _array(value).dtype.kind in "fiub"
    except (TypeError, ValueError):
        return False


def _labelled(part: tuple[str, Any] | None, text: str) -> str:
    if part is None:
        return text
    line = f"{part[0]}: {text}"
    return line if "\n" not in text and len(line) <= _WIDTH else f"{part[0]}:\n{text}"


def _compared(expected: Any, came: Any, atol: float) -> tuple[str, str]:
    """Two different results as text, both in the same way; of long ones where they differ."""
    arrays = _is_array(expected) or _is_array(came)
    if not (_is_numeric(expected) and _is_numeric(came)):
        return _show(expected), _show(came)
    e, c = _array(expected), _array(came)
    if not arrays and max(e.ndim, c.ndim) < 2:
        return _show(expected), _show(came)
    if e.shape != c.shape:
        return _show_array(e, shape=True), _show_array(c, shape=True)
    if not _is_short(e) or not _is_short(c):
        return _first_difference(e, c, atol)
    for precision in (4, 8, 16):
        texts = _show_array(e, precision=precision), _show_array(c, precision=precision)
        if texts[0] != texts[1]:
            break
    return texts


def _first_difference(e: np.ndarray, c: np.ndarray, atol: float) -> tuple[str, str]:
    wrong = np.argwhere(~np.isclose(c, e, rtol=atol, atol=atol))
    place = tuple(int(i) for i in wrong[0])
    at = f"at [{', '.join(map(str, place))}]"
    count = f"the first of {len(wrong)} that differ" if len(wrong) > 1 else "the only one to differ"
    return f"{_show(e[place])} {at}, shape {e.shape}", f"{_show(c[place])} {at}, {count}"


def _show(value: Any) -> str:
    """A value as a reader would type it, shortened."""
    try:
        table = isinstance(value, list) and _is_numeric(value) and _array(value).ndim > 1
        return _show_array(_array(value)) if table or _is_array(value) else _show_plain(value)
    except Exception:  # a repr may be the reader's own code
        return f"a {type(value).__name__}"


def _show_plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        inner = ", ".join(_show(item) for item in value)
        comma = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return _shortened(f"[{inner}]" if isinstance(value, list) else f"({inner}{comma})")
    if isinstance(value, dict):
        inner = ", ".join(f"{_show(key)}: {_show(item)}" for key, item in value.items())
        return _shortened(f"{{{inner}}}")
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if isinstance(value, np.generic):
        value = value.item()
    return f"{value:.6g}" if isinstance(value, float) else _shortened(repr(value))


def _show_array(array: np.ndarray, shape: bool = False, precision: int = 4) -> str:
    """An array with its shape where one does not see it, on one line if there is room."""
    if not _is_short(array):
        return f"an array of shape {array.shape}"
    text = _array_text(array, precision)
    if not shape and array.ndim < 2:
        return text
    last = text.rsplit("\n", 1)[-1]
    shown = f"shape {array.shape}"
    return f"{text}, {shown}" if len(last) + 2 + len(shown) <= _WIDTH else f"{text},\n{shown}"


def _is_short(array: np.ndarray) -> bool:
    return array.size <= _NUMBERS and _array_text(array, 4).count("\n") < _ROWS


def _array_text(array: np.ndarray, precision: int) -> str:
    if not array.ndim:
        return _show(array[()])
    text = np.array2string(
        array + 0.0 if array.dtype.kind == "f" else array,  # no minus in front of a zero
        separator=", ",
        precision=precision,
        suppress_small=True,
        max_line_width=_WIDTH,
    )
    line = re.sub(r"(?<=\[) | (?=[],])", "", re.sub(r"\s+", " ", text))
    return line if len(line) < _WIDTH else text.replace("\n\n", "\n")


def _show_all(given: Sequence[Any]) -> str:
    """The arguments of a call: each array on a line of its own, what is short together."""
    lines: list[list[str]] = [[]]
    for value in given:
        if _is_array(value):
            lines += [[_show(value)], []]
        else:
            lines[-1].append(_show(value))
    return "\n".join(", ".join(line) for line in lines if line)


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def _wrapped(text: str, width: int, indent: int) -> str:
    """Lines of at most `width`, if the words allow it, all but the first indented."""
    lines: list[str] = []
    for line in text.split("\n"):
        lines += textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    return ("\n" + " " * indent).join(lines)
