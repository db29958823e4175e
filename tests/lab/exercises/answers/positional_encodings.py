"""Answers to the exercises of the chapter on positional encodings."""

import numpy as np


def sinusoids_at_once(T, d):
    k = np.arange(d)
    return np.sin(np.outer(np.arange(T), 10000.0 ** (-(k - k % 2) / d)) + np.pi / 2 * (k % 2))


def add_by_loop(x, table):
    out = np.empty_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x[:, t] + table[t]
    return out


RIGHT = {
    "positions_apart": [lambda n: np.subtract.outer(np.arange(n), np.arange(n))],
    "positions_sinusoids": [sinusoids_at_once],
    "positions_add": [add_by_loop],
}

WRONG = {
    "positions_apart": {"j - i": lambda n: np.arange(n) - np.arange(n)[:, None]},
    "positions_sinusoids": {
        "… 10000.0": (
            "10000.0 ** (-np.arange(0, embed_dim, 2)",
            "10000 ** (-np.arange(1, embed_dim, 2)",
            " / embed_dim)",
            ")",
        ),
        "… Positions count from 0": ("np.arange(max_seq_len)", "np.arange(1, max_seq_len + 1)"),
    },
    "positions_add": {
        "… the middle one": ("table[: x.shape[1]]", "table[: len(x)][:, None]"),
        "… Work on a copy": (
            "return x + table[",
            "x += table[: x.shape[1]]\n    return x + 0 * table[",
        ),
    },
    "positions_predict": {
        "… Three sequences stand": {"gradient in row 0": 1},
        "… Seven tokens add": {"gradient in row 0": 7},
        "… rows that are not read": {"parameters": 28},
    },
}
