"""Right and wrong answers to the exercises of "A smaller model, a faster one"."""

from collections import defaultdict

import numpy as np

from tinytorch_book.experiments.distillation import forecasts
from tinytorch_book.experiments.story_gpt import load_story_gpt

from . import guesses

GUESSES = {
    "variance with soft labels; hard ones have 0.5, of which 0.4 within contexts": {
        0.4: "what they take away"
    },
    "share kept, p = (0.5, 0.5, 0), q = (0.25, 0.25, 0.5)": {1: "ever kept", 0.25: "add up all"},
    "share of the third token in what is written": {0.5: "how often it is drafted"},
    "tokens a reading, 3 drafted, each kept with 0.5": {
        0.88: "The reading itself",
        2.5: "The second counts only",
        1.75: "Three are drafted",
    },
    "tokens a reading, 3 drafted, none ever kept": {0: "what comes after the last"},
    "tokens a reading, endless drafts, each kept with 0.9": {9: "token that was kept"},
}


# The loss
def soft_by_rows(logits, probs):
    losses = []
    for z, row in zip(logits, probs, strict=True):
        z = z - z.max()
        losses.append(np.log(np.exp(z).sum()) - row @ z)
    return sum(losses) / len(losses)


def soft_in_float32(logits, probs):
    return np.float32(soft_by_rows(logits, probs))


def divergence(logits, probs):
    logs = np.log(np.where(probs > 0, probs, 1))
    return soft_by_rows(logits, probs) + (probs * logs).sum(axis=-1).mean()


def softmax_of(logits, axis=-1):
    return np.exp(logits - np.logaddexp.reduce(logits, axis=axis, keepdims=True))


# Keeping
def keep_by_ratio(token, p, q, u, v):
    if u < min(1, p[token] / q[token]):
        return token
    rest = np.where(p > q, p - q, 0)
    return int((rest.cumsum() <= v * rest.sum()).sum())


def drawn_from(rest, v, side="right"):
    return int(np.searchsorted(rest.cumsum() / rest.sum(), v, side=side))


def kept_or(replaced):
    """`replaced(p, q, u, v)` says by what."""
    return lambda token, p, q, u, v: token if u < p[token] / q[token] else replaced(p, q, u, v)


# Tokens a reading
def tokens_by_count(kept):
    chance = np.cumprod(np.column_stack([np.ones(len(kept)), kept]), axis=1)
    return chance.mean(axis=0).sum()


# The project
def longest_seen(texts, rows_of):
    """The mean forecast after the longest ending that was seen, of at most six tokens."""
    sums = defaultdict(float)
    for ids, rows in zip(texts, rows_of, strict=True):
        for at, row in enumerate(rows):
            for n in range(min(6, at + 1) + 1):
                sums[tuple(ids[at + 1 - n : at + 1])] = sums[tuple(ids[at + 1 - n : at + 1])] + row

    def draft(ids):
        row = next(
            sums[key] for n in range(6, -1, -1) if (key := tuple(ids[-n:] if n else ())) in sums
        )
        return row / row.sum()

    return draft


def without_a_remedy(texts, rows_of):
    sums = defaultdict(float)
    for ids, rows in zip(texts, rows_of, strict=True):
        for at, row in enumerate(rows):
            sums[tuple(ids[max(0, at - 2) : at + 1])] += row
    sums = {ending: row / row.sum() for ending, row in sums.items()}
    return lambda ids: sums[tuple(ids[-3:])]


def the_story_gpt(texts, rows):
    model = load_story_gpt()
    return lambda ids: forecasts(model, np.array([ids]))[0, -1]


RIGHT = {
    "faster_soft": [soft_by_rows, soft_in_float32],
    "faster_keep": [keep_by_ratio],
    "faster_tokens": [tokens_by_count],
    "faster_draft": [longest_seen],
}
WRONG = {
    "faster_soft": {
        "… exp(1000) is infinite": ("logits - logits.max(axis=-1, keepdims=True)", "logits"),
        "… leave the entropy in": divergence,
        "… That is the excess": lambda z, p: (p * np.log(p / softmax_of(z))).sum(axis=-1).mean(),
        "… a squared difference": lambda z, p: ((softmax_of(z) - p) ** 2).sum(axis=-1).mean(),
        "… In nats": lambda z, p: soft_by_rows(z, p) / np.log(2),
        "… One number": lambda z, p: -(p * np.log(softmax_of(z))).sum(axis=-1),
        "… not over the positions": lambda z, p: (
            -((p * np.log(softmax_of(z, axis=0))).sum(axis=-1).mean())
        ),
        "… not their sum": lambda z, p: soft_by_rows(z, p) * len(z),
        "… Sum over the tokens": lambda z, p: soft_by_rows(z, p) / z.shape[1],
        "… A surprise is minus": lambda z, p: -soft_by_rows(z, p),
        "… hard label of the likeliest": lambda z, p: soft_by_rows(
            z, np.eye(p.shape[1])[p.argmax(-1)]
        ),
        "… The logits are not log-probabilities": lambda z, p: -(p * z).sum(axis=-1).mean(),
    },
    "faster_numbers": guesses(GUESSES),
    "faster_keep": {
        "… nor always the largest": kept_or(lambda p, q, u, v: int(np.argmax(p - q))),
        "… not `u`": kept_or(lambda p, q, u, v: drawn_from(np.maximum(p - q, 0), u)),
        "… counts twice": kept_or(lambda p, q, u, v: drawn_from(p, v)),
        "… must be replaced": lambda token, p, q, u, v: token,
        "… Nothing is left": kept_or(lambda p, q, u, v: drawn_from(abs(p - q), v)),
        "… Nothing is left of that token": kept_or(
            lambda p, q, u, v: drawn_from(np.maximum(q - p, 0), v)
        ),
        "… no negative": kept_or(lambda p, q, u, v: drawn_from(p - q, v)),
        "… sums to less than 1": kept_or(
            lambda p, q, u, v: int((np.maximum(p - q, 0).cumsum() <= v).sum())
        ),
        "… 0 is not below 0": ("u * q[token] < p", "u * q[token] <= p"),
        "… 0 does not exceed 0": kept_or(
            lambda p, q, u, v: drawn_from(np.maximum(p - q, 0), v, side="left")
        ),
        "… here 0.4": ("u * q", "q"),
        "drawn from p": lambda token, p, q, u, v: int(np.searchsorted(p.cumsum(), v, side="right")),
    },
    "faster_tokens": {
        "… The mean of a product": lambda kept: (
            1 + (kept.mean() ** np.arange(1, kept.shape[1] + 1)).sum()
        ),
        "… adds one token": lambda kept: kept.cumprod(axis=1).sum(axis=1).mean(),
        "… only readings that keep all": lambda kept: 1 + kept.prod(axis=1).mean(),
        "… if all chances": lambda kept: ((1 - kept ** (kept.shape[1] + 1)) / (1 - kept)).mean(),
        "… The mean over the readings": lambda kept: 1 + kept.cumprod(axis=1).sum(),
        "… not their sum": lambda kept: tokens_by_count(kept) * len(kept),
        "… all before it were kept": lambda kept: 1 + kept.sum(axis=1).mean(),
        "… not down": lambda kept: 1 + kept.cumprod(axis=0).sum() / len(kept),
        "… One number": lambda kept: 1 + kept.cumprod(axis=1).sum(axis=1),
        "… a harmonic mean": lambda kept: (
            len(kept) / (1 / (1 + kept.cumprod(axis=1).sum(axis=1))).sum()
        ),
        "… only if all chances are equal": lambda kept: (
            (1 - kept ** (kept.shape[1] + 1)).sum() / (1 - kept).sum()
        ),
        "… some readings are easy": lambda kept: 1 + kept.mean(axis=0).cumprod().sum(),
    },
    "faster_draft": {
        "… How many tokens do you look back": ("longest=5", "longest=2"),
        "counted": (
            "longest=5",
            "longest=3",
            "sums[ending] + row",
            "sums[ending] + (np.eye(512)[ids[at + 1]] if at + 1 < len(ids) else 0 * row)",
        ),
        "the story GPT itself": the_story_gpt,
        "… none of the 150 stories has": without_a_remedy,
        "even chances": lambda texts, rows_of: lambda ids: np.full(512, 1 / 512),
    },
}
