"""Rows for new tokens: a trained model learns signs that its vocabulary did not have."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.arguments import check_sizes
from tinytorch.core.module import Module, Parameter
from tinytorch.core.quantization import Constant
from tinytorch.models.transformer import GPT

__all__ = ["add_tokens"]


def add_tokens(model: GPT, count: int) -> GPT:
    """Give a model new tokens, whose ids follow those that it has.

    Each new row of the table is the mean of the rows that are there (Hewitt, 2021): its logit is
    then the mean of the other logits, so the new tokens together take at most `count` parts of
    `vocab_size + count`, and the forecast moves by at most `log(1 + count / vocab_size)` nats.

    What is frozen stays frozen: after `add_lora` the new rows do not learn.

    Args:
        model: a GPT; changed in place. Its output layer grows as well, if it has one of its own.
            Its parameters remain the same objects, with more rows.
        count: how many tokens.

    Returns:
        The model.

    Raises:
        ValueError: the table or the output layer is quantized, has LoRA, or has no weights with a
            row for each token; the model is unchanged.

    Example:
        >>> model = GPT(vocab_size=5, embed_dim=8, num_layers=1, num_heads=2, rng=0)
        >>> add_tokens(model, 3)([[1, 7]]).shape
        (1, 2, 8)
    """
    check_sizes(count=count)
    size = model.vocab_size
    grown: list[Any] = [(model.token_embedding, "weight", 0, "vocab_size")]
    if (head := model.lm_head) is not None:
        grown += [(head, "weight", 1, "out_features")]
        grown += [(head, "bias", 0, "out_features")] * (getattr(head, "bias", None) is not None)
    for part, name, axis, _ in grown:  # nothing is changed before everything is checked
        _check(part, getattr(part, name, None), axis, size)
    for part, name, axis, length in grown:
        parameter = getattr(part, name)
        parameter.data, parameter.grad = _with_means(parameter.data, axis, count), None
        setattr(part, length, size + count)
    model.vocab_size = size + count
    return model


def _check(part: Module, parameter: Any, axis: int, size: int) -> None:
    learns = isinstance(parameter, Parameter) and not isinstance(parameter, Constant)
    if not learns or parameter.shape[axis : axis + 1] != (size,):
        what = f"a {type(part).__name__} has no float weights that can grow from {size} tokens"
        remedy = "add tokens to the plain model, then add LoRA to it or quantize it"
        raise ValueError(f"add_tokens: {what}; {remedy}")


def _with_means(array: np.ndarray, axis: int, count: int) -> np.ndarray:
    """A table with `count` more rows, each the mean of all; `axis` is that of the rows."""
    means = np.repeat(array.mean(axis=axis, keepdims=True), count, axis=axis)
    return np.concatenate([array, means], axis=axis)
