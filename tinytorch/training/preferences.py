"""Tuning a model to preferences: what the best would be, and the losses that go towards it.

A *policy* writes texts with probabilities, the *reference* is what it was before, and each text has
a reward. Wanted is a large expected reward at a small divergence from the reference. Where all
texts can be listed, as arrays of their probabilities and rewards, the best is a formula
(`optimal_policy`), and so is what choosing the best of several texts does (`best_of_n_policy`). For
a model there are losses: `policy_gradient_loss` with a reward that can be computed, `dpo_loss` and
`reward_model_loss` with pairs of texts of which one was preferred.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.arguments import check_sizes
from tinytorch.core.ops import stack
from tinytorch.core.tensor import Tensor

__all__ = ["best_of_n_policy", "dpo_loss", "frontier", "group_advantages", "kl_divergence",
           "optimal_policy", "policy_gradient_loss", "reward_model_loss",
           "sequence_log_probs"]  # fmt: skip

# Where all texts can be listed ------------------------------------------------------------------


def optimal_policy(reference: Any, rewards: Any, beta: float) -> np.ndarray:
    """The policy with the largest expected reward minus `beta` times its divergence.

    Args:
        reference: probabilities of the texts, `(n,)`.
        rewards: their rewards, `(n,)`.
        beta: what a nat of divergence costs; above 0.

    Returns:
        Probabilities `(n,)`, in proportion to `reference * exp(rewards / beta)` (Rafailov et al.,
        2023, equation 4).

    Raises:
        ValueError: `beta` is not above 0.

    Example:
        >>> optimal_policy([0.5, 0.25, 0.25], [0.0, 0.0, 1.0], beta=1 / np.log(4)).round(4)
        array([0.2857, 0.1429, 0.5714])
    """
    if not beta > 0:
        raise ValueError(f"optimal_policy: beta must be above 0, got {beta}")
    scores = np.asarray(rewards, float) / beta
    weights = np.asarray(reference, float) * np.exp(scores - scores.max())
    return weights / weights.sum()


def kl_divergence(policy: Any, reference: Any) -> float:
    """The divergence of a policy from the reference, in nats: the mean of log(policy / reference).

    The mean is over texts of the *policy*; what it never writes does not count.

    Args:
        policy: probabilities `(n,)`.
        reference: probabilities `(n,)`.

    Example:
        >>> round(kl_divergence([1.0, 0.0], [0.25, 0.75]), 4)  # log 4
        1.3863
    """
    policy, reference = np.asarray(policy, float), np.asarray(reference, float)
    written = policy > 0
    with np.errstate(divide="ignore"):
        return float(policy[written] @ np.log(policy[written] / reference[written]))


def frontier(reference: Any, rewards: Any, betas: Any) -> np.ndarray:
    """Divergence and expected reward of the optimum at each `beta`: nothing lies above it.

    Equal rewards may be added up first: it depends only on how probable each reward is.

    Args:
        reference: probabilities `(n,)`.
        rewards: the rewards `(n,)`.
        betas: a number for each point of the curve.

    Returns:
        `(betas, 2)`: divergence in nats, and expected reward.

    Example:
        >>> frontier([0.5, 0.5], [0.0, 1.0], [1e9, 1e-9]).round(4)  # nothing; everything: log 2
        array([[0.    , 0.5   ],
               [0.6931, 1.    ]])
    """
    policies = [optimal_policy(reference, rewards, beta) for beta in betas]
    return np.array([(kl_divergence(p, reference), p @ np.asarray(rewards)) for p in policies])


def best_of_n_policy(reference: Any, rewards: Any, n: int) -> np.ndarray:
    """The policy of who draws `n` texts of the reference and keeps one with the largest reward.

    All drawn ones have a reward of at most r with probability F(r)^n, where F is the share of texts
    up to r. Texts with the same reward keep their proportions. The divergence of this policy is
    at most log n - (n - 1) / n (Beirami et al., 2024); with equal rewards it is less.

    Args:
        reference: probabilities of the texts, `(m,)`.
        rewards: their rewards, `(m,)`.
        n: how many are drawn, at least 1.

    Returns:
        Probabilities `(m,)`.

    Example:
        >>> best_of_n_policy([0.5, 0.25, 0.25], [0.0, 1.0, 1.0], n=2)
        array([0.25 , 0.375, 0.375])
    """
    check_sizes(n=n)
    reference, rewards = np.asarray(reference, float), np.asarray(rewards)
    level = np.unique(rewards, return_inverse=True)[1]
    share = np.bincount(level, reference)  # of each reward, rising
    upto = np.append(0.0, np.minimum(share.cumsum(), 1.0))
    return reference * (np.diff(upto**n) / share)[level]


# For a model ----------------------------------------------------------------------------------


def sequence_log_probs(model: Any, inputs: Any, targets: Any, ignore_index: int = -1) -> Tensor:
    """The log-probability of each row of targets: the sum over its tokens.

    Args:
        model: maps ids `(n, seq)` to logits `(n, seq, vocab)`.
        inputs: ids `(n, seq)`.
        targets: the ids that follow, `(n, seq)`; `ignore_index` after the end of a text.
        ignore_index: see above.

    Returns:
        `(n,)`, with a gradient.

    Example:
        >>> even = lambda ids: Tensor(np.zeros((*ids.shape, 4)))
        >>> sequence_log_probs(even, np.array([[0, 1]]), np.array([[1, -1]]))  # -log 4
        Tensor([-1.3863])
    """
    options: Any = {"ignore_index": ignore_index, "reduction": "none"}
    return -functional.cross_entropy(model(inputs), targets, **options).sum(axis=-1)


def group_advantages(rewards: Any, scale: bool = False) -> np.ndarray:
    """How much better each text was than the others of its group.

    The mean of the *others* is a baseline that a text's own reward does not touch, so the policy
    gradient stays unbiased (Kool et al., 2019).

    Args:
        rewards: `(..., n)`, texts of one prompt along the last axis, at least two.
        scale: subtract the mean of all and divide by the deviation instead, as GRPO does (Shao et
            al., 2024): then a group counts as much whether its rewards differ a little or a lot.

    Raises:
        ValueError: fewer than two texts in a group.

    Example:
        >>> group_advantages([1.0, 0.0, 2.0])
        array([ 0. , -1.5,  1.5])
    """
    rewards = np.asarray(rewards, float)
    n = rewards.shape[-1]
    if n < 2:
        raise ValueError(f"group_advantages: a group has at least 2 texts, got {n}")
    above = rewards - rewards.mean(axis=-1, keepdims=True)
    if scale:
        return above / (rewards.std(axis=-1, ddof=1, keepdims=True) + 1e-4)
    return above * n / (n - 1)


def policy_gradient_loss(log_probs: Any, advantages: Any) -> Tensor:
    """A loss whose gradient is minus that of the expected reward (REINFORCE; Williams, 1992).

    Its value means nothing. For a price on the divergence take `beta * log(policy / reference)` of
    each text off its reward, as a number.

    Args:
        log_probs: of the policy for texts that it has drawn itself, `(n,)`, with a gradient.
        advantages: how good each was, `(n,)`: rewards minus a baseline, see `group_advantages`.

    Raises:
        ValueError: not one advantage for each text.

    Example:
        >>> log_probs = Tensor([-1.0, -2.0], requires_grad=True)
        >>> policy_gradient_loss(log_probs, [1.0, -1.0]).backward()
        >>> log_probs.grad  # a step down makes the first text more likely, the second less
        array([-0.5,  0.5], dtype=float32)
    """
    log_probs, advantages = _same("policy_gradient_loss", log_probs, advantages)
    return -(log_probs * advantages.detach()).mean()


def dpo_loss(
    chosen: Any, rejected: Any, reference_chosen: Any, reference_rejected: Any, beta: float
) -> Tensor:
    """Direct preference optimisation: fit the preferences with a policy in the reward's place.

    The optimum has log(policy / reference) = reward / beta, up to a constant that cancels in a
    pair. So `beta * log(policy / reference)` is taken for the reward, and the loss is that of a
    reward model (Rafailov et al., 2023, equation 7).

    Args:
        chosen: log-probabilities of the policy for the preferred texts, `(n,)`, with a gradient.
        rejected: for the others, `(n,)`.
        reference_chosen: of the reference, `(n,)`; no gradient flows into it.
        reference_rejected: of the reference, `(n,)`.
        beta: what a nat of divergence costs.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> dpo_loss([-1.0], [-3.0], [-2.0], [-2.0], beta=0.5)  # log(1 + exp(-0.5 * 2))
        Tensor(0.3133)
    """
    chosen, reference_chosen = _same("dpo_loss", chosen, reference_chosen)
    rejected, reference_rejected = _same("dpo_loss", rejected, reference_rejected)
    return reward_model_loss(
        beta * (chosen - reference_chosen.detach()),
        beta * (rejected - reference_rejected.detach()),
    )


def reward_model_loss(chosen: Any, rejected: Any) -> Tensor:
    """The surprise at the preferences, if they follow Bradley and Terry (1952).

    Text a is preferred to b with the probability sigmoid(reward of a - reward of b).

    Args:
        chosen: what the reward model gives the preferred texts, `(n,)`.
        rejected: and the others, `(n,)`.

    Returns:
        The mean of `-log sigmoid(chosen - rejected)`, in nats; log 2 for who cannot tell.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> reward_model_loss([2.0, 0.0], [2.0, 0.0])
        Tensor(0.6931)
    """
    chosen, rejected = _same("reward_model_loss", chosen, rejected)
    margin = chosen - rejected
    logits = stack(margin, margin.detach() * 0, axis=-1)  # the softmax of (x, 0) is a sigmoid
    return functional.cross_entropy(logits, np.zeros(margin.shape, dtype=int))


def _same(name: str, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    x, y = (value if isinstance(value, Tensor) else Tensor(value) for value in (x, y))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"{name}: there must be one number for each text, got {x.shape}, {y.shape}"
        )
    return x, y
