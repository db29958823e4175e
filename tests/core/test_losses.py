"""Losses as layers."""

import numpy as np
import pytest

from tinytorch import CrossEntropyLoss, MSELoss, Tensor, check_gradients


def test_cross_entropy_by_hand():
    # softmax of (0, ln 3) is (1/4, 3/4)
    logits = Tensor([[0.0, np.log(3.0)], [0.0, np.log(3.0)]])
    loss = CrossEntropyLoss()(logits, Tensor([0, 1]))
    assert loss.item() == pytest.approx((np.log(4) + np.log(4 / 3)) / 2)


def test_mean_squared_error_by_hand():
    assert MSELoss()(Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 4.0, 6.0])).item() == pytest.approx(
        13 / 3
    )


def test_loss_gradients_by_finite_differences():
    rng = np.random.default_rng(0)
    logits, targets = rng.normal(size=(2, 3, 4)), rng.integers(0, 4, size=(2, 3))
    assert check_gradients(CrossEntropyLoss(), logits, targets, tol=1e-8)
    assert check_gradients(MSELoss(), logits, rng.normal(size=(2, 3, 4)), tol=1e-8)


def test_losses_learn_nothing():
    assert CrossEntropyLoss().parameters() == MSELoss().parameters() == []
