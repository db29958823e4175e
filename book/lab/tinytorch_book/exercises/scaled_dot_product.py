"""Checks for the chapter "Scaled dot-product attention"."""

from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, alone, case, cases, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop

__all__ = ["attend_causal_mask", "attend_masked_weights", "attend_memory", "attend_numpy",
           "attend_score_gradient", "attend_seen"]  # fmt: skip

_BLOCK = -np.inf
_BLOCKED_ROW = "The largest score of such a row is -inf: subtract 0 there, and divide by 1."


def _seen(queries: int, keys: int, later: int = 0) -> np.ndarray:
    """Which keys each of the last `queries` of `keys` positions sees, `later` ones included."""
    return np.arange(keys) <= np.arange(keys - queries, keys)[:, None] + later


def _mask(queries: int, keys: int, later: int = 0) -> np.ndarray:
    return np.where(_seen(queries, keys, later), 0.0, _BLOCK)


def _weights(scores: np.ndarray, mask: Any) -> np.ndarray:
    scores = np.where(np.isneginf(mask), _BLOCK, scores)
    largest = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(largest), 0.0, largest))
    return e / np.maximum(e.sum(axis=-1, keepdims=True), np.finfo(float).tiny)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any = 0.0) -> np.ndarray:
    """The output for queries `(..., T, d)`, keys `(..., S, d)` and values `(..., S, dv)`."""
    return _weights(np.einsum("...qd,...kd->...qk", q, k) / q.shape[-1] ** 0.5, mask) @ v


_ADDED = "The mask is added to the scores: 0 keeps a pair, -inf blocks it."
_SHAPE = "One row for each query, one column for each key."
_MASKS = [
    (_seen, _ADDED),
    (lambda n, m: ~_seen(n, m), _ADDED),
    (lambda n, m: _seen(n, m) * 1.0, _ADDED),
    (lambda n, m: ~_seen(n, m) * 1.0, _ADDED),
    (lambda n, m: np.where(_seen(n, m), 0, -1e9),
        "Block with -inf: where all is blocked, -1e9 shares the weight out."),
    (lambda n, m: _mask(n, m).T, "This one hides the past: columns are keys, block to the right."),
    (lambda n, m: _mask(n, m, later=-1), "A token may look at itself: the diagonal is kept."),
    (lambda n, m: _mask(n, m, later=1), "One too many: each token sees the next one."),
    (lambda n, m: _mask(n, n), _SHAPE),
    (lambda n, m: _mask(m, m), _SHAPE),
]  # fmt: skip


@exercise(points=2, reference=_mask, mistakes=_MASKS, rules=[in_numpy])
def attend_causal_mask(answer: Any) -> Cases:
    """Check a causal mask whose queries are the last of the keys."""
    after = "Rows are queries, columns are keys; block every key that stands after its query."
    single = "A single query is the last of the keys, so none of them comes after it."
    yield case("three queries, three keys", answer, 3, 3, hint=after)
    yield case("one query, four keys", answer, 1, 4, hint=single)
    for queries, keys in ((2, 4), (3, 7), (1, 1), (5, 6), (2, 40), (9, 9), (70, 300)):
        hint = f"Here query 0 stands at position {keys - queries}."
        yield case(f"queries: {queries}, keys: {keys}", answer, queries, keys, hint=hint)


def _at_scale(scale: Any) -> Any:
    """Attention whose scores are too large by a factor."""
    return lambda q, k, v, mask: attention(q * scale(q, k), k, v, mask)


def _over_queries(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return _weights((q @ k.T / q.shape[-1] ** 0.5).T, mask.T).T @ v


_ATTENTION = [
    (_at_scale(lambda q, k: q.shape[-1] ** 0.5), "Divide by the square root of a query's length."),
    (_at_scale(lambda q, k: q.shape[-1] ** -0.5), "That divides by d: divide by its square root."),
    (_at_scale(lambda q, k: (q.shape[-1] / len(k)) ** 0.5),
        "d is the length of a query, here 4, not the number of keys."),
    (_over_queries, "The softmax runs over the keys, the last axis of the scores."),
    (lambda q, k, v, mask: attention(q, k, v, 0 * (mask == 0)), "The mask has had no effect."),
    (lambda q, k, v, mask: attention(q, k, v, np.where(mask == 0, _BLOCK, 0)),
        "Blocked and kept are exchanged: 0 keeps, -inf blocks."),
]  # fmt: skip


@exercise(points=3, reference=attention, mistakes=_ATTENTION, rules=[in_numpy, no_loop])
def attend_numpy(answer: Any) -> Cases:
    """Check attention written in NumPy."""
    halves = [(np.array([[1.0], [3.0]]), "Masked after the softmax, row 0 sums to one half only.")]
    q, k, zero = np.array([[2.0, 0.0, 0.0, 0.0]]), np.eye(4)[:2], np.zeros((2, 4))
    v, w, none = np.array([[1.0], [0.0]]), np.array([[2.0], [4.0]]), np.zeros((2, 2))
    far = -4000 * np.array([[1.0, 1, 0, 0], [1.0, 1.0005, 0, 0]])
    large, million = np.vstack([2000 * q, q]), np.vstack([2e6 * q, q])
    blocked, first = np.array([[_BLOCK, _BLOCK], [0.0, 0.0]]), np.array([[_BLOCK, 0.0]] * 2)
    divided = "The scores are 1 and 0 here, after the division."
    alone = "Query 0 may see key 0 alone, so it gets value 0; query 1 gets the mean of both."
    over = "exp(2000) overflows. Subtract each row's own largest score first."
    under = "exp(-2000) is 0 for every key. Subtract each row's own largest score first."
    hidden = "The largest score counts among the keys that are kept: mask first, then subtract."
    yield from cases(answer, {
        "one query, two keys": (divided, q, k, v, none[:1]),
        "adds the mask before the softmax": (alone, zero, zero, w, _mask(2, 2)),
        "gives zeros to a query with everything blocked": (_BLOCKED_ROW, zero, zero, w, blocked),
        "scores of a thousand": (over, large, k, w, none),
        "a blocked score of a thousand": (hidden, large, k, w, first),
        "a blocked score of a million": (hidden, million, k, w, first),
        "scores of minus a thousand": (under, far, k, w, none),
        "blocked scores above kept ones of minus a thousand":
            (hidden, far, k, w, np.array([[0.0, _BLOCK], [_BLOCK, 0.0]])),
    }, halves)  # fmt: skip
    swap = "Swap the last two axes of k and no others; d is the last axis of q."
    for claim, front, queries, keys, d, width in (
        ("batch and heads, more keys than queries", (2, 3), 4, 6, 5, 7),
        ("a batch, one query", (3,), 1, 5, 8, 2),
        ("as many queries as keys as numbers", (2, 2), 3, 3, 3, 3),
        ("three hundred keys", (), 40, 300, 64, 2),
    ):
        q, k, v = drawn((*front, queries, d), (*front, keys, d), (*front, keys, width))
        mask, each = drawn((queries, keys), (*front, queries, keys), seed=1)
        mask, each = np.where(mask < -0.5, _BLOCK, 0.0), np.where(each < 0, _BLOCK, 0.0)
        yield case(claim, answer, q, k, v, mask, hint=swap)
        yield case(f"{claim}, each masked differently", answer, q, k, v, each, hint=swap)
        every = each[..., :1, :]  # of each text, the keys that no query sees
        yield case(f"{claim}, one row of the mask", answer, q, k, v, every, hint=swap)
        yield case(f"{claim}, tiny values", answer, q, k, 1e-30 * v, each, hint=swap,
                   rtol=1e-3, atol=0)  # fmt: skip


@exercise(points=2, reference=_weights)
def attend_masked_weights(answer: Any) -> Cases:
    """Check attention weights under a mask."""
    half = "The first row sums to one half: the blocked score is still in the denominator."
    shared = "The row must be shared out among the keys that are kept."
    late = "After the softmax it is too late: kept weights are rounded to zero. Block before."
    small = "A number that is only very small still counts: block with -inf."
    front, mask = "The mask is broadcast over the axes in front.", _mask(2, 2)
    blocked, low = np.array([[0, 0], [_BLOCK, _BLOCK]]), np.array([[-5000, 0], [1, -5001.0]])
    yield from cases(answer, {
        "each row sums to one": (shared, np.zeros((2, 2)), mask),
        "a blocked score of a thousand changes nothing": (late, np.array([[0, 1e3], [1, 0]]), mask),
        "a blocked score of 1e12 changes nothing": (late, np.array([[0, 1e12], [1, 0]]), mask),
        "a row with everything blocked gets zeros": (_BLOCKED_ROW, np.zeros((2, 2)), blocked),
        "kept scores of minus five thousand": (small, low, mask),
        "a batch": (front, *drawn((2, 5, 5)), _mask(5, 5)),
        "batch and heads": (front, *drawn((2, 3, 4, 6)), _mask(4, 6)),
        "a hundred keys, weights near 0":
            (late, *(9 * drawn((2, 5, 100))[0][None]), _mask(5, 100), alone(rtol=1e-3, atol=0)),
        "a mask of each text": (front, *drawn((2, 3, 4, 6)),
            np.where(drawn((2, 1, 1, 6), seed=1)[0] < 0, _BLOCK, 0)),
    }, [(np.array([[0.5, 0.0], [0.5, 0.5]]), half)])  # fmt: skip


def _score_gradient(w: np.ndarray, v: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Each weight times the gradient along the difference of its value from the output."""
    along = v[..., None, :, :] - (w @ v)[..., :, None, :]  # (..., T, T, d)
    return w * (g[..., :, None, :] * along).sum(axis=-1)


def _of_weights(w: np.ndarray, v: np.ndarray, g: np.ndarray) -> np.ndarray:
    return g @ v.swapaxes(-1, -2)


def _without(mean: Any) -> Any:
    """The gradient of the scores with another correction than the weighted mean."""
    return lambda w, v, g: w * (_of_weights(w, v, g) - mean(_of_weights(w, v, g)))


_GRADIENTS = [
    (_without(lambda h: 0), "The row sum is missing: one weight grows at another's cost."),
    (_of_weights, "That is the gradient of the weights: go on to the scores."),
    (lambda w, v, g: _score_gradient(w, v, g) / w, "Multiply by the weight of each key."),
    (_without(lambda h: h.sum(-1, keepdims=True)), "The sum takes each times its own weight."),
    (_without(lambda h: h.mean(-1, keepdims=True)), "Weight the mean: each by its own weight."),
    (lambda w, v, g: _score_gradient(w, v, g) / v.shape[-1] ** 0.5,
        "These scores are already divided by the root of d."),
]  # fmt: skip


@exercise(points=2, reference=_score_gradient, mistakes=_GRADIENTS, rules=[in_numpy])
def attend_score_gradient(answer: Any) -> Cases:
    """Check the gradient of the scores that go into the softmax of attention."""
    w, v, g = np.array([[0.25, 0.75]]), np.outer([1, 0], np.eye(4)[0]), 4 * np.eye(4)[:1]
    mean = "The gradient of the weights is [4, 0] here, and its weighted mean is 1."
    equal = "If all values are equal the weights do not matter, so no score does."
    kept = "One sum for each query: over the last axis, which is kept (keepdims)."
    yield from cases(answer, {
        "two keys of unequal weight": (mean, w, v, g),
        "equal values": (equal, w, np.full((2, 4), 3.0), g),
    })  # fmt: skip
    for claim, front, length, width in (
        ("three queries, causal", (), 3, 2), ("a batch", (2,), 3, 2), ("one token", (2,), 1, 6),
        ("batch and heads", (2, 3), 4, 5), ("as many tokens as sequences", (3,), 3, 3),
    ):  # fmt: skip
        scores, v, g = drawn(*((*front, length, n) for n in (length, width, width)), seed=4)
        yield case(claim, answer, _weights(scores, _mask(length, length)), v, g, hint=kept,
            mistakes=[(ValueError, "Swap the last two axes of v and no others.")])  # fmt: skip
    scores, v, g = drawn((40, 40), (40, 3), (40, 3), seed=5)
    for size in (1e-30, 1.0, 1e30):
        given = _weights(scores, 0.0), v, size * g
        yield case(f"forty keys, gradients of {size:g}", answer, *given, hint=kept, atol=0)


@exercise(points=1)
def attend_memory(answer: Any) -> Cases:
    """Check the predicted MiB of attention weights."""
    two = "Eight times the length of the table of 4 MiB, and two bytes for each number."
    yield from predictions(answer, {
        "1 sequence, 12 heads, T = 1024, float32": (48, "Every head has a table of 4 MiB."),
        "8 sequences, 12 heads, T = 1024, float32": (384, "So does every sequence."),
        "8 sequences, 12 heads, T = 512, float32": (96, "Half the length: a quarter of the table."),
        "1 sequence, 1 head, T = 8192, float16": (128, two),
    })  # fmt: skip


@exercise(points=1, reference=lambda mask: (mask == 0).sum(axis=-1), rules=[no_loop])
def attend_seen(answer: Any) -> Cases:
    """Check how many keys each query may see."""
    rows = "Each row is a query: count its zeros, along the last axis."
    causal = np.triu(np.full((4, 4), -np.inf), k=1)
    yield from cases(answer, {
        "counts what is not in the future": (rows, causal),
        "counts rows, not columns": (rows, np.array([[0.0, 0.0], [0.0, -np.inf]])),
        "counts a row that sees nothing": (rows, np.full((2, 3), -np.inf)),
        "counts in a batch": (rows, np.stack([causal, causal.T, np.zeros((4, 4))])),
        "counts in batch and heads": (rows, np.where(drawn((2, 3, 9, 9))[0] < 0, _BLOCK, 0)),
        "counts up to three hundred": (rows, _mask(300, 300)),
    })  # fmt: skip
