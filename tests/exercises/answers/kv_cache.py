"""Right and wrong answers to the exercises of "The KV cache"."""

from collections import Counter, defaultdict
from functools import cache
from itertools import product

import numpy as np

from tinytorch import Linear, Module, functional, no_grad
from tinytorch_book.experiments.story_gpt import story_tokenizer
from tinytorch_book.stories import StoryGrammar

from . import changed, guesses

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
def step(q, k, v, keys, values):
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    scores = keys @ q / np.sqrt(len(q))
    return functional.softmax(scores).numpy() @ values, keys, values


def attends_before_extending(q, k, v, keys, values):
    _, all_keys, all_values = step(q, k, v, keys, values)
    if len(keys) == 0:
        return v, all_keys, all_values
    return step(q, keys[-1], values[-1], keys[:-1], values[:-1])[0], all_keys, all_values


# The loop that writes
def write(model, prompt, n, cache, row=-1):
    cache.clear()
    ids = list(prompt)
    for _ in range(n):
        with no_grad():
            ids.append(int(model(ids[cache.length :], cache=cache).data[row].argmax()))
    return ids


def write_and_read_it_all_again(model, prompt, n, cache):
    cache.clear()
    for _ in range(n):
        with no_grad():
            prompt = [*prompt, int(model(prompt, cache=cache).data[-1].argmax())]
    return prompt


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


def write_afresh(model, prompt, n, cache):
    for _ in range(n):
        prompt = write(model, prompt, 1, cache)
    return prompt


def write_and_read_all(model, prompt, n, cache):
    ids = write(model, prompt, n, cache)
    with no_grad():
        model(ids[-1:], cache=cache)
    return ids


# Attention that remembers
class Attention(Module):
    """The solution in small steps; an answer below changes one of them."""

    def __init__(self, d, heads, dropout_prob=0.0):
        self.heads = heads
        self.q_proj, self.k_proj = Linear(d, d), Linear(d, d)
        self.v_proj, self.out_proj = Linear(d, d), Linear(d, d)

    def split(self, y):
        B, T, _ = y.shape
        return y.reshape(B, T, self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x, mask=None, cache=None):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        k, v = (k, v) if cache is None else cache.extend(k, v)
        mixed = functional.attention(q, k, v, mask=mask)
        return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(*x.shape))


# Fewer readings
@cache
def followers():
    """What follows the last one to eight tokens in five hundred stories, the likeliest."""
    ids = story_tokenizer().encode(StoryGrammar().generate(500, seed=1))
    counts = defaultdict(Counter)
    for i, length in product(range(8, len(ids)), range(1, 9)):
        counts[tuple(ids[i - length : i])][ids[i]] += 1
    return {before: strokes.most_common(1)[0][0] for before, strokes in counts.items()}


def counted(ids, most, lengths=(3, 2, 1)):
    text = list(ids)
    while len(text) < len(ids) + most:
        known = [followers().get(tuple(text[-length:])) for length in lengths]
        if not (known := [token for token in known if token is not None]):
            break
        text.append(known[0])
    return text[len(ids) :]


def drafting(draft=counted, most=8, checked=True, room=True):
    """Speculative decoding with one thing about it changed."""

    def write(model, prompt, n):
        ids, end = list(prompt), len(prompt) + n
        while len(ids) < end:
            guesses = draft(ids, min(most, end - len(ids) - 1) if room else most)
            with no_grad():
                best = model(ids + guesses).data[len(ids) - 1 :].argmax(axis=-1).tolist()
            right = 0
            while right < len(guesses) and (not checked or guesses[right] == best[right]):
                right += 1
            ids += guesses[:right] + best[right : right + 1]
        return ids[:end]

    return write


def in_front(k_too=True):
    def wrong(q, k, v, keys, values):
        output, after, _ = step(q, k, v, keys, values)
        return output, np.vstack([k, keys]) if k_too else after, np.vstack([v, values])

    return wrong


class MaskCut(Attention):
    """Takes the last columns of the mask, as if nothing had been read before."""

    def forward(self, x, mask=None, cache=None):
        T = x.shape[1]
        if cache is not None and mask is not None:
            mask = np.triu(np.full(mask.shape, -np.inf, dtype=np.float32), 1)[:T]
        return super().forward(x, mask, cache)


RIGHT = {
    "cache_allowed": [lambda past, new: np.tri(new, past + new, past, dtype=bool)],
    "cache_step": [step],
    "cache_write": [write_prompt_first, write_in_pairs],
    "cache_readings": [drafting(lambda *given: counted(*given, (8, 6, 4, 3, 2, 1)), most=12)],
    "cache_attention": [Attention],
}
WRONG = {
    "cache_allowed": {
        "everything": lambda past, new: np.ones((new, past + new), dtype=bool),
        "… The right values, but as numbers: a": lambda past, new: np.tri(new, past + new, past),
    },
    "cache_predict": guesses(GUESSES),
    "cache_step": {
        "the new value in front": in_front(k_too=False),
        "… The new token comes last": in_front(),
        "… The new token belongs to them too:": attends_before_extending,
        "… in this order": lambda *given: [step(*given)[i] for i in (0, 2, 1)],
    },
    "cache_write": {
        "… Pass the cache that you were given,": write_afresh,
        "… Nothing asks what follows the last": write_and_read_all,
        "… all that it has not read": write_and_read_it_all_again,
        "… Return the prompt": lambda *given: write(*given)[len(given[1]) :],
        "… One short": lambda model, ids, n, cache: write(model, ids, n - 1, cache),
        "… One too many": lambda model, ids, n, cache: write(model, ids, n + 1, cache),
        "… Row t tells": lambda *given: write(*given, row=0),
        "… the one to read": lambda *given: write(*given, row=...),
    },
    "cache_attention": {
        "a mask that begins at 0": MaskCut,
        "the stub": changed(
            Attention, forward=lambda self, x, mask=None: Attention.forward(self, x, mask)
        ),
    },
    "cache_readings": {
        "… Return the prompt": lambda *given: drafting()(*given)[len(given[1]) :],
        "… Not more than n": lambda model, ids, n: drafting()(model, ids, n + 1),
        "… up to the first": drafting(checked=False),
        "… outgrow the window": drafting(room=False),
    },
}
