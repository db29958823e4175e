"""The losses of preferences beside those of trl, whose formulas are written out in PyTorch here.

`DPOTrainer` (loss type "sigmoid"), `RewardTrainer`, and the advantages of `RLOOTrainer`, as in trl
1.16.0, without what they have besides (label smoothing, clipped ratios).
The library itself would bring twenty packages along.
"""

import numpy as np
import pytest
import torch
from compare import array

from tinytorch import Tensor
from tinytorch.training.preferences import (
    dpo_loss,
    group_advantages,
    policy_gradient_loss,
    reward_model_loss,
    sequence_log_probs,
)


def both(*shape, seed, shift=0.0):
    """The same numbers here and there, with a gradient."""
    numbers = array(*shape, seed=seed).astype(float) * 5 + shift
    return Tensor(numbers, requires_grad=True), torch.tensor(numbers, requires_grad=True)


def assert_same(ours, theirs, *pairs):
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-6)
    ours.backward()
    theirs.backward()
    for here, there in pairs:
        np.testing.assert_allclose(here.grad, there.grad.numpy(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("beta", [0.05, 0.5, 2.0])
def test_dpo(beta):
    (won, won_), (lost, lost_) = (both(9, seed=s, shift=-30) for s in (1, 2))
    (old, old_), (older, older_) = (both(9, seed=s, shift=-30) for s in (3, 4))
    ratios = (won_ - lost_) - (old_.detach() - older_.detach())
    theirs = -torch.nn.functional.logsigmoid(beta * ratios).mean()
    assert_same(dpo_loss(won, lost, old, older, beta), theirs, (won, won_), (lost, lost_))


def test_reward_model():
    (won, won_), (lost, lost_) = (both(9, seed=s) for s in (5, 6))
    theirs = -torch.nn.functional.logsigmoid(won_ - lost_).mean()
    assert_same(reward_model_loss(won, lost), theirs, (won, won_), (lost, lost_))


def test_leave_one_out():
    rewards = array(4, 6, seed=7).astype(float)
    there = torch.tensor(rewards)
    baseline = (there.sum(1, keepdim=True) - there) / (6 - 1)
    np.testing.assert_allclose(group_advantages(rewards), (there - baseline).numpy(), atol=1e-12)


def test_policy_gradient_of_token_sums():
    (logits, logits_), targets = both(3, 5, 11, seed=9), np.arange(15).reshape(3, 5) % 11
    kept = np.arange(5) < [[5], [2], [4]]
    masked = np.where(kept, targets, -1)
    advantages = np.array([0.5, -2.0, 1.5])
    here = sequence_log_probs(lambda ids: logits, None, masked)
    at_token = torch.gather(torch.log_softmax(logits_, -1), 2, torch.tensor(targets)[..., None])
    there = (at_token[..., 0] * torch.tensor(kept)).sum(1)
    np.testing.assert_allclose(here.data, there.detach().numpy(), atol=1e-6)
    theirs = -(there * torch.tensor(advantages)).mean()
    assert_same(policy_gradient_loss(here, advantages), theirs, (logits, logits_))
