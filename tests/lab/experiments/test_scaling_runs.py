"""The runs behind the scaling law: fresh stories, known sizes, and a table that can be checked."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinytorch_book.experiments import scaling_runs
from tinytorch_book.experiments.scaling_runs import (
    FreshStories,
    scaling_model,
    scaling_rate,
    scaling_rates,
    scaling_run,
)
from tinytorch_book.experiments.scaling_runs import scaling_runs as all_runs
from tinytorch_book.experiments.story_gpt import new_story_gpt, story_tokenizer


def test_no_token_is_read_twice():
    fresh, newline = FreshStories(steps=20, seed=3), story_tokenizer().encode("\n")[0]
    assert (np.diff(fresh.starts) >= 112).all()
    read = np.concatenate([fresh[step][0] for step in range(20)])
    assert read.shape == (160, 112) and (read[:, 0] == newline).all()


@pytest.mark.parametrize("step", [-1, 2])
def test_fresh_stories_end(step):
    with pytest.raises(IndexError, match=f"enough for 2 steps, got step {step}"):
        FreshStories(steps=2)[step]


def test_the_model_of_the_book_is_one_of_the_sizes():
    ours, books = scaling_model(64, 2).state_dict(), new_story_gpt().state_dict()
    assert all(np.array_equal(ours[name], books[name]) for name in books)


def test_a_run_records_its_settings_and_results():
    run = scaling_run(8, 2, steps=3, seed=1)
    count = scaling_model(8, 2).num_parameters()
    assert run["parameters"] == count["total"]
    assert run["body"] == count["attention"] + count["mlp"] + count["norms"]
    assert (run["tokens"], run["lr"]) == (3 * 8 * 112, scaling_rate(8))
    assert 1.5 < run["loss"] < np.log(512) / 2.9  # hardly better than a guess of the token


def test_the_loss_is_the_entropy_plus_the_excess(monkeypatch):
    monkeypatch.setattr(scaling_runs, "excess", lambda model, **given: 21.0)
    assert scaling_run(8, 1, steps=1)["loss"] == pytest.approx((24.0899 + 21) / 210.5551, abs=1e-5)


# The table -----------------------------------------------------------------------------------


def test_the_table_holds_enough_runs_over_enough_sizes_and_tokens():
    runs = all_runs()
    assert len(runs) >= 80
    for name in ("parameters", "tokens"):
        values = [run[name] for run in runs]
        assert max(values) / min(values) > 50
    assert len({(run["embed_dim"], run["num_layers"]) for run in runs if run["seed"]}) >= 3


def test_no_loss_is_below_the_entropy():
    floor = scaling_runs._entropy().nats_per_character
    assert min(run["loss"] for run in all_runs() + scaling_rates()) > floor


def test_the_rate_is_near_the_best_of_those_tried():
    tried = scaling_rates()
    for width, depth, steps in {(r["embed_dim"], r["num_layers"], r["steps"]) for r in tried}:
        of_size = {"embed_dim": width, "num_layers": depth, "steps": steps}.items()
        runs = [run for run in tried if of_size <= run.items()]
        best = min(runs, key=lambda run: run["loss"])["lr"]
        assert 0.5 <= best / scaling_rate(width) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 9])
def test_a_run_of_the_table_is_reproducible(index):
    stored = all_runs()[index]
    again = scaling_run(*(stored[name] for name in ("embed_dim", "num_layers", "steps", "seed")))
    assert again["loss"] == pytest.approx(stored["loss"], rel=1e-3)  # another BLAS rounds otherwise
    assert {**stored, **again, "loss": stored["loss"]} == stored


def test_a_stopped_recipe_resumes(monkeypatch, tmp_path):
    sizes = "embed_dim", "num_layers", "steps", "seed", "lr"
    wanted = {"rates": [], "runs": [dict.fromkeys(sizes, i) for i in (1, 2, 3)]}
    made = []

    def run(**given):
        if len(made) == 2:
            raise OSError("stopped")
        made.append(given["steps"])
        return {**given, "loss": 1.0}

    monkeypatch.setattr(scaling_runs, "_wanted", lambda: wanted)
    monkeypatch.setattr(scaling_runs, "scaling_run", run)
    monkeypatch.chdir(tmp_path)
    stored = scaling_runs._FILE.read_bytes()
    assert scaling_runs.main([]) == 1
    assert [kept["steps"] for kept in kept_runs()] == [1, 2]
    made.clear()
    assert scaling_runs.main([]) == 0
    assert made == [3] and len(kept_runs()) == 3
    assert scaling_runs._FILE.read_bytes() == stored
    monkeypatch.setattr(scaling_runs, "_FILE", tmp_path / "package" / "scaling.json")
    made.clear()
    assert scaling_runs.main(["--in-package"]) == 1 and len(all_runs()) == 2


def kept_runs():
    return json.loads(Path("scaling.json").read_text())["runs"]
