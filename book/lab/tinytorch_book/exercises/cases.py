"""What an exercise asks of an answer: cases, each a claim, the answer and its inputs.

The expected result of a case comes from the exercise's reference, in float64; an answer that
returns what a mistake returns gets the hint for that mistake. `judging.py` runs them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch_book.exercises import values
from tinytorch_book.exercises.rules import Rule

_NEXT = "Fill in this one too."
_QUOTED = "Without quotes: what stands in quotes is text."
_NO_NUMBER = "Fill in a number, or True or False."
_TRUTH = "True or False is asked for, not a number."
_NUMBER = "A number is asked for, not True or False."
_SPELLED = "Spell it as the exercise does: capitals and blanks count."
_SHARE = "As a share of 1: 5 % is 0.05."
FROM_REFERENCE = object()  # what a case expects unless it says so

Mistakes = Sequence[tuple[Any, str]]
Table = Mapping[str, tuple[Any, ...]]


class NotYet(Exception):
    """Raised by the helpers of a check to say in their own words what they got, and how to go on.

    Example:
        >>> from tinytorch_book.exercises.judging import judge
        >>> def run(answer):
        ...     raise NotYet("a tensor without a gradient")
        >>> judge(case("has a gradient", print, expected=1, run=run)).got
        'a tensor without a gradient'
    """

    def __init__(self, got: str, hint: str = "") -> None:
        super().__init__(got)
        self.hint = hint


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
    expected: Any = FROM_REFERENCE
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
        >>> from tinytorch_book.exercises.judging import judge
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
        >>> from tinytorch_book.exercises.judging import judge
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


def predictions(answer: Any, results: Table, claim: str = "{}", **options: Any) -> Cases:
    """A case for each value to be predicted in a dictionary; no value is shown.

    Args:
        answer: the reader's dictionary.
        results: for each of its keys what is expected, a hint, and pairs of a mistake and its hint.
        claim: what a case claims, with {} for the key.
        options: `rtol`, `atol`.

    Example:
        >>> from tinytorch_book.exercises.judging import judge
        >>> [judge(posed).passed for posed in predictions({"1 + 1": 2}, {"1 + 1": (2, "Count.")})]
        [True]
        >>> [judge(posed).hint for posed in predictions({"half": 50}, {"half": (0.5, "Halve.")})]
        ['As a share of 1: 5 % is 0.05.']
    """
    for name, (wanted, hint, *known) in results.items():
        value = answer.get(name, ...) if isinstance(answer, dict) else ...
        if isinstance(wanted, float) and 0 < wanted < 1:
            known.append((100 * wanted, _SHARE))
        hint = _NEXT if value is ... else _form_of(value, wanted) or hint
        own = {"expected": wanted, "mistakes": known, "show_expected": False, "hint": hint}
        yield case(claim.format(name), value, **own, **options)


def _form_of(value: Any, wanted: Any) -> str:
    """What is wrong with the form of a prediction, "" if nothing."""
    if isinstance(wanted, str):
        slips = isinstance(value, str) and value.strip().lower() == wanted.lower()
        return _SPELLED if slips else ""
    if isinstance(value, str) or value is None:
        return _NO_NUMBER if value is None else _QUOTED
    truth, wants_truth = isinstance(value, (bool, np.bool_)), isinstance(wanted, (bool, np.bool_))
    if truth == wants_truth or isinstance(wanted, (tuple, list)):
        return ""
    return _TRUTH if wants_truth else _NUMBER


def measured(
    claim: str, answer: Any, *given: Any, run: Any, aim: float, told: str, goal: str = "",
    **options: Any,
) -> Cases:  # fmt: skip
    """A case that passes if a measurement is at most the aim, and then one that shows the figure.

    Args:
        claim: what should be true, including the aim.
        answer: the reader's.
        given: what it is called with.
        run: measures: `run(answer, *given)` is a number, or several, of which the first decides.
        aim: the largest number that is good enough.
        told: a format for what was measured, with its unit.
        goal: what is expected, in words; "at most" the aim unless given.
        options: the other attributes of a `Case`.

    Example:
        >>> from tinytorch_book.exercises.exercise import exercise
        >>> from tinytorch_book.exercises.judging import judge
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
    goal = goal or f"at most {aim:g}"

    def measure(answer: Any, *given: Any) -> str:
        figure = run(answer, *given)
        figures = figure if isinstance(figure, tuple) else (figure,)
        if not figures[0] <= aim:  # nor is NaN
            raise NotYet(told.format(*figures))
        reached.append(f"reached: {told.format(*figures)}")
        return goal

    yield case(claim, answer, *given, run=measure, expected=goal, **options)
    for figure in reached:  # empty unless that case was run and has passed
        yield case(figure, True, expected=True)


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


def _arrays_in(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _arrays_in(item)
    elif isinstance(value, (np.ndarray, Tensor)):
        yield values.as_array(value)
