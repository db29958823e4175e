"""What a GPT refuses: arguments and tokens that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core import arguments, positions
from tinytorch.core.types import TokenIds, WindowedModel
from tinytorch.models.gpt_positions import KINDS
from tinytorch.models.kv_cache import KVCache


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


def check_arguments(model: Any, **parts: Callable[..., Any]) -> None:
    """Raise unless a GPT can be made with its sizes and flags, and with these parts."""
    sizes = ("vocab_size", "embed_dim", "num_layers", "num_heads", "max_seq_len")
    arguments.check_sizes(**{name: getattr(model, name) for name in sizes})
    arguments.check_not_negative(init_std=model.init_std)
    arguments.check_flags(tie_weights=model.tie_weights, pre_norm=model.pre_norm)
    arguments.check_callable(**parts)
    arguments.check_choice(model.pos_encoding, "pos_encoding", KINDS)
    arguments.check_number(model.rotary_base, "rotary_base")
    if model.rotary_base != 10_000 and model.pos_encoding != "rotary":
        what = f"rotary_base={model.rotary_base} goes with pos_encoding='rotary'"
        raise ValueError(f"{what}, got {model.pos_encoding!r}")
