"""Right and wrong answers to the exercises of "Sampling"."""

import numpy as np

from tinytorch import functional
from tinytorch.models.sampling import keep_top_p

KEPT = {
    "top_k = 2": 2,
    "temperature = 0, top_p = 0.75": 1,
    "top_p = 0.75": 3,
    "temperature = 0.5, top_p = 0.75": 1,
    "top_k = 3, top_p = 0.8": 2,
}

# The draw -------------------------------------------------------------------------------------


def draw_by_argmax(probs, u):
    sums = np.cumsum(probs, axis=-1)
    return np.argmax(sums > u[:, None] * sums[:, -1:], axis=-1)


def draw_by_normalised_sums(probs, u):
    sums = probs.cumsum(axis=1)
    sums /= sums[:, -1:]
    return np.count_nonzero(sums <= u[:, None], axis=1)


def unscaled(probs, u):
    return (probs.cumsum(axis=1) <= u[:, None]).sum(axis=1)


def last_sum_made_1(probs, u):
    sums = probs.cumsum(axis=1)
    sums[:, -1] = 1
    return (sums <= u[:, None]).sum(axis=1)


def draw_by_comprehension(probs, u):
    sums = probs.cumsum(axis=1)
    return np.array([(s <= x * s[-1]).sum() for s, x in zip(sums, u, strict=True)])


# Temperature ----------------------------------------------------------------------------------


def tempered(logits, temperature):
    if temperature == 0:
        return np.eye(logits.shape[-1])[logits.argmax(axis=-1)]
    return functional.softmax(logits / temperature).numpy()


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


def unshifted(logits, temperature):
    if temperature == 0:
        return tempered(logits, 0)
    with np.errstate(all="ignore"):
        e = np.exp(logits / temperature)
        return e / e.sum(axis=-1, keepdims=True)


def all_of_the_largest(logits, temperature):
    if temperature:
        return tempered(logits, temperature)
    best = logits == logits.max(axis=-1, keepdims=True)
    return best / best.sum(axis=-1, keepdims=True)


# The nucleus ----------------------------------------------------------------------------------


def top_p(probs, p, falls_short=False, more_than_p=False, normalise=True, sort_back=True):
    """The solution; the switches are what one gets wrong."""
    order = np.argsort(-probs, axis=1)
    falling = np.take_along_axis(probs, order, axis=1)
    sums = falling.cumsum(axis=1)
    before = sums - falling
    kept = sums <= p if falls_short else before <= p if more_than_p else before < p
    kept = np.where(kept, falling, 0.0)
    if sort_back:
        kept = np.take_along_axis(kept, np.argsort(order, axis=1), axis=1)
    return kept / kept.sum(axis=1, keepdims=True) if normalise else kept


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


def package_under_another_name(probs, p):
    nucleus = keep_top_p
    return nucleus(probs, p)


# The loop -------------------------------------------------------------------------------------


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


def written(
    keeps_stop=True, looks_at_prompt=False, limit=None, numbers=lambda u: u, read=lambda ids: ids,
    choose=draw_one,
):  # fmt: skip
    """The loop with one thing about it changed."""

    def loop(next_probs, prompt, max_new, stop, u):
        ids, u = list(prompt), numbers(u)
        for i in range(max_new if limit is None else limit(prompt, max_new, u)):
            if looks_at_prompt and stop in ids:
                break
            new = choose(next_probs(read(ids)), u[i])
            if new != stop or keeps_stop:
                ids.append(new)
            if new == stop:
                break
        return ids

    return loop


def reads_the_prompt_alone(next_probs, prompt, max_new, stop, u):
    ids = list(prompt)
    for i in range(max_new):
        ids.append(draw_one(next_probs(prompt), u[i]))
        if ids[-1] == stop:
            break
    return ids


def appends_to_the_prompt(next_probs, prompt, max_new, stop, u):
    prompt.extend(write(next_probs, prompt, max_new, stop, u)[len(prompt) :])
    return prompt


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
        "one fewer": lambda x, k: np.where(x > np.sort(x)[..., -k, None], x, -np.inf),
        "one limit for all": lambda x, k: np.where(x >= np.sort(x, axis=None)[-k], x, -np.inf),
        "in a loop": lambda x, k: np.array(
            [
                [v if v >= sorted(row)[-k] else -np.inf for v in row]
                for row in x.reshape(-1, x.shape[-1])
            ]
        ).reshape(x.shape),
    },
    "sampling_kept": {
        "top-p that falls short": {**KEPT, "top_p = 0.75": 2},
        "the temperature forgotten": {**KEPT, "temperature = 0.5, top_p = 0.75": 3},
        "top-k not normalised": {**KEPT, "top_k = 3, top_p = 0.8": 3},
    },
    "sampling_draw": {
        "the most likely": lambda probs, u: probs.argmax(axis=1),
        "not scaled, the last at most": lambda probs, u: np.minimum(
            unscaled(probs, u), probs.shape[1] - 1
        ),
        "the last sum made 1": last_sum_made_1,
        "sums rounded": lambda probs, u: (
            (probs.cumsum(axis=1).round(2) <= u[:, None]).sum(axis=1) % max(probs.shape[1], 1)
        ),
        "a comprehension": draw_by_comprehension,
    },
    "sampling_temperature": {
        "probabilities divided": scaled_probabilities,
        "logits multiplied": lambda logits, t: tempered(logits, 1 / t if t else 0),
        "an exponential that overflows": unshifted,
        "rounded": lambda logits, t: tempered(logits, t).round(6),
        "all of the largest at 0": all_of_the_largest,
    },
    "sampling_top_p": {
        "falls short of p": lambda probs, p: (
            top_p(probs, p, falls_short=True, normalise=False)
            / np.maximum(top_p(probs, p, falls_short=True, normalise=False).sum(1), 1e-9)[:, None]
        ),
        "not normalised": lambda probs, p: top_p(probs, p, normalise=False),
        "all equals kept": kept_equals,
        "everything": lambda probs, p: probs,
        "the package's by another name": package_under_another_name,
    },
    "sampling_write": {
        "the new tokens alone": lambda next_probs, prompt, *rest: write(next_probs, prompt, *rest)[
            len(prompt) :
        ],
        "the stop token left out": written(keeps_stop=False),
        "a stop token in the prompt": written(looks_at_prompt=True),
        "reads the prompt alone": reads_the_prompt_alone,
        "as many as there are numbers": written(limit=lambda prompt, n, u: len(u)),
        "numbers rounded": lambda f, prompt, n, stop, u: write(f, prompt, n, stop, u.round(2)),
        "the prompt changed": appends_to_the_prompt,
    },
}
