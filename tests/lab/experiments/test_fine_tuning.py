"""Fine-tuning: what it measures, what a run changes, and the results that are kept."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinytorch import GPT, Batches
from tinytorch.models.lora import add_lora
from tinytorch.training.evaluation import surprise
from tinytorch_book.experiments import fine_tuning
from tinytorch_book.experiments.fine_tuning import (
    MixedBatches,
    excess,
    fine_tune,
    fine_tuning_results,
)
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer, story_windows
from tinytorch_book.stories import story_dialect


@pytest.fixture(scope="module")
def names():
    return story_dialect("names")


def test_excess_is_the_surprise_of_whole_stories_above_the_oracles(names):
    model, tokenizer = load_story_gpt(), story_tokenizer()
    total = 0.0
    for story in names.generate(100, seed=2).splitlines(keepends=True):
        ids = np.array([tokenizer.encode("\n" + story)])
        total += surprise(model, ids[:, :-1], ids[:, 1:]).sum() + names.log_probs(story).sum()
    assert excess(model, names) == pytest.approx(total / 100, abs=1e-3)


def test_windows_of_a_dialect_have_the_floor_of_its_oracle(names):
    held_out = story_windows(num_windows=3, seed=4, grammar=names)
    text = "\n" + names.generate(20, seed=4)
    ids = story_tokenizer().encode(text)
    first = ids.index(ids[0], 1)  # the newline that ends the first story
    assert held_out.inputs[0, :first].tolist() == ids[:first]
    story = text[1:].split("\n")[0] + "\n"
    assert held_out.floor[0, :first].sum() == pytest.approx(-names.log_probs(story).sum())


def test_a_run_moves_what_is_not_frozen_and_nothing_else():
    batches = Batches(np.arange(200) % 11, batch_size=4, seq_len=8)
    model = add_lora(GPT(11, 8, 1, 2, max_seq_len=8, rng=0), rank=2, rng=0)
    before = model.state_dict()
    assert fine_tune(model, batches, lr=0.01, steps=5) is model
    moved = {n for n, array in model.state_dict().items() if not np.array_equal(array, before[n])}
    assert moved == {n for n, p in model.named_parameters() if p.requires_grad}


def test_mixed_batches_replace_the_last_rows_of_inputs_and_targets():
    new, old = (Batches(np.arange(50) + shift, 4, 8, seed=shift) for shift in (0, 100))
    mixed = MixedBatches(new, old, rows=1)
    for step in (0, 3):
        for found, theirs, others in zip(mixed[step], new[step], old[step], strict=True):
            assert np.array_equal(found[:3], theirs[:3]) and np.array_equal(found[3:], others[:1])
    assert (mixed.batch_size, mixed.seq_len) == (4, 8)


def test_stored_results_match_the_recipe():
    results = fine_tuning_results()
    tried = {(run["rank"], run["lr"]) for run in results["rates"]}
    assert tried == {(rank, lr) for rank, rates in fine_tuning._RATES.items() for lr in rates}
    ranks = [(run["rank"], run["dialect"], run["seed"]) for run in results["ranks"]]
    assert len(ranks) == len(set(ranks)) == 4 * 3 * 3
    assert {run["old_rows"] for run in results["mixed"]} == {1, 2}
    table = [(run["rank"], run["seed"]) for run in results["table"]]
    assert sorted(table) == [(rank, seed) for rank in (0, 16) for seed in (11, 12, 13)]
    for run in results["ranks"] + results["mixed"] + results["table"]:
        done = [r for r in results["rates"] if r["rank"] == run["rank"] and r["new"]]
        assert run["lr"] == min(done, key=lambda r: r["new"])["lr"], "the best rate of its rank"


@pytest.mark.proof  # the chapter tunes by the same recipe, and prints what comes of it
def test_a_stored_run_is_reproducible():
    (kept,) = (
        run
        for run in fine_tuning_results()["ranks"]
        if (run["rank"], run["dialect"], run["seed"]) == (4, "food", 11)
    )
    again = fine_tuning._run(4, kept["lr"], "food", 11)
    assert again["new"] == pytest.approx(kept["new"], abs=0.3)
    assert again["old"] == pytest.approx(kept["old"], abs=0.5)


def test_the_token_table_learns_only_if_it_is_free():
    held, free = (fine_tuning._adapted(rank, 0, learns) for rank, learns in ((0, False), (4, True)))
    kept = [p.requires_grad for p in (held.token_embedding.weight, free.token_embedding.weight)]
    assert kept == [False, True]
    assert len(held.trainable_parameters()) == len(held.parameters()) - 1
    lora = len(fine_tuning._adapted(4, 0).trainable_parameters())
    assert len(free.trainable_parameters()) == lora + 1


def test_a_run_with_a_non_finite_loss_is_stored_without_numbers(monkeypatch):
    def breaks(*given, **options):
        raise FloatingPointError

    monkeypatch.setattr(fine_tuning, "fine_tune", breaks)
    run = fine_tuning._run(0, 1.0, "food", 1)
    assert run["new"] is None and run["old"] is None


def test_the_recipe_writes_the_file_that_is_read(monkeypatch, tmp_path):
    def run(rank, lr, dialect, seed, old_rows=0, test=2, learns=None):
        new = None if lr > 0.05 else abs(lr - 0.003)
        kept = {"rank": rank, "lr": lr, "dialect": dialect, "seed": seed}
        return {**kept, "old_rows": old_rows, "new": new, "old": 0.0}

    monkeypatch.setattr(fine_tuning, "_run", run)
    stored = fine_tuning_results()
    monkeypatch.chdir(tmp_path)
    assert fine_tuning.main([]) == 0 and fine_tuning_results() == stored
    monkeypatch.setattr(fine_tuning, "_FILE", tmp_path / "package" / "results.json")
    assert fine_tuning.main(["--in-package"]) == 0
    results = fine_tuning_results()
    assert json.loads(Path("fine_tuning.json").read_text()) == results != stored
    assert {run["lr"] for run in results["ranks"]} == {0.003}
    assert len(results["mixed"]) == 2 * 2 * 2 and len(results["table"]) == 3 * 2
