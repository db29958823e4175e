"""Answers to the exercises of "The embedding layer"."""

import numpy as np

from tinytorch import EmbeddingLayer, Tensor


def embed(ids, tokens, places):
    return tokens[ids] + places[: ids.shape[-1]]


def by_loop(ids, tokens, places):
    if ids.ndim == 1:
        return np.array([tokens[i] + places[t] for t, i in enumerate(ids)])
    return np.array([by_loop(row, tokens, places) for row in ids])


def by_the_package(ids, tokens, places):
    layer = EmbeddingLayer(*tokens.shape, max_seq_len=len(places))
    layer.token_embedding.weight.data[:] = tokens
    layer.pos_encoding.position_embeddings.data[:] = places
    return layer(ids).data


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


def gradient_assigned(g, length):
    result = np.zeros((length, g.shape[2]))
    for sequence in g:
        result[: g.shape[1]] = sequence
    return result


def scaled_by(factor, of_places=lambda places, d: places):
    def answer(ids, tokens, places):
        d = tokens.shape[1]
        return tokens[ids] * factor(d) + of_places(places, d)[: ids.shape[-1]]

    return answer


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


def empty_where_nothing_is_left(ids, tokens, places, start):
    rows = places[start : start + ids.shape[1]]
    if ids.shape[1] > 1 and len(rows) != ids.shape[1]:
        raise ValueError("no")
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


def random_room(d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (40, d)), rng.uniform(-1, 1, (24, d))


RIGHT = {
    "layer_room": [two_clocks(), slow_and_fast_hands()],
    "layer_embed": [embed, by_index],
    "layer_position_gradient": [gradient, gradient_by_loop],
    "layer_scaled_embed": [
        scaled_by(np.sqrt),
        lambda ids, E, P: embed(ids, np.sqrt(E.shape[-1]) * E, P),
    ],
    "layer_training_bytes": [
        training_bytes,
        lambda V, d, T, p: 4 * 4 * d * (V + {"learned": T}.get(p, 0)),
    ],
    "layer_embed_from": [embed_from, embed_from_by_rows],
}

WRONG = {
    "layer_room": {
        "random": random_room(8),
        "… Two tables": random_room(32),
        "… how close": apart(clock(40, 40), clock(24, 24)),
    },
    "layer_embed": {"… Without a loop": by_loop, "… In NumPy alone": by_the_package},
    "layer_position_gradient": {
        "… gradient zero": lambda g, n: g.sum(axis=0),
        "the last sequence": gradient_assigned,
    },
    "layer_scaled_embed": {
        "… added as they are": lambda ids, E, P: embed(ids, E, P) * np.sqrt(E.shape[1]),
        "… square root": embed,
        "… whatever it is": scaled_by(lambda d: 2.0),
    },
    "layer_training_bytes": {
        "the weights": lambda V, d, T, p: training_bytes(V, d, T, p) // 4,
        "… no running means": lambda V, d, T, p: 16 * d * (V + (T if p else 0)),
    },
    "layer_embed_from": {
        "… compare its end": empty_where_nothing_is_left,
        "… is at position `start`": lambda ids, E, P, start: (
            embed_from(ids, E, P, 0)
            if start + ids.shape[1] <= len(P)
            else embed_from(ids, E, P, start)
        ),
    },
}
