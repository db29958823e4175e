"""The checks of "Why it is fast": right answers pass, empty and wrong ones do not."""

import math

import numpy as np
import pytest

from tinytorch.check import why_it_is_fast as check

WEIGHTS = 12 * 3 * 64**2 + 1000 * 64
COUNTS = {
    "weights in matrices": WEIGHTS,
    "FLOPs of a forward pass": 2 * WEIGHTS * 8 * 128,
    "FLOPs of a training step": 6 * WEIGHTS * 8 * 128,
    "scores of a head, tiled": 64 * 64 + 64 * 128,
    "bytes of weights read to decode one token": 4 * WEIGHTS,
    "bytes of weights read to decode one token of each of 8 texts": 4 * WEIGHTS,
}


def nothing(*_, **__):
    return None


def pieces(f, x, size):
    flat = x.reshape(-1)
    value = np.empty_like(flat)
    for start in range(0, flat.size, size):
        value[start : start + size] = f(flat[start : start + size])
    return value.reshape(x.shape)


def pieces_without_the_last(f, x, size):
    flat = x.reshape(-1)
    value = np.square(flat)
    for start in range(0, flat.size - size + 1, size):
        value[start : start + size] = f(flat[start : start + size])
    return value.reshape(x.shape)


def pieces_of_rows(f, x, size):
    value = np.empty_like(x)
    for start in range(0, len(x), size):
        value[start : start + size] = f(x[start : start + size])
    return value


def pieces_flat(f, x, size):
    return pieces(f, x.reshape(-1), size)


def pieces_by_memory(f, x, size):
    return pieces(f, np.ravel(x, order="K"), size).reshape(x.shape)


def pieces_in_float64(f, x, size):
    return pieces(f, x, size).astype(np.float64)


def pieces_in_place(f, x, size):
    x[...] = pieces(f, x, size)
    return x


def step(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    m *= beta1
    m += (1 - beta1) * g
    size = g * g
    size *= 1 - beta2
    v *= beta2
    v += size
    np.sqrt(v, out=size)
    size /= math.sqrt(1 - beta2**t)
    size += eps
    np.divide(m, size, out=size)
    size *= lr / (1 - beta1**t)
    w -= size
    return w


def step_as_given(w, m, v, g, t, root_of_v=True, square_g=True, lr=0.1, eps=1e-8):
    m *= 0.9
    m += (1 - 0.9) * g
    square = np.multiply(g, g, out=g if square_g else None)
    v *= 0.99
    v += (1 - 0.99) * square
    size = np.sqrt(v, out=v if root_of_v else None)
    size /= math.sqrt(1 - 0.99**t)
    size += eps
    w -= lr / (1 - 0.9**t) * m / size
    return w


def step_out_of_place(w, m, v, g, t):
    m = 0.9 * m + (1 - 0.9) * g
    v = 0.99 * v + (1 - 0.99) * g * g
    return w - 0.1 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)


def step_with_lost_means(w, m, v, g, t):
    w[...] = step_out_of_place(w, m, v, g, t)
    return w


def step_squaring_first(w, m, v, g, t):
    g = g * g
    m += (1 - 0.9) * (g - m)
    v += (1 - 0.99) * (g - v)
    w -= 0.1 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.99**t)) + 1e-8)
    return w


def step_uncorrected(w, m, v, g, t):
    return step(w, m, v, g, 1)


@pytest.mark.parametrize(
    ("exercise", "answer", "points"),
    [
        (check.fast_count, COUNTS, 1),
        (check.fast_pieces, pieces, 2),
        (check.fast_step, step, 3),
    ],
)
def test_a_right_answer_is_solved(exercise, answer, points):
    report = exercise(answer)
    assert report, report
    assert report.points == points


@pytest.mark.parametrize("exercise", [check.fast_count, check.fast_pieces, check.fast_step])
@pytest.mark.parametrize("answer", [..., nothing, None, 3, {}, lambda: None])
def test_an_empty_answer_is_not(exercise, answer):
    assert not exercise(answer)


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_that_is_missing_or_off_by_one_fails_there(name):
    for wrong in (..., COUNTS[name] + 1, str(COUNTS[name])):
        last = check.fast_count({**COUNTS, name: wrong}).cases[-1]
        assert not last.passed
        assert last.claim == name
        assert not last.expected


@pytest.mark.parametrize(
    ("name", "wrong", "hint"),
    [
        ("weights in matrices", 12 * 3 * 64**2, "output layer"),
        ("FLOPs of a forward pass", WEIGHTS * 8 * 128, "two FLOPs"),
        ("FLOPs of a training step", 4 * WEIGHTS * 8 * 128, "two products"),
        ("scores of a head, tiled", 128 * 128, "first block"),
        ("scores of a head, tiled", 128 * 129 // 2, "Within a block"),
        ("bytes of weights read to decode one token", WEIGHTS, "In bytes"),
        (
            "bytes of weights read to decode one token of each of 8 texts",
            32 * WEIGHTS,
            "serves all 8",
        ),
    ],
)
def test_a_plausible_miscount_gets_its_hint(name, wrong, hint):
    assert hint in check.fast_count({**COUNTS, name: wrong}).cases[-1].hint


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda f, x, size: f(x), "the sizes that f is given", "whole array"),
        (lambda f, x, size: pieces(f, x, 1), "the sizes that f is given", "call for each number"),
        (pieces_without_the_last, "the sizes that f is given", "last piece"),
        (lambda f, x, size: np.square(x), "the sizes that f is given", ""),
        (pieces_flat, "a larger shape", "shape of x"),
        (pieces_of_rows, "pieces of numbers, not of rows", "one long row"),
        (pieces_by_memory, "x.T, whose numbers lie in another order", "reshape both ways"),
        (pieces_in_float64, "float32 stays float32", "empty_like"),
    ],
)
def test_wrong_pieces_fail_where_they_are_wrong(wrong, claim, hint):
    last = check.fast_pieces(wrong).cases[-1]
    assert not last.passed
    assert last.claim == claim
    assert hint in last.hint


def test_pieces_that_overwrite_what_they_are_given_fail():
    assert "no longer" in check.fast_pieces(pieces_in_place).cases[-1].came


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (step_as_given, "the mean of squares v after one step", "array of your own"),
        (
            lambda *given: step_as_given(*given, square_g=False),
            "the mean of squares v after one step",
            "root",
        ),
        (
            lambda *given: step_as_given(*given, root_of_v=False),
            "the gradient is as it was",
            "belongs to the caller",
        ),
        (step_out_of_place, "the weights after one step", "w has not changed"),
        (step_with_lost_means, "the mean m after one step", "the arrays themselves"),
        (step_squaring_first, "the weights after one step", ""),
        (step_uncorrected, "w after six steps", "carry over"),
        (lambda w, m, v, g, t: w, "the weights after one step", "w has not changed"),
    ],
)
def test_a_wrong_step_fails_where_it_is_wrong(wrong, claim, hint):
    last = check.fast_step(wrong).cases[-1]
    assert not last.passed
    assert last.claim == claim
    assert hint in last.hint


def test_a_step_that_raises_is_reported():
    def broken(w, m, v, g, t):
        raise ZeroDivisionError("t - 1")

    assert "ZeroDivisionError" in check.fast_step(broken).cases[-1].came
