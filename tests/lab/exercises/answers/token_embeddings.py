"""Answers to the exercises of the chapter on token embeddings."""

import numpy as np


def lookup_by_loop(table, ids):
    rows = []
    for i in ids.reshape(-1):
        if not 0 <= i < len(table):
            raise IndexError(i)
        rows.append(table[i])
    return np.array(rows).reshape(*ids.shape, table.shape[1])


def step_unique(table, ids, g, lr):
    table = table.copy()
    for i in np.unique(ids):
        table[i] -= lr * g[ids == i].sum(axis=0)
    return table


def cosines(table, i):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit[i]


def neighbours_by_sorted(table, i, k):
    c = cosines(table, i)
    return sorted((j for j in range(len(table)) if j != i), key=lambda j: -c[j])[:k]


RIGHT = {
    "token_counts": [lambda ids, V: (ids.reshape(-1, 1) == np.arange(V)).sum(axis=0)],
    "token_lookup": [lookup_by_loop],
    "token_scatter_add": [
        lambda ids, g, vocab_size: (
            np.eye(vocab_size)[ids.reshape(-1)].T @ g.reshape(-1, g.shape[-1])
        )
    ],
    "token_row_step": [step_unique],
    "token_neighbours": [neighbours_by_sorted],
    "token_cost": [
        lambda v, d, rest, tied: [1 / (1 + rest / ((2 - tied) * v * d)), 16 * (2 - tied) * v * d]
    ],
}

SUM = "for i, row in zip(ids.reshape(-1), g.reshape(-1, g.shape[-1])):\n        grad[i] += row"
WRONG = {
    "token_counts": {"in a byte": ("th=vocab_size)", "th=vocab_size).astype(np.uint8)")},
    "token_lookup": {
        "flat": ("table[ids]", "table[ids.reshape(-1)]"),
        "… no ids.min()": ("(ids < 0).any()", "ids.min() < 0"),
    },
    "token_scatter_add": {
        "… A sum, not a mean": ("+= row", "+= row / (ids == i).sum()"),
        "… find another": (SUM, "np.add.at(grad, ids, g)"),
    },
    "token_row_step": {
        "the same table for no ids": ("table.copy()", "table.copy() if len(ids) else table"),
        "… A sum, not a mean": ("lr * g", "lr * g / (ids[:, None] == ids).sum(0)[:, None]"),
        "… Down, not up": ("np.subtract", "np.add"),
        "… lr times the gradient": ("lr * g", "g"),
        "… reads and writes each row once": (
            "np.subtract.at(table, ids, lr * g)",
            "table[ids] -= lr * g",
        ),
    },
    "token_neighbours": {
        "… Row i is most like itself": ("cosine[i] = -2", "pass"),
        "… Nearest first": ("cosine[i] = -2", "cosine[i] = 2", "-cosine", "cosine"),
    },
    "token_cost": {
        "… A fraction": ("return tables", "return 100 * tables"),
        "… First the share": (
            "tables / (tables + rest), 4 * 4 * tables",
            "16 * tables, tables / (tables + rest)",
        ),
        "… part of the total as well": ("(tables + rest)", "rest"),
    },
}
