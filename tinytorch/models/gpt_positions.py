"""How a GPT tells positions apart: by vectors that are added to its tokens, or inside attention."""

from __future__ import annotations

from typing import Any

from tinytorch.core import positions
from tinytorch.core.module import Module
from tinytorch.core.tensor import Tensor
from tinytorch.text.embeddings import PositionalEncoding

KINDS = "learned", "sinusoidal", "rotary", "alibi", None


def positions_of(model: Any) -> tuple[Any, dict[str, Any]]:
    """What a GPT adds to the token vectors for the positions, and the options of its attentions.

    Added is a `PositionalEncoding`, a table `(max_seq_len, d)` or None; then attention has them.
    """
    length, d, heads = model.max_seq_len, model.embed_dim, model.num_heads
    if model.pos_encoding == "learned":
        return PositionalEncoding(length, d), {}
    if model.pos_encoding == "sinusoidal":
        return positions.create_sinusoidal_embeddings(length, d), {}
    if model.pos_encoding == "rotary":
        return None, {"rotate": positions.Rotary(length, d // heads, model.rotary_base)}
    if model.pos_encoding == "alibi":
        return None, {"bias": positions.create_alibi_bias(heads, length)}
    return None, {}


def with_positions(embedding: Module | Tensor | None, x: Tensor, start: int) -> Tensor:
    """Token vectors `(batch, seq, d)` or `(seq, d)`, plus those of the positions from `start` on.

    `embedding` is the first of what `positions_of` returns; the result has three axes.
    """
    if x.ndim == 2:
        x = x.unsqueeze(0)
    if embedding is None:
        return x
    if isinstance(embedding, Tensor):
        return x + embedding[start : start + x.shape[1]]  # + (seq, d)
    return embedding(x, start) if start else embedding(x)
