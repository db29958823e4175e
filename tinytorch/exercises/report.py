"""How an exercise is checked: cases in order, a report that never raises.

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

import inspect
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import partial, wraps
from itertools import product
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.exercises import values
from tinytorch.exercises.capstone import parts
from tinytorch.exercises.rules import Rule, breach_of, is_empty, watched

_ELLIPSIS = "nothing yet: replace the ..."
_NONE = "None: write the body and return the result"
_UNTOUCHED = "nothing yet: write it, then run the cell"
_NEXT = "Fill in this one too."
_QUOTED = "Without quotes: what stands in quotes is text."
_ITERATOR = (
    "Its items come one at a time, and only once: collect them, with list(...) for instance."
)
_ON_A_COPY = "Work on a copy: whoever called the function still needs what was passed to it."
_FROM_REFERENCE = object()
_MORE = 1000  # seeds that a check may use itself
_others: ContextVar[int] = ContextVar("others", default=0)  # what `other_numbers` sets
_draws: ContextVar[bool] = ContextVar("draws", default=False)  # whether a check has drawn

Mistakes = Sequence[tuple[Any, str]]
Table = Mapping[str, tuple[Any, ...]]


class NotYet(Exception):
    """Raised by the helpers of a check to say in their own words what they got.

    Example:
        >>> def run(answer):
        ...     raise NotYet("a tensor without a gradient")
        >>> judge(case("has a gradient", print, expected=1, run=run)).got
        'a tensor without a gradient'
    """


@dataclass(frozen=True)
class Case:
    """One thing that an answer should do: `case` and `raises` make it, `judge` runs it.

    Attributes:
        claim: what should be true.
        answer: the reader's function; with no `given` and not callable, the value itself.
        given: the arguments of the call (copies of them).
        expected: what it should return; by default what the reference returns.
        error: the error that it should raise instead.
        hint: shown if it does something else.
        rtol: the largest difference that counts as equal, relative to what is expected.
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


Cases = Iterator[Case]


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
        >>> squared = (lambda x: x * x, "Add it to itself.")
        >>> @exercise(points=2, reference=lambda x: 2 * x, mistakes=[squared])
        ... def double(answer):
        ...     yield case("doubles a number", answer, 3)
        >>> double(lambda x: x * x)
        double: not yet
          [ ] doubles a number
              given     3
              expected  6
              got       9
              hint      Add it to itself.
        >>> bool(double(lambda x: x + x))
        True
    """

    def decorate(cases_of: Callable[..., Cases]) -> Callable[..., Report]:
        @wraps(cases_of)
        def check(*answers: Any) -> Report:
            _draws.set(False)
            posed = map(completed, cases_of(*answers))
            untouched = all(is_empty(getattr(answer, stub, answer)) for answer in answers)
            report = Report(cases_of.__name__, points, untouched=untouched, later=posed)
            for one in posed:
                report.cases.append(judge(one))
                if not report.cases[-1].passed:
                    break
            if report and _draws.get() and not _others.get():
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
        >>> judge(case("adds", lambda x, y: ..., 1, 2, expected=3)).got
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


class alone(dict):
    """The options of one line of a table for `cases`, as its last item.

    Example:
        >>> [posed] = cases(max, {"takes the larger": ("Look.", 1, 2, alone(rtol=0.1))})
        >>> posed.given, posed.rtol
        ((1, 2), 0.1)
    """


def cases(answer: Any, table: Table, mistakes: Mistakes = (), **options: Any) -> Cases:
    """A case for each line of a table, all with the same mistakes and options.

    Args:
        answer: the reader's function.
        table: for each claim a hint, what the answer is given, and options of this line `alone`.
        mistakes: as for `case`.
        options: `run`, `part`, `rtol`, `atol`.

    Example:
        >>> table = {"adds": ("Sum them.", 1, 2), "takes a negative number": ("Sum them.", 1, -2)}
        >>> [(posed.claim, posed.given) for posed in cases(sum, table)]
        [('adds', (1, 2)), ('takes a negative number', (1, -2))]
    """
    for claim, (hint, *given) in table.items():
        own = given.pop() if given and isinstance(given[-1], alone) else {}
        yield case(claim, answer, *given, **{"mistakes": mistakes, **options, **own, "hint": hint})


def predictions(answer: Any, results: Table, claim: str = "{}") -> Cases:
    """A case for each value to be predicted in a dictionary; no value is shown.

    Args:
        answer: the reader's dictionary.
        results: for each of its keys what is expected, a hint, and pairs of a mistake and its hint.
        claim: what a case claims, with {} for the key.

    Example:
        >>> [judge(posed).passed for posed in predictions({"1 + 1": 2}, {"1 + 1": (2, "Count.")})]
        [True]
    """
    for name, (wanted, hint, *known) in results.items():
        value = answer.get(name, ...) if isinstance(answer, dict) else ...
        options = {"expected": wanted, "mistakes": known, "show_expected": False}
        if isinstance(value, str) and not isinstance(wanted, str):
            hint = _QUOTED
        yield case(claim.format(name), value, hint=_NEXT if value is ... else hint, **options)


def measured(
    claim: str, answer: Any, *given: Any, run: Any, aim: float, told: str, **options: Any
) -> Cases:
    """A case that passes if a measurement is at most the aim, and then one that shows the figure.

    Args:
        claim: what should be true, including the aim.
        answer: the reader's.
        given: what it is called with.
        run: measures: `run(answer, *given)` is a number, or several, of which the first decides.
        aim: the largest number that is good enough.
        told: a format for what was measured, with its unit.
        options: the other attributes of a `Case`.

    Example:
        >>> told, run = "{} letters", lambda answer, text: len(text)
        >>> list(map(judge, measured("is short", print, "abc", run=run, aim=2, told=told)))[0].got
        '3 letters'
        >>> @exercise()
        ... def brief(answer):
        ...     yield from measured("is short", answer, "abc", run=run, aim=4, told=told)
        >>> brief(print)
        brief: solved, 1 of 1 points
          [x] is short
          [x] reached: 3 letters
    """
    reached: list[str] = []

    def measure(answer: Any, *given: Any) -> str:
        figure = run(answer, *given)
        figures = figure if isinstance(figure, tuple) else (figure,)
        if not figures[0] <= aim:  # nor is NaN
            raise NotYet(told.format(*figures))
        reached.append(f"reached: {told.format(*figures)}")
        return "reached"

    yield case(claim, answer, *given, run=measure, expected="reached", **options)
    for figure in reached:  # empty unless that case was run and has passed
        yield case(figure, True, expected=True)


def drawn(*shapes: Any, seed: int = 0) -> list[np.ndarray]:
    """Normally distributed numbers, an array for each shape, the same for the same seed.

    Example:
        >>> [array.shape for array in drawn(2, (3, 4))]
        [(2,), (3, 4)]
    """
    rng = generator(seed)
    return [rng.normal(size=shape) for shape in shapes]


def generator(seed: int = 0) -> "np.random.Generator":  # quoted: it is loaded when used
    """A generator for what `drawn` does not draw: whole numbers, an order, shares of one.

    Example:
        >>> bool(generator(1).integers(10) == generator(1).integers(10))
        True
    """
    return np.random.default_rng(seed_of(seed))


def seed_of(seed: int) -> int:
    """A seed for what a check draws without `drawn`: stories, whole numbers.

    Args:
        seed: the number of the draw, below 1,000.

    Example:
        >>> with other_numbers(2):
        ...     seed_of(7)
        2007
        >>> seed_of(7)
        7
    """
    _draws.set(True)
    return seed + _MORE * _others.get()


@contextmanager
def other_numbers(seed: int) -> Iterator[None]:
    """Let the checks draw other numbers: an answer must not rely on those that a reader can see.

    Args:
        seed: at least 1; each has its own numbers.

    Example:
        >>> with other_numbers(1):
        ...     [others] = drawn(2)
        >>> others == drawn(2)[0]
        array([False, False])
    """
    before = _others.set(seed)
    try:
        yield
    finally:
        _others.reset(before)


def one_of(name: str, *names: str) -> tuple[str, Callable[[Any], Any]]:
    """For `part`: takes the item of this name out of a tuple or a list.

    Args:
        name: one of the names.
        names: the names of the items, in order.

    Example:
        >>> name, take = one_of("bytes", "runs", "bytes")
        >>> name, take((2, 8))
        ('bytes', 8)
    """

    def take(result: Any) -> Any:
        if not isinstance(result, (tuple, list)) or len(result) != len(names):
            raise NotYet(f"{values.show(result)}, which is not ({', '.join(names)})")
        return result[names.index(name)]

    return name, take


def as_new(answer: Any, *given: Any) -> Any:
    """For `run`: what an answer returns, provided that it shares no memory with the arguments.

    Example:
        >>> x = np.zeros(2)
        >>> as_new(np.copy, x)
        array([0., 0.])
        >>> as_new(np.ravel, x)  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        ...
        NotYet: numbers in an array that it was given, and not in a new one
    """
    result = answer(*given)
    for made, had in product(_arrays_in(result), _arrays_in(given)):
        if np.may_share_memory(made, had):
            raise NotYet("numbers in an array that it was given, and not in a new one")
    return result


def judge(posed: Case) -> Finding:
    """Run a case on the answer; the finding says whether it passed, and if not, why.

    Example:
        >>> found = judge(case("adds", max, 1, 2, expected=3, hint="Not the larger one."))
        >>> found.passed, found.given, found.expected, found.got, found.hint
        (False, '1, 2', '3', '2', 'Not the larger one.')
    """
    value, error, told, breach = None, None, "", ("", "")
    failed = Finding(posed.claim, False, values.show_all(posed.given), hint=posed.hint)
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
    known = posed.expected is not _FROM_REFERENCE
    expected = posed.expected if known else _result(posed, posed.reference)
    if told or not _equal(posed, value, expected):
        wanted, got = values.show(expected), told
        if not told:
            wanted, got = values.compared(expected, value, posed.rtol, posed.atol)
            got = _labelled(posed.part, got)
        wanted = _labelled(posed.part, wanted) if posed.show_expected else ""
        hint = _advice(posed, value, told, error)
        return replace(failed, expected=wanted, got=got, hint=hint)
    if breach[0]:
        return replace(failed, got=f"the right result, but {breach[0]}", hint=breach[1])
    return Finding(posed.claim, True)


# Helpers -------------------------------------------------------------------------------------


def _called(posed: Case) -> tuple[Any, tuple[str, str]]:
    """The part of the answer's result to compare, and the rule it breaks; `NotYet` if nothing."""
    answer, given, function = posed.answer, posed.given, callable(posed.answer)
    if given and not function and answer is not ...:
        raise NotYet(f"{values.show(answer)}, which is not a function")
    passed = [values.copied(value) for value in given]
    with np.errstate(all="ignore"), watched(posed.rules) as breaches:
        value = _run(posed, answer, passed) if function else answer
    if value is None or value is ...:
        raise NotYet(_NONE if value is None else _ELLIPSIS)
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


def _arrays_in(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays_in(item)
    elif isinstance(value, (np.ndarray, Tensor)):
        yield values.as_array(value)


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


def _advice(posed: Case, value: Any, told: str, error: BaseException | None) -> str:
    """The hint of the first mistake with the same result; that of the case if there is none."""
    for wrong, hint in posed.mistakes:
        if isinstance(wrong, type) and issubclass(wrong, BaseException):
            if isinstance(error, wrong):
                return hint
        elif not told and _equal(posed, value, wrong):
            return hint
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


def _wrapped(text: str, width: int, indent: int) -> str:
    """Lines of at most `width` if the words allow it, all but the first indented."""
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    pieces = (piece for line in text.split("\n") for piece in wrap(line) or [""])
    return ("\n" + " " * indent).join(pieces)
