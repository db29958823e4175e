"""Answers to the exercises of "Scaled dot-product attention"."""

import numpy as np

from tinytorch import functional


def mask_by_positions(queries, keys):
    position = np.arange(keys - queries, keys)[:, None]
    return np.where(np.arange(keys) > position, -np.inf, 0)


def attend_by_einsum(q, k, v, mask):
    scores = np.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5 + mask
    largest = np.maximum(scores.max(axis=-1, keepdims=True), -1e300)
    e = np.exp(scores - largest)
    return np.einsum("...ij,...jd->...id", e, v) / np.maximum(e.sum(-1, keepdims=True), 1e-300)


def score_gradient_by_jacobian(w, v, g):
    jacobian = w[..., :, None] * (np.eye(w.shape[-1]) - w[..., None, :])  # (..., T, T, T)
    slopes = np.swapaxes(jacobian, -1, -2)
    return np.einsum("...ik,...ijk->...ij", g @ v.swapaxes(-1, -2), slopes)


RIGHT = {
    "attend_seen": [lambda mask: np.exp(mask).sum(axis=-1)],
    "attend_causal_mask": [mask_by_positions],
    "attend_numpy": [attend_by_einsum],
    "attend_masked_weights": [
        lambda scores, mask: functional.softmax(np.where(mask == 0, scores, -np.inf))
    ],
    "attend_score_gradient": [score_gradient_by_jacobian],
}

MASK = "np.triu(blocked, k=keys - queries + 1)"
SOFTMAX = "return functional.softmax(scores + mask).numpy()"
LATE = "np.where(mask == 0, functional.softmax(scores).numpy(), 0)"
WRONG = {
    "attend_seen": {
        "in a byte": ("axis=-1", "axis=-1, dtype=np.uint8"),
        "columns": ("axis=-1", "axis=-2"),
    },
    "attend_causal_mask": {
        "… The mask is added": (MASK, f"{MASK} == 0"),
        "… is added to the scores": (MASK, f"{MASK} < 0"),
        "… 0 keeps a pair": (MASK, f"({MASK} == 0) * 1.0"),
        "… -inf blocks it": (MASK, f"({MASK} < 0) * 1.0"),
        "… Block with -inf": ("-np.inf", "-1e9"),
        "… This one hides the past": (MASK, f"{MASK}.T"),
        "… A token may look at itself": ("queries + 1", "queries"),
        "… One too many": ("queries + 1", "queries + 2"),
        "… One row for each query": (
            "((queries, keys)",
            "((queries, queries)",
            "keys - queries + 1",
            "1",
        ),
        "… one column for each key": (
            "((queries, keys)",
            "((keys, keys)",
            "keys - queries + 1",
            "1",
        ),
        "… last of the keys": ("keys - queries + 1", "1"),
    },
    "attend_numpy": {
        "the largest before the mask": (" + mask", "", "largest))", "largest) + mask)"),
        "… one half": (
            " + mask",
            "",
            "(e / np.where(total == 0, 1, total))",
            "np.where(mask == 0, e / total, 0)",
        ),
        "… of a query's length": (" / np.sqrt(q.shape[-1])", ""),
        "… That divides by d": ("np.sqrt(q.shape[-1])", "q.shape[-1]"),
        "… not the number of keys": ("q.shape[-1]", "k.shape[-2]"),
        "… The softmax runs over the keys": ("axis=-1", "axis=-2"),
        "… The mask has had no effect": (" + mask", ""),
        "… Blocked and kept": ("+ mask", "+ np.where(mask == 0, -np.inf, 0)"),
    },
    "attend_masked_weights": {
        "-1e9 for -inf": ("scores + mask", "np.where(mask == 0, scores, -1e9)"),
        "… denominator": (SOFTMAX, f"return {LATE}"),
        "… too late": (
            SOFTMAX,
            f"kept = {LATE}\n    return kept / kept.sum(axis=-1, keepdims=True)",
        ),
    },
    "attend_score_gradient": {
        "… row sum": (" - (h * weights).sum(axis=-1, keepdims=True)", ""),
        "… go on to the scores": ("weights * (h - (h * weights).sum(axis=-1, keepdims=True))", "h"),
        "… Multiply by the weight": ("weights * (h -", "(h -"),
        "… each times its own": ("(h * weights)", "h"),
        "… Weight the mean": ("(h * weights).sum", "h.mean"),
        "… already divided": ("h = g", "h = g / np.sqrt(v.shape[-1])"),
        "… Swap the last two axes": ("v.swapaxes(-1, -2)", "v.T"),
    },
    "attend_memory": {"… a quarter": {"8 sequences, 12 heads, T = 512, float32": 192}},
}
