"""Answers to the exercises of "The embedding layer"."""

import numpy as np

from tinytorch import Tensor


def embed(ids, tokens, places):
    return tokens[ids] + places[: ids.shape[-1]]


def by_index(ids, tokens, places):
    return tokens[ids] + places[np.arange(ids.shape[-1])]


def gradient(g, length):
    result = np.zeros((length, g.shape[2]))
    result[: g.shape[1]] = g.sum(axis=0)
    return result


def gradient_by_loop(g, length):
    result = np.zeros((length, g.shape[2]))
    for sequence in g:
        for t, row in enumerate(sequence):
            result[t] += row
    return result


def scaled(ids, tokens, places):
    return tokens[ids] * np.sqrt(tokens.shape[1]) + places[: ids.shape[-1]]


def training_bytes(V, d, T, scheme):
    return 16 * (V * d + (T * d if scheme == "learned" else 0))


def embed_from(ids, tokens, places, start):
    end = start + ids.shape[1]
    if end > len(places):
        raise ValueError(f"position {end - 1} of {len(places)}")
    return tokens[ids] + places[start:end]


def embed_from_by_rows(ids, tokens, places, start):
    rows = places[start : start + ids.shape[1]]
    if len(rows) != ids.shape[1]:
        raise ValueError("too long")
    return tokens[ids] + rows


def clock(hours, n):
    """Where the hand of a clock of so many hours points, n hours long."""
    angles = 2 * np.pi * np.arange(n) / hours
    return np.c_[np.cos(angles), np.sin(angles)]


def apart(tokens, positions):
    """Each message in numbers of its own."""
    left, right = tokens.shape[1], positions.shape[1]
    return np.pad(tokens, ((0, 0), (0, right))), np.pad(positions, ((0, 0), (left, 0)))


def two_clocks():
    tokens = np.c_[clock(7, 40), clock(6, 40)]
    return apart(tokens, np.c_[clock(6, 24), np.repeat(clock(4, 4), 6, axis=0)])


def slow_and_fast_hands():
    tokens = np.c_[clock(40, 40), clock(40 / 6, 40)]
    tokens, positions = apart(tokens, np.c_[clock(24, 24), clock(24 / 5, 24)])
    order = [0, 4, 1, 5, 2, 6, 3, 7]
    return [Tensor(tokens[:, order]), Tensor(positions[:, order])]


RIGHT = {
    "layer_room": [two_clocks(), slow_and_fast_hands()],
    "layer_embed": [embed, by_index],
    "layer_position_gradient": [gradient, gradient_by_loop],
    "layer_scaled_embed": [scaled, lambda ids, E, P: embed(ids, np.sqrt(E.shape[-1]) * E, P)],
    "layer_training_bytes": [
        training_bytes,
        lambda V, d, T, p: 4 * 4 * d * (V + {"learned": T}.get(p, 0)),
    ],
    "layer_embed_from": [embed_from, embed_from_by_rows],
}

WRONG = {
    "layer_room": {
        "… Two tables": tuple(np.pad(table, ((0, 0), (0, 24))) for table in two_clocks()),
        "… how close": apart(clock(40, 40), clock(24, 24)),
    },
    "layer_embed": {"a row a sequence": lambda ids, E, P: E[ids] + P[: len(ids)]},
    "layer_position_gradient": {"… gradient zero": lambda g, n: g.sum(axis=0)},
    "layer_scaled_embed": {
        "… added as they are": lambda ids, E, P: embed(ids, E, P) * np.sqrt(E.shape[1]),
        "… square root": embed,
    },
    "layer_training_bytes": {
        "… no running means": lambda V, d, T, p: 16 * d * (V + (T if p else 0))
    },
    "layer_embed_from": {
        "… is at position `start`": lambda ids, E, P, start: (
            embed_from(ids, E, P, 0)
            if start + ids.shape[1] <= len(P)
            else embed_from(ids, E, P, start)
        )
    },
}
