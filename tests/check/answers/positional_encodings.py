"""Answers to the exercises of the chapter on positional encodings."""

import math

import numpy as np

from tinytorch import create_sinusoidal_embeddings


def frequencies(d, base=10000.0):
    return base ** (-np.arange(0, d, 2) / d)


def table_of(angles):
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)


def sinusoids(T, d):
    angles = np.arange(T)[:, None] * frequencies(d)
    table = np.empty((T, d))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sinusoids_at_once(T, d):
    k = np.arange(d)
    return np.sin(np.outer(np.arange(T), 10000.0 ** (-(k - k % 2) / d)) + np.pi / 2 * (k % 2))


def sinusoids_by_exp(T, d):
    angles = np.outer(np.arange(T), np.exp(np.arange(0, d, 2) * (-np.log(10000.0) / d)))
    return table_of(angles)


def sinusoids_with(speed):
    return lambda T, d: table_of(np.arange(T)[:, None] * speed(d))


def sinusoids_by_loop(T, d):
    table = np.empty((T, d))
    for t in range(T):
        for i in range(0, d, 2):
            angle = t / 10000 ** (i / d)
            table[t, i], table[t, i + 1] = math.sin(angle), math.cos(angle)
    return table


def sinusoids_by_comprehension(T, d):
    return np.array([table_of(t * frequencies(d)[None])[0] for t in range(T)])


def halves(T, d):
    table = sinusoids(T, d)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)


def by_column(T, d):
    angles = np.arange(T)[:, None] * 10000.0 ** (-np.arange(d) / d)
    return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


def exchanged(T, d):
    return sinusoids(T, d).reshape(T, -1, 2)[..., ::-1].reshape(T, d)


# ---------------------------------------------------------------------------------------------


def add(x, table):
    return x + table[: x.shape[1]]


def add_by_loop(x, table):
    out = np.empty_like(x)
    for t in range(x.shape[1]):
        out[:, t] = x[:, t] + table[t]
    return out


def add_in_place(x, table):
    x += table[: x.shape[1]]
    return x


def add_running(x, table):
    flat = x.reshape(-1, x.shape[2])
    return (flat + np.resize(table, flat.shape)).reshape(x.shape)


# ---------------------------------------------------------------------------------------------


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
        lambda n: np.arange(n)[:, None] - np.arange(n),
        lambda n: np.subtract.outer(np.arange(n), np.arange(n)),
        lambda n: -(np.arange(n) - np.arange(n).reshape(-1, 1)),
        lambda n: np.indices((n, n))[0] - np.indices((n, n))[1],
        lambda n: np.arange(float(n))[:, None] - np.arange(n),
    ],
    "positions_sinusoids": [sinusoids, sinusoids_at_once, sinusoids_by_exp],
    "positions_add": [
        add,
        add_by_loop,
        lambda x, table: x + table[None, : x.shape[1], :],
        lambda x, table: np.array([one + table[: len(one)] for one in x]),
    ],
    "positions_predict": [
        PREDICTIONS,
        {name: float(value) for name, value in PREDICTIONS.items()},
        PREDICTIONS | {"parameters": 10 * 4},
    ],
}

WRONG = {
    "positions_apart": {
        "j - i": lambda n: np.arange(n) - np.arange(n)[:, None],
        "absolute": lambda n: np.abs(np.arange(n)[:, None] - np.arange(n)),
        "never negative": lambda n: np.maximum(np.arange(n)[:, None] - np.arange(n), 0),
        "zeros": lambda n: np.arange(n) - np.arange(n),
        "from 1": lambda n: np.arange(1, n + 1)[:, None] - np.arange(n),
        "sums": lambda n: np.arange(n)[:, None] + np.arange(n),
        "in a loop": lambda n: np.array([[i - j for j in range(n)] for i in range(n)]).reshape(
            n, n
        ),
    },
    "positions_sinusoids": {
        "halves": halves,
        "columns for pairs": by_column,
        "sines and cosines exchanged": exchanged,
        "from one": lambda T, d: sinusoids(T + 1, d)[1:],
        "one speed": sinusoids_with(lambda d: np.ones(d // 2)),
        "a base of 1000": sinusoids_with(lambda d: frequencies(d, 1000.0)),
        "the pair over d": sinusoids_with(lambda d: 10000.0 ** (-np.arange(d // 2) / d)),
        "up to the last pair": sinusoids_with(
            lambda d: 10000.0 ** (-np.arange(d // 2) / max(d // 2 - 1, 1))
        ),
        "upwards": sinusoids_with(lambda d: 1 / frequencies(d)),
        "in degrees": sinusoids_with(lambda d: np.radians(frequencies(d))),
        "turns": sinusoids_with(lambda d: 2 * np.pi * frequencies(d)),
        "an integer base": lambda T, d: table_of(
            np.arange(T)[:, None] * 10000 ** -np.arange(1, d // 2 + 1)
        ),
        "sines alone": lambda T, d: np.sin(np.outer(np.arange(T), np.repeat(frequencies(d), 2))),
        "transposed": lambda T, d: sinusoids(T, d).T,
        "rounded as it is printed": lambda T, d: np.round(sinusoids(T, d), 2),
        "in a loop": sinusoids_by_loop,
        "in a comprehension": sinusoids_by_comprehension,
        "the package's": create_sinusoidal_embeddings,
        "the package's, called": lambda T, d: create_sinusoidal_embeddings(T, d).data,
    },
    "positions_add": {
        "as it stands": lambda x, table: x + table[: len(x)][:, None],
        "the first row": lambda x, table: x + table[0],
        "the last rows": lambda x, table: x + table[-x.shape[1] :],
        "on through the batch": add_running,
        "in place": add_in_place,
        "from one": lambda x, table: x + np.roll(table, -1, axis=0)[: x.shape[1]],
        "backwards": lambda x, table: x + table[: x.shape[1]][::-1],
        "the whole table": lambda x, table: x + table,
        "the width": lambda x, table: x + table[: x.shape[2]],
        "the mean of the table": lambda x, table: x + table.mean(axis=0),
        "only the first sequence": lambda x, table: np.concatenate([add(x[:1], table), x[1:]]),
        "subtracts": lambda x, table: x - table[: x.shape[1]],
    },
    "positions_predict": {
        "once for the whole batch": predicting("gradient in row 0", 1),
        "once for each token": predicting("gradient in row 0", 7),
        "every token of the batch": predicting("gradient in row 0", 21),
        "the sum of a row": predicting("gradient in row 0", 12),
        "a whole row": predicting("gradient in row 0", [3, 3, 3, 3]),
        "every row learns": predicting("gradient in row 9", 3),
        "only the rows that are read": predicting("parameters", 28),
        "the whole batch": predicting("parameters", 84),
        "sinusoids are trained": predicting("parameters of sinusoids of that shape", 40),
        "any length": predicting("longest sequence it takes", math.inf),
        "the longest of the batch": predicting("longest sequence it takes", 7),
        "one more": predicting("longest sequence it takes", 11),
    },
}

HINTS = {
    "positions_sinusoids": {
        "from one": "Positions count from 0",
        "an integer base": "10000.0",
        "one speed": "the frequency",
        "in a loop": "Without a loop",
        "the package's": "In NumPy alone",
    },
    "positions_add": {"as it stands": "the middle one", "in place": "Work on a copy"},
    "positions_predict": {
        "once for the whole batch": "Three sequences stand",
        "once for each token": "Seven tokens add",
        "the sum of a row": "fill in one",
        "a whole row": "fill in one",
        "only the rows that are read": "not read are parameters",
    },
}
