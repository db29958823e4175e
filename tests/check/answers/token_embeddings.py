"""Answers to the exercises of the chapter on token embeddings."""

import numpy as np


def lookup(table, ids):
    if (ids < 0).any():
        raise IndexError("ids begin at 0")
    return table[ids]


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


def lookup_take(table, ids):
    if np.any(ids < 0):
        raise IndexError
    return np.take(table, ids, axis=0)


def refusing(bad, error=IndexError):
    """A lookup that refuses something else."""

    def answer(table, ids):
        if bad(table, ids):
            raise error("no")
        return table[ids]

    return answer


def lookup_value_error(table, ids):
    try:
        return lookup(table, ids)
    except IndexError:
        raise ValueError from None


# ---------------------------------------------------------------------------------------------


def scatter(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    for i, row in zip(ids.reshape(-1), g.reshape(-1, g.shape[-1]), strict=True):
        table[i] += row
    return table


def scatter_one_hot(ids, g, vocab_size):
    return np.eye(vocab_size)[ids.reshape(-1)].T @ g.reshape(-1, g.shape[-1])


def scatter_by_row(ids, g, vocab_size):
    return np.array([g[ids == i].sum(axis=0) for i in range(vocab_size)])


def scatter_bincount(ids, g, vocab_size):
    columns = np.moveaxis(g, -1, 0).reshape(g.shape[-1], -1)
    return np.stack([np.bincount(ids.ravel(), c, vocab_size) for c in columns], axis=1)


def scatter_at(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    np.add.at(table, ids, g)
    return table


def scatter_assigned(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    table[ids] = g
    return table


def scatter_indexed(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    table[ids] += g
    return table


def scatter_mean(ids, g, vocab_size):
    counts = np.bincount(ids.reshape(-1), minlength=vocab_size)
    return scatter(ids, g, vocab_size) / np.maximum(counts, 1)[:, None]


def scatter_first_sentence(ids, g, vocab_size):
    return scatter(ids[0], g[0], vocab_size) if ids.ndim > 1 else scatter(ids, g, vocab_size)


def scatter_as_many_rows_as_needed(ids, g, vocab_size):
    return scatter(ids, g, int(ids.max()) + 1)


def scatter_counts(ids, g, vocab_size):
    counts = np.bincount(ids.reshape(-1), minlength=vocab_size)
    return np.repeat(counts[:, None] * 1.0, g.shape[-1], axis=1)


# ---------------------------------------------------------------------------------------------


def step(table, ids, g, lr):
    table = table.copy()
    np.subtract.at(table, ids, lr * g)
    return table


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


def step_in_place(table, ids, g, lr):
    np.subtract.at(table, ids, lr * g)
    return table


def step_last(table, ids, g, lr):
    return step(table, *last_of(ids, g), lr)


def last_of(ids, g):
    last = {int(i): n for n, i in enumerate(ids)}
    return np.array(list(last)), g[list(last.values())]


# ---------------------------------------------------------------------------------------------


def cosines(table, i):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit[i]


def own_set_to(value):
    def answer(table, i, k):
        cosine = cosines(table, i)
        cosine[i] = value
        return np.argsort(-cosine)[:k]

    return answer


def neighbours_by_removal(table, i, k):
    order = np.argsort(cosines(table, i))[::-1]
    return order[order != i][:k]


def neighbours_by_sorted(table, i, k):
    c = cosines(table, i)
    return sorted((j for j in range(len(table)) if j != i), key=lambda j: -c[j])[:k]


def neighbours_by_distance(table, i, k):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    distance = np.linalg.norm(unit - unit[i], axis=1)
    distance[i] = np.inf
    return np.argsort(distance)[:k]


def by_products(table, i, k):
    score = table @ table[i]
    score[i] = -np.inf
    return np.argsort(-score)[:k]


def by_plain_distance(table, i, k):
    distance = np.linalg.norm(table - table[i], axis=1)
    distance[i] = np.inf
    return np.argsort(distance)[:k]


def half_normalised(table, i, k):
    score = table @ (table[i] / np.linalg.norm(table[i]))
    score[i] = -np.inf
    return np.argsort(-score)[:k]


def by_size_of_cosine(table, i, k):
    cosine = np.abs(cosines(table, i))
    cosine[i] = -2
    return np.argsort(-cosine)[:k]


def with_a_small_number(table, i, k):
    length = np.linalg.norm(table, axis=1)
    cosine = table @ table[i] / (length * length[i] + 1e-8)
    cosine[i] = -2
    return np.argsort(-cosine)[:k]


def nearest_columns(table, i, k):
    unit = table / np.linalg.norm(table, axis=0, keepdims=True)
    score = unit @ unit[i]
    score[i] = -np.inf
    return np.argsort(-score)[:k]


# ---------------------------------------------------------------------------------------------


def cost(vocab_size, embed_dim, rest, tied):
    tables = vocab_size * embed_dim * (1 if tied else 2)
    return tables / (tables + rest), 16 * tables


def cost_with(share=None, size=None):
    def answer(v, d, rest, tied):
        right = cost(v, d, rest, tied)
        return (
            right[0] if share is None else share(v, d, rest, tied),
            right[1] if size is None else size(v, d, rest, tied),
        )

    return answer


RIGHT = {
    "token_counts": [
        lambda ids, V: np.bincount(ids.ravel(), minlength=V),
        lambda ids, V: (ids.reshape(-1, 1) == np.arange(V)).sum(axis=0),
        lambda ids, V: np.eye(V, dtype=int)[ids.ravel()].sum(axis=0),
    ],
    "token_lookup": [lookup, lookup_by_loop, lookup_one_hot, lookup_take],
    "token_scatter_add": [scatter, scatter_one_hot, scatter_by_row, scatter_bincount],
    "token_row_step": [
        step,
        step_by_loop,
        step_unique,
        lambda table, ids, g, lr: table - lr * np.eye(len(table))[ids].T @ g,
    ],
    "token_neighbours": [
        own_set_to(-2),
        own_set_to(-np.inf),
        neighbours_by_removal,
        neighbours_by_sorted,
        neighbours_by_distance,
    ],
    "token_cost": [
        cost,
        lambda v, d, rest, tied: [1 / (1 + rest / ((2 - tied) * v * d)), 16 * (2 - tied) * v * d],
        lambda v, d, rest, tied: (
            np.float64(cost(v, d, rest, tied)[0]),
            4.0 * 4 * (2 - tied) * v * d,
        ),
    ],
}

WRONG = {
    "token_counts": {
        "as long as the largest id": lambda ids, V: np.bincount(ids.ravel()),
        "one sequence": lambda ids, V: np.bincount(ids, minlength=V),
        "whether": lambda ids, V: np.isin(np.arange(V), ids).astype(int),
        "shares": lambda ids, V: np.bincount(ids.ravel(), minlength=V) / ids.size,
        "from 1": lambda ids, V: np.bincount(ids.ravel() + 1, minlength=V)[:V],
        "in a loop": lambda ids, V: np.array([(ids == i).sum() for i in range(V)]),
        "the first sequence": lambda ids, V: np.bincount(np.atleast_2d(ids)[0], minlength=V),
    },
    "token_lookup": {
        "counts from the end": lambda table, ids: table[ids],
        "refuses only below": lambda table, ids: lookup(table, np.minimum(ids, len(table) - 1)),
        "clips": lambda table, ids: np.take(table, ids, axis=0, mode="clip"),
        "goes round": lambda table, ids: np.take(table, ids, axis=0, mode="wrap"),
        "looks at the first id only": refusing(lambda table, ids: ids.reshape(-1)[0] < 0),
        "looks at the last id only": refusing(lambda table, ids: ids.reshape(-1)[-1] < 0),
        "refuses -1 only": refusing(lambda table, ids: (ids == -1).any()),
        "refuses if all are below": refusing(lambda table, ids: (ids < 0).all()),
        "has no smallest id": refusing(lambda table, ids: ids.min() < 0),
        "refuses id 0": refusing(lambda table, ids: (ids <= 0).any()),
        "refuses the last row": refusing(lambda t, ids: ((ids < 0) | (ids >= len(t) - 1)).any()),
        "another error": lookup_value_error,
        "columns": lambda table, ids: np.take(table, ids, axis=1),
        "flat": lambda table, ids: lookup(table, ids.reshape(-1)),
        "without an order": lambda table, ids: lookup(table, np.unique(ids)),
    },
    "token_scatter_add": {
        "assigned": scatter_assigned,
        "an indexed sum": scatter_indexed,
        "a mean": scatter_mean,
        "the first sentence": scatter_first_sentence,
        "rows as needed": scatter_as_many_rows_as_needed,
        "counts": scatter_counts,
        "np.add.at": scatter_at,
        "all rows": lambda ids, g, v: (
            np.zeros((v, g.shape[-1])) + g.reshape(-1, g.shape[-1]).sum(0)
        ),
        "its transpose": lambda ids, g, v: scatter(ids, g, v).T,
        "descends": lambda ids, g, v: -scatter(ids, g, v),
        "signs": lambda ids, g, v: np.sign(scatter(ids, g, v)),
        "rounded": lambda ids, g, v: np.round(scatter(ids, g, v), 8),
    },
    "token_row_step": {
        "as it stands": step_as_it_stands,
        "the last of a repeated id": step_last,
        "a mean": lambda t, ids, g, lr: t - lr * scatter_mean(ids, g, len(t)),
        "up": lambda t, ids, g, lr: step(t, ids, g, -lr),
        "ignores lr": lambda t, ids, g, lr: step(t, ids, g, 1.0),
        "lr is always 0.5": lambda t, ids, g, lr: step(t, ids, g, 0.5),
        "in place": step_in_place,
        "the gradient": lambda t, ids, g, lr: scatter(ids, g, len(t)),
        "only the rows": lambda t, ids, g, lr: t[ids] - lr * g,
        "all rows": lambda t, ids, g, lr: t - lr * g.sum(axis=0),
        "divided by the batch": lambda t, ids, g, lr: step(t, ids, g / len(ids), lr),
        "with decay": lambda t, ids, g, lr: step(t * (1 - 0.01 * lr), ids, g, lr),
        "the table unchanged": lambda t, ids, g, lr: t.copy(),
    },
    "token_neighbours": {
        "its own cosine 0": own_set_to(0),
        "its own cosine -1": own_set_to(-1),
        "itself included": lambda t, i, k: np.argsort(-cosines(t, i))[:k],
        "skips the first": lambda t, i, k: np.argsort(-cosines(t, i))[1 : k + 1],
        "farthest first": lambda t, i, k: neighbours_by_removal(t, i, len(t))[::-1][:k],
        "nearest last": lambda t, i, k: neighbours_by_removal(t, i, k)[::-1],
        "products": by_products,
        "distances": by_plain_distance,
        "divided by one length": half_normalised,
        "the size of the cosine": by_size_of_cosine,
        "a small number in the denominator": with_a_small_number,
        "lengths of columns": nearest_columns,
        "partly sorted": lambda t, i, k: np.argpartition(
            -np.where(np.arange(len(t)) == i, -2, cosines(t, i)), min(k, len(t) - 1)
        )[:k],
        "without an order": lambda t, i, k: np.sort(neighbours_by_removal(t, i, k)),
        "always two": lambda t, i, k: neighbours_by_removal(t, i, 2),
        "of row 0": lambda t, i, k: neighbours_by_removal(t, 0, k),
        "cosines": lambda t, i, k: np.sort(cosines(t, i))[::-1][1 : k + 1],
    },
    "token_cost": {
        "per cent": cost_with(share=lambda *given: 100 * cost(*given)[0]),
        "of the rest": cost_with(share=lambda v, d, rest, tied: (2 - tied) * v * d / rest),
        "always one table": lambda v, d, rest, tied: cost(v, d, rest, True),
        "always two": lambda v, d, rest, tied: cost(v, d, rest, False),
        "two tables, the total of one": cost_with(
            share=lambda v, d, rest, tied: (2 - tied) * v * d / (v * d + rest)
        ),
        "the weights alone": cost_with(size=lambda v, d, rest, tied: 4 * (2 - tied) * v * d),
        "weight and gradient": cost_with(size=lambda v, d, rest, tied: 8 * (2 - tied) * v * d),
        "one running mean": cost_with(size=lambda v, d, rest, tied: 12 * (2 - tied) * v * d),
        "in numbers": cost_with(size=lambda v, d, rest, tied: 4 * (2 - tied) * v * d // 4 * 4 // 4),
        "all parameters": cost_with(size=lambda v, d, rest, tied: 16 * ((2 - tied) * v * d + rest)),
        "one gradient for both": cost_with(
            size=lambda v, d, rest, tied: 16 * v * d + (0 if tied else 12 * v * d)
        ),
        "exchanged": lambda *given: cost(*given)[::-1],
        "off by a hundred": cost_with(
            size=lambda *given: cost(*given)[1] + 100 * (given[0] > 50_000)
        ),
    },
}

HINTS = {
    "token_lookup": {
        "counts from the end": "counts negative indices from the end",
        "clips": "negative",
        "has no smallest id": "no ids.min()",
        "flat": "the shape of the ids",
    },
    "token_scatter_add": {
        "assigned": "An indexed assignment writes each row once",
        "a mean": "A sum, not a mean",
        "np.add.at": "find another",
    },
    "token_row_step": {
        "as it stands": "reads and writes each row once",
        "a mean": "A sum, not a mean",
        "up": "Down, not up",
        "in place": "Work on a copy",
        "ignores lr": "lr times",
    },
    "token_neighbours": {
        "itself included": "is most like itself",
        "farthest first": "Nearest first",
    },
    "token_cost": {
        "per cent": "A fraction",
        "of the rest": "The tables are part of the total",
        "exchanged": "First the share",
        "the weights alone": "four bytes each",
    },
}
