"""Every exercise accepts right answers written differently, and refuses what learners get wrong."""

import inspect
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tinytorch import Tensor, functional
from tinytorch_book import check, exercises
from tinytorch_book.exercises import learning_from_context, which_is_better
from tinytorch_book.exercises.drawn_numbers import other_numbers
from tinytorch_book.exercises.judging import judge

FRAMEWORK = {"__init__", "cases", "drawn_numbers", "exercise", "judging", "report", "rules",
             "training", "values"}  # fmt: skip
CHAPTERS = {path.stem for path in Path(exercises.__file__).parent.glob("*.py")} - FRAMEWORK
ANSWERS = {name: import_module(f"answers.{name}") for name in sorted(CHAPTERS)}
CHECKS = [
    value
    for name, value in sorted(vars(check).items())
    if not name.startswith("_") and hasattr(value, "__wrapped__")
]
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
JUNK = {
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
    "leaves": lambda *a, **k: exit(),
    "takes nothing": lambda: 1,
    "a class": type("Nothing", (), {}),
}


def judged(name, answer):
    """The report of a check; where it asks for several answers they come as a tuple."""
    checked = getattr(check, name)
    several = len(inspect.signature(checked.__wrapped__).parameters) > 1
    return checked(*answer) if several else checked(answer)


@pytest.mark.parametrize("chapter", ANSWERS)
def test_every_exercise_has_two_right_answers_and_a_misconception(chapter):
    names = import_module(f"tinytorch_book.exercises.{chapter}").__all__
    module = ANSWERS[chapter]
    assert set(module.RIGHT) == set(module.WRONG) == set(names)
    assert [name for name in names if len(module.RIGHT[name]) < 2] == []
    assert [name for name in names if not module.WRONG[name]] == []


def test_every_check_is_used_in_a_chapter():
    names = {n for c in CHAPTERS for n in import_module(f"tinytorch_book.exercises.{c}").__all__}
    assert names == {checked.__name__ for checked in CHECKS}


@pytest.mark.parametrize(("name", "answer"), RIGHT)
def test_a_right_answer_is_solved(name, answer):
    report = judged(name, answer)
    assert report, f"\n{report!r}"


@pytest.mark.parametrize("name", ["better_stop", "context_worlds"])
def test_a_measured_aim_is_not_drawn_anew(name):
    [right] = [module.RIGHT[name][-1] for module in ANSWERS.values() if name in module.RIGHT]
    reports = set()
    for seed in (0, 1):
        which_is_better._z_scores.cache_clear()
        learning_from_context._worlds.cache_clear()
        with other_numbers(seed):
            reports.add(repr(judged(name, right)))
    assert len(reports) == 1 and "solved" in min(reports)


@pytest.mark.parametrize(("name", "answer", "words"), WRONG)
def test_a_wrong_answer_is_refused_with_a_reason(name, answer, words):
    report = judged(name, answer)
    assert not report
    hint = report.cases[-1].hint
    assert hint and words in hint
    assert max(map(len, repr(report).splitlines())) <= 76
    assert [told["passed"] for told in report.told()][-1] is False, "the later cases end as well"


@pytest.mark.parametrize("name", [c.__name__ for c in CHECKS if c.points < 4])
def test_a_declared_mistake_earns_its_own_hint(name, monkeypatch):
    posed, declared = [], {}

    def judge_without_rules(case):
        posed.append(case)
        return judge(replace(case, rules=()))

    monkeypatch.setattr(f"{exercises.__name__}.exercise.judge", judge_without_rules)
    [right] = [module.RIGHT[name][0] for module in ANSWERS.values() if name in module.RIGHT]
    assert judged(name, right)
    for claim, (wrong, hint) in [(p.claim, pair) for p in posed for pair in p.mistakes]:
        key = max([k for k in right if k in claim], key=len) if isinstance(right, dict) else ""
        is_error = isinstance(wrong, type) and issubclass(wrong, BaseException)
        if key or (callable(wrong) and not is_error):  # a wrong result alone is no answer
            declared.setdefault((key, id(wrong)), (wrong, set()))[1].add(hint)
    for (key, _), (wrong, hints) in declared.items():
        found = judged(name, right | {key: wrong} if key else wrong).cases[-1]
        assert found.hint in hints, found


WITHOUT_A_LOOP = """
    attend_numpy attend_seen autograd_weights block_cosines cache_allowed capstone_share
    context_evidence data_gather fast_pooled fast_row_products fast_strides gpt2_neighbours
    gpt2_rows
    gpt_last_logits heads_owner inside_by_distance layer_embed lora_merged net_fold norm_sizes
    positions_apart positions_sinusoids ranks_scatter sampling_draw sampling_top_k
    scaling_frontier tensors_centre_rows tensors_distances token_counts
""".split()
IN_NUMPY = """
    asking_scores better_cluster better_stop
    attend_causal_mask attend_numpy attend_score_gradient autograd_undo_broadcast
    autograd_weights context_evidence context_forecast context_posterior data_windows gpt2_rows
    gpt_tied_gradient layer_embed loss_and_gradient
    net_softmax prefer_optimum
    optim_adamw positions_sinusoids sampling_draw sampling_top_p
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
    [right] = [module.RIGHT[name][0] for module in ANSWERS.values() if name in module.RIGHT]
    report = judged(name, breaking(right))
    assert not report and words in report.cases[-1].hint


@pytest.mark.parametrize("name", IN_NUMPY)
def test_a_statement_asks_for_numpy(name):
    book, call = Path(exercises.__file__).parents[2] / "book", f"check.{name}("
    [page] = [text for path in book.glob("*/*.md") if call in (text := path.read_text("utf-8"))]
    statement = page.split(call)[0].rpartition("{exercise}")[2].split("```")[0]
    assert "NumPy" in statement.replace("NumPy array", ""), "arrays alone do not say so"


PREDICTIONS = [
    pytest.param(name, module.RIGHT[name][0], id=name)
    for module in ANSWERS.values()
    for name in module.RIGHT
    if isinstance(module.RIGHT[name][0], dict)
]


@pytest.mark.parametrize(("name", "right"), PREDICTIONS)
@pytest.mark.parametrize("wrong", [..., -1])
def test_a_missing_or_wrong_prediction_is_reported_without_the_answer(name, right, wrong):
    for key in right:
        found = judged(name, right | {key: wrong}).cases[-1]
        assert not found.passed and key in found.claim and not found.expected
    assert "nothing yet" in repr(judged(name, dict.fromkeys(right, ...)))


@pytest.mark.parametrize(("name", "right"), PREDICTIONS)
def test_a_right_prediction_in_the_wrong_form_is_reported(name, right):
    for key in (key for key in right if not isinstance(right[key], str)):
        found = judged(name, right | {key: str(right[key])}).cases[-1]
        assert key in found.claim and "Without quotes" in found.hint
        found = judged(name, right | {key: None}).cases[-1]
        assert found.got == "None" and "a number, or True or False" in found.hint
    forms = {bool: (1, "True or False is")} | dict.fromkeys((int, float), (True, "A number is"))
    for key, value in right.items():
        text = isinstance(value, str) and (value.swapcase(), "Spell it")
        if form := text or forms.get(type(value)):
            assert form[1] in judged(name, right | {key: form[0]}).cases[-1].hint


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
