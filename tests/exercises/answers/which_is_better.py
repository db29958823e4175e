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


def by_their_intervals(a, b):
    """Claims a difference only if the intervals of both means do not overlap."""
    mean, error = (b - a).mean(), (b - a).std(ddof=1) / math.sqrt(len(a))
    reach = 1.96 * (a.std(ddof=1) + b.std(ddof=1)) / math.sqrt(len(a))
    return mean, error, "no" if abs(mean) <= reach else verdict(mean, error)


def as_if_unpaired(a, b):
    mean, error = b.mean() - a.mean(), math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    return mean, error, verdict(mean, error)


def one_sided(a, b):
    mean, error, _ = pair(a, b)
    return mean, error, "a" if mean > 1.96 * error else "no"


def from_1_96_errors_up(a, b):
    mean, error, _ = pair(a, b)
    return mean, error, "no" if abs(mean) < 1.96 * error else "a" if mean > 0 else "b"


# The control variate
def control(x, known, known_mean):
    slope, height = np.polyfit(known - known_mean, x, 1)
    left = x - slope * (known - known_mean)
    return height, left.std(ddof=1) / len(x) ** 0.5


def with_slope(slope):
    """`slope(x, known, c)` instead of c."""

    def wrong(x, known, known_mean):
        left = x - slope(x, known, np.polyfit(known, x, 1)[0]) * (known - known_mean)
        return left.mean(), left.std(ddof=1) / len(x) ** 0.5

    return wrong


def error_without_ddof(x, known, known_mean):
    mean, error = control(x, known, known_mean)
    return mean, error * (1 - 1 / len(x)) ** 0.5


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
        "… same stories": as_if_unpaired,
        "… more than 1.96 errors; otherwise 'no'": by_their_intervals,
        "… b may be better, too": one_sided,
        "a difference between equal models": from_1_96_errors_up,
        "… lower one is better": lambda a, b: (*pair(a, b)[:2], pair(b, a)[2]),
        "… not A minus B": lambda a, b: pair(b, a),
        "… deviation of a story": lambda a, b: ((b - a).mean(), (b - a).std(ddof=1), ""),
        "… The deviation of a sample": lambda a, b: (
            (b - a).mean(),
            (b - a).std() / len(a) ** 0.5,
            "",
        ),
    },
    "better_control": {
        "… is no news": lambda x, known, mean: control(x, known, known.mean()),
        "… subtract, with this c": with_slope(lambda x, known, c: -c),
        "… not always 1": with_slope(lambda x, known, c: 1),
        "… error is that of what is left": lambda x, *given: (
            control(x, *given)[0],
            x.std(ddof=1) / len(x) ** 0.5,
        ),
        "… correlation: c is cov / var": with_slope(
            lambda x, known, c: np.corrcoef(x, known)[0, 1]
        ),
        "… the other way round": with_slope(lambda x, known, c: np.polyfit(x, known, 1)[0]),
        "… std(ddof=1) of what is left": error_without_ddof,
    },
    "better_cluster": {
        "… That takes all tokens": lambda x, story: x.std() / len(x) ** 0.5,
        "… That takes tokens": lambda x, story: x.std(ddof=1) / len(x) ** 0.5,
        "… not of stories": lambda x, story: cluster(x, story) * len(x) / (max(story) + 1),
        "… Take the root.": lambda x, story: cluster(x, story) ** 2,
        "… of the sum of squares": lambda x, story: len(x) * cluster(x, story) ** 2,
        "… not by its root": lambda x, story: cluster(x, story) * len(x) ** 0.5,
        "… mean of all tokens": lambda x, story: np.linalg.norm(np.bincount(story, x)) / len(x),
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
