"""Answers to the exercises of "Scaled dot-product attention"."""

import numpy as np

from tinytorch import functional


def mask_by_loop(queries, keys):
    mask = np.zeros((queries, keys))
    for t in range(queries):
        mask[t, keys - queries + t + 1 :] = -np.inf
    return mask


def mask_by_positions(queries, keys):
    position = np.arange(keys - queries, keys)[:, None]
    return np.where(np.arange(keys) > position, -np.inf, 0)


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


def attend_with(weights):
    """Attention with another way to get from scores and mask to weights."""
    return lambda q, k, v, mask: weights(scores_of(q, k), mask) @ v


def after_the_softmax(scores, mask):
    return np.where(mask == 0, shared_out(scores), 0.0)


def renormalised(scores, mask):
    kept = after_the_softmax(scores, mask)
    return kept / kept.sum(axis=-1, keepdims=True)


def score_gradient_by_jacobian(w, v, g):
    jacobian = w[..., :, None] * (np.eye(w.shape[-1]) - w[..., None, :])  # (..., T, T, T)
    return np.einsum("...ik,...ijk->...ij", g @ transposed(v), np.swapaxes(jacobian, -1, -2))


def score_gradient_by_output(w, v, g):
    o = w @ v
    return w * (g @ transposed(v) - (g * o).sum(axis=-1, keepdims=True))


MEBIBYTES = {
    "1 sequence, 12 heads, T = 1024, float32": 48,
    "8 sequences, 12 heads, T = 1024, float32": 384,
    "8 sequences, 12 heads, T = 512, float32": 96,
    "1 sequence, 1 head, T = 8192, float16": 128,
}
FIRST, SECOND, THIRD, FOURTH = MEBIBYTES


def largest_before_the_mask(scores, mask):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True) + mask)
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def of_one_sequence(w, v, g):
    h = g @ v.T
    return w * (h - (h * w).sum(axis=1, keepdims=True))


RIGHT = {
    "attend_seen": [lambda mask: np.isfinite(mask).sum(-1), lambda mask: np.exp(mask).sum(axis=-1)],
    "attend_causal_mask": [mask_by_loop, mask_by_positions],
    "attend_numpy": [
        attend_by_einsum,
        lambda q, k, v, mask: shared_out(scores_of(q, k) + mask) @ v,
    ],
    "attend_masked_weights": [
        lambda scores, mask: functional.softmax(np.where(mask == 0, scores, -np.inf)),
        lambda scores, mask: shared_out(scores + mask),
    ],
    "attend_score_gradient": [score_gradient_by_jacobian, score_gradient_by_output],
    "attend_memory": [MEBIBYTES, {name: float(number) for name, number in MEBIBYTES.items()}],
}

WRONG = {
    "attend_seen": {
        "in a byte": (lambda mask: (mask == 0).sum(axis=-1, dtype=np.uint8)),
        "columns": lambda mask: (mask == 0).sum(axis=-2),
    },
    "attend_causal_mask": {
        "… added to the scores": lambda n, m: mask_by_loop(n, m) == 0,
        "… last of the keys": lambda n, m: np.triu(np.full((n, m), -np.inf), k=1),
    },
    "attend_numpy": {
        "the largest before the mask": (attend_with(largest_before_the_mask)),
        "… one half": attend_with(after_the_softmax),
    },
    "attend_masked_weights": {
        "-1e9 for -inf": (lambda scores, mask: shared_out(np.where(mask == 0, scores, -1e9))),
        "… denominator": after_the_softmax,
        "… too late": renormalised,
    },
    "attend_score_gradient": {
        "one sequence": (of_one_sequence),
        "… row sum": lambda w, v, g: w * (g @ transposed(v)),
    },
    "attend_memory": {"… a quarter": MEBIBYTES | {THIRD: 192}},
}
