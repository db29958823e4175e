"""Tuning a model to preferences: what the best would be, and the losses that go towards it.

A *policy* writes texts with probabilities, the *reference* is what it was before, and each text has
a reward. Wanted is a large expected reward at a small divergence from the reference. Where all
texts can be listed, as arrays of their probabilities and rewards, the best is a formula
(`optimal_policy`), and so is what choosing the best of several texts does (`best_of_n_policy`). For
a model there are losses: `policy_gradient_loss` with a reward that can be computed, `dpo_loss` and
`reward_model_loss` with pairs of texts of which one was preferred.

Lists of all texts are computed in float64. A loss is float32, or float64 if a tensor among its
operands is; integers and half precision count as float32.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.activations import log_sigmoid
from tinytorch.core.arguments import check_distributions, check_sizes
from tinytorch.core.ops import mul
from tinytorch.core.primitive import as_operand, floats
from tinytorch.core.softmax import softmax_array
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import DType, Model, TensorLike, TokenIds

__all__ = ["best_of_n_policy", "dpo_loss", "frontier", "group_advantages", "kl_divergence",
           "optimal_policy", "policy_gradient_loss", "reward_model_loss",
           "sequence_log_probs"]  # fmt: skip

# Where all texts can be listed ------------------------------------------------------------------


def optimal_policy(reference: TensorLike, rewards: TensorLike, beta: float) -> np.ndarray:
    """The policy with the largest expected reward minus `beta` times its divergence.

    Args:
        reference: probabilities of the texts, `(n,)`.
        rewards: their rewards, `(n,)`; -inf forbids a text.
        beta: what a nat of divergence costs; above 0.

    Returns:
        Probabilities `(n,)`, in proportion to `reference * exp(rewards / beta)` (Rafailov et al.,
        2023, equation 4); 0 for what the reference never writes, whatever its reward.

    Raises:
        ValueError: an argument is out of range, a reward is missing, or all texts are forbidden.

    Example:
        >>> optimal_policy([0.5, 0.25, 0.25], [0.0, 0.0, 1.0], beta=1 / np.log(4)).round(4)
        array([0.2857, 0.1429, 0.5714])
    """
    if not beta > 0:
        raise ValueError(f"optimal_policy: beta must be above 0, got {beta}")
    reference, rewards = _listed("optimal_policy", reference, rewards)
    allowed = (reference > 0) & (rewards > -np.inf)
    largest = rewards[allowed].max(initial=-np.inf)
    if not np.isfinite(largest):
        raise ValueError(f"optimal_policy: the largest reward must be finite, got {largest}")
    scores = np.log(reference[allowed])
    with np.errstate(over="ignore"):  # a tiny beta: all but the best get -inf
        scores += (rewards[allowed] - largest) / beta
    policy = np.zeros(len(reference))
    policy[allowed] = softmax_array(scores, -1)
    return policy


def kl_divergence(policy: TensorLike, reference: TensorLike) -> float:
    """The divergence of a policy from the reference, in nats: the mean of log(policy / reference).

    The mean is over texts of the *policy*; what it never writes does not count, and what
    only it writes makes the divergence infinite.

    Args:
        policy: probabilities `(n,)`.
        reference: probabilities `(n,)`.

    Raises:
        ValueError: one of the two holds no probabilities that sum to 1, or their lengths differ.

    Example:
        >>> round(kl_divergence([1.0, 0.0], [0.25, 0.75]), 4)  # log 4
        1.3863
    """
    p, q = _listed("kl_divergence", policy, reference)
    check_distributions("kl_divergence: policy", p)
    check_distributions("kl_divergence: reference", q)
    p, q = p / p.sum(), q / q.sum()  # so that the divergence is not below 0
    p, q = p[p > 0], q[p > 0]
    with np.errstate(divide="ignore"):
        return float(max(0.0, p @ (np.log(p) - np.log(q))))


def frontier(reference: TensorLike, rewards: TensorLike, betas: Iterable[float]) -> np.ndarray:
    """Divergence and expected reward of the optimum at each `beta`: nothing lies above it.

    Equal rewards may be added up first: it depends only on how probable each reward is.

    Args:
        reference: probabilities `(n,)`.
        rewards: the rewards `(n,)`.
        betas: a number for each point of the curve.

    Returns:
        `(betas, 2)`: divergence in nats, and expected reward.

    Example:
        >>> frontier([0.5, 0.5], [0.0, 1.0], [1e9, 1e-9]).round(4)  # nothing; all: log 2
        array([[0.    , 0.5   ],
               [0.6931, 1.    ]])
    """
    rewards, policies = np.asarray(rewards), [optimal_policy(reference, rewards, b) for b in betas]
    points = [(kl_divergence(p, reference), p[p > 0] @ rewards[p > 0]) for p in policies]
    return np.array(points, float).reshape(-1, 2)


def best_of_n_policy(reference: TensorLike, rewards: TensorLike, n: int) -> np.ndarray:
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

    Raises:
        ValueError: `n` is below 1, a probability is out of range, or a reward is missing or nan.

    Example:
        >>> best_of_n_policy([0.5, 0.25, 0.25], [0.0, 1.0, 1.0], n=2)
        array([0.25 , 0.375, 0.375])
    """
    check_sizes(n=n)
    reference, rewards = _listed("best_of_n_policy", reference, rewards)
    found, written = np.zeros(len(reference)), reference > 0
    level = np.unique(rewards[written], return_inverse=True)[1]
    share = np.bincount(level, reference[written])  # of each reward, rising
    upto = share.cumsum()
    with np.errstate(divide="ignore"):  # F^n - (F - share)^n, however small the share
        below = n * np.log1p(-np.minimum(share / upto, 1.0))
    won = (upto / upto[-1]) ** float(n) * -np.expm1(below)
    found[written] = reference[written] * (won / share)[level]
    return found


# For a model ----------------------------------------------------------------------------------


def sequence_log_probs(
    model: Model, inputs: np.ndarray, targets: TokenIds, ignore_index: int = -1
) -> Tensor:
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


def group_advantages(rewards: TensorLike) -> np.ndarray:
    """How much better each text was than the others of its group.

    The mean of the *others* is a baseline that a text's own reward does not touch, so the policy
    gradient stays unbiased (Kool et al., 2019).

    Args:
        rewards: `(..., n)`, texts of one prompt along the last axis, at least two.

    Raises:
        ValueError: fewer than two texts in a group, or a reward is not finite.

    Example:
        >>> group_advantages([1.0, 0.0, 2.0])
        array([ 0. , -1.5,  1.5])
    """
    rewards = np.asarray(rewards, float)
    n = rewards.shape[-1] if rewards.ndim else 1
    if n < 2:
        raise ValueError(f"group_advantages: a group has at least 2 texts, got {n}")
    if not np.isfinite(rewards).all():
        raise ValueError("group_advantages: a reward is nan or infinite; it has no advantage")
    apart = rewards - rewards[..., :1]  # equal ones have a mean of exactly 0
    above = apart - apart.mean(axis=-1, keepdims=True)
    return above * n / (n - 1)


def policy_gradient_loss(log_probs: TensorLike, advantages: TensorLike) -> Tensor:
    """A loss whose gradient is minus that of the expected reward (REINFORCE; Williams, 1992).

    Its value means nothing. For a price on the divergence take `beta * log(policy / reference)` of
    each text off its reward, as a number.

    Args:
        log_probs: the policy's, for texts that it has drawn itself, `(n,)`, with a gradient.
        advantages: how good each was, `(n,)`: rewards minus a baseline, see `group_advantages`.

    Raises:
        ValueError: not one advantage for each text, no text, or a number is not finite.

    Example:
        >>> log_probs = Tensor([-1.0, -2.0], requires_grad=True)
        >>> policy_gradient_loss(log_probs, [1.0, -1.0]).backward()
        >>> log_probs.grad  # a step down makes the first text more likely, the second less
        array([-0.5,  0.5], dtype=float32)
    """
    log_probs, advantages = _same("policy_gradient_loss", log_probs, advantages)
    if not np.isfinite([as_operand(log_probs), as_operand(advantages)]).all():
        what = "a log-probability or an advantage is nan or infinite"
        raise ValueError(f"policy_gradient_loss: {what}; can the policy have drawn these texts?")
    advantages = _number(advantages, log_probs.dtype)
    return -mul(log_probs, advantages).mean()


def dpo_loss(
    chosen: TensorLike,
    rejected: TensorLike,
    reference_chosen: TensorLike,
    reference_rejected: TensorLike,
    beta: float,
) -> Tensor:
    """Direct preference optimisation: fit the preferences with a policy in the reward's place.

    The optimum has log(policy / reference) = reward / beta, up to a constant that cancels in a
    pair. So `beta * log(policy / reference)` is taken for the reward, and the loss is that of a
    reward model (Rafailov et al., 2023, equation 7).

    Args:
        chosen: log-probabilities of the policy for the preferred texts, `(n,)`, with a gradient.
        rejected: those of the others, `(n,)`.
        reference_chosen: those of the reference, `(n,)`; no gradient flows into it.
        reference_rejected: those of the reference, `(n,)`.
        beta: what a nat of divergence costs; above 0.

    Raises:
        ValueError: the shapes differ, there is no pair, `beta` is out of range, or a margin is nan.

    Example:
        >>> dpo_loss([-1.0], [-3.0], [-2.0], [-2.0], beta=0.5)  # log(1 + exp(-0.5 * 2))
        Tensor(0.3133)
    """
    if not 0 < beta < np.inf:
        raise ValueError(f"dpo_loss: beta must be above 0 and finite, got {beta}")
    given = _same("dpo_loss", chosen, rejected, reference_chosen, reference_rejected)
    chosen, rejected, before, rejected_before = *given[:2], *map(_number, given[2:])
    with np.errstate(invalid="ignore"):
        margin = (chosen - rejected) - (before - rejected_before)
    return _surprise("dpo_loss", margin, beta)


def reward_model_loss(chosen: TensorLike, rejected: TensorLike) -> Tensor:
    """The surprise at the preferences, if they follow Bradley and Terry (1952).

    Text a is preferred to b with the probability sigmoid(reward of a - reward of b).

    Args:
        chosen: what the reward model gives the preferred texts, `(n,)`.
        rejected: and the others, `(n,)`.

    Returns:
        The mean of `-log sigmoid(chosen - rejected)`, in nats; log 2 for who cannot tell.

    Raises:
        ValueError: the shapes differ, there is no pair, or a difference is nan.

    Example:
        >>> reward_model_loss([2.0, 0.0], [2.0, 0.0])
        Tensor(0.6931)
    """
    chosen, rejected = _same("reward_model_loss", chosen, rejected)
    with np.errstate(invalid="ignore"):
        margin = chosen - rejected
    return _surprise("reward_model_loss", margin)


# Helpers -------------------------------------------------------------------------------------


def _surprise(name: str, margin: TensorLike, beta: float = 1.0) -> Tensor:
    """The mean of `-log sigmoid(beta * margin)`."""
    if np.isnan(as_operand(margin)).any():
        cause = "infinity minus infinity, or a number was nan"
        raise ValueError(f"{name}: the margin of a pair is nan: {cause}")
    return 0 - log_sigmoid(margin, scale=beta).mean()  # not -0


def _same(name: str, *values: TensorLike) -> tuple[Tensor | np.ndarray, ...]:
    """Operands of one shape `(n,)`, all of them floats of 32 bits or more."""
    found = tuple(map(_wide, values))
    shapes = [x.shape for x in found]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or 0 in shapes[0]:
        got = ", ".join(map(str, shapes))
        raise ValueError(f"{name}: there must be one number for each text, got {got}")
    return found


def _wide(x: TensorLike) -> Tensor | np.ndarray:
    if not isinstance(x, Tensor) or x.dtype.kind != "f":
        return floats(as_operand(x))
    return x if x.dtype.itemsize > 2 else x.astype(np.float32)


def _number(x: TensorLike, dtype: DType = None) -> Tensor | np.ndarray:
    """An operand without a gradient; an array in the dtype, if one is given."""
    return x.detach() if isinstance(x, Tensor) else np.asarray(x, dtype)


def _listed(name: str, reference: TensorLike, rewards: TensorLike) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities and a number for each; what has probability 0 may have any number."""
    reference, rewards = np.asarray(reference, float), np.asarray(rewards, float)
    if reference.shape != rewards.shape or reference.ndim != 1 or not reference.size:
        got = f"got {reference.shape}, {rewards.shape}"
        raise ValueError(f"{name}: there must be one number for each text, {got}")
    if not ((reference >= 0).all() and 0 < reference.sum() < np.inf):
        what = "probabilities must be at least 0, finite and not all 0"
        raise ValueError(f"{name}: {what}, got {reference.min()} to {reference.max()}")
    if np.isnan(rewards[reference > 0]).any():
        raise ValueError(f"{name}: a number is nan for a text that can be written")
    return reference, rewards
