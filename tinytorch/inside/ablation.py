"""Ablation: silence a part of a GPT, to see what the model can no longer do."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tinytorch.core.hooks import hooks
from tinytorch.core.module import Module
from tinytorch.core.tensor import Tensor

__all__ = ["ablated"]


def ablated(
    model: Module, name: str, head: int | None = None, value: np.ndarray | float = 0.0
) -> AbstractContextManager[None]:
    """A context in which a part of a GPT adds nothing to the stream, or a constant.

    Args:
        model: a `GPT`.
        name: `"blocks.0.attention"`, `"blocks.0.mlp"` or, for both, `"blocks.0"`.
        head: the only head of an attention to ablate; the others keep working.
        value: what replaces the output, 0 or a mean `(embed_dim,)`; of `"blocks.0"` the output of
            each half; for a head, what replaces its `embed_dim / heads` numbers before they are
            mixed.

    Raises:
        ValueError: the model has no part of this name; the head is out of range, or is asked for
            of another part than an attention; the value has another shape.
        TypeError: the head is not an integer.

    Example:
        >>> from tinytorch import GPT
        >>> model = GPT(5, 8, 2, 2, rng=0)
        >>> with ablated(model, "blocks.1.attention", head=0), ablated(model, "blocks.0.mlp"):
        ...     model([[1, 2, 3]]).shape
        (1, 3, 5)
    """

    def replaced(x: Tensor) -> np.ndarray:
        check_value(x.shape[-1])
        return np.zeros(x.shape) + value

    def check_value(size: int) -> None:
        if np.shape(value) not in ((), (size,)):
            shape = np.shape(value)
            raise ValueError(f"ablated: value must be a number or ({size},), got shape {shape}")

    if head is None:
        both = name.startswith("blocks.") and name.count(".") == 1
        silenced = [f"{name}.attention", f"{name}.mlp"] if both else [name]
        return hooks(model, after={name: replaced for name in silenced})
    part: Any = dict(model.named_modules()).get(name)
    if not hasattr(part, "num_heads") or not hasattr(part, "out_proj"):
        raise ValueError(f"ablated: {name!r} has no heads; name an attention, blocks.0.attention")
    if not isinstance(head, (int, np.integer)) or isinstance(head, bool):
        raise TypeError(f"ablated: head must be an integer, got {head!r}")
    if head not in range(part.num_heads):
        raise ValueError(f"ablated: {name} has heads 0 to {part.num_heads - 1}, not {head}")
    check_value(size := part.head_dim)

    def silence(x: Tensor) -> np.ndarray:
        new = np.array(x.data)  # (batch, seq, heads * size)
        new[..., head * size : (head + 1) * size] = value
        return new

    return hooks(model, before={f"{name}.out_proj": silence})
