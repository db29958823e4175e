"""Right and wrong answers to the exercises of "More than one machine"."""

import numpy as np

SENDS, MESSAGES = "bytes that each rank sends in a step", "messages that each rank sends in a step"
LIMIT = "bytes that it would never exceed, however many ranks"
REACH = "bytes that reach rank 0 if all others send it their gradient"
MEANS = "bytes of AdamW's two means in each rank, sharded"
N = 124_439_808
COUNTS = {SENDS: 7 * N, MESSAGES: 14, LIMIT: 8 * N, REACH: 28 * N, MEANS: N}


# Averages -------------------------------------------------------------------------------------


def average(gradients, counts):
    total = np.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        if count:
            total = total + count * gradient
    return total / sum(counts)


def average_by_numpy(gradients, counts):
    there = np.array(counts) > 0
    return np.average(np.array(gradients)[there], axis=0, weights=np.array(counts)[there])


def average_without_nan(gradients, counts):
    return np.tensordot(counts, np.nan_to_num(gradients), 1) / np.sum(counts)


def mean_of_means(gradients, counts):
    return sum(gradients) / len(gradients)


def poisoned(gradients, counts):
    return np.tensordot(np.array(counts, float), np.array(gradients), 1) / sum(counts)


def mean_of_those_there(gradients, counts):
    return np.mean([g for g, n in zip(gradients, counts, strict=True) if n], axis=0)


def not_divided(gradients, counts):
    return average(gradients, counts) * sum(counts)


def by_ranks(gradients, counts):
    return not_divided(gradients, counts) / len(counts)


# A reduce-scatter -----------------------------------------------------------------------------


def scatter_by_sum(gradients):
    return np.reshape(gradients.sum(0) / len(gradients), (len(gradients), -1))


def scatter_by_parts(gradients):
    n = len(gradients)
    return gradients.reshape(n, n, -1).mean(axis=0)


def scatter_by_split(gradients):
    return np.array(np.split(np.mean(gradients, axis=0), len(gradients)))


def scatter_in_a_loop(gradients):
    n = len(gradients)
    total = 0 * gradients[0]
    for gradient in gradients:
        total = total + gradient / n
    return total.reshape(n, -1)


# A sharded optimiser --------------------------------------------------------------------------


def sharded(weights, gradients, velocities, lr, beta, average=True, decay=True, sign=-1):
    size, new, kept = len(velocities[0]), weights.copy(), []
    for rank, velocity in enumerate(velocities):
        own = slice(rank * size, (rank + 1) * size)
        g = sum(gradient[own] for gradient in gradients)
        g = g / len(gradients) if average else g
        kept.append((beta * velocity if decay else 0) + g)
        new[own] += sign * lr * kept[-1]
    return new, kept


def sharded_whole(weights, gradients, velocities, lr, beta):
    v = beta * np.concatenate(velocities) + np.mean(gradients, axis=0)
    return weights - lr * v, np.split(v, len(velocities))


def sharded_as_rows(weights, gradients, velocities, lr, beta):
    parts = np.mean(gradients, axis=0).reshape(len(velocities), -1)
    kept = beta * np.array(velocities) + parts
    return (weights.reshape(parts.shape) - lr * kept).ravel(), list(kept)


def of_its_own(weights, gradients, velocities, lr, beta):
    n = len(gradients)
    own = [np.split(gradient, n)[rank] for rank, gradient in enumerate(gradients)]
    kept = [beta * v + g for v, g in zip(velocities, own, strict=True)]
    return weights - lr * np.concatenate(kept), kept


def in_place(weights, gradients, velocities, lr, beta):
    new, kept = sharded(weights, gradients, velocities, lr, beta)
    weights[:] = new
    return weights, kept


RIGHT = {
    "ranks_predict": [
        COUNTS,
        {name: float(count) for name, count in COUNTS.items()},
        {name: np.int64(count) for name, count in COUNTS.items()},
    ],
    "ranks_average": [average, average_by_numpy, average_without_nan],
    "ranks_scatter": [scatter_by_sum, scatter_by_parts, scatter_by_split],
    "ranks_sharded": [sharded, sharded_whole, sharded_as_rows],
}
WRONG = {
    "ranks_predict": {
        "numbers, not bytes": COUNTS | {SENDS: 7 * N // 4},
        "half of the way": COUNTS | {SENDS: 7 * N // 2},
        "the limit": COUNTS | {SENDS: 8 * N},
        "once round": COUNTS | {MESSAGES: 7},
        "all the way round": COUNTS | {MESSAGES: 16},
        "one gradient": COUNTS | {LIMIT: 4 * N},
        "its own too": COUNTS | {REACH: 32 * N},
        "not sharded": COUNTS | {MEANS: 8 * N},
        "one mean": COUNTS | {MEANS: N // 2},
    },
    "ranks_average": {
        "mean of means": mean_of_means,
        "NaN": poisoned,
        "mean of those that are there": mean_of_those_there,
        "not divided": not_divided,
        "divided by the ranks": by_ranks,
        "the first": lambda gradients, counts: gradients[0],
    },
    "ranks_scatter": {
        "sum": lambda g: g.sum(axis=0).reshape(len(g), -1),
        "columns": lambda g: g.mean(axis=0).reshape(-1, len(g)),
        "with gaps": lambda g: g.mean(axis=0).reshape(-1, len(g)).T,
        "not cut": lambda g: g.mean(axis=0),
        "over the parts": lambda g: g.reshape(len(g), len(g), -1).mean(axis=1),
        "in a loop": scatter_in_a_loop,
    },
    "ranks_sharded": {
        "each its own gradient": of_its_own,
        "sum": lambda *given: sharded(*given, average=False),
        "no momentum": lambda *given: sharded(*given, decay=False),
        "uphill": lambda *given: sharded(*given, sign=1),
        "old velocities": lambda w, g, v, lr, beta: (sharded(w, g, v, lr, beta)[0], v),
        "in place": in_place,
    },
}
HINTS = {
    "ranks_predict": {"once round": "go round twice", "its own too": "to itself"},
    "ranks_average": {
        "mean of means": "weight each gradient",
        "NaN": "0 times NaN",
        "not divided": "Divide by the number of all tokens",
    },
    "ranks_scatter": {"sum": "not the sum", "with gaps": "without gaps"},
    "ranks_sharded": {
        "each its own gradient": "Average over the ranks",
        "sum": "not the sum",
        "no momentum": "times beta",
        "uphill": "goes down",
    },
}
