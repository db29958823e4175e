"""The training loop: every number of its history by hand, and nothing that disturbs it."""

import math

import numpy as np
import pytest
from tiny_models import message, stirred, tiny_gpt
from training_runs import bits, clock, held_out, losses, new_trainer

from tinytorch import (
    GPT,
    SGD,
    Batches,
    Embedding,
    Module,
    Trainer,
    functional,
    manual_seed,
)
from tinytorch.training.evaluation import evaluate


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


# The history -------------------------------------------------------------------------------------


def test_first_loss_and_norm_match_cross_entropy_on_the_first_batch():
    trainer, twin = new_trainer(dropout=0.0), new_trainer(dropout=0.0).model
    inputs, targets = trainer.batches[0]
    log_probs = log_softmax(twin(inputs).data.astype(np.float64))
    rows, places = np.indices(targets.shape)
    by_hand = -log_probs[rows, places, targets].mean()
    functional.cross_entropy(twin(inputs), targets).backward()
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in twin.parameters()))
    (record,) = trainer.run(1)
    assert record["loss"] == pytest.approx(by_hand, rel=1e-6)
    assert record["grad_norm"] == pytest.approx(norm, rel=1e-5)
    assert record["lr"] == 0.02 / 3 and record["validation"] is None


def test_every_step_has_a_record_and_runs_add_up():
    trainer = new_trainer(validation=held_out(), eval_every=2)
    assert (trainer.step_number, trainer.history) == (0, [])
    history = trainer.run(3)
    assert trainer.run(2) is trainer.history is history
    assert len(history) == trainer.step_number == 5
    for record in history:
        assert [*record] == ["loss", "lr", "grad_norm", "validation"]
        assert type(record["loss"]) is type(record["lr"]) is type(record["grad_norm"]) is float


def test_lr_of_a_step_comes_from_the_schedule_and_is_used():
    asked = []

    def schedule(step):
        asked.append(step)
        return [0.0, 0.5, 0.0][step]

    trainer = new_trainer(schedule=schedule, optimizer="SGD")
    states = [bits(trainer)[0]]
    for _ in range(3):
        trainer.run(1)
        states.append(bits(trainer)[0])
    assert asked == [0, 1, 2]
    assert [record["lr"] for record in trainer.history] == [0.0, 0.5, 0.0]
    assert states[0] == states[1] != states[2] == states[3]


@pytest.mark.parametrize("rate", [-0.1, math.nan, math.inf, None, "0.1"])
def test_an_invalid_rate_of_the_schedule_is_refused_before_the_step(rate):
    trainer = new_trainer(schedule=lambda step: 0.25 if step < 2 else rate)
    trainer.run(2)
    before = bits(trainer)
    assert message(ValueError, lambda: trainer.run(1)) == (
        f"the schedule must give a finite rate >= 0, got {rate!r} at step 2"
    )
    assert bits(trainer) == before and trainer.step_number == 2 and trainer.optimizer.lr == 0.25


def test_a_step_is_clipped_and_the_unclipped_norm_recorded():
    moved = {}
    for clip in (None, 1e-3):
        trainer = new_trainer(clip=clip, schedule=None, optimizer="SGD", dropout=0.0)
        before = trainer.model.state_dict()
        (record,) = trainer.run(1)
        after = trainer.model.state_dict()
        step = math.sqrt(sum(((after[n] - before[n]) ** 2).sum() for n in before))
        moved[clip] = step / 0.1
        assert record["grad_norm"] > 0.1
    assert moved[None] == pytest.approx(record["grad_norm"], rel=1e-3)
    assert moved[1e-3] == pytest.approx(1e-3, rel=1e-2)


def test_the_default_optimiser_does_not_decay_biases_and_norms():
    trainer = Trainer(tiny_gpt(), Batches(clock(), 2, 8))
    chosen = trainer.optimizer
    names = [name for name, _ in trainer.model.named_parameters()]
    decaying = {name for name, decays in zip(names, chosen.decays, strict=True) if decays}
    assert decaying == {n for n in names if n.split(".")[-1] not in ("bias", "gamma", "beta")}
    assert (chosen.lr, chosen.betas, chosen.weight_decay) == (1e-3, (0.9, 0.99), 0.1)


# Accumulation ------------------------------------------------------------------------------------


class Listed:
    """Batches that were written down."""

    def __init__(self, batches):
        self.batches, self.seq_len = batches, batches[0][0].shape[1]
        self.batch_size = len(batches[0][0])

    def __getitem__(self, step):
        return self.batches[step]


def test_four_accumulated_batches_equal_one_large_batch():
    small = Batches(clock(), batch_size=2, seq_len=8)
    large = [
        [
            np.concatenate(part)
            for part in zip(*(small[4 * step + i] for i in range(4)), strict=True)
        ]
        for step in range(3)
    ]
    ends = []
    for batches, accumulate in ((small, 4), (Listed(large), 1)):
        model = stirred(tiny_gpt(max_seq_len=8))
        trainer = Trainer(
            model, batches, optimizer=SGD(model.parameters(), 0.1), accumulate=accumulate,
            clip=None, progress=False,
        )  # fmt: skip
        trainer.run(1)
        gradients = {name: p.grad for name, p in model.named_parameters()}
        trainer.run(2)
        ends.append((trainer.history, gradients, model.state_dict()))
    (history, gradients, state), (other_history, other_gradients, other_state) = ends
    for record, other in zip(history, other_history, strict=True):
        assert record["loss"] == pytest.approx(other["loss"], rel=1e-10)
        assert record["grad_norm"] == pytest.approx(other["grad_norm"], rel=1e-10)
    for name in gradients:
        np.testing.assert_allclose(gradients[name], other_gradients[name], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state[name], other_state[name], rtol=1e-9, atol=1e-12)


# Validation and modes ----------------------------------------------------------------------------


def test_validation_is_measured_when_due_and_at_the_end():
    trainer = new_trainer(validation=held_out(), eval_every=3)
    trainer.run(7)
    measured = [r["validation"] is not None for r in trainer.history]
    assert measured == [False, False, True, False, False, True, True]
    trainer.run(2)  # steps 8 and 9
    assert [r["validation"] is not None for r in trainer.history[7:]] == [False, True]


def test_validation_is_the_loss_of_the_model_after_the_step():
    trainer = new_trainer(validation=held_out(), eval_every=1)
    trainer.run(3)
    assert trainer.history[-1]["validation"] == evaluate(trainer.model, *held_out())


def test_validation_does_not_disturb_the_training():
    with_it, without = new_trainer(validation=held_out(), eval_every=2), new_trainer()
    for trainer in (with_it, without):
        manual_seed(3)
        trainer.run(6)
    assert losses(with_it) == losses(without) and bits(with_it) == bits(without)


def test_dropout_is_active_in_training_even_after_eval():
    trainer, other = new_trainer(dropout=0.5), new_trainer(dropout=0.5)
    trainer.model.eval()
    trainer.run(1)
    manual_seed(99)
    other.run(1)
    assert trainer.model.training
    assert losses(trainer) != losses(other)  # other elements were dropped


# Losses that are not finite ----------------------------------------------------------------------


@pytest.mark.parametrize("accumulate", [1, 2])
def test_non_finite_loss_stops_the_run_before_the_step(accumulate):
    trainer = new_trainer(accumulate=accumulate, validation=held_out())
    trainer.run(2)
    before = bits(trainer)
    history = [*trainer.history]
    honest = trainer.model.forward
    trainer.model.forward = lambda ids: honest(ids) * math.nan
    assert message(FloatingPointError, lambda: trainer.run(3)) == (
        "the loss is nan at step 2: lower the learning rate, "
        "lengthen the warm-up or clip the gradients"
    )
    assert bits(trainer) == before
    assert trainer.step_number == 2 and trainer.history == history
    trainer.model.forward = honest
    assert len(trainer.run(1)) == 3  # and it can go on


def test_a_validation_that_is_not_finite_leaves_the_last_good_checkpoint(tmp_path):
    """As a norm that divides by zero on one held-out window would."""
    options = {"validation": held_out(), "eval_every": 2, "save_every": 2}
    trainer = new_trainer(checkpoint=tmp_path / "run", **options)
    trainer.run(2)
    good, measure = (tmp_path / "run").read_bytes(), trainer._evaluate
    trainer._evaluate = lambda *windows: measure(*windows) * math.nan
    told = message(FloatingPointError, lambda: trainer.run(4))
    assert told.startswith("the loss on the validation windows is nan at step 4: lower the ")
    assert (tmp_path / "run").read_bytes() == good


def test_non_finite_gradient_stops_the_run():
    class Cliff(Module):
        """A finite loss whose gradient is not."""

        def __init__(self):
            self.table = Embedding(11, 11, rng=0)
            self.table.weight.data[:] = 0.0

        def forward(self, ids):
            return (self.table(ids) ** 2 + 1e-46) ** 0.5

    model = Cliff()
    trainer = Trainer(model, Batches(clock(), 2, 8), clip=None, progress=False)
    before = bits(trainer)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="the norm of the"):
        trainer.run(1)
    assert bits(trainer) == before and trainer.step_number == 0


# Sizes and threads -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["accumulate", "eval_every", "save_every"])
def test_counts_must_be_positive(name):
    told = message(ValueError, lambda: new_trainer(**{name: 0}))
    assert told == f"{name} must be at least 1, got 0"


def test_invalid_parts_of_a_run_are_refused_before_it_begins():
    for wrong, wanted in (
        ({"batches": 5}, "batches must be a Batches, got 5"),
        ({"batches": [1, 2]}, "batches must be a Batches, got [1, 2]"),
        ({"optimizer": 0.1}, "optimizer must be an Optimizer, got 0.1"),
        ({"schedule": 0.1}, "schedule must be a function of the step, got 0.1"),
        ({"validation": 5}, "validation must be inputs and targets, got 5"),
        ({"clip": "1"}, "clip must be a number, got '1'"),
        ({"floor": "low"}, "floor must be a number, got 'low'"),
    ):
        arguments = {"batches": Batches(np.arange(50) % 5, 2, 8), **wrong}
        said = message(TypeError, lambda arguments=arguments: Trainer(tiny_gpt(), **arguments))
        assert said == f"Trainer: {wanted}"


def test_a_run_has_at_least_one_step():
    assert message(ValueError, lambda: new_trainer().run(0)) == "steps must be at least 1, got 0"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"clip": 0}, ValueError, "clip must be > 0 or None, got 0"),
        ({"validation": ([[1] * 9], [[1] * 9])}, ValueError, "9 tokens exceed max_seq_len 8"),
        ({"validation": ([1, 2], [2, 3])}, ValueError, r"must both be \(n, seq\)"),
        ({"validation": ([[1, 2]], [[2, 5]])}, IndexError, "target 5 at .0, 1. is outside 0..4"),
    ],
)
def test_what_would_end_a_run_is_refused_before_it(options, error, message):
    batches = Batches(np.arange(50) % 5, batch_size=4, seq_len=8)
    with pytest.raises(error, match=message):
        Trainer(GPT(5, 8, 1, 2, max_seq_len=8, rng=0), batches, **options)
