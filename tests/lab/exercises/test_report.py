"""How exercises are checked: cases in order, and a report whatever the answer is."""

import numpy as np
import pytest

from tinytorch import RowSparse, Tensor
from tinytorch_book.exercises import cases, drawn_numbers
from tinytorch_book.exercises.cases import one_of
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.judging import Finding, judge
from tinytorch_book.exercises.report import Report


@exercise(points=2)
def double(answer):
    yield cases.case("doubles a number", answer, 3, expected=6, hint="Add it to itself.")
    x, twice = np.array([1.0, 2.0]), np.array([2.0, 4.0])
    yield cases.case("doubles an array", answer, x, expected=twice)
    yield cases.raises("refuses nothing at all", answer, None, error=TypeError)


def case(*args, **kwargs):
    """A case that is run at once."""
    return judge(cases.case(*args, **kwargs))


def raises(*args, **kwargs):
    """The same for an error that is expected."""
    return judge(cases.raises(*args, **kwargs))


def right(x):
    return x + x


# The report --------------------------------------------------------------------------------------


def test_right_answer_is_solved():
    found = double(right)
    assert found and len(found.cases) == 3
    assert repr(found) == (
        "double: solved, 2 of 2 points\n"
        "  [x] doubles a number\n"
        "  [x] doubles an array\n"
        "  [x] refuses nothing at all"
    )


def test_report_stops_at_the_first_failing_case():
    found = double(lambda x: x * x if np.ndim(x) else 6)
    assert not found
    assert repr(found) == (
        "double: not yet\n"
        "  [x] doubles a number\n"
        "  [ ] doubles an array\n"
        "      given     x = [1., 2.]\n"
        "      expected  [2., 4.]\n"
        "      got       [1., 4.]"
    )


def test_hint_is_shown_with_the_failure():
    assert repr(double(lambda x: x * x)).splitlines()[2:] == [
        "      given     x = 3",
        "      expected  6",
        "      got       9",
        "      hint      Add it to itself.",
    ]


def test_a_passing_answer_is_run_again_on_hidden_inputs():
    asked = []

    @exercise(reference=lambda x, seed: 2 * x)
    def doubled(answer):
        yield cases.case("doubles", answer, *drawn_numbers.drawn(3), drawn_numbers.seed_of(7))

    def knows_the_first(x, seed):
        asked.append((seed, *x))
        return 2 * x if seed == 7 else x

    found = doubled(knows_the_first)
    assert [(case.claim, case.passed) for case in found.cases] == [
        ("doubles", True),
        ("doubles, with other numbers", False),
    ]
    assert len({*asked[0]} | {*asked[1]}) == 8, "all of them are others"
    assert len(doubled(lambda x, seed: 2 * x).cases) == 1
    with drawn_numbers.other_numbers(3):
        assert not doubled(knows_the_first).cases[0].passed
    assert len(asked) == 3, "whoever sets the numbers is asked once"


# The report as data -------------------------------------------------------------------------------


def states(told):
    return [check["state"] for check in told["checks"]]


def test_a_page_gets_every_failure_and_the_first_one_early():
    seen = []
    told = double(lambda x: seen.append(x) or x * x).told()
    assert states(next(told)) == ["not yet", "not reached", "not reached"] and len(seen) == 1
    last = next(told)
    assert states(last) == ["not yet", "not yet", "passed"] and list(told) == []
    assert [check.get("got") for check in last["checks"]] == ["9", "[1., 4.]", ""]


def test_a_solved_exercise_is_reported_once():
    (told,) = double(right).told()
    assert told["passed"] and states(told) == ["passed"] * 3 and told["points"] == 2


@pytest.mark.parametrize("stub", [..., lambda x: ..., lambda x: None])
def test_a_stub_gets_a_list_of_checks_and_no_failure(stub):
    report = double(stub)
    (told,) = report.told()
    assert told["untouched"] and states(told) == ["not reached"] * 3
    assert repr(report) == "double: not yet\n  nothing yet: write it, then run the cell"


def test_cases_that_cannot_be_posed_end_the_list_of_checks():
    @exercise()
    def fragile(answer):
        yield cases.case("is 1", answer(), expected=1)
        yield cases.case("is 2", answer(), expected=2)
        yield cases.case("is 3", 1 / 0, expected=3)

    *_, told = fragile(lambda: 2).told()
    assert states(told) == ["not yet", "passed"]


# One case ----------------------------------------------------------------------------------------


NOTHING = "nothing yet: replace the ..."
NONE = "None: write the body and return the result"


@pytest.mark.parametrize(("empty", "told"), [(None, NONE), (..., NOTHING)])
def test_only_an_ellipsis_is_to_be_replaced(empty, told):
    assert case("adds", lambda x: empty, 1, expected=2).got == told
    assert case("is two", empty, expected=2).got == told
    assert raises("refuses", lambda x: empty, 1, error=ValueError).got == told


def test_answer_that_raises_is_reported_with_its_error():
    found = case("divides", lambda x: 1 / x, 0, expected=1)
    assert not found.passed and found.got == "ZeroDivisionError: division by zero"


def test_answer_that_is_not_a_function_is_reported():
    assert case("adds", 3, 1, expected=2).got == "3, which is not a function"


@pytest.mark.parametrize(
    ("got", "expected"),
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
def test_equal_answers_pass(got, expected):
    assert case("equals", lambda x: got, 0, expected=expected).passed


@pytest.mark.parametrize(
    ("got", "expected"),
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
def test_unequal_answers_do_not_pass(got, expected):
    found = case("equals", lambda x: got, 0, expected=expected)
    assert not found.passed and found.got


def test_long_values_are_shortened():
    assert len(case("is short", lambda x: "a" * 1000, 0, expected="b").got) == 200


def test_arguments_are_shown_with_their_names():
    def answer(rows, *, keyword=1): ...

    wide = np.ones((4, 6))
    told = {
        (lambda table, ids: 0): ["table =", "[[1., 1.", "ids = [0, 1]"],
        (lambda *all_of_them: 0): ["[[1., 1.", "[0, 1]"],
        answer: ["[[1., 1.", "[0, 1]"],  # it does not take both
    }
    for function, begins in told.items():
        lines = case("", function, wide, [0, 1], expected=1).given.splitlines()
        lines = [line for line in lines if not line.startswith(" ")]
        assert len(lines) == len(begins) and all(map(str.startswith, lines, begins)), lines
    run = case("", lambda: 0, wide, 3, run=lambda f, noise, width: 0, expected=1).given
    assert run.startswith("noise =\n") and run.endswith("\nwidth = 3")


def test_inputs_are_shown_as_they_were_before_the_answer_changed_them():
    def spoils(x):
        x[:] = 0
        return 1

    assert case("adds", spoils, np.array([1.0, 2.0]), expected=3).given == "x = [1., 2.]"


# What is shown -----------------------------------------------------------------------------------


def test_a_shape_is_shown_where_the_values_hide_it():
    shown = [case("", 1, np.zeros(n), expected=1).given for n in (2, (1, 2), 1000)]
    assert shown == ["[0., 0.]", "[[0., 0.]], shape (1, 2)", "an array of shape (1000,)"]


def test_both_shapes_are_shown_where_they_differ():
    found = case("sums", lambda x: np.array([6.0, 60.0]), 0, expected=[[6.0], [60.0]])
    assert found.expected == "[[6.], [60.]], shape (2, 1)"
    assert found.got == "[6., 60.], shape (2,)"
    assert case("sums", lambda x: None, 0, expected=[[6.0]]).expected == "[[6.]], shape (1, 1)"


def test_the_first_difference_of_a_long_result_is_shown():
    expected = np.arange(40.0).reshape(2, 20)
    got = expected.copy()
    got[1, 3:5] = -1
    found = case("counts", lambda x: got, 0, expected=expected)
    assert found.expected == "23 at [1, 3], shape (2, 20)"
    assert found.got == "-1 at [1, 3], the first of 2 that differ"
    got[1, 4] = 24
    assert "the only one to differ" in case("counts", lambda x: got, 0, expected=expected).got


def test_arrays_are_shown_one_a_line_and_other_arguments_together():
    found = case("", 1, np.ones(1), 2, "a", np.ones((1, 1)), expected=1)
    assert found.given == "[1.]\n2, 'a'\n[[1.]], shape (1, 1)"


def test_zeros_have_no_sign_and_numpy_numbers_no_type():
    found = case("", lambda x: np.array([-0.0, 1.0]), 0, expected=[1.0, 1.0])
    assert found.got == "[0., 1.]"
    assert case("", lambda x: [np.int64(3), np.float64(0.5)], 0, expected=3).got == "[3, 0.5]"


def test_lines_are_at_most_76_columns_wide():
    words = "word " * 60
    found = case(words, lambda x: 1 / 0, np.ones((4, 6)), expected=np.ones((3, 7)), hint=words)
    lines = repr(Report("wide", 1, [found])).splitlines()
    assert max(map(len, lines)) <= 76 and len(lines) > 10


def test_an_answer_whose_repr_fails_is_reported():
    class Bad:
        def __repr__(self):
            raise RuntimeError

    assert case("adds", lambda x: Bad(), 0, expected=1).got == "a Bad"


def test_an_expected_value_may_be_kept_secret():
    found = case("predicts", (1, 2), expected=(2, 1), hint="Turn it.", show_expected=False)
    assert (found.expected, found.got, found.hint) == ("", "(1, 2)", "Turn it.")
    assert case("predicts", ..., expected=(2, 1), show_expected=False).expected == ""


# Parts, mistakes, arguments ----------------------------------------------------------------------


def test_the_part_that_is_compared_is_named():
    row = ("row 1", lambda table: table[1])
    found = case("", lambda x: np.eye(2), 0, expected=[1.0, 0.0], part=row)
    assert (found.expected, found.got) == ("row 1: [1., 0.]", "row 1: [0., 1.]")
    assert case("", lambda x: np.eye(2), 0, expected=[0.0, 1.0], part=row).passed


def test_a_result_without_that_part_is_shown_whole():
    found = case("", lambda x: 5, 0, expected=1, part=("row 1", lambda table: table[1]))
    assert found.got == "5, which has no row 1"


def test_a_result_without_the_named_items_is_reported():
    first = one_of("runs", "runs", "bytes")
    assert case("", lambda x: (1, 2), 0, expected=1, part=first).passed
    assert case("", lambda x: 5, 0, expected=1, part=first).got == "5, which is not (runs, bytes)"


def test_a_known_mistake_has_its_own_hint():
    known = [(-2, "It is positive."), (ZeroDivisionError, "Not by nothing.")]
    for answer, hint in ((lambda x: -2, known[0][1]), (lambda x: x / 0, known[1][1])):
        assert case("", answer, 2, expected=2, hint="Otherwise.", mistakes=known).hint == hint
    assert (
        case("", lambda x: 3, 2, expected=2, hint="Otherwise.", mistakes=known).hint == "Otherwise."
    )


@pytest.mark.parametrize(
    ("got", "expected", "hint"),
    [
        (1, True, "Right, but as a number: True or False is asked for."),
        (np.array([0, 1]), np.array([False, True]), "a Boolean array is asked for."),
        (0, True, "Otherwise."),
        (None, False, "Otherwise."),
    ],
)
def test_a_number_in_place_of_a_truth_value_is_told(got, expected, hint):
    found = case("", lambda x: got, 2, expected=expected, hint="Otherwise.")
    assert not found.passed and found.hint.endswith(hint)


@pytest.mark.parametrize("answer", [lambda x: (i for i in [x]), lambda x: map(int, [x])])
def test_a_generator_in_place_of_a_list_is_reported(answer):
    found = case("", answer, 2, expected=[2], hint="Otherwise.")
    assert found.got in {"a generator", "a map"} and "list(...)" in found.hint


def test_a_right_result_that_changes_an_argument_is_refused():
    def spoils(record, table):
        table += 1
        return 1

    found = case("", spoils, [1], np.zeros(2), expected=1)
    assert not found.passed and found.expected == ""
    assert found.got == "the right result, but `table` is no longer what it was"
    assert not case("", lambda record: record.reverse() or 1, [1, 2], expected=1).passed
    assert "argument 2" in case("", lambda *a: a[1].fill(1) or 1, 0, np.zeros(2), expected=1).got


def test_the_arguments_of_a_check_survive_an_answer_that_changes_them():
    table = np.zeros(2)
    case("", lambda x: x.fill(1), table, expected=1)
    raises("", lambda x: x.fill(1), table, error=ValueError)
    assert not table.any()


# Expected errors ---------------------------------------------------------------------------------


def test_expected_error_passes():
    assert raises("refuses text", int, "a", error=ValueError) == Finding("refuses text", True)


def test_other_error_is_reported():
    found = raises("refuses text", lambda x: 1 / 0, "a", error=ValueError)
    assert (found.expected, found.got) == ("a ValueError", "ZeroDivisionError: division by zero")


# The reference, the mistakes and the rules of an exercise ---------------------------------------


def scaled(x, factor):
    return x * factor


FORGOTTEN = (lambda x, factor: x, "Multiply by the factor.")


@exercise(points=2, reference=scaled, mistakes=[FORGOTTEN])
def scale(answer):
    yield cases.case("scales", answer, np.array([1.0, 2.0]), 3.0, hint="x times the factor.")


def test_expected_values_come_from_the_reference():
    assert scale(lambda x, factor: factor * x)
    assert scale(lambda x, factor: x + 1).cases[-1].expected == "[3., 6.]"


def test_a_mistake_is_recognised_by_what_it_returns():
    assert scale(lambda x, factor: x * 1.0).cases[-1].hint == "Multiply by the factor."
    assert scale(lambda x, factor: x - 1).cases[-1].hint == "x times the factor."


def test_the_reference_computes_in_float64_whatever_it_is_given():
    seen = []
    posed = cases.case("", lambda x: x, np.ones(1, np.float32), reference=lambda x: seen.append(x))
    judge(posed)
    assert seen[0].dtype == np.float64


def test_answer_and_reference_are_run_the_same_way():
    def twice(answer, x):
        return answer(answer(x))

    assert case("", lambda x: x * 3, 2, reference=lambda x: 3 * x, run=twice).passed
    assert case("", lambda x: x * 3, 2, expected=18, run=twice).passed


@pytest.mark.parametrize("wrong", [12_582_812, 12_582_912.4, True])
def test_whole_numbers_are_compared_exactly(wrong):
    assert not case("counts", lambda x: wrong, 0, expected=12_582_912).passed


def test_tiny_numbers_are_compared_relatively_without_an_absolute_tolerance():
    assert case("", lambda x: 2e-30, 0, expected=1e-30).passed
    assert not case("", lambda x: 2e-30, 0, expected=1e-30, atol=0.0).passed


@pytest.mark.parametrize("wrong", [-1e9, 0.0, np.nan])
def test_infinity_does_not_equal_a_large_number(wrong):
    assert not case("", lambda x: np.array([wrong]), 0, expected=[-np.inf]).passed


def test_a_predicted_value_is_hidden():
    answers = cases.predictions({"1 + 1": 3}, {"1 + 1": (2, "Count."), "2 + 2": (4, "Count.")})
    found = [judge(posed) for posed in answers]
    assert [(f.claim, f.expected, f.got) for f in found] == [
        ("1 + 1", "", "3"),
        ("2 + 2", "", NOTHING),
    ]


def test_a_known_mistake_in_a_prediction_has_its_own_hint():
    results = {"2 + 2": (4, "Count.", (22, "Add the numbers, not the digits."))}
    hints = [judge(*cases.predictions({"2 + 2": n}, results)).hint for n in (5, 22)]
    assert hints == ["Count.", "Add the numbers, not the digits."]


# Measured ----------------------------------------------------------------------------------------


@exercise()
def brief(answer):
    yield cases.case("takes a text", answer, "abc", expected=3)
    yield from cases.measured(
        "is short", answer, run=lambda answer: answer(""), aim=2, told="{} steps"
    )


@pytest.mark.parametrize(
    ("steps", "claim", "got"),
    [(2, "reached: 2 steps", ""), (5, "is short", "5 steps"), (np.nan, "is short", "nan steps")],
)
def test_the_measured_figure_is_shown_beside_its_aim(steps, claim, got):
    last = brief(lambda text: 3 if text else steps).cases[-1]
    assert (last.claim, last.got, last.passed) == (claim, got, not got)


@pytest.mark.parametrize(("rate", "passed"), [(0.25, True), (0.5, False)])
def test_the_first_of_several_figures_decides(rate, passed):
    @exercise()
    def few_errors(answer):
        yield from cases.measured(
            "few errors", answer, run=lambda answer: (answer(), 3, 4), aim=0.25,
            told="{1} of {2}, {0:.0%} wrong",
        )  # fmt: skip

    last = few_errors(lambda: rate).cases[-1]
    assert (last.passed, last.claim if passed else last.got) == (
        passed, "reached: 3 of 4, 25% wrong" if passed else "3 of 4, 50% wrong",
    )  # fmt: skip


def test_no_figure_is_shown_before_it_is_measured():
    *_, told = brief(lambda text: 4 if text else 1).told()
    states = [(check["claim"], check["state"]) for check in told["checks"]]
    assert states == [("takes a text", "not yet"), ("is short", "passed")]
