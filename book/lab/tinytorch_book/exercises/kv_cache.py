"""Checks for the chapter "The KV cache"."""

from functools import cache, partial
from typing import Any

import numpy as np

from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.incremental import incremental
from tinytorch.models.kv_cache import KVCache
from tinytorch.models.transformer import GPT
from tinytorch_book.exercises.cases import (
    Cases,
    NotYet,
    alone,
    case,
    cases,
    measured,
    one_of,
    predictions,
)
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.gpt import lively_gpt
from tinytorch_book.exercises.multi_head import OWN
from tinytorch_book.exercises.rules import by_hand, no_loop
from tinytorch_book.exercises.scaled_dot_product import attention
from tinytorch_book.experiments.story_gpt import (
    SEQ_LEN,
    VOCAB_SIZE,
    load_story_gpt,
    story_tokenizer,
)

__all__ = ["cache_allowed", "cache_attention", "cache_predict", "cache_readings", "cache_step",
           "cache_token"]  # fmt: skip


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def cache_predict(answer: Any) -> Cases:
    """Check what a cache saves and what it takes, for a GPT with 6 layers and d = 512."""
    read, full = sum(range(40, 100)), 2 * 6 * 1024 * 512 * 2
    window = "Room for the whole window is reserved at once."
    together = "Each head keeps its share: d numbers in all."
    yield from predictions(answer, {
        "tokens read without a cache": (read, "60 passes: over 40 tokens, 41, and so on.",
            (read + 60, "The first pass reads the prompt alone, 40 tokens."),
            (read - 40, "The prompt has to be read too, by the first pass."),
            (60 * 59 // 2, "Every pass reads the prompt as well.")),
        "tokens read with a cache": (99, "The prompt once, and then one token a pass.",
            (100, "Nothing asks what follows the last token, so it is not read.")),
        "keys of a layer after the prompt (B, h, T, d/h)": (
            (1, 8, 40, 64), "8 heads, the tokens read so far, and d shared out among the heads.",
            ((1, 8, 40, 512), "Each head has d/h numbers of every key.")),
        "scores of a layer for the first new token (B, h, n, T)": (
            (1, 8, 1, 41), "One new query looks at all keys.",
            ((1, 8, 1, 40), "The new token looks at itself as well."),
            ((1, 8, 41, 41), "Only the new token has a query.")),
        "bytes of the cache": (full, "2 * layers * window * d * bytes per number.",
            (full // 2, "There are keys and values; and a number in float16 takes 2 bytes."),
            (full * 2, "A number in float16 takes 2 bytes."),
            (full // 8, together),
            (full // 6, "Every layer has keys of its own."),
            (full * 8, "The heads share out the d numbers of a key; they do not each have d."),
            *((full // 1024 * tokens, window) for tokens in (100, 99, 40))),
        "bytes of the cache with 16 heads": (
            full, "Twice the heads, each with vectors of half the length.",
            (full // 16, together)),
    })  # fmt: skip


# One step of one head ------------------------------------------------------------------------


def _step(q: Any, k: Any, v: Any, keys: Any, values: Any) -> Any:
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    return attention(q[None], keys, values)[0], keys, values


@exercise(points=2, reference=_step, rules=[by_hand("tinytorch.core.softmax")], mistakes=[
    (lambda q, k, v, keys, values: (attention(q[None], keys, values)[0], keys, values),
        "The new token belongs to them too: extend, then attend, for it looks at itself as well."),
    (lambda q, k, v, keys, values: (
        _step(q, k, v, keys, values)[0], np.vstack([k, keys]), np.vstack([v, values])),
        "The new token comes last."),
    (lambda *given: [_step(*given)[i] for i in (0, 2, 1)],
        "Return the output, the keys and the values, in this order."),
])  # fmt: skip
def cache_step(answer: Any) -> Cases:
    """Check one decoding step of a single head: its output, all keys and all values."""
    new = np.zeros(2), np.array([1.0, 2.0]), np.array([4.0, 0.0])
    toy, first = (*new, np.array([[3.0, 1]]), np.array([[0.0, 2]])), (*new, *np.zeros((2, 0, 2)))
    five, more = drawn(9, 9, 9, (5, 9), (5, 9)), drawn(4, 4, 4, (12, 4), (12, 4), seed=1)
    stack = "np.vstack([keys, k]) is the new array; leave the old one as it was."
    alike = "A query of zeros weights all keys equally: the mean of all values, the new one too."
    alone = "The first token has itself alone to look at, so its output is v."
    formula = "softmax(K q / sqrt(d)) V, with d the length of q."
    large = "exp(1000) is too large for a float: functional.softmax subtracts the largest first."
    for claim, name, given, hint in (
        ("the keys of all tokens", "keys", toy, stack),
        ("the values of all tokens", "values", toy, stack),
        ("looks at itself as well", "output", toy, alike),
        ("the first token", "output", first, alone),
        ("output with five tokens in the cache", "output", five, formula),
        ("values with five tokens in the cache", "values", five, formula),
        ("twelve tokens of another width", "output", more, formula),
        ("scores in the hundreds", "output", (1e3 * more[0], *more[1:]), large),
    ):
        part = one_of(name, "output", "keys", "values")
        yield case(claim, answer, *given, part=part, hint=hint)


# A token after a prompt ----------------------------------------------------------------------


def _token(
    layers: Any, x: Any, store: Any, length: int, seen: Any = lambda length: length + 1,
    each: int = 0, chained: bool = True, counted: int = 1,
) -> Any:  # fmt: skip
    given, start = x, length
    for i, (W_q, W_k, W_v) in enumerate(layers):
        read = x if chained else given
        store[i, :, length] = read @ W_k, read @ W_v
        keys, values = store[i, :, : seen(length)]
        x, length = attention((read @ W_q)[None], keys, values)[0], length + each
    return x, max(start + counted, length)


def _fed(answer: Any, layers: Any, xs: Any, store: Any, length: int) -> Any:
    """The outputs for some tokens, one after the other; what is stored then, and the length."""
    store, outputs = store.copy(), []
    for x in xs:
        y, length = answer(layers, x.copy(), store, length)
        outputs.append(y)
    return np.array(outputs), store[:, :, : length if length is not None else 0], length


@exercise(points=2, reference=_token, run=_fed, mistakes=[
    (partial(_token, seen=lambda length: length),
        "The newest token looks at itself as well: its key is stored, but not among those read."),
    (partial(_token, seen=lambda length: None),
        "Beyond the new token lies nothing, or another text: read no further than to it."),
    (partial(_token, each=1),
        "length counts the tokens that every layer has read: raise it once, after the last."),
    (partial(_token, chained=False), "A layer reads what the layer before it has written."),
    (partial(_token, counted=0), "One token more has been read."),
])  # fmt: skip
def cache_token(answer: Any) -> Cases:
    """Check layers that read one token after others: its output, the store, and the length."""
    formula = "softmax(K q / sqrt(d)) V, with the keys and values up to those of the new token."
    first = "At the first token there is one key, its own."
    stored = "A token's key and value lie at index length, in every layer."
    count = "It grows by one for each token, whatever the number of layers."
    three, prompt, *new = drawn((3, 3, 4, 4), (3, 2, 9, 4), (1, 4), (5, 4))
    one, empty, more = drawn((1, 3, 6, 6), (1, 2, 7, 6), (7, 6), seed=1)
    names = "output", "store", "length"
    output, store, length = (alone(part=one_of(name, *names)) for name in names)
    yield from cases(answer, {
        "a token after a prompt of three": (formula, three, new[0], prompt, 3, output),
        "the length, three layers": (count, three, new[0], prompt, 3, length),
        "five tokens, one after the other": (formula, three, new[1], prompt, 4, output),
        "their keys and values": (stored, three, new[1], prompt, 4, store),
        "their number": (count, three, new[1], prompt, 4, length),
        "the first token": (first, one, more[:1], empty, 0, output),
        "from the first token to the end of the window": (formula, one, more, empty, 0, output),
    })  # fmt: skip


# Attention that remembers --------------------------------------------------------------------

_TEXT = np.array([[3, 1, 4, 1, 5, 8], [2, 7, 1, 8, 2, 8]])


@exercise(points=3, reference=MultiHeadAttention, rules=OWN)
def cache_attention(answer: Any) -> Cases:
    """Check an attention of the reader's own that takes a cache.

    The answer is called as `answer(d, heads, dropout_prob)` and needs our parameters' names.
    """
    none = "When no cache is given, forward must do what it did."
    takes = (
        "forward takes cache=None; extend gets the split keys and values, the mask stays as it "
        "came, and GPT calls advance."
    )
    once = "Call cache.extend(k, v) with the split keys and values, once."
    returned = "Attend with what extend returns; the mask that comes covers the cache already."
    other = partial(_logits, sizes=(10, 12, 1, 4, 7))
    for claim, run, hint in (
        ("without a cache, as before", partial(_logits, pieces=None), none),
        ("a prompt with an empty cache", partial(_logits, pieces=[6]), takes),
        ("stores keys and values", _stored, once),
        ("a prompt, then token by token", partial(_logits, pieces=[3, 1, 1, 1]), returned),
        ("in chunks", partial(_logits, pieces=[2, 3, 1]), returned),
        ("in a model of other sizes", partial(other, pieces=[1, 4, 1]), returned),
    ):
        part = "keys and values" if run is _stored else "logits", np.asarray
        yield case(claim, answer, _TEXT, run=run, part=part, hint=hint, rtol=1e-4)


def _logits(answer: Any, text: Any, pieces: Any, sizes: Any = (9, 8, 2, 2, 12)) -> Any:
    """What a GPT with the reader's attention computes, the text read in pieces."""
    model, cache = lively_gpt(*sizes, attention=answer), KVCache(sizes[2], sizes[4])
    with no_grad():
        if pieces is None:
            return np.array(model(text).data)
        parts = np.split(text, np.cumsum(pieces)[:-1], axis=1)
        return np.concatenate([model(part, cache=cache).data for part in parts], axis=1)


def _stored(answer: Any, text: Any) -> Any:
    """The keys and values that each layer finds in the cache, followed by a token of zeros."""
    model, cache = lively_gpt(9, 8, 2, 2, 12, attention=answer), KVCache(2, 12)
    zeros = np.zeros((2, 2, 1, 4), dtype=np.float32)
    with no_grad():
        model(text, cache=cache)
        return np.array([cache.layer(i).extend(zeros, zeros) for i in range(2)])


@exercise(
    points=1,
    reference=lambda past, new: np.arange(past + new) <= past + np.arange(new)[:, None],
    rules=[no_loop],
)
def cache_allowed(answer: Any) -> Cases:
    """Check which keys new tokens may look at beside a cache."""
    where = "The first new token stands at position past: it sees that position and all before."
    for past, new in ((3, 2), (0, 4), (5, 1), (2, 3), (1, 1), (70, 40)):
        yield case(f"is right for {new} new after {past}", answer, past, new, hint=where)


# Fewer readings ------------------------------------------------------------------------------

_BEGINNINGS = ("Once upon a time there", "One rainy evening", "Mia was", "Sara was a", "On",
               "One warm day Otto walked")  # fmt: skip


def _greedy(model: Any, prompt: list[int], n: int) -> list[int]:
    ids, cache = list(prompt), model.new_cache()
    for _ in range(n):
        with no_grad():
            ids.append(int(model(ids[cache.length :], cache=cache).data[-1].argmax()))
    return ids


def _noted(answer: Any, model: Any, prompt: list[int], n: int) -> tuple[Any, int]:
    """What the answer writes, and how many readings it took: those of any GPT count."""
    read, forward = [], GPT.forward

    @incremental
    def noting(self: GPT, tokens: Any, *args: Any, **options: Any) -> Any:
        if np.size(tokens) != np.shape(tokens)[-1]:
            raise NotYet("several texts in one reading: give the model one at a time")
        read.append(tokens)
        return forward(self, tokens, *args, **options)

    GPT.forward = noting  # type: ignore[method-assign]
    try:
        return answer(model, prompt, n), len(read)
    finally:
        GPT.forward = forward  # type: ignore[method-assign]


def _text(answer: Any, prompt: list[int], n: int, trained: bool = True) -> Any:
    sizes = VOCAB_SIZE, 16, 1, 2, SEQ_LEN
    return _noted(answer, load_story_gpt() if trained else lively_gpt(*sizes), prompt, n)[0]


@cache
def _story(beginning: str, n: int) -> tuple[list[int], list[int]]:
    """A prompt, and what the model writes after it."""
    prompt = story_tokenizer().encode("\n" + beginning)
    return prompt, _greedy(load_story_gpt(), prompt, n)


def _readings(answer: Any, n: int) -> int:
    """The readings for `n` tokens after each beginning, if each text is that of the model."""
    model, total = load_story_gpt(), 0
    for beginning in _BEGINNINGS:
        prompt, greedy = _story(beginning, n)
        text, readings = _noted(answer, model, list(prompt), n)
        if not np.array_equal(text, greedy):
            raise NotYet(f"not the text of greedy decoding after {beginning!r}")
        total += readings
    return total


@exercise(points=4, reference=_greedy, run=_text)
def cache_readings(answer: Any) -> Cases:
    """`answer(model, prompt, n)` writes what greedy decoding does, with a third of the readings."""
    keep = "Keep the guesses up to the first that the model would not have written, and no more."
    own = "Where a guess is wrong, the same reading says what the model writes in its place."
    room = "A draft must not outgrow the window: guess no more than is still to be written."
    wrong = [
        (ValueError, room),
        (lambda *given: _greedy(*given)[len(given[1]) :], "Return the prompt as well."),
        (lambda model, prompt, n: _greedy(model, prompt, n + 1), "Not more than n new tokens."),
    ]
    begun, untrained = [3, 500, 41], alone(run=partial(_text, trained=False))
    yield from cases(answer, {
        "one token": ("Not more than n new tokens.", story_tokenizer().encode("\nLily was"), 1),
        "a dozen tokens": (keep, story_tokenizer().encode("\nLily was"), 12),
        "with a model that has read nothing": (own, begun, 12, untrained),
        "up to the end of the window": (room, begun, SEQ_LEN - len(begun), untrained),
    }, wrong)  # fmt: skip
    further = "Guess several tokens at a time, and look back at more than one before each guess."
    yield from measured("540 tokens with at most 180 readings", answer, 90, run=_readings, aim=180,
                        told="{} readings", hint=further, show_expected=False)  # fmt: skip
