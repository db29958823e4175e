"""Right and wrong answers to the exercises of "Which is better?"."""

import math

import numpy as np

from . import guesses

GUESSES = {
    "four times as many stories: the error is multiplied by": {
        0.25: "to its square",
        2: "make it smaller",
    },
    "half the difference: the stories needed are multiplied by": {
        16: "squared in the formula",
        2: "stands there squared",
    },
    "equal deviations, correlation 0.5: deviation of B - A over that of A": {
        1.414: "without any correlation",
        0: "correlation of 1",
    },
    "power where the true difference is 0, at a level of 5 %": {
        0: "how often?",
        0.8: "of a true difference",
        5: "As a share",
    },
    "two independent tests of equal models: chance of a claim": {
        0.1: "is counted twice",
        0.05: "one test alone",
        0.9025: "that none claims",
    },
}


# The paired test
def verdict(mean, error):
    z = mean / error
    return "a" if z > 1.96 else "b" if z < -1.96 else "no"


def pair(a, b):
    (va, c), (_, vb) = np.cov(a, b)
    mean, error = b.mean() - a.mean(), math.sqrt((va + vb - 2 * c) / len(a))
    return [mean, error, verdict(mean, error)]


# The control variate
def control(x, known, known_mean):
    slope, height = np.polyfit(known - known_mean, x, 1)
    left = x - slope * (known - known_mean)
    return height, left.std(ddof=1) / len(x) ** 0.5


# Clusters
def cluster(x, story):
    off = x - x.mean()
    together = story[:, None] == story
    return math.sqrt(max(0.0, (np.outer(off, off) * together).sum())) / len(x)


def cluster_in_float32(x, story):
    off = (x - x.mean()).astype(np.float32)
    return np.sqrt((np.bincount(story, off).astype(np.float32) ** 2).sum()) / len(x)


def pocock(limit, first, every=10):
    return lambda n: limit if n >= first and n % every == 0 else np.inf


RIGHT = {
    "better_pair": [pair],
    "better_control": [control],
    "better_cluster": [cluster, cluster_in_float32],
    "better_stop": [
        lambda n: np.where(n >= 50, 2.8, np.inf),
        lambda n: np.array([2.8 if n >= 50 else np.inf]),
        pocock(2.75, 50),  # near the edge, where another draw would decide otherwise
    ],
}
WRONG = {
    "better_predict": guesses(GUESSES),
    "better_pair": {
        "… same stories": ("d.std(ddof=1)", "np.sqrt(a.var(ddof=1) + b.var(ddof=1))"),
        "… more than 1.96 errors; otherwise 'no'": (
            "1.96 * error",
            "1.96 * (a.std(ddof=1) + b.std(ddof=1)) / np.sqrt(len(d))",
        ),
        "… b may be better, too": ('else "b"', 'else "no"'),
        "a difference between equal models": ("<= 1.96", "< 1.96"),
        "… lower one is better": ('"a" if mean > 0 else "b"', '"b" if mean > 0 else "a"'),
        "… not A minus B": ("b - a", "a - b"),
        "… deviation of a story": (" / np.sqrt(len(d))", ""),
        "… The deviation of a sample": ("ddof=1", ""),
    },
    "better_control": {
        "… is no news": ("known - known_mean", "known - known.mean()"),
        "… subtract, with this c": ("x - c", "x + c"),
        "… not always 1": ("np.cov(x, known)[0, 1] / known.var(ddof=1)", "1"),
        "… error is that of what is left": ("left.std", "x.std"),
        "… correlation: c is cov / var": (
            "cov(x, known)[0, 1] / known.var(ddof=1)",
            "corrcoef(x, known)[0, 1]",
        ),
        "… the other way round": ("known.var", "x.var"),
        "… std(ddof=1) of what is left": ("left.std(ddof=1)", "left.std()"),
    },
    "better_cluster": {
        "… That takes all tokens": lambda x, story: x.std() / len(x) ** 0.5,
        "… That takes tokens": lambda x, story: x.std(ddof=1) / len(x) ** 0.5,
        "… not of stories": ("len(x)", "(story.max() + 1)"),
        "… Take the root.": ("np.sqrt", "", "len(x)", "len(x) ** 2"),
        "… of the sum of squares": ("np.sqrt", ""),
        "… not by its root": ("len(x)", "len(x) ** 0.5"),
        "… mean of all tokens": (" - x.mean()", ""),
        "the deviation of the stories' means": lambda x, story: (
            np.std(np.bincount(story, x) / np.maximum(np.bincount(story), 1))
            / (story.max() + 1) ** 0.5
        ),
    },
    "better_stop": {
        "… forty times as strict": lambda n: 3.3,
        "… worth a look after ten": lambda n: 1.96,
        "… Look earlier": pocock(1.96, 400),
    },
}
