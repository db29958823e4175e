"""Right and wrong answers to the exercises of "More than one machine"."""

import numpy as np

from . import guesses

GUESSES = {
    "bytes that each rank sends in a step": {
        217_769_664: "float32 takes 4",
        435_539_328: "all-gather sends",
        995_518_464: "the limit",
    },
    "messages that each rank sends in a step": {7: "go round twice", 16: "need not come back"},
    "bytes that it would never exceed, however many ranks": {497_759_232: "Each chunk goes"},
    "bytes that reach rank 0 if all others send it their gradient": {3_982_073_856: "to itself"},
    "bytes of AdamW's two means in each rank, sharded": {
        995_518_464: "all of it",
        62_219_904: "keeps two means",
    },
}


# Averages
def average(gradients, counts):
    there = np.array(counts) > 0
    return np.average(np.array(gradients)[there], axis=0, weights=np.array(counts)[there])


# A reduce-scatter
def scatter(gradients):
    n = len(gradients)
    return gradients.reshape(n, n, -1).mean(axis=0)


# A sharded optimiser
def sharded(weights, gradients, velocities, lr, beta):
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
    "ranks_average": [average],
    "ranks_scatter": [scatter],
    "ranks_sharded": [sharded],
}
WRONG = {
    "ranks_predict": guesses(GUESSES),
    "ranks_average": {
        "NaN hidden": (
            lambda gradients, counts: average(
                [*map(np.nan_to_num, gradients)],
                [n * np.isfinite(g).all() for g, n in zip(gradients, counts, strict=True)],
            )
        ),
        "… 0 times NaN": poisoned,
        "… weight each gradient": lambda gradients, counts: sum(gradients) / len(gradients),
        "… number of all tokens.": lambda *given: average(*given) * sum(given[1]),
        "… not of the ranks": lambda *given: average(*given) * sum(given[1]) / len(given[1]),
    },
    "ranks_scatter": {
        "… not the sum": lambda g: sum(g).reshape(len(g), -1),
        "… one for each rank": lambda g: scatter(g).reshape(-1, len(g)),
        "… without gaps": lambda g: np.stack([g.mean(axis=0)[r :: len(g)] for r in range(len(g))]),
        "… Cut it": lambda g: sum(g) / len(g),
        "… axis 0": lambda g: np.einsum("rpn->rn", g.reshape(len(g), len(g), -1)) / len(g),
    },
    "ranks_sharded": {
        "… Average over the ranks": of_its_own,
        "… not the sum": lambda w, g, v, *rest: sharded(w, [sum(g)] * len(g), v, *rest),
        "… after the step": lambda w, g, v, *rest: (sharded(w, g, v, *rest)[0], v),
        "… times beta": lambda w, g, v, lr, beta: sharded(w, g, v, lr, 0),
        "… w goes down": lambda w, g, v, lr, beta: sharded(w, g, v, -lr, beta),
    },
}
