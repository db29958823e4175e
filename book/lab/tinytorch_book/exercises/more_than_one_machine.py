"""Checks for the chapter "More than one machine"."""

from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, case, cases, one_of, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import no_loop

__all__ = ["ranks_average", "ranks_predict", "ranks_scatter", "ranks_sharded"]

_SIZE = 124_439_808


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def ranks_predict(answer: Any) -> Cases:
    """Check what eight ranks send in a step of GPT-2 small, in float32."""
    whole = 4 * _SIZE
    ring = "A chunk is an eighth of the gradient, and each rank sends 2 (8 - 1) of them."
    yield from predictions(answer, {
        "bytes that each rank sends in a step": (2 * 7 * whole // 8, ring,
            (2 * 7 * _SIZE // 8, "A number in float32 takes 4 bytes."),
            (7 * whole // 8, f"That is the reduce-scatter; the all-gather sends as much. {ring}"),
            (2 * whole, f"That is the limit for many ranks. {ring}")),
        "messages that each rank sends in a step": (14, "2 (n - 1), one at every step of the ring.",
            (7, "The chunks go round twice: to be added up, and to be handed on."),
            (16, "A chunk need not come back to where it started: n - 1 steps, twice.")),
        "bytes that it would never exceed, however many ranks": (2 * whole,
            "(n - 1) / n stays under 1.",
            (whole, "Each chunk goes round twice: 2 (n - 1) / n.")),
        "bytes that reach rank 0 if all others send it their gradient": (7 * whole,
            "Seven others, each with a whole gradient.",
            (8 * whole, "Rank 0 does not send to itself.")),
        "bytes of AdamW's two means in each rank, sharded": (2 * whole // 8,
            "Two means of 4 bytes for an eighth of the parameters.",
            (2 * whole, "That is all of it; a rank keeps an eighth."),
            (whole // 8, "AdamW keeps two means.")),
    })  # fmt: skip


# Averages ------------------------------------------------------------------------------------


def _average(gradients: Any, counts: Any) -> Any:
    pairs = zip(gradients, counts, strict=True)
    return sum(count * g for g, count in pairs if count) / sum(counts)


@exercise(points=2, reference=_average, mistakes=[
    (lambda gradients, counts: sum(n * g for g, n in zip(gradients, counts, strict=True))
        / sum(counts), "0 times NaN is NaN: leave out a rank without tokens."),
    (lambda gradients, counts: sum(gradients) / len(gradients),
        "A token of a small share must not count more: weight each gradient by its count."),
    (lambda gradients, counts: sum(n * g for g, n in zip(gradients, counts, strict=True) if n),
        "Divide by the number of all tokens."),
    (lambda gradients, counts: sum(n * g for g, n in zip(gradients, counts, strict=True) if n)
        / len(gradients), "Divide by the number of all tokens, not of the ranks."),
])  # fmt: skip
def ranks_average(answer: Any) -> Cases:
    """Check an average of gradients of shares that hold different numbers of tokens."""
    hint = "The sum of count times gradient, over the sum of the counts."
    empty = "A rank without tokens has nothing to say; its NaN must not enter the sum."
    one, two, three = drawn((3,), (3,), (3,))
    lost = np.full(3, np.nan)
    yield from cases(answer, {
        "equal shares": (hint, [one, two], [4, 4]),
        "three tokens and one": (hint, [np.array([-0.5, 0.5]), np.array([0.5, -0.5])], [3, 1]),
        "three ranks": (hint, [one, two, three], [5, 1, 10]),
        "a rank without tokens": (empty, [one, lost, three], [2, 0, 6]),
        "the first rank without tokens": (empty, [lost, two, three], [0, 7, 1]),
        "a NaN of a rank that has tokens is not hidden":
            ("Leave out what has no tokens, not what is NaN.", [one, lost, three], [2, 3, 6]),
        "five ranks": (hint, drawn(*[(3,)] * 5, seed=2), [9, 0, 1, 4, 2]),
        "a matrix": (hint, drawn((2, 3), (2, 3), seed=1), [1, 2]),
    })  # fmt: skip


# A reduce-scatter ----------------------------------------------------------------------------


def _scatter(gradients: Any) -> Any:
    return gradients.mean(axis=0).reshape(len(gradients), -1)


_WRONG_SCATTERS = [
    (lambda g: g.sum(axis=0).reshape(len(g), -1), "The average, not the sum."),
    (lambda g: g.mean(axis=0).reshape(-1, len(g)), "n rows, one for each rank."),
    (lambda g: g.mean(axis=0).reshape(-1, len(g)).T, "A part is a piece without gaps."),
    (lambda g: g.mean(axis=0), "Cut it into n rows."),
    (lambda g: g.reshape(len(g), len(g), -1).mean(axis=1), "Average over the ranks, axis 0."),
]


@exercise(points=1, reference=_scatter, mistakes=_WRONG_SCATTERS, rules=[no_loop])
def ranks_scatter(answer: Any) -> Cases:
    """Check a reduce-scatter in one process: who has which part of the average."""
    hint = "Average over the ranks, then n parts of N / n numbers, in their order."
    yield from cases(answer, {
        "two ranks, four numbers": (hint, np.array([[1.0, 2, 3, 4], [3.0, 4, 5, 6]])),
        "three ranks, six numbers": (hint, *drawn((3, 6))),
        "one rank": (hint, *drawn((1, 5), seed=1)),
        "four ranks, four numbers": (hint, *drawn((4, 4), seed=2)),
        "twelve ranks": (hint, *drawn((12, 600))),
    })  # fmt: skip


# A sharded optimiser -------------------------------------------------------------------------


def _sharded(weights: Any, gradients: Any, velocities: Any, lr: float, beta: float) -> Any:
    n = len(gradients)
    mean = np.split(sum(gradients) / n, n)
    kept = [beta * v + g for v, g in zip(velocities, mean, strict=True)]
    return weights - lr * np.concatenate(kept), kept


def _own_gradients(weights: Any, gradients: Any, velocities: Any, lr: float, beta: float) -> Any:
    """Each rank takes its own gradient's part."""
    n = len(gradients)
    own = [np.split(g, n)[r] for r, g in enumerate(gradients)]
    kept = [beta * v + g for v, g in zip(velocities, own, strict=True)]
    return weights - lr * np.concatenate(kept), kept


@exercise(points=2, reference=_sharded, mistakes=[
    (_own_gradients, "Average over the ranks first: each needs all the others' gradients."),
    (lambda w, g, v, lr, beta: _sharded(w, [x * len(g) for x in g], v, lr, beta),
        "Divide by the number of ranks: the average, not the sum."),
    (lambda w, g, v, lr, beta: (_sharded(w, g, v, lr, beta)[0], v),
        "Return the velocities after the step."),
    (lambda w, g, v, lr, beta: _sharded(w, g, [0 * x for x in v], lr, beta),
        "The old velocity counts, times beta."),
    (lambda w, g, v, lr, beta: (2 * w - _sharded(w, g, v, lr, beta)[0],
        _sharded(w, g, v, lr, beta)[1]), "w goes down: minus lr v."),
])  # fmt: skip
def ranks_sharded(answer: Any) -> Cases:
    """Check a step of SGD with momentum whose velocities are divided among the ranks."""
    hint = "v = beta v + average's part, w's part - lr v; then all parts end to end."
    toy = np.zeros(4), [np.array([1.0, 1, 1, 1]), np.array([3.0, 3, 3, 3])]
    moving = [np.array([1.0, 0]), np.array([0.0, 1])]
    w, *g = drawn((6,), (6,), (6,), (6,))
    three = w, g, drawn((2,), (2,), (2,), seed=1), 0.1, 0.9
    for claim, name, given in (
        ("the weights, two ranks at rest", "weights", (*toy, [np.zeros(2)] * 2, 0.5, 0.9)),
        ("the weights, two ranks", "weights", (*toy, moving, 0.5, 0.9)),
        ("the velocities, two ranks", "velocities", (*toy, moving, 0.5, 0.9)),
        ("the weights, three ranks", "weights", three),
        ("the velocities, three ranks", "velocities", three),
        ("one rank is plain SGD", "weights", (w, g[:1], [g[1]], 0.2, 0.5)),
    ):
        yield case(claim, answer, *given, part=one_of(name, "weights", "velocities"), hint=hint)
