"""Right and wrong answers to the exercises of "The KV cache"."""

import numpy as np

from tinytorch import functional

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


def step_of_the_package(q, k, v, keys, values):
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    return functional.attention(q[None], keys, values).numpy()[0], keys, values


# A token after a prompt
def token_beside_the_rest(layers, x, store, length):
    """The new key and value are put after those that are read, and stored at the end."""
    for i, (W_q, W_k, W_v) in enumerate(layers):
        k, v = x @ W_k, x @ W_v
        keys, values = np.vstack([store[i, 0, :length], k]), np.vstack([store[i, 1, :length], v])
        e = np.exp(keys @ (x @ W_q) / len(x) ** 0.5)
        store[i, 0, length], store[i, 1, length] = k, v
        x = e @ values / e.sum()
    return x, length + 1


# Attention that remembers
ATTENDED = "mixed, _ = scaled_dot_product_attention(q, k, v, mask)"
FROM_0 = "mask = np.triu(np.full((T, k.shape[2]), -np.inf, dtype=np.float32), 1)"

RIGHT = {
    "cache_allowed": [lambda past, new: np.tri(new, past + new, past, dtype=bool)],
    "cache_step": [step_in_numpy],
    "cache_token": [token_beside_the_rest],
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
        "… the package does the same": step_of_the_package,
    },
    "cache_token": {
        "… looks at itself": (": length + 1]", ":length]"),
        "… or another text": (": length + 1]", ":]"),
        "… raise it once": (
            "keys, values = part[:, : length + 1]",
            "length += 1\n        keys, values = part[:, :length]",
            "return x, length + 1",
            "return x, length",
        ),
        "… has written": (
            "    for part",
            "    given = x\n    for part",
            "        q, part",
            "        x = given\n        q, part",
        ),
        "… One token more": ("return x, length + 1", "return x, length"),
        "nobody but itself": (": length + 1]", "length : length + 1]"),
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
