"""A model trained a few steps at a time: the same numbers as in one run, kept and read again."""

import numpy as np
import pytest

from tinytorch.core.optimizers import AdamW, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.models.transformer import GPT
from tinytorch.training.trainer import Trainer
from tinytorch.training.weight_files import save_safetensors
from tinytorch_book.experiments import live_training, story_gpt
from tinytorch_book.experiments.live_training import SIZES, live_trainer, load_trained, save_trained


def losses(trainer):
    return [record["loss"] for record in trainer.history]


def plain_trainer(seed):
    """The same recipe once more, as a reader would write it, with nobody who watches."""
    model = GPT(512, 32, 2, 4, 112, pos_encoding="rotary", init_std=0.1, rng=seed)
    optimizer = AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.01, decay=only_matrices)
    schedule = CosineSchedule(lr=6e-3, warmup_steps=50, total_steps=1000, min_lr=3e-4)
    batches = story_gpt.story_batches(num_stories=4000)
    return Trainer(model, batches, optimizer=optimizer, schedule=schedule, progress=False)


@pytest.mark.slow
def test_in_pieces_it_takes_the_same_steps_as_a_plain_run_to_the_last_digit():
    watched, plain = live_trainer("smaller", seed=3), plain_trainer(seed=3)
    for steps in (1, 3, 2):
        watched.run(steps)
    plain.run(6)
    assert watched._settings(0) == plain._settings(0), "the rest of the recipe, too"
    assert losses(watched) == losses(plain)
    for name, weights in plain.model.state_dict().items():
        assert (watched.model.state_dict()[name] == weights).all(), name


@pytest.mark.slow
def test_a_run_that_is_kept_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole = live_trainer("smaller", seed=1)
    whole.run(4)
    stopped = live_trainer("smaller", seed=1)
    stopped.run(2)
    stopped.save(tmp_path / "run.safetensors")
    resumed = live_trainer("smaller", seed=1)
    resumed.load(tmp_path / "run.safetensors")
    resumed.run(2)
    assert losses(resumed) == losses(whole)
    assert [r["validation"] is None for r in resumed.history] == [True, False, True, False]


def test_another_seed_begins_elsewhere_and_reads_the_same_stories():
    one, other = live_trainer("smaller", seed=0), live_trainer("smaller", seed=1)
    assert losses_after_one(one) != losses_after_one(other)
    assert (one.batches[5][0] == other.batches[5][0]).all()


def losses_after_one(trainer):
    return trainer.run(1)[0]["loss"]


def test_it_is_tested_on_stories_that_it_does_not_read():
    trainer = live_trainer("smaller")
    rows, _ = trainer.validation
    read = trainer.batches.tokens.tobytes()
    assert not any(row.tobytes() in read for row in rows)
    assert trainer.floor == pytest.approx(float(story_gpt.story_windows(16).floor.mean()))


@pytest.mark.parametrize("size", SIZES)
def test_a_saved_model_is_read_again_with_the_same_weights(tmp_path, size):
    trainer = live_trainer(size, seed=5)
    save_trained(tmp_path / "yours.safetensors", trainer)
    model = load_trained(tmp_path / "yours.safetensors")
    assert not model.training
    ids = np.arange(20)[None]
    assert (model(ids).data == trainer.model.eval()(ids).data).all()


def test_the_size_of_the_story_gpt_is_that_of_the_book():
    sizes = [live_training._new_model("story", 0), story_gpt.new_story_gpt(0)]
    assert sizes[0].num_parameters() == sizes[1].num_parameters()


def test_what_is_no_such_model_is_refused_in_words(tmp_path):
    path = tmp_path / "other.safetensors"
    save_safetensors(path, {"w": np.zeros(3)}, {"version": "1"})
    with pytest.raises(ValueError, match=r"other\.safetensors is not a model that save_trained"):
        load_trained(path)
    with pytest.raises(ValueError, match="the size is one of smaller, story, larger, got 'huge'"):
        live_trainer("huge")
