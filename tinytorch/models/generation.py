"""Generating text: one token at a time, each chosen from the scores that the model computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypedDict

import numpy as np

from tinytorch.core import arguments, hooks
from tinytorch.core.array_forms import maker, reader
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.held_parts import Snapshot
from tinytorch.core.incremental import is_incremental
from tinytorch.core.module import evaluation_mode
from tinytorch.core.primitive import as_operand
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import Model, Rng, TokenIds, WindowedModel
from tinytorch.models.kv_cache import KVCache, SlidingWindow
from tinytorch.models.sampling import check_sampling, next_tokens

__all__ = ["KVCache", "generate", "logits_of", "read_next", "stream"]

# With a cache, a prompt is read in pieces of so many tokens: no array of (prompt, prompt) numbers
# is made, only of (PREFILL, prompt).
PREFILL = 256


class Options(TypedDict, total=False):
    """The options of `stream`, for a function that passes them on."""

    temperature: float
    top_k: int | None
    top_p: float | None
    stop_tokens: Iterable[int]
    rng: Rng
    use_cache: bool
    overflow: str


def generate(
    model: WindowedModel,
    prompt_tokens: TokenIds,
    max_new_tokens: int = 50,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_tokens: Iterable[int] = (),
    rng: Rng = None,
    use_cache: bool = True,
    overflow: str = "slide",
) -> Tensor:
    """Continue every prompt of a batch, as `stream` does; returns the whole text at once.

    Arguments and errors are those of `stream`.

    Returns:
        Ids `(batch, prompt + new)`, the prompt included; without a batch axis if the prompt had
        none.

    Example:
        >>> class Counter:  # always sure that the next token is the last one plus 1
        ...     max_seq_len = 8
        ...
        ...     def __call__(self, ids):
        ...         return Tensor(np.eye(10)[(np.asarray(ids) + 1) % 10])
        >>> generate(Counter(), [[3]], 4, temperature=0).data.tolist()
        [[3, 4, 5, 6, 7]]
        >>> generate(Counter(), [[3], [6]], 9, temperature=0, stop_tokens=[8]).data.tolist()
        [[3, 4, 5, 6, 7, 8], [6, 7, 8, 8, 8, 8]]
    """
    new = list(stream(
        model, prompt_tokens, max_new_tokens, temperature=temperature, top_k=top_k, top_p=top_p,
        stop_tokens=stop_tokens, rng=rng, use_cache=use_cache, overflow=overflow,
    ))  # fmt: skip
    prompt = _prompt(prompt_tokens)
    written = np.array(new, dtype=np.int64).reshape(len(new), *prompt.shape[:-1])  # (new, batch)
    return Tensor(np.concatenate([prompt, np.moveaxis(written, 0, -1)], axis=-1))


def stream(
    model: WindowedModel,
    prompt_tokens: TokenIds,
    max_new_tokens: int = 50,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_tokens: Iterable[int] = (),
    rng: Rng = None,
    use_cache: bool = True,
    overflow: str = "slide",
) -> Iterator[np.ndarray]:
    """Continue every prompt of a batch, yielding each token as soon as it is known.

    The arguments are checked at once; the model reads only when the next token is requested.
    Between two tokens it is as you left it: in its own mode, and gradients are recorded. If you
    replace a part of it then, or open hooks, it reads the window again; new numbers in its
    parameters count from the next token on.

    Each row draws from its own random stream, so the continuation of one prompt does not depend on
    the others. Dropout is off while the model reads.

    A text longer than the model's `max_seq_len` is read through a `SlidingWindow`. With and
    without a cache the model sees the same windows, so the tokens are the same; the cache only
    saves it from reading a token twice.

    Args:
        model: maps ids `(batch, seq)` to logits and has a `max_seq_len`.
        prompt_tokens: integer ids `(batch, prompt)` or `(prompt,)`, at least one a row.
        max_new_tokens: how many tokens to write at most.
        temperature: the scores are divided by it: below 1 the distribution is sharper, above 1
            flatter; 0 takes the most likely token every time.
        top_k: draw only from this many most likely tokens; see `sampling.next_token_probs`.
        top_p: draw only from the most likely tokens with this probability together; the same.
        stop_tokens: a row that has written one of these is finished: nothing more is drawn for it,
            and that token is repeated while other rows go on. When all rows are finished the text
            ends, so it may be shorter than `max_new_tokens`.
        rng: a generator, a seed, or None for the default generator.
        use_cache: whether to keep keys and values, in what `model.new_cache()` returns. A model
            without that method, or one that returns None because a part cannot continue from a
            cache (see `tinytorch.core.incremental`), is read without one, and writes the same
            tokens. Custom norms and MLPs must work on each token by itself.
        overflow: `'slide'` as above, or `'error'` to refuse at once, before anything is written,
            a text that might not fit the window.

    Returns:
        An iterator over the new ids, `(batch,)` each time; `(1,)` for a prompt without a batch.

    Raises:
        ValueError: an empty prompt, prompts of unequal length, an option outside its range, or with
            `overflow='error'` a text that does not fit.
        TypeError: ids are not integers, or an option is of another type.
        IndexError: a stop token or an id of the prompt is outside the vocabulary.

    Example:
        >>> from tinytorch import GPT
        >>> model = GPT(vocab_size=5, embed_dim=8, num_layers=1, num_heads=2, rng=0)
        >>> steps = [new.tolist() for new in stream(model, [[1, 2], [3, 4]], 3, rng=0)]
        >>> whole = generate(model, [[1, 2], [3, 4]], 3, rng=0).data
        >>> steps == whole[:, 2:].T.tolist()
        True
    """
    prompt = _prompt(prompt_tokens)
    text = prompt.reshape(-1, prompt.shape[-1])  # (batch, prompt)
    _check_options(max_new_tokens, use_cache, overflow)
    check_sampling(temperature, top_k, top_p)
    max_seq_len: Any = getattr(model, "max_seq_len", None)
    arguments.check_sizes(**{f"generate: max_seq_len of {type(model).__name__}": max_seq_len})
    if overflow == "error":
        _check_room(text.shape[1], max_new_tokens, max_seq_len)
    longest = text.shape[1] + max_new_tokens if use_cache else 0
    window = SlidingWindow(text, max_seq_len, _new_cache(model, longest))
    return write(
        _following(model, window, longest),
        window,
        max_new_tokens,
        lambda logits, rngs: next_tokens(logits, rngs, temperature, top_k, top_p),
        stop_ids(stop_tokens, getattr(model, "vocab_size", None)),
        default_rng(rng).spawn(len(text)),
    )


def _new_cache(model: WindowedModel, longest: int) -> KVCache | None:
    """The model's cache, if it has one, with room for at most `longest` tokens; None for 0."""
    new_cache = getattr(model, "new_cache", None)
    cache: KVCache | None = new_cache() if longest and new_cache is not None else None
    if cache is not None:
        cache.max_seq_len = min(cache.max_seq_len, longest)
    return cache


def _following(
    model: WindowedModel, window: SlidingWindow, longest: int
) -> Callable[[], np.ndarray]:
    """`read_next` with the parts and hooks that the model has now; with others, all again."""
    parts, opened, read = Snapshot(model), hooks.opened(), logits_of(model, window.cache)

    def scores() -> np.ndarray:
        nonlocal parts, opened, read
        if hooks.opened() is not opened or not parts.is_current():
            window.cache = _new_cache(model, longest)
            parts, opened, read = Snapshot(model), hooks.opened(), logits_of(model, window.cache)
        return read_next(read, window)

    return scores


def logits_of(model: Model, cache: KVCache | None) -> Callable[[np.ndarray], np.ndarray]:
    """A function from ids `(batch, new)` to logits `(batch, vocab)`.

    With a cache, that is the model's own `reader` if it has one; otherwise the model is called.

    Raises:
        ValueError: raised by the function if the model returns another shape.
    """
    if cache is not None and maker(model) is not None:
        return reader(model, cache)  # of a GPT `read_gpt`, in models/gpt_array_forms.py
    options: dict[str, Any] = {"last_only": True} if is_incremental(model) else {}
    if cache is not None:
        options["cache"] = cache

    def read(ids: np.ndarray) -> np.ndarray:
        logits = np.asarray(as_operand(model(ids, **options)))
        if logits.ndim != 3 or len(logits) != len(ids) or 0 in logits.shape:
            raise ValueError(
                "generate: a model must map ids (batch, seq) to logits (batch, seq, vocab); for "
                f"{len(ids)} rows it returned shape {logits.shape}"
            )
        return logits[:, -1]

    return read


def write(
    read: Callable[[], np.ndarray],
    window: SlidingWindow,
    max_new_tokens: int,
    choose: Callable[[np.ndarray, list[np.random.Generator]], np.ndarray],
    stop_tokens: np.ndarray,
    streams: list[np.random.Generator],
) -> Iterator[np.ndarray]:
    """The loop of `stream`: read, choose, append."""
    stops, rows = {*stop_tokens.tolist()}, [*range(len(streams))]  # the rows that are not finished
    for _ in range(max_new_tokens):
        logits = read()  # (batch, vocab)
        if stops:
            arguments.check_ids(stop_tokens, logits.shape[1], "stop token", _REMEDY)
        if len(rows) == len(streams):  # as below, without copies (bench: decoding)
            new = choose(logits, streams)
        else:
            new = window.ids[:, -1].copy()  # a finished row repeats its stop token
            new[rows] = choose(logits[rows], [streams[row] for row in rows])
        window.append(new)
        yield new
        if stops:
            rows = [row for row in rows if new[row] not in stops]
        if not rows:
            return


def read_next(read: Callable[[np.ndarray], np.ndarray], window: SlidingWindow) -> np.ndarray:
    """The scores of the next token: the model reads the new tokens, or without a cache all of them.

    Args:
        read: maps ids `(batch, new)` to logits `(batch, vocab)`, see `logits_of`.
        window: the end of the text, and the cache of what has been read of it.

    Returns:
        Logits `(batch, vocab)`.

    Example:
        >>> from tinytorch import GPT
        >>> model = GPT(5, embed_dim=8, num_layers=1, num_heads=2, max_seq_len=16, rng=0)
        >>> window = SlidingWindow(np.array([[1, 2, 3]]), 16, model.new_cache())
        >>> logits = read_next(logits_of(model, window.cache), window)
        >>> logits.shape, window.unread.size
        ((1, 5), 0)
    """
    unread = window.unread
    chunk = unread.shape[1] if window.cache is None else PREFILL
    with evaluation_mode(), no_grad():
        for first in range(0, unread.shape[1], chunk):
            logits = read(unread[:, first : first + chunk])
    return logits


# Checks of arguments -------------------------------------------------------------------------

_REMEDY = "was another tokenizer used?"


def _prompt(prompt_tokens: TokenIds) -> np.ndarray:
    """The prompt as an array, `(batch, prompt)` or `(prompt,)`."""
    arguments.check_equal_lengths(prompt_tokens, "generate")
    ids = np.asarray(prompt_tokens)
    if ids.ndim not in (1, 2) or 0 in ids.shape:
        raise ValueError(
            f"generate: the prompt must be (batch, seq) or (seq,) with at least one token, got "
            f"shape {ids.shape}"
        )
    if ids.dtype.kind not in "iu":
        raise TypeError(f"generate: token ids must be integers, got {ids.dtype}")
    return ids.astype(np.int64)


def stop_ids(stop_tokens: Iterable[int], vocab_size: int | None) -> np.ndarray:
    """The ids that finish a row, `(n,)`, provided that they are ids of the vocabulary."""
    if not isinstance(stop_tokens, (np.ndarray, Tensor)):
        if not isinstance(stop_tokens, Iterable):
            raise TypeError(f"generate: stop_tokens must be ids such as [0], got {stop_tokens!r}")
        stop_tokens = list(stop_tokens) or np.zeros(0, dtype=int)
    ids = np.asarray(stop_tokens)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"generate: stop_tokens must be integers, got {ids.dtype}")
    if vocab_size is not None:
        arguments.check_ids(ids, vocab_size, "stop token", _REMEDY)
    return ids


def _check_options(max_new_tokens: int, use_cache: bool, overflow: str) -> None:
    if isinstance(max_new_tokens, bool) or not isinstance(max_new_tokens, (int, np.integer)):
        raise TypeError(f"generate: max_new_tokens must be an integer, got {max_new_tokens!r}")
    if max_new_tokens < 0:
        raise ValueError(f"generate: max_new_tokens must be >= 0, got {max_new_tokens}")
    arguments.check_flags(use_cache=use_cache)
    arguments.check_choice(overflow, "generate: overflow", ("slide", "error"))


def _check_room(prompt: int, max_new_tokens: int, max_seq_len: int) -> None:
    """Raise unless the model can read all that the last new token depends on."""
    room = max(0, max_seq_len + 1 - prompt)  # the last token is written but not read
    if max_new_tokens > room:
        raise ValueError(
            f"generate: {max_new_tokens} tokens after a prompt of {prompt} exceed max_seq_len "
            f"{max_seq_len}; ask for at most {room}, crop the prompt, or pass overflow='slide'"
        )
