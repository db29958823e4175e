"""Soft labels: the losses beside their exact values, their smallest ones and their gradients."""

import numpy as np
import pytest

from tinytorch import Tensor, check_gradients, functional
from tinytorch.training.distillation import (
    distillation_loss,
    soft_cross_entropy,
    total_variation_loss,
)

RNG = np.random.default_rng(0)
LOGITS, SCORES = RNG.normal(size=(2, 3, 4, 5)) * 2
PROBS = functional.softmax(SCORES).data.astype(float)
MASK = np.arange(4) < [[4], [2], [1]]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_gradients(temperature):
    logits = Tensor(LOGITS, requires_grad=True)
    assert check_gradients(lambda z: distillation_loss(z, SCORES, temperature, MASK), logits)
    assert check_gradients(lambda z: soft_cross_entropy(z, PROBS, MASK), logits)
    assert check_gradients(lambda z: total_variation_loss(z, PROBS, MASK), logits)
    distillation_loss(logits, SCORES, 1.0, MASK).backward()
    exact = (functional.softmax(LOGITS).data - PROBS) * MASK[..., None] / MASK.sum()
    assert logits.grad == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_a_token_that_neither_side_writes_might_as_well_not_be_there(temperature):
    forbidden = np.full((3, 4, 1), -np.inf)
    ours, theirs = np.append(LOGITS, forbidden, axis=-1), np.append(SCORES, forbidden, axis=-1)
    probs = np.append(PROBS, np.zeros((3, 4, 1)), axis=-1)
    for loss, short, long in (
        (soft_cross_entropy, (PROBS,), (probs,)),
        (distillation_loss, (SCORES, temperature), (theirs, temperature)),
        (total_variation_loss, (PROBS,), (probs,)),
    ):
        here, there = (Tensor(z, requires_grad=True) for z in (LOGITS, ours))
        wanted, found = loss(here, *short), loss(there, *long)
        wanted.backward()
        found.backward()
        assert found.item() == pytest.approx(wanted.item(), rel=1e-6)
        assert there.grad[..., :5] == pytest.approx(here.grad, abs=1e-7)
        assert (there.grad[..., 5] == 0).all()
