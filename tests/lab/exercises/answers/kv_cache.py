"""Right and wrong answers to the exercises of "The KV cache"."""

import numpy as np

from tinytorch import no_grad

from . import guesses

GUESSES = {
    "tokens read without a cache": {
        4230: "reads the prompt alone",
        4130: "has to be read too",
        1770: "reads the prompt as well",
    },
    "tokens read with a cache": {100: "Nothing asks what follows the last"},
    "keys of a layer after the prompt (B, h, T, d/h)": {(1, 8, 40, 512): "numbers of every key"},
    "scores of a layer for the first new token (B, h, n, T)": {
        (1, 8, 1, 40): "looks at itself",
        (1, 8, 41, 41): "has a query",
    },
    "bytes of the cache": {
        6_291_456: "There are keys and values",
        25_165_824: "A number in float16",
        1_572_864: "keeps its share",
        2_097_152: "keys of its own",
        100_663_296: "do not each have d",
        1_228_800: "Room for the whole",
        1_216_512: "for the whole window",
        491_520: "reserved at once",
    },
    "bytes of the cache with 16 heads": {786_432: "d numbers in all"},
}


# One step of one head
def step_in_numpy(q, k, v, keys, values):
    keys = np.concatenate([keys, k[None]])
    values = np.concatenate([values, v[None]])
    scores = (keys * q).sum(axis=1) / len(q) ** 0.5
    e = np.exp(scores - scores.max())
    return (e[:, None] * values).sum(axis=0) / e.sum(), keys, values


# The loop that writes
def write_prompt_first(model, prompt, n, cache):
    cache.clear()
    ids, new = list(prompt), list(prompt)
    with no_grad():
        while len(ids) < len(prompt) + n:
            new = [int(np.argmax(model(np.array(new), cache=cache).numpy()[-1]))]
            ids += new
    return ids


def write_in_pairs(model, prompt, n, cache):
    cache.clear()
    ids = list(prompt)
    while len(ids) < len(prompt) + n:
        with no_grad():
            logits = model(ids[cache.length :][:2], cache=cache).data
        ids += [int(logits[-1].argmax())] if cache.length == len(ids) else []
    return ids


# Attention that remembers
ATTENDED = "mixed, _ = scaled_dot_product_attention(q, k, v, mask)"
FROM_0 = "mask = np.triu(np.full((T, k.shape[2]), -np.inf, dtype=np.float32), 1)"

RIGHT = {
    "cache_allowed": [lambda past, new: np.tri(new, past + new, past, dtype=bool)],
    "cache_step": [step_in_numpy],
    "cache_write": [write_prompt_first, write_in_pairs],
    "cache_readings": [
        ("(1, 2, 3)", "range(1, 9)", "(3, 2, 1)", "(8, 6, 4, 3, 2, 1)", "min(8", "min(12")
    ],
    "cache_attention": [(ATTENDED, "mixed = functional.attention(q, k, v, mask=mask)")],
}
WRONG = {
    "cache_allowed": {
        "everything": lambda past, new: np.ones((new, past + new), dtype=bool),
        "… The right values, but as numbers: a": lambda past, new: np.tri(new, past + new, past),
    },
    "cache_predict": guesses(GUESSES),
    "cache_step": {
        "the new value in front": ("[values, v]", "[v, values]"),
        "… The new token comes last": ("[keys, k]", "[k, keys]", "[values, v]", "[v, values]"),
        "… The new token belongs to them too:": (
            "    keys, values = np.vstack([keys, k]), np.vstack([values, v])\n",
            "",
            "@ values, keys, values",
            "@ values, np.vstack([keys, k]), np.vstack([values, v])",
        ),
        "… in this order": ("@ values, keys, values", "@ values, values, keys"),
    },
    "cache_write": {
        "… Pass the cache that you were given,": (
            "with no_grad",
            "cache.clear()\n        with no_grad",
        ),
        "… Nothing asks what follows the last": (
            "    return ids",
            "    with no_grad():\n        model(ids[-1:], cache=cache)\n    return ids",
        ),
        "… all that it has not read": ("ids[cache.length :]", "ids"),
        "… Return the prompt": ("return ids", "return ids[len(prompt) :]"),
        "… One short": ("range(n)", "range(n - 1)"),
        "… One too many": ("range(n)", "range(n + 1)"),
        "… Row t tells": ("logits[-1]", "logits[0]"),
        "… the one to read": ("logits[-1]", "logits"),
    },
    "cache_attention": {
        "… it did": ("(q, k, v, mask)", "(q, k, v)"),
        "a mask that begins at 0": (ATTENDED, f"{FROM_0}\n        {ATTENDED}"),
        "the stub": ("cache=None", "", "cache is not None", "False"),
    },
    "cache_readings": {
        "… Return the prompt": (
            "guessed\n    return ids",
            "guessed\n    return ids[len(prompt) :]",
        ),
        "… Not more than n": ("len(prompt) + n", "len(prompt) + n + 1"),
        "… up to the first": ("guesses[right] == best[right]", "True"),
        "… outgrow the window": (
            "min(8, end - len(ids) - 1)",
            "8",
            "guessed\n    return ids",
            "guessed\n    return ids[:end]",
        ),
    },
}
