"""Right and wrong answers to the exercises of "Sampling"."""

from itertools import takewhile

import numpy as np

from tinytorch.models.sampling import next_token_probs

from . import guesses


# The draw
def draw_by_argmax(probs, u):
    sums = np.cumsum(probs, axis=-1)
    return np.argmax(sums > u[:, None] * sums[:, -1:], axis=-1)


# Temperature
def tempered_in_numpy(logits, temperature):
    best = logits.argmax(axis=-1)
    if not temperature:
        return (np.arange(logits.shape[-1]) == best[..., None]).astype(float)
    scaled = logits / temperature
    e = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def all_of_the_largest(logits, temperature):
    if temperature:
        return tempered_in_numpy(logits, temperature)
    best = logits == logits.max(axis=-1, keepdims=True)
    return best / best.sum(axis=-1, keepdims=True)


# The nucleus
def top_p_by_rows(probs, p):
    result = np.zeros(probs.shape)
    for row, out in zip(probs, result, strict=True):
        held = 0.0
        for token in np.argsort(-row, kind="stable"):
            out[token] = row[token]
            held += row[token]
            if held >= p:
                break
        out /= out.sum()
    return result


def top_p_by_count(probs, p, normal=True):
    order = probs.argsort(axis=1)[:, ::-1]
    sums = np.take_along_axis(probs, order, axis=1).cumsum(axis=1)
    count = (sums < p).sum(axis=1)  # how many tokens stand before the one that reaches p
    kept = probs * (order.argsort(axis=1) <= count[:, None])
    return kept / kept.sum(axis=1)[:, None] if normal else kept


def kept_equals(probs, p):
    falling = -np.sort(-probs, axis=1)
    number = (falling.cumsum(axis=1) - falling < p).sum(axis=1)
    least = np.take_along_axis(falling, number[:, None] - 1, axis=1)
    kept = np.where(probs >= least, probs, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


# The loop
def draw_one(probs, u):
    return int(np.searchsorted(np.cumsum(probs), u, side="right"))


def write(next_probs, prompt, max_new, stop, u):
    ids = list(prompt)
    for number in u[:max_new]:
        ids.append(draw_one(next_probs(ids), number))
        if ids[-1] == stop:
            break
    return ids


def write_recursive(next_probs, prompt, max_new, stop, u):
    if max_new == 0:
        return list(prompt)
    ids = [*prompt, int(np.argmax(next_probs(list(prompt)).cumsum() > u[0]))]
    return ids if ids[-1] == stop else write_recursive(next_probs, ids, max_new - 1, stop, u[1:])


RIGHT = {
    "sampling_top_k": [
        lambda x, k: np.where(np.argsort(np.argsort(-x, axis=-1), axis=-1) < k, x, -np.inf)
    ],
    "sampling_draw": [draw_by_argmax],
    "sampling_temperature": [tempered_in_numpy],
    "sampling_top_p": [top_p_by_rows, top_p_by_count],
    "sampling_write": [write_recursive],
}
WRONG = {
    "sampling_top_k": {
        "one limit for all": lambda x, k: np.where(x >= np.sort(x, axis=None)[-k], x, -np.inf)
    },
    "sampling_kept": guesses({"top_k = 2": {5: "keeps k"}, "top_k = 3, top_p = 0.8": {3: "leads"}}),
    "sampling_draw": {
        "sums rounded": lambda probs, u: (
            (probs.cumsum(1).round(2) <= u[:, None]).sum(1) % max(probs.shape[1], 1)
        ),
        "… That is the most likely token; u": lambda probs, u: probs.argmax(axis=1),
    },
    "sampling_temperature": {
        "0 from a hundredth on": lambda logits, t: tempered_in_numpy(logits, t if t >= 0.01 else 0),
        "… what is left of the 2": lambda logits, t: tempered_in_numpy(logits, 1) * t / t,
        "… These sum to 0.5": lambda logits, t: tempered_in_numpy(logits, 1) / t,
        "… not multiplied": lambda logits, t: tempered_in_numpy(logits, 1 / t),
        "… Repair it yourself": lambda logits, t: next_token_probs(logits, t),
        "all of the largest at 0": all_of_the_largest,
    },
    "sampling_top_p": {
        "… as small as possible": kept_equals,
        "… They hold 0.8 only": lambda probs, p: top_p_by_count(probs, p - probs[0, 2]),
        "… make them sum to one": lambda probs, p: top_p_by_count(probs, p, normal=False),
        "… and these are all": lambda probs, p: probs / probs.sum(axis=1, keepdims=True),
    },
    "sampling_write": {
        "numbers rounded": lambda *given: write(*given[:-1], given[-1].round(2)),
        "… Return the prompt": lambda *given: write(*given)[len(given[1]) :],
        "… The stop token itself": lambda *given: [
            *takewhile(lambda i: i != given[3], write(*given))
        ],
        "… read the new tokens": lambda f, prompt, *rest: write(
            lambda ids: f(prompt), prompt, *rest
        ),
        "… Only max_new": lambda f, prompt, n, stop, u: write(f, prompt, 99, stop, u),
    },
}
