"""A run that was stopped, however, goes on as if it had not been: bit for bit."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from run_until_killed import long_trainer, summary
from tiny_models import message, tiny_gpt
from training_runs import OPTIMISERS, bits, clock, held_out, losses, new_trainer

from tinytorch import (
    Batches,
    CosineSchedule,
    Dropout,
    Embedding,
    Linear,
    Sequential,
    Trainer,
    default_rng,
    manual_seed,
)
from tinytorch.training.checkpoint import load_safetensors, save_safetensors

posix = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


# Save and load -----------------------------------------------------------------------------------

RUNS = {
    "learned positions": {},
    "rotary positions": {"pos_encoding": "rotary"},
    "no dropout": {"dropout": 0.0},
    "momentum": {"optimizer": "SGD"},
    "accumulation": {"accumulate": 3},
    "no schedule, no clipping": {"schedule": None, "clip": None},
    "validation": {"validation": held_out(), "eval_every": 4},
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_new_objects_with_other_seeds_go_on_to_the_same_bits(path, options):
    manual_seed(3)
    through = new_trainer(**options)
    through.run(9)
    manual_seed(3)
    first = new_trainer(**options)
    first.run(4)
    first.save(path)
    first.run(1)  # draws that the second one must not see
    manual_seed(77)
    second = new_trainer(**options, seed=6)
    second.load(path)
    assert second.step_number == 4
    second.run(5)
    assert second.history == through.history
    assert bits(second) == bits(through)


def with_generators_of_its_own(seed):
    """A model whose layers drop from generators of their own, two of them from a common one."""
    common = np.random.default_rng(seed)
    parts = [Dropout(0.3, rng=common), Dropout(0.3, rng=seed + 1), Dropout(0.3, rng=common)]
    model = Sequential(Embedding(11, 8, rng=seed), *parts, Linear(8, 11, rng=seed))
    return Trainer(model, Batches(clock(), 4, 8), progress=False)


def test_generators_of_the_layers_go_on_too(path):
    through, first, second = (with_generators_of_its_own(seed) for seed in (0, 0, 50))
    through.run(7)
    first.run(3)
    first.save(path)
    second.load(path)
    second.run(4)
    assert second.history == through.history and bits(second) == bits(through)


def with_the_default_generator_twice():
    """One layer draws from the default generator by its name, the other because it has none."""
    parts = [Dropout(0.3, rng=default_rng()), Dropout(0.3)]
    model = Sequential(Embedding(11, 8, rng=0), *parts, Linear(8, 11, rng=0))
    return Trainer(model, Batches(clock(), 4, 8), progress=False)


def test_default_generator_stays_one_generator(path):
    manual_seed(3)
    through = with_the_default_generator_twice()
    through.run(7)
    manual_seed(3)
    first = with_the_default_generator_twice()
    first.run(3)
    first.save(path)
    manual_seed(4)
    second = with_the_default_generator_twice()
    second.load(path)
    second.run(4)
    assert losses(second) == losses(through)


def test_saving_does_not_disturb_the_training(path):
    kept, not_kept = new_trainer(checkpoint=path, save_every=1), new_trainer()
    for trainer in (kept, not_kept):
        manual_seed(3)
        trainer.run(5)
    assert kept.history == not_kept.history and bits(kept) == bits(not_kept)


def test_history_comes_back_with_what_was_not_measured(path):
    trainer, other = (new_trainer(validation=held_out(), eval_every=2) for _ in range(2))
    trainer.run(5)
    trainer.save(path)
    other.load(path)
    assert other.history == trainer.history
    assert [type(r["validation"]) for r in other.history] == [
        type(None), float, type(None), float, float,
    ]  # fmt: skip


def test_run_that_has_not_begun_can_be_saved(path):
    trainer, other = new_trainer(), new_trainer(seed=6)
    trainer.save(path)
    other.load(path)
    assert other.history == [] and bits(other) == bits(trainer)


def test_path_may_be_a_text_or_a_path(path):
    trainer = new_trainer(checkpoint=str(path))
    trainer.run(2)
    for same in (path, str(path)):
        other = new_trainer()
        other.load(same)
        assert other.step_number == 2


def test_run_saves_when_due_and_at_the_end(path):
    saved = []
    trainer = new_trainer(checkpoint=path, save_every=3)
    trainer.save = lambda where: saved.append((where, trainer.step_number))
    trainer.run(7)
    assert saved == [(path, 3), (path, 6), (path, 7)]


def test_checkpoint_of_another_precision_is_converted(path):
    trainer, other = new_trainer(), new_trainer()
    trainer.save(path)
    for p in other.model.parameters():
        p.data = p.data.astype(np.float64)
    other.load(path)
    name, p = other.model.named_parameters()[0]
    assert p.dtype == np.float64
    np.testing.assert_array_equal(p.data, trainer.model.state_dict()[name])


# What does not belong together -------------------------------------------------------------------


def trained_file(path, **options):
    trainer = new_trainer(**options)
    trainer.run(2)
    trainer.save(path)
    return trainer


def as_it_was(trainer):
    return bits(trainer), [*trainer.history], trainer.step_number, default_rng().bit_generator.state


OTHERS = {
    "another text": (
        {"text": clock(seed=4)},
        ["data: saved 600 tokens, checksum "],
    ),
    "a longer text": (
        {"text": clock(700)},
        ["data: saved 600 tokens, checksum "],
    ),
    "other batches": (
        {"batch_size": 2},
        ["batches: saved 4 windows of 8, seed 2, here 2 windows of 8, seed 2"],
    ),
    "another schedule": (
        {"schedule": CosineSchedule(0.02, 3, 13)},
        [
            "schedule: saved CosineSchedule(lr=0.02, min_lr=0.0, warmup_steps=3, total_steps=12), "
            "here CosineSchedule(lr=0.02, min_lr=0.0, warmup_steps=3, total_steps=13)"
        ],
    ),
    "no schedule": (
        {"schedule": None},
        ["schedule: saved CosineSchedule(", "here None", "optimizer: saved", "'lr': 0.001"],
    ),
    "other clipping": ({"clip": None}, ["clip: saved 0.5, here None"]),
    "several": (
        {"clip": 1.0, "accumulate": 2},
        ["accumulate: saved 1, here 2", "clip: saved 0.5, here 1.0"],
    ),
}


@pytest.mark.parametrize(("options", "told"), OTHERS.values(), ids=OTHERS)
def test_other_settings_are_named_and_nothing_is_changed(path, options, told):
    trained_file(path)
    other = new_trainer(**options, seed=6)
    before = as_it_was(other)
    text = message(ValueError, lambda: other.load(path))
    assert text.startswith(
        f"{path} belongs to another run; pass strict=False to go on with the settings of this "
        "one:\n  "
    )
    assert all(part in text for part in told) and text.count("saved") == len(
        [part for part in told if "saved" in part]
    )
    assert as_it_was(other) == before


def test_starts_are_part_of_the_data(path):
    trained_file(path)
    other = new_trainer()
    other.batches = Batches(clock(), 4, 8, seed=2, starts=range(0, 500))
    with pytest.raises(ValueError, match="data: saved 600 tokens"):
        other.load(path)


def test_other_optimiser_or_its_settings_are_named(path):
    trained_file(path)
    other = new_trainer(optimizer="SGD")
    before = as_it_was(other)
    text = message(ValueError, lambda: other.load(path))
    assert "optimizer: saved AdamW {'betas': (0.9, 0.95), " in text and ", here SGD {" in text
    text = message(ValueError, lambda: other.load(path, strict=False))
    assert "load_state_dict: SGD does not match:\n  missing: velocity.0 " in text
    assert as_it_was(other) == before
    same_but_one = new_trainer()
    same_but_one.optimizer.weight_decay = 0.5
    assert "'weight_decay': 0.5" in message(ValueError, lambda: same_but_one.load(path))


def test_rate_is_a_setting_if_nothing_schedules_it(path):
    trained_file(path, schedule=None)
    other = new_trainer(schedule=None)
    other.optimizer.lr = 0.5
    assert "'lr': 0.5" in message(ValueError, lambda: other.load(path))


@pytest.mark.parametrize("strict", [True, False])
def test_model_of_another_size_is_named_and_nothing_is_changed(path, strict):
    trained_file(path)
    model = tiny_gpt(embed_dim=4, num_layers=1, max_seq_len=8)
    other = new_trainer()
    optimizer = OPTIMISERS["AdamW"](model.parameters())
    other = Trainer(
        model, other.batches, optimizer=optimizer, schedule=other.schedule, clip=0.5, progress=False
    )
    before = as_it_was(other)
    text = message(ValueError, lambda: other.load(path, strict=strict))
    if not strict:
        assert "load_state_dict: GPT does not match:" in text
        assert "shape of token_embedding.weight: expected (11, 4), got (11, 8)" in text
        assert "unexpected: blocks.1.ln1.gamma (8,)" in text
    assert as_it_was(other) == before


def test_strict_false_goes_on_with_the_new_settings(path):
    old = trained_file(path)
    other = new_trainer(clip=None, text=clock(seed=4), schedule=lambda step: 0.125)
    other.load(path, strict=False)
    assert bits(other) == bits(old) and other.history == old.history
    assert other.run(1)[-1]["lr"] == 0.125 and len(other.history) == 3


def test_file_that_is_no_checkpoint_is_refused(path):
    trainer = new_trainer()
    save_safetensors(path, trainer.model.state_dict())
    before = as_it_was(trainer)
    assert message(ValueError, lambda: trainer.load(path)) == (
        f"{path} is not a training checkpoint; Trainer.save writes one"
    )
    path.write_text("once upon a time")
    with pytest.raises(ValueError, match=r"run\.safetensors: "):
        trainer.load(path)
    assert as_it_was(trainer) == before


def test_checkpoint_that_is_not_there_is_told():
    with pytest.raises(FileNotFoundError, match="there is no file 'no\\.safetensors'"):
        new_trainer().load("no.safetensors")


def test_file_cut_off_anywhere_is_refused_and_nothing_is_changed(path):
    trained_file(path)
    trainer, content = new_trainer(seed=6), path.read_bytes()
    before = as_it_was(trainer)
    for kept in (0, 4, 8, 300, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:kept])
        with pytest.raises(ValueError, match=r"run\.safetensors: "):
            trainer.load(path)
        assert as_it_was(trainer) == before


@pytest.mark.parametrize("name", ["settings", "random"])
def test_damaged_notes_are_refused_and_nothing_is_changed(path, name):
    trained_file(path)
    tensors, metadata = load_safetensors(path)
    save_safetensors(path, tensors, {**metadata, name: metadata[name][:-1]})
    trainer = new_trainer(seed=6)
    before = as_it_was(trainer)
    with pytest.raises(ValueError, match="is not a training checkpoint"):
        trainer.load(path)
    assert as_it_was(trainer) == before


# Interrupts --------------------------------------------------------------------------------------


class Interrupted(Batches):
    """Batches in which Ctrl-C is pressed so many times while a step reads."""

    def __init__(self, *args, at, times=1, **options):
        super().__init__(*args, **options)
        self.at, self.times = at, times

    def __getitem__(self, step):
        if step == self.at:
            for _ in range(self.times):
                signal.raise_signal(signal.SIGINT)
        return super().__getitem__(step)


def interrupted_trainer(times=1, **options):
    trainer = new_trainer(**options)
    trainer.batches = Interrupted(clock(), 4, 8, seed=2, at=2, times=times)
    return trainer


def test_interrupt_lets_the_step_finish_saves_and_is_raised(path):
    manual_seed(3)
    through = new_trainer()
    through.run(6)
    manual_seed(3)
    trainer = interrupted_trainer(checkpoint=path, save_every=100)
    handler = signal.getsignal(signal.SIGINT)
    assert message(KeyboardInterrupt, lambda: trainer.run(6)) == (
        "stopped after step 3; run() goes on"
    )
    assert signal.getsignal(signal.SIGINT) is handler
    other = new_trainer(seed=6)
    other.load(path)
    other.run(3)
    assert other.history == through.history and bits(other) == bits(through)


def test_run_after_an_interrupt_goes_on():
    manual_seed(3)
    through = new_trainer()
    through.run(6)
    manual_seed(3)
    trainer = interrupted_trainer()
    with pytest.raises(KeyboardInterrupt):
        trainer.run(6)
    trainer.run(3)
    assert trainer.history == through.history


def test_second_interrupt_is_raised_at_once():
    trainer = interrupted_trainer(times=2)
    handler = signal.getsignal(signal.SIGINT)
    assert message(KeyboardInterrupt, lambda: trainer.run(6)) == ""
    assert trainer.step_number == 2 and signal.getsignal(signal.SIGINT) is handler


def test_interrupt_while_it_evaluates_is_saved_as_well(path):
    trainer = new_trainer(validation=held_out(), eval_every=2, checkpoint=path, save_every=100)
    honest = trainer.model.forward

    def forward(ids):
        if not trainer.model.training and trainer.step_number == 2:
            signal.raise_signal(signal.SIGINT)
        return honest(ids)

    trainer.model.forward = forward
    with pytest.raises(KeyboardInterrupt):
        trainer.run(6)
    other = new_trainer()
    other.load(path)
    assert other.step_number == trainer.step_number < 6


def test_handler_comes_back_after_an_error():
    trainer, handler = new_trainer(), signal.getsignal(signal.SIGINT)
    trainer.model.forward = lambda ids: np.full((*ids.shape, 11), math.nan)
    with pytest.raises(FloatingPointError):
        trainer.run(1)
    assert signal.getsignal(signal.SIGINT) is handler


# Processes that are killed -----------------------------------------------------------------------

PROGRAM = Path(__file__).with_name("run_until_killed.py")
STEPS = 80


@pytest.fixture(scope="module")
def uninterrupted():
    manual_seed(0)  # with which a process begins
    trainer = long_trainer()
    trainer.run(STEPS)
    return summary(trainer)


def program(path, *options):
    """The run as a process that has loaded its checkpoint and is about to begin."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, path, str(STEPS), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    return process


def steps_in(path):
    return len(load_safetensors(path)[0]["history.loss"]) if path.exists() else 0


def wait_for(steps, path):
    """Until the checkpoint holds so many steps."""
    until = time.monotonic() + 30
    while steps_in(path) < steps:
        assert time.monotonic() < until, f"no {steps} steps in 30 seconds"
        time.sleep(0.001)


@posix
def test_run_that_is_killed_again_and_again_ends_at_the_same_bits(path, uninterrupted):
    rng, reached = random.Random(0), [0]
    for deadly in ([], ["--die", "fsync", "4"], [], ["--die", "replace", "5"], []):
        process = program(path, *deadly)
        if not deadly:
            wait_for(reached[-1] + 3, path)
            time.sleep(rng.uniform(0.0, 0.02))  # a step and its saving take about as long
            process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        reached.append(steps_in(path))
    assert reached == sorted(reached) and 16 <= reached[-1] < STEPS
    result, errors = program(path).communicate()
    assert errors == "" and json.loads(result) == uninterrupted


@posix
def test_ctrl_c_in_a_terminal_saves_and_the_run_goes_on_to_the_same_bits(path, uninterrupted):
    process = program(path, "--save-every", "7")
    wait_for(7, path)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    done = steps_in(path)
    assert 7 <= done < STEPS
    assert errors.endswith(f"KeyboardInterrupt: stopped after step {done}; run() goes on\n")
    assert process.returncode == -signal.SIGINT and output == ""
    result, errors = program(path).communicate()
    assert errors == "" and json.loads(result) == uninterrupted
