"""Checks for the chapter "Why it is fast"."""

import tracemalloc
from functools import partial
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.tensor import Tensor
from tinytorch_book.exercises.cases import Cases, NotYet, case, measured, one_of, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.values import same

__all__ = ["fast_count", "fast_pieces", "fast_step", "fast_vocabulary"]


# Counts --------------------------------------------------------------------------------------


@exercise(points=1)
def fast_count(answer: Any) -> Cases:
    """Check the operations and bytes of a GPT with V = 1000, d = 64 and 3 layers."""
    blocks, tokens = 12 * 3 * 64**2, 8 * 128
    weights = blocks + 1000 * 64
    forward = 2 * weights * tokens
    for_each, once = "For each of the 8 * 128 tokens.", "Every weight once, 4 bytes each."
    in_bytes = [(n * weights, "In bytes: a number in float32 takes 4.") for n in (1, 2)]
    yield from predictions(answer, {
        "weights in matrices": (
            weights, "12 d^2 in each of the 3 layers, and V d in the output layer.",
            (blocks, "The output layer compares with every token of the vocabulary: V d more."),
            (blocks + 2 * 1000 * 64, "The table is the output layer: count it once."),
            (12 * 64**2 + 1000 * 64, "There are 3 layers.")),
        "FLOPs of a forward pass": (
            forward, "A product and a sum for each weight and each of the 8 * 128 tokens.",
            (forward // 2, "A product and a sum: two FLOPs."),
            (2 * weights, for_each),
            (forward // 8, "There are 8 texts."),
            (3 * forward, "That is forward and backward; here forward alone is asked for.")),
        "FLOPs of a training step": (
            3 * forward, "Forward, and two products of the same size backward.",
            (2 * forward, "Backward needs two products: for the input and for the weights."),
            (6 * weights, for_each)),
        "scores of a head, tiled": (
            64 * 64 + 64 * 128, "Each of two blocks of 64 queries is given the keys up to its end.",
            (128 * 128, "The first block is not given the keys of the second."),
            (128 * 129 // 2, "That is what is needed. Within a block all pairs are computed."),
            (2 * 64 * 64, "The second block sees the keys of the first one too.")),
        "bytes of weights read to decode one token": (4 * weights, once, *in_bytes),
        "bytes of weights read to decode one token of each of 8 texts": (4 * weights, once,
            *in_bytes, (32 * weights, "Read once, a weight serves all 8 texts.")),
    })  # fmt: skip


# In pieces -----------------------------------------------------------------------------------


def _pieces(f: Any, x: Any, size: int) -> Any:
    flat = x.reshape(-1)
    parts = [np.asarray(f(flat[start : start + size])) for start in range(0, flat.size, size)]
    return np.concatenate(parts).reshape(x.shape)


def _value(answer: Any, x: Any, size: int, f: Any = np.square, turned: bool = False) -> Any:
    return answer(lambda part: f(np.asarray(part)), x.T if turned else x, size)


def _sizes_given(answer: Any, x: Any, size: int) -> list[int]:
    """How many numbers f is given in each call, instead of the result."""
    sizes: list[int] = []

    def f(part: Any) -> Any:
        sizes.append(int(np.size(part)))
        return np.square(part)

    answer(f, x, size)
    if not sizes:
        raise NotYet("f was never called")
    return sizes


_WRONG_SIZES = [
    ([5], "f was given the whole array; it must never see more than `size` numbers."),
    ([1] * 5, "Correct, but with a call for each number: take `size` at a time."),
    ([3, 3, 0], "The last piece is empty: range(0, x.size, size) does not reach x.size."),
]


@exercise(points=2, reference=_pieces, mistakes=_WRONG_SIZES, run=_value)
def fast_pieces(answer: Any) -> Cases:
    """Check an elementwise function that is applied to pieces of an array."""
    five, (table,) = np.array([1.0, -2, 3, 0.5, 4]), drawn((7, 3, 5))
    first = "Apply f to x[0:2], then to x[2:4], and so on, and keep what comes."
    starts = "range(0, x.size, size) gives where the pieces start; the last may be shorter."
    row = "x.reshape(-1) is one long row; give the result the shape of x in the end."
    other = "A transposed array has the same numbers in another order: reshape both ways."
    kept = "f decides the type: keep its pieces, and join them with np.concatenate."
    turned, root = partial(_value, turned=True), partial(_value, f=np.sqrt)
    for claim, x, size, run, hint in (
        ("five numbers in pieces of two", five, 2, _value, first),
        ("the sizes that f is given", five, 2, _sizes_given, starts),
        ("a larger shape", table, 16, _value, row),
        ("pieces of numbers, not of rows", table, 16, _sizes_given, row),
        ("x.T, whose numbers lie in another order", table[0, :, :4], 5, turned, other),
        ("no piece without numbers", np.arange(6.0), 3, _sizes_given, starts),
        ("one piece, if all of x fits into it", five, 100, _sizes_given, starts),
        ("a single number, without an axis", np.array(3.0), 2, _value, row),
        ("the roots of whole numbers", np.arange(7), 3, root, kept),
        ("signs, as booleans", table, 7, partial(_value, f=np.signbit), kept),
        ("a thousand numbers", drawn((10, 100))[0], 33, _value, first),
        ("the sizes of their pieces", drawn((10, 100))[0], 33, _sizes_given, starts),
        ("tiny numbers, negated", 1e-30 * table, 4, partial(_value, f=np.negative), kept),
    ):
        yield case(claim, answer, x, size, run=run, hint=hint, atol=0)
    ones, part = np.ones(3, dtype=np.float32), ("dtype", lambda value: str(value.dtype))
    yield case("float32 stays float32", answer, ones, 2, expected="float32", part=part, hint=kept)


# A step in place -----------------------------------------------------------------------------


def _step(w: Any, m: Any, v: Any, g: Any, t: int, lr: float = 0.1, beta1: float = 0.9,
          beta2: float = 0.99, eps: float = 1e-8) -> Any:  # fmt: skip
    m += (1 - beta1) * (g - m)
    v += (1 - beta2) * (g * g - v)
    w -= lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w


def _steps(answer: Any, gradients: Any, *options: float, what: str) -> Any:
    """What is in an array after a step with each of the gradients, or whether w is returned."""
    shape = gradients.shape[1:]
    w, m, v = 1.0 + np.arange(gradients[0].size).reshape(shape), np.zeros(shape), np.zeros(shape)
    for t, gradient in enumerate(gradients, start=1):
        g = gradient.copy()
        result = answer(w, m, v, g, t, *options)
        if result is None or result is ...:
            return result
    return {"w": w, "m": m, "v": v, "g": g, "w returned": result is w}[what]


_UNCHANGED = [
    (np.array([1.0, 2.0, 3.0]), "w has not changed: write w -= ..., not w = w - ..."),
    (np.zeros(3), "Change the arrays themselves: m *= ..., not m = m * ..."),
]


@exercise(points=3, reference=_step, mistakes=_UNCHANGED)
def fast_step(answer: Any) -> Cases:
    """Check a step of Adam that changes its arrays in place, and no others."""
    one, (many, tables, long) = np.array([[2.0, -1.0, 0.5]]), drawn((6, 3), (4, 2, 5), (60, 4))
    tiny = np.array([[0, 1e-8, 1e-7]])
    step = "w - lr * m_hat / (sqrt(v_hat) + eps), into w."
    mean = "beta1 * m + (1 - beta1) * g, with g as it was given; m must still hold it at the end."
    root = "What will the next step find in v?"
    yours = "g belongs to the caller. Write g * g into an array of your own."
    carried = "Only w, m and v carry over from step to step: each must hold what its name says."
    named = "lr, beta1, beta2 and eps are arguments: use them, not their defaults."
    for claim, name, gradients, options, hint in (
        ("the weights 1, 2, 3 after one step, m and v at 0", "w", one, (), step),
        ("the mean m after one step", "m", one, (), mean),
        ("the mean of squares v after one step", "v", one, (), root),
        ("the gradient is as it was", "g", one, (), yours),
        ("w after six steps", "w", many, (), carried),
        ("the gradient of the sixth step", "g", many, (), "g belongs to the caller."),
        ("w itself is returned", "w returned", one, (), "Return w, the array that you were given."),
        ("a rate, decays and an epsilon of their own", "w", many, (0.03, 0.8, 0.95, 0.5), named),
        ("tables of numbers", "m", tables, (0.5, 0.6, 0.7, 1e-3), named),
        ("w after sixty steps", "w", long, (), carried),
        ("v after sixty steps", "v", long, (), root),
        ("v of tiny gradients", "v", 1e-9 * long, (), root),
        ("gradients of 0 and 1e-8, where epsilon counts", "w", tiny, (), step),
    ):
        run = partial(_steps, what=name)
        yield case(claim, answer, gradients, *options, run=run, hint=hint, atol=0)


def _traced(answer: Any, *given: Any) -> tuple[Any, int]:
    """The result of an answer, and the bytes of new memory at its peak."""
    tracemalloc.start()
    try:
        return answer(*given), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# A large vocabulary in little memory ---------------------------------------------------------

_RESULTS = "loss", "gradient of h", "gradient of W"


def _vocabulary(h: Any, W: Any, targets: Any) -> Any:
    x, weight = (Tensor(array, requires_grad=True, dtype=array.dtype) for array in (h, W))
    loss = functional.cross_entropy(x @ weight, targets)
    loss.backward()
    return loss.item(), x.grad, weight.grad


def _problem(n: int, V: int, scale: float = 1.0) -> Any:
    rng = np.random.default_rng(1)  # the same each time: to measure twice would be slow
    h, W, targets = rng.normal(size=(n, 16)), rng.normal(size=(16, V)), rng.integers(V, size=n)
    return (scale * h).astype(np.float32), W.astype(np.float32), targets


def _peak(answer: Any, n: int, V: int) -> float:
    """The bytes at the peak of a call, in those of a table of logits."""
    given = _problem(n, V)
    expected = _vocabulary(*given)
    result, peak = _traced(answer, *given)
    if not same(result, expected, 1e-3, 1e-6):
        raise NotYet("other results than the formula's")
    return peak / (4 * n * V)


@exercise(points=4, reference=_vocabulary)
def fast_vocabulary(answer: Any) -> Cases:
    """`answer(h, W, targets)` returns the loss and its gradients, without the whole logits."""
    share = "Each token counts once, and for 1/n; the last piece may be shorter than the others."
    large = (
        "Subtract a row's largest score before exp, and take the logarithm of the sum: a share "
        "can be 0 in float32."
    )
    for n, V, scale, hint in ((6, 9, 1, share), (33, 101, 1, share), (20, 50, 30, large)):
        for name in _RESULTS:
            claim = f"{name}, {n} tokens and V = {V}" + ", large scores" * (scale > 1)
            yield case(claim, answer, *_problem(n, V, scale), part=one_of(name, *_RESULTS),
                       hint=hint, rtol=1e-4, atol=1e-6 if scale == 1 else 1e-4)  # fmt: skip
    whole = "Which array has a number for every pair of a token and a word? Make it in pieces."
    for n, V in ((512, 2048), (701, 1501)):
        claim = f"at most a quarter of the logits' memory, {n} tokens and V = {V:,}"
        yield from measured(claim, answer, n, V, run=_peak, aim=0.25, hint=whole,
                            told="{:.2f} times the logits", show_expected=False)  # fmt: skip
