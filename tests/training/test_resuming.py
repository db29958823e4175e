"""A run that was stopped, however, goes on as if it had not been: bit for bit."""

import copy
import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from run_until_killed import long_trainer, summary
from tiny_models import message, tiny_gpt
from training_runs import OPTIMISERS, bits, clock, held_out, losses, new_trainer

from tinytorch import (
    GPT,
    SGD,
    AdamW,
    Batches,
    CosineSchedule,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    MultiHeadAttention,
    Sequential,
    Trainer,
    default_rng,
    manual_seed,
)
from tinytorch.core import seeding
from tinytorch.core.positions import Rotary
from tinytorch.training.resuming import checksum, random_states
from tinytorch.training.weight_files import load_safetensors, save_safetensors

posix = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


# Save and load -----------------------------------------------------------------------------------


class Counting(LayerNorm):
    """A part that shows what it returned, and whose output depends on earlier calls."""

    def __init__(self, size):
        super().__init__(size)
        self.calls, self.scale, self.means = 0, np.ones(size), {"first": [None]}

    def forward(self, x):
        self.calls += 1
        self.scale *= 1.01
        self.late = 0.5 * getattr(self, "late", 0) + self.calls
        self.means["first"][0] = self.scale / (1 + self.late)
        self.last = super().forward(x) * self.means["first"][0]
        return self.last


class Slowing(SGD):
    """An optimiser whose state `_state` does not return; it is made at the first step."""

    def __init__(self, params):
        super().__init__(params, lr=0.1)
        self._updates, self.norms = 0, []

    def _update(self, i, data, rows, g):
        if not hasattr(self, "means"):
            self.means = {j: np.zeros_like(p.data) for j, p in enumerate(self.params)}
        self._updates += 1
        self.norms.append(float(np.abs(g).sum()))
        self.means[i][rows] += g
        super()._update(i, data, rows, self.means[i][rows] / self._updates / self.norms[-1])


RUNS = {
    "learned positions": {},
    "rotary positions": {"model": {"pos_encoding": "rotary"}},
    "no dropout": {"dropout": 0.0},
    "momentum": {"optimizer": "SGD"},
    "accumulation": {"accumulate": 3},
    "no schedule, no clipping": {"schedule": None, "clip": None},
    "validation": {"validation": held_out(), "eval_every": 4},
    "a part with state of its own": {"model": {"norm": Counting}},
    "an optimiser with state of its own": {"optimizer": "slowing"},
}


@pytest.mark.parametrize("options", RUNS.values(), ids=RUNS)
def test_new_objects_with_other_seeds_resume_bit_for_bit(path, options, monkeypatch):
    monkeypatch.setitem(OPTIMISERS, "slowing", Slowing)
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


def test_generators_of_layers_are_restored(path):
    through, first, second = (with_generators_of_its_own(seed) for seed in (0, 0, 50))
    through.run(7)
    first.run(3)
    first.save(path)
    second.load(path)
    second.run(4)
    assert second.history == through.history and bits(second) == bits(through)


def test_saving_does_not_disturb_the_training(path):
    kept, not_kept = new_trainer(checkpoint=path, save_every=1), new_trainer()
    for trainer in (kept, not_kept):
        manual_seed(3)
        trainer.run(5)
    assert kept.history == not_kept.history and bits(kept) == bits(not_kept)


def test_run_saves_when_due_and_at_the_end(path):
    saved = []
    trainer = new_trainer(checkpoint=path, save_every=3)
    trainer.save = lambda where: saved.append((where, trainer.step_number))
    trainer.run(7)
    assert saved == [(path, 3), (path, 6), (path, 7)]


# What does not belong together -------------------------------------------------------------------


def trained_file(path, **options):
    trainer = new_trainer(**options)
    trainer.run(2)
    trainer.save(path)
    return trainer


def as_it_was(trainer):
    """Everything that loading might change."""
    return (
        bits(trainer),
        copy.deepcopy(trainer.history),
        trainer.step_number,
        random_states(trainer.model),
        id(default_rng()),
        trainer.optimizer.lr,
    )


class Hourly(Batches):
    """Batches of the reader's own, of the same text."""

    def __getitem__(self, step):
        return super().__getitem__(step // 2)


def model(**options):
    return {"model": options}


def rotated(base):
    return model(attention=partial(MultiHeadAttention, rotate=Rotary(8, 4, base=base)))


def biased(value):
    bias = np.full((2, 8, 8), [value] * 7 + [-np.inf])
    return model(attention=partial(MultiHeadAttention, bias=bias))


def until(end):
    return {"schedule": ([0.1] * end).__getitem__}


SCHEDULE = "CosineSchedule(lr=0.02, min_lr=0.0, warmup_steps=3, total_steps=1"
OTHERS = [  # what was saved, what loads, how many settings differ, and what is told of them
    ({}, {"text": clock(seed=4)}, 1, "data: saved Batches of 600 tokens, checksum "),
    (
        {},
        {"batch_size": 2},
        1,
        "batches: saved 4 windows of 8, seed 2, here 2 windows of 8, seed 2",
    ),
    ({}, {"schedule": None}, 3, f"\n  schedule: saved {SCHEDULE}2), here None\n  rates: saved "),
    ({"schedule": None}, {}, 3, "\n  rates: saved 0.001 always, here 0.00666667 0.0133333 "),
    ({"schedule": CosineSchedule(0.02, 3, 13)}, {}, 2, f"saved {SCHEDULE}3), here {SCHEDULE}2)"),
    (
        {"schedule": partial(lambda step, scale: scale / (step + 1), scale=0.5)},
        {"schedule": partial(lambda step, scale: scale / (step + 1), scale=0.25)},
        2,
        "rates: saved 0.5 0.25 0.166667 0.1 0.0555556 ",
    ),
    (until(9), until(8), 1, "0.1 0.1 IndexError IndexError"),
    (
        {"optimizer": "SGD"},
        {},
        6,
        "\n  optimizer: saved SGD, here AdamW\n  optimizer.betas: saved None, here (0.9, 0.95)\n",
    ),
    (
        {"accumulate": 2},
        {"clip": None},
        2,
        "accumulate: saved 2, here 1\n  clip: saved 0.5, here N",
    ),
    ({}, model(num_heads=4), 9, "model.num_heads: saved 2, here 4"),
    ({}, model(num_heads=4, norm=Counting), 13, "and "),
    ({}, model(norm=Counting), 13, "model.ln_f: saved LayerNorm, here Counting"),
    ({}, model(norm=partial(LayerNorm, eps=1e-3)), 5, "model.ln_f.eps: saved 1e-05, here 0.001"),
    (
        rotated(10000.0),
        rotated(500.0),
        2,
        "model.blocks.0.attention.rotate.cos: saved float32 (8, 2)",
    ),
    (
        biased(1.0),
        biased(2.0),
        2,
        "model.blocks.0.attention.bias: saved float64 (2, 8, 8), infinities ",
    ),
]


@pytest.mark.parametrize(("saved", "loads", "lines", "told"), OTHERS)
def test_different_settings_are_named_and_nothing_changes(path, saved, loads, lines, told):
    trained_file(path, **saved)
    other = new_trainer(**loads, seed=6)
    before = as_it_was(other)
    text = message(ValueError, lambda: other.load(path))
    remedy = "pass strict=False to resume with the settings of this trainer"
    assert text.startswith(f"{path}: this belongs to another run; {remedy}:\n  ")
    assert told in text and text.count("\n") == lines and as_it_was(other) == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"optimizer": "SGD"}, "SGD does not match:\n  missing: velocity.0 "),
        (model(embed_dim=4), "GPT does not match:\n  shape of token_embedding.weight: expected"),
        (model(num_layers=1), "\n  unexpected: blocks.1.ln1.gamma (8,)"),
    ],
)
def test_numbers_that_do_not_fit_are_named_and_nothing_changes(path, options, told):
    trained_file(path)
    other = new_trainer(**options, seed=6)
    before = as_it_was(other)
    assert told in message(ValueError, lambda: other.load(path, strict=False))
    assert as_it_was(other) == before


def test_an_option_that_is_changed_between_two_runs_is_an_option(path):
    first, second = (new_trainer(**model(norm=Counting)) for _ in range(2))
    first.run(2)
    first.model.ln_f.eps = 1e-3
    first.save(path)
    told = message(ValueError, lambda: second.load(path))
    assert "ln_f.eps: saved 0.001" in told and told.count("\n") == 1


def test_what_no_checkpoint_can_contain_is_refused_if_it_changes(path):
    class Hooked(LayerNorm):
        def forward(self, x):
            self.seen = {len(x.shape)}
            return super().forward(x)

    trainer = new_trainer(**model(norm=Hooked))
    trainer.run(1)
    told = "model.blocks.0.ln1.seen changed during the run, and a checkpoint cannot contain {3}"
    assert told in message(ValueError, lambda: trainer.save(path))


class Seeded(SGD):
    """An optimiser with a generator of its own."""

    def __init__(self, params):
        super().__init__(params, lr=0.1)
        self.noise = np.random.default_rng(0)

    def _update(self, i, data, rows, g):
        super()._update(i, data, rows, g + 1e-3 * self.noise.normal(size=g.shape))


class Counters(LayerNorm):
    """A part that keeps its state where JSON and arrays do not reach."""

    def __init__(self, size):
        super().__init__(size)
        self.seen = Counter()

    def forward(self, x):
        self.seen[len(self.seen)] += 1
        return super().forward(x)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"optimizer": "seeded"}, "optimizer.noise"), (model(norm=Counters), "model.ln_f.seen")],
)
def test_state_that_is_out_of_reach_is_refused_by_name(path, monkeypatch, options, name):
    monkeypatch.setitem(OPTIMISERS, "seeded", Seeded)
    trainer = new_trainer(**options)
    trainer.run(2)
    told = message(ValueError, lambda: trainer.save(path))
    assert re.search(rf"{name}|blocks.0.ln1.seen changed during the run, and a checkp", told)


ONES = np.ones(8)


class Sharing(LayerNorm):
    """Parts that begin with one array, which they share, and go on with arrays of their own."""

    def __init__(self, size):
        super().__init__(size)
        self.mean, self.log = ONES, []

    def forward(self, x):
        self.mean = 0.9 * self.mean + x.data.mean(axis=(0, 1))
        self.log.append(float(self.mean[0]))
        return super().forward(x) * self.mean


def test_parts_that_begin_with_one_array_get_arrays_of_their_own(path):
    through, first, second = (new_trainer(**model(norm=Sharing)) for _ in range(3))
    manual_seed(3)
    through.run(6)
    manual_seed(3)
    first.run(4)
    first.save(path)
    second.load(path)
    second.run(2)
    assert bits(second) == bits(through)
    assert second.model.ln_f.log == through.model.ln_f.log


def test_other_frozen_parts_are_another_run(path):
    first, second = new_trainer(), new_trainer()
    for trainer, block in ((first, 0), (second, 1)):
        for p in trainer.model.blocks[block].parameters():
            p.requires_grad = False
        trainer.optimizer = OPTIMISERS["AdamW"](trainer.model.trainable_parameters())
    first.save(path)
    told = message(ValueError, lambda: second.load(path))
    assert "\n  trained: saved " in told


def test_a_run_that_failed_is_resumed_with_what_it_had_changed(path):
    first, second = (new_trainer(**model(norm=Counting)) for _ in range(2))
    good = first.batches
    first.batches = type(
        "Batches",
        (),
        {
            "batch_size": 4,
            "seq_len": 8,
            "seed": 2,
            "tokens": good.tokens,
            "checksum": good.checksum,
            "__getitem__": lambda self, step: good[step] if step < 2 else 1 / 0,
        },
    )()
    with pytest.raises(ZeroDivisionError):
        first.run(5)
    first.save(path)
    second.load(path)
    assert second.model.ln_f.calls == first.model.ln_f.calls == 2


def test_rewinding_to_before_something_changed_is_refused(path):
    trainer = new_trainer(**model(norm=Counting))
    trainer.save(path)
    trainer.run(2)
    assert "ln1.calls: saved 0, here 2" in message(ValueError, lambda: trainer.load(path))


def test_equal_options_are_equal_in_any_form(path):
    trained_file(path, dropout=0, **model(pos_encoding="rotary", rotary_base=500))
    new_trainer(dropout=0.0, **model(pos_encoding="rotary", rotary_base=500.0)).load(path)


def test_rates_are_compared_at_every_step_of_the_past(path):
    first, second = (
        new_trainer(schedule=lambda step, low=low: low if step == 3 else 0.1) for low in (0.05, 0.1)
    )
    first.run(5)
    first.save(path)
    assert "\n  rates before step 5: saved checksum " in message(
        ValueError, lambda: second.load(path)
    )
    second.load(path, strict=False)
    second.save(path)
    second.load(path)  # its own schedule from now on


def test_generators_that_two_parts_share_are_another_run_than_two_generators(path):
    with_generators_of_its_own(0).save(path)
    other = with_generators_of_its_own(0)
    other.model.layers[3].rng = np.random.default_rng(0)
    assert "generators: saved layers.1.rng=layers.3.rng layers.2.rng, here " in message(
        ValueError, lambda: other.load(path)
    )


def test_a_run_in_another_dtype_is_another_run(path):
    exact, usual = new_trainer(), new_trainer()
    for p in exact.model.parameters():
        p.data = p.data.astype(np.float64)
    exact.optimizer = OPTIMISERS["AdamW"](exact.model.parameters())
    exact.save(path)
    assert "\n  dtype: saved float64, here float32" in message(ValueError, lambda: usual.load(path))
    usual.load(path, strict=False)
    assert {p.dtype for p in usual.model.parameters()} == {np.dtype("float32")}


def test_other_batches_of_the_same_text_are_another_run(path):
    trained_file(path)
    other = new_trainer()
    other.batches = Hourly(clock(), 4, seq_len=8, seed=2)
    assert "\n  data: saved Batches of 600 " in message(ValueError, lambda: other.load(path))


def test_batches_of_ones_own_resume(path):
    class Mine:
        batch_size, seq_len = 2, 4

        def __getitem__(self, step):
            return np.full((2, 4), step), np.full((2, 4), step + 1)

    trainer = Trainer(tiny_gpt(max_seq_len=8), Mine(), progress=False)
    trainer.run(2)
    trainer.save(path)
    trainer.load(path)
    assert "data: saved Mine" in message(ValueError, lambda: new_trainer().load(path))


def test_position_in_the_data_does_not_depend_on_the_history(path):
    first, second = new_trainer(), new_trainer()
    first.run(3)
    first.history.clear()
    first.save(path)
    second.load(path)
    assert (second.step_number, second.history) == (3, [])


def test_strict_false_continues_with_the_new_settings(path):
    old = trained_file(path)
    settings = {"text": clock(seed=4), "schedule": lambda step: 0.125, **model(num_heads=4)}
    other = new_trainer(clip=None, **settings)
    other.load(path, strict=False)
    assert bits(other) == bits(old) and other.history == old.history
    assert other.run(1)[-1]["lr"] == 0.125 and len(other.history) == 3


def test_file_that_is_not_a_checkpoint_is_refused(path):
    trainer = new_trainer()
    save_safetensors(path, trainer.model.state_dict())
    before = as_it_was(trainer)
    assert message(ValueError, lambda: trainer.load(path)) == (
        f"{path}: this is not a training checkpoint; Trainer.save writes one"
    )
    path.write_text("once upon a time")
    with pytest.raises(ValueError, match=r"run\.safetensors: "):
        trainer.load(path)
    assert as_it_was(trainer) == before


def test_error_of_a_part_is_not_taken_for_a_damaged_file(path):
    trainer = trained_file(path)
    trainer.model.state_dict = lambda: trainer.model.misspelt
    with pytest.raises(AttributeError, match="misspelt"):
        trainer.load(path)


def test_missing_checkpoint_is_named():
    with pytest.raises(FileNotFoundError, match="there is no file 'no\\.safetensors'"):
        new_trainer().load("no.safetensors")


def test_different_generators_are_named(path):
    trainer = with_generators_of_its_own(0)
    trainer.save(path)
    trainer.model.layers[1].rng = None
    told = message(ValueError, lambda: trainer.load(path))
    assert "generators: saved layers.1.rng=layers.3.rng layers.2.rng, here layers.2.rng " in told
    trainer.load(path, strict=False)


# Damaged files -----------------------------------------------------------------------------------

JUNK = [None, True, -1, 0, 1.5, 10**40, "x", "", [], [1], {}, {"x": 1}, float("nan"), "MT19937"]


def small_trainer(seed=0):
    """A run with everything that a checkpoint holds, in a file of a few kilobytes."""
    parts = [Dropout(0.3), Dropout(0.3, rng=seed), Dropout(0.3, rng=default_rng())]
    model = Sequential(Embedding(11, 2, rng=seed), *parts, Linear(2, 11, rng=seed))
    return Trainer(model, Batches(clock(100), 2, 4), clip=0.5, progress=False)


def damaged_bytes(rng, content):
    content = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        where = rng.randrange(len(content) + 1)
        how = rng.choice(["flip", "flip", "flip", "cut", "delete", "repeat", "zeros"])
        if how == "flip" and where < len(content):
            content[where] ^= 1 << rng.randrange(8)
        elif how == "cut":
            del content[where:]
        elif how == "delete":
            del content[where : where + rng.randint(1, 16)]
        elif how == "repeat":
            content[where:where] = content[where : where + rng.randint(1, 16)]
        elif how == "zeros":
            content[where : where + 8] = bytes(len(content[where : where + 8]))
    return bytes(content)


def damage_tensor(rng, tensors):
    """Rename, drop, add, reshape, retype or change a tensor."""
    name, other = rng.choice([*tensors]), rng.choice([*tensors])
    how = rng.choice(["rename", "drop", "add", "swap", "reshape", "retype", "cut", "number"])
    array = tensors[name]
    if how == "rename":
        tensors[name[:-1] + rng.choice("012xyz")] = tensors.pop(name)
    elif how == "drop":
        del tensors[name]
    elif how == "add":
        tensors[rng.choice(["model.", "history.", "optimizer.", ""]) + "new"] = array
    elif how == "swap":
        tensors[name], tensors[other] = tensors[other], array
    elif how == "reshape":
        tensors[name] = rng.choice([array[None], array.reshape(-1), array[..., None]])
    elif how == "retype":
        with np.errstate(all="ignore"):
            tensors[name] = array.astype(rng.choice(["f2", "f8", "i4", "i8", "u1", "?"]))
    elif how == "cut" and array.ndim:
        tensors[name] = array[:-1]
    elif how == "number" and array.size:
        tensors[name] = array.copy()
        tensors[name].reshape(-1)[0] = rng.choice([7, 0, -1])


def damage_json(rng, value):
    """Replace or drop something at some depth."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.9:
        key = rng.choice([*value] if isinstance(value, dict) else range(len(value)))
        if rng.random() < 0.15:
            del value[key]
        else:
            value[key] = damage_json(rng, value[key])
        return value
    return rng.choice(JUNK)


def damage_notes(rng, notes):
    """Drop or replace a note, or something inside it."""
    name = rng.choice([*notes])
    how = rng.random()
    if how < 0.1:
        del notes[name]
    elif how < 0.2:
        notes[name] = rng.choice(["", "{", "null", "[]", "{}", "[" * 5000, "NaN", "x"])
    elif name != "checksum":
        notes[name] = json.dumps(damage_json(rng, json.loads(notes[name])))


def write_damaged(rng, path, content):
    """Damage a checkpoint; whether its checksum is right all the same."""
    path.write_bytes(content)
    if rng.random() < 0.4:
        path.write_bytes(damaged_bytes(rng, content))
        return False
    tensors, notes = load_safetensors(path)
    rng.choice([lambda: damage_tensor(rng, tensors), lambda: damage_notes(rng, notes)])()
    forged = rng.random() < 0.7
    if forged and "checksum" in notes:
        notes.pop("checksum")
        notes["checksum"] = checksum(tensors, notes)
    save_safetensors(path, tensors, notes)
    return forged


def assert_holds(trainer, path):
    """The trainer is what the file says, which need not be what was saved."""
    tensors, notes = load_safetensors(path)
    own = {"model": trainer.model.state_dict(), "optimizer": trainer.optimizer.state_dict()}
    for part, arrays in own.items():
        for name, array in arrays.items():
            np.testing.assert_array_equal(array, tensors[f"{part}.{name}"].astype(array.dtype))
    np.testing.assert_array_equal(losses(trainer), tensors["history.loss"])
    assert trainer.step_number == json.loads(notes["step"]) >= len(trainer.history)
    saved, own = json.loads(notes["random"]), random_states(trainer.model)
    assert own["default"] == saved["default"]
    if "layers.2.rng" in saved["layers"]:
        assert own["layers"]["layers.2.rng"] == saved["layers"]["layers.2.rng"]


@pytest.mark.slow
def test_damaged_checkpoint_is_loaded_as_saved_or_changes_nothing(path):
    rng, told, held = random.Random(0), set(), 0
    first = small_trainer()
    first.run(3)
    first.save(path)
    saved, content = as_it_was(first)[:4], path.read_bytes()
    trainer = small_trainer(seed=1)
    before = as_it_was(trainer)
    for _ in range(3000):
        forged = write_damaged(rng, path, content)
        try:
            trainer.load(path, strict=rng.random() < 0.5)
        except ValueError as error:
            assert str(error).startswith(f"{path}: ")
            assert as_it_was(trainer) == before
            told.add(str(error).removeprefix(f"{path}: ")[:40])
            continue
        held += 1
        if forged:
            assert_holds(trainer, path)
        else:
            assert as_it_was(trainer)[:4] == saved
        trainer = small_trainer(seed=1)
        before = as_it_was(trainer)
    assert len(told) > 40 and 50 < held < 1000  # both happen, and the reasons are many


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


Interrupted.__name__ = "Batches"  # the same batches to a checkpoint


def interrupted_trainer(times=1, **options):
    trainer = new_trainer(**options)
    trainer.batches = Interrupted(clock(), 4, 8, seed=2, at=2, times=times)
    return trainer


def test_interrupt_is_raised_after_finishing_the_step_and_saving(path):
    manual_seed(3)
    through = new_trainer()
    through.run(6)
    manual_seed(3)
    trainer = interrupted_trainer(checkpoint=path, save_every=100)
    handler = signal.getsignal(signal.SIGINT)
    assert message(KeyboardInterrupt, lambda: trainer.run(6)) == (
        "stopped after step 3; run() resumes"
    )
    assert signal.getsignal(signal.SIGINT) is handler
    other = new_trainer(seed=6)
    other.load(path)
    other.run(3)
    assert other.history == through.history and bits(other) == bits(through)


def test_second_interrupt_is_raised_at_once():
    trainer = interrupted_trainer(times=2)
    handler = signal.getsignal(signal.SIGINT)
    assert message(KeyboardInterrupt, lambda: trainer.run(6)) == ""
    assert trainer.step_number == 2 and signal.getsignal(signal.SIGINT) is handler


def test_interrupt_during_evaluation_saves_too(path):
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


# Files that cannot be written --------------------------------------------------------------------


def test_failed_save_is_reported_and_the_run_can_continue(path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    manual_seed(3)
    through = new_trainer()
    through.run(6)
    manual_seed(3)
    trainer = new_trainer(checkpoint=path, save_every=2)
    trainer.run(2)
    old = path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        told = message(OSError, lambda: trainer.run(4))
    assert f"cannot write {str(path)!r}: No space left on device; free some space" in told
    assert path.read_bytes() == old and [*path.parent.iterdir()] == [path]
    assert trainer.step_number == 4
    trainer.run(2)
    assert trainer.history == through.history and steps_in(path) == 6


def test_interrupt_during_saving_finishes_the_file(path, monkeypatch):
    honest = os.fsync

    def once(descriptor):
        monkeypatch.setattr(os, "fsync", honest)
        signal.raise_signal(signal.SIGINT)

    trainer = new_trainer(checkpoint=path, save_every=2)
    monkeypatch.setattr(os, "fsync", once)
    with pytest.raises(KeyboardInterrupt, match="stopped after step 3"):
        trainer.run(6)
    assert steps_in(path) == 3


# Processes that are killed -----------------------------------------------------------------------

PROGRAM = Path(__file__).with_name("run_until_killed.py")
STEPS = 40


@pytest.fixture(scope="module")
def uninterrupted():
    state = seeding.default_state()
    manual_seed(0)  # with which a process begins
    trainer = long_trainer()
    trainer.run(STEPS)
    seeding.restore_default(state)
    return summary(trainer)


def program(path, *options):
    """The run as a process, until it ends or stops itself."""
    command = [sys.executable, PROGRAM, path, str(STEPS), *options]
    return subprocess.run(command, capture_output=True, text=True)


def steps_in(path):
    return len(load_safetensors(path)[0]["history.loss"]) if path.exists() else 0


@pytest.mark.slow
@posix
def test_run_that_is_killed_again_and_again_ends_at_the_same_bits(path, uninterrupted):
    reached = [0]
    for where in ("call 2345", "fsync 4", "call 4321", "replace 5", "call 3210"):
        done = program(path, "--stop", "KILL", *where.split())
        assert done.returncode == -signal.SIGKILL, done.stderr
        reached.append(steps_in(path))
    assert reached == sorted(reached) and 7 <= reached[-1] < STEPS
    done = program(path)
    assert done.stderr == "" and json.loads(done.stdout) == uninterrupted
    assert {file.suffix for file in path.parent.iterdir()} == {path.suffix, ".part"}


def test_equal_settings_are_equal_in_whatever_type_they_are_given(tmp_path):
    def trainer(clip, betas, lr):
        model = GPT(5, 8, 1, 2, max_seq_len=8, rng=0)
        optimizer = AdamW(model.parameters(), lr=lr, betas=betas)
        batches = Batches(np.arange(50) % 5, batch_size=4, seq_len=8)
        return Trainer(model, batches, optimizer=optimizer, clip=clip, progress=False)

    trainer(1, [0.9, 0.99], 0.001).save(tmp_path / "run.safetensors")
    trainer(1.0, (0.9, 0.99), np.float64(0.001)).load(tmp_path / "run.safetensors")
    with pytest.raises(ValueError, match="clip"):
        trainer(2, (0.9, 0.99), 0.001).load(tmp_path / "run.safetensors")
