"""What heads look at, and as a number: how much of it falls on expected targets.

A head that looks at the previous token gives it most of its weight, so its score for
`previous_token` is near 1. The targets are a table of Booleans, so a new kind of head takes one
line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.arguments import check_equal_lengths
from tinytorch.core.attention import (
    MultiHeadAttention,
    bias_between,
    repeat_kv,
    scaled_dot_product_attention,
)
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.masks import causal_mask
from tinytorch.core.module import evaluation_mode
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike, TokenIds
from tinytorch.inside.stream import recorded
from tinytorch.models.transformer import GPT

__all__ = ["after_same_token", "attention_weights", "head_scores",
           "layer_weights", "previous_token", "same_token"]  # fmt: skip


def attention_weights(model: GPT, ids: TokenIds) -> np.ndarray:
    """What every head looks at.

    Computed from the queries and keys of the run, rotated and shifted as the layer does it.

    Args:
        model: a `GPT` whose attentions are `MultiHeadAttention`.
        ids: integer ids `(batch, seq)`.

    Returns:
        `(layers, batch, heads, queries, keys)`; each row sums to 1, and is 0 after the query.

    Example:
        >>> from tinytorch import GPT
        >>> weights = attention_weights(GPT(5, 8, 2, 4, pos_encoding="rotary"), [[1, 2, 3]])
        >>> weights.shape, bool(np.allclose(weights.sum(axis=-1), 1))
        ((2, 1, 4, 3, 3), True)
    """
    names = [f"blocks.{i}.attention" for i in range(len(model.blocks))]
    projected = recorded(model, ids, *(f"{name}.{p}_proj" for name in names for p in "qk"))
    return np.stack(
        [
            layer_weights(block.attention, *projected[2 * i : 2 * i + 2])
            for i, block in enumerate(model.blocks)
        ]
    )


def head_scores(weights: TensorLike, targets: TensorLike) -> np.ndarray:
    """How much of its attention a head gives to its targets, over the queries that have any.

    Args:
        weights: attention weights `(..., batch, heads, queries, keys)`.
        targets: Booleans `(batch, queries, keys)`: where such a head looks.

    Returns:
        `(..., heads)`, each from 0 to 1.

    Raises:
        ValueError: the shapes do not fit, or no query has a target.

    Example:
        >>> weights = np.array([[[[1.0, 0, 0], [0.9, 0.1, 0], [0, 0.7, 0.3]]]])  # one head
        >>> head_scores(weights, previous_token([[5, 6, 5]])).round(3)  # of 0.9 and 0.7
        array([0.8])
    """
    weights, targets = np.asarray(weights), np.asarray(targets, dtype=bool)
    if weights.ndim < 4 or (weights.shape[-4], *weights.shape[-2:]) != targets.shape:
        wanted = "weights (..., batch, heads, queries, keys) and targets (batch, queries, keys)"
        raise ValueError(f"head_scores: expected {wanted}, got {weights.shape}, {targets.shape}")
    asked = np.any(targets, axis=-1)  # (batch, queries)
    if not asked.any():
        raise ValueError("head_scores: no query has a target; use a text in which one has")
    return (weights * targets[:, None]).sum(axis=(-4, -2, -1)) / asked.sum()


def previous_token(ids: TokenIds) -> np.ndarray:
    """Targets `(batch, seq, seq)`: the token before.

    Example:
        >>> previous_token([[7, 8, 9]])[0].astype(int)
        array([[0, 0, 0],
               [1, 0, 0],
               [0, 1, 0]])
    """
    batch, seq = rows_of("previous_token", ids).shape
    return np.broadcast_to(np.eye(seq, k=-1, dtype=bool), (batch, seq, seq))


def same_token(ids: TokenIds) -> np.ndarray:
    """Targets `(batch, seq, seq)`: earlier positions with the same token.

    Example:
        >>> same_token([[7, 8, 7]])[0].astype(int)
        array([[0, 0, 0],
               [0, 0, 0],
               [1, 0, 0]])
    """
    ids = rows_of("same_token", ids)
    return np.tril(ids[:, :, None] == ids[:, None, :], k=-1)


def after_same_token(ids: TokenIds) -> np.ndarray:
    """Targets `(batch, seq, seq)`: what came after the same token (an induction head's).

    On random tokens that are repeated, the score is the *prefix matching* of Olsson et al. (2022),
    section "Argument 4": where the text continues as it did before.

    Example:
        >>> after_same_token([[7, 8, 7, 8]])[0].astype(int)
        array([[0, 0, 0, 0],
               [0, 0, 0, 0],
               [0, 1, 0, 0],
               [0, 0, 1, 0]])
    """
    same = same_token(ids)
    after = np.zeros_like(same)
    after[:, :, 1:] = same[:, :, :-1]
    return after


def rows_of(name: str, ids: TokenIds) -> np.ndarray:
    """Token ids as an array; raise unless they are `(batch, seq)`."""
    if len(shape := check_equal_lengths(ids, name)) != 2:
        raise ValueError(f"{name}: ids must be (batch, seq), got {shape}; of one text pass [ids]")
    return np.asarray(ids)


def layer_weights(part: MultiHeadAttention, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """What every head of one layer looks at, under a causal mask.

    Args:
        part: a `MultiHeadAttention`.
        q: what its `q_proj` gave, `(batch, seq, embed_dim)`.
        k: what its `k_proj` gave, `(batch, seq, kv_heads * head_dim)`.

    Returns:
        `(batch, heads, queries, keys)`.

    Example:
        >>> from tinytorch import MultiHeadAttention
        >>> layer, x = MultiHeadAttention(8, 2, rng=0), np.ones((1, 3, 8))
        >>> layer_weights(layer, layer.q_proj(x).data, layer.k_proj(x).data)[0, 0, 1].round(2)
        array([0.5, 0.5, 0. ], dtype=float32)
    """
    with evaluation_mode(), no_grad():
        queries: Any = functional.split_heads(Tensor(q), num_heads=part.num_heads)
        keys: Any = functional.split_heads(Tensor(k), num_heads=part.num_kv_heads)
        if part.rotate is not None:
            queries, keys = part.rotate(queries), part.rotate(keys)
        keys, length = repeat_kv(keys, part.num_heads), q.shape[1]
        mask, bias = causal_mask(length), bias_between(part.bias, 0, length, length)
        return scaled_dot_product_attention(queries, keys, keys, mask, bias)[1].data
