"""Checks for the chapter "The KV cache"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, NotYet, case, exercise
from tinytorch.core import functional
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.tensor import no_grad
from tinytorch.models.kv_cache import KVCache
from tinytorch.models.transformer import GPT

__all__ = ["cache_attention", "cache_predict", "cache_step", "cache_write"]


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def cache_predict(answer: Any) -> Iterator[Case]:
    """Check what a cache saves and what it takes, for a GPT with 6 layers and d = 512.

    Example:
        >>> right = {
        ...     "tokens read without a cache": 4170,
        ...     "tokens read with a cache": 99,
        ...     "keys of a layer after the prompt (B, h, T, d/h)": (1, 8, 40, 64),
        ...     "scores of a layer for the first new token (B, h, n, T)": (1, 8, 1, 41),
        ...     "bytes of the cache": 12582912,
        ...     "bytes of the cache with 16 heads": 12582912,
        ... }
        >>> bool(cache_predict(right))
        True
        >>> bool(cache_predict({}))
        False
    """
    for name, expected, hint, mistakes in _predictions():
        predicted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(
            name, predicted, expected=expected, hint=hint, mistakes=mistakes, show_expected=False
        )


def _predictions() -> Iterator[tuple[str, Any, str, list[tuple[Any, str]]]]:
    without, full = sum(range(40, 100)), 2 * 6 * 1024 * 512 * 2
    yield (
        "tokens read without a cache",
        without,
        "60 passes: over 40 tokens, 41, and so on.",
        [
            (without + 60, "The first pass reads the prompt alone, 40 tokens."),
            (without - 40, "The prompt has to be read too, by the first pass."),
            (60 * 59 // 2, "Every pass reads the prompt as well."),
        ],
    )
    yield (
        "tokens read with a cache",
        99,
        "The prompt once, and then one token a pass.",
        [(100, "Nobody asks what follows the last token, so it is not read.")],
    )
    yield (
        "keys of a layer after the prompt (B, h, T, d/h)",
        (1, 8, 40, 64),
        "One sequence, 8 heads, the tokens read so far, and d shared out among the heads.",
        [((1, 8, 40, 512), "Each head has d/h numbers of every key.")],
    )
    yield (
        "scores of a layer for the first new token (B, h, n, T)",
        (1, 8, 1, 41),
        "One new query looks at all keys.",
        [
            ((1, 8, 1, 40), "The new token looks at itself as well."),
            ((1, 8, 41, 41), "Only the new token has a query."),
        ],
    )
    yield (
        "bytes of the cache",
        full,
        "2 * layers * window * d * bytes per number.",
        [
            (full // 2, "There are keys and values; and a number in float16 has 2 bytes."),
            (full * 2, "A number in float16 has 2 bytes."),
            (full // 8, "All heads keep their part: d numbers together."),
            (full // 6, "Every layer has keys of its own."),
            (full * 8, "The heads share out the d numbers of a key; they do not each have d."),
            (full // 1024 * 100, "Room for the whole window is reserved at once."),
            (full // 1024 * 99, "Room for the whole window is reserved at once."),
            (full // 1024 * 40, "Room for the whole window is reserved at once."),
        ],
    )
    yield (
        "bytes of the cache with 16 heads",
        full,
        "Twice the heads, each with vectors of half the length.",
        [(full // 16, "All heads keep their part: d numbers together.")],
    )


# One step of one head ------------------------------------------------------------------------


@exercise(points=2)
def cache_step(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check one decoding step of a single head: its output, all keys and all values.

    Example:
        >>> def right(q, k, v, keys, values):
        ...     keys, values = np.vstack([keys, k]), np.vstack([values, v])
        ...     e = np.exp(keys @ q / np.sqrt(len(q)))
        ...     return e @ values / e.sum(), keys, values
        >>> bool(cache_step(right))
        True
        >>> bool(cache_step(lambda q, k, v, keys, values: (v, keys, values)))
        False
    """
    q, k, v = np.array([0.0, 0.0]), np.array([1.0, 2.0]), np.array([4.0, 0.0])
    keys, values = np.array([[3.0, 1.0]]), np.array([[0.0, 2.0]])
    hint = "np.vstack([keys, k]) is the new array; leave the one that came in as it was."
    yield _part_of_step("the keys of all tokens", answer, (q, k, v, keys, values), 1, hint)
    yield _part_of_step("the values of all tokens", answer, (q, k, v, keys, values), 2, hint)
    hint = "A query of zeros likes all keys equally: the mean of all values, the new one included."
    yield _part_of_step("looks at itself as well", answer, (q, k, v, keys, values), 0, hint)
    nothing = np.zeros((0, 2))
    hint = "The first token has itself alone to look at, so its output is v."
    yield _part_of_step("the first token", answer, (q, k, v, nothing, nothing), 0, hint)
    rng = np.random.default_rng(0)
    given = tuple(rng.normal(size=size) for size in ((9,), (9,), (9,), (5, 9), (5, 9)))
    hint = "softmax(K q / sqrt(d)) V, with d the length of q."
    for part in range(3):
        claim = ("output", "keys", "values")[part] + " with five tokens in the cache"
        yield _part_of_step(claim, answer, given, part, hint)


def _step(given: tuple[Any, ...], scale: float) -> tuple[Any, Any, Any]:
    q, k, v, keys, values = given
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    weights = functional.softmax(keys @ q * scale).numpy()
    return weights @ values, keys, values


def _part_of_step(claim: str, answer: Any, given: tuple[Any, ...], part: int, hint: str) -> Case:
    q, k, v, keys, values = given
    right = 1 / np.sqrt(len(q))
    mistakes: list[tuple[Any, str]] = []
    if part == 0:
        mistakes.append((_step(given, scale=1.0)[0], "Divide the scores by the root of d."))
        if len(keys):
            alone = functional.softmax(keys @ q * right).numpy() @ values
            mistakes.append((alone, "The token looks at itself as well: extend, then attend."))
    else:
        came, new = ((keys, k), (values, v))[part - 1]
        mistakes.append((came, "Those of the new token belong to it too."))
        mistakes.append((np.vstack([new, came]), "The new token comes last."))
        other = np.vstack([(values, keys)[part - 1], (v, k)[part - 1]])
        mistakes.append((other, "Return the output, the keys and the values, in this order."))
    name = "output", "keys", "values"

    def take(result: Any) -> Any:
        if not isinstance(result, (tuple, list)) or len(result) != 3:
            raise NotYet("something else than three results: output, keys, values")
        return result[part]

    return case(
        claim,
        answer,
        *given,
        expected=_step(given, scale=float(right))[part],
        part=(name[part], take),
        hint=hint,
        mistakes=mistakes,
    )


# The loop that writes ------------------------------------------------------------------------

_GIVEN = "Pass the cache that you were given, and clear it once, before the loop."


@exercise(points=2)
def cache_write(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check a loop that writes greedily with a cache.

    Example:
        >>> def right(model, prompt, n, cache):
        ...     cache.clear()
        ...     ids = list(prompt)
        ...     for _ in range(n):
        ...         with no_grad():
        ...             logits = model(ids[cache.length :], cache=cache).data
        ...         ids.append(int(logits[-1].argmax()))
        ...     return ids
        >>> bool(cache_write(right))
        True
        >>> bool(cache_write(lambda model, prompt, n, cache: list(prompt)))
        False
    """
    model = _lively(Noting(9, 8, 2, 2, 24, rng=0))
    first, second = [2, 7, 1], [5, 0, 4, 4]
    hint = "Give the model all that it has not read, and no more: first the whole prompt."
    for n in (1, 6):
        yield case(
            f"the text of the model without a cache, {n} token{'s' * (n > 1)}",
            lambda prompt, n: answer(model, prompt, n, KVCache(2, 24)),
            first,
            n,
            expected=_greedy(model, first, n),
            hint=hint,
            mistakes=[
                (ValueError, hint),
                (_greedy(model, first, n)[3:], "Return the prompt as well."),
                (_reread(model, first, n), hint),
            ],
        )
    used = KVCache(2, 24)
    with no_grad():
        model([1, 7], cache=used)
    yield case(
        "the same with a cache that was used before",
        lambda prompt, n: answer(model, prompt, n, used),
        second,
        6,
        expected=_greedy(model, second, 6),
        hint="The keys of another text are still in it; clear() makes it forget.",
    )
    for prompt in (first, second):
        yield case(
            f"reads every token once, a prompt of {len(prompt)}",
            lambda prompt, n: _lengths_read(model, answer, prompt, n),
            prompt,
            6,
            expected=[len(prompt)] + [1] * 5,
            part=("lengths of the passes", lambda lengths: lengths),
            hint="The prompt in one pass, then each new token by itself, the last one not at all.",
            mistakes=[
                ([len(prompt)] + [1] * 6, "Nobody asks what follows the last token."),
                ([len(prompt) + i for i in range(6)], _GIVEN),
                ([1] * (len(prompt) + 5), "All tokens of the prompt can be read in one pass."),
            ],
        )
    yield case(
        "the given cache holds all tokens but the last",
        lambda prompt, n: _length_cached(model, answer, prompt, n),
        second,
        6,
        expected=len(second) + 5,
        part=("length of the cache", lambda length: length),
        hint=_GIVEN,
    )


class Noting(GPT):
    """A GPT that notes how many tokens each pass reads, in the list `read` if it has one."""

    read: list[int] | None = None

    def forward(self, tokens: Any, cache: Any = None, *, last_only: bool = False) -> Any:
        """As usual."""
        if self.read is not None:
            self.read.append(int(np.shape(tokens)[-1]))
        return super().forward(tokens, cache, last_only=last_only)


def _greedy(model: GPT, prompt: list[int], n: int) -> list[int]:
    text = model.generate(np.array(prompt), n, temperature=0, use_cache=False)
    return [int(i) for i in text.data]


def _reread(model: GPT, prompt: list[int], n: int) -> list[int]:
    """What is written if every pass reads the whole text with a cache; empty if it overflows."""
    ids, cache = list(prompt), KVCache(2, 1000)
    for _ in range(n):
        if cache.length + len(ids) > model.max_seq_len:
            return []
        with no_grad():
            ids.append(int(model(ids, cache=cache).data[-1].argmax()))
    return ids


def _lengths_read(model: Noting, answer: Any, prompt: list[int], n: int) -> list[int]:
    model.read = []
    try:
        answer(model, prompt, n, KVCache(2, 24))
        return model.read
    finally:
        model.read = None


def _length_cached(model: GPT, answer: Any, prompt: list[int], n: int) -> int:
    cache = KVCache(2, 24)
    with no_grad():
        model([1, 7], cache=cache)
    answer(model, prompt, n, cache)
    return cache.length


def _lively(model: Any) -> Any:
    """Weights so large that every part shows, in float64 so that ties are decided alike."""
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        parameter.data = rng.normal(0.0, 0.5, size=parameter.shape)
    return model


# Attention that remembers --------------------------------------------------------------------


@exercise(points=3)
def cache_attention(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check an attention of the reader's own that takes a cache.

    The answer is called as `answer(d, heads, dropout_prob)` and needs our parameters' names.

    Example:
        >>> bool(cache_attention(MultiHeadAttention))
        True
        >>> class Forgetful(MultiHeadAttention):
        ...     def forward(self, x, mask=None, cache=None):
        ...         return super().forward(x, mask=mask)
        >>> bool(cache_attention(Forgetful))
        False
    """
    model = _lively(GPT(9, 8, 2, 2, 12))
    yield _read_like(
        "without a cache, as before",
        answer,
        model,
        [6],
        cached=False,
        hint="When no cache is given, forward must do what it did.",
    )
    yield _read_like(
        "a prompt with an empty cache",
        answer,
        model,
        [6],
        hint="forward takes cache=None; extend gets the split keys and values, the mask stays as "
        "it came, and GPT calls advance.",
    )
    yield _read_like(
        "stores keys and values",
        answer,
        model,
        [6],
        stored=True,
        hint="Call cache.extend(k, v) with the split keys and values, once.",
    )
    hint = "Attend with what extend returns: the keys and values of all tokens."
    yield _read_like("a prompt, then token by token", answer, model, [3, 1, 1, 1], hint=hint)
    yield _read_like("in chunks", answer, model, [2, 3, 1], hint=hint)


_TEXT = np.array([[3, 1, 4, 1, 5, 8], [2, 7, 1, 8, 2, 8]])


def _read_like(
    claim: str,
    answer: Any,
    model: GPT,
    sizes: list[int],
    *,
    cached: bool = True,
    stored: bool = False,
    hint: str,
) -> Case:
    """The logits of a GPT with the reader's attention, the text read in pieces."""
    state = model.state_dict()

    def read(_: Any) -> Any:
        try:
            own = _lively(GPT(9, 8, 2, 2, 12, attention=answer))
            own.load_state_dict(state)
            cache = KVCache(2, 12) if cached else None
            logits = _in_pieces(own, sizes, cache)
        except Exception as error:
            raise NotYet(f"{type(error).__name__}: {error}") from None
        return (cache.nbytes if cache else 0) if stored else logits

    if answer is ... or not callable(answer):
        return case(claim, answer, expected=MultiHeadAttention, hint=hint)
    expected: Any = _in_pieces(model, [6], None)
    if stored:
        expected = 2 * 2 * 2 * 12 * 8 * 8  # layers, keys and values, batch, window, d, bytes
    return case(
        claim,
        read,
        _TEXT,
        expected=expected,
        part=("bytes of the cache" if stored else "logits", lambda result: result),
        hint=hint,
        rtol=1e-4,
    )


def _in_pieces(model: GPT, sizes: list[int], cache: KVCache | None) -> np.ndarray:
    found, start = [], 0
    with no_grad():
        for n in sizes:
            found.append(np.array(model(_TEXT[:, start : start + n], cache=cache).data))
            start += n
    return np.concatenate(found, axis=1)
