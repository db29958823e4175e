"""Checks for the chapter "Preferences"."""

import re
from functools import cache
from typing import Any

import numpy as np

from tinytorch.training.preferences import kl_divergence, optimal_policy
from tinytorch_book.exercises.cases import Cases, NotYet, alone, cases, measured, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import as_array, show
from tinytorch_book.experiments.preferences import tiny_world

__all__ = ["prefer_costs", "prefer_dpo", "prefer_gradient", "prefer_optimum", "prefer_words"]

# The optimum ----------------------------------------------------------------------------------


def _plain(weights: Any) -> Any:
    return weights / weights.sum()


@exercise(points=1, reference=optimal_policy, rules=[in_numpy], mistakes=[
    (lambda p, r, beta: p * np.exp((r - r.max()) / beta), "Divide by Z, so that they sum to 1."),
    (lambda p, r, beta: _plain(p * np.exp(beta * (r - r.max()))),
        "Divide the reward by beta: the dearer a nat, the less is moved."),
    (lambda p, r, beta: _plain(np.exp((r - r.max()) / beta)), "Where is the reference?"),
    (lambda p, r, beta: _plain(p * r / beta), "The exponential of the reward is still to come."),
])  # fmt: skip
def prefer_optimum(answer: Any) -> Cases:
    """Check the best policy for a reward and a price of divergence."""
    form = "The reference, times exp(reward / beta), over the sum of these."
    large = "exp(1000) is infinite: subtract the largest reward first, which Z takes out again."
    probs, rewards = np.array([0.5, 0.25, 0.25]), np.array([0.0, 1.0, 2.0])
    many, earned = generator().dirichlet(np.ones(40)), drawn(40)[0]
    yield from cases(answer, {
        "three answers": (form, probs, rewards, 1.0),
        "a nat costs little": (form, probs, rewards, 0.25),
        "a nat is dear": (form, probs, rewards, 50.0),
        "equal rewards leave the reference": (form, probs, np.full(3, 4.0), 0.5),
        "forty answers": (form, many, earned, 0.7),
        "rewards in the thousands": (large, many, 2000 * earned, 0.5, alone(atol=1e-12)),
        "rewards far below 0": (large, probs, rewards - 5000.0, 1.0),
        "answers that are hardly ever given":
            (form, np.array([1 - 1e-9, 1e-9]), np.array([0.0, 30.0]), 1.5),
    })  # fmt: skip


# What it costs --------------------------------------------------------------------------------


@exercise(points=1)
def prefer_costs(answer: Any) -> Cases:
    """Check predictions of what best of n and a policy cost."""
    yield from predictions(answer, {
        "best of 4, at most": (
            np.log(4) - 3 / 4, "log n - (n - 1) / n, for n = 4.",
            (np.log(4), "That is without the part that is taken off again.")),
        "best of 4, if all texts earn the same": (
            0, "Any of the four may be kept: what is written then?",
            (np.log(4) - 3 / 4, "That is the most it can cost; here nothing is chosen.")),
        "best of a million, if 1/8 of all texts earn the most": (
            np.log(8), "Nearly always one of those is kept: each becomes 8 times as likely.",
            (np.log(1e6) - 1 + 1e-6, "The formula is an upper bound: nothing beyond the best."),
            (8, "In nats: the logarithm of that.")),
        "chance that at least one of 4 texts is in the better half": (
            15 / 16, "1 minus the chance that all four are in the other half.",
            (1 / 16, "That is the chance that none is."),
            (1 / 4, "Each of the four is in the better half with a chance of 1/2.")),
        "points below the best, at a divergence of 2 from it, β 0.5": (
            1, "J is β log Z - β KL(π, π*).", (2, "These are nats: what does one cost?")),
    }, atol=0.006)  # fmt: skip


# A gradient that goes astray ------------------------------------------------------------------


def _gradient(
    logits: Any, reference: Any, rewards: Any, drawn: Any, beta: Any,
    sign: float = 1, own: bool = False, once: bool = False,
) -> Any:  # fmt: skip
    """Of the objective, from what was drawn; with some of the mistakes."""
    policy = _plain(np.exp(logits - logits.max()))
    score = rewards[drawn] - sign * beta * np.log(policy / reference)[drawn]
    n = len(drawn)
    advantage = (score - score.mean()) * (1 if own else n / (n - 1))
    found = np.zeros(len(logits))
    if once:
        found[drawn] += advantage
    else:
        np.add.at(found, drawn, advantage)
    return found / n


def _slipped(**slips: Any) -> Any:
    return lambda *given: _gradient(*given, **slips)


_SIGN = "The divergence is the mean of log(policy / reference), and it is a cost."
_OWN = (
    "A text's own reward is in its baseline, and makes the gradient (n - 1) / n as long: "
    "subtract the mean of the others."
)
_ONCE = (
    "A text that is drawn twice counts twice: x[index] += ... keeps one of them. np.add.at adds."
)


@exercise(points=2, reference=_gradient, mistakes=[
    (_slipped(sign=-1, own=True, once=True), "Three things are wrong. Begin with the divergence."),
    (_slipped(sign=-1), _SIGN), (_slipped(own=True), _OWN), (_slipped(once=True), _ONCE),
    (_slipped(sign=-1, own=True), _SIGN), (_slipped(sign=-1, once=True), _SIGN),
    (_slipped(own=True, once=True), _OWN),
    (lambda *given: -_gradient(*given), "It is to climb: the sign of the whole is wrong."),
    (lambda *given: _gradient(*given) * len(given[3]), "A mean over the texts, not their sum."),
])  # fmt: skip
def prefer_gradient(answer: Any) -> Cases:
    """Check a repaired policy gradient, for a policy of one logit a text."""
    hint = "The mean score of the others is the baseline; divide by how many were drawn."
    large = "exp(5000) is infinite: subtract the largest logit first; the sum takes it out again."
    probs = generator().dirichlet(np.ones(6), 2)
    logits, rewards = drawn(6, 6)
    wide, earned = drawn(200, 200, seed=1)
    ids = generator(2).integers(200, size=64)
    five = np.full(5, 0.2)
    yield from cases(answer, {
        "reward and divergence": (hint, logits, probs[1], rewards, np.array([0, 4, 4, 1, 0]), 0.3),
        "the reference itself, two texts":
            (_OWN, np.log(five), five, np.arange(5.0), np.array([1, 3]), 0.5),
        "a text drawn twice":
            (_ONCE, np.log(five), five, np.arange(5.0), np.array([1, 3, 3]), 0.5),
        "a policy that has moved": (_SIGN, logits, probs[0], 0 * rewards, np.array([0, 5, 2]), 1.0),
        "two hundred texts": (hint, wide, generator(3).dirichlet(np.ones(200)), earned, ids, 2.0),
        "one text, four times": (hint, logits, probs[0], rewards, np.array([2, 2, 2, 2]), 0.3),
        "logits in the thousands":
            (large, logits + 5000, probs[0], rewards, np.array([1, 2, 0]), 0.3),
    })  # fmt: skip


# DPO in one line ------------------------------------------------------------------------------


def _dpo(won: Any, lost: Any, won_before: Any, lost_before: Any, beta: Any) -> Any:
    margin = beta * ((won - won_before) - (lost - lost_before))
    return np.logaddexp(0, -margin).mean()


@exercise(points=2, reference=_dpo, rules=[in_numpy, no_loop], mistakes=[
    (lambda w, x, w0, x0, beta: _dpo(x, w, x0, w0, beta), "The preferred one is to win."),
    (lambda w, x, w0, x0, beta: _dpo(w, x, 0, 0, beta), "Compare with the model before."),
    (lambda w, x, w0, x0, beta: _dpo(w, x, w0, x0, 1), "Where is beta?"),
    (lambda w, x, w0, x0, beta: _dpo(w, x, w0, x0, 1 / beta), "Times beta, not over it."),
    (lambda w, x, w0, x0, beta: _dpo(w, x, w0, x0, beta) * len(w), "The mean, not the sum."),
    (lambda w, x, w0, x0, beta: _dpo(w, x, x0, w0, beta), "Each with its own log-probability."),
])  # fmt: skip
def prefer_dpo(answer: Any) -> Cases:
    """Check the loss of direct preference optimisation."""
    form = "-log sigmoid(beta * (log-ratio of the preferred - log-ratio of the other)), the mean."
    large = "np.exp overflows from 710 on: np.logaddexp(0, -x) is -log sigmoid(x), for every x."
    four = [-20 + x for x in drawn(7, 7, 7, 7)]
    one = [np.array([x]) for x in (-1.0, -3.0, -2.0, -2.0)]
    yield from cases(answer, {
        "one pair": (form, *one, 0.5),
        "a model that has not moved: log 2": (form, four[0], four[1], four[0], four[1], 0.3),
        "seven pairs": (form, *four, 0.3),
        "three hundred pairs": (form, *drawn(300, 300, 300, 300, seed=1), 0.4),
        "seven pairs, far apart": (form, *(10 * x for x in four), 2.0),
        "log-ratios in the thousands": (large, *(5000 * x for x in four), 1.0),
        "a pair that is long decided":
            (large, *one[:2], one[2], one[3] + 40, 1.0, alone(rtol=1e-6, atol=1e-12)),
        "a pair that is all but decided":
            (large, one[0], one[1] - 100, one[2], one[3], 0.5, alone(rtol=1e-6, atol=1e-12)),
    })  # fmt: skip


# The project ----------------------------------------------------------------------------------

AIM, BETA, PAIRS = 0.15, 0.5, 400


@cache
def _world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The probabilities of the page's stories, their rewards, and how often each has each word."""
    stories, probs, rewards = tiny_world()
    split = [re.findall(r"\w+", story) for story in stories]
    words = sorted({word for each in split for word in each})
    counts = [[each.count(word) for word in words] for each in split]
    return probs, rewards, np.array(counts, float)


def _below(answer: Any) -> float:
    """By how many points the answer falls short of the best, on average over three draws."""
    probs, rewards, counts = _world()
    best = optimal_policy(probs, rewards, BETA)

    def below(*pairs: Any) -> float:
        found = answer(probs.copy(), counts.copy(), *pairs, BETA)
        policy = as_array(found) if found is not None else np.zeros(0)
        if policy.shape != probs.shape or not (policy >= 0).all() or abs(policy.sum() - 1) > 1e-4:
            raise NotYet(f"{show(found)}, where a policy is {probs.shape}, from 0 up, of sum 1")
        return BETA * kl_divergence(policy / policy.sum(), best)

    short = []
    for draw in range(3):
        rng = np.random.default_rng(40 + draw)
        a, b = rng.choice(len(probs), (2, PAIRS), p=probs)
        wins = rng.random(PAIRS) < 1 / (1 + np.exp(rewards[b] - rewards[a]))
        won, lost = np.where(wins, a, b), np.where(wins, b, a)
        short.append(below(won.copy(), lost.copy()))
    found = float(np.mean(short))
    if found <= AIM and below(lost, won) < BETA * kl_divergence(probs, best):
        told = "a good policy even with won and lost swapped"
        raise NotYet(told, "What is preferred is to come from `won` and `lost` alone.")
    return found


@exercise(points=4)
def prefer_words(answer: Any) -> Cases:
    """`answer(reference, counts, won, lost, beta)` is a policy near the best, from 400 pairs."""
    hint = (
        "400 pairs say little about each of 240 stories, and much about each word. Fit a reward "
        "to the words, all of them, and tilt the reference by it."
    )
    claim = f"at most {AIM} points below the best, over three draws of {PAIRS} pairs"
    told = "{0:.3f} points below the best"
    yield from measured(claim, answer, run=_below, aim=AIM, told=told, hint=hint)
