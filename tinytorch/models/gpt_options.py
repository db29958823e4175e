"""Options of a GPT: published shapes and kinds of positions; and checks of what it reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core import arguments, positions
from tinytorch.core.module import Module
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TokenIds, WindowedModel
from tinytorch.models.kv_cache import KVCache
from tinytorch.text.embeddings import PositionalEncoding

Part = Callable[..., Any]  # a class, or a function that makes the part

# The published models (Radford et al., 2019, table 2; heads as in the released code).
GPT2_SHAPES = {
    "gpt2-small": {"embed_dim": 768, "num_layers": 12, "num_heads": 12},
    "gpt2-medium": {"embed_dim": 1024, "num_layers": 24, "num_heads": 16},
    "gpt2-large": {"embed_dim": 1280, "num_layers": 36, "num_heads": 20},
    "gpt2-xl": {"embed_dim": 1600, "num_layers": 48, "num_heads": 25},
}


def check_tokens(
    model: WindowedModel, tokens: TokenIds, cache: KVCache | None
) -> tuple[tuple[int, ...], int]:
    """The shape of ids that a GPT can read after the cached ones, and how many are cached."""
    shape = arguments.check_equal_lengths(tokens, "GPT")
    if len(shape) not in (1, 2) or 0 in shape:
        expected = "expected ids of shape (batch, seq) or (seq,), not empty"
        raise ValueError(f"GPT: {expected}, got shape {shape}")
    past = 0 if cache is None else cache.length
    positions.check_length(shape[-1], model.max_seq_len, past)
    return shape, past


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


def published_shape(name: str) -> dict[str, int]:
    """The shape of a published GPT-2 model; an error names them all."""
    if name not in GPT2_SHAPES:
        raise ValueError(f"no preset {name!r}; the presets are {', '.join(GPT2_SHAPES)}")
    return GPT2_SHAPES[name]


def check(model: Any, **parts: Part) -> None:
    """Raise unless a GPT can be made with its sizes and flags, and with these parts."""
    sizes = ("vocab_size", "embed_dim", "num_layers", "num_heads", "max_seq_len")
    arguments.check_sizes(**{name: getattr(model, name) for name in sizes})
    arguments.check_not_negative(init_std=model.init_std)
    arguments.check_flags(tie_weights=model.tie_weights, pre_norm=model.pre_norm)
    arguments.check_callable(**parts)
    kinds = "learned", "sinusoidal", "rotary", "alibi", None
    arguments.check_choice(model.pos_encoding, "pos_encoding", kinds)


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
        return None, {"rotate": positions.Rotary(length, d // heads)}
    if model.pos_encoding == "alibi":
        return None, {"bias": positions.create_alibi_bias(heads, length)}
    return None, {}
