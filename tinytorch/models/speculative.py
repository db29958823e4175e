"""Speculative decoding: a small model drafts, the large one checks many tokens in one reading.

The text has exactly the distribution of the large model's own (Leviathan et al., 2023). A drafted
token, drawn from q, is kept with probability min(1, p / q). The first that is not kept is replaced
by one from the part of p that q leaves uncovered. So a token is kept with probability
sum(min(p, q)) if all before it were; `draft_quality` says what that is worth.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.arguments import check_distributions, check_ids, check_sizes
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.module import evaluation_mode
from tinytorch.core.primitive import as_operand
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import Model, Rng, TensorLike, TokenIds
from tinytorch.models.generation import stop_ids
from tinytorch.models.sampling import check_sampling, choose, next_token_probs

__all__ = ["SpeculativeText", "accept_or_resample", "acceptance_rate", "speculative_generate"]


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


def accept_or_resample(
    token: int, target: TensorLike, draft: TensorLike, rng: Rng = None
) -> tuple[bool, int]:
    """Keep a token that was drawn from `draft`, or draw another: what comes is drawn from `target`.

    Args:
        token: the proposed one, drawn from `draft`.
        target: probabilities p, `(vocab,)`.
        draft: probabilities q, `(vocab,)`.
        rng: a generator, a seed, or None for the default generator.

    Returns:
        Whether the proposed token was kept, and the token.

    Raises:
        TypeError: the token is no integer.
        IndexError: it is not in the vocabulary.
        ValueError: p or q is not a distribution `(vocab,)`, or the draft cannot propose it.

    Example:
        >>> accept_or_resample(0, [0.5, 0.5], [1.0, 0.0], rng=0)  # kept in one of two cases
        (False, 1)
    """
    p, q = _checked_proposal(token, target, draft)
    rng = default_rng(rng)
    if rng.random() * q[token] < p[token]:  # with probability min(1, p / q)
        return True, int(token)
    rest = np.maximum(p - q, 0)  # what q leaves uncovered
    return False, choose(rest if rest.any() else p, rng)  # none: equal up to rounding


def acceptance_rate(target: TensorLike, draft: TensorLike) -> np.ndarray:
    """The probability that a drafted token is kept if all before it were: `sum(min(p, q))`.

    It is 1 minus the total variation distance of p and q.

    Args:
        target: probabilities p, `(..., vocab)`.
        draft: probabilities q, `(..., vocab)`; or of a shape that broadcasts.

    Returns:
        `(...)`.

    Raises:
        ValueError: the vocabularies differ, a number is not a probability, or a row's sum is not 1.

    Example:
        >>> acceptance_rate([0.5, 0.25, 0.25], [0.25, 0.75, 0.0])
        array(0.5)
    """
    target, draft = _same_vocabulary("acceptance_rate", target, draft)
    return np.asarray(np.minimum(target, draft).sum(axis=-1))


def speculative_generate(
    model: Model,
    draft: Model,
    prompt_tokens: TokenIds,
    max_new_tokens: int = 50,
    *,
    num_drafted: int = 4,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_tokens: Iterable[int] = (),
    rng: Rng = None,
) -> SpeculativeText:
    """Write as `generate` would, with fewer readings of the model.

    The draft writes `num_drafted` tokens, one after the other; the model reads them at once, keeps
    some, and adds one. At temperature 0 the text is the very one of `generate`.

    Args:
        model: the target: maps ids `(1, seq)` to logits `(1, seq, vocab)`. A model with a
            `new_cache` reads each token once; what is not kept is forgotten.
        draft: the same for the smaller model.
        prompt_tokens: integer ids `(prompt,)`, at least one.
        max_new_tokens: how many tokens to write at most.
        num_drafted: the most tokens that are drafted for a reading.
        temperature: as for `generate`, for both models.
        top_k: as for `generate`.
        top_p: as for `generate`.
        stop_tokens: the text ends with the first of these that it writes.
        rng: a generator, a seed, or None for the default generator.

    Raises:
        IndexError: a stop token is not in the vocabulary.
        TypeError: stop tokens are no integers.
        ValueError: an empty prompt, unequal vocabularies, a number below 1, or too long a text.

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
    sizes = [each.vocab_size for each in (model, draft) if hasattr(each, "vocab_size")]
    if len({*sizes}) == 2:
        what = f"the models' vocabularies have {sizes} tokens"
        raise ValueError(f"speculative_generate: {what}; draft with a model of the same tokenizer")
    stops = {*stop_ids(stop_tokens, min(sizes, default=None)).tolist()}
    end, rng = len(ids) + max_new_tokens, default_rng(rng)
    target, small = (_CachedModel(m, end, (temperature, top_k, top_p)) for m in (model, draft))
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
        last = next((i for i, token in enumerate(text[known:], known) if token in stops), end)
        del text[last + 1 :]
        if text[-1] in stops:
            break
        for each in (target, small):
            each.forget(len(text) - 1)
    return SpeculativeText(Tensor(np.array(text)), target.readings, drafted, accepted)


# Helpers -------------------------------------------------------------------------------------


class _CachedModel:
    """A model with its cache: forecasts for the tokens that it has not read."""

    def __init__(self, model: Model, end: int, options: tuple[Any, ...]) -> None:
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
            self.cache.forget(min(self.cache.length, length))


def _checked_proposal(
    token: int, target: TensorLike, draft: TensorLike
) -> tuple[np.ndarray, np.ndarray]:
    """Both distributions as arrays, provided that the draft can propose the token."""
    target, draft = _same_vocabulary("accept_or_resample", target, draft)
    if target.ndim != 1 or draft.ndim != 1:
        what = f"target {target.shape} and draft {draft.shape} must be (vocab,)"
        raise ValueError(f"accept_or_resample: {what}; pass one position at a time")
    check_ids(np.asarray(token), len(draft), "token id", "draw it from `draft`")
    if not draft[token] > 0:
        what = f"the draft gives token {token} no probability"
        raise ValueError(f"accept_or_resample: {what}; draw it from `draft`")
    return target, draft


def _same_vocabulary(
    name: str, target: TensorLike, draft: TensorLike
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities as arrays, provided that they are of the same tokens."""
    target, draft = np.asarray(target, float), np.asarray(draft, float)
    if target.ndim == 0 or draft.ndim == 0 or target.shape[-1] != draft.shape[-1]:
        what = f"target {target.shape} and draft {draft.shape} must have the same vocabulary"
        raise ValueError(f"{name}: {what}")
    check_distributions(f"{name}: target", target)
    check_distributions(f"{name}: draft", draft)
    return target, draft
