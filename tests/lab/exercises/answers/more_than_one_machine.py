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


RIGHT = {
    "ranks_average": [average],
    "ranks_scatter": [scatter],
    "ranks_sharded": [sharded],
}
WRONG = {
    "ranks_predict": guesses(GUESSES),
    "ranks_average": {
        "NaN hidden": ("if count", "if np.isfinite(gradient).all()"),
        "… 0 times NaN": ("if count", "if True"),
        "… weight each gradient": lambda gradients, counts: sum(gradients) / len(gradients),
        "… number of all tokens.": (" / sum(counts)", ""),
        "… not of the ranks": ("sum(counts)", "len(counts)"),
    },
    "ranks_scatter": {
        "… not the sum": ("mean", "sum"),
        "… one for each rank": ("len(gradients), -1", "-1, len(gradients)"),
        "… without gaps": ("len(gradients), -1)", "-1, len(gradients)).T"),
        "… Cut it": (".reshape(len(gradients), -1)", ""),
        "… axis 0": lambda g: np.einsum("rpn->rn", g.reshape(len(g), len(g), -1)) / len(g),
    },
    "ranks_sharded": {
        "… Average over the ranks": ("average[own]", "gradients[rank][own]"),
        "… not the sum": ("sum(gradients) / len(gradients)", "sum(gradients)"),
        "… after the step": ("kept.append(velocity)", "kept.append(velocities[rank])"),
        "… times beta": ("beta * velocity + ", ""),
        "… w goes down": ("weights[own] - lr", "weights[own] + lr"),
    },
}
