"""Checks for the chapter "Learning from the context"."""

from functools import cache
from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, NotYet, cases, measured, predictions
from tinytorch_book.exercises.drawn_numbers import generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import as_array, show
from tinytorch_book.stories import (
    dialect_posterior,
    dialect_table,
    draw_dialects,
    family_forecast,
    listed_forecast,
    speak,
)

__all__ = ["context_belief", "context_evidence", "context_forecast", "context_posterior",
           "context_worlds"]  # fmt: skip


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def context_belief(answer: Any) -> Cases:
    """Check predictions of what the two readers believe."""
    yield from predictions(answer, {
        "belief in each of 8 dialects, before the first word": (
            0.125, "All of them are as likely, and the beliefs sum to 1."),
        "belief in the 4 of the 8 that say lift, together, after one lift": (
            0.9, "Four times 0.9 against four times 0.1, with equal priors.",
            (0.225, "That is each of the four alone.")),
        "the listed reader's belief depends on the order of the words": (
            False, "A sum of logarithms has the same terms in any order."),
        "family reader: autumn rather than fall, after lift and lorry": (
            0.5, "Of all dialects, half of those that say lift and lorry say autumn.",
            (0.82, "That needs a word about the season itself, or a list of dialects.")),
        "family reader: lift rather than elevator, after one lift": (
            0.82, "0.9 that its dialect says lift, then 0.9 again, or 0.1 and 0.1.",
            (0.9, "That is the belief in the dialects that say lift. Their speakers stray, too."),
            (0.81, "A speaker whose dialect says elevator may stray again: add 0.1 times 0.1.")),
        "the listed reader can be surer of a stranger's dialect than of a listed one": (
            True, "It shares all its belief among its list, whether or not the dialect is on it.",
            ("True", "Without quotes.")),
    }, atol=0.006)  # fmt: skip


# The posterior -------------------------------------------------------------------------------


def _posterior(prior: Any, table: Any, words: Any) -> Any:
    scores = np.log(prior) + np.log(table)[:, words].sum(axis=1)
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def _dialects(count: int, words: int, length: int, seed: int) -> tuple[np.ndarray, ...]:
    rng = generator(seed)
    prior, table = rng.dirichlet(np.ones(count)), rng.dirichlet(np.full(words, 2.0), count)
    return prior, table, rng.integers(words, size=length)


@exercise(points=2, reference=_posterior, rules=[in_numpy], mistakes=[
    (lambda p, t, w: _posterior(np.ones(len(t)), t, w), "And what was believed before?"),
    (lambda p, t, w: p * t[:, w].prod(axis=1), "Beliefs sum to 1: divide by their sum."),
    (lambda p, t, w: _posterior(p, t, w[-1:]), "Every word counts, not the last one alone."),
    (lambda p, t, w: _posterior(p, t, np.unique(w)), "A word said twice counts twice."),
    (lambda p, t, w: _posterior(p, t, w) @ t, "That is the forecast: return the beliefs."),
    (lambda p, t, w: p * t[:, w].sum(axis=1) / (p @ t[:, w].sum(axis=1)),
        "Independent words: their probabilities are multiplied, not added."),
])  # fmt: skip
def context_posterior(answer: Any) -> Cases:
    """Check a posterior over dialects, from any prior and any number of words."""
    rule = "Prior times the probability of every word so far, divided by the sum over dialects."
    long = "The product is too small for a float: add logarithms, and subtract the largest sum."
    two, half = np.array([[0.9, 0.1], [0.1, 0.9]]), np.full(2, 0.5)
    yield from cases(answer, {
        "one word, two dialects": (rule, half, two, np.array([0])),
        "words that cancel": (rule, half, two, np.array([0, 1])),
        "a word said twice, and another one": (rule, half, two, np.array([0, 0, 1])),
        "a word said three times": (rule, half, two, np.array([0, 0, 0])),
        "an uneven prior": (rule, np.array([0.2, 0.8]), two, np.array([0])),
        "no words": ("What was believed before is still believed.", np.array([0.2, 0.8]), two,
                     np.zeros(0, dtype=int)),
        "seven dialects": (rule, *_dialects(7, 24, 5, 0)),
        "a thousand dialects": (rule, *_dialects(1000, 24, 12, 1)),
        "a single dialect": (rule, *_dialects(1, 4, 6, 2)),
        "two thousand words": (long, *_dialects(3, 24, 2000, 3)),
        "two thousand words that fit one far better": (long, half, two, np.zeros(2000, dtype=int)),
        "two thousand words that fit none well": (
            long, np.full(2, 0.5), np.array([[0.01, 0.99], [0.0101, 0.9899]]),
            np.zeros(2000, dtype=int)),
    })  # fmt: skip


# Better than the best ------------------------------------------------------------------------


def _peeking(table: Any, words: Any) -> Any:
    """The same, from the words up to each one, and that one too."""
    return listed_forecast(table, np.append(words, 0))[1:]


@exercise(points=2, reference=listed_forecast, rules=[in_numpy], mistakes=[
    (_peeking, "It counts the word that it is to forecast. Which words come before it?"),
    (lambda t, w: dialect_posterior(t, w), "These are the beliefs: weight what each expects."),
    (lambda t, w: _peeking(t, w)[:-1], "A forecast is missing: that of the first word."),
    (lambda t, w: np.concatenate([t[:1], _peeking(t, w)[:-1]]),
        "Before the first word all dialects are as likely."),
])  # fmt: skip
def context_forecast(answer: Any) -> Cases:
    """Check a repaired forecast of each word from the words before it."""
    rule = "Row i is the forecast of word i: only the words before it may be counted."
    first = "Row 0 knows nothing yet: the mean of all dialects."
    two = np.array([[0.9, 0.1], [0.1, 0.9]])
    yield from cases(answer, {
        "two dialects, three words": (rule, two, np.array([0, 0, 1])),
        "one word": (first, two, np.array([1])),
        "the same word again and again": (rule, two, np.zeros(6, dtype=int)),
        "seven dialects": (rule, *_dialects(7, 24, 20, 4)[1:]),
        "two hundred dialects": (rule, *_dialects(200, 24, 32, 5)[1:]),
        "a single dialect": (rule, *_dialects(1, 24, 5, 6)[1:]),
        "a long text": ("Subtract each row's largest score.", *_dialects(4, 24, 1000, 7)[1:]),
        "a long text that fits one far better": (
            "Subtract each row's largest score.", two, np.zeros(1000, dtype=int)),
    })  # fmt: skip


# The evidence --------------------------------------------------------------------------------


def _evidence(table: Any, words: Any) -> Any:
    return np.logaddexp.reduce(np.log(table)[:, words].sum(axis=1)) - np.log(len(table))


@exercise(points=2, reference=_evidence, rules=[in_numpy, no_loop], mistakes=[
    (lambda t, w: _evidence(t, w) + np.log(len(t)), "Each dialect has a prior of 1 / dialects."),
    (lambda t, w: np.log(t)[:, w].sum(axis=1).mean(),
        "The mean of the probabilities, not of their logarithms."),
    (lambda t, w: np.log(t.mean(axis=0))[w].sum(),
        "It is one speaker: the mean over dialects comes after the product over words."),
    (lambda t, w: np.log(t)[:, w].sum(axis=1).max(), "All dialects count, not the likeliest."),
    (lambda t, w: np.exp(_evidence(t, w)), "Return the logarithm."),
    (lambda t, w: -_evidence(t, w), "That is the surprise: the other sign."),
])  # fmt: skip
def context_evidence(answer: Any) -> Cases:
    """Check the log-probability of all words together."""
    rule = "The mean over dialects of the product over words, and then the logarithm."
    long = "The products are too small for a float: np.logaddexp adds what is given by its log."
    two = np.array([[0.9, 0.1], [0.1, 0.9]])
    yield from cases(answer, {
        "one word": (rule, two, np.array([0])),
        "twice the same": (rule, two, np.array([0, 0])),
        "two different ones": (rule, two, np.array([0, 1])),
        "no words": ("Nothing is sure to happen: log 1.", two, np.zeros(0, dtype=int)),
        "seven dialects": (rule, *_dialects(7, 24, 9, 8)[1:]),
        "a single dialect": (rule, *_dialects(1, 24, 9, 9)[1:]),
        "a thousand dialects": (rule, *_dialects(1000, 24, 32, 10)[1:]),
        "two thousand words": (long, *_dialects(5, 24, 2000, 11)[1:]),
    })  # fmt: skip


# Two worlds ----------------------------------------------------------------------------------

AIM = 0.7


@cache
def _worlds() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A table of eight dialects; words of speakers, and the best forecasts; who is a stranger."""
    first, rng = map(np.random.default_rng, (12, 13))  # others would decide by luck
    every = draw_dialects(4096, first)
    table, stranger = dialect_table(every[:8]), rng.permutation(np.arange(600) % 2 == 1)
    chosen = np.where(stranger, rng.integers(8, 4096, size=600), rng.integers(8, size=600))
    words = speak(every[chosen], 32, rng)
    listed, family = listed_forecast(table, words), family_forecast(words)
    return table, words, np.where(stranger[:, None, None], family, listed), stranger


def _given(answer: Any, words: np.ndarray) -> np.ndarray:
    """The forecasts of an answer, checked."""
    table, _, best, _ = _worlds()
    given = answer(table.copy(), words.copy())
    if given is None or np.shape(given := as_array(given)) != best.shape:
        raise NotYet(f"{show(given)}, where the forecasts are {best.shape}")
    if not ((given > 0).all() and np.allclose(given.sum(axis=-1), 1, atol=1e-4)):
        raise NotYet("forecasts that are not above 0, or do not sum to 1")
    return np.asarray(given, dtype=float)


def _above(answer: Any) -> tuple[float, ...]:
    """The excess over the best reader of each world, in nats for 32 words: the larger first."""
    _, words, best, stranger = _worlds()
    given, later = _given(answer, words), words.copy()
    later[:, 16:] ^= 1  # the other name of each thing
    if not np.allclose(_given(answer, later)[:, :17], given[:, :17], atol=1e-6):
        told = "forecasts that change with the words that they are to forecast"
        raise NotYet(told, "The weights at word i may use only words before i.")
    excess = (best * np.log(best / given)).sum(axis=(1, 2))
    both = float(excess[~stranger].mean()), float(excess[stranger].mean())
    return max(both), *both


@exercise(points=4)
def context_worlds(answer: Any) -> Cases:
    """`answer(table, words)` forecasts speakers of listed dialects and of any others."""
    hint = (
        "Which of the two readers has foreseen the words so far better? Believe it more: its prior "
        "times the probability that it has given to all of them."
    )
    claim = f"at most {AIM} nats above the best reader for 32 words, in both worlds"
    told = "{1:.2f} above the listed reader, {2:.2f} above the family reader"
    yield from measured(claim, answer, run=_above, aim=AIM, told=told, hint=hint)
