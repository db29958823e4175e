"""How exercises are checked: cases in order, and a report whatever the answer is."""

import inspect

import numpy as np
import pytest

from tinytorch import RowSparse, Tensor, check
from tinytorch.check.report import Case, Report, case, exercise, raises


@exercise(points=2)
def double(answer):
    yield case("doubles a number", answer, 3, expected=6, hint="Add it to itself.")
    yield case("doubles an array", answer, np.array([1.0, 2.0]), expected=np.array([2.0, 4.0]))
    yield raises("refuses nothing at all", answer, None, error=TypeError)


def right(x):
    return x + x


# The report --------------------------------------------------------------------------------------


def test_right_answer_is_solved():
    report = double(right)
    assert report and len(report.cases) == 3
    assert repr(report) == (
        "double: solved, 2 of 2 points\n"
        "  [x] doubles a number\n"
        "  [x] doubles an array\n"
        "  [x] refuses nothing at all"
    )


def test_report_stops_at_the_first_case_that_does_not_hold():
    report = double(lambda x: x * x if np.ndim(x) else 6)
    assert not report
    assert repr(report) == (
        "double: not yet\n"
        "  [x] doubles a number\n"
        "  [ ] doubles an array\n"
        "      given     [1., 2.], shape (2,)\n"
        "      expected  [2., 4.], shape (2,)\n"
        "      came      [1., 4.], shape (2,)"
    )


def test_hint_is_shown_with_what_failed():
    assert repr(double(lambda x: x * x)).splitlines()[2:] == [
        "      given     3",
        "      expected  6",
        "      came      9",
        "      hint      Add it to itself.",
    ]


def test_hard_coded_answer_meets_a_second_case():
    report = double(lambda x: 6)
    assert [found.passed for found in report.cases] == [True, False]


def test_several_lines_are_indented_under_their_label():
    found = case("makes a matrix", lambda: None, expected=np.eye(2))
    assert repr(Report("identity", 1, [found])).splitlines()[2:4] == [
        "      expected  [[1., 0.],",
        "                 [0., 1.]], shape (2, 2)",
    ]


def test_check_without_cases_is_not_solved():
    assert not Report("empty", 1, [])


def test_check_keeps_the_name_of_its_generator():
    assert double.__name__ == "double" and double(right).name == "double"


# One case ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", [lambda x: None, lambda x: ...])
def test_stub_is_told_that_there_is_nothing_yet(empty):
    assert case("adds", empty, 1, expected=2).came == "nothing yet: replace the ..."


@pytest.mark.parametrize("empty", [None, ...])
def test_stub_in_place_of_a_value_is_told_so_too(empty):
    assert case("is two", empty, expected=2).came == "nothing yet: replace the ..."


def test_answer_that_raises_is_reported_with_its_error():
    found = case("divides", lambda x: 1 / x, 0, expected=1)
    assert not found.passed and found.came == "ZeroDivisionError: division by zero"


def test_answer_that_is_no_function_is_reported():
    assert case("adds", 3, 1, expected=2).came == "3, which is not a function"


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        (2, 2),
        (2.000001, 2.0),
        (np.float32(2), 2),
        (Tensor([1.0, 2.0]), [1.0, 2.0]),
        ([1.0, 2.0], Tensor([1.0, 2.0])),
        (RowSparse(np.array([1]), np.ones((1, 1)), (2, 1)), [[0.0], [1.0]]),
        ((2, 3), (2, 3)),
        ([np.ones(2), np.ones(3)], (np.ones(2), np.ones(3))),
        ((np.ones(2), "text"), (np.ones(2), "text")),
        ("text", "text"),
        (True, True),
        (np.True_, True),
        ({"x": np.float32(1.0), "y": (1, 2)}, {"x": 1.0, "y": (1, 2)}),
        (1e9, 1e9 + 1),
    ],
)
def test_equal_answers_pass(came, expected):
    assert case("equals", lambda x: came, 0, expected=expected).passed


@pytest.mark.parametrize(
    ("came", "expected"),
    [
        (2.001, 2.0),
        (float("nan"), 2.0),
        (np.array([1.0, np.nan]), np.array([1.0, 2.0])),
        (float("inf"), 2.0),
        (np.ones((1, 2)), np.ones(2)),
        (np.ones((2, 1)), np.ones((2, 2))),
        (2.0, np.array([2.0, 2.0])),
        ("2", 2),
        (2, "2"),
        (1, True),
        (False, True),
        ((np.ones(2), np.ones(4)), (np.ones(2), np.ones(3))),
        ((np.ones(2),), (np.ones(2), np.ones(3))),
        (np.ones(2), (np.ones(2), np.ones(3))),
        (np.ones(2), {"x": 1.0}),
        ({"x": 2.0}, {"x": 1.0}),
        ({"y": 1.0}, {"x": 1.0}),
        ({"x": 1.0, "y": 1.0}, {"x": 1.0}),
        (np.ones(2), {1, 2}),
        (object(), 1.0),
    ],
)
def test_unequal_answers_do_not_pass(came, expected):
    found = case("equals", lambda x: came, 0, expected=expected)
    assert not found.passed and found.came


def test_tolerance_is_that_of_the_case():
    assert case("is about one", lambda x: 1.05, 0, expected=1.0, atol=0.1).passed
    assert not case("is one", lambda x: 1.05, 0, expected=1.0).passed


def test_long_values_are_shortened():
    assert len(case("is short", lambda x: "a" * 1000, 0, expected="b").came) == 200


def test_inputs_are_shown_as_they_were_before_the_answer_changed_them():
    def spoils(x):
        x[:] = 0
        return 1

    assert case("adds", spoils, np.array([1.0, 2.0]), expected=3).given == "[1., 2.], shape (2,)"


# Expected errors ---------------------------------------------------------------------------------


def test_expected_error_passes():
    assert raises("refuses text", int, "a", error=ValueError) == Case("refuses text", True)


def test_other_error_is_reported():
    found = raises("refuses text", lambda x: 1 / 0, "a", error=ValueError)
    assert (found.expected, found.came) == ("a ValueError", "ZeroDivisionError: division by zero")


def test_missing_error_is_reported_with_what_came():
    assert raises("refuses text", len, "abc", error=ValueError).came == "3, and no error"


def test_stub_raises_nothing_and_is_told_so():
    found = raises("refuses text", lambda x: ..., "a", error=ValueError)
    assert found.came == "nothing yet: replace the ..."


# Every check of the book -------------------------------------------------------------------------

CHECKS = [
    value
    for name, value in sorted(vars(check).items())
    if not name.startswith("_") and hasattr(value, "__wrapped__")
]
ODD_ANSWERS = {
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
    "takes nothing": lambda: 1,
    "a class": type("Nothing", (), {}),
}


@pytest.mark.parametrize("odd", ODD_ANSWERS)
@pytest.mark.parametrize("checked", CHECKS, ids=lambda checked: checked.__name__)
def test_no_check_raises_or_passes_whatever_it_is_given(checked, odd):
    number = len(inspect.signature(checked.__wrapped__).parameters)
    report = checked(*[ODD_ANSWERS[odd]] * number)
    assert not report and "not yet" in repr(report)
