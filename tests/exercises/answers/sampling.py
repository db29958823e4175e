"""Right and wrong answers to the exercises of "Sampling"."""

import numpy as np

from tinytorch import functional
from tinytorch.models.sampling import next_token_probs

KEPT = {
    "top_k = 2": 2,
    "temperature = 0, top_p = 0.75": 1,
    "top_p = 0.75": 3,
    "temperature = 0.5, top_p = 0.75": 1,
    "top_k = 3, top_p = 0.8": 2,
}


# The draw
def draw_by_argmax(probs, u):
    sums = np.cumsum(probs, axis=-1)
    return np.argmax(sums > u[:, None] * sums[:, -1:], axis=-1)


def draw_by_normalised_sums(probs, u):
    sums = probs.cumsum(axis=1)
    sums /= sums[:, -1:]
    return np.count_nonzero(sums <= u[:, None], axis=1)


# Temperature
def tempered_in_numpy(logits, temperature):
    best = logits.argmax(axis=-1)
    if not temperature:
        return (np.arange(logits.shape[-1]) == best[..., None]).astype(float)
    scaled = logits / temperature
    e = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def tempered_shift_first(logits, temperature):
    shifted = logits - logits.max(axis=-1)[..., None]
    if temperature > 0:
        weights = np.exp(shifted / temperature)
    else:
        weights = np.zeros(logits.shape)
        np.put_along_axis(weights, logits.argmax(axis=-1)[..., None], 1.0, axis=-1)
    return weights / weights.sum(axis=-1)[..., None]


def scaled_probabilities(logits, temperature):
    probs = functional.softmax(logits).numpy() / max(temperature, 1e-9)
    return probs / probs.sum(axis=-1, keepdims=True)


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


def top_p_by_count(probs, p):
    order = probs.argsort(axis=1)[:, ::-1]
    sums = np.take_along_axis(probs, order, axis=1).cumsum(axis=1)
    count = (sums < p).sum(axis=1)  # how many tokens stand before the one that reaches p
    rank = order.argsort(axis=1)
    kept = probs * (rank <= count[:, None])
    return kept / kept.sum(axis=1)[:, None]


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


def write_while(next_probs, prompt, max_new, stop, u):
    ids, new = prompt[:], 0
    while new < max_new:
        token = int((np.cumsum(next_probs(ids)) <= u[new]).sum())
        ids, new = [*ids, token], new + 1
        if token == stop:
            return ids
    return ids


def write_recursive(next_probs, prompt, max_new, stop, u):
    if max_new == 0:
        return list(prompt)
    ids = [*prompt, int(np.argmax(next_probs(list(prompt)).cumsum() > u[0]))]
    return ids if ids[-1] == stop else write_recursive(next_probs, ids, max_new - 1, stop, u[1:])


def tempered(logits, temperature):
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(axis=-1)]
    return functional.softmax(logits / temperature).numpy()


RIGHT = {
    "sampling_top_k": [
        lambda x, k: np.where(np.argsort(np.argsort(-x, axis=-1), axis=-1) < k, x, -np.inf),
        lambda x, k: np.where(x < np.partition(x, -k)[..., [-k]], -np.inf, x),
    ],
    "sampling_kept": [KEPT, {name: np.int64(kept) for name, kept in KEPT.items()}],
    "sampling_draw": [draw_by_argmax, draw_by_normalised_sums],
    "sampling_temperature": [tempered_in_numpy, tempered_shift_first],
    "sampling_top_p": [top_p_by_rows, top_p_by_count],
    "sampling_write": [write_while, write_recursive],
}

WRONG = {
    "sampling_top_k": {
        "one limit for all": lambda x, k: np.where(x >= np.sort(x, axis=None)[-k], x, -np.inf)
    },
    "sampling_kept": {"top-k not normalised": {**KEPT, "top_k = 3, top_p = 0.8": 3}},
    "sampling_draw": {
        "sums rounded": (
            lambda probs, u: (
                (probs.cumsum(axis=1).round(2) <= u[:, None]).sum(axis=1) % max(probs.shape[1], 1)
            )
        ),
        "… That is the most likely token; u": lambda probs, u: probs.argmax(axis=1),
    },
    "sampling_temperature": {
        "0 from a hundredth on": (lambda logits, t: tempered(logits, t if t >= 0.01 else 0.0)),
        "… Dividing all probabilities by 2, and": scaled_probabilities,
        "by the package": lambda logits, temperature: next_token_probs(logits, temperature),
        "all of the largest at 0": all_of_the_largest,
    },
    "sampling_top_p": {"all equals kept": kept_equals},
    "sampling_write": {
        "numbers rounded": (lambda f, prompt, n, stop, u: write(f, prompt, n, stop, u.round(2))),
        "… The stop token itself belongs to": lambda *given: [
            i for i in write(*given) if i != given[3]
        ],
        "… next_probs must read the new tokens": lambda f, prompt, *rest: write(
            lambda ids: f(prompt), prompt, *rest
        ),
    },
}
