"""How a model writes: one token at a time, each chosen from the scores that the last ones give."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor, no_grad

__all__ = ["generate"]


def generate(
    model: Any,
    prompt_tokens: Any,
    max_new_tokens: int = 50,
    *,
    temperature: float = 1.0,
    rng: Any = None,
) -> Tensor:
    """Write on from every prompt of a batch.

    Each row draws from a random stream of its own, so that what is written after one prompt does
    not depend on the others. A text longer than the model's `max_seq_len` is read through a window
    over its end. Dropout is switched off meanwhile.

    Args:
        model: maps ids `(batch, seq)` to logits and has a `max_seq_len`.
        prompt_tokens: integer ids `(batch, prompt)` or `(prompt,)`, at least one a row.
        max_new_tokens: how many tokens to write.
        temperature: the scores are divided by it: below 1 bolder, above 1 more even; 0 takes the
            most likely token every time.
        rng: a generator, a seed, or None for the default generator.

    Returns:
        Ids `(batch, prompt + max_new_tokens)`, the prompt included; without a batch axis if the
        prompt had none.

    Raises:
        ValueError: an empty prompt, a negative temperature or number of tokens.
        TypeError: the ids are not integers.

    Example:
        >>> class Counter:  # always sure that the next token is the last one plus 1
        ...     max_seq_len, training = 8, False
        ...
        ...     def __call__(self, ids):
        ...         return Tensor(np.eye(10)[(np.asarray(ids) + 1) % 10])
        ...
        ...     def eval(self): ...
        >>> generate(Counter(), [[3]], 4, temperature=0).data.tolist()
        [[3, 4, 5, 6, 7]]
    """
    ids = np.array(np.asarray(prompt_tokens))
    _check(ids, max_new_tokens, temperature)
    text = ids.reshape(-1, ids.shape[-1]).astype(np.int64)
    streams = default_rng(rng).spawn(len(text))
    was_training = model.training
    model.eval()
    try:
        with no_grad():
            for _ in range(max_new_tokens):
                logits = model(text[:, -model.max_seq_len :]).data[:, -1]  # (batch, vocab)
                chosen = [
                    choose(row, temperature, stream)
                    for row, stream in zip(logits, streams, strict=True)
                ]
                text = np.concatenate([text, np.array(chosen)[:, None]], axis=1)
    finally:
        if was_training:
            model.train()
    return Tensor(text.reshape(*ids.shape[:-1], -1))


def choose(logits: np.ndarray, temperature: float, rng: np.random.Generator) -> int:
    """One token, drawn from `softmax(logits / temperature)`, or the most likely one at 0.

    Example:
        >>> choose(np.array([0.0, 5.0, 1.0]), 0.0, np.random.default_rng(0))
        1
    """
    if temperature == 0:
        return int(logits.argmax())
    scores = (logits - logits.max()).astype(np.float64) / temperature
    cumulative = np.exp(scores).cumsum()
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def _check(ids: np.ndarray, max_new_tokens: int, temperature: float) -> None:
    if ids.ndim not in (1, 2) or 0 in ids.shape:
        raise ValueError(
            f"generate: the prompt must be (batch, seq) or (seq,) with at least one token, got "
            f"shape {ids.shape}"
        )
    if ids.dtype.kind not in "iu":
        raise TypeError(f"generate: token ids must be integers, got {ids.dtype}")
    if max_new_tokens < 0:
        raise ValueError(f"generate: max_new_tokens must be >= 0, got {max_new_tokens}")
    if not temperature >= 0:
        raise ValueError(f"temperature must be >= 0, got {temperature}")
