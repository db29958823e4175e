"""Attention: how tokens look at each other.

A mask says what a query may look at, with one convention everywhere (see `masks`): it is *added* to
the scores, 0 keeps a pair and -inf blocks it, and it broadcasts over `(batch, heads, queries,
keys)`. A query for which everything is blocked receives zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core import functional, ops
from tinytorch.core.attention_checks import check_inputs, check_options
from tinytorch.core.graph import wrap
from tinytorch.core.incremental import incremental
from tinytorch.core.layers import Linear
from tinytorch.core.masks import causal_mask
from tinytorch.core.module import Module
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import CachedLayer, Mask, Rng, TensorLike

__all__ = ["MultiHeadAttention", "causal_mask", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    Q: TensorLike, K: TensorLike, V: TensorLike, mask: Mask = None, bias: Mask = None
) -> tuple[Tensor, Tensor]:
    """`softmax(Q K^T / sqrt(d) + mask) V` (Vaswani et al., 2017, section 3.2.1), and the weights.

    Written with the operations of the earlier chapters, so that each step can be read and the
    weights can be looked at. `functional.attention` computes the same output in one node.

    Args:
        Q: queries `(..., queries, d)`.
        K: keys `(..., keys, d)`.
        V: values `(..., keys, dv)`.
        mask: added to the scores, broadcast to `(..., queries, keys)`: 0 keeps and -inf blocks;
            None blocks nothing.
        bias: any numbers, also added to the scores; a tensor of them can be learned.

    Returns:
        The output `(..., queries, dv)` and the weights `(..., queries, keys)`, whose rows sum to 1.

    Raises:
        ValueError: the shapes do not fit, the mask holds other numbers, or the bias NaN or
            infinity.
        TypeError: the mask is of Booleans.

    Example:
        >>> x = Tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> output, weights = scaled_dot_product_attention(x, x, x, causal_mask(2))
        >>> weights
        Tensor([[1.    , 0.    ],
                [0.3302, 0.6698]])
    """
    Q, K, V = (_of_floats(x if isinstance(x, Tensor) else Tensor(x)) for x in (Q, K, V))
    functional.check_attention(Q.shape, K.shape, V.shape, mask, bias)
    scores = Q @ K.transpose() * (1 / math.sqrt(Q.shape[-1]))  # (..., queries, keys)
    for shift in (mask, bias):
        if shift is not None:
            scores = scores + shift
    weights = functional.softmax(scores)
    return weights @ V, weights


def _of_floats(x: Tensor) -> Tensor:
    """The tensor in floats: products of integers or float16 would wrap or overflow."""
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


class MultiHeadAttention(Module):
    """Several attentions side by side, each on its own part of the vectors.

    Vaswani et al., 2017, section 3.2.2. With `key` and `value` it is cross-attention, otherwise
    self-attention.

    Args:
        embed_dim: length d of the vectors.
        num_heads: number of heads h, which must divide d.
        dropout_prob: fraction of the attention weights dropped in training.
        rotate: a function applied to queries and keys `(batch, heads, seq, d / h)` after they are
            split, `Rotary` for instance. With a cache it is called as `rotate(x, start)`, where
            `start` is the position of the first.
        bias: an array `(heads, T, T)` added to the scores, ALiBi's for instance; cropped to the
            lengths of the input.
        rng: where the initial weights and the dropout come from.
        num_kv_heads: number g of heads of keys and values, which must divide h: each is shared by
            h / g neighbouring heads of queries, and a cache keeps g (grouped-query attention,
            Ainslie et al., 2023, section 2.2). 1 is multi-query attention; None means h.
        projection_bias: whether the four `Linear` add a bias; Llama's do not.

    Attributes:
        head_dim: length of the vectors of a head, d / h.
        num_kv_heads: as given, or h.
        q_proj: the `Linear` that makes the queries; `k_proj`, `v_proj` and `out_proj` likewise.

    Raises:
        TypeError: `rotate` cannot be called.
        ValueError: `num_heads` does not divide `embed_dim`, `num_kv_heads` does not divide
            `num_heads`, or the bias is not `(heads, T, T)`.

    Example:
        >>> attention = MultiHeadAttention(8, 2)
        >>> attention(Tensor(np.zeros((1, 5, 8))), mask=causal_mask(5)).shape
        (1, 5, 8)
        >>> MultiHeadAttention(8, 4, num_kv_heads=2).k_proj.weight.shape  # two of length 2
        (8, 4)
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout_prob: float = 0.0,
        rotate: Callable[..., Tensor] | None = None, bias: np.ndarray | None = None,
        rng: Rng = None, *, num_kv_heads: int | None = None, projection_bias: bool = True,
    ) -> None:  # fmt: skip
        kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_options(embed_dim, num_heads, kv_heads, dropout_prob, rotate, bias, projection_bias)
        self.embed_dim, self.num_heads, self.dropout_prob = embed_dim, num_heads, dropout_prob
        self.head_dim, self.num_kv_heads = embed_dim // num_heads, kv_heads
        rng = default_rng(rng) if rng is not None else None  # a seed must not draw four alike
        self.rotate, self.bias, self.rng = rotate, bias, rng
        kv_dim = kv_heads * self.head_dim
        self.q_proj = Linear(embed_dim, embed_dim, projection_bias, rng)
        self.k_proj = Linear(embed_dim, kv_dim, projection_bias, rng)
        self.v_proj = Linear(embed_dim, kv_dim, projection_bias, rng)
        self.out_proj = Linear(embed_dim, embed_dim, projection_bias, rng)

    @incremental
    def forward(
        self,
        query: TensorLike,
        key: TensorLike | None = None,
        value: TensorLike | None = None,
        mask: Mask = None,
        cache: CachedLayer | None = None,
    ) -> Tensor:
        """Let every query look at the keys and collect from the values.

        Args:
            query: `(batch, queries, embed_dim)`.
            key: `(batch, keys, embed_dim)`; None for `query`.
            value: `(batch, keys, embed_dim)`; None for `key`.
            mask: added to the scores, 0 keeps and -inf blocks; `(queries, keys)`, or with four axes
                that broadcast to `(batch, heads, queries, keys)`.
            cache: this layer's part of a `KVCache`: the tokens follow the cached ones, whose keys
                and values are looked at too. For self-attention.

        Returns:
            `(batch, queries, embed_dim)`.

        Raises:
            ValueError: an input is not 3-D, has another last axis, the mask does not fit, or a
                cache comes with a key or a value.
            TypeError: the mask is of Booleans.
        """
        check_inputs(self.embed_dim, query, key, value, cache)
        key = query if key is None else key
        value = key if value is None else value
        # (batch, queries, d) -> (batch, heads, queries, d / h), and likewise the keys and values
        q: Any = functional.split_heads(self.q_proj(query), num_heads=self.num_heads)
        k: Any = functional.split_heads(self.k_proj(key), num_heads=self.num_kv_heads)
        v: Any = functional.split_heads(self.v_proj(value), num_heads=self.num_kv_heads)
        start = 0 if cache is None else cache.length
        if self.rotate is not None:
            q, k = (self.rotate(x, start) if start else self.rotate(x) for x in (q, k))
        if cache is not None:
            k, v = cache.extend(k, v)
        k, v = (repeat_kv(x, self.num_heads) for x in (k, v))  # (batch, heads, keys, d / h)
        bias = bias_between(self.bias, start, q.shape[2], k.shape[2])
        dropout = self.dropout_prob if self.training else 0.0
        mixed = functional.attention(q, k, v, mask=mask, bias=bias, dropout=dropout, rng=self.rng)
        return self.out_proj(functional.merge_heads(mixed))  # of (batch, heads, queries, d / h)


def repeat_kv(x: Tensor | np.ndarray, num_heads: int) -> Tensor:
    """Grouped queries: each key or value, repeated for every head of queries that looks at it.

    Ainslie et al., 2023, section 2.2.

    Args:
        x: keys or values `(batch, g, keys, d / h)`, a tensor or a cache's array.
        num_heads: the number h of heads of queries; `g = h` leaves `x` as it is.

    Returns:
        `(batch, h, keys, d / h)`.
    """
    x = x if isinstance(x, Tensor) else wrap(x)  # from a cache, whose arrays keep their dtype
    if (times := num_heads // x.shape[1]) == 1:
        return x
    alike = ops.stack(*[x] * times, axis=2)  # (batch, g, times, keys, d / h)
    return alike.reshape(x.shape[0], num_heads, *x.shape[2:])


def bias_between(bias: np.ndarray | None, start: int, queries: int, keys: int) -> np.ndarray | None:
    """The part of a bias `(heads, T, T)` for these keys and the queries from `start` on.

    Returns:
        `(heads, queries, keys)`, or None if there is no bias.
    """
    if bias is None:
        return None
    longest = max(start + queries, keys)
    if longest > bias.shape[-1]:
        what = f"{longest} positions exceed the bias, which is {bias.shape}"
        raise ValueError(f"MultiHeadAttention: {what}; make it longer")
    return bias[:, start : start + queries, :keys]
