"""From scores to one token: temperature, the two filters, and the draw.

`next_token_probs` composes them in one order: the scores are divided by the temperature and become
probabilities, top-k keeps the most likely, top-p keeps the fewest of those that reach its
probability, and the rest is normalised. All of it is in float64.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from tinytorch.core.arguments import check_not_negative, check_number, check_sizes
from tinytorch.core.types import TensorLike

__all__ = ["choose", "keep_top_k", "keep_top_p", "next_token_probs", "next_tokens"]


def next_tokens(
    logits: np.ndarray,
    rngs: list[np.random.Generator],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> np.ndarray:
    """One token for each row, drawn from `next_token_probs` with the row's own generator.

    Args:
        logits: the model's scores `(batch, vocab)`.
        rngs: a generator for each row; at temperature 0 nothing is drawn from them.
        temperature: as for `next_token_probs`.
        top_k: as for `next_token_probs`.
        top_p: as for `next_token_probs`.

    Returns:
        Ids `(batch,)`.

    Raises:
        ValueError: as for `next_token_probs`.

    Example:
        >>> next_tokens(np.array([[0.0, 2.0], [3.0, 1.0]]), [], temperature=0).tolist()
        [1, 0]
    """
    if temperature == 0:  # the same token, whatever top-k and top-p keep
        return _checked_logits(logits).argmax(axis=-1)
    probs = next_token_probs(logits, temperature, top_k, top_p)
    return np.array([choose(row, rng) for row, rng in zip(probs, rngs, strict=True)], dtype=int)


def next_token_probs(
    logits: TensorLike,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> np.ndarray:
    """The probabilities from which the next token is drawn.

    `softmax(logits / temperature)`, then `keep_top_k`, then `keep_top_p`. `top_p` is a share of
    what top-k has left, which sums to one again.

    Args:
        logits: the model's scores `(..., vocab)`; -inf forbids a token.
        temperature: below 1 sharper, above 1 flatter; 0 always takes the most likely token, the
            lowest id among equals.
        top_k: draw only from this many most likely tokens; None for all.
        top_p: draw only from the most likely tokens with this probability together; None for all.

    Returns:
        `(..., vocab)` in float64, each row sums to 1.

    Raises:
        ValueError: an option is outside its range, a logit is nan or +inf, or all of them are -inf.
        TypeError: an option is not a number, `top_k` not an integer.

    Example:
        >>> logits = np.log([0.5, 0.25, 0.15, 0.1])
        >>> next_token_probs(logits, temperature=0.5).round(3).tolist()
        [0.725, 0.181, 0.065, 0.029]
        >>> next_token_probs(logits, top_k=3, top_p=0.8).round(3).tolist()
        [0.667, 0.333, 0.0, 0.0]
    """
    check_sampling(temperature, top_k, top_p)
    probs = _tempered(_checked_logits(logits), temperature)
    if top_k is not None:
        probs = _top_k(probs, top_k)
    if top_p is not None:
        probs = _top_p(probs, top_p)
    return probs


def keep_top_k(probs: TensorLike, k: int) -> np.ndarray:
    """Keep the `k` most likely tokens (Fan et al., 2018, section 5.1).

    Exactly `k` are kept, or all if there are fewer: among equals those with the lower ids.

    Args:
        probs: probabilities `(..., vocab)`.
        k: how many to keep.

    Returns:
        `(..., vocab)` in float64: the others are 0, each row sums to 1 again.

    Raises:
        ValueError: `k` is less than 1, or a row holds no probabilities.
        TypeError: `k` is not an integer.

    Example:
        >>> keep_top_k([0.25, 0.5, 0.125, 0.125], 3).round(3).tolist()
        [0.286, 0.571, 0.143, 0.0]
    """
    check_sampling(top_k=k)
    return _top_k(_checked_probs(probs, "keep_top_k"), k)


def _top_k(probs: np.ndarray, k: int) -> np.ndarray:
    """`keep_top_k` of what are known to be probabilities."""
    k = min(k, probs.shape[-1])
    least = np.partition(probs, -k, axis=-1)[..., -k, None]  # of the k most likely; nothing sorted
    above, equal = probs > least, probs == least
    fits = equal.cumsum(axis=-1) <= k - above.sum(axis=-1, keepdims=True)  # the lower ids first
    return _normalised(np.where(above | equal & fits, probs, 0.0))


def keep_top_p(probs: TensorLike, p: float) -> np.ndarray:
    """Keep the most likely tokens until they reach the probability `p`: the nucleus.

    Holtzman et al., 2020, section 3.1: the smallest set whose probability reaches `p`. It has at
    least one token; among equals the lower ids come first. A sum that misses `p` only by rounding,
    by less than 1e-12, has reached it.

    Args:
        probs: probabilities `(..., vocab)`.
        p: the share to keep, `0 < p <= 1`; 1 keeps all.

    Returns:
        `(..., vocab)` in float64: the others are 0, each row sums to 1 again.

    Raises:
        ValueError: `p` is outside its range, or a row holds no probabilities.

    Example:
        >>> keep_top_p([0.1, 0.6, 0.3], 0.9).round(3).tolist()
        [0.0, 0.667, 0.333]
    """
    check_sampling(top_p=p)
    return _top_p(_normalised(_checked_probs(probs, "keep_top_p")), p)


def _top_p(probs: np.ndarray, p: float) -> np.ndarray:
    """`keep_top_p` of what are known to be probabilities."""
    if p == 1:
        return probs
    order = np.argsort(-probs, axis=-1, kind="stable")  # the most likely first, then the lower id
    falling = np.take_along_axis(probs, order, axis=-1)
    before = falling.cumsum(axis=-1) - falling  # the probability of the more likely ones
    keep = before < p - 1e-12
    keep[..., 0] = True  # also if p is smaller than rounding
    kept = np.zeros(probs.shape, dtype=bool)
    np.put_along_axis(kept, order, keep, axis=-1)
    return _normalised(np.where(kept, probs, 0.0))


def choose(probs: TensorLike, rng: np.random.Generator) -> int:
    """Draw one token; a token with probability 0 is never drawn.

    Args:
        probs: probabilities `(vocab,)`.
        rng: the generator, from which one number is drawn.

    Raises:
        ValueError: they are not `(vocab,)`, not finite, one is negative, or all are 0.

    Example:
        >>> choose([0.0, 1.0, 0.0], np.random.default_rng(0))
        1
    """
    probs = np.asarray(probs, dtype=np.float64)
    if probs.ndim != 1 or probs.size == 0:
        raise ValueError(f"choose: probabilities must be (vocab,), got shape {probs.shape}")
    cumulative = probs.cumsum()
    total = cumulative[-1]
    if not (probs.min() >= 0 and 0 < total < np.inf):
        raise ValueError(f"choose: {_NO_PROBABILITIES}")
    target = min(rng.random() * total, math.nextafter(total, 0))  # it may round to the total
    return int(cumulative.searchsorted(target, side="right"))


# Helpers -------------------------------------------------------------------------------------


def check_sampling(
    temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> None:
    """Raise unless every option is in its range.

    Example:
        >>> check_sampling(top_p=1.5)
        Traceback (most recent call last):
        ...
        ValueError: top_p must be in 0 < top_p <= 1, got 1.5
    """
    check_number(temperature, "temperature")
    if temperature > sys.float_info.max:
        remedy = "for even chances set all logits to 0"
        raise ValueError(f"temperature must be finite, got inf; {remedy}")
    check_not_negative(temperature=temperature)
    if top_k is not None:
        check_sizes(top_k=top_k)
    if top_p is not None:
        check_number(top_p, "top_p")
        if not 0 < top_p <= 1:
            raise ValueError(f"top_p must be in 0 < top_p <= 1, got {top_p}")


def _tempered(logits: np.ndarray, temperature: float) -> np.ndarray:
    """`softmax(logits / temperature)`, or its limit at 0."""
    largest, temperature = logits.max(axis=-1, keepdims=True), float(temperature)
    if temperature == 0:
        return np.equal(np.arange(logits.shape[-1]), logits.argmax(-1, keepdims=True)).astype(float)
    with np.errstate(over="ignore"):  # a tiny temperature: -inf, which exp makes 0
        return _normalised(np.exp((logits - largest) / temperature))


def _normalised(probs: np.ndarray) -> np.ndarray:
    return probs / probs.sum(axis=-1, keepdims=True)


def _checked_logits(logits: TensorLike) -> np.ndarray:
    logits = np.asarray(logits, dtype=np.float64)
    if logits.ndim == 0 or logits.size == 0:
        raise ValueError(f"next_token_probs: logits must be (..., vocab), got shape {logits.shape}")
    largest = logits.max(axis=-1)  # nan if one of them is
    if all(map(math.isfinite, largest.flat)):
        return logits
    if (largest == -np.inf).any():
        remedy = "leave at least one token that may be chosen"
        raise ValueError(f"next_token_probs: every logit is -inf; {remedy}")
    remedy = "did training diverge? look at the weights and lower the learning rate"
    raise ValueError(f"next_token_probs: a logit is nan or inf; {remedy}")


def _checked_probs(probs: TensorLike, name: str) -> np.ndarray:
    probs = np.asarray(probs, dtype=np.float64)
    if probs.ndim == 0 or probs.size == 0:
        raise ValueError(f"{name}: probabilities must be (..., vocab), got shape {probs.shape}")
    total = probs.sum(axis=-1)
    if not ((probs >= 0).all() and (total > 0).all() and (total < np.inf).all()):
        raise ValueError(f"{name}: {_NO_PROBABILITIES}")
    return probs


_NO_PROBABILITIES = (
    "probabilities must be >= 0, finite and not all 0; pass logits through next_token_probs first"
)
