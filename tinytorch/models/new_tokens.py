"""Rows for new tokens: a trained model learns signs that its vocabulary did not have."""

from __future__ import annotations

import numpy as np

from tinytorch.core.arguments import check_sizes
from tinytorch.core.layers import Linear
from tinytorch.models.transformer import GPT
from tinytorch.text.embeddings import Embedding

__all__ = ["add_tokens"]


def add_tokens(model: GPT, count: int) -> GPT:
    """Give a model new tokens, whose ids follow those that it has.

    Each new row of the table is the mean of the rows that are there (Hewitt, 2021): its logit is
    then the mean of the other logits, so the new tokens together take at most `count` parts of
    `vocab_size + count`, and the forecast moves by at most `log(1 + count / vocab_size)` nats.

    Args:
        model: a GPT; changed in place. Its output layer grows as well, if it has one of its own.
        count: how many tokens.

    Returns:
        The model.

    Example:
        >>> model = GPT(vocab_size=5, embed_dim=8, num_layers=1, num_heads=2, rng=0)
        >>> add_tokens(model, 3)([[1, 7]]).shape
        (1, 2, 8)
    """
    check_sizes(count=count)
    size, width = model.vocab_size + count, model.embed_dim
    grown = Embedding(size, width, sparse=model.token_embedding.sparse)
    grown.weight.data = _with_means(model.token_embedding.weight.data, count)
    model.token_embedding, model.vocab_size = grown, size
    if model.lm_head is not None:
        head = Linear(width, size, bias=False)
        head.weight.data = _with_means(model.lm_head.weight.data.T, count).T.copy()
        model.lm_head = head
    return model


def _with_means(rows: np.ndarray, count: int) -> np.ndarray:
    """A table with `count` more rows, each the mean of all."""
    return np.concatenate([rows, np.repeat(rows.mean(axis=0, keepdims=True), count, axis=0)])
