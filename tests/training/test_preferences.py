"""Preferences: the optimum against other policies, the losses against their exact gradients."""

from itertools import product

import numpy as np
import pytest
from tiny_models import stirred, tiny_gpt

from tinytorch import Tensor, check_gradients, functional
from tinytorch.training import preferences
from tinytorch.training.preferences import (
    best_of_n_policy,
    dpo_loss,
    frontier,
    group_advantages,
    kl_divergence,
    optimal_policy,
    policy_gradient_loss,
    reward_model_loss,
    sequence_log_probs,
)

RNG = np.random.default_rng(0)
REFERENCE = RNG.dirichlet(np.ones(7))
REWARDS = np.array([1.0, 0.0, 2.0, 2.0, -1.0, 0.0, 0.5])


def objective(policy, beta):
    return policy @ REWARDS - beta * kl_divergence(policy, REFERENCE)


# Where all texts can be listed ------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.1, 1.0, 10.0])
def test_no_policy_is_above_the_optimum_and_the_rest_is_a_divergence(beta):
    best = optimal_policy(REFERENCE, REWARDS, beta)
    log_z = np.log(REFERENCE @ np.exp(REWARDS / beta))
    assert objective(best, beta) == pytest.approx(beta * log_z)
    for other in RNG.dirichlet(np.full(7, 0.5), size=200):
        short = beta * kl_divergence(other, best)
        assert objective(other, beta) == pytest.approx(beta * log_z - short)
        assert short >= 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_best_of_n_is_that_of_all_draws_listed(n):
    expected = np.zeros(7)
    for drawn in product(range(7), repeat=n):
        kept = [i for i in drawn if REWARDS[i] == max(REWARDS[j] for j in drawn)]
        for i in kept:  # one of the equals
            expected[i] += REFERENCE[list(drawn)].prod() / len(kept)
    found = best_of_n_policy(REFERENCE, REWARDS, n)
    assert found == pytest.approx(expected)
    assert kl_divergence(found, REFERENCE) <= np.log(n) - (n - 1) / n + 1e-12


def test_the_bound_is_approached_where_no_text_is_drawn_twice():
    many, n = np.full(20_000, 1 / 20_000), 8
    found = kl_divergence(best_of_n_policy(many, np.arange(20_000), n), many)
    assert found == pytest.approx(np.log(n) - (n - 1) / n, abs=1e-3)


def test_the_frontier_needs_only_how_probable_each_reward_is():
    values, level = np.unique(REWARDS, return_inverse=True)
    betas = (0.2, 1.0, 5.0)
    merged = frontier(np.bincount(level, REFERENCE), values, betas)
    assert frontier(REFERENCE, REWARDS, betas) == pytest.approx(merged)
    assert np.diff(merged, axis=0).max() < 0  # the larger beta, the less of both
    close = frontier(REFERENCE, REWARDS, [1.0001, 0.9999])
    slope = np.diff(close[:, 1]) / np.diff(close[:, 0])
    assert slope == pytest.approx(1.0, abs=1e-3)  # a nat more is worth beta


# The losses -------------------------------------------------------------------------------------


def test_log_probs_are_sums_over_the_tokens_that_count():
    model = stirred(tiny_gpt())
    ids = np.random.default_rng(1).integers(model.vocab_size, size=(3, 7))
    targets = np.where(np.arange(6) < [[6], [2], [4]], ids[:, 1:], -1)
    logs = functional.log_softmax(model(ids[:, :-1])).data
    expected = [
        sum(logs[row, at, target] for at, target in enumerate(targets[row]) if target >= 0)
        for row in range(3)
    ]
    assert sequence_log_probs(model, ids[:, :-1], targets).data == pytest.approx(expected, rel=1e-5)


def test_the_policy_gradient_is_that_of_the_expected_reward():
    """The mean over all groups that can be drawn, each with its probability."""
    logits = RNG.normal(size=3)
    policy = np.exp(logits) / np.exp(logits).sum()
    rewards, expected = np.array([1.0, -2.0, 0.5]), np.zeros(3)
    for drawn in map(list, product(range(3), repeat=2)):
        weights = Tensor(logits, requires_grad=True)
        logs = functional.log_softmax(weights)[np.array(drawn)]
        policy_gradient_loss(logs, group_advantages(rewards[drawn])).backward()
        expected -= policy[drawn].prod() * weights.grad
    assert expected == pytest.approx(policy * (rewards - policy @ rewards), rel=1e-5)


def test_advantages_are_above_the_mean_of_the_others():
    rewards = RNG.normal(size=(4, 5))
    found = group_advantages(rewards)
    for row, values in enumerate(rewards):
        others = [np.delete(values, i).mean() for i in range(5)]
        assert found[row] == pytest.approx(values - others)


def test_advantages_are_numbers_to_the_gradient():
    logs = Tensor(np.array([-1.0, -2.0]), requires_grad=True)
    policy_gradient_loss(logs, logs * 3).backward()
    assert logs.grad == pytest.approx([1.5, 3.0])


def test_the_losses_of_pairs_have_gradients_for_the_policy_alone():
    texts = [Tensor(RNG.normal(size=5) - 20, requires_grad=True) for _ in range(4)]
    assert check_gradients(lambda a, b: dpo_loss(a, b, *texts[2:], 0.7), *texts[:2])
    assert check_gradients(reward_model_loss, *texts[:2])
    dpo_loss(*texts, beta=0.7).backward()
    assert [text.grad is None for text in texts] == [False, False, True, True]


def test_the_optimum_is_where_dpo_has_no_slope():
    """With all pairs, each won as Bradley and Terry say."""
    best, beta = optimal_policy(REFERENCE, REWARDS, 0.5), 0.5
    logits = Tensor(np.log(best), requires_grad=True)
    slope = np.zeros(7)
    for a, b in product(range(7), repeat=2):
        logits.grad = None
        logs = functional.log_softmax(logits)
        given = [np.log(REFERENCE[[i]]) for i in (a, b)]
        dpo_loss(logs[np.array([a])], logs[np.array([b])], *given, beta).backward()
        wins = 1 / (1 + np.exp(REWARDS[b] - REWARDS[a]))
        slope += REFERENCE[a] * REFERENCE[b] * wins * logits.grad
    assert slope == pytest.approx(np.zeros(7), abs=1e-6)


def test_all_names_are_tested():
    assert set(preferences.__all__) <= set(globals())
