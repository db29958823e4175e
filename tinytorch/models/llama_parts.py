"""The norm and MLP of newer models, in place of GPT-2's: `RMSNorm` and `SwiGLU`.

With rotary positions and grouped queries they make a GPT a Llama (Touvron et al., 2023, section
2.2). `GPT` takes them as it takes a part of your own:

    >>> from functools import partial
    >>> from tinytorch import GPT, MultiHeadAttention
    >>> model = GPT(
    ...     vocab_size=65,
    ...     embed_dim=16,
    ...     num_layers=2,
    ...     num_heads=4,
    ...     max_seq_len=32,
    ...     pos_encoding="rotary",
    ...     norm=RMSNorm,
    ...     mlp=SwiGLU,
    ...     attention=partial(MultiHeadAttention, num_kv_heads=2, projection_bias=False),
    ... )
    >>> model([[1, 2, 3]]).shape
    (1, 3, 65)

Rotary positions rotate pairs of neighbours, `(x[2i], x[2i+1])`, as the paper and Llama's first
code do; a file in the hub's layout holds each head's rows of `q_proj` and `k_proj` in the order
`0, 2, 4, ..., 1, 3, 5, ...`, so that its pairs are `(x[i], x[i + d/2])`.
"""

from __future__ import annotations

import numpy as np

from tinytorch.core import arguments, array_forms, functional, kernels
from tinytorch.core.layers import Dropout, Linear
from tinytorch.core.module import Module, Parameter
from tinytorch.core.ops import where
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import Rng, TensorLike

__all__ = ["RMSNorm", "SwiGLU"]


class RMSNorm(Module):
    """Divide the last axis by its root mean square, then scale by `gamma`.

    Zhang and Sennrich, 2019, section 4: a `LayerNorm` that neither subtracts the mean nor adds a
    shift.

    Args:
        size: the length d of the last axis.
        eps: added to the mean square; a row of zeros stays zeros, even without it.

    Attributes:
        gamma: `(d,)`, the scale, ones at the start.

    Raises:
        ValueError: `size` is less than 1, `eps` is negative, or the last axis of an input is not d
            long.
        TypeError: `size` is not an integer.

    Example:
        >>> RMSNorm(2)(Tensor([[1.0, 7.0]]))
        Tensor([[0.2, 1.4]], requires_grad=True)
    """

    def __init__(self, size: int, eps: float = 1e-5) -> None:
        arguments.check_sizes(size=size)
        arguments.check_not_negative(eps=eps)
        self.size, self.eps = size, eps
        self.gamma = Parameter(np.ones(size))

    def forward(self, x: TensorLike) -> Tensor:
        """Normalise `(..., d)`; the shape stays."""
        x = x if isinstance(x, Tensor) else Tensor(x)
        if x.shape[-1:] != (self.size,):
            what = f"the last axis must have length {self.size}, got shape {x.shape}"
            raise ValueError(f"RMSNorm: {what}")
        mean_square = (x * x).mean(axis=-1, keepdims=True) + self.eps  # (..., 1)
        if self.eps < functional.TINY:
            mean_square = where(mean_square, 1.0, condition=mean_square.data > 0)
        return x / mean_square.sqrt() * self.gamma


@array_forms.reader_of(RMSNorm.forward)
def _read_norm(part: RMSNorm) -> array_forms.Reader:
    if part.eps < functional.TINY:
        return array_forms.of_tensors(part)

    def read(x: np.ndarray) -> np.ndarray:
        mean_square = np.square(x).mean(axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + float(part.eps)) * part.gamma.data

    return read


class SwiGLU(Module):
    """An MLP with a gate for every hidden number: `linear2(silu(gate(x)) * linear1(x))`.

    `silu(z)` is `z sigmoid(z)`; no layer has a bias (Shazeer, 2020, section 2). It has three
    matrices where `MLP` has two. For a custom width, as in a file that names it, pass `GPT` a
    function: `mlp=lambda d, hidden_dim, dropout: SwiGLU(d, 5632, dropout)`. With two thirds of the
    width it has as many weights as `MLP` (same section).

    Args:
        embed_dim: length of the vectors.
        hidden_dim: length in between; None for four times `embed_dim`.
        dropout_prob: fraction of the result dropped in training.
        rng: where the initial weights and the dropout come from.

    Attributes:
        linear1: the `Linear` that widens.
        gate: the `Linear` that makes the gates, as wide.
        linear2: the `Linear` that narrows.

    Raises:
        ValueError: a size is less than 1, or `dropout_prob` is not in `0 <= dropout_prob < 1`.
        TypeError: a size is not an integer.

    Example:
        >>> SwiGLU(8)(Tensor(np.zeros((1, 5, 8)))).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        hidden_dim: int | None = None,
        dropout_prob: float = 0.0,
        rng: Rng = None,
    ) -> None:
        hidden_dim = 4 * embed_dim if hidden_dim is None else hidden_dim
        arguments.check_sizes(embed_dim=embed_dim, hidden_dim=hidden_dim)
        rng = default_rng(rng) if rng is not None else None  # one generator for all four
        self.linear1 = Linear(embed_dim, hidden_dim, bias=False, rng=rng)
        self.gate = Linear(embed_dim, hidden_dim, bias=False, rng=rng)
        self.linear2 = Linear(hidden_dim, embed_dim, bias=False, rng=rng)
        self.dropout = Dropout(dropout_prob, rng=rng)

    def forward(self, x: TensorLike) -> Tensor:
        """Map `(..., embed_dim)` to the same shape."""
        opened = self.gate(x)
        opened = opened * functional.sigmoid(opened)
        return self.dropout(self.linear2(opened * self.linear1(x)))


@array_forms.reader_of(SwiGLU.forward)
def _read_mlp(part: SwiGLU) -> array_forms.Reader:
    widen, gate, narrow, drop = (
        array_forms.reader(x) for x in (part.linear1, part.gate, part.linear2, part.dropout)
    )

    def read(x: np.ndarray) -> np.ndarray:
        opened = gate(x)
        opened = opened * (kernels.tanh(opened * 0.5) * 0.5 + 0.5)  # sigmoid, without overflow
        return drop(narrow(opened * widen(x)))

    return read
