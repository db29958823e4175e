"""Right and wrong answers to the exercises of "Multi-head attention"."""

import numpy as np

from tinytorch import functional


def heads_at_once(q, k, v, num_heads):
    q, k, v = (x.reshape(len(x), num_heads, -1).transpose(1, 0, 2) for x in (q, k, v))
    weights = functional.softmax(q @ k.transpose(0, 2, 1) / q.shape[-1] ** 0.5).data
    return (weights @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


def masked_columns(merged, weight, bias, num_heads, head):
    of_head = np.arange(merged.shape[1]) // (merged.shape[1] // num_heads)
    return (merged * (of_head != head)) @ weight + bias


def sum_of_the_others(merged, weight, bias, num_heads, head):
    each = zip(np.split(merged, num_heads, axis=1), np.split(weight, num_heads), strict=True)
    return bias + sum(part @ rows for i, (part, rows) in enumerate(each) if i != head)


ATTEND = "scaled_dot_product_attention(*parts, mask)"
RIGHT = {
    "heads_owner": [lambda d, h: np.repeat(np.arange(h), d // h)],
    "heads_side_by_side": [heads_at_once],
    "heads_output_without": [masked_columns],
    "heads_attention": [
        (f"mixed, _ = {ATTEND}", "mixed = functional.attention(*parts, mask=mask)")
    ],
}

HEAD = "[:, head * size : (head + 1) * size]"
KEPT = f"kept = merged.copy()\n    kept{HEAD}"
SPLIT = "(B, T, self.num_heads, -1)", "(B, self.num_heads, T, -1)", "y.permute(0, 2, 1, 3)", "y"
MERGE = "mixed.permute(0, 2, 1, 3)", "mixed"
WRONG = {
    "heads_owner": {"every h-th": lambda d, h: np.arange(d) % h},
    "heads_predict": {
        "… The axis of the heads moves": {"queries, split": (2, 10, 4, 16)},
        "… in front of the positions": {"values, split": (2, 7, 4, 16)},
        "… Values come from the other": {"values, split": (2, 4, 10, 16)},
        "… columns keys": {"weights": (2, 4, 7, 10)},
        "… each has a bias": {"parameters": 16384},
    },
    "heads_side_by_side": {
        "… the number of terms": ("len(part)", "d"),
        "… the root of 2": ("len(part)", "num_heads"),
        "… That is a single head": ("np.arange(d), num_heads", "np.arange(d), 1"),
        "… Rows of scores are queries": ("q[:, part] @ k[:, part]", "k[:, part] @ q[:, part]"),
        "… Softmax along the keys": ("softmax(scores).numpy()", "softmax(scores.T).numpy().T"),
    },
    "heads_output_without": {
        "… All heads are still heard": ("] = 0.0", "] *= 1.0"),
        "… The bias belongs to no head; add": (" + bias", ""),
        "… this head alone": (
            "merged.copy()",
            "np.zeros_like(merged)",
            "] = 0.0",
            f"] = merged{HEAD}",
        ),
        "… columns belong to outputs": (
            KEPT,
            f"kept, weight = merged, weight.copy()\n    weight{HEAD}",
        ),
        "… not every h-th one": (f"kept{HEAD}", "kept[:, head::num_heads]"),
        "… The product is": ("@ weight", "@ weight.T"),
        "… every one of the T rows is the bias": sum_of_the_others,
    },
    "heads_attention": {
        "… A reshape alone mixes the tokens:": SPLIT,
        "… split the last axis": SPLIT + MERGE,
        "… Before the last reshape": MERGE,
        "… pass through out_proj": ("self.out_proj(merged)", "merged"),
        "… That is one head": (
            "self.num_heads = embed_dim, num_heads",
            "self.num_heads = embed_dim, 1",
        ),
        "… The mask is not used": ("*parts, mask", "*parts, None"),
        "… Divide the scores": (
            "(*parts, mask",
            "(parts[0] * self.num_heads**-0.5, *parts[1:], mask",
        ),
        "… The mask is added": (
            "*parts, mask",
            "*parts, None if mask is None else (mask == 0) / -1e-9",
        ),
    },
}
