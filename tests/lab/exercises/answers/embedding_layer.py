"""Answers to the exercises of "The embedding layer"."""

import numpy as np

from tinytorch import Tensor


def by_index(ids, tokens, places):
    return tokens[ids] + places[np.arange(ids.shape[-1])]


def gradient_by_loop(g, length):
    result = np.zeros((length, g.shape[2]))
    for sequence in g:
        for t, row in enumerate(sequence):
            result[t] += row
    return result


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
    "layer_embed": [by_index],
    "layer_position_gradient": [gradient_by_loop],
    "layer_scaled_embed": [lambda ids, E, P: by_index(ids, np.sqrt(E.shape[-1]) * E, P)],
    "layer_training_bytes": [lambda V, d, T, p: 4 * 4 * d * (V + {"learned": T}.get(p, 0))],
    "layer_embed_from": [embed_from_by_rows],
}

WRONG = {
    "layer_room": {
        "… Two tables": tuple(np.pad(table, ((0, 0), (0, 24))) for table in two_clocks()),
        "… how close": apart(clock(40, 40), clock(24, 24)),
    },
    "layer_embed": {"a row a sequence": ("[: ids.shape[-1]]", "[: len(ids)]")},
    "layer_position_gradient": {"… gradient zero": lambda g, n: g.sum(axis=0)},
    "layer_scaled_embed": {
        "… added as they are": lambda ids, E, P: by_index(ids, E, P) * np.sqrt(E.shape[1]),
        "… square root": by_index,
    },
    "layer_training_bytes": {
        "… Without positions there is": (' if pos_encoding == "learned" else 0', ""),
        "… no running means": (' == "learned"', ""),
    },
    "layer_embed_from": {"… is at position `start`": ("[start:end]", "[: ids.shape[1]]")},
}
