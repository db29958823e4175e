"""How exercises are checked: cases in order, and a report whatever the answer is."""

import inspect

import numpy as np
import pytest

from tinytorch import RowSparse, Tensor, check
from tinytorch.check.report import Case, Report, case, exercise, one_of_pair, raises


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
        "      given     [1., 2.]\n"
        "      expected  [2., 4.]\n"
        "      came      [1., 4.]"
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
    found = case("makes a matrix", lambda: None, expected=np.eye(4))
    assert repr(Report("identity", 1, [found])).splitlines()[2:6] == [
        "      expected  [[1., 0., 0., 0.],",
        "                 [0., 1., 0., 0.],",
        "                 [0., 0., 1., 0.],",
        "                 [0., 0., 0., 1.]], shape (4, 4)",
    ]


def test_check_without_cases_is_not_solved():
    assert not Report("empty", 1, [])


def test_check_keeps_the_name_of_its_generator():
    assert double.__name__ == "double" and double(right).name == "double"


# One case ----------------------------------------------------------------------------------------


NOTHING = "nothing yet: replace the ..."
NONE = "None: write the body and return the result"


@pytest.mark.parametrize(("empty", "told"), [(None, NONE), (..., NOTHING)])
def test_only_an_ellipsis_is_to_be_replaced(empty, told):
    assert case("adds", lambda x: empty, 1, expected=2).came == told
    assert case("is two", empty, expected=2).came == told
    assert raises("refuses", lambda x: empty, 1, error=ValueError).came == told


def test_ellipsis_in_place_of_a_function_is_to_be_replaced():
    assert case("adds", ..., 1, expected=2).came == NOTHING
    assert raises("refuses", ..., 1, error=TypeError).came == NOTHING


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

    assert case("adds", spoils, np.array([1.0, 2.0]), expected=3).given == "[1., 2.]"


# What is shown -----------------------------------------------------------------------------------


def test_a_shape_is_shown_where_one_does_not_see_it():
    shown = [case("", 1, np.zeros(n), expected=1).given for n in (2, (1, 2), 1000)]
    assert shown == ["[0., 0.]", "[[0., 0.]], shape (1, 2)", "an array of shape (1000,)"]


def test_both_results_have_their_shape_where_the_shape_is_wrong():
    found = case("sums", lambda x: np.array([6.0, 60.0]), 0, expected=[[6.0], [60.0]])
    assert found.expected == "[[6.], [60.]], shape (2, 1)"
    assert found.came == "[6., 60.], shape (2,)"
    assert case("sums", lambda x: None, 0, expected=[[6.0]]).expected == "[[6.]], shape (1, 1)"


def test_of_a_long_result_the_first_difference_is_shown():
    expected = np.arange(40.0).reshape(2, 20)
    came = expected.copy()
    came[1, 3:5] = -1
    found = case("counts", lambda x: came, 0, expected=expected)
    assert found.expected == "23 at [1, 3], shape (2, 20)"
    assert found.came == "-1 at [1, 3], the first of 2 that differ"
    came[1, 4] = 24
    assert "the only one to differ" in case("counts", lambda x: came, 0, expected=expected).came


def test_long_results_of_different_shape_are_not_shown_in_full():
    found = case("counts", lambda x: np.zeros((20, 2)), 0, expected=np.zeros((2, 20)))
    assert found.expected == "an array of shape (2, 20)"
    assert found.came == "an array of shape (20, 2)"


def test_results_that_differ_late_are_shown_to_that_digit():
    found = case("is a third", lambda x: np.array([0.33336]), 0, expected=np.array([0.33334]))
    assert found.expected != found.came


def test_arrays_are_shown_one_a_line_and_other_arguments_together():
    found = case("", 1, np.ones(1), 2, "a", np.ones((1, 1)), expected=1)
    assert found.given == "[1.]\n2, 'a'\n[[1.]], shape (1, 1)"


def test_zeros_have_no_sign_and_numpy_numbers_no_type():
    found = case("", lambda x: np.array([-0.0, 1.0]), 0, expected=[1.0, 1.0])
    assert found.came == "[0., 1.]"
    assert case("", lambda x: [np.int64(3), np.float64(0.5)], 0, expected=3).came == "[3, 0.5]"


def test_lines_are_at_most_76_columns_wide():
    words = "word " * 60
    found = case(words, lambda x: 1 / 0, np.ones((4, 6)), expected=np.ones((3, 7)), hint=words)
    lines = repr(Report("wide", 1, [found])).splitlines()
    assert max(map(len, lines)) <= 76 and len(lines) > 10


def test_an_answer_whose_repr_fails_is_reported():
    class Bad:
        def __repr__(self):
            raise RuntimeError

    assert case("adds", lambda x: Bad(), 0, expected=1).came == "a Bad"


def test_an_expected_value_may_be_kept_secret():
    found = case("predicts", (1, 2), expected=(2, 1), hint="Turn it.", show_expected=False)
    assert (found.expected, found.came, found.hint) == ("", "(1, 2)", "Turn it.")
    assert case("predicts", ..., expected=(2, 1), show_expected=False).expected == ""


# Parts, mistakes, arguments ----------------------------------------------------------------------


def test_the_part_that_is_compared_is_named():
    row = ("row 1", lambda table: table[1])
    found = case("", lambda x: np.eye(2), 0, expected=[1.0, 0.0], part=row)
    assert (found.expected, found.came) == ("row 1: [1., 0.]", "row 1: [0., 1.]")
    assert case("", lambda x: np.eye(2), 0, expected=[0.0, 1.0], part=row).passed


def test_a_result_without_that_part_is_shown_whole():
    found = case("", lambda x: 5, 0, expected=1, part=("row 1", lambda table: table[1]))
    assert found.came == "5, which has no row 1"


def test_a_result_that_is_no_pair_is_told_so():
    first = ("runs", one_of_pair(0, "(runs, bytes)"))
    assert case("", lambda x: (1, 2), 0, expected=1, part=first).passed
    assert (
        case("", lambda x: 5, 0, expected=1, part=first).came == "5, which is no pair (runs, bytes)"
    )


def test_a_known_mistake_has_its_own_hint():
    known = [(-2, "It is positive."), (ZeroDivisionError, "Not by nothing.")]
    for answer, hint in ((lambda x: -2, known[0][1]), (lambda x: x / 0, known[1][1])):
        assert case("", answer, 2, expected=2, hint="Otherwise.", mistakes=known).hint == hint
    assert (
        case("", lambda x: 3, 2, expected=2, hint="Otherwise.", mistakes=known).hint == "Otherwise."
    )


def test_a_right_result_is_not_solved_if_an_argument_has_changed():
    def spoils(record, table):
        table += 1
        return 1

    found = case("", spoils, [1], np.zeros(2), expected=1)
    assert not found.passed and found.expected == ""
    assert found.came == "the right result, but `table` is no longer what it was"
    assert not case("", lambda record: record.reverse() or 1, [1, 2], expected=1).passed
    assert "argument 2" in case("", lambda *a: a[1].fill(1) or 1, 0, np.zeros(2), expected=1).came


def test_the_arguments_of_a_check_survive_an_answer_that_changes_them():
    table = np.zeros(2)
    case("", lambda x: x.fill(1), table, expected=1)
    raises("", lambda x: x.fill(1), table, error=ValueError)
    assert not table.any()


# Expected errors ---------------------------------------------------------------------------------


def test_expected_error_passes():
    assert raises("refuses text", int, "a", error=ValueError) == Case("refuses text", True)


def test_other_error_is_reported():
    found = raises("refuses text", lambda x: 1 / 0, "a", error=ValueError)
    assert (found.expected, found.came) == ("a ValueError", "ZeroDivisionError: division by zero")


def test_missing_error_is_reported_with_what_came():
    assert raises("refuses text", len, "abc", error=ValueError).came == "3, and no error"


def test_the_article_fits_the_error():
    assert raises("refuses", len, "a", error=IndexError).expected == "an IndexError"


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
    assert max(map(len, repr(report).splitlines())) <= 76
