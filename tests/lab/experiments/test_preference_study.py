"""The story GPT tuned to a reward: short runs, what is measured, and the stored study."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinytorch.training.preferences import frontier
from tinytorch_book.experiments import preferences
from tinytorch_book.experiments.preferences import (
    KINDNESS,
    preference_results,
    tiny_world,
    tune_by_pairs,
    tune_by_reward,
    tuned,
    write_stories,
)
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.tilted import reward_distribution, reward_of


@pytest.fixture(scope="module")
def model():
    return load_story_gpt()


def test_a_story_ends_with_its_newline_and_nothing_counts_after_it(model):
    written = write_stories(model, 12, rng=0)
    newline = story_tokenizer().encode("\n")[0]
    assert (written.inputs[:, 0] == newline).all()
    for inputs, targets, text, reward in zip(*written, strict=True):
        kept = targets[targets >= 0]
        assert text.count("\n") <= 1 and story_tokenizer().decode(kept) == text
        assert (targets[len(kept) :] == -1).all()
        assert inputs[1 : len(kept)].tolist() == kept[:-1].tolist()
        assert reward == reward_of(text, KINDNESS)


@pytest.mark.slow
def test_short_runs_of_both_ways_earn_more(model):
    before = tuned(model, num_stories=200)
    assert before["kl"] == before["kl_error"] == 0
    for after in (tune_by_reward(0.5, steps=8), tune_by_pairs(0.5, num_pairs=256, epochs=1)):
        found = tuned(after, num_stories=200)
        assert found["reward"] > before["reward"] + 0.1 and found["kl"] > 0.02


@pytest.mark.slow
def test_the_divergence_is_the_mean_of_the_log_ratio(model):
    """Token by token it is the same mean with less noise."""
    moved = load_story_gpt()
    moved.token_embedding.weight.data[:] *= 1.03
    found = tuned(moved, num_stories=200, seed=5)
    ratios = []
    for chunk in range(2):
        written = write_stories(moved, 100, np.random.default_rng((5, chunk)))
        ratios.extend(
            preferences._log_probs(moved, written) - preferences._log_probs(model, written)
        )
    error = float(np.std(ratios)) / 200**0.5
    assert found["kl"] == pytest.approx(float(np.mean(ratios)), abs=4 * error)
    assert found["kl_error"] < error


def test_the_tiny_world_is_small_and_has_its_trap():
    stories, probs, rewards = tiny_world()
    assert len(stories) == 240 and probs.sum() == pytest.approx(1)
    trap = ["happy, happy" in story for story in stories]
    assert probs[trap].sum() < 0.01 and rewards[trap].max() < 0


def test_stored_results_match_the_recipe():
    results = preference_results()
    wanted = [(group, {"way": way, **given}) for group, way, given in preferences._wanted()]
    for group, given in wanted:
        found = [run for run in results[group] if given.items() <= run.items()]
        assert len(found) == 1, (group, given)
    assert sum(map(len, results.values())) == len(results["untuned"]) + len(wanted)


def test_nobody_is_above_the_frontier():
    results = preference_results()
    rewards, chances = reward_distribution(StoryGrammar(), KINDNESS)
    curve = frontier(chances, rewards, np.geomspace(0.05, 50, 200))[::-1]
    for group in ("reward", "pairs", "fast pairs"):
        for run in results[group]:
            there = np.interp(run["kl"], *curve.T)
            assert run["reward"] < there + 3 * run["reward_error"], run


def test_the_recipe_goes_on_where_it_stopped(monkeypatch, tmp_path):
    monkeypatch.setattr(preferences, "tune_by_reward", lambda **given: given)
    monkeypatch.setattr(preferences, "tune_by_pairs", lambda **given: given)
    monkeypatch.setattr(preferences, "tuned", lambda model, seed: {"reward": float(seed)})
    monkeypatch.setattr(preferences, "_untuned", lambda: [{"reward": 0.0, "count": 1}])
    monkeypatch.chdir(tmp_path)
    assert preferences.main([]) == 0
    whole = json.loads(Path("preferences.json").read_text())
    assert {group: len(runs) for group, runs in whole.items()} == {
        "untuned": 1, "reward": 12, "pairs": 12, "fast pairs": 4,
    }  # fmt: skip
    kept = {**whole, "pairs": whole["pairs"][:5]}
    kept["reward"][0]["reward"] = -99.0  # made before, and kept
    Path("preferences.json").write_text(json.dumps(kept))
    assert preferences.main([]) == 0
    again = json.loads(Path("preferences.json").read_text())
    assert len(again["pairs"]) == 12 and again["reward"][0]["reward"] == -99.0
