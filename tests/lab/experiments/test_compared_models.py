"""Surprise story by story: against the oracle, by enumeration, and the stored table."""

import numpy as np
import pytest

from tinytorch.core import functional
from tinytorch.core.layers import Linear
from tinytorch.files.safetensors import load_safetensors
from tinytorch.training.evaluation import character_surprise
from tinytorch_book.experiments import compared_models as compared
from tinytorch_book.experiments.compared_models import (
    STORIES,
    compared_models,
    expected_surprise,
    few_bits,
    oracle_surprise,
    story_surprise,
)
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.experiments.what_it_learned import story_truth, study_stories
from tinytorch_book.stories import StoryGrammar


@pytest.fixture(scope="module")
def twenty():
    return study_stories(20, seed=6)


@pytest.fixture(scope="module")
def truth(twenty):
    return story_truth(twenty)


class Oracle:
    """A model that gives the exact chances of the next token."""

    def __init__(self, truth):
        self.truth = truth

    def __call__(self, ids):
        return functional.log_softmax(np.log(np.nan_to_num(self.truth) + 1e-30))


def test_surprise_of_a_story_is_that_of_its_characters(twenty):
    model, texts = load_story_gpt(), StoryGrammar().generate(20, seed=6).splitlines(keepends=True)
    nats = [character_surprise(model, story_tokenizer(), text).sum() for text in texts]
    assert story_surprise(model, twenty) == pytest.approx(nats, abs=1e-3)


def test_the_oracle_is_as_surprised_as_the_grammar(twenty):
    texts = StoryGrammar().generate(20, seed=6).splitlines(keepends=True)
    nats = [-StoryGrammar().log_probs(text).sum() for text in texts]
    assert oracle_surprise(twenty) == pytest.approx(nats)


def test_expected_surprise_of_the_oracle_is_the_entropy_of_each_next_token(twenty, truth):
    p = np.nan_to_num(truth)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=(1, 2))
    assert expected_surprise(Oracle(truth), twenty, truth) == pytest.approx(entropy, abs=1e-3)


def test_expected_surprise_is_the_mean_over_every_token_that_may_come(twenty, truth):
    """At one token, by hand: each possible next one, weighed with its chance."""
    one = type(twenty)(*(field[:1] for field in twenty))
    one = one._replace(lengths=np.array([9]))
    ids = one.ids[:, :9]
    log_probs = functional.log_softmax(load_story_gpt()(ids)).data[0]
    by_hand = 0.0
    for position in range(9):
        for token in np.flatnonzero(truth[0, position]):
            by_hand -= truth[0, position, token] * log_probs[position, token]
    assert expected_surprise(load_story_gpt(), one, truth[:1]) == pytest.approx([by_hand], rel=1e-5)


def test_few_bits_leave_few_numbers_in_each_row_and_keep_the_rest():
    layer = Linear(30, 50, rng=0)
    before, bias = layer.weight.data.copy(), layer.bias.data.copy()
    few_bits(layer, 3)
    largest = np.abs(before).max(axis=1, keepdims=True)
    units = layer.weight.data / (largest / 3)
    assert units == pytest.approx(units.round(), abs=1e-4)
    assert np.abs(layer.weight.data - before).max() <= largest.max() / 6 + 1e-6
    assert np.abs(units).max() == pytest.approx(3)
    assert (layer.bias.data == bias).all()


def test_a_row_of_zeros_stays():
    layer = Linear(2, 3, rng=0)
    layer.weight.data[0] = 0
    assert (few_bits(layer, 4).weight.data[0] == 0).all()


# The table -----------------------------------------------------------------------------------


def test_the_table_has_every_model_of_the_recipe():
    nats, facts = compared_models()
    names = {"oracle"} | {n + e for n in compared._models() for e in ("", ", expected")}
    assert set(nats) == names and len(names) == 25
    assert {"machine", "date", "seconds"} <= set(facts)
    for name, values in nats.items():
        few = "trainings" if name.startswith("decay") else "all"
        assert len(values) == STORIES["expected" if "expected" in name else few]


def test_the_table_repeats(twenty, truth):
    nats, _ = compared_models()
    assert nats["oracle"][:20] == pytest.approx(oracle_surprise(twenty), abs=1e-3)
    for name in ("story GPT", "five bits"):
        model = compared._models()[name]()
        assert nats[name][:20] == pytest.approx(story_surprise(model, twenty), abs=0.01)
        expected = expected_surprise(model, twenty, truth)
        assert nats[f"{name}, expected"][:20] == pytest.approx(expected, abs=0.01)


def test_no_model_beats_the_oracle_on_average():
    nats, _ = compared_models()
    for name, values in nats.items():
        if "expected" not in name and name != "oracle":
            assert 0.1 < (values - nats["oracle"][: len(values)]).mean() < 0.4


def test_both_surprises_have_the_same_mean():
    nats, _ = compared_models()
    for name in ("story GPT", "five bits"):
        apart = nats[name][:1000] - nats[f"{name}, expected"]
        assert abs(apart.mean()) < 3 * apart.std() / 1000**0.5


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch):
    path, made = tmp_path / "some.safetensors", []
    monkeypatch.setattr(compared, "STORIES", {"all": 3, "trainings": 2, "expected": 2})
    known = compared._known.__wrapped__(2, 2)
    monkeypatch.setattr(compared, "_known", lambda: known)
    models = {name: lambda name=name: made.append(name) or load_story_gpt()
              for name in ("story GPT", "decay 0.1, seed 0")}  # fmt: skip
    monkeypatch.setattr(compared, "_models", lambda: dict(list(models.items())[:1]))
    compared._make(path)
    monkeypatch.setattr(compared, "_models", lambda: models)
    compared._make(path)
    assert made == ["story GPT", "decay 0.1, seed 0"]
    stored, facts = load_safetensors(path)
    assert {name: len(array) for name, array in stored.items()} == {
        "oracle": 3, "story GPT": 3, "story GPT, expected": 2,
        "decay 0.1, seed 0": 2, "decay 0.1, seed 0, expected": 2,
    }  # fmt: skip
    assert set(facts) == {"machine", "date", "seconds"}
