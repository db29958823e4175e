"""Answers to the exercises of the chapter on positions inside attention."""

import math

import numpy as np

from tinytorch.core import positions as package


def alibi_of_the_package(n, T):
    future = np.triu(np.ones((T, T), bool), 1)
    return np.where(future, -np.inf, package.create_alibi_bias(n, T))


def frequencies(d):
    return 10000.0 ** (-np.arange(0, d, 2) / d)


def turn_by_stacking(x, positions):
    a = np.repeat(np.outer(positions, frequencies(x.shape[1])), 2, axis=1)
    partner = np.stack([-x[:, 1::2], x[:, 0::2]], axis=-1).reshape(x.shape)
    return x * np.cos(a) + partner * np.sin(a)


def in_float32(x, positions):
    d = np.float32(x.shape[1])
    angles = np.float32(positions)[:, None] * np.float32(10_000) ** (-np.arange(0, d, 2) / d)
    pairs = np.float32(x).view(np.complex64) * np.exp(np.complex64(1j) * np.float32(angles))
    return pairs.view(np.float32)


def turn_of_the_package(x, positions):
    angles = np.outer(positions, frequencies(x.shape[1]))
    return package.rotate_pairs(1.0 * x, np.cos(angles), np.sin(angles))


def scores_by_distance(q, k):
    T, turn = len(q), turn_by_stacking
    return np.array([[q[s] @ turn(k[t : t + 1], [t - s])[0] for t in range(T)] for s in range(T)])


def slower_with_distance(T, head_dim):
    distance = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    return package.Rotary(T, head_dim, 100.0), np.float32([-0.3 * distance] * 2)


RIGHT = {
    "positions_any_length": [slower_with_distance],
    "positions_count": [lambda scheme, T, d: float(scheme == "learned") * T * d],
    "positions_alibi": [
        lambda n, T: (
            [
                [[-m * (i - j) if j <= i else -math.inf for j in range(T)] for i in range(T)]
                for m in (2 ** (-8 * h / n) for h in range(1, n + 1))
            ]
        )
    ],
    "positions_rotate": [turn_by_stacking, in_float32],
    "positions_scores": [scores_by_distance],
}

BIAS = "back >= 0, -slopes[:, None, None] * back, -np.inf"
IN_HALVES = (
    "x[:, 0::2], x[:, 1::2]", "x[:, : d // 2], x[:, d // 2 :]",
    "rotated[:, 0::2]", "rotated[:, : d // 2]", "rotated[:, 1::2]", "rotated[:, d // 2 :]",
)  # fmt: skip
WRONG = {
    "positions_any_length": {
        "… never shown": ("np.stack([window, window])", "None"),
        "a window alone": ("return Rotary(T, head_dim)", "return None"),
    },
    "positions_count": {
        "None has the default": ('== "learned"', 'in ("learned", None)'),
        "a fixed table counts": ('== "learned"', 'in ("learned", "sinusoidal")'),
    },
    "positions_alibi": {
        "… it is negative": ("-slopes", "slopes"),
        "… Row i is the token that looks": ("-np.inf)", "-np.inf).swapaxes(1, 2)"),
        "… the one that it looks at": (
            BIAS,
            "True, slopes[:, None, None] * np.minimum(back, 0), 0",
        ),
        "… np.arange and np.where": alibi_of_the_package,
    },
    "positions_rotate": {
        "whole numbers stay whole": ("np.empty(x.shape)", "np.zeros_like(x)"),
        "half of a position": ("np.asarray(positions)", "np.asarray(positions, int)"),
        "… columns 2i and 2i + 1": IN_HALVES,
        "… Not rotated": ("* frequencies", "* 0 * frequencies"),
        "… Keep the old values": (
            "x[:, 0::2], x[:, 1::2]",
            "(rotated := x * 1.0)[:, 0::2], rotated[:, 1::2]",
            "    rotated = np.empty(x.shape)\n",
            "",
        ),
        "… (a, b) becomes": ("- odd * np.sin", "+ odd * np.sin"),
        "… (a cos - b sin": (
            "- odd * np.sin",
            "+ odd * np.sin",
            "= even * np.sin",
            "= -even * np.sin",
        ),
        "… Each pair is exchanged": ("x[:, 0::2], x[:, 1::2]", "x[:, 1::2], x[:, 0::2]"),
        "… a is the even column": lambda x, p: turn_by_stacking(x, p)[:, np.arange(x.shape[1]) ^ 1],
        "… the package does the same": turn_of_the_package,
        "… a sin + b cos)": ("= even * np.sin", "= -even * np.sin"),
    },
    "positions_scores": {
        "… Angles of complex numbers add": ("k.conj().T", "k.T"),
        "… columns are keys": ("q @ k.conj().T", "k @ q.conj().T"),
        "… without any rotation": ("angles = ", "angles = 0 * "),
        "… Scores are real numbers": (".real", ""),
        "… leave out the root of d": (".real", ".real / np.sqrt(d)"),
        "… not the size": ("(q @ k.conj().T).real", "np.abs(q @ k.conj().T)"),
        "… rotate, then conjugate": ("k[:, 1::2]) * np.exp(1j", "k[:, 1::2]) * np.exp(-1j"),
    },
}
