"""A text whose best possible loss is known, and short training runs on it."""

import math

import numpy as np
from tiny_models import tiny_gpt

from tinytorch import SGD, AdamW, Batches, CosineSchedule, Trainer
from tinytorch.core.optimizers import only_matrices
from tinytorch.text.batches import windows

__all__ = ["FLOOR", "OPTIMISERS", "bits", "clock", "held_out", "losses", "new_trainer"]

FLOOR = math.log(2)  # nats a token

OPTIMISERS = {
    "AdamW": lambda params: AdamW(params, betas=(0.9, 0.95), decay=only_matrices),
    "SGD": lambda params: SGD(params, lr=0.1, momentum=0.9),
}


def clock(length=600, seed=0):
    """A hand that moves on by one or by two hours, out of eleven: one bit a token."""
    return np.cumsum(np.random.default_rng(seed).integers(1, 3, size=length)) % 11


def held_out(count=3):
    return windows(clock(seed=1), seq_len=8, limit=count)


def new_trainer(
    *, dropout=0.2, model=(), optimizer="AdamW", text=None, batch_size=4, seed=5, **options
):
    """A small GPT, made with the options in `model`, and everything a run may have."""
    gpt = tiny_gpt(max_seq_len=8, dropout=dropout, rng=seed, **dict(model))
    return Trainer(
        gpt,
        Batches(clock() if text is None else text, batch_size, seq_len=8, seed=2),
        optimizer=OPTIMISERS[optimizer](gpt.parameters()),
        **{
            "schedule": CosineSchedule(0.02, warmup_steps=3, total_steps=12),
            "clip": 0.5,
            "progress": False,
            **options,
        },
    )


def bits(trainer):
    """Every number that a run arrives at, as bytes."""
    states = (trainer.model.state_dict(), trainer.optimizer.state_dict())
    return [{name: array.tobytes() for name, array in state.items()} for state in states]


def losses(trainer):
    return [record["loss"] for record in trainer.history]
