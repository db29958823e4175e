"""Checks for the chapter "A smaller model, a faster one"."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from tinytorch.models.transformer import GPT
from tinytorch_book.exercises.cases import Cases, NotYet, alone, cases, measured, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import as_array, show
from tinytorch_book.experiments.distillation import own_stories

__all__ = ["faster_draft", "faster_keep", "faster_numbers", "faster_soft", "faster_tokens"]

# A loss for probabilities ---------------------------------------------------------------------


def _logs(logits: Any) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _soft(logits: Any, probs: Any) -> Any:
    return -(probs * _logs(logits)).sum(axis=-1).mean()


@exercise(points=1, reference=_soft, rules=[in_numpy], mistakes=[
    (lambda z, p: (p * (np.log(p) - _logs(z))).sum(axis=-1).mean(),
        "That is the excess over the entropy of probs: leave the entropy in."),
    (lambda z, p: _soft(z, p) / np.log(2), "In nats: the natural logarithm."),
    (lambda z, p: -(p * _logs(z)).sum(axis=-1), "One number: the mean over the positions."),
    (lambda z, p: ((np.exp(_logs(z)) - p) ** 2).sum(axis=-1).mean(),
        "That is a squared difference: a surprise is minus a logarithm."),
    (lambda z, p: -(p * _logs(z.T).T).sum(axis=-1).mean(),
        "The softmax goes over the tokens of a position, not over the positions."),
    (lambda z, p: -(p * _logs(z)).sum(), "The mean over the positions, not their sum."),
    (lambda z, p: -(p * _logs(z)).mean(), "Sum over the tokens, then the mean over positions."),
    (lambda z, p: (p * _logs(z)).sum(axis=-1).mean(), "A surprise is minus a logarithm."),
    (lambda z, p: -(p * z).sum(axis=-1).mean(), "The logits are not log-probabilities yet."),
    (lambda z, p: -_logs(z)[np.arange(len(z)), p.argmax(axis=-1)].mean(),
        "That is the hard label of the likeliest token: take all of them."),
])  # fmt: skip
def faster_soft(answer: Any) -> Cases:
    """Check the mean surprise at a token drawn from soft labels."""
    form = "-sum(probs * log softmax(logits)) at each position, and the mean of these."
    large = "exp(1000) is infinite: subtract the largest logit of the row first."
    even, sure = np.zeros((1, 4)), np.eye(4)[[2]]
    logits, many = drawn((5, 7), (40, 3), seed=1)
    probs, more = generator(2).dirichlet(np.ones(7), 5), generator(3).dirichlet(np.ones(3), 40)
    yield from cases(answer, {
        "a hard label is a soft one": (form, np.array([[1.0, 0.0, 2.0, -1.0]]), sure),
        "even chances: log 4": (form, even, np.full((1, 4), 0.25)),
        "five positions": (form, logits, probs),
        "forty positions": (form, 3 * many, more),
        "four hundred tokens": (form, *drawn((3, 400)), generator(7).dirichlet(np.ones(400), 3)),
        "logits in the thousands": (large, 4000 * logits, probs),
        "logits far below 0": (large, logits - 5000, probs),
        "the truth itself: its entropy": (form, np.log(probs), probs),
    })  # fmt: skip


# What comes out -------------------------------------------------------------------------------


@exercise(points=1)
def faster_numbers(answer: Any) -> Cases:
    """Check predictions of what soft labels and drafts are worth."""
    own = "The reading itself says what comes after the last token that was kept."
    yield from predictions(answer, {
        "variance with soft labels; hard ones have 0.5, of which 0.4 within contexts": (
            0.1, "Soft labels take away what lies within a context.",
            (0.4, "That is what they take away.")),
        "share kept, p = (0.5, 0.5, 0), q = (0.25, 0.25, 0.5)": (
            0.5, "Add up the smaller of both, token by token.",
            (1.0, "The third token is drafted half of the time: is it ever kept?"),
            (0.25, "That is one token; add up all three.")),
        "share of the third token in what is written": (
            0.0, "What is written is distributed as p.",
            (0.5, "That is how often it is drafted.")),
        "tokens a reading, 3 drafted, each kept with 0.5": (
            1.875, "1 + 0.5 + 0.5² + 0.5³.",
            (0.875, own), (2.5, "The second counts only if the first was kept."),
            (1.75, "Three are drafted.")),
        "tokens a reading, 3 drafted, none ever kept": (1.0, own, (0.0, own)),
        "tokens a reading, endless drafts, each kept with 0.9": (
            10.0, "1 + 0.9 + 0.9² + ..., without an end.", (9.0, own)),
    }, atol=0.006)  # fmt: skip


# A text that changes --------------------------------------------------------------------------


def _keep(token: Any, p: Any, q: Any, u: Any, v: Any) -> int:
    if u * q[token] < p[token]:
        return int(token)
    rest = np.maximum(p - q, 0)
    return int(np.searchsorted(rest.cumsum() / rest.sum(), v, side="right"))


_UPSIDE = "What the large model likes better than the draft does is always kept: p over q."
_CHANCE = "Kept with the chance p over q, here 0.4, if u is below it."
_REPLACED = "u is not below p over q: the token must be replaced."
_NOTHING = "Nothing is left of that token: p - q, where that is positive."
_WHOLE = "The rest sums to less than 1: divide by its sum before you draw from it."
_SIGNED = "Where q covers more than p there is nothing left: no negative probabilities."
_SPREAD = "`v` chooses among what is left, in proportion: not `u`, nor always the largest."
_COUNTED = "Drawn from all of p, what was kept already counts twice: draw from what q leaves."
_THREE = "Look at the three: the ratio, what is left, what it sums to."
# Each wrong way to replace a token of these leads to another one: four, then five, p above q.
_FOUR = np.array([[1, 8, 6, 1], [6, 4, 4, 2]]) / 16
_FIVE = np.array([[4, 2, 2, 1, 1], [1, 1, 2.5, 2, 3.5]]) / 10
_OF_FOUR = [(3, _REPLACED), (0, _NOTHING), (2, _SIGNED), (4, _WHOLE)]
_OF_FIVE = [(3, _REPLACED), (4, _NOTHING), (0, _SPREAD), (2, _COUNTED), (5, _WHOLE)]


def _law(answer: Any, p: Any, q: Any) -> Any:
    """How often each token is written, over a grid of both numbers; the last for what is none."""
    grid = (np.arange(40) + 0.5) / 40
    found = np.zeros(len(p) + 1)
    for token in np.flatnonzero(q):
        for u in grid:
            for v in grid:
                written = int(answer(int(token), p.copy(), q.copy(), float(u), float(v)))
                found[written if 0 <= written < len(p) else -1] += q[token] / 1600
    return found


@exercise(points=2, reference=_keep)
def faster_keep(answer: Any) -> Cases:
    """Check what becomes of a drafted token, with two numbers in the place of chance."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.25, 0.25, 0.5])
    zero, one = np.array([0.0, 0.75, 0.25]), np.array([0.5, 0.25, 0.25])
    never = "0 is not below 0: what the large model never writes is never kept."
    sums = "The first at which the sum *exceeds* v: 0 does not exceed 0."
    many = generator(5).dirichlet(np.ones(9), 2)
    yield from cases(answer, {
        "liked better by the large model: kept": (_UPSIDE, 0, p, q, 0.99, 0.9),
        "kept below 0.2 / 0.5": (_CHANCE, 2, p, q, 0.39, 0.5),
        "of four, replaced": (_THREE, 3, *_FOUR, 0.625, 0.55, alone(mistakes=_OF_FOUR)),
        "of five, replaced": (_THREE, 3, *_FIVE, 0.55, 0.78, alone(mistakes=_OF_FIVE)),
        "replaced above 0.2 / 0.5": (_THREE, 2, p, q, 0.41, 0.7),
        "replaced by another": (_THREE, 2, p, q, 0.41, 0.95),
        "the first token of the rest": (_THREE, 2, p, q, 0.9, 0.1),
        "never kept: p is 0": (_THREE, 0, zero, one, 0.0, 0.5, alone(mistakes=[(0, never)])),
        "never drawn: p is 0": (_THREE, 0, zero, one, 0.5, 0.0, alone(mistakes=[(0, sums)])),
        "what is written is distributed as p": (_THREE, p, q, alone(run=_law)),
        "another p and q": (_THREE, zero, one, alone(run=_law)),
        "nine tokens": (_THREE, *many, alone(run=_law)),
    })  # fmt: skip


# Tokens a reading -----------------------------------------------------------------------------


def _tokens(kept: Any) -> Any:
    return 1 + kept.cumprod(axis=1).sum(axis=1).mean()


_EQUAL = "The formula holds only if all chances are equal; here they differ."
_PRODUCT = "The mean of a product is not the product of the means: some readings are easy."


@exercise(points=2, reference=_tokens, rules=[in_numpy, no_loop], mistakes=[
    (lambda kept: (1 - kept ** (kept.shape[1] + 1)).sum() / (1 - kept).sum(), _EQUAL),
    (lambda kept: ((1 - kept ** (kept.shape[1] + 1)) / (1 - kept)).mean(), _EQUAL),
    (lambda kept: len(kept) / (1 / (1 + kept.cumprod(axis=1).sum(axis=1))).sum(),
        "The mean of the tokens, with equal weight for each reading; that is a harmonic mean."),
    (lambda kept: 1 + kept.cumprod(axis=1).sum(axis=1), "One number: the mean over the readings."),
    (lambda kept: 1 + kept.cumprod(axis=1).sum(), "The mean over the readings, not their sum."),
    (lambda kept: kept.cumprod(axis=1).sum(axis=1).mean(),
        "The reading adds one token of its own."),
    (lambda kept: 1 + kept.sum(axis=1).mean(), "A token counts only if all before it were kept."),
    (lambda kept: 1 + kept.prod(axis=1).mean(), "That counts only readings that keep all."),
    (lambda kept: len(kept) + kept.cumprod(axis=1).sum(),
        "The mean over the readings, not their sum."),
    (lambda kept: 1 + kept.cumprod(axis=0).sum(axis=1).mean(), "Along each row, not down."),
    (lambda kept: 1 + sum(kept.mean() ** i for i in range(1, kept.shape[1] + 1)), _PRODUCT),
    (lambda kept: 1 + kept.mean(axis=0).cumprod().sum(), _PRODUCT),
])  # fmt: skip
def faster_tokens(answer: Any) -> Cases:
    """Check the mean number of tokens a reading yields."""
    form = "1, and the chance that the first is kept, that the first two are, and so on."
    rows = generator(6).random((6, 4))
    yield from cases(answer, {
        "one drafted token": (form, np.array([[0.25]])),
        "two readings of three, each kept half the time": (form, np.full((2, 3), 0.5)),
        "an easy reading and a hard one": (form, np.array([[1.0, 1.0], [0.0, 1.0]])),
        "all are kept": (form, np.ones((3, 5))),
        "none is": (form, np.zeros((2, 3))),
        "six readings": (form, rows),
        "more drafted than readings": (form, rows.T),
    })  # fmt: skip


# The project ----------------------------------------------------------------------------------

AIM = 0.15


@cache
def _texts(num_stories: int, seed: int) -> tuple[list[list[int]], list[np.ndarray]]:
    """Stories of the story GPT as lists of ids, and its forecast after each token.

    The ids are renamed, so that no table made of other stories fits.
    """
    inputs, targets, probs = own_stories(num_stories, seed)
    counts = targets >= 0
    named = generator(13).permutation(probs.shape[-1])
    inputs, probs = named[inputs], probs[..., named.argsort()]
    texts = [ids[counted].tolist() for ids, counted in zip(inputs, counts, strict=True)]
    kept = [p[counted].astype(np.float32) for p, counted in zip(probs, counts, strict=True)]
    return texts, kept


@contextmanager
def _no_network() -> Iterator[None]:
    """Refuse to let a GPT read, since the draft is to be made of tables."""
    forward = GPT.forward

    def refuse(*given: Any, **options: Any) -> Any:
        raise NotYet("a GPT that reads, where a draft made of tables is asked for")

    GPT.forward = refuse  # type: ignore[method-assign]
    try:
        yield
    finally:
        GPT.forward = forward  # type: ignore[method-assign]


def _drafted(value: Any, size: int) -> np.ndarray:
    """The probabilities that a draft returns; `NotYet` if they are none."""
    q, what = as_array(value), ""
    if q.shape == (size,) and not (q >= 0).all():
        what = f" with {show(q[~(q >= 0)][0])} in it"
    elif q.shape == (size,) and not abs(q.sum() - 1) <= 1e-3:
        what = f" which sums to {round(float(q.sum()), 3)}"
    if what or q.shape != (size,):
        raise NotYet(f"{show(q)}{what}, where {size} probabilities of sum 1 are asked for")
    return q


def _rejected(answer: Any) -> float:
    """The mean chance that the story GPT rejects a drafted token, along stories of its own."""
    (texts, probs), (others, theirs) = _texts(150, 11), _texts(40, 12)
    missed = []
    with _no_network():
        draft = answer([*map(list, texts)], [rows.copy() for rows in probs])
        if not callable(draft):
            raise NotYet(f"{show(draft)}, where a function of ids is asked for")
        for ids, rows in zip(others, theirs, strict=True):
            for at, target in enumerate(rows):
                q = _drafted(draft(ids[: at + 1]), len(target))
                missed.append(1 - np.minimum(target, q).sum())
    return float(np.mean(missed))


@exercise(points=4)
def faster_draft(answer: Any) -> Cases:
    """`answer(texts, forecasts)` is a draft: a function from ids to probabilities."""
    hint = (
        "How many tokens do you look back? Mix what follows the last one, two, three and more, the "
        "longer the more often it was seen; and average forecasts where you could count tokens."
    )
    claim = f"the mean chance of rejection is at most {AIM}, on 40 other stories"
    told, unseen = "{0:.3f} rejected", "An ending that none of the 150 stories has: what then?"
    known = [(KeyError, unseen)]
    yield from measured(claim, answer, run=_rejected, aim=AIM, told=told, hint=hint, mistakes=known)
