"""Positions: how a model knows the order of its tokens.

A table to add to the vectors (`create_sinusoidal_embeddings`), a rotation of queries and keys
(`Rotary`, made of `create_rotary_embeddings` and `apply_rotary`), or a bias of the scores
(`create_alibi_bias`). The learned table has parameters and is a layer:
`tinytorch.text.embeddings.PositionalEncoding`.
"""

from __future__ import annotations

import math

import numpy as np

from tinytorch.core.arguments import check_sizes
from tinytorch.core.incremental import incremental
from tinytorch.core.ops import Result
from tinytorch.core.primitive import primitive
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike


def create_sinusoidal_embeddings(max_seq_len: int, embed_dim: int) -> Tensor:
    """The fixed table of sines and cosines of "Attention is all you need".

    Column 2i holds `sin(pos / 10000^(2i/d))` and column 2i + 1 the cosine of the same angle
    (Vaswani et al., 2017, section 3.5). For an odd `embed_dim` the last cosine is left out.

    Args:
        max_seq_len: number of rows.
        embed_dim: number of columns, d.

    Returns:
        `(max_seq_len, embed_dim)`, without a gradient.

    Example:
        >>> create_sinusoidal_embeddings(2, 4)
        Tensor([[0.    , 1.    , 0.    , 1.    ],
                [0.8415, 0.5403, 0.01  , 0.9999]])
    """
    check_sizes(max_seq_len=max_seq_len, embed_dim=embed_dim)
    angles = rotation_angles(max_seq_len, embed_dim, base=10000.0)  # (T, ceil(d / 2))
    table = np.empty((max_seq_len, embed_dim))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : embed_dim // 2]
    return Tensor(table)


def create_rotary_embeddings(
    max_seq_len: int,
    head_dim: int,
    base: float = 10000.0,
    slower: np.ndarray | float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """The cosines and sines by which rotary embeddings rotate queries and keys.

    Pair i of a vector at position p is rotated by the angle `p / base^(2i/d)` (Su et al., 2021,
    section 3.2.2).

    Args:
        max_seq_len: number of positions.
        head_dim: length d of the vectors to be rotated, even.
        base: the longest wavelength is `2 pi base^((d-2)/d)` positions.
        slower: by what the angles of each pair are divided, `(head_dim / 2,)`. Llama 3.1 slows the
            pairs of long wavelengths down, for texts longer than those of its training.

    Returns:
        `(cos, sin)`, each `(max_seq_len, head_dim / 2)` in float32.

    Raises:
        ValueError: `head_dim` is odd: a rotation takes pairs; or the base is not positive.

    Example:
        >>> cos, sin = create_rotary_embeddings(16, 8)
        >>> cos.shape
        (16, 4)
    """
    check_sizes(max_seq_len=max_seq_len, head_dim=head_dim)
    if head_dim % 2:
        raise ValueError(f"rotary embeddings rotate pairs: head_dim must be even, got {head_dim}")
    if not 0 < base < math.inf:
        raise ValueError(f"rotary embeddings: base must be a number above 0, got {base}")
    angles = rotation_angles(max_seq_len, head_dim, base) / slower
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@primitive
def apply_rotary(x: TensorLike, cos: TensorLike, sin: TensorLike, *, start: int = 0) -> Result:
    """Rotate each pair `(x[2i], x[2i+1])` of every vector by the angle of its position.

    A dot product of two rotated vectors depends on their distance only, not on their positions.
    The gradient is rotated back by the same angle.

    Args:
        x: `(..., seq, head_dim)`, queries or keys.
        cos: `(at least start + seq, head_dim / 2)` from `create_rotary_embeddings`.
        sin: the same for the sines.
        start: the position of the first vector.

    Returns:
        The shape of `x`.

    Raises:
        ValueError: `x` is longer than the tables, or `head_dim` does not fit them.

    Example:
        >>> cos, sin = create_rotary_embeddings(2, 2)
        >>> apply_rotary([[1.0, 0.0], [1.0, 0.0]], cos, sin)
        Tensor([[1.    , 0.    ],
                [0.5403, 0.8415]])
    """
    x, cos, sin = np.asarray(x), np.asarray(cos), np.asarray(sin)
    if x.ndim < 2 or x.shape[-1] != 2 * cos.shape[-1]:
        wanted = f"(..., seq, {2 * cos.shape[-1]})"
        raise ValueError(f"apply_rotary: expected {wanted}, got shape {x.shape}")
    check_length(x.shape[-2], len(cos), start)
    positions = slice(start, start + x.shape[-2])
    cos, sin = cos[positions], sin[positions]  # (seq, head_dim / 2)
    return rotate_pairs(x, cos, sin), lambda g: (rotate_pairs(g, cos, -sin), None, None)


class Rotary:
    """The rotation of queries and keys, as `MultiHeadAttention` takes it.

    Args:
        max_seq_len: number of positions.
        head_dim: length of the vectors to be rotated, even.
        base: as for `create_rotary_embeddings`.
        slower: as for `create_rotary_embeddings`.

    Attributes:
        cos: the cosine of each position and pair, `(max_seq_len, head_dim / 2)`; `sin` likewise.

    Example:
        >>> rotate = Rotary(max_seq_len=2, head_dim=2)
        >>> rotate([[1.0, 0.0], [1.0, 0.0]])
        Tensor([[1.    , 0.    ],
                [0.5403, 0.8415]])
        >>> rotate([[1.0, 0.0]], start=1)
        Tensor([[0.5403, 0.8415]])
    """

    def __init__(
        self,
        max_seq_len: int,
        head_dim: int,
        base: float = 10000.0,
        slower: np.ndarray | float = 1.0,
    ) -> None:
        self.cos, self.sin = create_rotary_embeddings(max_seq_len, head_dim, base, slower)

    @incremental
    def __call__(self, x: TensorLike, start: int = 0) -> Tensor:
        """Rotate `(..., seq, head_dim)`, whose first vector is at position `start`."""
        return apply_rotary(x, self.cos, self.sin, start=start)


def alibi_slopes(num_heads: int) -> np.ndarray:
    """The slope of each head in ALiBi: a geometric sequence (Press et al., 2022, section 3).

    For n heads, n a power of two: `2^(-8/n), 2^(-16/n), ..., 2^-8`. For another n, the slopes of
    the power of two below it, followed by every other slope of twice as many heads.

    Args:
        num_heads: number of attention heads.

    Returns:
        `(num_heads,)` in float32.

    Example:
        >>> alibi_slopes(4).tolist()
        [0.25, 0.0625, 0.015625, 0.00390625]
    """
    check_sizes(num_heads=num_heads)
    below = 2 ** int(math.log2(num_heads))
    slopes = [2 ** (-8 * (i + 1) / below) for i in range(below)]
    finer = [2 ** (-4 * (i + 1) / below) for i in range(2 * below)]
    return np.array(slopes + finer[0::2][: num_heads - below], dtype=np.float32)


def create_alibi_bias(num_heads: int, seq_len: int) -> np.ndarray:
    """What ALiBi adds to the attention logits: minus slope times distance (Press et al., 2022).

    Combine it with a causal mask by addition; the future is not blocked here.

    Args:
        num_heads: number of attention heads.
        seq_len: number of positions.

    Returns:
        `(num_heads, seq_len, seq_len)` in float32; entry `(h, i, j)` is `-slope_h |i - j|`.

    Example:
        >>> create_alibi_bias(1, 3)[0].tolist() == [
        ...     [0, -1 / 256, -2 / 256],
        ...     [-1 / 256, 0, -1 / 256],
        ...     [-2 / 256, -1 / 256, 0],
        ... ]
        True
    """
    check_sizes(seq_len=seq_len)
    positions = np.arange(seq_len)
    nearness = -np.abs(positions[:, None] - positions[None, :])  # (T, T)
    return alibi_slopes(num_heads)[:, None, None] * nearness.astype(np.float32)  # (heads, T, T)


def check_length(seq_len: int, max_seq_len: int, start: int = 0) -> None:
    """Raise unless a sequence fits, after `start` cached positions if there are any.

    Raises:
        ValueError: it is longer than `max_seq_len`.

    Example:
        >>> check_length(130, 128)
        Traceback (most recent call last):
        ...
        ValueError: length 130 exceeds max_seq_len 128; crop ids[:, -128:]
    """
    if start < 0:
        raise ValueError(f"start must be >= 0, got {start}")
    if start + seq_len > max_seq_len:
        after = f" after {start}" if start else ""
        remedy = "clear the cache and read the end of the text again"
        remedy = remedy if start else f"crop ids[:, -{max_seq_len}:]"
        raise ValueError(f"length {seq_len}{after} exceeds max_seq_len {max_seq_len}; {remedy}")


def rotation_angles(max_seq_len: int, dim: int, base: float) -> np.ndarray:
    """`pos / base^(2i/dim)` for every position and pair, `(max_seq_len, ceil(dim / 2))`."""
    frequencies = base ** (-np.arange(0, dim, 2) / dim)
    return np.arange(max_seq_len)[:, None] * frequencies


def rotate_pairs(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Rotate every pair of neighbouring elements."""
    even, odd = x[..., 0::2], x[..., 1::2]
    rotated = np.empty(x.shape, dtype=np.result_type(x, cos))
    rotated[..., 0::2] = even * cos - odd * sin
    rotated[..., 1::2] = even * sin + odd * cos
    return rotated
