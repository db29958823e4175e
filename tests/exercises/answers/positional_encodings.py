"""Answers to the exercises of the chapter on positional encodings."""

import numpy as np


def table_of(angles):
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)


def sinusoids_at_once(T, d):
    k = np.arange(d)
    return np.sin(np.outer(np.arange(T), 10000.0 ** (-(k - k % 2) / d)) + np.pi / 2 * (k % 2))


def sinusoids_by_exp(T, d):
    angles = np.outer(np.arange(T), np.exp(np.arange(0, d, 2) * (-np.log(10000.0) / d)))
    return table_of(angles)


def add_by_loop(x, table):
    out = np.empty_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x[:, t] + table[t]
    return out


def add_in_place(x, table):
    x += table[: x.shape[1]]
    return x


PREDICTIONS = {
    "gradient in row 0": 3,
    "gradient in row 9": 0,
    "parameters": 40,
    "parameters of sinusoids of that shape": 0,
    "longest sequence it takes": 10,
}


def predicting(name, value):
    return PREDICTIONS | {name: value}


RIGHT = {
    "positions_apart": [
        lambda n: np.subtract.outer(np.arange(n), np.arange(n)),
        lambda n: -(np.arange(n) - np.arange(n).reshape(-1, 1)),
    ],
    "positions_sinusoids": [sinusoids_at_once, sinusoids_by_exp],
    "positions_add": [add_by_loop, lambda x, table: x + table[None, : x.shape[1], :]],
    "positions_predict": [PREDICTIONS, {name: float(value) for name, value in PREDICTIONS.items()}],
}

WRONG = {
    "positions_apart": {"j - i": lambda n: np.arange(n) - np.arange(n)[:, None]},
    "positions_sinusoids": {
        "… 10000.0": lambda T, d: table_of(
            np.arange(T)[:, None] * 10000 ** -np.arange(1, d // 2 + 1)
        )
    },
    "positions_add": {
        "… the middle one": lambda x, table: x + table[: len(x)][:, None],
        "… Work on a copy": add_in_place,
    },
    "positions_predict": {"… Three sequences stand": predicting("gradient in row 0", 1)},
}
