"""Answers to the exercises of the chapter on positions inside attention."""

import math

import numpy as np

from tinytorch.core import positions as package


def frequencies(d):
    return 10000.0 ** (-np.arange(0, d, 2) / d)


# ---------------------------------------------------------------------------------------------


def slopes_of(n):
    return 2.0 ** (-8 * np.arange(1, n + 1) / n)


def alibi_by_mask(n, T):
    back = np.arange(T)[:, None] - np.arange(T)
    mask = np.triu(np.full((T, T), -np.inf), k=1)
    return mask - slopes_of(n).reshape(-1, 1, 1) * np.maximum(back, 0)


def distances(T):
    return np.abs(np.subtract.outer(np.arange(T), np.arange(T)))


def alibi_of_the_package(n, T):
    future = np.triu(np.ones((T, T), bool), 1)
    return np.where(future, -np.inf, package.create_alibi_bias(n, T))


def turn(x, positions):
    angles = np.asarray(positions)[:, None] * frequencies(x.shape[1])
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = np.empty(x.shape)
    turned[:, 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    turned[:, 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return turned


def turn_by_complex_numbers(x, positions):
    waves = np.exp(1j * np.outer(positions, frequencies(x.shape[1])))
    turned = (x[:, 0::2] + 1j * x[:, 1::2]) * waves
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def turn_by_stacking(x, positions):
    a = np.repeat(np.outer(positions, frequencies(x.shape[1])), 2, axis=1)
    partner = np.stack([-x[:, 1::2], x[:, 0::2]], axis=-1).reshape(x.shape)
    return x * np.cos(a) + partner * np.sin(a)


def turn_halves(x, positions):
    order = np.arange(x.shape[1]).reshape(2, -1).T.ravel()
    turned = np.empty(x.shape)
    turned[:, order] = turn(x[:, order], positions)
    return turned


def complex_rows(x):
    angles = np.arange(len(x))[:, None] * frequencies(x.shape[1])
    return (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)


def scores_of_rotated(q, k):
    at = np.arange(len(q))
    return turn(q, at) @ turn(k, at).T


def scores_by_distance(q, k):
    T = len(q)
    return np.array([[q[s] @ turn(k[t : t + 1], [t - s])[0] for t in range(T)] for s in range(T)])


Rotary = package.Rotary


def same_in_both(bias):
    return np.stack([bias, bias]).astype(np.float32)


def rotary_in_a_window(T, head_dim):
    return Rotary(T, head_dim), same_in_both(np.where(distances(T) < 16, 0, -np.inf))


def turn_into_numbers_like_x(x, positions):
    turned = np.zeros_like(x)
    turned[...] = turn(x, positions)
    return turned


RIGHT = {
    "positions_any_length": [
        rotary_in_a_window,
        lambda T, head_dim: (Rotary(T, head_dim, 100.0), same_in_both(-0.3 * distances(T))),
    ],
    "inside_by_distance": [
        lambda b: np.take(b, np.abs(np.subtract.outer(np.arange(b.size), np.arange(b.size)))),
        lambda b: np.concatenate([b[:0:-1], b])[
            np.arange(len(b)) - np.arange(len(b))[:, None] + len(b) - 1
        ],
    ],
    "positions_count": [
        lambda scheme, T, d: {"learned": T * d}.get(scheme, 0),
        lambda scheme, T, d: float(scheme == "learned") * T * d,
    ],
    "positions_alibi": [
        lambda n, T: (
            [
                [[-m * (i - j) if j <= i else -math.inf for j in range(T)] for i in range(T)]
                for m in (2 ** (-8 * h / n) for h in range(1, n + 1))
            ]
        ),
        alibi_by_mask,
    ],
    "positions_rotate": [turn_by_complex_numbers, turn_by_stacking],
    "positions_scores": [scores_of_rotated, scores_by_distance],
}

WRONG = {
    "positions_any_length": {
        "… never shown": lambda T, d: (Rotary(T, d), None),
        "a window alone": lambda T, d: (None, rotary_in_a_window(T, d)[1]),
    },
    "inside_by_distance": {
        "with sign": lambda b: b[np.arange(len(b))[:, None] - np.arange(len(b))]
    },
    "positions_count": {
        "None has the default": (lambda s, T, d: T * d if s in ("learned", None) else 0),
        "a fixed table counts": lambda s, T, d: T * d if s in ("learned", "sinusoidal") else 0,
    },
    "positions_alibi": {
        "… Row i is the token that looks": lambda n, T: alibi_by_mask(n, T).swapaxes(1, 2),
        "… np.arange and np.where": alibi_of_the_package,
    },
    "positions_rotate": {
        "whole numbers stay whole": (turn_into_numbers_like_x),
        "… columns 2i and 2i + 1": turn_halves,
    },
    "positions_scores": {
        "… Angles of complex numbers add": lambda q, k: (complex_rows(q) @ complex_rows(k).T).real,
        "… real numbers": lambda q, k: complex_rows(q) @ complex_rows(k).conj().T,
    },
}
