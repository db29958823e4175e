"""Checks for the chapter "Why it is fast"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, NotYet, case, exercise

__all__ = ["fast_count", "fast_pieces", "fast_step"]


# Counts --------------------------------------------------------------------------------------


@exercise(points=1)
def fast_count(answer: Any) -> Iterator[Case]:
    """Check the operations and bytes of a GPT with V = 1000, d = 64 and 3 layers.

    Example:
        >>> right = {
        ...     "weights in matrices": 211456,
        ...     "FLOPs of a forward pass": 433061888,
        ...     "FLOPs of a training step": 1299185664,
        ...     "scores of a head, tiled": 12288,
        ...     "bytes of weights read to decode one token": 845824,
        ...     "bytes of weights read to decode one token of each of 8 texts": 845824,
        ... }
        >>> bool(fast_count(right))
        True
        >>> bool(fast_count({}))
        False
    """
    for name, expected, hint, mistakes in _counts():
        counted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(
            name, counted, expected=expected, hint=hint, mistakes=mistakes, show_expected=False,
            rtol=1e-12,
        )  # fmt: skip


def _counts() -> Iterator[tuple[str, int, str, list[tuple[Any, str]]]]:
    blocks, tokens = 12 * 3 * 64**2, 8 * 128
    weights = blocks + 1000 * 64
    yield (
        "weights in matrices",
        weights,
        "12 d^2 in each of the 3 layers, and V d in the output layer.",
        [
            (blocks, "The output layer compares with every token of the vocabulary: V d more."),
            (blocks + 2 * 1000 * 64, "The table is the output layer: count it once."),
            (12 * 64**2 + 1000 * 64, "There are 3 layers."),
        ],
    )
    forward = 2 * weights * tokens
    yield (
        "FLOPs of a forward pass",
        forward,
        "A product and a sum for each weight and each of the 8 * 128 tokens.",
        [
            (forward // 2, "A product and a sum: two FLOPs."),
            (2 * weights, "For each of the 8 * 128 tokens."),
            (forward // 8, "There are 8 texts."),
            (3 * forward, "That is forward and backward; here forward alone is asked for."),
        ],
    )
    yield (
        "FLOPs of a training step",
        3 * forward,
        "Forward, and two products of the same size backward.",
        [
            (2 * forward, "Backward needs two products: for the input and for the weights."),
            (6 * weights, "For each of the 8 * 128 tokens."),
        ],
    )
    yield (
        "scores of a head, tiled",
        64 * 64 + 64 * 128,
        "Two blocks of 64 queries; each is given the keys up to its own last query.",
        [
            (128 * 128, "The first block is not given the keys of the second."),
            (128 * 129 // 2, "That is what is needed. Within a block all pairs are computed."),
            (2 * 64 * 64, "The second block sees the keys of the first one too."),
        ],
    )
    of_eight = [(32 * weights, "Read once, a weight serves all 8 texts.")]
    for name, mistakes in (
        ("bytes of weights read to decode one token", []),
        ("bytes of weights read to decode one token of each of 8 texts", of_eight),
    ):
        common = [(weights, "In bytes: a number in float32 has 4."), (2 * weights, "float32.")]
        yield name, 4 * weights, "Every weight once, 4 bytes each.", [*common, *mistakes]


# In pieces -----------------------------------------------------------------------------------


@exercise(points=2)
def fast_pieces(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check an elementwise function that is applied to pieces of an array.

    Example:
        >>> def right(f, x, size):
        ...     flat, parts = x.reshape(-1), []
        ...     for start in range(0, flat.size, size):
        ...         parts.append(f(flat[start : start + size]))
        ...     return np.concatenate(parts).reshape(x.shape)
        >>> bool(fast_pieces(right))
        True
        >>> bool(fast_pieces(lambda f, x, size: f(x)))
        False
    """
    x = np.array([1.0, -2.0, 3.0, 0.5, 4.0])
    hint = "Apply f to x[0:2], then to x[2:4], and so on, and keep what comes."
    yield case("five numbers in pieces of two", _valued(answer), x, 2, expected=x * x, hint=hint)
    hint = "range(0, x.size, size) gives where the pieces start; the last may be shorter."
    yield case(
        "the sizes that f is given", _sizes_given(answer), x, 2, expected=[2, 2, 1], hint=hint,
        mistakes=[
            ([5], "f was given the whole array; it must never see more than `size` numbers."),
            ([1] * 5, "Correct, and a call for each number: take `size` at a time."),
            ([2, 2], "The last piece is missing."),
        ],
    )  # fmt: skip
    rng = np.random.default_rng(0)
    table = rng.normal(size=(7, 3, 5))
    hint = "x.reshape(-1) is one long row; give the result the shape of x in the end."
    yield case("a larger shape", _valued(answer), table, 16, expected=table * table, hint=hint)
    yield case(
        "pieces of numbers, not of rows", _sizes_given(answer), table, 16,
        expected=[16] * 6 + [9], hint=hint,
    )  # fmt: skip
    matrix = rng.normal(size=(4, 6))
    hint = "A transposed array has the same numbers in another order: reshape both ways."
    yield case(
        "x.T, whose numbers lie in another order", _valued(answer, turn=True), matrix, 5,
        expected=matrix.T**2, hint=hint,
    )  # fmt: skip
    small = np.ones(3, dtype=np.float32)
    yield case(
        "float32 stays float32", answer, np.square, small, 2, expected="float32",
        part=("dtype", lambda value: str(value.dtype)),
        hint="np.empty_like(x) has the shape and the dtype of x; np.empty is float64.",
    )  # fmt: skip


def _valued(answer: Any, turn: bool = False) -> Any:
    """The answer as a function of the array and the size alone, with f the square."""
    if answer is ... or not callable(answer):
        return answer

    def pieces(x: np.ndarray, size: int) -> Any:
        return answer(lambda part: np.asarray(part) ** 2, x.T if turn else x, size)

    return pieces


def _sizes_given(answer: Any) -> Any:
    """How many numbers f is given in each call, instead of the result."""
    if answer is ... or not callable(answer):
        return answer

    def pieces(x: np.ndarray, size: int) -> Any:
        sizes: list[int] = []

        def f(part: Any) -> Any:
            sizes.append(int(np.size(part)))
            return np.asarray(part) ** 2

        answer(f, x, size)
        if not sizes:
            raise NotYet("f was never called")
        return sizes

    return pieces


# A step in place -----------------------------------------------------------------------------


@exercise(points=3)
def fast_step(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check a step of Adam that changes its arrays in place, and no others.

    Example:
        >>> def right(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
        ...     m += (1 - beta1) * (g - m)
        ...     v += (1 - beta2) * (g * g - v)
        ...     w -= lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
        ...     return w
        >>> bool(fast_step(right))
        True
        >>> bool(fast_step(lambda w, m, v, g, t: w))
        False
    """
    gradients = np.array([[2.0, -1.0, 0.5]])
    for name, claim, hint in (
        ("w", "the weights after one step", "w - lr * m_hat / (sqrt(v_hat) + eps), into w."),
        ("m", "the mean m after one step", "beta1 * m + (1 - beta1) * g, with g as it came."),
        (
            "v",
            "the mean of squares v after one step",
            "The next step reads v again. Put its root into an array of your own.",
        ),
        (
            "g",
            "the gradient is as it was",
            "g belongs to the caller. Write g * g into an array of your own.",
        ),
    ):
        mistakes = [(np.zeros(3), "Change the arrays themselves: m *= ..., not m = m * ...")]
        if name == "w":
            start = np.array([1.0, 2.0, 3.0])
            mistakes = [(start, "w has not changed: write w -= ..., not w = w - ...")]
        yield case(
            claim, _after_steps(answer, name), gradients, expected=_expected(gradients)[name],
            hint=hint, mistakes=mistakes,
        )  # fmt: skip
    many = np.random.default_rng(0).normal(size=(6, 3))
    hint = "Only w, m and v carry over from step to step: each must hold what its name says."
    for name in ("w", "v"):
        claim = f"{name} after six steps"
        expected = _expected(many)[name]
        yield case(claim, _after_steps(answer, name), many, expected=expected, hint=hint)


def _expected(gradients: np.ndarray) -> dict[str, np.ndarray]:
    w, m, v, g = np.array([1.0, 2.0, 3.0]), np.zeros(3), np.zeros(3), gradients[-1]
    for t, g in enumerate(gradients, start=1):
        m = 0.9 * m + (1 - 0.9) * g
        v = 0.99 * v + (1 - 0.99) * g * g
        w = w - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    return {"w": w, "m": m, "v": v, "g": g}


def _after_steps(answer: Any, name: str) -> Any:
    """What is in one of the arrays after a step with each of the gradients."""
    if answer is ... or not callable(answer):
        return answer

    def run(gradients: np.ndarray) -> Any:
        arrays = {"w": np.array([1.0, 2.0, 3.0]), "m": np.zeros(3), "v": np.zeros(3)}
        for t, g in enumerate(gradients, start=1):
            arrays["g"] = g.copy()
            result = answer(*arrays.values(), t)
            if not math.isfinite(float(np.sum(arrays["w"]))):
                raise NotYet("numbers that are not finite")
        return None if result is None or result is ... else arrays[name]

    return run
