"""From integers to vectors: token embeddings, and four ways to tell a model the order.

A transformer receives one vector for each token. `Embedding` looks it up in a table that training
changes. Attention by itself sees a set, not a sequence, so it needs
the positions as well: a learned vector (`PositionalEncoding`) or a fixed one
(`create_sinusoidal_embeddings`) is added, queries and keys are rotated (`apply_rotary`), or the
distance is subtracted from the attention logits (`create_alibi_bias`). `EmbeddingLayer` joins
tokens and positions.
"""

from __future__ import annotations

import math

import numpy as np

from tinytorch.core import functional
from tinytorch.core.arguments import check_choice, check_equal_lengths, check_flags, check_sizes
from tinytorch.core.incremental import incremental
from tinytorch.core.layers import xavier_uniform
from tinytorch.core.module import Module, Parameter
from tinytorch.core.positions import (
    alibi_slopes,
    apply_rotary,
    check_length,
    create_alibi_bias,
    create_rotary_embeddings,
    create_sinusoidal_embeddings,
)
from tinytorch.core.quantization import QuantizedEmbedding, quantized_by
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import Rng, TensorLike, TokenIds

__all__ = ["Embedding", "EmbeddingLayer", "PositionalEncoding", "alibi_slopes", "apply_rotary",
           "create_alibi_bias", "create_rotary_embeddings",
           "create_sinusoidal_embeddings"]  # fmt: skip


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
        self, vocab_size: int, embed_dim: int, sparse: bool = False, rng: Rng = None
    ) -> None:
        check_sizes(vocab_size=vocab_size, embed_dim=embed_dim)
        check_flags(sparse=sparse)
        self.vocab_size, self.embed_dim, self.sparse = vocab_size, embed_dim, sparse
        self.weight = Parameter(xavier_uniform((vocab_size, embed_dim), rng))

    @quantized_by(QuantizedEmbedding.of)
    def forward(self, ids: TokenIds | int) -> Tensor:
        """Look up every id.

        Args:
            ids: integers of any shape: a Tensor, an array or nested lists.

        Returns:
            `ids.shape + (embed_dim,)`.

        Raises:
            TypeError: the ids are not integers.
            IndexError: an id is outside `0..vocab_size - 1`.
        """
        check_equal_lengths(ids, "Embedding")
        return functional.embedding(self.weight, ids, sparse=self.sparse)


class PositionalEncoding(Module):
    """Learned positions: a vector for each position, added to the token's.

    The scheme of GPT (Radford et al., 2018) and BERT (Devlin et al., 2019).

    Args:
        max_seq_len: number of positions; a longer sequence is an error.
        embed_dim: length of each vector.
        rng: where the initial weights come from.

    Attributes:
        position_embeddings: `(max_seq_len, embed_dim)`, Xavier uniform at the start.

    Example:
        >>> pe = PositionalEncoding(16, 8)
        >>> pe(Tensor(np.zeros((2, 5, 8)))).shape
        (2, 5, 8)
    """

    def __init__(self, max_seq_len: int, embed_dim: int, rng: Rng = None) -> None:
        check_sizes(max_seq_len=max_seq_len, embed_dim=embed_dim)
        self.max_seq_len, self.embed_dim = max_seq_len, embed_dim
        self.position_embeddings = Parameter(xavier_uniform((max_seq_len, embed_dim), rng))

    @incremental
    def forward(self, x: TensorLike, start: int = 0) -> Tensor:
        """Add the position vectors to `x`.

        Args:
            x: `(batch, seq, embed_dim)`.
            start: the position of the first.

        Returns:
            The same shape.

        Raises:
            ValueError: `x` is not 3-D, its last axis is not `embed_dim`, or it is too long.
        """
        shape = x.shape if isinstance(x, Tensor) else np.asarray(x).shape
        if len(shape) != 3 or shape[2] != self.embed_dim:
            expected = f"expected (batch, seq, {self.embed_dim}), got shape {shape}"
            if len(shape) == 2:
                expected += "; add a batch axis with x.reshape(1, *x.shape)"
            raise ValueError(f"PositionalEncoding: {expected}")
        check_length(shape[1], self.max_seq_len, start)
        table = self.position_embeddings[start : start + shape[1]]
        return x + table  # (batch, seq, d) + (seq, d)


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
        ValueError: `pos_encoding` is none of these, or a size is less than 1.
        TypeError: a size is not an integer, or `scale_embeddings` is neither True nor False.

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
        rng: Rng = None,
    ) -> None:
        check_sizes(max_seq_len=max_seq_len)
        check_choice(pos_encoding, "pos_encoding", ("learned", "sinusoidal", None))
        check_flags(scale_embeddings=scale_embeddings)
        self.vocab_size, self.embed_dim, self.max_seq_len = vocab_size, embed_dim, max_seq_len
        self.scale_embeddings = scale_embeddings
        rng = default_rng(rng)  # one generator: a seed must not give both tables the same numbers
        self.token_embedding = Embedding(vocab_size, embed_dim, rng=rng)
        self.pos_encoding: PositionalEncoding | Tensor | None = None
        if pos_encoding == "learned":
            self.pos_encoding = PositionalEncoding(max_seq_len, embed_dim, rng=rng)
        elif pos_encoding == "sinusoidal":
            self.pos_encoding = create_sinusoidal_embeddings(max_seq_len, embed_dim)

    def forward(self, ids: TokenIds | int) -> Tensor:
        """Vectors for `ids`, positions included.

        Args:
            ids: integers `(seq,)` or `(batch, seq)`.

        Returns:
            `(seq, embed_dim)` or `(batch, seq, embed_dim)`.

        Raises:
            TypeError: the ids are not integers.
            IndexError: an id is outside `0..vocab_size - 1`.
            ValueError: not one or two axes, or a sequence longer than `max_seq_len`.
        """
        shape = check_equal_lengths(ids, "EmbeddingLayer")
        if len(shape) not in (1, 2):
            wanted = "ids must be (seq,) or (batch, seq)"
            raise ValueError(f"EmbeddingLayer: {wanted}, got shape {shape}")
        x = self.token_embedding(ids)
        if self.scale_embeddings:
            x = x * math.sqrt(self.embed_dim)
        if self.pos_encoding is None:
            return x
        check_length(shape[-1], self.max_seq_len)
        if isinstance(self.pos_encoding, Tensor):
            return x + self.pos_encoding[: shape[-1]]  # (..., seq, d) + (seq, d)
        rows = math.prod(shape[:-1])  # one for 1-D ids
        batched = x.reshape(rows, shape[-1], self.embed_dim)
        return self.pos_encoding(batched).reshape(*shape, self.embed_dim)
