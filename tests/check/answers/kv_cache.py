"""Right and wrong answers to the exercises of "The KV cache"."""

from collections import Counter, defaultdict
from functools import cache
from itertools import product

import numpy as np

from tinytorch import (
    KVCache,
    Linear,
    Module,
    MultiHeadAttention,
    Tensor,
    functional,
    no_grad,
    scaled_dot_product_attention,
)
from tinytorch.stories import StoryGrammar
from tinytorch.training.story_gpt import load_story_gpt, story_tokenizer

WITHOUT, WITH = "tokens read without a cache", "tokens read with a cache"
KEYS = "keys of a layer after the prompt (B, h, T, d/h)"
SCORES = "scores of a layer for the first new token (B, h, n, T)"
BYTES, BYTES_16 = "bytes of the cache", "bytes of the cache with 16 heads"
FULL = 2 * 6 * 1024 * 512 * 2
COST = {
    WITHOUT: sum(40 + i for i in range(60)),
    WITH: 40 + 59,
    KEYS: (1, 8, 40, 64),
    SCORES: (1, 8, 1, 41),
    BYTES: FULL,
    BYTES_16: FULL,
}

# One step of one head -------------------------------------------------------------------------


def step(q, k, v, keys, values, root=None):
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    scores = keys @ q / np.sqrt(root or len(q))
    return functional.softmax(scores).numpy() @ values, keys, values


def step_in_numpy(q, k, v, keys, values):
    keys = np.concatenate([keys, k[None]])
    values = np.concatenate([values, v[None]])
    scores = (keys * q).sum(axis=1) / len(q) ** 0.5
    e = np.exp(scores - scores.max())
    return (e[:, None] * values).sum(axis=0) / e.sum(), keys, values


def step_filled(q, k, v, keys, values):
    p, d = keys.shape
    new_keys, new_values = np.empty((p + 1, d)), np.empty((p + 1, d))
    new_keys[:p], new_values[:p] = keys, values
    new_keys[p], new_values[p] = k, v
    scores = np.einsum("d,pd->p", q / np.sqrt(d), new_keys)
    weights = functional.softmax(Tensor(scores, dtype=np.float64)).data
    return [np.einsum("p,pd->d", weights, new_values), new_keys, new_values]


def attends_before_extending(q, k, v, keys, values):
    _, all_keys, all_values = step(q, k, v, keys, values)
    if len(keys) == 0:
        return v, all_keys, all_values
    return step(q, keys[-1], values[-1], keys[:-1], values[:-1])[0], all_keys, all_values


def in_front(q, k, v, keys, values):
    return step(q, k, v, keys, values)[0], np.vstack([k, keys]), np.vstack([v, values])


def values_in_front(q, k, v, keys, values):
    output, keys, _ = step(q, k, v, keys, values)
    return output, keys, np.vstack([v, values])


def mean_of_values(q, k, v, keys, values):
    _, keys, values = step(q, k, v, keys, values)
    return values.mean(axis=0), keys, values


def best_value(q, k, v, keys, values):
    _, keys, values = step(q, k, v, keys, values)
    return values[(keys @ q).argmax()], keys, values


def without_softmax(q, k, v, keys, values):
    _, keys, values = step(q, k, v, keys, values)
    return keys @ q / np.sqrt(len(q)) @ values, keys, values


def softmax_that_overflows(q, k, v, keys, values):
    _, keys, values = step(q, k, v, keys, values)
    with np.errstate(all="ignore"):
        e = np.exp(keys @ q / np.sqrt(len(q)))
        return e @ values / e.sum(), keys, values


def query_for_key(q, k, v, keys, values):
    return step(q, q, v, keys, values)[0], *step(q, k, v, keys, values)[1:]


def asks_with_the_key(q, k, v, keys, values):
    return step(k, k, v, keys, values)


def window_of_five(q, k, v, keys, values):
    return step(q, k, v, keys[-5:], values[-5:])


def in_place(q, k, v, keys, values):
    q /= np.sqrt(len(q))
    return step(q, k, v, keys, values, root=1)


# The loop that writes -------------------------------------------------------------------------


def write(model, prompt, n, cache):
    cache.clear()
    ids = list(prompt)
    for _ in range(n):
        with no_grad():
            logits = model(ids[cache.length :], cache=cache).data
        ids.append(int(logits[-1].argmax()))
    return ids


def write_prompt_first(model, prompt, n, cache):
    cache.clear()
    ids, new = list(prompt), list(prompt)
    with no_grad():
        while len(ids) < len(prompt) + n:
            new = [int(np.argmax(model(np.array(new), cache=cache).numpy()[-1]))]
            ids += new
    return ids


def write_as_a_batch(model, prompt, n, cache):
    cache.clear()
    ids = np.array([prompt])
    with no_grad():
        for _ in range(n):
            logits = model(ids[:, cache.length :], cache=cache)
            ids = np.append(ids, logits.data[:, -1:].argmax(axis=-1), axis=1)
    return ids[0].tolist()


def written(clear="once", unread=True, extra=False, by_one=False, make=None, row=-1):
    """The loop with one thing about it changed."""

    def loop(model, prompt, n, cache):
        cache = make(cache) if make else cache
        if clear == "once":
            cache.clear()
        ids = list(prompt)
        with no_grad():
            if by_one:
                for i in ids[:-1]:
                    model([i], cache=cache)
            for _ in range(n):
                if clear == "always":
                    cache.clear()
                new = ids[cache.length :] if unread else ids
                ids.append(int(model(new, cache=cache).data[row].argmax()))
            if extra:
                model(ids[-1:], cache=cache)
        return ids

    return loop


def without_a_cache(model, prompt, n, cache):
    ids = list(prompt)
    with no_grad():
        for _ in range(n):
            ids.append(int(model(ids).data[-1].argmax()))
    return ids


def from_the_last(model, prompt, n, cache):
    cache.clear()
    ids = list(prompt)
    with no_grad():
        for _ in range(n):
            ids.append(int(model(ids[-1:], cache=cache).data[-1].argmax()))
    return ids


def after_another_text(model, prompt, n, cache):
    ids, before = list(prompt), cache.length
    for _ in range(n):
        with no_grad():
            logits = model(ids[cache.length - before :], cache=cache).data
        ids.append(int(logits[-1].argmax()))
    return ids


def with_generate(model, prompt, n, cache):
    return model.generate(np.array(prompt), n, temperature=0).data.tolist()


def with_generate_and_filled(model, prompt, n, cache):
    """The text of the package, and then the cache filled in one pass."""
    ids = with_generate(model, prompt, n, cache)
    cache.clear()
    with no_grad():
        model(ids[:-1], cache=cache)
    return ids


def draws(model, prompt, n, cache):
    cache.clear()
    ids, rng = list(prompt), np.random.default_rng(0)
    for _ in range(n):
        with no_grad():
            logits = model(ids[cache.length :], cache=cache)
        probs = functional.softmax(logits).numpy()[-1].astype(float)
        ids.append(int(rng.choice(len(probs), p=probs / probs.sum())))
    return ids


def appends_to_the_prompt(model, prompt, n, cache):
    prompt.extend(write(model, prompt, n, cache)[len(prompt) :])
    return prompt


# Attention that remembers ---------------------------------------------------------------------


class Attention(Module):
    """The solution in small steps; each answer below changes one of them."""

    def __init__(self, d, heads, dropout_prob=0.0):
        self.heads = heads
        self.q_proj, self.k_proj = Linear(d, d), Linear(d, d)
        self.v_proj, self.out_proj = Linear(d, d), Linear(d, d)

    def split(self, y):
        B, T, _ = y.shape
        return y.reshape(B, T, self.heads, -1).permute(0, 2, 1, 3)

    def remember(self, k, v, cache):
        return (k, v) if cache is None else cache.extend(k, v)

    def attend(self, q, k, v, mask):
        return scaled_dot_product_attention(q, k, v, mask)[0]

    def forward(self, x, mask=None, cache=None):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        k, v = self.remember(k, v, cache)
        mixed = self.attend(q, k, v, mask)
        return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(*x.shape))


class Fused(Attention):
    def attend(self, q, k, v, mask):
        return functional.attention(q, k, v, mask=mask)


class Composed(Attention):
    def attend(self, q, k, v, mask):
        keys = Tensor(k).transpose(-2, -1) if isinstance(k, np.ndarray) else k.transpose(-2, -1)
        scores = q @ keys / np.sqrt(q.shape[-1])
        return functional.softmax(scores if mask is None else scores + mask) @ v


class StoresArrays(Attention):
    def remember(self, k, v, cache):
        return cache.extend(k.data, v.data) if cache is not None else (k, v)


class CacheLast(Attention):
    """Calls its cache by position, and itself without one."""

    def forward(self, x, mask=None, cache=None):
        if cache is not None:
            q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
            all_keys, all_values = cache.extend(k, v)
            mixed = self.attend(q, all_keys, all_values, mask)
            return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(*x.shape))
        return super().forward(x, mask)


class OutputFirst(Attention):
    """The parameters in another order."""

    def __init__(self, d, heads, dropout_prob=0.0):
        self.out_proj, self.v_proj = Linear(d, d), Linear(d, d)
        super().__init__(d, heads)


class Stub(Attention):
    def forward(self, x, mask=None):
        return super().forward(x, mask)


class Ignoring(Attention):
    def remember(self, k, v, cache):
        return k, v


class StoringOnly(Attention):
    def remember(self, k, v, cache):
        if cache is not None:
            cache.extend(k, v)
        return k, v

    def attend(self, q, k, v, mask):
        return super().attend(q, k, v, None if mask is None else mask[:, -q.shape[2] :])


class KeysOnly(Attention):
    """Remembers keys; each value is that of the newest tokens."""

    def remember(self, k, v, cache):
        if cache is None:
            return k, v
        keys, values = cache.extend(k, v)
        return keys, np.roll(values, values.shape[2] - v.shape[2], axis=2)


class Exchanged(Attention):
    def remember(self, k, v, cache):
        return (k, v) if cache is None else cache.extend(k, v)[::-1]


class StoredExchanged(Attention):
    def remember(self, k, v, cache):
        return (k, v) if cache is None else cache.extend(v, k)


class StoringWhole(Attention):
    def forward(self, x, mask=None, cache=None):
        if cache is not None:
            cache.extend(self.k_proj(x), self.v_proj(x))
        return super().forward(x, mask)


class StoringTwice(Attention):
    def remember(self, k, v, cache):
        if cache is None:
            return k, v
        cache.extend(k, v)
        return cache.extend(k * 0.0, v)


class StoringInputs(Attention):
    """Keeps what came in, and projects it again."""

    def forward(self, x, mask=None, cache=None):
        if cache is None:
            return super().forward(x, mask)
        whole, _ = cache.extend(self.split(x), self.split(x))
        inputs = np.moveaxis(whole, 1, 2).reshape(len(whole), whole.shape[2], -1)
        q, k, v = (self.split(p(y)) for p, y in (
            (self.q_proj, x), (self.k_proj, Tensor(inputs)), (self.v_proj, Tensor(inputs))
        ))  # fmt: skip
        mixed = self.attend(q, k, v, mask)
        return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(*x.shape))


class Advancing(Attention):
    def forward(self, x, mask=None, cache=None):
        output = super().forward(x, mask, cache)
        if cache is not None:
            cache.advance(x.shape[1])
        return output


class Unmasked(Attention):
    def forward(self, x, mask=None, cache=None):
        return super().forward(x, None if cache is not None else mask, cache)


class MaskCut(Attention):
    """Takes the last columns of the mask, as if nothing had been read before."""

    def forward(self, x, mask=None, cache=None):
        T = x.shape[1]
        if cache is not None and mask is not None:
            mask = np.triu(np.full(mask.shape, -np.inf, dtype=np.float32), 1)[:T]
        return super().forward(x, mask, cache)


class OwnMemory(Attention):
    """Remembers by itself, and ignores what it is given."""

    past = None

    def remember(self, k, v, cache):
        if cache is None:
            return k, v
        if self.past is None or self.past[0].shape[2] + k.shape[2] > 6:
            self.past = k.data[:, :, :0], v.data[:, :, :0]
        self.past = tuple(np.concatenate([a, b.data], 2) for a, b in zip(self.past, (k, v)))  # noqa: B905
        return self.past


class NeedsACache(Attention):
    def remember(self, k, v, cache):
        return cache.extend(k, v)


class WithLayerInside(Attention):
    """Hands everything to the package's layer."""

    def forward(self, x, mask=None, cache=None):
        inner = MultiHeadAttention(x.shape[-1], self.heads)
        inner.load_state_dict(self.state_dict())
        return inner(x, mask=mask, cache=cache)


class OneHead(Attention):
    def __init__(self, d, heads, dropout_prob=0.0):
        super().__init__(d, 1)


class TwoHeads(Attention):
    def __init__(self, d, heads, dropout_prob=0.0):
        super().__init__(d, 2)


# Fewer readings -------------------------------------------------------------------------------


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


def copied(ids, most):
    """What came after the same two tokens earlier in this text."""
    for i in range(len(ids) - 3, -1, -1):
        if ids[i : i + 2] == ids[-2:]:
            return ids[i + 2 : i + 2 + most]
    return []


def drafting(draft=counted, most=8, checked=True, free=True, room=True, cut=True, batch=False):
    """Speculative decoding with one thing about it changed."""

    def write(model, prompt, n):
        ids, end = list(prompt), len(prompt) + n
        while len(ids) < end:
            guesses = draft(ids, min(most, end - len(ids) - 1) if room else most)
            with no_grad():
                given = [ids + guesses] * 2 if batch else ids + guesses
                scores = model(given).data[0] if batch else model(given).data
            best = scores[len(ids) - 1 :].argmax(axis=-1).tolist()
            right = 0
            while right < len(guesses) and (not checked or guesses[right] == best[right]):
                right += 1
            own = best[right : right + 1] if free or not right else []
            ids += guesses[:right] + own
        return ids[:end] if cut else ids

    return write


def drafting_with_a_cache(model, prompt, n):
    """Reads no token twice: what was guessed wrongly is taken back out of the cache."""
    cache, ids, end = model.new_cache(), list(prompt), len(prompt) + n
    while len(ids) < end:
        guesses, unread = counted(ids, min(6, end - len(ids) - 1)), ids[cache.length :]
        with no_grad():
            logits = model(np.array([unread + guesses]), cache=cache).data[0]
        best = logits[len(unread) - 1 :].argmax(axis=-1)
        agree = np.append(best[:-1] == guesses, False)
        cache.length = len(ids) + agree.argmin()
        ids += best[: agree.argmin() + 1].tolist()
    return ids


def with_a_model_as_drafter(model, prompt, n):
    own = load_story_gpt()

    def guess(ids, most):
        for _ in range(most):
            with no_grad():
                ids = [*ids, int(own(ids).data[-1].argmax())]
        return ids[len(ids) - most :] if most else []

    return drafting(guess)(model, prompt, n)


def one_by_one(model, prompt, n):
    return drafting(most=0)(model, prompt, n)


RIGHT = {
    "cache_allowed": [
        lambda past, new: np.arange(past + new) <= past + np.arange(new)[:, None],
        lambda past, new: np.tri(new, past + new, past, dtype=bool),
        lambda past, new: np.tril(np.ones((past + new, past + new), dtype=bool))[past:],
    ],
    "cache_predict": [
        COST,
        {**COST, KEYS: [1, 8, 40, 64], SCORES: [1, 8, 1, 41]},
        {**COST, BYTES: np.int64(FULL), BYTES_16: 16 * FULL // 16},
    ],
    "cache_step": [step, step_in_numpy, step_filled],
    "cache_write": [write, write_prompt_first, write_as_a_batch],
    "cache_readings": [
        drafting(),
        drafting(lambda ids, most: counted(ids, most, (8, 6, 4, 3, 2, 1)), most=12),
        drafting_with_a_cache,
    ],
    "cache_attention": [Attention, Fused, Composed, StoresArrays, CacheLast, OutputFirst],
}

WRONG = {
    "cache_allowed": {
        "not itself": lambda past, new: np.arange(past + new) < past + np.arange(new)[:, None],
        "everything": lambda past, new: np.ones((new, past + new), dtype=bool),
        "as without a cache": lambda past, new: np.arange(past + new) <= np.arange(new)[:, None],
        "the new ones alone": lambda past, new: np.tri(new, dtype=bool),
        "the whole square": lambda past, new: np.tri(past + new, dtype=bool),
        "turned round": lambda past, new: np.tri(new, past + new, past, dtype=bool).T,
        "only the cache": lambda past, new: np.tile(np.arange(past + new) < past, (new, 1)),
        "numbers": lambda past, new: np.tri(new, past + new, past),
        "the opposite": lambda past, new: np.arange(past + new) > past + np.arange(new)[:, None],
        "in a loop": lambda past, new: np.array(
            [[j <= past + i for j in range(past + new)] for i in range(new)]
        ),
    },
    "cache_predict": {
        "a pass too late": {**COST, WITHOUT: COST[WITHOUT] + 60},
        "the prompt read once": {**COST, WITHOUT: 60 * 59 // 2},
        "n squared over two": {**COST, WITHOUT: 100 * 100 // 2},
        "the last token read": {**COST, WITH: 100},
        "the new tokens alone": {**COST, WITH: 60},
        "keys of the whole width": {**COST, KEYS: (1, 8, 40, 512)},
        "keys of the whole window": {**COST, KEYS: (1, 8, 1024, 64)},
        "not itself": {**COST, SCORES: (1, 8, 1, 40)},
        "a query for every token": {**COST, SCORES: (1, 8, 41, 41)},
        "keys alone": {**COST, BYTES: FULL // 2},
        "float32": {**COST, BYTES: FULL * 2},
        "one layer": {**COST, BYTES: FULL // 6},
        "each head of the whole width": {**COST, BYTES: FULL * 8},
        "off by a hundred": {**COST, BYTES: FULL + 100},
        "off by one": {**COST, BYTES: FULL - 1},
        "rounded": {**COST, BYTES: 1.258e7},
        "a hundred tokens": {**COST, BYTES: FULL // 1024 * 100},
        "twice the heads, twice the bytes": {**COST, BYTES_16: 2 * FULL},
        "twice the heads, half the bytes": {**COST, BYTES_16: FULL // 2},
    },
    "cache_step": {
        "the value alone": lambda q, k, v, keys, values: (v, keys, values),
        "attends before it extends": attends_before_extending,
        "the new token in front": in_front,
        "the new value in front": values_in_front,
        "the output alone": lambda *given: step(*given)[0],
        "keys and values exchanged": lambda *given: tuple(step(*given)[i] for i in (0, 2, 1)),
        "the output last": lambda *given: tuple(step(*given)[i] for i in (1, 2, 0)),
        "no root": lambda *given: step(*given, root=1),
        "the root of the number of keys": lambda q, k, v, keys, values: step(
            q, k, v, keys, values, root=len(keys) + 1
        ),
        "a width of nine": lambda *given: step(*given, root=9),
        "the mean of the values": mean_of_values,
        "the best value": best_value,
        "no softmax": without_softmax,
        "a softmax that overflows": softmax_that_overflows,
        "the query for the key": query_for_key,
        "the key for the query": asks_with_the_key,
        "a window of five": window_of_five,
        "queries changed": in_place,
    },
    "cache_write": {
        "the stub": written(clear="never", unread=False),
        "everything read again": written(unread=False),
        "not cleared": written(clear="never"),
        "cleared before every token": written(clear="always"),
        "the last token read too": written(extra=True),
        "the prompt token by token": written(by_one=True),
        "the first row": written(row=0),
        "a cache of its own": written(make=lambda c: KVCache(c.num_layers, c.max_seq_len)),
        "no cache": without_a_cache,
        "only the last of the prompt": from_the_last,
        "after another text": after_another_text,
        "the package's loop": with_generate,
        "the package's loop, then filled": with_generate_and_filled,
        "drawn, not greedy": draws,
        "the new tokens alone": lambda model, prompt, n, cache: write(model, prompt, n, cache)[
            len(prompt) :
        ],
        "one token too many": lambda model, prompt, n, cache: write(model, prompt, n + 1, cache),
        "the prompt changed": appends_to_the_prompt,
    },
    "cache_attention": {
        "the stub": Stub,
        "ignores the cache": Ignoring,
        "stores and does not look": StoringOnly,
        "old values forgotten": KeysOnly,
        "keys and values exchanged": Exchanged,
        "stored the wrong way round": StoredExchanged,
        "stores what is not split": StoringWhole,
        "stores twice": StoringTwice,
        "stores its inputs": StoringInputs,
        "counts by itself": Advancing,
        "no mask with a cache": Unmasked,
        "a mask that begins at 0": MaskCut,
        "a memory of its own": OwnMemory,
        "needs a cache": NeedsACache,
        "one head": OneHead,
        "two heads": TwoHeads,
        "the package's own layer": type("Inherited", (MultiHeadAttention,), {}),
        "the package's layer inside": WithLayerInside,
    },
    "cache_readings": {
        "the stub": one_by_one,
        "with_generate": lambda model, prompt, n: with_generate(model, prompt, n, None),
        "a single guess": drafting(most=1),
        "counted pairs": drafting(lambda ids, most: counted(ids, most, (1,))),
        "copied from the text": drafting(copied),
        "the model's own token thrown away": drafting(most=2, free=False),
        "not checked": drafting(checked=False),
        "checked in short texts alone": lambda model, prompt, n: drafting(checked=n != 90)(
            model, prompt, n
        ),
        "drafts beyond the window": drafting(room=False),
        "too long": drafting(lambda ids, most: counted(ids, 4), cut=False),
        "another model as drafter": with_a_model_as_drafter,
        "the text of the story GPT": lambda model, prompt, n: one_by_one(
            load_story_gpt(), prompt, n
        ),
        "two texts at once": drafting(batch=True),
        "the new tokens alone": lambda model, prompt, n: drafting()(model, prompt, n)[
            len(prompt) :
        ],
    },
}

HINTS = {
    "cache_readings": {
        "not checked": "up to the first",
        "drafts beyond the window": "outgrow the window",
        "the new tokens alone": "Return the prompt",
        "a single guess": "several tokens at a time",
    },
}
