"""Students of several labels: short runs, what is measured, and the stored study."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinytorch_book.experiments import distillation
from tinytorch_book.experiments.distillation import (
    LABELS,
    Lessons,
    as_draft,
    distillation_results,
    excess,
    forecasts,
    lessons,
    new_student,
    own_stories,
    train_student,
)
from tinytorch_book.experiments.story_gpt import load_story_gpt


@pytest.fixture(scope="module")
def given():
    return lessons(24, seed=1)


@pytest.fixture(scope="module")
def own():
    return own_stories(12, seed=2)


def test_labels_stand_where_a_token_follows(given, own):
    for one in (given, own):
        sums = one.probs.astype(float).sum(axis=-1)
        assert (sums[~one.counts] == 0).all() and sums[one.counts] == pytest.approx(1, abs=0.01)
        rows, at = np.nonzero(one.counts)
        chance = one.probs[rows, at, one.targets[rows, at]]
        assert (chance > 0).all(), "what came could have come"
        follows = at + 1 < one.inputs.shape[1]
        assert (
            one.inputs[rows[follows], at[follows] + 1] == one.targets[rows[follows], at[follows]]
        ).all()


def test_the_excess_is_a_divergence(given):
    class Oracle:
        def __call__(self, ids):
            from tinytorch import Tensor

            with np.errstate(divide="ignore"):
                return Tensor(np.log(np.maximum(given.probs.astype(float), 1e-30)))

    assert excess(Oracle(), given) == pytest.approx(0, abs=1e-3)
    assert 0 < excess(load_story_gpt(), given) < 0.01 < excess(new_student(), given)


def test_a_draft_by_the_large_model_itself_is_always_kept(own):
    found = as_draft(load_story_gpt(), own, num_drafted=3)
    assert found["accepted"] > 0.999 and found["tokens"] > 3.8  # the end of a text takes fewer


@pytest.mark.parametrize("labels", sorted({*LABELS} - {"overlap alone"}))  # which hardly does
def test_a_short_run_learns_from_every_kind_of_labels(labels, given):
    before, after = new_student(0), train_student(labels, given, steps=20)
    assert excess(after, given) < excess(before, given) - 1


def test_the_loss_is_the_total_variation_in_the_second_half(given, monkeypatch):
    used = []
    for name in ("soft_cross_entropy", "total_variation_loss"):
        loss = getattr(distillation, name)
        monkeypatch.setattr(
            distillation, name, lambda *g, loss=loss, name=name: used.append(name) or loss(*g)
        )
    train_student("overlap", given, steps=4)
    assert used == ["soft_cross_entropy"] * 2 + ["total_variation_loss"] * 2
    used.clear()
    train_student("overlap alone", given, steps=2)
    assert used == ["total_variation_loss"] * 2


def test_forecasts_are_those_of_the_model(given):
    found = forecasts(load_story_gpt(), given.inputs[:3])
    assert found.sum(axis=-1) == pytest.approx(np.ones(found.shape[:2]), abs=1e-4)
    assert isinstance(given, Lessons)


# The stored study -------------------------------------------------------------------------------


def test_stored_results_match_the_recipe():
    runs, wanted = distillation_results()["students"], list(distillation._wanted())
    for given in wanted:
        assert len([run for run in runs if given.items() <= run.items()]) == 1, given
    assert len(runs) == len(wanted)


def test_soft_labels_help_at_every_size_and_seed():
    """What the chapter says of them."""
    runs = {(r["labels"], r["stories"], r["seed"]): r for r in distillation_results()["students"]}
    for (labels, stories, seed), run in runs.items():
        if labels == "hard":
            for soft in ("truth", "teacher"):
                assert runs[soft, stories, seed]["excess"] < run["excess"]
                assert runs[soft, stories, seed]["accepted"] > run["accepted"]


def test_the_recipe_goes_on_where_it_stopped(monkeypatch, tmp_path):
    monkeypatch.setattr(distillation, "_run", lambda **given: {"excess": 0.5})
    monkeypatch.setattr(distillation, "_measured_on", lambda: (None, None, None))
    monkeypatch.setattr(distillation, "excess", lambda *given: 0.25)
    monkeypatch.chdir(tmp_path)
    assert distillation.main([]) == 0
    whole = json.loads(Path("distillation.json").read_text())
    assert len(whole["students"]) == len(list(distillation._wanted()))
    kept = {**whole, "students": whole["students"][:5]}
    kept["students"][0]["excess"] = -99.0  # made before, and kept
    Path("distillation.json").write_text(json.dumps(kept))
    assert distillation.main([]) == 0
    again = json.loads(Path("distillation.json").read_text())["students"]
    assert len(again) == len(whole["students"]) and again[0]["excess"] == -99.0
