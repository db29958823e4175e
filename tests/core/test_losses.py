"""Losses as layers."""

import numpy as np
import pytest

from tinytorch import CrossEntropyLoss, Tensor, check_gradients, functional


def test_cross_entropy_by_hand():
    # softmax of (0, ln 3) is (1/4, 3/4)
    logits = Tensor([[0.0, np.log(3.0)], [0.0, np.log(3.0)]])
    loss = CrossEntropyLoss()(logits, Tensor([0, 1]))
    assert loss.item() == pytest.approx((np.log(4) + np.log(4 / 3)) / 2)


LOGITS = np.random.default_rng(1).normal(size=(2, 3, 4))
TARGETS = np.array([[0, 3, -100], [2, -100, 1]])
WEIGHT = np.array([0.5, 2.0, 0.0, 4.0])


def by_hand(weight):
    """The loss of each position and what it counts."""
    probs = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)
    labels = np.maximum(TARGETS, 0)
    nats = -np.log(np.take_along_axis(probs, labels[..., None], -1)[..., 0])
    return nats, np.array(weight)[labels] * (TARGETS >= 0)


def test_weighted_mean_divides_by_the_sum_of_used_weights():
    nats, counts = by_hand(WEIGHT)
    logits = Tensor(LOGITS, dtype=np.float64)
    loss = CrossEntropyLoss(WEIGHT, -100)(logits, TARGETS)
    assert loss.item() == pytest.approx((nats * counts).sum() / counts.sum(), rel=1e-12)
    total = CrossEntropyLoss(WEIGHT, -100, "sum")(logits, TARGETS)
    assert total.item() == pytest.approx((nats * counts).sum(), rel=1e-12)
    each = CrossEntropyLoss(WEIGHT, -100, "none")(logits, TARGETS)
    np.testing.assert_allclose(each.data, nats * counts, rtol=1e-12)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_gradients_of_every_option_match_finite_differences(reduction, weight):
    loss = CrossEntropyLoss(weight, -100, reduction)
    upstream = np.random.default_rng(2).normal(size=(2, 3))
    assert check_gradients(lambda x: (loss(x, TARGETS) * upstream).sum(), LOGITS, tol=1e-8)


def refused(error, **options):
    targets = options.pop("targets", TARGETS)
    with pytest.raises(error) as caught:
        functional.cross_entropy(LOGITS, targets, **options)
    return str(caught.value)


def test_invalid_options_are_refused():
    assert refused(ValueError, reduction="average") == (
        "cross_entropy: reduction must be 'mean', 'sum' or 'none', got 'average'"
    )
    with pytest.raises(ValueError, match="CrossEntropyLoss: reduction must be"):
        CrossEntropyLoss(reduction=None)
    assert refused(ValueError, ignore_index=-100, weight=[1.0, 2.0]) == (
        "cross_entropy: weight (2,) must have one number for each of the 4 classes"
    )
    for bad in (-1.0, np.nan, np.inf):
        assert "weights must be finite and >= 0" in refused(
            ValueError, ignore_index=-100, weight=[1.0, 1.0, bad, 1.0]
        )
    assert "'float' object cannot" in refused(TypeError, ignore_index=1.5)


def test_mean_over_nothing_is_refused():
    everything = np.full((2, 3), -100)
    assert refused(ValueError, targets=everything, ignore_index=-100) == (
        "cross_entropy: logits (2, 3, 4) leave no position to average over"
    )
    assert "no position to average over" in refused(
        ValueError, targets=np.full((2, 3), 2), weight=WEIGHT
    )
    total = functional.cross_entropy(LOGITS, everything, ignore_index=-100, reduction="sum")
    assert total.item() == 0


def test_target_outside_the_classes_is_named_with_its_position():
    assert refused(IndexError) == (
        "target -100 at (0, 2) is outside 0..3; there are 4 classes; "
        "ignore_index= names a target that stands for none"
    )
    assert "target 4 at (1, 0)" in refused(
        IndexError, targets=np.array([[0, 3, -100], [4, -100, 1]]), ignore_index=-100
    )
