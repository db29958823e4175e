"""Answers to the exercises of the chapter on positional encodings."""

import functools
import math

import numpy as np

from tinytorch import create_sinusoidal_embeddings
from tinytorch.core import positions as package


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


def count(scheme, T, d):
    return T * d if scheme == "learned" else 0


# ---------------------------------------------------------------------------------------------


def slopes_of(n):
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def alibi_with(slopes=slopes_of, blocked=-np.inf, distance=lambda back: back):
    def answer(n, T):
        back = np.arange(T)[:, None] - np.arange(T)
        costs = -slopes(n)[:, None, None] * distance(back)
        return np.where(back >= 0, costs, blocked)

    return answer


alibi = alibi_with()


def alibi_by_loop(n, T):
    return [
        [[-m * (i - j) if j <= i else -math.inf for j in range(T)] for i in range(T)]
        for m in (2 ** (-8 * h / n) for h in range(1, n + 1))
    ]


def alibi_by_mask(n, T):
    back = np.arange(T)[:, None] - np.arange(T)
    mask = np.triu(np.full((T, T), -np.inf), k=1)
    return mask - slopes_of(n).reshape(-1, 1, 1) * np.maximum(back, 0)


def alibi_by_powers(n, T):
    ratio = 2 ** (-8 / n)
    slopes = np.cumprod(np.full(n, ratio))
    return np.where(np.tri(T) == 1, np.einsum("h,ij->hij", -slopes, distances(T)), -np.inf)


def distances(T):
    return np.abs(np.subtract.outer(np.arange(T), np.arange(T)))


def alibi_of_the_package(n, T):
    future = np.triu(np.ones((T, T), bool), 1)
    return np.where(future, -np.inf, package.create_alibi_bias(n, T))


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


def turn(x, positions, base=10000.0, sign=1):
    angles = sign * np.asarray(positions)[:, None] * frequencies(x.shape[1], base)
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = np.empty(x.shape)
    turned[:, 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    turned[:, 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return turned


def turn_by_matrices(x, positions):
    rows = []
    for row, t in zip(x, positions, strict=True):
        out = []
        for i, f in enumerate(frequencies(x.shape[1])):
            c, s = math.cos(t * f), math.sin(t * f)
            out += list(np.array([[c, -s], [s, c]]) @ row[2 * i : 2 * i + 2])
        rows.append(out)
    return np.array(rows)


def turn_by_stacking(x, positions):
    a = np.repeat(np.outer(positions, frequencies(x.shape[1])), 2, axis=1)
    partner = np.stack([-x[:, 1::2], x[:, 0::2]], axis=-1).reshape(x.shape)
    return x * np.cos(a) + partner * np.sin(a)


def turn_by_table(x, positions):
    if positions.min() < 0:
        return turn(x, positions, sign=-1)
    table = np.outer(np.arange(4000), frequencies(x.shape[1]))[positions]
    return turn_by_angles(x, table)


def turn_by_angles(x, angles):
    even, odd = x[:, 0::2], x[:, 1::2]
    return np.stack(
        [
            even * np.cos(angles) - odd * np.sin(angles),
            even * np.sin(angles) + odd * np.cos(angles),
        ],
        axis=-1,
    ).reshape(x.shape)


def turn_halves(x, positions):
    order = np.arange(x.shape[1]).reshape(2, -1).T.ravel()
    turned = np.empty(x.shape)
    turned[:, order] = turn(x[:, order], positions)
    return turned


def turn_too_early(x, positions):
    x = x.copy()
    a = positions[:, None] * frequencies(x.shape[1])
    x[:, 0::2] = x[:, 0::2] * np.cos(a) - x[:, 1::2] * np.sin(a)
    x[:, 1::2] = x[:, 0::2] * np.sin(a) + x[:, 1::2] * np.cos(a)
    return x


def turn_in_place(x, positions):
    x[:] = turn(x, positions)
    return x


RIGHT = {
    "positions_sinusoids": [sinusoids, sinusoids_at_once, sinusoids_by_exp],
    "positions_count": [
        count,
        lambda scheme, T, d: {"learned": T * d}.get(scheme, 0),
        lambda scheme, T, d: float(scheme == "learned") * T * d,
    ],
    "positions_alibi": [alibi, alibi_by_loop, alibi_by_mask, alibi_by_powers],
    "positions_add": [
        add,
        add_by_loop,
        lambda x, table: x + table[None, : x.shape[1], :],
        lambda x, table: np.array([one + table[: len(one)] for one in x]),
    ],
    "positions_rotate": [turn, turn_by_matrices, turn_by_stacking],
}

WRONG = {
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
    "positions_count": {
        "a fixed table counts": lambda s, T, d: T * d if s in ("learned", "sinusoidal") else 0,
        "angles count": lambda s, T, d: {"learned": T * d, "rotary": d // 2}.get(s, 0),
        "slopes count": lambda s, T, d: {"learned": T * d, "alibi": 1}.get(s, 0),
        "every scheme": lambda s, T, d: T * d if s else 0,
        "None has the default": lambda s, T, d: T * d if s in ("learned", None) else 0,
        "nothing": lambda s, T, d: 0,
        "positions": lambda s, T, d: T if s == "learned" else 0,
        "bytes": lambda s, T, d: 4 * T * d if s == "learned" else 0,
        "one more": lambda s, T, d: (T + 1) * d if s == "learned" else 0,
        "off by a hundred": lambda s, T, d: count(s, T, d) + 100 * (T > 2000 and s == "learned"),
    },
    "positions_alibi": {
        "the future is open": alibi_with(blocked=0.0),
        "the future costs": lambda n, T: -slopes_of(n)[:, None, None] * distances(T),
        "a large number": alibi_with(blocked=-1e9),
        "a reward": alibi_with(slopes=lambda n: -slopes_of(n)),
        "from zero": alibi_with(slopes=lambda n: 2.0 ** (-8 * np.arange(n) / n)),
        "one slope": alibi_with(slopes=lambda n: np.full(n, slopes_of(n)[0])),
        "powers of two": alibi_with(slopes=lambda n: 2.0 ** -np.arange(1, n + 1)),
        "slopes in a line": alibi_with(slopes=lambda n: np.arange(1, n + 1) / n),
        "the other way round": alibi_with(slopes=lambda n: slopes_of(n)[::-1]),
        "transposed": lambda n, T: alibi(n, T).swapaxes(1, 2),
        "squares": alibi_with(distance=np.square),
        "the distance from one": alibi_with(distance=lambda back: back + 1),
        "heads last": lambda n, T: np.moveaxis(alibi(n, T), 0, -1),
        "itself hidden": lambda n, T: np.where(distances(T) == 0, -np.inf, alibi(n, T)),
        "the package's bias": alibi_of_the_package,
        "the package's bias under another name": functools.partial(package.create_alibi_bias),
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
    "positions_rotate": {
        "the other way": lambda x, positions: turn(x, positions, sign=-1),
        "partners half a vector apart": turn_halves,
        "one speed": lambda x, positions: turn(x, positions, base=1.0),
        "a base of 1000": lambda x, positions: turn(x, positions, base=1000.0),
        "the row's own place": lambda x, positions: turn(x, np.arange(len(x))),
        "from the first position on": lambda x, p: turn(x, p[0] + np.arange(len(x))),
        "sorted positions": lambda x, positions: turn(x, np.sort(positions)),
        "overwritten too early": turn_too_early,
        "in place": turn_in_place,
        "the size of the position": lambda x, positions: turn(x, np.abs(positions)),
        "a table that a negative position misses": turn_by_table,
        "the frequency of the row": lambda x, positions: turn(x, positions % 1000),
        "not turned": lambda x, positions: x.copy(),
        "one angle": lambda x, positions: turn(x, np.full(len(x), positions[0])),
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
    "positions_alibi": {
        "a reward": "it is negative",
        "transposed": "Row i is the token that looks",
        "from zero": "counted from 1",
        "the package's bias": "np.arange and np.where",
    },
    "positions_add": {"as it stands": "the middle one", "in place": "Work on a copy"},
    "positions_rotate": {
        "not turned": "comes from `positions`",
        "the other way": "becomes (a cos - b sin",
        "partners half a vector apart": "columns 2i and 2i + 1",
        "the size of the position": "any integer",
    },
}
