"""The models that listen to dialects: their data, their distances, and the stored runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinytorch_book.experiments import dialect_gpt
from tinytorch_book.experiments.dialect_gpt import (
    LENGTH,
    START,
    Speakers,
    dialect_runs,
    distances,
    forecasts,
    new_dialect_gpt,
)
from tinytorch_book.stories import (
    dialect_table,
    draw_dialects,
    family_forecast,
    listed_forecast,
    speak,
)

SEEN = draw_dialects(4, rng=0)


def test_a_batch_has_new_speakers_and_begins_before_their_first_word():
    batches = Speakers(SEEN, batch_size=5, seq_len=7, seed=2)
    inputs, targets = batches[3]
    assert (inputs[:, 0] == START).all() and np.array_equal(inputs[:, 1:], targets[:, :-1])
    assert targets.shape == (5, 7) and targets.max() < START
    assert np.array_equal(batches[3][1], targets) and not np.array_equal(batches[4][1], targets)


def test_a_forecast_is_a_distribution_and_does_not_know_its_word():
    words = speak(SEEN, 8, rng=0)
    other = words.copy()
    other[:, -1] = (words[:, -1] + 1) % 24
    logs = forecasts(new_dialect_gpt(), words)
    assert np.allclose(np.exp(logs).sum(axis=-1), 1)
    assert np.array_equal(forecasts(new_dialect_gpt(), other), logs)


def test_distances_are_the_excess_in_expectation():
    words = speak(SEEN[np.arange(4000) % 4], 6, rng=1)
    table = dialect_table(SEEN)
    off = distances(np.log(family_forecast(words)), words, SEEN)
    said = (np.arange(4000)[:, None], np.arange(6), words)
    surprise = np.log(listed_forecast(table, words)[said] / family_forecast(words)[said])
    assert np.allclose(off["listed"], surprise.mean(axis=0), atol=0.03)
    assert (off["listed"] > 0.05).all() and np.allclose(off["family"], 0)


# The table -----------------------------------------------------------------------------------


def test_every_number_of_dialects_has_three_runs():
    found = sorted((run["dialects"], run["seed"]) for run in dialect_runs())
    assert found == [(2**i, seed) for i in range(1, 11) for seed in range(3)]


def test_no_model_is_better_than_the_best_reader():
    for run in dialect_runs():
        for name in ("seen", "unseen"):
            for nats in run[name].values():
                assert len(nats) == LENGTH and min(nats) >= 0
            assert run["along"][-1][name]["listed"] == pytest.approx(
                np.mean(run[name]["listed"]), abs=1e-5
            )


@pytest.mark.slow
def test_a_run_of_the_table_is_reproducible():
    stored = next(run for run in dialect_runs() if (run["dialects"], run["seed"]) == (16, 1))
    seen = draw_dialects(4096, rng=1)[:16]
    trainer = dialect_gpt._trainer(seen, 4000, seed=1)
    trainer.run(250)
    rng = np.random.default_rng([1, 1])
    words = speak(seen[rng.integers(16, size=500)], LENGTH, rng)
    off = distances(forecasts(trainer.model, words), words, seen)
    for reader, nats in stored["along"][0]["seen"].items():
        assert off[reader].mean() == pytest.approx(nats, rel=0.02)  # another BLAS rounds otherwise


def test_a_stopped_recipe_resumes(monkeypatch, tmp_path):
    made = []

    def run(count, seed, steps):
        if len(made) == 2:
            raise OSError("stopped")
        made.append(count)
        return {"dialects": count, "seed": seed, "steps": steps}

    monkeypatch.setattr(dialect_gpt, "_wanted", lambda: [(count, 0, 5) for count in (4, 2, 8)])
    monkeypatch.setattr(dialect_gpt, "_run", run)
    monkeypatch.chdir(tmp_path)
    assert dialect_gpt.main([]) == 1
    assert [kept["dialects"] for kept in kept_runs()] == [2, 4]
    made.clear()
    assert dialect_gpt.main([]) == 0
    assert made == [8] and len(kept_runs()) == 3


def kept_runs():
    return json.loads(Path("dialect_gpt.json").read_text())
