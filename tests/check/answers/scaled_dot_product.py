"""Answers to the exercises of "Scaled dot-product attention"."""

import numpy as np

from tinytorch import functional


def mask_of(queries, keys, later=1, blocked=-np.inf):
    return np.triu(np.full((queries, keys), blocked), k=keys - queries + later)


def mask_by_loop(queries, keys):
    mask = np.zeros((queries, keys))
    for t in range(queries):
        mask[t, keys - queries + t + 1 :] = -np.inf
    return mask


def mask_by_positions(queries, keys):
    position = np.arange(keys - queries, keys)[:, None]
    return np.where(np.arange(keys) > position, -np.inf, 0)


# ---------------------------------------------------------------------------------------------


def transposed(x):
    return x.swapaxes(-1, -2)


def scores_of(q, k):
    return q @ transposed(k) / np.sqrt(q.shape[-1])


def shared_out(scores):
    largest = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def attend_by_einsum(q, k, v, mask):
    scores = np.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5 + mask
    largest = np.maximum(scores.max(axis=-1, keepdims=True), -1e300)
    e = np.exp(scores - largest)
    return np.einsum("...ij,...jd->...id", e, v) / np.maximum(e.sum(-1, keepdims=True), 1e-300)


def attend_with_nan_to_num(q, k, v, mask):
    scores = scores_of(q, k) + mask
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True)) @ v


def attend_with(weights):
    """Attention with another way to get from scores and mask to weights."""
    return lambda q, k, v, mask: weights(scores_of(q, k), mask) @ v


def scaled_by(scale):
    return lambda q, k, v, mask: shared_out(q @ transposed(k) * scale(q, k, v) + mask) @ v


def largest_before_the_mask(scores, mask):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True) + mask)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def without_largest(scores, mask):
    e = np.exp(scores + mask)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def without_blocked_rows(scores, mask):
    scores = scores + mask
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def blocked_by(number):
    return lambda scores, mask: shared_out(np.where(mask == 0, scores, number))


def after_the_softmax(scores, mask):
    return np.where(mask == 0, shared_out(scores), 0.0)


def renormalised(scores, mask):
    kept = after_the_softmax(scores, mask)
    return kept / kept.sum(axis=-1, keepdims=True)


def over_queries(scores, mask):
    return transposed(shared_out(transposed(scores + mask)))


def by_the_package(q, k, v, mask):
    return functional.softmax(scores_of(q, k) + mask).data @ v


# ---------------------------------------------------------------------------------------------


def score_gradient_by_jacobian(w, v, g):
    jacobian = w[..., :, None] * (np.eye(w.shape[-1]) - w[..., None, :])  # (..., T, T, T)
    return np.einsum("...ik,...ijk->...ij", g @ transposed(v), np.swapaxes(jacobian, -1, -2))


def score_gradient_by_output(w, v, g):
    o = w @ v
    return w * (g @ transposed(v) - (g * o).sum(axis=-1, keepdims=True))


def score_gradient_with(correction):
    def answer(w, v, g):
        h = g @ transposed(v)
        return w * (h - correction(h, w))

    return answer


def of_one_sequence(w, v, g):
    h = g @ v.T
    return w * (h - (h * w).sum(axis=1, keepdims=True))


def through_the_package(w, v, g):
    import tinytorch

    scores = tinytorch.Tensor(np.log(w + 1e-300), requires_grad=True, dtype=np.float64)
    (functional.softmax(scores) @ v).backward(g)
    return scores.grad


MEBIBYTES = {
    "1 sequence, 12 heads, T = 1024, float32": 48,
    "8 sequences, 12 heads, T = 1024, float32": 384,
    "8 sequences, 12 heads, T = 512, float32": 96,
    "1 sequence, 1 head, T = 8192, float16": 128,
}
FIRST, SECOND, THIRD, FOURTH = MEBIBYTES

RIGHT = {
    "attend_seen": [lambda mask: np.isfinite(mask).sum(-1), lambda mask: np.exp(mask).sum(axis=-1)],
    "attend_causal_mask": [mask_by_loop, mask_by_positions],
    "attend_numpy": [attend_by_einsum, attend_with_nan_to_num],
    "attend_masked_weights": [
        lambda scores, mask: functional.softmax(np.where(mask == 0, scores, -np.inf)),
        lambda scores, mask: shared_out(scores + mask),
    ],
    "attend_score_gradient": [score_gradient_by_jacobian, score_gradient_by_output],
    "attend_memory": [MEBIBYTES, {name: float(number) for name, number in MEBIBYTES.items()}],
}

WRONG = {
    "attend_seen": {
        "in a byte": lambda mask: (mask == 0).sum(axis=-1, dtype=np.uint8),
        "columns": lambda mask: (mask == 0).sum(axis=-2),
        "the blocked": lambda mask: (mask != 0).sum(axis=-1),
        "in a loop": lambda mask: np.array([(row == 0).sum() for row in mask]),
    },
    "attend_causal_mask": {
        "True and False": lambda n, m: mask_of(n, m) == 0,
        "hides itself": lambda n, m: mask_of(n, m, later=0),
        "a large number": lambda n, m: mask_of(n, m, blocked=-1e9),
        "the first queries": lambda n, m: np.triu(np.full((n, m), -np.inf), k=1),
    },
    "attend_numpy": {
        "the largest before the mask": attend_with(largest_before_the_mask),
        "no largest": attend_with(without_largest),
        "blocked rows are NaN": attend_with(without_blocked_rows),
        "masked after the softmax": attend_with(after_the_softmax),
        "over the queries": attend_with(over_queries),
        "no root": scaled_by(lambda q, k, v: 1.0),
        "the package's softmax": by_the_package,
    },
    "attend_masked_weights": {
        "as it stands": after_the_softmax,
        "shared out afterwards": renormalised,
        "-1e9 for -inf": blocked_by(-1e9),
    },
    "attend_score_gradient": {
        "no row sum": score_gradient_with(lambda h, w: 0.0),
        "a plain mean": score_gradient_with(lambda h, w: h.mean(axis=-1, keepdims=True)),
        "one sequence": of_one_sequence,
        "the package's": through_the_package,
    },
    "attend_memory": {
        "the length counts once": MEBIBYTES | {THIRD: 192},
        "the length does not count": MEBIBYTES | {THIRD: 384},
        "in bytes": {name: number * 2**20 for name, number in MEBIBYTES.items()},
    },
}

HINTS = {
    "attend_causal_mask": {
        "True and False": "added to the scores",
        "hides itself": "look at itself",
        "a large number": "-inf",
        "the first queries": "last of the keys",
    },
    "attend_numpy": {
        "no root": "square root",
        "over the queries": "over the keys",
        "masked after the softmax": "one half",
        "blocked rows are NaN": "-inf",
        "no largest": "overflows",
        "the largest before the mask": "mask first",
        "the package's softmax": "In NumPy alone",
    },
    "attend_masked_weights": {
        "as it stands": "denominator",
        "shared out afterwards": "too late",
        "-1e9 for -inf": "subtract 0 there",
    },
    "attend_score_gradient": {
        "no row sum": "row sum",
        "a plain mean": "Weight the mean",
        "one sequence": "Swap the last two axes of v",
    },
    "attend_memory": {
        "the length counts once": "a quarter",
    },
}
