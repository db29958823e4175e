"""Answers to the exercises of the chapter on positions inside attention."""

import functools
import math

import numpy as np

from tinytorch.core import positions as package


def frequencies(d, base=10000.0):
    return base ** (-np.arange(0, d, 2) / d)


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


def turn_into_numbers_like_x(x, positions):
    turned = np.zeros_like(x)
    turned[...] = turn(x, positions)
    return turned


def turn_in_place(x, positions):
    x[:] = turn(x, positions)
    return x


# ---------------------------------------------------------------------------------------------


def complex_rows(x):
    angles = np.arange(len(x))[:, None] * frequencies(x.shape[1])
    return (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)


def scores(q, k):
    return (complex_rows(q) @ complex_rows(k).conj().T).real


def scores_of_rotated(q, k):
    at = np.arange(len(q))
    return turn(q, at) @ turn(k, at).T


def scores_by_distance(q, k):
    T = len(q)
    return np.array([[q[s] @ turn(k[t : t + 1], [t - s])[0] for t in range(T)] for s in range(T)])


def scores_with(q_at=lambda t: t, k_at=lambda t: t, base=10000.0):
    def answer(q, k):
        at = np.arange(len(q))
        return turn(q, q_at(at), base) @ turn(k, k_at(at), base).T

    return answer


def scores_half_a_vector_apart(q, k):
    at = np.arange(len(q))
    return turn_halves(q, at) @ turn_halves(k, at).T


# ---------------------------------------------------------------------------------------------

Rotary = package.Rotary


def same_in_both(bias):
    return np.stack([bias, bias]).astype(np.float32)


def rotary_in_a_window(T, head_dim, size=16, beyond=-np.inf):
    return Rotary(T, head_dim), same_in_both(np.where(distances(T) < size, 0, beyond))


def rotary_with_steep_slopes(T, head_dim, slope=0.3, base=100.0):
    return Rotary(T, head_dim, base), same_in_both(-slope * distances(T))


def rotated_by_hand(T, head_dim):
    angles = np.arange(T)[:, None] / 30.0 ** (np.arange(0, head_dim, 2) / head_dim)
    cos, sin = np.cos(angles), np.sin(angles)

    def rotate(x, start=0):
        return package.apply_rotary(x, cos, sin, start=start)

    return [rotate, same_in_both(np.maximum(-40, 11 - np.maximum(11, distances(T))))]


def a_distance_for_each_head(T, head_dim, wanted=(2, 4)):
    return None, np.stack([np.where(distances(T) == n, 0.0, -30.0) for n in wanted])


RIGHT = {
    "positions_any_length": [
        rotary_in_a_window,
        rotary_with_steep_slopes,
        rotated_by_hand,
    ],
    "inside_by_distance": [
        lambda b: b[np.abs(np.arange(len(b))[:, None] - np.arange(len(b)))],
        lambda b: np.take(b, np.abs(np.subtract.outer(np.arange(b.size), np.arange(b.size)))),
        lambda b: np.concatenate([b[:0:-1], b])[
            np.arange(len(b)) - np.arange(len(b))[:, None] + len(b) - 1
        ],
    ],
    "positions_count": [
        count,
        lambda scheme, T, d: {"learned": T * d}.get(scheme, 0),
        lambda scheme, T, d: float(scheme == "learned") * T * d,
    ],
    "positions_alibi": [alibi, alibi_by_loop, alibi_by_mask, alibi_by_powers],
    "positions_rotate": [turn, turn_by_matrices, turn_by_stacking],
    "positions_scores": [scores, scores_of_rotated, scores_by_distance],
}

WRONG = {
    "positions_any_length": {
        "neither": lambda T, d: (None, None),
        "rotary": lambda T, d: (Rotary(T, d), None),
        "ALiBi": lambda T, d: (None, package.create_alibi_bias(2, T)),
        "rotary and ALiBi": lambda T, d: (Rotary(T, d), package.create_alibi_bias(2, T)),
        "a window alone": lambda T, d: (None, rotary_in_a_window(T, d)[1]),
        "a window of four": lambda T, d: rotary_in_a_window(T, d, size=4),
        "a distance for each head": a_distance_for_each_head,
        "a bias for one head": lambda T, d: (Rotary(T, d), -distances(T)[None] / 2),
        "a bias for what was trained": lambda T, d: (None, package.create_alibi_bias(2, 16)),
        "a rotation alone": lambda T, d: Rotary(T, d),
        "a rotation that is too short": lambda T, d: (Rotary(16, d), None),
    },
    "inside_by_distance": {
        "with sign": lambda b: b[np.arange(len(b))[:, None] - np.arange(len(b))],
        "only the past": lambda b: np.tril(
            b[np.abs(np.arange(len(b))[:, None] - np.arange(len(b)))]
        ),
        "the distances": lambda b: np.abs(np.arange(len(b))[:, None] - np.arange(len(b))),
        "by the key": lambda b: np.tile(b, (len(b), 1)),
        "differences": lambda b: np.abs(b[:, None] - b),
        "sums of positions": lambda b: b[(np.arange(len(b))[:, None] + np.arange(len(b))) % len(b)],
        "in a loop": lambda b: np.array(
            [[b[abs(i - j)] for j in range(len(b))] for i in range(len(b))]
        ),
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
        "whole numbers stay whole": turn_into_numbers_like_x,
        "the size of the position": lambda x, positions: turn(x, np.abs(positions)),
        "a table that a negative position misses": turn_by_table,
        "the frequency of the row": lambda x, positions: turn(x, positions % 1000),
        "not turned": lambda x, positions: x.copy(),
        "one angle": lambda x, positions: turn(x, np.full(len(x), positions[0])),
    },
    "positions_scores": {
        "as it stands": lambda q, k: (complex_rows(q) @ complex_rows(k).T).real,
        "the imaginary part": lambda q, k: (complex_rows(q) @ complex_rows(k).conj().T).imag,
        "the size": lambda q, k: np.abs(complex_rows(q) @ complex_rows(k).conj().T),
        "complex": lambda q, k: complex_rows(q) @ complex_rows(k).conj().T,
        "transposed": lambda q, k: scores(q, k).T,
        "no rotation": lambda q, k: q @ k.T,
        "queries alone": scores_with(k_at=lambda t: 0 * t),
        "keys alone": scores_with(q_at=lambda t: 0 * t),
        "keys the other way": scores_with(k_at=lambda t: -t),
        "both the other way": scores_with(lambda t: -t, lambda t: t * 0 - t[::-1]),
        "keys one position late": scores_with(k_at=lambda t: t + 1),
        "partners half a vector apart": scores_half_a_vector_apart,
        "a base of 1000": scores_with(base=1000.0),
        "over the root": lambda q, k: scores(q, k) / np.sqrt(q.shape[1]),
    },
}

HINTS = {
    "positions_any_length": {"rotary": "never shown", "a window alone": "never shown"},
    "positions_alibi": {
        "a reward": "it is negative",
        "transposed": "Row i is the token that looks",
        "from zero": "counted from 1",
        "the package's bias": "np.arange and np.where",
    },
    "positions_rotate": {
        "not turned": "comes from `positions`",
        "the other way": "becomes (a cos - b sin",
        "partners half a vector apart": "columns 2i and 2i + 1",
        "the size of the position": "any integer",
        "whole numbers stay whole": "zeros_like",
    },
    "positions_scores": {
        "as it stands": "Angles of complex numbers add",
        "transposed": "Rows are queries",
        "no rotation": "without any rotation",
        "complex": "real numbers",
        "the size": "can be negative",
        "keys the other way": "rotate, then conjugate",
    },
}
