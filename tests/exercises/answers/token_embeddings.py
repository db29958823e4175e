"""Answers to the exercises of the chapter on token embeddings."""

import numpy as np


def lookup_by_loop(table, ids):
    rows = []
    for i in ids.reshape(-1):
        if not 0 <= i < len(table):
            raise IndexError(i)
        rows.append(table[i])
    return np.array(rows).reshape(*ids.shape, table.shape[1])


def lookup_one_hot(table, ids):
    if (ids < 0).any() or (ids >= len(table)).any():
        raise IndexError
    return np.eye(len(table))[ids] @ table


def lookup_by_the_smallest(table, ids):
    if ids.min() < 0:
        raise IndexError
    return table[ids]


def scatter(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    for i, row in zip(ids.reshape(-1), g.reshape(-1, g.shape[-1]), strict=True):
        table[i] += row
    return table


def scatter_at(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    np.add.at(table, ids, g)
    return table


def scatter_mean(ids, g, vocab_size):
    counts = np.bincount(ids.reshape(-1), minlength=vocab_size)
    return scatter(ids, g, vocab_size) / np.maximum(counts, 1)[:, None]


def step_by_loop(table, ids, g, lr):
    table = np.array(table)
    for i, row in zip(ids, g, strict=True):
        table[i] -= lr * row
    return table


def step_unique(table, ids, g, lr):
    table = table.copy()
    for i in np.unique(ids):
        table[i] -= lr * g[ids == i].sum(axis=0)
    return table


def step_as_it_stands(table, ids, g, lr):
    table = table.copy()
    table[ids] -= lr * g
    return table


def cosines(table, i):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit[i]


def neighbours_by_sorted(table, i, k):
    c = cosines(table, i)
    return sorted((j for j in range(len(table)) if j != i), key=lambda j: -c[j])[:k]


def neighbours_by_removal(table, i, k):
    order = np.argsort(cosines(table, i))[::-1]
    return order[order != i][:k]


def cost(vocab_size, embed_dim, rest, tied):
    tables = vocab_size * embed_dim * (1 if tied else 2)
    return tables / (tables + rest), 16 * tables


def lookup(table, ids):
    if (ids < 0).any():
        raise IndexError("ids begin at 0")
    return table[ids]


RIGHT = {
    "token_counts": [
        lambda ids, V: (ids.reshape(-1, 1) == np.arange(V)).sum(axis=0),
        lambda ids, V: np.eye(V, dtype=int)[ids.ravel()].sum(axis=0),
    ],
    "token_lookup": [lookup_by_loop, lookup_one_hot],
    "token_scatter_add": [
        lambda ids, g, vocab_size: (
            np.eye(vocab_size)[ids.reshape(-1)].T @ g.reshape(-1, g.shape[-1])
        ),
        lambda ids, g, vocab_size: np.array([g[ids == i].sum(axis=0) for i in range(vocab_size)]),
    ],
    "token_row_step": [step_by_loop, step_unique],
    "token_neighbours": [neighbours_by_sorted, neighbours_by_removal],
    "token_cost": [
        lambda v, d, rest, tied: [1 / (1 + rest / ((2 - tied) * v * d)), 16 * (2 - tied) * v * d],
        lambda v, d, rest, tied: (
            np.float64(cost(v, d, rest, tied)[0]),
            4.0 * 4 * (2 - tied) * v * d,
        ),
    ],
}

WRONG = {
    "token_counts": {
        "in a byte": lambda ids, V: np.bincount(ids.ravel(), minlength=V).astype(np.uint8)
    },
    "token_lookup": {
        "flat": (lambda table, ids: lookup(table, ids.reshape(-1))),
        "… no ids.min()": lookup_by_the_smallest,
    },
    "token_scatter_add": {"… A sum, not a mean": scatter_mean, "… find another": scatter_at},
    "token_row_step": {
        "the same table for no ids": (
            lambda t, ids, g, lr: step_by_loop(t, ids, g, lr) if len(ids) else t
        ),
        "… reads and writes each row once": step_as_it_stands,
    },
    "token_neighbours": {
        "… Nearest first": lambda t, i, k: neighbours_by_removal(t, i, len(t))[::-1][:k]
    },
    "token_cost": {"… A fraction": lambda *given: (100 * cost(*given)[0], cost(*given)[1])},
}
