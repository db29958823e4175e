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


def test_a_hard_label_is_a_soft_one():
    targets = RNG.integers(5, size=(3, 4))
    found = soft_cross_entropy(LOGITS, np.eye(5)[targets])
    assert found.item() == pytest.approx(functional.cross_entropy(LOGITS, targets).item(), rel=1e-6)


def test_each_is_smallest_at_the_labels_themselves():
    entropy = -(PROBS * np.log(PROBS)).sum(axis=-1).mean()
    assert soft_cross_entropy(SCORES, PROBS).item() == pytest.approx(entropy, rel=1e-5)
    for temperature in (0.5, 1.0, 3.0):
        itself = distillation_loss(SCORES + 7.0, SCORES, temperature)
        assert itself.item() == pytest.approx(0, abs=1e-5)
    assert total_variation_loss(SCORES, PROBS).item() == pytest.approx(0, abs=1e-6)


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


def test_what_does_not_count_may_be_anything():
    odd = PROBS.copy()
    odd[~MASK] = np.nan
    assert np.isfinite(soft_cross_entropy(LOGITS, odd, MASK).item())


@pytest.mark.parametrize("loss", [distillation_loss, soft_cross_entropy, total_variation_loss])
def test_bad_input_is_named(loss):
    with pytest.raises(ValueError, match="do student and teacher have the same vocabulary"):
        loss(np.zeros((2, 5)), np.full((2, 4), 0.25))
    with pytest.raises(ValueError, match=r"mask must be Boolean \(2,\), got int64 \(2,\)"):
        loss(np.zeros((2, 4)), np.full((2, 4), 0.25), mask=np.ones(2, dtype=np.int64))
    with pytest.raises(ValueError, match="leave no position to average over"):
        loss(np.zeros((2, 4)), np.full((2, 4), 0.25), mask=np.zeros(2, dtype=bool))
    if loss is distillation_loss:
        with pytest.raises(ValueError, match="temperature must be above 0 and finite, got 0"):
            loss(np.zeros((2, 4)), np.zeros((2, 4)), temperature=0)
    else:
        with pytest.raises(ValueError, match="soft labels must be probabilities that sum to 1"):
            loss(np.zeros((2, 4)), np.ones((2, 4)))
