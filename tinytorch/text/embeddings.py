"""From integers to vectors: token embeddings, and four ways to tell a model the order.

A transformer receives one vector for each token. `Embedding` looks it up in a table that training
changes. Attention by itself sees a set, not a sequence, so the position is told as well: added as a
learned vector (`PositionalEncoding`) or a fixed one (`create_sinusoidal_embeddings`), turned into
a rotation of queries and keys (`apply_rotary`), or subtracted from the attention logits as a
distance (`create_alibi_bias`). `EmbeddingLayer` joins tokens and positions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.layers import Module, Parameter, check_sizes, xavier_uniform
from tinytorch.core.ops import Result
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor, primitive

__all__ = [
    "Embedding",
    "EmbeddingLayer",
    "PositionalEncoding",
    "alibi_slopes",
    "apply_rotary",
    "create_alibi_bias",
    "create_rotary_embeddings",
    "create_sinusoidal_embeddings",
]


class Embedding(Module):
    """A table with one learned vector for each token.

    Args:
        vocab_size: number of tokens.
        embed_dim: length of each vector.
        sparse: whether the gradient keeps only the rows that were looked up (`RowSparse`), so that
            the cost of a training step does not grow with the vocabulary.
        rng: where the initial weights come from.

    Attributes:
        weight: `(vocab_size, embed_dim)`, Xavier uniform at the start (Glorot and Bengio, 2010).

    Example:
        >>> emb = Embedding(65, 8)
        >>> emb([[5, 1, 5]]).shape
        (1, 3, 8)
    """

    def __init__(
        self, vocab_size: int, embed_dim: int, sparse: bool = False, rng: Any = None
    ) -> None:
        check_sizes(vocab_size=vocab_size, embed_dim=embed_dim)
        self.vocab_size, self.embed_dim, self.sparse = vocab_size, embed_dim, sparse
        self.weight = Parameter(xavier_uniform((vocab_size, embed_dim), rng))

    def forward(self, ids: Any) -> Tensor:
        """Look up every id.

        Args:
            ids: integers of any shape: a Tensor, an array or nested lists.

        Returns:
            `ids.shape + (embed_dim,)`.

        Raises:
            TypeError: the ids are not integers.
            IndexError: an id is outside `0..vocab_size - 1`.
        """
        return functional.embedding(self.weight, ids, sparse=self.sparse)


class PositionalEncoding(Module):
    """Learned positions: a vector for each place, added to whatever stands there.

    The scheme of GPT (Radford et al., 2018) and BERT (Devlin et al., 2019).

    Args:
        max_seq_len: number of places; a longer sequence is an error.
        embed_dim: length of each vector.
        rng: where the initial weights come from.

    Attributes:
        position_embeddings: `(max_seq_len, embed_dim)`, Xavier uniform at the start.

    Example:
        >>> pe = PositionalEncoding(16, 8)
        >>> pe(Tensor(np.zeros((2, 5, 8)))).shape
        (2, 5, 8)
    """

    def __init__(self, max_seq_len: int, embed_dim: int, rng: Any = None) -> None:
        check_sizes(max_seq_len=max_seq_len, embed_dim=embed_dim)
        self.max_seq_len, self.embed_dim = max_seq_len, embed_dim
        self.position_embeddings = Parameter(xavier_uniform((max_seq_len, embed_dim), rng))

    def forward(self, x: Any, start: int = 0) -> Tensor:
        """Add the position vectors to `x`.

        Args:
            x: `(batch, seq, embed_dim)`.
            start: the position of the first.

        Returns:
            The same shape.

        Raises:
            ValueError: `x` is not 3-D, its last axis is not `embed_dim`, or it is too long.
        """
        shape = np.shape(x)
        if len(shape) != 3:
            raise ValueError(
                f"PositionalEncoding: expected (batch, seq, {self.embed_dim}), got shape {shape}; "
                "add a batch axis with x.reshape(1, *x.shape)"
            )
        if shape[2] != self.embed_dim:
            raise ValueError(
                f"PositionalEncoding: expected embed_dim {self.embed_dim} in the last axis, "
                f"got shape {shape}"
            )
        check_length(shape[1], self.max_seq_len, start)
        places = self.position_embeddings[start : start + shape[1]]
        return x + places  # (batch, seq, d) + (seq, d)


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
    angles = _angles(max_seq_len, embed_dim, base=10000.0)  # (T, ceil(d / 2))
    table = np.empty((max_seq_len, embed_dim))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)[:, : embed_dim // 2]
    return Tensor(table)


class EmbeddingLayer(Module):
    """Token vectors plus positions: what the first transformer block receives.

    Args:
        vocab_size: number of tokens.
        embed_dim: length of each vector.
        max_seq_len: the longest sequence when positions are added.
        pos_encoding: `'learned'`, `'sinusoidal'` or None for no positions.
        scale_embeddings: whether to multiply the token vectors by `sqrt(embed_dim)` before adding
            the positions (Vaswani et al., 2017, section 3.4).
        rng: where the initial weights come from.

    Attributes:
        token_embedding: the `Embedding`.
        pos_encoding: the `PositionalEncoding`, the sinusoidal table, or None.

    Raises:
        ValueError: `pos_encoding` is none of these.

    Example:
        >>> layer = EmbeddingLayer(65, 8, max_seq_len=32)
        >>> layer([3, 1, 4]).shape, layer([[3, 1, 4], [1, 5, 9]]).shape
        ((3, 8), (2, 3, 8))
        >>> len(layer.parameters())
        2
    """

    def __init__(
        self,
        vocab_size: int,
        embed_dim: int,
        max_seq_len: int = 512,
        pos_encoding: str | None = "learned",
        scale_embeddings: bool = False,
        rng: Any = None,
    ) -> None:
        check_sizes(max_seq_len=max_seq_len)
        self.vocab_size, self.embed_dim, self.max_seq_len = vocab_size, embed_dim, max_seq_len
        self.scale_embeddings = scale_embeddings
        rng = default_rng(rng)  # one generator: a seed must not draw both tables alike
        self.token_embedding = Embedding(vocab_size, embed_dim, rng=rng)
        self.pos_encoding: PositionalEncoding | Tensor | None
        if pos_encoding == "learned":
            self.pos_encoding = PositionalEncoding(max_seq_len, embed_dim, rng=rng)
        elif pos_encoding == "sinusoidal":
            self.pos_encoding = create_sinusoidal_embeddings(max_seq_len, embed_dim)
        elif pos_encoding is None:
            self.pos_encoding = None
        else:
            raise ValueError(
                f"pos_encoding must be 'learned', 'sinusoidal' or None, got {pos_encoding!r}"
            )

    def forward(self, ids: Any) -> Tensor:
        """Vectors for `ids`, positions included.

        Args:
            ids: integers `(seq,)` or `(batch, seq)`.

        Returns:
            `(seq, embed_dim)` or `(batch, seq, embed_dim)`.

        Raises:
            TypeError: the ids are not integers.
            IndexError: an id is outside `0..vocab_size - 1`.
            ValueError: other than one or two axes, or a sequence longer than `max_seq_len`.
        """
        shape = np.shape(ids)
        if len(shape) not in (1, 2):
            raise ValueError(
                f"EmbeddingLayer: expected ids of shape (seq,) or (batch, seq), got shape {shape}"
            )
        x = self.token_embedding(ids)
        if self.scale_embeddings:
            x = x * math.sqrt(self.embed_dim)
        if self.pos_encoding is None:
            return x
        check_length(shape[-1], self.max_seq_len)
        if isinstance(self.pos_encoding, Tensor):
            return x + self.pos_encoding[: shape[-1]]  # (..., seq, d) + (seq, d)
        batched = x.reshape(math.prod(shape[:-1]), shape[-1], self.embed_dim)  # 1-D ids: one row
        return self.pos_encoding(batched).reshape(*shape, self.embed_dim)


# Positions inside attention ------------------------------------------------------------------


def create_rotary_embeddings(
    max_seq_len: int, head_dim: int, base: float = 10000.0
) -> tuple[np.ndarray, np.ndarray]:
    """The cosines and sines by which rotary embeddings turn queries and keys.

    Pair i of a vector at position p is turned by the angle `p / base^(2i/d)` (Su et al., 2021,
    section 3.2.2).

    Args:
        max_seq_len: number of positions.
        head_dim: length d of the vectors to be turned, even.
        base: the longest wavelength is `2 pi base^((d-2)/d)` positions.

    Returns:
        `(cos, sin)`, each `(max_seq_len, head_dim / 2)` in float32.

    Raises:
        ValueError: `head_dim` is odd: a rotation takes pairs.

    Example:
        >>> cos, sin = create_rotary_embeddings(16, 8)
        >>> cos.shape
        (16, 4)
    """
    check_sizes(max_seq_len=max_seq_len, head_dim=head_dim)
    if head_dim % 2:
        raise ValueError(f"rotary embeddings turn pairs: head_dim must be even, got {head_dim}")
    angles = _angles(max_seq_len, head_dim, base)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


@primitive
def apply_rotary(x: Any, cos: Any, sin: Any, *, start: int = 0) -> Result:
    """Turn each pair `(x[2i], x[2i+1])` of every vector by the angle of its position.

    A dot product of two turned vectors depends on their distance alone, not on where they stand.
    The gradient is turned back by the same angle.

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
        raise ValueError(
            f"apply_rotary: expected (..., seq, {2 * cos.shape[-1]}), got shape {x.shape}"
        )
    check_length(x.shape[-2], len(cos), start)
    places = slice(start, start + x.shape[-2])
    cos, sin = cos[places], sin[places]  # (seq, head_dim / 2)
    return _turn(x, cos, sin), lambda g: (_turn(g, cos, -sin), None, None)


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
    places = np.arange(seq_len)
    nearness = -np.abs(places[:, None] - places[None, :])  # (T, T)
    return alibi_slopes(num_heads)[:, None, None] * nearness.astype(np.float32)  # (heads, T, T)


# Helpers -------------------------------------------------------------------------------------


def _angles(max_seq_len: int, dim: int, base: float) -> np.ndarray:
    """`pos / base^(2i/dim)` for every position and pair, `(max_seq_len, ceil(dim / 2))`."""
    frequencies = base ** (-np.arange(0, dim, 2) / dim)
    return np.arange(max_seq_len)[:, None] * frequencies


def _turn(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Rotate every pair of neighbouring elements."""
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = np.empty(x.shape, dtype=np.result_type(x, cos))
    turned[..., 0::2] = even * cos - odd * sin
    turned[..., 1::2] = even * sin + odd * cos
    return turned


def check_length(seq_len: int, max_seq_len: int, start: int = 0) -> None:
    """Raise unless a sequence fits, after `start` others if those are cached.

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
    if start and start + seq_len > max_seq_len:
        raise ValueError(
            f"length {seq_len} after {start} exceeds max_seq_len {max_seq_len}; "
            "clear the cache and read the end of the text again"
        )
    if seq_len > max_seq_len:
        raise ValueError(
            f"length {seq_len} exceeds max_seq_len {max_seq_len}; crop ids[:, -{max_seq_len}:]"
        )
