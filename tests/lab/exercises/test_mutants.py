"""What people would write in place of a solution is refused, as far as small changes of it tell."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import mutants
import pytest
from _ext.teaching.nbgrader_course import Chapter, Exercise

forks = pytest.mark.skipif(sys.platform == "win32", reason="a mutant runs in a fork")
CHAPTERS = {chapter.name: chapter for chapter in mutants.chapters()}
SHARES = {"cache_readings": 16, "count_belief": 8, "count_loss": 2, "lora_names": 8}  # slow ones
SHARES["asking_forget"] = 8
SHARES["faster_draft"] = 4
SHARES |= dict.fromkeys(
    ("optim_budget", "positions_any_length", "scaling_budget", "capstone_mlp"), 4
)  # and each of these trains a model, which is right if it reaches the aim
ALWAYS = ("tensors", "sampling")  # those of the other chapters are proofs

COUNT_DOWN = """\
def answer(n):
    passed = [0]
    while n > 0:
        n -= 1
        passed += [n]
    return sum(passed)"""


def outcomes_of(chapter, listed, **options):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(mutants.run, chapter, listed, **options).result()


@forks
@pytest.mark.parametrize(
    "chapter",
    [pytest.param(name, marks=[] if name in ALWAYS else pytest.mark.proof) for name in CHAPTERS],
)
def test_every_mutant_of_a_solution_is_refused_or_listed_with_a_reason(chapter):
    outcomes = outcomes_of(CHAPTERS[chapter], mutants.equivalents(), shares=SHARES)
    assert {one.exercise: one.unlisted for one in outcomes if one.unlisted} == {}
    assert {one.exercise: one.outdated for one in outcomes if one.outdated} == {}


def test_listed_mutants_belong_to_existing_exercises():
    known = {one.check for chapter in CHAPTERS.values() for one in chapter.exercises}
    assert set(mutants.equivalents()) <= known


@forks
def test_endless_mutants_are_refused_and_accepted_ones_compared_with_the_list():
    exercise = Exercise("down", "asked(answer)", 1, "", (), "def answer(n): ...", COUNT_DOWN)
    chapter = Chapter("x", "", "", ("def asked(f): return f(3) == 3",), (exercise,))
    listed = {"while n > 0: -> while n > -1:": "a line", "n -= 1 -> pass": "it never ends"}
    [outcome] = outcomes_of(
        chapter, {"down": {**listed, "return sum(passed) -> return a…": "all of them"}}
    )
    assert outcome.outdated == ["while n > 0: -> while n > -1:", "n -= 1 -> pass"]
    assert outcome.unlisted == ["while n > 0: -> while n > 1:"]


def test_what_the_notebooks_do_not_hold_is_no_all_clear(monkeypatch, capsys):
    tensors = CHAPTERS["tensors"]
    first, *others = tensors.exercises
    other = [replace(first, solution="x = 1"), *others]
    for names, made in (["tensors_closest"], tensors.exercises), ([], ()), ([first.check], other):
        read = [*CHAPTERS.values(), replace(tensors, exercises=tuple(made))]  # the last one counts
        monkeypatch.setattr(mutants, "chapters", lambda read=read: read)
        with pytest.raises(SystemExit, match="2"):
            mutants.main(names)
        missing = (names if made is tensors.exercises else ["tensors"])[0]
        assert f"{missing}; run `make notebooks` first" in capsys.readouterr().err


def test_each_kind_of_mutation_is_made_and_described_in_a_line():
    code = "def f(x, y=1):\n    if y > 1:\n        return x[1:]\n    return x.copy() - y"
    changes = {mutant.change for mutant in mutants.mutants(code)}
    assert changes >= {
        "def f(x, y=1): -> def f(x, y=0):",
        "if y > 1: -> if y >= 1:",
        "if y > 1: -> if False:",
        "return x[1:] -> pass",
        "return x[1:] -> return sorted(x[1:])",
        "return x[1:] -> return x[2:]",
        "return x.copy() - y -> return x - y",
        "return x.copy() - y -> return x.copy() + y",
    }
