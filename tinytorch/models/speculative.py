"""Speculative decoding: a small model drafts, the large one checks many tokens in one reading.

The text has exactly the distribution of the large model's own (Leviathan et al., 2023). A drafted
token, drawn from q, is kept with probability min(1, p / q). The first that is not kept is replaced
by one from the part of p that q leaves uncovered. So a token is kept with probability
sum(min(p, q)), and no way of checking a single token keeps it more often. (Checking several as one
block can: Sun et al., 2025. That is not done here.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.arguments import check_number, check_sizes
from tinytorch.core.module import evaluation_mode
from tinytorch.core.recording import no_grad
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.tracing import as_operand
from tinytorch.models.sampling import check_sampling, choose, next_token_probs

__all__ = ["SpeculativeText", "accept_or_resample", "acceptance_rate", "best_draft",
           "expected_readings", "expected_tokens", "speculative_generate"]  # fmt: skip


class SpeculativeText(NamedTuple):
    """What `speculative_generate` has written, and what it took.

    Attributes:
        ids: prompt and new tokens, a tensor `(seq,)`.
        readings: how often the target was called.
        drafted: how many tokens the draft proposed.
        accepted: how many of them were kept.
    """

    ids: Tensor
    readings: int
    drafted: int
    accepted: int


def acceptance_rate(target: Any, draft: Any) -> np.ndarray:
    """The share of drafted tokens that is kept: `sum(min(p, q))`, 1 minus the total variation.

    Args:
        target: probabilities p, `(..., vocab)`.
        draft: probabilities q, `(..., vocab)`; or of a shape that broadcasts.

    Returns:
        `(...)`.

    Raises:
        ValueError: the vocabularies differ.

    Example:
        >>> acceptance_rate([0.5, 0.25, 0.25], [0.25, 0.75, 0.0])
        array(0.5)
    """
    target, draft = _same_vocabulary("acceptance_rate", target, draft)
    return np.asarray(np.minimum(target, draft).sum(axis=-1))


def accept_or_resample(token: int, target: Any, draft: Any, rng: Any = None) -> tuple[bool, int]:
    """Keep a token that was drawn from `draft`, or draw another: what comes is drawn from `target`.

    Args:
        token: the proposed one, drawn from `draft`.
        target: probabilities p, `(vocab,)`.
        draft: probabilities q, `(vocab,)`.
        rng: a generator, a seed, or None for the default generator.

    Returns:
        Whether the proposed token was kept, and the token.

    Raises:
        ValueError: the vocabularies differ, or the draft cannot have proposed this token.

    Example:
        >>> accept_or_resample(0, [0.5, 0.5], [1.0, 0.0], rng=0)  # kept in one of two cases
        (False, 1)
    """
    target, draft = _same_vocabulary("accept_or_resample", target, draft)
    if not draft[token] > 0:
        what = f"the draft gives token {token} no probability"
        raise ValueError(f"accept_or_resample: {what}; draw it from `draft`")
    rng = default_rng(rng)
    if rng.random() * draft[token] < target[token]:
        return True, int(token)
    rest = np.maximum(target - draft, 0)
    return False, choose(rest if rest.any() else target, rng)  # none: equal up to rounding


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


def expected_readings(kept: Any, num_drafted: int) -> float:
    """The mean number of readings that a text takes, from how likely each of its tokens is kept.

    A token x of the target's text, if it is drafted, is kept with probability `min(1, q(x) / p(x))`
    whatever becomes of the others. Where it is not, the reading ends with it.

    Args:
        kept: these probabilities along one text, `(n,)`.
        num_drafted: the most tokens that are drafted for a reading.

    Example:
        >>> expected_readings([1.0, 1.0, 0.0, 1.0, 1.0, 1.0], 2)  # two kept, one of its own; again
        2.0
    """
    check_sizes(num_drafted=num_drafted)
    kept = np.asarray(kept, float)
    readings = np.zeros(len(kept) + 1)  # that the tokens from each position on take
    for start in reversed(range(len(kept))):
        so_far, readings[start] = 1.0, 1.0  # the chance that all before this one are kept
        most = min(num_drafted, len(kept) - start - 1)
        for at in range(start, start + most):
            readings[start] += so_far * (1 - kept[at]) * readings[at + 1]
            so_far *= kept[at]
        readings[start] += so_far * readings[start + most + 1]
    return float(readings[0])


def best_draft(targets: Any, weights: Any = None) -> np.ndarray:
    """The one distribution whose tokens several targets accept most often, on average.

    A little probability for a token is worth the weight of those targets that want more of it than
    it has already. So it is given where that weight is largest, until it sums to 1.

    Args:
        targets: probabilities `(n, vocab)`, those of contexts that a draft cannot tell apart.
        weights: how often each occurs, `(n,)`; None for equally often.

    Returns:
        `(vocab,)`.

    Example:
        >>> three = [[0.9, 0.1], [0.9, 0.1], [0.0, 1.0]]
        >>> best, mean = best_draft(three), np.mean(three, axis=0)
        >>> best.round(4), acceptance_rate(three, best).mean().round(4).item()
        (array([0.9, 0.1]), 0.7)
        >>> mean.round(4), acceptance_rate(three, mean).mean().round(4).item()
        (array([0.6, 0.4]), 0.6)
    """
    targets = np.asarray(targets, float)
    weights = np.ones(len(targets)) if weights is None else np.asarray(weights, float)
    order = np.argsort(targets, axis=0)  # (n, vocab)
    levels = np.take_along_axis(targets, order, axis=0)
    pieces = np.diff(levels, axis=0, prepend=0.0)  # what lies between one target and the next
    worth = weights[order][::-1].cumsum(axis=0)[::-1]  # of those that want this piece
    first = np.argsort(-worth, axis=None, kind="stable")
    filled = np.minimum(pieces.ravel()[first].cumsum(), 1.0)
    given = np.zeros(pieces.size)
    given[first] = np.diff(filled, prepend=0.0)
    return given.reshape(pieces.shape).sum(axis=0)


def speculative_generate(
    model: Any,
    draft: Any,
    prompt_tokens: Any,
    max_new_tokens: int = 50,
    *,
    num_drafted: int = 4,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rng: Any = None,
) -> SpeculativeText:
    """Write as `generate` would, with fewer readings of the model.

    The draft writes `num_drafted` tokens, one after the other; the model reads them at once, keeps
    some, and adds one. At temperature 0 the text is the very one of `generate`.

    Args:
        model: the target: maps ids `(1, seq)` to logits `(1, seq, vocab)`. A model with a
            `new_cache` reads each token once; what is not kept is forgotten.
        draft: the same for the smaller model.
        prompt_tokens: integer ids `(prompt,)`, at least one.
        max_new_tokens: how many tokens to write.
        num_drafted: the most tokens that are drafted for a reading.
        temperature: as for `generate`, for both models.
        top_k: as for `generate`.
        top_p: as for `generate`.
        rng: a generator, a seed, or None for the default generator.

    Raises:
        ValueError: an empty prompt, the vocabularies differ, a number is less than 1, or the text
            does not fit the model's `max_seq_len`.

    Example:
        >>> from tinytorch import GPT
        >>> large, small = (GPT(9, 8, layers, 2, max_seq_len=32, rng=0) for layers in (3, 1))
        >>> text = speculative_generate(large, small, [1, 2], 20, temperature=0)
        >>> text.ids.data.tolist() == large.generate([1, 2], 20, temperature=0).data.tolist()
        True
    """
    check_sizes(max_new_tokens=max_new_tokens, num_drafted=num_drafted)
    check_sampling(temperature, top_k, top_p)
    ids = np.asarray(prompt_tokens)
    if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
        what = f"integer ids (prompt,), at least one, got {ids.dtype} {ids.shape}"
        raise ValueError(f"speculative_generate: the prompt must be {what}")
    end, rng = len(ids) + max_new_tokens, default_rng(rng)
    target, small = (_Reader(m, end, (temperature, top_k, top_p)) for m in (model, draft))
    text, drafted, accepted = ids.tolist(), 0, 0
    while len(text) < end:
        known, guesses = len(text), []
        for _ in range(min(num_drafted, end - known - 1)):
            guesses.append(small.read(text)[-1])  # q, (vocab,)
            text.append(choose(guesses[-1], rng))
        rows = target.read(text)[known - len(text) - 1 :]  # p after each drafted token and before
        for place, q in enumerate(guesses):
            kept, token = accept_or_resample(text[known + place], rows[place], q, rng)
            if not kept:
                text[known + place :] = [token]
                break
        else:
            text.append(choose(rows[-1], rng))
        drafted, accepted = drafted + len(guesses), accepted + len(text) - known - 1
        for reader in (target, small):
            reader.forget(len(text) - 1)
    return SpeculativeText(Tensor(np.array(text)), target.readings, drafted, accepted)


# Helpers -------------------------------------------------------------------------------------


class _Reader:
    """A model with its cache: forecasts for the tokens that it has not read."""

    def __init__(self, model: Any, end: int, options: tuple[Any, ...]) -> None:
        most = getattr(model, "max_seq_len", end)
        if end - 1 > most:
            what = f"a text of {end} tokens exceeds max_seq_len {most}"
            raise ValueError(f"speculative_generate: {what}; ask for fewer tokens")
        self.cache = model.new_cache() if hasattr(model, "new_cache") else None
        self.model, self.options, self.readings = model, options, 0

    def read(self, text: list[int]) -> np.ndarray:
        """Forecasts `(new, vocab)` after each token that is new to it."""
        new = np.array([text[0 if self.cache is None else self.cache.length :]])
        given: Any = {} if self.cache is None else {"cache": self.cache}
        with evaluation_mode(), no_grad():
            logits = np.asarray(as_operand(self.model(new, **given)))
        self.readings += 1
        return next_token_probs(logits[0], *self.options)

    def forget(self, length: int) -> None:
        """Set the cache back to a text of this length, if it has read more."""
        if self.cache is not None:
            self.cache.length = min(self.cache.length, length)


def _same_vocabulary(name: str, target: Any, draft: Any) -> tuple[np.ndarray, np.ndarray]:
    target, draft = np.asarray(target, float), np.asarray(draft, float)
    if target.ndim == 0 or draft.ndim == 0 or target.shape[-1] != draft.shape[-1]:
        what = f"target {target.shape} and draft {draft.shape} must have the same vocabulary"
        raise ValueError(f"{name}: {what}")
    return target, draft
