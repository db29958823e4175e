"""Soft labels: the losses beside their exact values, their smallest ones and their gradients."""

import numpy as np
import pytest

from tinytorch import Tensor, check_gradients, functional
from tinytorch.models.drafts import acceptance_rate
from tinytorch.training.distillation import (
    distillation_loss,
    soft_cross_entropy,
    total_variation_loss,
)

RNG = np.random.default_rng(0)
LOGITS, SCORES = RNG.normal(size=(2, 3, 4, 5)) * 2
PROBS = functional.softmax(SCORES).data.astype(float)
MASK = np.arange(4) < [[4], [2], [1]]


def mean_over(values, mask=None):
    return values.mean() if mask is None else values[mask].mean()


@pytest.mark.parametrize("mask", [None, MASK])
def test_losses_are_means_over_the_positions_that_count(mask):
    logs = functional.log_softmax(LOGITS).data.astype(float)
    cross = -(PROBS * logs).sum(axis=-1)
    entropy = -(PROBS * np.log(PROBS)).sum(axis=-1)
    rejected = 1 - acceptance_rate(PROBS, np.exp(logs))
    for found, expected in (
        (soft_cross_entropy(LOGITS, PROBS, mask), cross),
        (distillation_loss(LOGITS, SCORES, mask=mask), cross - entropy),
        (total_variation_loss(LOGITS, PROBS, mask), rejected),
    ):
        assert found.item() == pytest.approx(mean_over(expected, mask), rel=1e-5)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_gradients(temperature):
    logits = Tensor(LOGITS, requires_grad=True)
    check_gradients(lambda z: distillation_loss(z, SCORES, temperature, MASK), logits)
    check_gradients(lambda z: soft_cross_entropy(z, PROBS, MASK), logits)
    check_gradients(lambda z: total_variation_loss(z, PROBS, MASK), logits)
    distillation_loss(logits, SCORES, 1.0, MASK).backward()
    exact = (functional.softmax(LOGITS).data - PROBS) * MASK[..., None] / MASK.sum()
    assert logits.grad == pytest.approx(exact, abs=1e-6)


def test_a_high_temperature_compares_the_scores():
    """The gradient goes towards that of half the squared difference over n (section 2.1)."""
    logits = Tensor(LOGITS[:1, :1], requires_grad=True)
    distillation_loss(logits, SCORES[:1, :1], 1e3).backward()
    apart = LOGITS[0, 0] - SCORES[0, 0]
    assert logits.grad[0, 0] == pytest.approx((apart - apart.mean()) / 5, abs=5e-3)


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


def test_a_student_is_taught_that_a_token_is_forbidden():
    student = Tensor([[0.0, 0.0, 0.0]], requires_grad=True)
    loss = distillation_loss(student, [[1.0, 0.0, -np.inf]])
    loss.backward()
    p = np.array([np.e, 1, 0]) / (np.e + 1)
    assert loss.item() == pytest.approx(np.log(3) + (p[:2] * np.log(p[:2])).sum(), rel=1e-6)
    assert student.grad[0] == pytest.approx(1 / 3 - p, abs=1e-6)


@pytest.mark.parametrize("loss", [distillation_loss, soft_cross_entropy, total_variation_loss])
def test_bad_input_is_named(loss):
    with pytest.raises(ValueError, match="do student and teacher have the same vocabulary"):
        loss(np.zeros((2, 5)), np.full((2, 4), 0.25))
    with pytest.raises(ValueError, match=r"mask must be Boolean \(2,\), got int64 \(2,\)"):
        loss(np.zeros((2, 4)), np.full((2, 4), 0.25), mask=np.ones(2, dtype=np.int64))
    with pytest.raises(ValueError, match="leave no position to average over"):
        loss(np.zeros((2, 4)), np.full((2, 4), 0.25), mask=np.zeros(2, dtype=bool))
    if loss is distillation_loss:
        with pytest.raises(ValueError, match="temperature must be in 1e-6"):
            loss(np.zeros((2, 4)), np.zeros((2, 4)), temperature=0)
    else:
        with pytest.raises(ValueError, match="soft labels must be probabilities that sum to 1"):
            loss(np.zeros((2, 4)), np.ones((2, 4)))
