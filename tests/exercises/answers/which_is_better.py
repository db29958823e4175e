"""Right and wrong answers to the exercises of "Which is better?"."""

import math

import numpy as np

FOUR_TIMES = "four times as many stories: the error is multiplied by"
HALF = "half the difference: the stories needed are multiplied by"
BOTH = "both models lose 7 nats more at one story: B - A changes by"
CORRELATED = "equal deviations, correlation 0.5: deviation of B - A over that of A"
NOTHING = "power where the true difference is 0, at a level of 5 %"
TWO = "two independent tests of equal models: chance of a claim"
ALL = {FOUR_TIMES: 0.5, HALF: 4, BOTH: 0, CORRELATED: 1, NOTHING: 0.05, TWO: 0.0975}


# The paired test
def verdict(mean, error):
    z = mean / error
    return "a" if z > 1.96 else "b" if z < -1.96 else "no"


def pair_by_sums(a, b):
    n = len(a)
    mean = sum(b - a) / n
    squares = sum((y - x - mean) ** 2 for x, y in zip(a, b, strict=True))
    error = (squares / (n - 1) / n) ** 0.5
    return mean, error, verdict(mean, error)


def pair_by_covariance(a, b):
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
    mean, error, _ = pair_by_sums(a, b)
    return mean, error, "a" if mean > 1.96 * error else "no"


def from_1_96_errors_up(a, b):
    mean, error, _ = pair_by_sums(a, b)
    return mean, error, "no" if abs(mean) < 1.96 * error else "a" if mean > 0 else "b"


# The control variate
def control_by_lines(x, known, known_mean):
    slope, height = np.polyfit(known - known_mean, x, 1)
    left = x - slope * (known - known_mean)
    return height, left.std(ddof=1) / len(x) ** 0.5


def control_by_sums(x, known, known_mean):
    away = known - known.mean()
    c = (away * x).sum() / (away**2).sum()
    left = x - c * known + c * known_mean
    return [left.mean(), math.sqrt(((left - left.mean()) ** 2).sum() / (len(x) - 1) / len(x))]


def subtracts_its_own_mean(x, known, known_mean):
    return control_by_sums(x, known, known.mean())


def excess(x, known, known_mean):
    left = x - known + known_mean
    return left.mean(), left.std(ddof=1) / math.sqrt(len(x))


def error_of_before(x, known, known_mean):
    return control_by_sums(x, known, known_mean)[0], x.std(ddof=1) / math.sqrt(len(x))


def control_by_the_correlation(x, known, known_mean):
    left = x - np.corrcoef(x, known)[0, 1] * (known - known_mean)
    return left.mean(), left.std(ddof=1) / len(x) ** 0.5


def error_without_ddof(x, known, known_mean):
    mean, error = control_by_sums(x, known, known_mean)
    return mean, error * (1 - 1 / len(x)) ** 0.5


# Clusters
def cluster_by_onehot(x, story):
    return np.linalg.norm(np.eye(story.max() + 1)[story].T @ (x - x.mean())) / x.size


def cluster_by_pairs(x, story):
    off = x - x.mean()
    together = story[:, None] == story
    return math.sqrt(max(0.0, (np.outer(off, off) * together).sum())) / len(x)


def cluster_in_float32(x, story):
    off = (x - x.mean()).astype(np.float32)
    return np.sqrt((np.bincount(story, off).astype(np.float32) ** 2).sum()) / len(x)


def pocock(limit, first, every=10):
    return lambda n: limit if n >= first and n % every == 0 else np.inf


RIGHT = {
    "better_predict": [ALL, ALL | {TWO: 1 - 0.95 * 0.95, HALF: 4.0}, ALL | {TWO: 0.098}],
    "better_pair": [pair_by_sums, pair_by_covariance],
    "better_control": [control_by_lines, control_by_sums],
    "better_cluster": [cluster_by_onehot, cluster_by_pairs, cluster_in_float32],
    "better_stop": [
        pocock(2.8, 50),
        lambda n: 1e9 if n < 60 else np.float64(2.78),
        lambda n: np.where(n >= 50, 2.8, np.inf),
        lambda n: np.array([2.8 if n >= 50 else np.inf]),
        pocock(2.75, 50),  # near the edge, where another draw would decide otherwise
    ],
}
WRONG = {
    "better_predict": {
        "… squared in the formula": ALL | {HALF: 16},
        "… stands there squared": ALL | {HALF: 2},
        "… correlation of 1": ALL | {CORRELATED: 0},
        "… how often?": ALL | {NOTHING: 0},
        "… As a share": ALL | {NOTHING: 5},
        "… a number, or True or False": ALL | {NOTHING: None},
        "… is counted twice": ALL | {TWO: 0.1},
    },
    "better_pair": {
        "… same stories": as_if_unpaired,
        "… more than 1.96 errors; otherwise 'no'": by_their_intervals,
        "… b may be better, too": one_sided,
        "a difference between equal models": from_1_96_errors_up,
        "… lower one is better": lambda a, b: (
            *pair_by_sums(a, b)[:2],
            {"a": "b", "b": "a", "no": "no"}[pair_by_sums(a, b)[2]],
        ),
    },
    "better_control": {
        "… is no news": subtracts_its_own_mean,
        "… not always 1": excess,
        "… what is left": error_of_before,
        "… c is cov / var": control_by_the_correlation,
        "… std(ddof=1) of what is left": error_without_ddof,
    },
    "better_cluster": {
        "… independent": lambda x, story: x.std() / len(x) ** 0.5,
        "… Take the root": lambda x, story: (np.bincount(story, x - x.mean()) ** 2).sum() / len(x),
        "… not by its root": lambda x, story: cluster_by_onehot(x, story) * len(x) ** 0.5,
        "… mean of all tokens": lambda x, story: (
            np.sqrt((np.bincount(story, x) ** 2).sum()) / len(x)
        ),
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
