"""Answers to the exercises of "Scaled dot-product attention"."""

import numpy as np

from tinytorch import causal_mask, functional, scaled_dot_product_attention


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


def attend(q, k, v, mask):
    return shared_out(scores_of(q, k) + mask) @ v


def attend_by_einsum(q, k, v, mask):
    scores = np.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5 + mask
    largest = np.maximum(scores.max(axis=-1, keepdims=True), -1e300)
    e = np.exp(scores - largest)
    return np.einsum("...ij,...jd->...id", e, v) / np.maximum(e.sum(-1, keepdims=True), 1e-300)


def attend_with_nan_to_num(q, k, v, mask):
    scores = scores_of(q, k) + mask
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.nan_to_num(e / e.sum(axis=-1, keepdims=True)) @ v


def attend_where(q, k, v, mask):
    scores = np.where(mask == 0, scores_of(q, k), -np.inf)
    kept = np.where(mask == 0, np.exp(scores - best_of(scores)), 0.0)
    total = kept.sum(-1, keepdims=True)
    return np.divide(kept, total, out=np.zeros_like(kept), where=total > 0) @ v


def best_of(scores):
    best = scores.max(axis=-1, keepdims=True)
    return np.where(np.isfinite(best), best, 0.0)


def attend_with(weights):
    """Attention with another way to get from scores and mask to weights."""
    return lambda q, k, v, mask: weights(scores_of(q, k), mask) @ v


def scaled_by(scale):
    return lambda q, k, v, mask: shared_out(q @ transposed(k) * scale(q, k, v) + mask) @ v


def largest_before_the_mask(scores, mask):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True) + mask)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def largest_of_all(scores, mask):
    scores = scores + mask
    e = np.exp(scores - scores.max())
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def without_largest(scores, mask):
    e = np.exp(scores + mask)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def clipped(scores, mask):
    return without_largest(np.clip(scores, -500, 500), mask)


def without_blocked_rows(scores, mask):
    scores = scores + mask
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def blocked_by(number):
    return lambda scores, mask: shared_out(np.where(mask == 0, scores, number))


def added(number):
    return lambda scores, mask: shared_out(scores + np.where(mask == 0, 0.0, number))


def after_the_softmax(scores, mask):
    return np.where(mask == 0, shared_out(scores), 0.0)


def renormalised(scores, mask):
    kept = after_the_softmax(scores, mask)
    return kept / kept.sum(axis=-1, keepdims=True)


def renormalised_safely(scores, mask):
    kept = after_the_softmax(scores, mask)
    total = kept.sum(axis=-1, keepdims=True)
    return kept / np.where(total == 0, 1, total)


def over_queries(scores, mask):
    return transposed(shared_out(transposed(scores + mask)))


def blocked_as_zero_score(scores, mask):
    return shared_out(np.where(mask == 0, scores, 0.0))


def multiplied(scores, mask):
    return shared_out(scores * (mask == 0))


def uniform_where_all_is_blocked(scores, mask):
    weights = shared_out(scores + mask)
    return np.where(weights.sum(-1, keepdims=True) == 0, 1 / weights.shape[-1], weights)


def zeroed(weights):
    return lambda scores, mask: weights(scores, mask) * (mask == 0).any(-1, keepdims=True)


def largest_at_least_zero(scores, mask):
    largest = np.where(mask == 0, scores, 0.0).max(axis=-1, keepdims=True)
    e = np.exp(scores + mask - largest)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def attend_one_by_one(q, k, v, mask):
    if q.ndim == 2:
        return attend(q, k, v, mask)
    masks = np.broadcast_to(mask, (*q.shape[:-1], k.shape[-2]))
    return np.array([attend_one_by_one(*given) for given in zip(q, k, v, masks, strict=True)])


def by_the_package(q, k, v, mask):
    return functional.softmax(scores_of(q, k) + mask).data @ v


# ---------------------------------------------------------------------------------------------


def score_gradient(w, v, g):
    h = g @ transposed(v)
    return w * (h - (h * w).sum(axis=-1, keepdims=True))


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
    "attend_seen": [
        lambda mask: (mask == 0).sum(axis=-1),
        lambda mask: np.isfinite(mask).sum(-1),
        lambda mask: np.exp(mask).sum(axis=-1),
        lambda mask: np.count_nonzero(mask == 0, axis=-1),
    ],
    "attend_causal_mask": [mask_of, mask_by_loop, mask_by_positions],
    "attend_numpy": [attend, attend_by_einsum, attend_with_nan_to_num, attend_where],
    "attend_masked_weights": [
        lambda scores, mask: functional.softmax(scores + mask).numpy(),
        lambda scores, mask: functional.softmax(np.where(mask == 0, scores, -np.inf)),
        lambda scores, mask: shared_out(scores + mask),
        lambda scores, mask: np.nan_to_num(without_blocked_rows(scores, mask)),
    ],
    "attend_score_gradient": [
        score_gradient,
        score_gradient_by_jacobian,
        score_gradient_by_output,
    ],
    "attend_memory": [
        MEBIBYTES,
        {name: float(number) for name, number in MEBIBYTES.items()},
        {
            FIRST: 12 * 4,
            SECOND: 12 * 8 * 4,
            THIRD: 8 * 12 * 512**2 * 4 / 2**20,
            FOURTH: 8192**2 >> 19,
        },
    ],
}

WRONG = {
    "attend_seen": {
        "columns": lambda mask: (mask == 0).sum(axis=-2),
        "the blocked": lambda mask: (mask != 0).sum(axis=-1),
        "all together": lambda mask: (mask == 0).sum(),
        "as if causal": lambda mask: np.tile(
            np.arange(1, mask.shape[-2] + 1), (*mask.shape[:-2], 1)
        ),
        "shares": lambda mask: (mask == 0).mean(axis=-1),
        "the sum": lambda mask: mask.sum(axis=-1),
        "in a loop": lambda mask: np.array([(row == 0).sum() for row in mask]),
    },
    "attend_causal_mask": {
        "ones and zeros": lambda n, m: np.tril(np.ones((n, m)), k=m - n),
        "True and False": lambda n, m: mask_of(n, m) == 0,
        "hides the past": lambda n, m: np.tril(np.full((n, m), -np.inf), k=m - n - 1),
        "hides itself": lambda n, m: mask_of(n, m, later=0),
        "sees the next one": lambda n, m: mask_of(n, m, later=2),
        "a large number": lambda n, m: mask_of(n, m, blocked=-1e9),
        "the first queries": lambda n, m: np.triu(np.full((n, m), -np.inf), k=1),
        "square": lambda n, m: mask_of(m, m),
        "as many as queries": lambda n, m: mask_of(n, n),
        "nothing is blocked": lambda n, m: np.zeros((n, m)),
        "nothing is blocked unless square": lambda n, m: (
            mask_of(n, m) if n == m else np.zeros((n, m))
        ),
        "NaN": lambda n, m: np.where(mask_of(n, m) == 0, 0, np.nan),
        "transposed": lambda n, m: mask_of(n, m).T,
        "the package's": lambda n, m: causal_mask(m)[m - n :],
    },
    "attend_numpy": {
        "the largest before the mask": attend_with(largest_before_the_mask),
        "the largest of all": attend_with(largest_of_all),
        "no largest": attend_with(without_largest),
        "clipped scores": attend_with(clipped),
        "blocked rows are NaN": attend_with(without_blocked_rows),
        "blocked rows are shared out": attend_with(uniform_where_all_is_blocked),
        "-1e9 for -inf": attend_with(blocked_by(-1e9)),
        "-1e9 added": attend_with(added(-1e9)),
        "-2000 for -inf": attend_with(blocked_by(-2000.0)),
        "-2000 added": attend_with(added(-2000.0)),
        "-2000 for -inf, blocked rows zero": attend_with(zeroed(blocked_by(-2000.0))),
        "-2000 added, blocked rows zero": attend_with(zeroed(added(-2000.0))),
        "the largest is at least 0": attend_with(largest_at_least_zero),
        "a score of 0 for -inf": attend_with(blocked_as_zero_score),
        "masked after the softmax": attend_with(after_the_softmax),
        "masked after it, then shared out": attend_with(renormalised_safely),
        "over the queries": attend_with(over_queries),
        "no mask": attend_with(lambda scores, mask: shared_out(scores)),
        "blocked and kept exchanged": attend_with(
            lambda scores, mask: shared_out(np.where(mask == 0, -np.inf, scores))
        ),
        "no root": scaled_by(lambda q, k, v: 1.0),
        "divided by d": scaled_by(lambda q, k, v: 1 / q.shape[-1]),
        "the number of keys": scaled_by(lambda q, k, v: k.shape[-2] ** -0.5),
        "the number of queries": scaled_by(lambda q, k, v: q.shape[-2] ** -0.5),
        "the width of v": scaled_by(lambda q, k, v: v.shape[-1] ** -0.5),
        "always 2": scaled_by(lambda q, k, v: 0.5),
        "all axes swapped": lambda q, k, v, mask: (
            shared_out(q @ k.T / q.shape[-1] ** 0.5 + mask) @ v
        ),
        "one by one": attend_one_by_one,
        "the package's softmax": by_the_package,
        "the package's attention": lambda q, k, v, mask: (
            functional.attention(q, k, v, mask=mask).data
        ),
        "the package's layer": lambda q, k, v, mask: (
            scaled_dot_product_attention(q, k, v, mask)[0].data
        ),
    },
    "attend_masked_weights": {
        "as it stands": after_the_softmax,
        "shared out afterwards": renormalised,
        "shared out afterwards, safely": renormalised_safely,
        "-1e9 for -inf": blocked_by(-1e9),
        "-1e9 added": added(-1e9),
        "-2000 for -inf": blocked_by(-2000.0),
        "-2000 added": added(-2000.0),
        "a score of 0": blocked_as_zero_score,
        "multiplied": multiplied,
        "the largest before the mask": largest_before_the_mask,
        "the largest of all": largest_of_all,
        "the largest is at least 0": largest_at_least_zero,
        "-2000 for -inf, blocked rows zero": zeroed(blocked_by(-2000.0)),
        "-1e9 added, blocked rows zero": zeroed(added(-1e9)),
        "no largest": without_largest,
        "blocked rows are NaN": without_blocked_rows,
        "blocked rows are shared out": uniform_where_all_is_blocked,
        "over the queries": over_queries,
        "no mask": lambda scores, mask: shared_out(scores),
        "a causal mask whatever the mask": lambda scores, mask: shared_out(
            scores + mask_of(*scores.shape[-2:])
        ),
    },
    "attend_score_gradient": {
        "no row sum": score_gradient_with(lambda h, w: 0.0),
        "of the weights": lambda w, v, g: g @ transposed(v),
        "not times the weights": lambda w, v, g: (
            g @ transposed(v) - (g @ transposed(v) * w).sum(axis=-1, keepdims=True)
        ),
        "a plain sum": score_gradient_with(lambda h, w: h.sum(axis=-1, keepdims=True)),
        "a plain mean": score_gradient_with(lambda h, w: h.mean(axis=-1, keepdims=True)),
        "over the queries": score_gradient_with(lambda h, w: (h * w).sum(axis=-2, keepdims=True)),
        "no keepdims": score_gradient_with(lambda h, w: (h * w).sum(axis=-1)),
        "the sum of everything": score_gradient_with(lambda h, w: (h * w).sum()),
        "divided by the root of d": lambda w, v, g: score_gradient(w, v, g) / v.shape[-1] ** 0.5,
        "elementwise": lambda w, v, g: w * (1 - w) * (g @ transposed(v)),
        "one sequence": of_one_sequence,
        "the sign": lambda w, v, g: -score_gradient(w, v, g),
        "the weights transposed": lambda w, v, g: score_gradient(transposed(w), v, g),
        "the package's": through_the_package,
    },
    "attend_memory": {
        "one head": MEBIBYTES | {FIRST: 4},
        "one sequence": MEBIBYTES | {SECOND: 48},
        "the length counts once": MEBIBYTES | {THIRD: 192},
        "the length does not count": MEBIBYTES | {THIRD: 384},
        "float32": MEBIBYTES | {FOURTH: 256},
        "eight times the length": MEBIBYTES | {FOURTH: 16},
        "in MB": {name: number * 1.048576 for name, number in MEBIBYTES.items()},
        "in bytes": {name: number * 2**20 for name, number in MEBIBYTES.items()},
        "a little more": MEBIBYTES | {SECOND: 384.001},
        "one is missing": {FIRST: 48, SECOND: 384, THIRD: 96},
    },
}

HINTS = {
    "attend_causal_mask": {
        "ones and zeros": "added to the scores",
        "True and False": "added to the scores",
        "hides the past": "hides the past",
        "hides itself": "look at itself",
        "sees the next one": "sees the next one",
        "a large number": "-inf",
        "square": "One row for each query",
        "the first queries": "last of the keys",
    },
    "attend_numpy": {
        "no root": "square root",
        "divided by d": "divides by d",
        "the number of keys": "not the number of keys",
        "over the queries": "over the keys",
        "masked after the softmax": "one half",
        "no mask": "no effect",
        "blocked and kept exchanged": "exchanged",
        "blocked rows are NaN": "-inf",
        "no largest": "overflows",
        "the largest before the mask": "mask first",
        "all axes swapped": "Swap",
        "the package's softmax": "In NumPy alone",
    },
    "attend_masked_weights": {
        "as it stands": "denominator",
        "shared out afterwards": "too late",
        "-1e9 for -inf": "subtract 0 there",
    },
    "attend_score_gradient": {
        "no row sum": "row sum",
        "of the weights": "go on",
        "not times the weights": "Multiply",
        "a plain sum": "times its own weight",
        "a plain mean": "Weight the mean",
        "divided by the root of d": "already divided",
        "one sequence": "Swap the last two axes of v",
    },
    "attend_memory": {"the length counts once": "a quarter"},
}
