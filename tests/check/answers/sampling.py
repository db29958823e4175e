"""Right and wrong answers to the exercises of "Sampling"."""

import numpy as np

from tinytorch import functional
from tinytorch.models.sampling import keep_top_p, next_token_probs

KEPT = {
    "top_k = 2": 2,
    "temperature = 0, top_p = 0.75": 1,
    "top_p = 0.75": 3,
    "temperature = 0.5, top_p = 0.75": 1,
    "top_k = 3, top_p = 0.8": 2,
}

# The draw -------------------------------------------------------------------------------------


def draw(probs, u):
    sums = probs.cumsum(axis=1)
    return (sums <= (u * sums[:, -1])[:, None]).sum(axis=1)


def draw_by_argmax(probs, u):
    sums = np.cumsum(probs, axis=-1)
    return np.argmax(sums > u[:, None] * sums[:, -1:], axis=-1)


def draw_by_normalised_sums(probs, u):
    sums = probs.cumsum(axis=1)
    sums /= sums[:, -1:]
    return np.count_nonzero(sums <= u[:, None], axis=1)


def unscaled(probs, u):
    return (probs.cumsum(axis=1) <= u[:, None]).sum(axis=1)


def strict(probs, u):
    sums = probs.cumsum(axis=1)
    return (sums < (u * sums[:, -1])[:, None]).sum(axis=1)


def last_sum_made_1(probs, u):
    sums = probs.cumsum(axis=1)
    sums[:, -1] = 1
    return (sums <= u[:, None]).sum(axis=1)


def draw_by_loop(probs, u):
    tokens = np.empty(len(u), dtype=int)
    for i in range(len(u)):
        sums = probs[i].cumsum()
        tokens[i] = np.searchsorted(sums, u[i] * sums[-1], side="right")
    return tokens


def draw_by_comprehension(probs, u):
    sums = probs.cumsum(axis=1)
    return np.array([(s <= x * s[-1]).sum() for s, x in zip(sums, u, strict=True)])


def sorted_first(probs, u):
    order = np.argsort(-probs, axis=1)
    return draw(np.take_along_axis(probs, order, axis=1), u)


def down_the_columns(probs, u):
    sums = probs.cumsum(axis=0)
    return (sums <= (u * sums[:, -1])[:, None]).sum(axis=1)


def drawn_anew(probs, u):
    rng = np.random.default_rng(0)
    return (probs.cumsum(axis=1) <= rng.random(len(probs))[:, None]).sum(axis=1)


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


def powered(logits, temperature):
    """Right above 0, but the probabilities of a small temperature underflow."""
    with np.errstate(all="ignore"):
        powers = functional.softmax(logits).numpy() ** (1 / max(temperature, 1e-9))
        return powers / powers.sum(axis=-1, keepdims=True)


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


def one_row(logits, temperature):
    if temperature:
        return tempered(logits, temperature)
    return np.eye(logits.shape[-1])[logits.argmax()]


def down_the_rows(logits, temperature):
    if temperature == 0:
        return tempered(logits, 0)
    return functional.softmax(logits / temperature, axis=0).numpy()


def mean_subtracted(logits, temperature):
    if temperature == 0:
        return tempered(logits, 0)
    with np.errstate(all="ignore"):
        e = np.exp((logits - logits.mean(axis=-1, keepdims=True)) / temperature)
        return e / e.sum(axis=-1, keepdims=True)


def along_the_second_axis(logits, temperature):
    if temperature == 0:
        return tempered(logits, 0)
    return functional.softmax(logits / temperature, axis=min(1, logits.ndim - 1)).numpy()


def chosen_id(logits, temperature):
    return logits.argmax(axis=-1) if temperature == 0 else tempered(logits, temperature)


def last_of_equals(logits, temperature):
    if temperature:
        return tempered(logits, temperature)
    V = logits.shape[-1]
    return np.eye(V)[V - 1 - logits[..., ::-1].argmax(axis=-1)]


def divides_in_place(logits, temperature):
    if temperature == 0:
        return tempered(logits, 0)
    logits /= temperature
    return functional.softmax(logits).numpy()


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


def first_sum_that_reaches_p(probs, p):
    order = np.argsort(-probs, axis=1)
    sums = np.take_along_axis(probs, order, axis=1).cumsum(axis=1)
    last = np.argmax(sums >= p, axis=1)  # 0 as well if none does
    kept = probs * (order.argsort(axis=1) <= last[:, None])
    return kept / kept.sum(axis=1, keepdims=True)


def above_a_share(probs, p):
    """Keeps what is likelier than a share of the most likely: another filter."""
    kept = np.where(probs >= (1 - p) * probs.max(axis=1, keepdims=True), probs, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


def first_columns(probs, p):
    kept = np.where(probs.cumsum(axis=1) - probs < p, probs, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


def order_of_the_first_row(probs, p):
    order = np.argsort(-probs[0])
    falling = probs[:, order]
    kept = np.where(falling.cumsum(axis=1) - falling < p, falling, 0.0)[:, np.argsort(order)]
    return kept / kept.sum(axis=1, keepdims=True)


def number_of_the_first_row(probs, p):
    number = (top_p(probs[:1], p) > 0).sum()
    least = -np.sort(-probs, axis=1)[:, number - 1 : number]
    kept = np.where(probs >= least, probs, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)


def order_for_its_inverse(probs, p):
    order = np.argsort(-probs, axis=1)
    kept = top_p(probs, p, sort_back=False)
    return np.take_along_axis(kept, order, axis=1)


def divided_by_p(probs, p):
    return top_p(probs, p, normalise=False) / p


def least_likely_first(probs, p):
    order = np.argsort(probs, axis=1)
    rising = np.take_along_axis(probs, order, axis=1)
    kept = np.where(rising.cumsum(axis=1) - rising < p, rising, 0.0)
    kept = np.take_along_axis(kept, np.argsort(order, axis=1), axis=1)
    return kept / kept.sum(axis=1, keepdims=True)


def zeros_in_place(probs, p):
    probs[top_p(probs, p) == 0] = 0.0
    return probs / probs.sum(axis=1, keepdims=True)


def package_under_another_name(probs, p):
    nucleus = keep_top_p
    return nucleus(probs, p)


def package_by_another_door(probs, p):
    with np.errstate(divide="ignore"):
        return next_token_probs(np.log(probs), top_p=p)


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


def stops_a_token_later(next_probs, prompt, max_new, stop, u):
    ids = list(prompt)
    for i in range(max_new):
        ids.append(draw_one(next_probs(ids), u[i]))
        if i and ids[-2] == stop:
            break
    return ids


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
        lambda x, k: np.where(x >= np.sort(x)[..., -k, None], x, -np.inf),
        lambda x, k: np.where(np.argsort(np.argsort(-x, axis=-1), axis=-1) < k, x, -np.inf),
        lambda x, k: np.where(x < np.partition(x, -k)[..., [-k]], -np.inf, x),
    ],
    "sampling_kept": [
        KEPT,
        {name: np.int64(kept) for name, kept in KEPT.items()},
        {name: len(range(kept)) for name, kept in reversed(KEPT.items())},
    ],
    "sampling_draw": [draw, draw_by_argmax, draw_by_normalised_sums],
    "sampling_temperature": [tempered, tempered_in_numpy, tempered_shift_first],
    "sampling_top_p": [top_p, top_p_by_rows, top_p_by_count],
    "sampling_write": [write, write_while, write_recursive],
}

WRONG = {
    "sampling_top_k": {
        "one fewer": lambda x, k: np.where(x > np.sort(x)[..., -k, None], x, -np.inf),
        "the smallest": lambda x, k: np.where(x <= np.sort(x)[..., k - 1, None], x, -np.inf),
        "zeros": lambda x, k: np.where(x >= np.sort(x)[..., -k, None], x, 0),
        "one limit for all": lambda x, k: np.where(x >= np.sort(x, axis=None)[-k], x, -np.inf),
        "sorted": lambda x, k: np.sort(x)[..., -k:],
        "a large number": lambda x, k: np.where(x >= np.sort(x)[..., -k, None], x, -1e9),
        "in a loop": lambda x, k: np.array(
            [
                [v if v >= sorted(row)[-k] else -np.inf for v in row]
                for row in x.reshape(-1, x.shape[-1])
            ]
        ).reshape(x.shape),
    },
    "sampling_kept": {
        "all at temperature 0": {**KEPT, "temperature = 0, top_p = 0.75": 5},
        "none at temperature 0": {**KEPT, "temperature = 0, top_p = 0.75": 0},
        "top-p that falls short": {**KEPT, "top_p = 0.75": 2},
        "top-p with one too many": {**KEPT, "top_p = 0.75": 4},
        "the temperature forgotten": {**KEPT, "temperature = 0.5, top_p = 0.75": 3},
        "the squares not normalised": {**KEPT, "temperature = 0.5, top_p = 0.75": 5},
        "top-k not normalised": {**KEPT, "top_k = 3, top_p = 0.8": 3},
        "one token more than k": {**KEPT, "top_k = 2": 3},
        "all after top-k": {**KEPT, "top_k = 2": 5},
        "between two numbers": {**KEPT, "top_p = 0.75": 2.999999},
    },
    "sampling_draw": {
        "the most likely": lambda probs, u: probs.argmax(axis=1),
        "at most u": strict,
        "not scaled": unscaled,
        "not scaled, the last at most": lambda probs, u: np.minimum(
            unscaled(probs, u), probs.shape[1] - 1
        ),
        "the last sum made 1": last_sum_made_1,
        "not scaled, the first above": lambda probs, u: (probs.cumsum(axis=1) > u[:, None]).argmax(
            axis=1
        ),
        "u rounded": lambda probs, u: draw(probs, u.astype(np.float32)),
        "one number for all rows": lambda probs, u: draw(probs, np.full(len(u), u[0])),
        "the probabilities, not their sums": lambda probs, u: (
            (probs <= u[:, None]).sum(axis=1) % probs.shape[1]
        ),
        "sorted first": sorted_first,
        "sums down the columns": down_the_columns,
        "numbers of its own": drawn_anew,
        "one token too far": lambda probs, u: draw(probs, u) + 1,
        "a loop": draw_by_loop,
        "a comprehension": draw_by_comprehension,
    },
    "sampling_temperature": {
        "probabilities divided": scaled_probabilities,
        "logits multiplied": lambda logits, t: tempered(logits, 1 / t if t else 0),
        "the temperature ignored": lambda logits, t: tempered(logits, 1.0 if t else 0),
        "a small number for 0": lambda logits, t: tempered(logits, max(t, 0.1)),
        "a tiny number for 0": lambda logits, t: tempered(logits, t or 1e-6),
        "powers of probabilities": powered,
        "the root of the temperature": lambda logits, t: tempered(logits, t**0.5),
        "an exponential that overflows": unshifted,
        "all of the largest at 0": all_of_the_largest,
        "the last of the largest at 0": last_of_equals,
        "one row at 0": one_row,
        "an id at 0": chosen_id,
        "down the rows": down_the_rows,
        "along the second axis": along_the_second_axis,
        "the mean subtracted": mean_subtracted,
        "logits": lambda logits, t: logits / t if t else tempered(logits, 0),
        "logits changed": divides_in_place,
    },
    "sampling_top_p": {
        "falls short of p": lambda probs, p: (
            top_p(probs, p, falls_short=True, normalise=False)
            / np.maximum(top_p(probs, p, falls_short=True, normalise=False).sum(1), 1e-9)[:, None]
        ),
        "more than p": lambda probs, p: top_p(probs, p, more_than_p=True),
        "not normalised": lambda probs, p: top_p(probs, p, normalise=False),
        "divided by p": divided_by_p,
        "not put back": lambda probs, p: top_p(probs, p, sort_back=False),
        "put back by the order itself": order_for_its_inverse,
        "all equals kept": kept_equals,
        "a share of the largest": above_a_share,
        "the first sum that reaches p": first_sum_that_reaches_p,
        "in the order of the columns": first_columns,
        "the order of the first row": order_of_the_first_row,
        "as many as in the first row": number_of_the_first_row,
        "the least likely": least_likely_first,
        "p of 0.9": lambda probs, p: top_p(probs, 0.9),
        "everything": lambda probs, p: probs,
        "the most likely": lambda probs, p: np.eye(probs.shape[1])[probs.argmax(axis=1)],
        "probabilities changed": zeros_in_place,
        "the package's": keep_top_p,
        "the package's by another name": package_under_another_name,
        "the package's by another door": package_by_another_door,
    },
    "sampling_write": {
        "the new tokens alone": lambda next_probs, prompt, *rest: write(next_probs, prompt, *rest)[
            len(prompt) :
        ],
        "the first of the prompt lost": lambda *given: write(*given)[1:],
        "the stop token left out": written(keeps_stop=False),
        "no stop": lambda next_probs, prompt, max_new, stop, u: write(
            next_probs, prompt, max_new, None, u
        ),
        "stops at 0": lambda next_probs, prompt, max_new, stop, u: write(
            next_probs, prompt, max_new, 0, u
        ),
        "a stop token in the prompt": written(looks_at_prompt=True),
        "stops a token later": stops_a_token_later,
        "one number for all": written(numbers=lambda u: np.full(len(u), u[0])),
        "the numbers from the end": written(numbers=lambda u: u[::-1]),
        "the most likely": written(choose=lambda probs, u: int(np.argmax(probs))),
        "a sum equal to u": written(
            choose=lambda probs, u: int(np.searchsorted(np.cumsum(probs), u, side="left"))
        ),
        "reads the last token": written(read=lambda ids: ids[-1:]),
        "reads the last two": written(read=lambda ids: ids[-2:]),
        "reads the prompt alone": reads_the_prompt_alone,
        "as many as there are numbers": written(limit=lambda prompt, n, u: len(u)),
        "the prompt counted": written(limit=lambda prompt, n, u: n - len(prompt)),
        "one token too few": written(limit=lambda prompt, n, u: n - 1),
        "at least one token": written(limit=lambda prompt, n, u: max(n, 1)),
        "the prompt changed": appends_to_the_prompt,
    },
}
