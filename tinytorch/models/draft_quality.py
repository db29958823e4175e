"""What a draft is worth in speculative decoding: the tokens a reading yields, and the best draft.

The rule that keeps or replaces a drafted token is in `tinytorch.models.speculative`. No way of
checking a single token keeps it more often. (Checking several as one block can: Sun et al., 2025.
That is not done here.)
"""

from __future__ import annotations

import numpy as np

from tinytorch.core.arguments import (
    check_distributions,
    check_number,
    check_probabilities,
    check_sizes,
)
from tinytorch.core.types import TensorLike

__all__ = ["best_draft", "expected_readings", "expected_tokens"]


def expected_tokens(rate: float, num_drafted: int) -> float:
    """The mean number of tokens a reading yields if each draft is kept with the same probability.

    `1 + rate + ... + rate**num_drafted`, which is `(1 - rate**(k + 1)) / (1 - rate)` (Leviathan et
    al., 2023, equation 1).

    Args:
        rate: the chance that a token is kept, if all before it were.
        num_drafted: the most tokens that are drafted for a reading.

    Raises:
        ValueError: the rate is no probability, or nothing is drafted.

    Example:
        >>> expected_tokens(0.5, 2)
        1.75
    """
    check_number(rate, "expected_tokens: rate")
    check_sizes(num_drafted=num_drafted)
    if not 0 <= rate <= 1:
        raise ValueError(f"expected_tokens: rate must be in 0 <= rate <= 1, got {rate}")
    return float(sum(rate**i for i in range(num_drafted + 1)))


def expected_readings(kept: TensorLike, num_drafted: int) -> float:
    """The mean number of readings that a text takes, from how likely each of its tokens is kept.

    A token x of the target's text, if it is drafted, is kept with probability `min(1, q(x) / p(x))`
    whatever becomes of the others. Where it is not, the reading ends with it.

    Args:
        kept: these probabilities along one text, `(n,)`.
        num_drafted: the most tokens that are drafted for a reading.

    Raises:
        ValueError: `kept` is not `(n,)`, a number in it is no probability, or nothing is drafted.

    Example:
        >>> expected_readings([1.0, 1.0, 0.0, 1.0, 1.0, 1.0], 2)  # two kept, one drawn
        2.0
    """
    check_sizes(num_drafted=num_drafted)
    kept = np.asarray(kept, float)
    if kept.ndim != 1:
        what = f"kept must be (n,), the tokens of one text, got shape {kept.shape}"
        raise ValueError(f"expected_readings: {what}; call it for each text")
    check_probabilities("expected_readings: kept", kept, "take minimum(1, q / p)")
    readings = np.zeros(len(kept) + 1)  # that the tokens from each position on take
    for start in reversed(range(len(kept))):
        so_far, readings[start] = 1.0, 1.0  # the chance that all before this one are kept
        most = min(num_drafted, len(kept) - start - 1)
        for at in range(start, start + most):
            readings[start] += so_far * (1 - kept[at]) * readings[at + 1]
            so_far *= kept[at]
        readings[start] += so_far * readings[start + most + 1]
    return float(readings[0])


def best_draft(targets: TensorLike, weights: TensorLike | None = None) -> np.ndarray:
    """The one distribution whose tokens several targets accept most often, on average.

    A little probability for a token is worth the weight of those targets that want more of it than
    it has already. So it is given where that weight is largest, until it sums to 1.

    Args:
        targets: probabilities `(n, vocab)`, those of contexts that a draft cannot tell apart.
        weights: how often each occurs, `(n,)`; None for equally often.

    Returns:
        `(vocab,)`.

    Raises:
        ValueError: the targets are not distributions `(n, vocab)`, or the weights not shares.

    Example:
        >>> from tinytorch.models.speculative import acceptance_rate
        >>> three = [[0.9, 0.1], [0.9, 0.1], [0.0, 1.0]]
        >>> best, mean = best_draft(three), np.mean(three, axis=0)
        >>> best.round(4), acceptance_rate(three, best).mean().round(4).item()
        (array([0.9, 0.1]), 0.7)
        >>> mean.round(4), acceptance_rate(three, mean).mean().round(4).item()
        (array([0.6, 0.4]), 0.6)
    """
    targets = np.asarray(targets, float)
    if targets.ndim != 2 or not targets.size:
        what = f"targets must be (n, vocab), got shape {targets.shape}"
        raise ValueError(f"best_draft: {what}; for a single context pass [target]")
    check_distributions("best_draft: targets", targets)
    weights = np.asarray(np.ones(len(targets)) if weights is None else weights, float)
    if weights.shape != targets.shape[:1]:
        what = f"weights must be ({len(targets)},), one for each target, got shape {weights.shape}"
        raise ValueError(f"best_draft: {what}")
    if not (weights.min() >= 0 and 0 < weights.sum() < np.inf):
        what = f"weights must be at least 0, and not all 0, got {weights.min()} to {weights.max()}"
        raise ValueError(f"best_draft: {what}; count how often each target occurs")
    order = np.argsort(targets, axis=0)  # (n, vocab)
    levels = np.take_along_axis(targets, order, axis=0)
    pieces = np.diff(levels, axis=0, prepend=0.0)  # what lies between one target and the next
    worth = weights[order][::-1].cumsum(axis=0)[::-1]  # of those that want this piece
    first = np.argsort(-worth, axis=None, kind="stable")
    filled = np.minimum(pieces.ravel()[first].cumsum(), 1.0)
    given = np.zeros(pieces.size)
    given[first] = np.diff(filled, prepend=0.0)
    return given.reshape(pieces.shape).sum(axis=0)
