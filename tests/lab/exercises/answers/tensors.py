"""Answers to the exercises of "Tensors and shapes"."""

from itertools import zip_longest

import numpy as np


def broadcast_from_the_end(a, b):
    shape = []
    for m, n in zip_longest(a[::-1], b[::-1], fillvalue=1):
        if m == 1:
            shape.append(n)
        elif n in (1, m):
            shape.append(m)
        else:
            raise ValueError("no")
    return tuple(reversed(shape))


def split_by_loop(x, h):
    width = x.shape[-1] // h
    return np.stack([x[..., i * width : (i + 1) * width] for i in range(h)], axis=1)


def merge_by_loop(x):
    return np.concatenate([x[:, i] for i in range(x.shape[1])], axis=-1)


RIGHT = {
    "tensors_agreements": [lambda people, one: (people * one).sum(axis=1)],
    "tensors_broadcast_shape": [broadcast_from_the_end],
    "tensors_centre_rows": [lambda x: x - np.expand_dims(x.sum(-1) / x.shape[-1], -1)],
    "tensors_error": [lambda x, y: float(np.mean((x - y[:, None]) ** 2))],
    "tensors_heads": [(split_by_loop, merge_by_loop)],
}

WRONG = {
    "tensors_agreements": {
        "… each row of them is summed": ("people @ one", "people * one"),
        "… One sum for each row": ("people @ one", "(people * one).sum()"),
        "… not down them": ("people @ one", "(people * one).sum(axis=0)"),
        "… with the rows on its left": ("people @ one", "one @ people"),
        "cosines": ("@ one", "@ one / (1e-12 + np.sqrt((people**2).sum(1) * (one**2).sum()))"),
    },
    "tensors_broadcast_shape": {
        "… at their right ends": (
            "(axes - len(a)) + tuple(a)",
            "0 + tuple(a) + (1,) * (axes - len(a))",
        ),
        "… a length of 1 becomes 0": ("n if m == 1 else m", "max(m, n)"),
        "… Without NumPy": np.broadcast_shapes,
    },
    "tensors_six_shapes": {
        "… The summed axis disappears": {"x.sum(axis=1)": (2, 1, 4)},
        "… the inner 4 is summed over": {"y @ y.transpose()": (2, 2, 4, 4)},
    },
    "tensors_centre_rows": {
        "… not x from the mean": (
            "x - x.mean(axis=-1, keepdims=True)",
            "x.mean(-1, keepdims=True) - x",
        ),
        "… Subtract the mean and do nothing else": (
            "x - x.mean(axis=-1, keepdims=True)",
            "(x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)",
        ),
        "… axis=0 runs down": ("axis=-1, keepdims=True", "axis=0"),
        "… one mean for all": ("axis=-1, keepdims=True", ""),
        "… look at keepdims": (", keepdims=True", ""),
        "… divided by its length": (".mean(", ".sum("),
        "… may be a fraction": (
            "x.mean(axis=-1, keepdims=True)",
            "x.sum(-1, keepdims=True) // x.shape[-1]",
        ),
        "… That is the median": ("x.mean(", "np.median(x, "),
    },
    "tensors_error": {
        "rounded": (".mean()", ".mean().round(9)"),
        "… every prediction meets every": ("predictions[:, 0]", "predictions"),
    },
    "tensors_heads": {
        "every h-th number": (
            "num_heads, d // num_heads).swapaxes(1, 2)",
            "d // num_heads, num_heads).transpose(0, 3, 1, 2)",
        ),
        "… Row t of each head": (
            "T, num_heads, d // num_heads).swapaxes(1, 2)",
            "num_heads, T, d // num_heads)",
        ),
    },
}
