"""How a model writes: one token at a time, each chosen from the scores that the last ones give."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from tinytorch.core.layers import check_sizes, evaluation_mode
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor, no_grad
from tinytorch.models.kv_cache import KVCache
from tinytorch.models.sampling import check_sampling, next_tokens

__all__ = ["KVCache", "generate", "stream"]


def generate(
    model: Any,
    prompt_tokens: Any,
    max_new_tokens: int = 50,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_tokens: Iterable[int] = (),
    rng: Any = None,
    use_cache: bool = True,
    overflow: str = "slide",
    prefill_chunk: int = 256,
) -> Tensor:
    """Write on from every prompt of a batch.

    Each row draws from a random stream of its own, so that what is written after one prompt does
    not depend on the others. Dropout is off while the model reads.

    A text longer than the model's `max_seq_len` is read through a window. Whenever the text
    outgrows it, the window's start moves on by half of `max_seq_len`, and the model reads what
    is left in it from its first position. With and without a cache the model sees the same
    windows, so the tokens are the same; the cache only saves it from reading a token twice.

    Args:
        model: maps ids `(batch, seq)` to logits and has a `max_seq_len`.
        prompt_tokens: integer ids `(batch, prompt)` or `(prompt,)`, at least one a row.
        max_new_tokens: how many tokens to write at most.
        temperature: the scores are divided by it: below 1 surer, above 1 more even; 0 takes the
            most likely token every time.
        top_k: how many tokens each may be drawn from; see `sampling.next_token_probs`.
        top_p: the share of probability that each is drawn from; the same.
        stop_tokens: a row that has written one of these is finished: nothing is drawn for it any
            more, and that token is repeated while other rows go on. When all rows are finished the
            text ends, so that it may be shorter than asked for.
        rng: a generator, a seed, or None for the default generator.
        use_cache: whether to keep keys and values (`KVCache`). A model of which a part does not
            take a `cache`, for instance an attention of your own, is read without it, to the same
            tokens. Norms and MLPs of your own must work on each token by itself.
        overflow: `'slide'` as above, or `'error'` to refuse at once, before anything is written,
            a text that the window might not hold.
        prefill_chunk: with a cache, the prompt is read in pieces of this length: no array of
            (prompt, prompt) numbers is made, only of (prefill_chunk, prompt).

    Returns:
        Ids `(batch, prompt + new)`, the prompt included; without a batch axis if the prompt had
        none.

    Raises:
        ValueError: an empty prompt, an option outside its range, or with `overflow='error'` a text
            that does not fit.
        TypeError: ids are not integers.

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
    new = list(
        stream(
            model, prompt_tokens, max_new_tokens, temperature=temperature, top_k=top_k, top_p=top_p,
            stop_tokens=stop_tokens, rng=rng, use_cache=use_cache, overflow=overflow,
            prefill_chunk=prefill_chunk,
        )
    )  # fmt: skip
    prompt = np.asarray(prompt_tokens).astype(np.int64)
    written = np.array(new, dtype=np.int64).reshape(len(new), *prompt.shape[:-1])  # (new, batch)
    return Tensor(np.concatenate([prompt, np.moveaxis(written, 0, -1)], axis=-1))


def stream(
    model: Any,
    prompt_tokens: Any,
    max_new_tokens: int = 50,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop_tokens: Iterable[int] = (),
    rng: Any = None,
    use_cache: bool = True,
    overflow: str = "slide",
    prefill_chunk: int = 256,
) -> Iterator[np.ndarray]:
    """The same as `generate`, one token of each row at a time, each as soon as it is known.

    The arguments, which are those of `generate`, are checked at once; the model reads only when
    the next token is asked for. Between two tokens it is as you left it: in its own mode, and
    gradients are recorded.

    Returns:
        An iterator over the new ids, `(batch,)` each time; `(1,)` for a prompt without a batch.

    Raises:
        ValueError: as for `generate`.
        TypeError: as for `generate`.

    Example:
        >>> from tinytorch import GPT
        >>> model = GPT(vocab_size=5, embed_dim=8, num_layers=1, num_heads=2, rng=0)
        >>> steps = [new.tolist() for new in stream(model, [[1, 2], [3, 4]], 3, rng=0)]
        >>> whole = generate(model, [[1, 2], [3, 4]], 3, rng=0).data
        >>> steps == whole[:, 2:].T.tolist()
        True
    """
    text = _prompt(prompt_tokens)
    _check(max_new_tokens, overflow, prefill_chunk)
    check_sampling(temperature, top_k, top_p)
    if overflow == "error":
        _check_room(text.shape[1], max_new_tokens, model.max_seq_len)
    cache = _cache_for(model) if use_cache else None
    return _write(
        text,
        max_new_tokens,
        _Window(model, cache, prefill_chunk),
        lambda logits, rngs: next_tokens(logits, rngs, temperature, top_k, top_p),
        _stop_tokens(stop_tokens),
        default_rng(rng).spawn(len(text)),
    )


def _write(
    text: np.ndarray,
    max_new_tokens: int,
    window: _Window,
    choose: Callable[[np.ndarray, list[np.random.Generator]], Any],
    stop_tokens: np.ndarray,
    streams: list[np.random.Generator],
) -> Iterator[np.ndarray]:
    """The loop: read, choose, append."""
    finished = np.zeros(len(text), dtype=bool)
    for _ in range(max_new_tokens):
        logits = window.read(text)  # (batch, vocab)
        new = text[:, -1].copy()  # a finished row repeats its stop token
        writing = np.flatnonzero(~finished)
        new[writing] = choose(logits[writing], [streams[row] for row in writing])
        text = np.concatenate([text, new[:, None]], axis=1)
        yield new
        if stop_tokens.size:
            finished |= np.isin(new, stop_tokens)
            if finished.all():
                return


class _Window:
    """The part of a growing text that the model sees, `text[:, start:]`, and what it has cached."""

    def __init__(self, model: Any, cache: KVCache | None, prefill_chunk: int) -> None:
        self.model, self.cache, self.prefill_chunk, self.start = model, cache, prefill_chunk, 0
        self.options = {"last_only": True} if _takes(model, "last_only") else {}
        self.decoder = None
        if cache is not None and hasattr(model, "decoder"):
            self.decoder = model.decoder(cache)  # reads single tokens, faster than the model

    def read(self, text: np.ndarray) -> np.ndarray:
        """The logits `(batch, vocab)` of what follows the text."""
        self._slide(text.shape[1])
        read = 0 if self.cache is None else self.cache.length
        if self.decoder is not None and 0 < read == text.shape[1] - self.start - 1:
            return self.decoder.read(text[:, -1])
        with evaluation_mode(self.model), no_grad():
            if self.cache is None:
                return self.model(text[:, self.start :], **self.options).data[:, -1]
            unread = text[:, self.start + self.cache.length :]
            for first in range(0, unread.shape[1], self.prefill_chunk):
                piece = unread[:, first : first + self.prefill_chunk]
                logits = self.model(piece, cache=self.cache, **self.options)
            return logits.data[:, -1]

    def _slide(self, length: int) -> None:
        """Move the start on by half a window until the text fits; its cache is then stale."""
        while length - self.start > self.model.max_seq_len:
            self.start += max(1, self.model.max_seq_len // 2)
            if self.cache is not None:
                self.cache.clear()


def _cache_for(model: Any) -> KVCache | None:
    """An empty cache, or None if some part of the model cannot go on from what it has read."""
    blocks = getattr(model, "blocks", [])
    attentions = [getattr(block, "attention", block) for block in blocks]
    rotations = [getattr(attention, "rotate", None) for attention in attentions]
    places = getattr(model, "position_embedding", None)
    by_place = [part for part in (places, *rotations) if part is not None and callable(part)]
    reads_on = all(_takes(part, "cache") for part in (model, *blocks, *attentions))
    if blocks and reads_on and all(_takes(part, "start") for part in by_place):
        return KVCache(len(blocks), model.max_seq_len)
    return None


def _takes(part: Any, name: str) -> bool:
    """Whether calling `part` takes an argument of this name."""
    return name in inspect.signature(getattr(part, "forward", part)).parameters


# What is allowed -----------------------------------------------------------------------------


def _prompt(prompt_tokens: Any) -> np.ndarray:
    """The prompt as `(batch, prompt)`."""
    ids = np.asarray(prompt_tokens)
    if ids.ndim not in (1, 2) or 0 in ids.shape:
        raise ValueError(
            f"generate: the prompt must be (batch, seq) or (seq,) with at least one token, got "
            f"shape {ids.shape}"
        )
    if ids.dtype.kind not in "iu":
        raise TypeError(f"generate: token ids must be integers, got {ids.dtype}")
    return ids.reshape(-1, ids.shape[-1]).astype(np.int64)


def _stop_tokens(stop_tokens: Iterable[int]) -> np.ndarray:
    ids = np.array(list(stop_tokens))
    if ids.size and ids.dtype.kind not in "iu":
        raise TypeError(f"generate: stop_tokens must be integers, got {ids.dtype}")
    return ids


def _check(max_new_tokens: int, overflow: str, prefill_chunk: int) -> None:
    if max_new_tokens < 0:
        raise ValueError(f"generate: max_new_tokens must be >= 0, got {max_new_tokens}")
    if overflow not in ("slide", "error"):
        raise ValueError(f"generate: overflow must be 'slide' or 'error', got {overflow!r}")
    check_sizes(prefill_chunk=prefill_chunk)


def _check_room(prompt: int, max_new_tokens: int, max_seq_len: int) -> None:
    """Raise unless the model can read all that the last new token depends on."""
    room = max(0, max_seq_len + 1 - prompt)  # the last token is written but not read
    if max_new_tokens > room:
        raise ValueError(
            f"generate: {max_new_tokens} tokens after a prompt of {prompt} exceed max_seq_len "
            f"{max_seq_len}; ask for at most {room}, crop the prompt, or pass overflow='slide'"
        )
