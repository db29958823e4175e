"""Right and wrong answers to the exercises of "More than one machine"."""

import numpy as np

SENDS, MESSAGES = "bytes that each rank sends in a step", "messages that each rank sends in a step"
LIMIT = "bytes that it would never exceed, however many ranks"
REACH = "bytes that reach rank 0 if all others send it their gradient"
MEANS = "bytes of AdamW's two means in each rank, sharded"
N = 124_439_808
COUNTS = {SENDS: 7 * N, MESSAGES: 14, LIMIT: 8 * N, REACH: 28 * N, MEANS: N}


# Averages
def average(gradients, counts):
    total = np.zeros_like(gradients[0])
    for gradient, count in zip(gradients, counts, strict=True):
        if count:
            total = total + count * gradient
    return total / sum(counts)


def average_by_numpy(gradients, counts):
    there = np.array(counts) > 0
    return np.average(np.array(gradients)[there], axis=0, weights=np.array(counts)[there])


def mean_of_means(gradients, counts):
    return sum(gradients) / len(gradients)


# A reduce-scatter
def scatter_by_sum(gradients):
    return np.reshape(gradients.sum(0) / len(gradients), (len(gradients), -1))


def scatter_by_parts(gradients):
    n = len(gradients)
    return gradients.reshape(n, n, -1).mean(axis=0)


# A sharded optimiser
def sharded(weights, gradients, velocities, lr, beta):
    size, new, kept = len(velocities[0]), weights.copy(), []
    for rank, velocity in enumerate(velocities):
        own = slice(rank * size, (rank + 1) * size)
        g = sum(gradient[own] for gradient in gradients) / len(gradients)
        kept.append(beta * velocity + g)
        new[own] -= lr * kept[-1]
    return new, kept


def sharded_whole(weights, gradients, velocities, lr, beta):
    v = beta * np.concatenate(velocities) + np.mean(gradients, axis=0)
    return weights - lr * v, np.split(v, len(velocities))


def of_its_own(weights, gradients, velocities, lr, beta):
    n = len(gradients)
    own = [np.split(gradient, n)[rank] for rank, gradient in enumerate(gradients)]
    kept = [beta * v + g for v, g in zip(velocities, own, strict=True)]
    return weights - lr * np.concatenate(kept), kept


def poisoned(gradients, counts):
    return np.tensordot(np.array(counts, float), np.array(gradients), 1) / sum(counts)


RIGHT = {
    "ranks_predict": [COUNTS, {name: float(count) for name, count in COUNTS.items()}],
    "ranks_average": [average, average_by_numpy],
    "ranks_scatter": [scatter_by_sum, scatter_by_parts],
    "ranks_sharded": [sharded, sharded_whole],
}
WRONG = {
    "ranks_predict": {
        "… go round twice": COUNTS | {MESSAGES: 7},
        "… to itself": COUNTS | {REACH: 32 * N},
    },
    "ranks_average": {
        "NaN hidden": (
            lambda gradients, counts: average(
                [*map(np.nan_to_num, gradients)],
                [n * np.isfinite(g).all() for g, n in zip(gradients, counts, strict=True)],
            )
        ),
        "NaN": (poisoned),
        "… weight each gradient": mean_of_means,
    },
    "ranks_scatter": {
        "… not the sum": lambda g: g.sum(axis=0).reshape(len(g), -1),
        "… without gaps": lambda g: g.mean(axis=0).reshape(-1, len(g)).T,
    },
    "ranks_sharded": {"… Average over the ranks": of_its_own},
}
