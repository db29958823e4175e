"""Checks for the chapter "Optimisation"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise

__all__ = ["optim_adamw", "optim_bytes", "optim_clip", "optim_schedule"]

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


@exercise(points=2)
def optim_adamw(answer: Callable[[Any, Any, Any, Any, int, float, float], Any]) -> Iterator[Case]:
    """Check one step of AdamW, the betas being 0.9 and 0.999.

    Example:
        >>> def adamw(w, g, m, v, t, lr, decay):
        ...     m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        ...     step = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        ...     return w - lr * (step + decay * w), m, v
        >>> bool(optim_adamw(adamw))
        True
        >>> bool(optim_adamw(lambda w, g, m, v, t, lr, decay: (w - lr * g, m, v)))
        False
    """
    zero = np.zeros(2)
    first = np.array([1.0, -1.0]), np.array([4.0, 0.5]), zero, zero, 1, 0.1
    last = (
        np.array([0.5, 2.0]), np.array([1.0, -3.0]), np.array([-2.0, 1.0]),
        np.array([4.0, 9.0]), 5, 0.01,
    )  # fmt: skip
    hint = "Means first, then the corrections, then the step; the decay is added to the step."
    claims = (
        ("the first step moves every weight by lr", (*first, 0.0)),
        ("decay pulls the weight, not the means", (*first, 0.5)),
        ("a later step", (*last, 0.0)),
        ("a later step, with decay", (*last, 0.1)),
    )
    for claim, given in claims:
        yield case(
            claim,
            answer,
            *given,
            expected=_adamw(*given),
            mistakes=_mistaken_steps(*given),
            hint=hint,
        )
    tiny = np.ones(2), np.array([0.0, 1e-8]), zero, zero, 1, 0.1, 0.0
    yield case(
        "gradients of 0 and 1e-8, where epsilon counts",
        answer,
        *tiny,
        expected=_adamw(*tiny),
        hint="epsilon, 1e-8, is added to the root, not under it. Without it, 0 is divided by 0.",
    )
    rng = np.random.default_rng(0)
    w, g, m = rng.normal(size=(3, 4, 3))
    given = w, g, m, m * m + 1, 7, 0.02, 0.1
    yield case("a matrix", answer, *given, expected=_adamw(*given), hint=hint)


def _adamw(
    w: Any, g: Any, m: Any, v: Any, t: int, lr: float, decay: float, correct: bool = True
) -> tuple[Any, Any, Any]:
    m, v = _BETA1 * m + (1 - _BETA1) * g, _BETA2 * v + (1 - _BETA2) * g * g
    c1, c2 = (1 - _BETA1**t, 1 - _BETA2**t) if correct else (1.0, 1.0)
    return w - lr * ((m / c1) / (np.sqrt(v / c2) + _EPS) + decay * w), m, v


def _mistaken_steps(
    w: Any, g: Any, m: Any, v: Any, t: int, lr: float, decay: float
) -> list[tuple[Any, str]]:
    """What comes of the usual wrong turns, with a hint for each."""
    right, new_m, new_v = _adamw(w, g, m, v, t, lr, decay)
    uncorrected = _adamw(w, g, m, v, t, lr, decay, correct=False)
    late = (new_m / (1 - _BETA1 ** (t + 1))) / (np.sqrt(new_v / (1 - _BETA2 ** (t + 1))) + _EPS)
    corrected = new_m / (1 - _BETA1**t), new_v / (1 - _BETA2**t)
    no_root = corrected[0] / (corrected[1] + _EPS)
    pulled = w - lr * decay * w
    found = [
        (_adamw(w, g + decay * w, m, v, t, lr, 0.0), "The decay went through the means (L2)."),
        ((pulled - right + w, new_m, new_v), "The step goes against the gradient."),
        (uncorrected, "The means begin at zero: divide them by 1 - beta**t before the step."),
        ((w - lr * (late + decay * w), new_m, new_v), "t counts from 1: the first step has t = 1."),
        ((w - lr * (no_root + decay * w), new_m, new_v), "Divide by the square root of v."),
        (
            (right, *corrected),
            "Return the means as they are; only the step uses the corrected ones.",
        ),
        (right, "Return three things: the weights and both means."),
        ((right, new_v, new_m), "First m, then v."),
    ]
    if decay:
        found += [
            (_adamw(w, g, m, v, t, lr, 0.0), "The decay is missing."),
            (
                (_adamw(w, g, m, v, t, lr, 0.0)[0] - decay * w, new_m, new_v),
                "The decay is multiplied by lr too.",
            ),
            ((right + 2 * lr * decay * w, new_m, new_v), "Decay pulls towards zero."),
        ]
    return found


@exercise(points=2)
def optim_schedule(answer: Callable[[int, float, int, int, int], Any]) -> Iterator[Case]:
    """Check a learning rate that rises, stays, and falls at the end.

    Example:
        >>> def rate(step, lr, warmup, total, cooldown):
        ...     return lr * min(1, (step + 1) / warmup, (total - step) / cooldown)
        >>> bool(optim_schedule(rate))
        True
        >>> bool(optim_schedule(lambda step, lr, warmup, total, cooldown: lr))
        False
    """
    shape = 2.0, 4, 20, 5
    rise = "In the warm-up the rate is lr (step + 1) / warmup."
    fall = "The rate is lr at step total - cooldown and would be 0 at step total."
    for claim, step, expected, mistakes, hint in (
        ("the first step", 0, 0.5, [(0.0, "A rate of 0 wastes the first step.")], rise),
        ("in the warm-up", 2, 1.5, [(1.0, "Steps count from 0, so this is the third.")], rise),
        ("the end of the warm-up", 3, 2.0, [], rise),
        ("the level part", 10, 2.0, [], "Between warm-up and cool-down the rate is lr."),
        ("the cool-down begins", 15, 2.0, [(1.6, fall)], fall),
        ("in the cool-down", 17, 1.2, [(0.8, fall)], fall),
        ("the last step", 19, 0.4, [(0.0, "That is the step after the last.")], fall),
    ):
        found = [*mistakes, (expected / 2, "Multiply by lr.")]
        yield case(claim, answer, step, *shape, expected=expected, mistakes=found, hint=hint)
    rng = np.random.default_rng(0)
    for step in sorted(rng.integers(0, 300, size=6).tolist()):
        expected = 0.003 * min(1, (step + 1) / 50, (300 - step) / 90)
        given = step, 0.003, 50, 300, 90
        yield case(f"step {step} of 300", answer, *given, expected=expected, hint=fall, rtol=1e-9)


@exercise(points=2)
def optim_clip(answer: Callable[[Any, float], Any]) -> Iterator[Case]:
    """Check the clipping of several gradients by one common norm.

    Example:
        >>> def clip(gradients, max_norm):
        ...     norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
        ...     return [g * min(1, max_norm / norm) for g in gradients]
        >>> bool(optim_clip(clip))
        True
        >>> bool(optim_clip(lambda gradients, max_norm: gradients))
        False
    """
    hint = "One norm for all of them, one factor for all of them."
    alone = "Compare the ratio of the two norms before and after: what changed it?"
    small = [np.array([0.3]), np.array([0.4])]
    up = "A norm below the limit stays: the factor is at most 1."
    mistakes: list[tuple[Any, str]] = [([np.array([3.0]), np.array([4.0])], up)]
    yield case("below the limit", answer, small, 5.0, expected=small, mistakes=mistakes, hint=up)
    gradients = [np.array([6.0, 0.0]), np.array([4.8, 6.4])]
    mistakes = [
        ([np.array([5.0, 0.0]), np.array([3.0, 4.0])], alone),
        (
            [np.array([5.0, 0.0]), np.array([4.8, 5.0])],
            "Each number was clipped by itself, so the direction has changed.",
        ),
        (gradients, "The norm of all four numbers is 10, and the limit is 5."),
        ([g * 5 / 14 for g in gradients], "Norms do not add; their squares do."),
        ([g * 5 / 100 for g in gradients], "Take the root of the sum of squares."),
        ([g / 10 for g in gradients], "The new norm is to be max_norm, not 1."),
    ]
    expected = [np.array([3.0, 0.0]), np.array([2.4, 3.2])]
    yield case(
        "keeps the direction", answer, gradients, 5.0, expected=expected, mistakes=mistakes,
        hint=hint,
    )  # fmt: skip
    gradients = [np.array([12.0]), np.array([1.0, 0.0]), np.array([0.0])]
    expected = [g / np.sqrt(145) for g in gradients]
    yield case("one of three is large", answer, gradients, 1.0, expected=expected, hint=alone)
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=shape) for shape in ((3, 4), (4,), (4, 2))]
    norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
    for limit in (0.5, 2.0, 50.0):
        expected = [g * min(1.0, limit / norm) for g in gradients]
        yield case(f"matrices, limit {limit:g}", answer, gradients, limit, expected=expected,
                   hint=hint)  # fmt: skip


@exercise(points=1)
def optim_bytes(answer: Callable[[int, str], Any]) -> Iterator[Case]:
    """Check the memory that training takes for each way of stepping, in float32.

    Example:
        >>> bool(optim_bytes(lambda n, name: n * {"sgd": 8, "momentum": 12, "adamw": 16}[name]))
        True
        >>> bool(optim_bytes(lambda n, name: 16 * n))
        False
    """
    arrays = {"sgd": 2, "momentum": 3, "adamw": 4}
    hints = {
        "sgd": "Plain SGD keeps nothing of its own: weights and gradients.",
        "momentum": "Momentum keeps one running sum for every weight.",
        "adamw": "AdamW keeps two running means for every weight.",
    }
    forgotten = "Do not forget the weights and their gradients, one number each."
    for n in (10, 124_439_808):
        for name, count in arrays.items():
            mistakes = [
                (n * count, "Bytes, not numbers: float32 takes 4."),
                (4 * n * (count - 1), forgotten),
                (4 * n * (count - 2), forgotten),
            ]
            yield case(
                f"{name}, {n:,} parameters", answer, n, name, expected=4 * n * count,
                mistakes=mistakes, hint=hints[name], show_expected=False,
            )  # fmt: skip
