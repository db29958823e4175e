"""What `MultiHeadAttention` refuses: options and inputs that do not fit."""

from __future__ import annotations

import numpy as np

from tinytorch.core.arguments import check_flags, check_probability, check_sizes
from tinytorch.core.tensor import Tensor


def check_inputs(embed_dim: int, query: object, key: object, value: object, cache: object) -> None:
    """Raise unless an attention can read these."""
    if cache is not None and not (key is None and value is None):
        what = "a cache is for self-attention; pass no key and no value"
        raise ValueError(f"MultiHeadAttention: {what}")
    for name, x in (("query", query), ("key", key), ("value", value)):
        shape = x.shape if isinstance(x, Tensor) else np.asarray(x).shape
        if x is not None and (len(shape) != 3 or shape[2] != embed_dim):
            wanted = f"(batch, seq, {embed_dim})"
            raise ValueError(f"MultiHeadAttention: {name} must be {wanted}, got shape {shape}")


def check_options(
    embed_dim: int,
    num_heads: int,
    kv_heads: int,
    dropout_prob: float,
    rotate: object,
    bias: np.ndarray | None,
    projection_bias: bool,
) -> None:
    """Raise unless an attention can be made with these options."""
    check_sizes(embed_dim=embed_dim, num_heads=num_heads, num_kv_heads=kv_heads)
    check_flags(projection_bias=projection_bias)
    if embed_dim % num_heads:
        what = f"{num_heads} heads do not divide embed_dim {embed_dim}; each head gets"
        raise ValueError(f"MultiHeadAttention: {what} embed_dim / num_heads of it")
    if num_heads % kv_heads:
        what = f"num_kv_heads {kv_heads} does not divide num_heads {num_heads}"
        raise ValueError(f"MultiHeadAttention: {what}; the groups are of equal size")
    check_probability(dropout_prob, "MultiHeadAttention: dropout_prob")
    if rotate is not None and not callable(rotate):
        raise TypeError(f"MultiHeadAttention: rotate must be a function, got {rotate!r:.60}")
    if bias is not None and (np.ndim(bias) != 3 or np.shape(bias)[0] != num_heads):
        wanted, got = f"({num_heads}, T, T), one table a head", np.shape(bias)
        raise ValueError(f"MultiHeadAttention: bias must be {wanted}, got shape {got}")
