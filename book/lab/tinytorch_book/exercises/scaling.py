"""Checks for the chapter "Scaling"."""

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
from tinytorch_book.exercises.rules import no_loop
from tinytorch_book.exercises.values import show
from tinytorch_book.experiments.scaling_runs import BATCH_SIZE, scaling_model, scaling_run
from tinytorch_book.experiments.story_gpt import SEQ_LEN

__all__ = ["scaling_budget", "scaling_frontier", "scaling_interval", "scaling_power",
           "scaling_predict"]  # fmt: skip


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def scaling_predict(answer: Any) -> Cases:
    """Check what a story GPT of width 48 and depth 2 costs, and GPT-3."""
    d, tokens = 48, 1000 * 8 * 112
    blocks, table = 2 * (12 * d * d + 13 * d) + 2 * d, 512 * d
    count, factor = blocks + table, 10**-0.34
    yield from predictions(answer, {
        "parameters": (count,
            "12 d^2 + 13 d in each of the 2 blocks, 2 d in the last norm, 512 d in the table.",
            (blocks, "The token table has 512 d numbers more."),
            (count + table, "The table is the output layer too: count it once."),
            (2 * 12 * d * d + table, "Biases and norms are parameters as well: 13 d a block, "
                                     "and 2 d at the end.")),
        "tokens of 1,000 steps": (tokens, "Each step reads 8 windows of 112 tokens.",
            (1000 * 112, "A step reads 8 windows."), (8000, "A window has 112 tokens.")),
        "FLOPs of these steps, by 6 N D": (6 * count * tokens,
            "Six for each parameter and token.",
            (2 * count * tokens, "Two are the forward pass; the backward pass takes four more.")),
        "bytes of weights, gradients and AdamW's means": (16 * count,
            "Four numbers for each parameter, 4 bytes each.",
            (4 * count, "That is the weights alone."),
            (12 * count, "AdamW keeps two means for each parameter.")),
        "A / N**0.34 after N has grown tenfold, over before": (factor,
            "A cancels: what remains is 10 to the power of -0.34.",
            (1 / factor, "It falls: after over before is less than 1."),
            (round(factor, 3), "Right, but rounded: let Python compute 10 to that power."),
            (1 - factor, "That is by how much it falls; what is left of it?")),
        "FLOPs of GPT-3's training, by 6 N D": (6 * 175e9 * 300e9,
            "175 billion parameters, 300 billion tokens.",
            (175e9 * 300e9, "Six for each parameter and token."),
            (2 * 175e9 * 300e9, "Two are the forward pass; the backward pass takes four more.")),
    })  # fmt: skip


# What is left above a known floor ------------------------------------------------------------


def _power(x: Any, losses: Any, floor: float) -> Any:
    above = losses > floor
    slope, height = np.polyfit(np.log(x[above]), np.log(losses[above] - floor), 1)
    return np.exp(height), -slope


@exercise(points=2, reference=_power, mistakes=[
    (lambda x, losses, floor: _power(x, losses, 0.0),
        "Subtract the floor from the losses before you take logarithms."),
    (lambda *given: (np.log(_power(*given)[0]), _power(*given)[1]),
        "The height of the line is log B."),
    (lambda *given: (_power(*given)[0], -_power(*given)[1]),
        "The line falls: its slope is minus beta."),
    (lambda *given: _power(*given)[::-1], "Return B first, then beta."),
])  # fmt: skip
def scaling_power(answer: Any) -> Cases:
    """Check a power law fitted to what is left above a known floor."""
    line = "log(L - E) = log B - beta log x: a straight line through the logarithms."
    just = "A loss above the floor counts, however near it comes: leave out those at or below it."
    leave = "A loss at or below the floor has no logarithm left: leave that run out."
    x = np.geomspace(1e3, 1e6, 7)
    noise = np.exp(0.05 * drawn(7)[0])
    exact, noisy = 0.5 + 20 / x**0.4, 0.1 + 3 * noise / x**0.25
    below = np.array([2.0, 1.0, 0.6, 0.5, 0.45])
    order, near = generator().permutation(7), 0.3 * noise / x**0.25
    for claim, given, hint in (
        ("exact losses", (x, exact, 0.5), line),
        ("noisy losses", (x, noisy, 0.1), line),
        ("a floor of 0", (x, noisy, 0.0), line),
        ("losses at and below the floor", (np.geomspace(10, 1e5, 5), below, 0.5), leave),
        ("in another order", (x[order], noisy[order], 0.1), line),
        ("runs that come very near the floor", (x, 2 + 1e-7 * near, 2.0), just),
        ("two runs", (x[:2], noisy[:2], 0.1), line),
    ):
        for name in ("B", "beta"):
            part = one_of(name, "B", "beta")
            yield case(f"{name}, {claim}", answer, *given, part=part, hint=hint, atol=0)


# An interval ---------------------------------------------------------------------------------

# The ends of a right interval from n samples are known to about 0.68 / sqrt(n) widths.
_FEW, _NEAR, _MANY, _NEARER = 500, 0.17, 20_000, 0.025


def _slopes(x: Any, y: Any, samples: int, rng: Any) -> Any:
    rows = rng.integers(len(x), size=(samples, len(x)))
    across = x[rows] - x[rows].mean(axis=1, keepdims=True)
    return (across * y[rows]).sum(axis=1) / (across**2).sum(axis=1)


def _interval(*given: Any) -> Any:
    return np.quantile(_slopes(*given), [0.025, 0.975])


def _ends(answer: Any, x: Any, y: Any, samples: int, seed: int = 0) -> Any:
    """The two ends, and four fifths of the width between them."""
    found = answer(x, y, samples, np.random.default_rng(seed))
    if np.shape(found) != (2,):
        raise NotYet(f"{show(found)}, which is not two ends")
    return np.append(found, 0.8 * (found[1] - found[0]))


def _within(near: float, x: Any, y: Any) -> Any:
    """The options of a case: what is right, and how far from it an end may be, in widths."""
    right = np.mean([_ends(_interval, x, y, _MANY, seed) for seed in range(1, 6)], axis=0)
    return alone(expected=right, rtol=0.0, atol=near * (right[1] - right[0]))


def _counting() -> Any:
    """A generator that counts the numbers that it hands out."""

    class Counted(np.random.Generator):  # here: the import must not load numpy.random
        handed_out = 0

        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name.startswith("_") or not callable(found):
                return found

            def counted(*args: Any, **options: Any) -> Any:
                result = found(*args, **options)
                self.handed_out += np.size(result)
                return result

            return counted

    return Counted(np.random.PCG64(0))


def _so_many(answer: Any, x: Any, y: Any, *counts: int) -> bool:
    """Whether the numbers that the generator hands out are in proportion to the samples."""
    used = []
    for samples in counts:
        rng = _counting()
        answer(x, y, samples, rng)
        used.append(rng.handed_out)
    if not used[0] or used[0] * counts[1] != used[1] * counts[0]:
        one, other = (
            f"{n:,} for {samples:,} samples" for n, samples in zip(used, counts, strict=True)
        )
        raise NotYet(f"numbers drawn from `rng`: {one}, {other}")
    return True


@exercise(points=2)
def scaling_interval(answer: Any) -> Cases:
    """Check a bootstrap interval of a slope, in units of its width and to a fiftieth of it."""
    again = (
        "A sample is as large as the data, drawn with replacement: some rows twice, some never. x "
        "and y come from the same rows. The interval holds 95 % of the slopes."
    )
    ends = "Of the slopes of all these samples 2.5 % lie below the interval and 2.5 % above it."
    x, noise, more = np.split(np.random.default_rng(0).normal(size=100), [20, 40])
    wide = np.linspace(0, 3, 60)
    slope_2, small = (x, 2 * x + noise), (wide, 1e-6 * (1 - wide + 0.3 * more))
    outliers = wide, wide + (np.arange(60) % 9 == 4) * 5
    ten = wide[:10], 2 * wide[:10] + 0.15 * more[30:40]  # a row too few, or too many, shows
    same = "Every slope is the same: each sample has all rows, in another order."
    yield case("slopes that differ", answer, *slope_2, _FEW, expected=True, hint=same,
               run=lambda *given: not abs(_ends(*given)[2]) <= 1e-9)  # fmt: skip
    yield from cases(answer, {
        "the interval of a slope of 2": (again, *slope_2, _FEW, _within(_NEAR, *slope_2)),
        "a small slope, 60 runs": (again, *small, _FEW, _within(_NEAR, *small)),
        "outliers": (again, *outliers, _FEW, _within(_NEAR, *outliers)),
        f"{_MANY:,} samples of 10 runs": (ends, *ten, _MANY, _within(_NEARER, *ten)),
    }, run=_ends, part=("low, high, four fifths of the distance", lambda found: found), mistakes=[
        (lambda *given: (s := _slopes(*given)).mean() + np.array([-2, 2]) * s.std() / len(s) ** 0.5,
            "The mean slope is that certain; the slopes themselves lie further apart."),
        (lambda *given: _interval(*given)[::-1], "The lower end comes first.")])  # fmt: skip
    own = "Draw as many samples as `samples` says, and all of them from the `rng` that is given."
    yield case("so many samples, from the rng", answer, x, noise, 41, 2000, run=_so_many,
               expected=True, hint=own)  # fmt: skip


# The frontier --------------------------------------------------------------------------------


def _frontier(losses: Any) -> Any:
    return losses == np.minimum.accumulate(losses)


@exercise(points=1, reference=_frontier, rules=[no_loop])
def scaling_frontier(answer: Any) -> Cases:
    """Check which runs no cheaper one beats; they come in the order of their cost."""
    hint = "Compare each loss with the lowest so far, itself included."
    mistakes = [
        (lambda losses: np.flatnonzero(_frontier(losses)), "For each run, True or False."),
        (lambda losses: losses == np.minimum.accumulate(losses[::-1])[::-1],
            "The cheapest run comes first: look at those before, not after."),
        (lambda losses: losses == losses.min(), "Only cheaper runs count, not all of them."),
        (lambda losses: np.append(True, np.diff(losses) <= 0),
            "Compare with all cheaper runs, not with the one before."),
        (lambda losses: np.minimum.accumulate(losses),
            "That is the frontier's loss; which runs are on it?"),
    ]  # fmt: skip
    yield from cases(answer, {
        "a worse one between": (hint, np.array([1.0, 0.5, 0.7, 0.6, 0.55])),
        "three that fall": (hint, np.array([3.0, 2.0, 1.0])),
        "the cheapest is the best": (hint, np.array([1.0, 2.0, 3.0])),
        "as good as a cheaper one": ("None is lower: it counts.", np.array([2.0, 1.0, 1.0])),
        "a hundred runs": (hint, drawn(100)[0]),
        "a hundred that rise a little between": (hint, 1e-9 * drawn(100)[0] - np.arange(100) // 9),
        "as good as the first, after a better one": (hint, np.array([1.0, 0.5, 1.0])),
        "a single run": ("Nothing is cheaper than the first.", np.array([4.0])),
    }, mistakes=mistakes)  # fmt: skip


# The best model for a budget -----------------------------------------------------------------

BUDGET, AIM = 1.6e10, 0.255
_ARGUMENTS = ("embed_dim", "num_layers", "steps", "lr")


def _bought(answer: Any, budget: float) -> tuple[float, float]:
    """The loss of the run that is asked for, and its share of the budget."""
    wanted = answer(budget)
    if not isinstance(wanted, dict) or set(wanted) != set(_ARGUMENTS):
        raise NotYet(f"{show(wanted)}, which is not a dictionary of {', '.join(_ARGUMENTS)}")
    width, depth, steps, lr = (wanted[name] for name in _ARGUMENTS)
    parameters = scaling_model(width, depth).num_parameters()["total"]
    share = 6 * parameters * steps * BATCH_SIZE * SEQ_LEN / budget
    if share > 1:
        raise NotYet(f"{share:.2f} times the budget")
    return scaling_run(width, depth, steps, lr=lr)["loss"], share


@exercise(points=4)
def scaling_budget(answer: Any) -> Cases:
    """`answer(budget)` names a run of at most so many FLOPs: its width, depth, steps and rate."""
    hint = (
        "6 N D must fit the budget. Which sizes have the lowest loss at about this cost in the "
        "table? And which rates were never tried for them?"
    )
    yield from measured(f"a loss of at most {AIM}, {BUDGET:g} FLOPs", answer, BUDGET, run=_bought,
                        aim=AIM, told="a loss of {0:.4f}, {1:.0%} of the budget", hint=hint,
                        show_expected=False)  # fmt: skip
