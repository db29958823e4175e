"""The losses of distillation beside those of PyTorch."""

import numpy as np
import pytest
import torch
from compare import array
from torch.nn import functional as F

from tinytorch import Tensor
from tinytorch.training.distillation import (
    distillation_loss,
    soft_cross_entropy,
    total_variation_loss,
)


def both(*shape, seed):
    """The same numbers here and there, with a gradient."""
    numbers = array(*shape, seed=seed).astype(float) * 3
    return Tensor(numbers, requires_grad=True), torch.tensor(numbers, requires_grad=True)


def assert_same(ours, theirs, here, there):
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-6)
    ours.backward()
    theirs.backward()
    np.testing.assert_allclose(here.grad, there.grad.numpy(), atol=1e-6, rtol=0)


def test_soft_cross_entropy():
    (here, there), scores = both(6, 9, seed=1), torch.tensor(array(6, 9, seed=2).astype(float))
    probs = scores.softmax(-1)
    assert_same(soft_cross_entropy(here, probs.numpy()), F.cross_entropy(there, probs), here, there)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_distillation(temperature):
    (here, there), scores = both(6, 9, seed=3), array(6, 9, seed=4).astype(float)
    student = F.log_softmax(there / temperature, dim=-1)
    teacher = F.softmax(torch.tensor(scores) / temperature, dim=-1)
    theirs = F.kl_div(student, teacher, reduction="batchmean") * temperature**2
    assert_same(distillation_loss(here, scores, temperature), theirs, here, there)


def test_total_variation():
    (here, there), scores = both(6, 9, seed=5), torch.tensor(array(6, 9, seed=6).astype(float))
    probs = scores.softmax(-1)
    theirs = ((there.softmax(-1) - probs).abs().sum(-1) / 2).mean()
    assert_same(total_variation_loss(here, probs.numpy()), theirs, here, there)
