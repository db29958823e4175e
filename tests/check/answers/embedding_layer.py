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


def by_one_hot(ids, tokens, places):
    return np.eye(len(tokens))[ids] @ tokens + np.eye(ids.shape[-1], len(places)) @ places


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


def gradient_at_the_end(g, length):
    return np.concatenate([np.zeros((length - g.shape[1], g.shape[2])), g.sum(axis=0)])


def gradient_repeated(g, length):
    return np.resize(g.sum(axis=0), (length, g.shape[2]))


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


def embed_from_by_index(ids, tokens, places, start):
    try:
        return tokens[ids] + places[np.arange(start, start + ids.shape[-1])]
    except IndexError as error:
        raise ValueError("past the end") from error


def embed_from_with(guard, error=ValueError):
    def answer(ids, tokens, places, start):
        rows = places[start : start + ids.shape[1]]
        if guard(ids.shape[1], start, len(places), len(rows)):
            raise error("no")
        return tokens[ids] + rows

    return answer


def empty_where_nothing_is_left(ids, tokens, places, start):
    rows = places[start : start + ids.shape[1]]
    if ids.shape[1] > 1 and len(rows) != ids.shape[1]:
        raise ValueError("no")
    return tokens[ids] + rows


def embed_from_clipped(ids, tokens, places, start):
    t = np.minimum(np.arange(start, start + ids.shape[1]), len(places) - 1)
    return tokens[ids] + places[t]


def past(end):
    return lambda n, start, length, rows: end(n, start) > length


# ---------------------------------------------------------------------------------------------


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


def pushed(rows, seed, width=4, steps=800):
    """Points on a sphere that have pushed each other away."""
    x = np.random.default_rng(seed).normal(size=(rows, width))
    for step in range(steps + 1):
        x *= 1.3 / np.linalg.norm(x, axis=1, keepdims=True)
        x = x.clip(-1, 1)
        away = x[:, None] - x[None]
        squares = (away**2).sum(axis=-1) + np.eye(rows)
        x = x + 0.02 * (1 - step / steps) * (away / squares[..., None] ** 3).sum(axis=1)
    return x


def bits(rows, number):
    return 2.0 * (np.arange(rows)[:, None] >> np.arange(number) & 1) - 1


def random_room(d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (40, d)), rng.uniform(-1, 1, (24, d))


RIGHT = {
    "layer_room": [two_clocks(), slow_and_fast_hands(), apart(pushed(40, 0), pushed(24, 1))],
    "layer_embed": [embed, by_index, by_one_hot],
    "layer_position_gradient": [
        gradient,
        gradient_by_loop,
        lambda g, n: np.pad(np.einsum("btd->td", g), ((0, n - g.shape[1]), (0, 0))),
    ],
    "layer_scaled_embed": [
        scaled_by(np.sqrt),
        lambda ids, E, P: embed(ids, np.sqrt(E.shape[-1]) * E, P),
        lambda ids, E, P: by_loop(ids, E * len(E[0]) ** 0.5, P),
    ],
    "layer_training_bytes": [
        training_bytes,
        lambda V, d, T, p: 4 * 4 * d * (V + {"learned": T}.get(p, 0)),
        lambda V, d, T, p: 16.0 * d * (V + T * (p == "learned")),
    ],
    "layer_embed_from": [embed_from, embed_from_by_rows, embed_from_by_index],
}

WRONG = {
    "layer_room": {
        "random": random_room(8),
        "too many numbers": random_room(32),
        "bits, too many of them": apart(bits(40, 6), bits(24, 5)),
        "one clock for each": apart(clock(40, 40), clock(24, 24)),
        "a clock and bits": apart(clock(40, 40), bits(24, 5)),
        "both in the same numbers": (two_clocks()[0], np.roll(two_clocks()[1], 4, axis=1)),
        "numbered on a line": apart(np.arange(40)[:, None] / 39, np.arange(24)[:, None] / 23),
        "numbers too large": tuple(3 * table for table in two_clocks()),
        "zeros": (np.zeros((40, 8)), np.zeros((24, 8))),
        "not numbers": (np.full((40, 8), np.nan), np.zeros((24, 8))),
        "the other way round": two_clocks()[::-1],
        "tables of two widths": (two_clocks()[0], clock(24, 24)),
        "the tokens alone": two_clocks()[0],
    },
    "layer_embed": {
        "tokens alone": lambda ids, E, P: E[ids],
        "the length of the batch": lambda ids, E, P: E[ids] + P[: len(ids)],
        "a position for a sequence": lambda ids, E, P: (
            E[ids] + P[: len(ids)][:, None] if ids.ndim > 1 else embed(ids, E, P)
        ),
        "the first position": lambda ids, E, P: E[ids] + P[0],
        "positions of the ids": lambda ids, E, P: E[ids] + P[ids % len(P)],
        "from one": lambda ids, E, P: E[ids] + np.roll(P, -1, 0)[: ids.shape[-1]],
        "the last rows": lambda ids, E, P: E[ids] + P[-ids.shape[-1] :],
        "the whole table": lambda ids, E, P: E[ids] + P,
        "two axes alone": lambda ids, E, P: E[ids] + P[: ids.shape[1]],
        "always a batch": lambda ids, E, P: embed(np.atleast_2d(ids), E, P),
        "a product": lambda ids, E, P: E[ids] * P[: ids.shape[-1]],
        "in a loop": by_loop,
        "in the package": by_the_package,
    },
    "layer_position_gradient": {
        "only what was read": lambda g, n: g.sum(axis=0),
        "a mean": lambda g, n: gradient(g, n) / len(g),
        "the last sequence": gradient_assigned,
        "over the positions": lambda g, n: gradient(g.swapaxes(0, 1), max(n, len(g)))[:n],
        "at the end": gradient_at_the_end,
        "repeated": gradient_repeated,
        "over the width": lambda g, n: np.repeat(
            gradient(g, n).sum(-1, keepdims=True), g.shape[2], 1
        ),
        "not summed": lambda g, n: np.pad(g, ((0, 0), (0, n - g.shape[1]), (0, 0))),
        "ones where nothing was read": lambda g, n: (
            gradient(g, n) + (np.arange(n) >= g.shape[1])[:, None]
        ),
        "rounded": lambda g, n: np.round(gradient(g, n), 10),
    },
    "layer_scaled_embed": {
        "as it stands": lambda ids, E, P: embed(ids, E, P) * np.sqrt(E.shape[1]),
        "not scaled": embed,
        "twice": scaled_by(lambda d: 2.0),
        "d": scaled_by(lambda d: d),
        "divided": scaled_by(lambda d: d**-0.5),
        "positions scaled": lambda ids, E, P: E[ids] + P[: ids.shape[-1]] * np.sqrt(E.shape[1]),
        "both, one divided": scaled_by(np.sqrt, lambda places, d: places / np.sqrt(d)),
        "the rows of the table": lambda ids, E, P: E[ids] * len(E) ** 0.5 + P[: ids.shape[-1]],
        "half of d": scaled_by(lambda d: d / 2),
        "whole roots": scaled_by(lambda d: int(np.sqrt(d))),
        "the length of the ids": lambda ids, E, P: (
            E[ids] * ids.shape[-1] ** 0.5 + P[: ids.shape[-1]]
        ),
        "a batch alone": lambda ids, E, P: E[ids] * E.shape[1] ** 0.5 + P[: ids.shape[1]],
    },
    "layer_training_bytes": {
        "the weights": lambda V, d, T, p: training_bytes(V, d, T, p) // 4,
        "with gradients": lambda V, d, T, p: training_bytes(V, d, T, p) // 2,
        "one running mean": lambda V, d, T, p: training_bytes(V, d, T, p) * 3 // 4,
        "a constant table too": lambda V, d, T, p: 16 * d * (V + (T if p else 0)),
        "a constant table's weights": lambda V, d, T, p: (
            training_bytes(V, d, T, p) + (4 * T * d if p == "sinusoidal" else 0)
        ),
        "tokens alone": lambda V, d, T, p: 16 * V * d,
        "always positions": lambda V, d, T, p: 16 * d * (V + T),
        "the weights of the positions": lambda V, d, T, p: (
            16 * V * d + (4 * T * d if p == "learned" else 0)
        ),
        "one row a position": lambda V, d, T, p: 16 * (V * d + (T if p == "learned" else 0)),
        "bits": lambda V, d, T, p: 8 * training_bytes(V, d, T, p),
        "off by a hundred": lambda V, d, T, p: training_bytes(V, d, T, p) + 100 * (V > 1000),
        "in MB": lambda V, d, T, p: training_bytes(V, d, T, p) / 1e6,
    },
    "layer_embed_from": {
        "never refuses": embed_from_with(lambda n, start, length, rows: False),
        "refuses an empty slice": embed_from_with(lambda n, start, length, rows: rows == 0),
        "refuses a start past the end": embed_from_with(
            lambda n, start, length, rows: start >= length
        ),
        "refuses a start further on": embed_from_with(past(lambda n, start: start)),
        "refuses one too early": embed_from_with(past(lambda n, start: start + n + 1)),
        "refuses one too late": embed_from_with(past(lambda n, start: start + n - 1)),
        "gives an empty result for one token": empty_where_nothing_is_left,
        "the last row again": embed_from_clipped,
        "an IndexError": embed_from_with(lambda n, s, length, rows: rows < n, IndexError),
        "ignores start": lambda ids, E, P, start: (
            embed_from(ids, E, P, 0)
            if start + ids.shape[1] <= len(P)
            else embed_from(ids, E, P, start)
        ),
        "one position for all": lambda ids, E, P, start: (
            embed_from(ids[:, :1], E, P, start) - E[ids[:, :1]] + E[ids]
            if start + ids.shape[1] <= len(P)
            else embed_from(ids, E, P, start)
        ),
        "one further": lambda ids, E, P, start: embed_from(ids, E, np.roll(P, -1, 0), start),
        "the batch for the sequence": lambda ids, E, P, start: (
            embed_from(ids, E, P, start)
            if start + len(ids) <= len(P)
            else embed_from(ids, E, P, len(P))
        ),
    },
}

HINTS = {
    "layer_room": {"too many numbers": "Two tables", "one clock for each": "how close"},
    "layer_embed": {
        "the length of the batch": "the last axis of the ids",
        "in a loop": "Without a loop",
        "in the package": "In NumPy alone",
    },
    "layer_position_gradient": {"a mean": "Sum over", "only what was read": "gradient zero"},
    "layer_scaled_embed": {
        "as it stands": "added as they are",
        "not scaled": "square root",
        "twice": "whatever it is",
    },
    "layer_training_bytes": {
        "a constant table too": "no running means",
        "always positions": "there is one table",
    },
    "layer_embed_from": {
        "ignores start": "is at position `start`",
        "never refuses": "silently shorter",
        "gives an empty result for one token": "compare its end",
    },
}
