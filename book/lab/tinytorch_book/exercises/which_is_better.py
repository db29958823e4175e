"""Checks for the chapter "Which is better?"."""

import math
from functools import cache
from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import (
    Cases,
    NotYet,
    alone,
    case,
    cases,
    measured,
    one_of,
    predictions,
)
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import as_array, is_numeric, show
from tinytorch_book.experiments.compared_models import compared_models

__all__ = ["better_cluster", "better_control", "better_pair", "better_predict", "better_stop"]


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def better_predict(answer: Any) -> Cases:
    """Check predictions of errors, counts and chances."""
    yield from predictions(answer, {
        "four times as many stories: the error is multiplied by": (
            0.5, "The error is s / sqrt(n), and the deviation s stays.",
            (0.25, "That is what happens to its square."),
            (2, "More stories make it smaller.")),
        "half the difference: the stories needed are multiplied by": (
            4, "The difference is squared in the formula.", (2, "It stands there squared.")),
        "both models lose 7 nats more at one story: B - A changes by": (
            0, "It is the same in B and in A."),
        "equal deviations, correlation 0.5: deviation of B - A over that of A": (
            1, "The variance of B - A is s² + s² - 2 · 0.5 · s².",
            (math.sqrt(2), "That is so without any correlation."),
            (0, "That takes a correlation of 1.")),
        "power where the true difference is 0, at a level of 5 %": (
            0.05, "How often is something found where there is nothing?",
            (0, "By chance the test claims a difference now and then: how often?"),
            (0.8, "That is asked of a true difference.")),
        "two independent tests of equal models: chance of a claim": (
            0.0975, "Neither claims anything with a chance of 0.95².",
            (0.1, "Nearly: the case that both claim something is counted twice."),
            (0.05, "That is one test alone."),
            (0.9025, "That is the chance that none claims anything.")),
    }, atol=0.001)  # fmt: skip


# A paired test -------------------------------------------------------------------------------


def _judged(mean: Any, error: Any) -> Any:
    return mean, error, "no" if abs(mean) <= 1.96 * error else "a" if mean > 0 else "b"


def _pair(a: Any, b: Any) -> Any:
    difference = b - a
    return _judged(difference.mean(), difference.std(ddof=1) / math.sqrt(len(difference)))


def _unpaired(a: Any, b: Any) -> Any:
    return _judged(b.mean() - a.mean(), math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a)))


def _with(change: Any) -> Any:
    return lambda a, b: change(*_pair(a, b), b - a)


_ERROR = "The error is the deviation of b - a, with ddof=1, divided by sqrt(n)."
_OTHER = {"a": "b", "b": "a", "no": "no"}
_WRONG_PAIRS = [
    (_unpaired, "They read the same stories: take the deviation of the differences."),
    (_with(lambda mean, error, better, d: (-mean, error, better)), "B minus A, not A minus B."),
    (_with(lambda mean, error, better, d: (mean, error * math.sqrt(len(d)), better)),
        "That is the deviation of a story; the mean's is smaller by sqrt(n)."),
    (_with(lambda mean, error, better, d: (mean, d.std() / math.sqrt(len(d)), better)),
        "The deviation of a sample: ddof=1."),
]  # fmt: skip
_WRONG_VERDICTS = [
    (_with(lambda mean, error, better, d: (mean, error, _OTHER[better])),
        "These are surprises: the lower one is better."),
    (_with(lambda mean, error, better, d: (mean, error, better.replace("b", "no"))),
        "b may be better, too: then the mean is more than 1.96 errors below 0."),
]  # fmt: skip


@exercise(points=2, reference=_pair, rules=[in_numpy])
def better_pair(answer: Any) -> Cases:
    """Check a paired comparison with its verdict."""
    verdict = "The lower surprise is better, if |mean| is more than 1.96 errors; otherwise 'no'."
    luck, noise, other = drawn(200, 200, 60)
    a = 24 + 3 * luck
    edge = np.array([0.0, 2.0])  # mean 1, error 1
    sets = {
        "b a little worse": (a, a + 0.1 + 0.3 * noise),
        "b a little better": (a, a - 0.1 + 0.3 * noise),
        "no difference to be seen": (a, a + 0.3 * (noise - noise.mean()) + 0.03),
        "stories that both find hard": (a**2, a**2 + 0.2 * noise - 0.2),
        "60 stories": (a[:60], a[:60] + other + 0.2),
        "two stories, one error from 0": (np.zeros(2), edge),
        "two stories, 1.95 errors from 0": (np.zeros(2), edge + 0.95),
        "two stories, 1.97 errors from 0": (np.zeros(2), edge + 0.97),
        "the same the other way": (np.zeros(2), -edge - 0.97),
        "two equal models": (edge, edge),
    }
    parts = (
        ("mean", "The mean of b - a.", _WRONG_PAIRS), ("error", _ERROR, _WRONG_PAIRS),
        ("better", verdict, _WRONG_VERDICTS),
    )  # fmt: skip
    for claim, given in sets.items():
        for name, hint, mistakes in parts:
            own = {"part": one_of(name, "mean", "error", "better"), "mistakes": mistakes}
            yield case(f"{name}, {claim}", answer, *given, hint=hint, atol=0, **own)


# A control variate ---------------------------------------------------------------------------


def _control(x: Any, known: Any, known_mean: float, times: Any = lambda c: c) -> Any:
    c = np.cov(x, known)[0, 1] / known.var(ddof=1)
    left = x - times(c) * (known - known_mean)
    return left.mean(), left.std(ddof=1) / math.sqrt(len(x))


@exercise(points=2, reference=_control, rules=[in_numpy], mistakes=[
    (lambda x, known, mean: _control(x, known, known.mean()),
        "The mean of these stories is no news: how far is it from known_mean?"),
    (lambda x, known, mean: _control(x, known, mean, lambda c: -c),
        "Where known is above its mean, x is too high as well: subtract, with this c."),
    (lambda x, known, mean: _control(x, known, mean, lambda c: 1), "c is the slope, not always 1."),
    (lambda x, known, mean: _control(x, known, mean, lambda c: c * known.std() / x.std()),
        "That is the correlation: c is cov / var of known."),
    (lambda x, known, mean: _control(x, known, mean, lambda c: c * known.var() / x.var()),
        "That is the slope the other way round: c is cov / var of known."),
    (lambda x, known, mean: (_control(x, known, mean)[0], x.std(ddof=1) / math.sqrt(len(x))),
        "The error is that of what is left, x - c (known - known_mean)."),
])  # fmt: skip
def better_control(answer: Any) -> Cases:
    """Check a repaired control variate."""
    slope = "c = cov(x, known) / var(known), both with n - 1: np.cov divides by n - 1 itself."
    error = "std(ddof=1) of what is left, x - c (known - known_mean), over sqrt(n)."
    from_mean = "Subtract c times how far known is from its true mean, known_mean."
    luck, noise = drawn(80, 80)
    known = 24 + 3 * luck
    sets = {
        "a slope of a half": (slope, 0.5 * known + noise, known, 24.0),
        "a model and the oracle": (from_mean, known + 0.4 * noise, known, 24.1),
        "a slope below 0": (slope, 7 - 2 * known + noise, known, 23.0),
        "an unlucky draw": (from_mean, known + 0.4 * noise, known + 5, 24.0),
        "hardly any relation": (slope, noise, known, 30.0),
        "three stories": (slope, np.array([1.0, 2.5, 3.5]), np.array([2.0, 3.0, 5.0]), 1.0),
        "known in other units": (slope, known + noise, 1000 * known, 24_000.0),
    }
    for claim, (hint, *given) in sets.items():
        for name in ("mean", "error"):
            part = one_of(name, "mean", "error")
            told = {"mean": hint, "error": error}[name]
            yield case(f"{name}, {claim}", answer, *given, part=part, hint=told, atol=0)


# Clusters ------------------------------------------------------------------------------------


def _cluster(x: Any, story: Any) -> Any:
    return np.sqrt((np.bincount(story, x - x.mean()) ** 2).sum()) / len(x)


@exercise(points=2, reference=_cluster, rules=[in_numpy, no_loop], mistakes=[
    (lambda x, story: x.std() / math.sqrt(len(x)), "That takes all tokens to be independent."),
    (lambda x, story: x.std(ddof=1) / math.sqrt(len(x)), "That takes tokens to be independent."),
    (lambda x, story: np.sqrt((np.bincount(story, x) ** 2).sum()) / len(x),
        "Subtract the mean of all tokens first."),
    (lambda x, story: _cluster(x, story) * len(x) / (story.max() + 1),
        "Divide by the number of tokens, not of stories."),
    (lambda x, story: _cluster(x, story) ** 2, "Take the root."),
    (lambda x, story: _cluster(x, story) ** 2 * len(x), "Take the root of the sum of squares."),
    (lambda x, story: _cluster(x, story) * math.sqrt(len(x)), "Divide by n, not by its root."),
])  # fmt: skip
def better_cluster(answer: Any) -> Cases:
    """Check the error of a mean over tokens, of which those of a story depend on each other."""
    sums = "Add the deviations from the mean within each story; square the sums, not the tokens."
    x, few = drawn(300, 6)
    shuffled = generator().permutation(np.repeat(np.arange(20), 15))
    yield from cases(answer, {
        "six tokens, two stories": (sums, few, np.array([0, 0, 0, 1, 1, 1])),
        "each token a story": (sums, few, np.arange(6)),
        "one story": (sums, few, np.zeros(6, dtype=int), alone(rtol=0, atol=1e-6)),
        "stories of unequal length": (sums, few + 4, np.array([0, 0, 0, 0, 1, 2])),
        "tokens in any order": (sums, x, shuffled),
        "stories that differ": (sums, x + shuffled, shuffled),
        "tokens of a tiny spread": (sums, 1e-6 * x, shuffled, alone(atol=0)),
        "numbers of stories that do not occur": (sums, few, np.array([3, 3, 7, 7, 9, 9])),
    })  # fmt: skip


# When to stop --------------------------------------------------------------------------------

PAIRS, LOOKS = 4000, range(10, 401, 10)
CLAIMS, FINDS, STORIES = 0.05, 0.85, 200


@cache
def _z_scores() -> tuple[np.ndarray, np.ndarray]:
    """At each look the z-score of equal pairs of models, and of unequal ones, `(pairs, looks)`."""
    nats, _ = compared_models()
    difference, n = nats["five bits"] - nats["story GPT"], np.array(LOOKS)
    rng, shape = np.random.default_rng(0), (2, PAIRS, LOOKS[-1])  # others would decide by luck
    d = difference[rng.integers(len(difference), size=shape)]
    d[0] *= rng.choice([-1, 1], size=shape[1:])
    sums, squares = (np.cumsum(x, axis=-1)[..., n - 1] for x in (d, d**2))
    equal, unequal = sums / np.sqrt(n * (squares - sums**2 / n) / (n - 1))
    return equal, unequal


_TOLD = "{1:.1%} of the equal pairs, {2:.1%} of the others, after {0:.0f} stories"


def _read_on_average(limit: Any) -> tuple[float, float, float]:
    """The mean number of stories until a true difference is found; claims, and what is found."""
    limits = [limit(n) for n in LOOKS]
    for x in limits:
        if not (is_numeric(x) and np.size(x) == 1 and as_array(x) > 0):
            raise NotYet(f"{show(x)}, which is not a number above 0")
    levels = [as_array(x).item() for x in limits]
    equal, unequal = (np.abs(z) > np.array(levels) for z in _z_scores())
    claims, found = equal.any(axis=1).mean(), unequal.any(axis=1)
    read = np.where(found, np.array(LOOKS)[unequal.argmax(axis=1)], LOOKS[-1]).mean()
    figures = float(read), float(claims), float(found.mean())
    if claims > CLAIMS:
        twice = "Forty looks need a limit above 1.96. And is z worth a look after ten stories?"
        raise NotYet(_TOLD.format(*figures), twice)
    if found.mean() < FINDS:
        strict = "Not forty times as strict: each look shares its stories with the one before."
        raise NotYet(_TOLD.format(*figures), strict)
    return figures


@exercise(points=4, rules=[in_numpy])
def better_stop(answer: Any) -> Cases:
    """Check the limits of a test that looks every ten stories and stops once it finds something."""
    later = "Look earlier, and more often: a claim at a later look costs the stories before it."
    claim = (
        f"claims for at most {CLAIMS:.0%} of equal pairs, finds {FINDS:.0%} of the others or more, "
        f"after at most {STORIES} stories on average"
    )
    goal = f"at most {CLAIMS:.0%}; at least {FINDS:.0%}; at most {STORIES} stories"
    yield from measured(claim, answer, run=_read_on_average, aim=STORIES, told=_TOLD, goal=goal,
                        hint=later)  # fmt: skip
