"""Every exercise accepts right answers written differently, and refuses what learners get wrong."""

import inspect
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from reports import (
    ANSWERS,
    EXERCISES,
    JUNK,
    MODULES,
    ROOT,
    completed,
    declared,
    is_prediction,
    judged,
    mistakes_of,
    posed_cases,
    solution,
    without_numbers,
)

from tinytorch import functional
from tinytorch_book import check
from tinytorch_book.exercises import learning_from_context, which_is_better
from tinytorch_book.exercises.cases import Case
from tinytorch_book.exercises.drawn_numbers import other_numbers
from tinytorch_book.exercises.judging import judge

CHECKS = [
    value
    for name, value in sorted(vars(check).items())
    if not name.startswith("_") and hasattr(value, "__wrapped__")
]
SMALL = [c.__name__ for c in CHECKS if c.points < 4]  # what trains a model is a project
TRAINED = """
    asking_forget capstone_mlp count_belief faster_draft gpt_half lora_names optim_budget
    positions_any_length scaling_budget
""".split()  # to check an answer takes about a second


def cost(name, first=True):
    """The marks of a test that checks an answer: of the slowest project only the first come."""
    proof = name == "asking_forget" and not first
    return [pytest.mark.slow] * (name in TRAINED) + [pytest.mark.proof] * proof


RIGHT = [
    pytest.param(name, answer, id=f"{name}-{i}", marks=cost(name, i == 0))
    for module in ANSWERS.values()
    for name, answers in module.RIGHT.items()
    for i, answer in enumerate(answers)
]
WRONG = [
    pytest.param(
        name,
        answer,
        what[2:] if what.startswith("… ") else "",
        id=f"{name}-{what}",
        marks=cost(name, i == 0),
    )
    for module in ANSWERS.values()
    for name, answers in module.WRONG.items()
    for i, (what, answer) in enumerate(answers.items())
]


@pytest.mark.parametrize("chapter", ANSWERS)
def test_every_exercise_has_another_right_answer_and_a_misconception(chapter):
    names = import_module(f"tinytorch_book.exercises.{chapter}").__all__
    module = ANSWERS[chapter]
    assert set(module.WRONG) == set(names) >= set(module.RIGHT)
    right = [name for name in names if not module.RIGHT.get(name)]
    assert [name for name in right if not is_prediction(name)] == []
    assert [name for name in names if not module.WRONG[name]] == []


def test_every_check_is_used_in_a_chapter():
    names = {n for c in ANSWERS for n in import_module(f"tinytorch_book.exercises.{c}").__all__}
    assert names == {checked.__name__ for checked in CHECKS} == set(EXERCISES)


@pytest.mark.parametrize("name", SMALL)
def test_the_solution_of_a_page_is_solved(name):
    report = judged(name, solution(name))
    assert report, f"\n{report!r}"


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_a_right_answer_is_solved(name, answer):
    report = judged(name, completed(name, answer))
    assert report, f"\n{report!r}"


@pytest.mark.parametrize("name", ["better_stop", "context_worlds"])
def test_a_measured_aim_is_not_drawn_anew(name):
    right = ANSWERS[MODULES[name]].RIGHT[name][-1]
    reports = set()
    for seed in (0, 1):
        which_is_better._z_scores.cache_clear()
        learning_from_context._worlds.cache_clear()
        with other_numbers(seed):
            reports.add(repr(judged(name, right)))
    assert len(reports) == 1 and "solved" in min(reports)


@pytest.mark.parametrize(("name", "answer", "words"), WRONG)
def test_a_wrong_answer_is_refused_with_a_reason(name, answer, words):
    report = judged(name, completed(name, answer))
    assert not report
    hint = report.cases[-1].hint
    assert hint and words in hint
    assert max(map(len, repr(report).splitlines())) <= 76
    assert [told["passed"] for told in report.told()][-1] is False, "the later cases end as well"


# Declared mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_a_declared_mistake_earns_its_own_hint(name):
    for mistake in filter(lambda each: each.is_answer, declared(name)):
        wrong = {mistake.key: mistake.wrong} if mistake.key else mistake.wrong
        with posed_cases(with_rules=False):
            found = judged(name, completed(name, wrong)).cases[-1]
        assert without_numbers(found.hint) == without_numbers(mistake.hint), found


@pytest.mark.parametrize("name", SMALL)
def test_a_result_that_is_a_declared_mistake_earns_its_own_hint(name):
    with posed_cases() as posed:
        judged(name, solution(name))
    pairs = [(case, *pair) for case in posed for pair in case.mistakes]
    for case, wrong, hint in [each for each in pairs if not callable(each[1])]:
        returned = Case(case.claim, wrong, expected="what is right", mistakes=case.mistakes)
        assert without_numbers(judge(returned).hint) == without_numbers(hint), case.claim


@pytest.mark.parametrize("name", SMALL)
def test_a_declared_mistake_is_made_by_an_answer_that_names_its_hint(name):
    """What a check declares is written a second time, so that neither half of a row can be lost."""
    assert [m for m in declared(name) if m.row not in _pinned(name)] == []


def _pinned(name):
    """The rows that wrong answers come to, each with words of its hint that no other has."""
    hints = {without_numbers(mistake.hint) for mistake in declared(name)}
    for what, answer in ANSWERS[MODULES[name]].WRONG[name].items():
        with posed_cases() as posed:
            hint = judged(name, completed(name, answer)).cases[-1].hint
        words = without_numbers(what).removeprefix("… ")
        if what[0] == "…" and [h for h in hints if words in h] == [without_numbers(hint)]:
            alone = (replace(posed[-1], mistakes=[m], hint="") for m in posed[-1].mistakes)
            first = next((case for case in alone if judge(case).hint == hint), None)
            yield from [m.row for m in mistakes_of(name, [first] if first else [])]


# Stated rules -------------------------------------------------------------------------------------

WITHOUT_A_LOOP = """
    attend_numpy attend_seen block_cosines cache_allowed capstone_share
    context_evidence data_gather gpt2_neighbours gpt2_rows
    gpt_last_logits heads_owner layer_embed lora_merged net_fold norm_sizes
    positions_apart positions_sinusoids ranks_scatter sampling_draw sampling_top_k
    scaling_frontier talk_block tensors_centre_rows token_counts
""".split()
IN_NUMPY = """
    asking_scores better_cluster better_stop
    attend_causal_mask attend_numpy attend_score_gradient autograd_undo_broadcast
    context_evidence context_forecast context_posterior data_windows gpt2_rows
    gpt_tied_gradient layer_embed loss_and_gradient
    net_softmax prefer_optimum
    optim_adamw positions_sinusoids sampling_draw sampling_top_p talk_block
""".split()


def looping(f):
    return lambda *given: max([f(*given) for _ in range(1)], key=id)


def calling_the_package(f):
    return lambda *given: (functional.softmax(np.ones(1)), f(*given))[1]


@pytest.mark.parametrize(
    ("name", "breaking", "words"),
    [(name, looping, "loop") for name in WITHOUT_A_LOOP]
    + [(name, calling_the_package, "In NumPy alone") for name in IN_NUMPY],
)
def test_a_right_answer_that_breaks_a_stated_rule_is_refused(name, breaking, words):
    report = judged(name, breaking(solution(name)))
    assert not report and words in report.cases[-1].hint


@pytest.mark.parametrize("name", IN_NUMPY)
def test_a_statement_asks_for_numpy(name):
    call = f"check.{name}("
    [page] = [
        text for path in (ROOT / "book").glob("*/*.md") if call in (text := path.read_text("utf-8"))
    ]
    statement = page.split(call)[0].rpartition("{exercise}")[2].split("```")[0]
    assert "NumPy" in statement.replace("NumPy array", ""), "arrays alone do not say so"


# Predictions --------------------------------------------------------------------------------------

PREDICTIONS = [name for name in EXERCISES if is_prediction(name)]


@pytest.mark.parametrize("name", PREDICTIONS)
@pytest.mark.parametrize("wrong", [..., -1])
def test_a_missing_or_wrong_prediction_is_reported_without_the_answer(name, wrong):
    for key in solution(name):
        found = judged(name, completed(name, {key: wrong})).cases[-1]
        assert not found.passed and key in found.claim and not found.expected
    assert "nothing yet" in repr(judged(name, dict.fromkeys(solution(name), ...)))


@pytest.mark.parametrize("name", PREDICTIONS)
def test_a_right_prediction_in_the_wrong_form_is_reported(name):
    forms = {bool: (1, "True or False is")} | dict.fromkeys((int, float), (True, "A number is"))
    for key, value in solution(name).items():
        form = forms.get(type(value))
        if isinstance(value, str):
            form = (value.swapcase(), "Spell it")
        else:
            found = judged(name, completed(name, {key: str(value)})).cases[-1]
            assert key in found.claim and "Without quotes" in found.hint
            found = judged(name, completed(name, {key: None})).cases[-1]
            assert found.got == "None" and "a number, or True or False" in found.hint
        if form:
            assert form[1] in judged(name, completed(name, {key: form[0]})).cases[-1].hint


# Anything -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "checked",
    [pytest.param(c, id=c.__name__, marks=cost(c.__name__, first=False)) for c in CHECKS],
)
def test_no_check_raises_or_passes_on_arbitrary_input(checked):
    number = len(inspect.signature(checked.__wrapped__).parameters)
    for what, junk in JUNK.items():
        report = checked(*[junk] * number)
        assert not report and "not yet" in repr(report), what
        assert max(map(len, repr(report).splitlines())) <= 76, what
