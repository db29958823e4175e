"""Right and wrong answers to the exercises of "Scaling"."""

import numpy as np

from . import guesses

GUESSES = {
    "parameters": {56_640: "token table", 105_792: "count it once", 79_872: "and norms"},
    "tokens of 1,000 steps": {112_000: "reads 8 windows", 8000: "has 112 tokens"},
    "FLOPs of these steps, by 6 N D": {145_539_072_000: "Two are the forward"},
    "bytes of weights, gradients and AdamW's means": {
        324_864: "the weights alone",
        974_592: "keeps two means",
    },
    "A / N**0.34 after N has grown tenfold, over before": {
        10**0.34: "less than 1",
        0.457: "but rounded",
        0.5429118: "by how much it falls",
    },
    "FLOPs of GPT-3's training, by 6 N D": {5.25e22: "Six for", 1.05e23: "takes four more"},
}


# A power law above a floor
def power(x, losses, floor):
    kept = [(a, b - floor) for a, b in zip(x, losses, strict=True) if b > floor]
    logs = np.log10(kept)
    columns = np.stack([np.ones(len(logs)), -logs[:, 0]], axis=1)
    (height, beta), *_ = np.linalg.lstsq(columns, logs[:, 1], rcond=None)
    return [10**height, beta]


# An interval
def slopes_of(a, b):
    a = a - a.mean(axis=1, keepdims=True)
    return (a * b).sum(axis=1) / (a * a).sum(axis=1)


def interval_by_counts(x, y, samples, rng):
    counts = rng.multinomial(len(x), np.full(len(x), 1 / len(x)), size=samples)  # (samples, n)
    mean = counts @ x / len(x)
    slopes = np.sort((counts @ (x * y) - mean * (counts @ y))
                     / (counts @ (x * x) - len(x) * mean**2))  # fmt: skip
    return slopes[round(0.025 * samples)], slopes[round(0.975 * samples)]


def a_row_too_few(x, y, samples, rng):
    rows = rng.integers(len(x), size=(samples, len(x) - 1))
    return np.quantile(slopes_of(x[rows], y[rows]), [0.025, 0.975])


def drawn_apart(x, y, samples, rng):
    size = (samples, len(x))
    return np.quantile(slopes_of(rng.choice(x, size), rng.choice(y, size)), [0.025, 0.975])


def without_replacement(x, y, samples, rng):
    rows = rng.permuted(np.tile(np.arange(len(x)), (samples, 1)), axis=1)
    return np.quantile(slopes_of(x[rows], y[rows]), [0.025, 0.975])


def of_the_mean(x, y, samples, rng):
    rows = rng.integers(len(x), size=(samples, len(x)))
    slopes = slopes_of(x[rows], y[rows])
    return slopes.mean() + np.array([-2, 2]) * slopes.std() / samples**0.5


# The budget
def bought(width, depth, steps, lr):
    return lambda budget: {"embed_dim": width, "num_layers": depth, "steps": steps, "lr": lr}


RIGHT = {
    "scaling_power": [power],
    "scaling_interval": [interval_by_counts],
    "scaling_frontier": [lambda losses: ~(losses > np.minimum.accumulate(losses))],
    "scaling_budget": [bought(16, 1, 258, 0.1)],
}
WRONG = {
    "scaling_predict": guesses(GUESSES),
    "scaling_power": {
        "none near the floor": ("losses > floor", "losses > floor + 1e-4"),
        "… Subtract the floor": ("losses[above] - floor", "losses[above]"),
        "… leave that run out": (
            "above = losses > floor",
            "above, losses = losses > 0, np.maximum(losses, floor + 1e-9)",
        ),
        "… height of the line": ("np.exp(height)", "height"),
        "… its slope is minus": ("-slope", "slope"),
        "… B first": ("np.exp(height), -slope", "-slope, np.exp(height)"),
    },
    "scaling_interval": {
        "… the same rows": drawn_apart,
        "… in another order": without_replacement,
        "a row too few": a_row_too_few,
        "… mean slope is that certain": of_the_mean,
        "… lower end": lambda *given: interval_by_counts(*given)[::-1],
    },
    "scaling_frontier": {
        "the lowest at some time": lambda losses: np.isin(losses, np.minimum.accumulate(losses)),
        "… not with the one before": lambda losses: [True, *(losses[1:] <= losses[:-1])],
        "… as numbers": lambda losses: np.where(losses > np.minimum.accumulate(losses), 0, 1),
        "… it counts": lambda losses: [True, *(losses[1:] < np.minimum.accumulate(losses)[:-1])],
        "… True or False": lambda losses: [
            i for i in range(len(losses)) if losses[i] <= min(losses[: i + 1])
        ],
        "… not after": lambda losses: [losses[i] == losses[i:].min() for i in range(len(losses))],
        "… not all of them": lambda losses: losses <= losses.min(),
        "… frontier's loss": lambda losses: [min(losses[: i + 1]) for i in range(len(losses))],
    },
    "scaling_budget": {"… lowest loss": bought(64, 2, 256, 0.0125)},
}
