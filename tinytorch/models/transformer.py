"""The transformer and GPT: attention and an MLP, in blocks, between two tables.

The residual stream is the spine: it begins as token plus position, every block adds to it, and at
the end it is compared with every token of the vocabulary.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tinytorch.core import arguments, functional, positions
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.incremental import incremental, is_incremental
from tinytorch.core.layers import Dropout, LayerNorm, Linear
from tinytorch.core.masks import causal_mask
from tinytorch.core.module import Module
from tinytorch.core.seeding import default_rng, drawing_from
from tinytorch.core.tensor import Tensor
from tinytorch.models import generation, reading
from tinytorch.models.kv_cache import KVCache
from tinytorch.text.embeddings import Embedding, PositionalEncoding

__all__ = ["GPT", "GPT2_SHAPES", "MLP", "LayerNorm", "PostNormBlock", "TransformerBlock"]


class MLP(Module):
    """What each token does by itself: widen, GELU, narrow, drop.

    Vaswani et al., 2017, section 3.3, with GELU for ReLU as in Radford et al., 2018, section 4.1.

    Args:
        embed_dim: length of the vectors.
        hidden_dim: length in between; None for four times `embed_dim`.
        dropout_prob: share of the result that training drops.
        rng: where the initial weights and the dropout come from.

    Attributes:
        linear1: the `Linear` that widens.
        linear2: the `Linear` that narrows.

    Raises:
        ValueError: a size is less than 1, or `dropout_prob` is not in `0 <= dropout_prob < 1`.
        TypeError: a size is not an integer.

    Example:
        >>> MLP(8)(Tensor(np.zeros((1, 5, 8)))).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        hidden_dim: int | None = None,
        dropout_prob: float = 0.1,
        rng: Any = None,
    ) -> None:
        arguments.check_sizes(embed_dim=embed_dim)
        hidden_dim = 4 * embed_dim if hidden_dim is None else hidden_dim
        arguments.check_sizes(hidden_dim=hidden_dim)
        self.embed_dim, self.hidden_dim, self.dropout_prob = embed_dim, hidden_dim, dropout_prob
        rng = default_rng(rng) if rng is not None else None  # one generator for all three
        self.linear1 = Linear(embed_dim, hidden_dim, rng=rng)
        self.linear2 = Linear(hidden_dim, embed_dim, rng=rng)
        self.dropout = Dropout(dropout_prob, rng=rng)

    @reading.read_by(reading.read_mlp)
    def forward(self, x: Any) -> Tensor:
        """Map `(..., embed_dim)` to the same shape."""
        return self.dropout(self.linear2(functional.gelu(self.linear1(x))))


class TransformerBlock(Module):
    """Look, then think: attention and an MLP, each added to the residual stream.

    The norms stand inside the branches, `x + f(norm(x))`, as in GPT-2 (Radford et al., 2019,
    section 2.3): the path from end to end stays free of them. `PostNormBlock` is the other order.

    Args:
        embed_dim: length of the vectors.
        num_heads: number of attention heads.
        mlp_ratio: width of the MLP's hidden layer, in units of `embed_dim`.
        dropout_prob: share of the attention weights and of both branches that training drops.
        norm: called as `norm(embed_dim)`; makes `ln1` and `ln2`.
        attention: called as `attention(embed_dim, num_heads, dropout_prob)`.
        mlp: called as `mlp(embed_dim, hidden_dim, dropout_prob)`.

    Attributes:
        attention: the attention layer.
        ln1: the norm of the attention branch.
        ln2: the norm of the MLP branch.
        mlp: the MLP.
        dropout: the dropout of the attention branch; the MLP brings its own.

    Raises:
        ValueError: a size is less than 1, or `num_heads` does not divide `embed_dim`.
        TypeError: a size is not an integer, or a part cannot be called.

    Example:
        >>> TransformerBlock(8, 2)(Tensor(np.zeros((1, 5, 8))), mask=causal_mask(5)).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: int = 4,
        dropout_prob: float = 0.1,
        *,
        norm: Callable[..., Any] = LayerNorm,
        attention: Callable[..., Any] = MultiHeadAttention,
        mlp: Callable[..., Any] = MLP,
    ) -> None:
        arguments.check_sizes(embed_dim=embed_dim, num_heads=num_heads, mlp_ratio=mlp_ratio)
        _check_parts(norm=norm, attention=attention, mlp=mlp)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.mlp_ratio, self.dropout_prob = mlp_ratio, dropout_prob
        self.ln1 = norm(embed_dim)
        self.attention = attention(embed_dim, num_heads, dropout_prob)
        self.ln2 = norm(embed_dim)
        self.mlp = mlp(embed_dim, mlp_ratio * embed_dim, dropout_prob)
        self.dropout = Dropout(dropout_prob)

    @incremental
    @reading.read_by(reading.read_block)
    def forward(self, x: Any, mask: Any = None, **cache: Any) -> Tensor:
        """Map `(batch, seq, embed_dim)` to the same shape.

        Args:
            x: the residual stream.
            mask: the attention's.
            cache: `cache=`, one layer of a `KVCache`, the attention's too; handed on only when it
                is given, so that an attention of your own need not take one.
        """
        x = x + self.dropout(self.attention(self.ln1(x), mask=mask, **cache))
        return x + self.mlp(self.ln2(x))


class PostNormBlock(TransformerBlock):
    """The block of the first transformer, which normalises the stream after every addition.

    `norm(x + f(x))` (Vaswani et al., 2017, section 3.1). Xiong et al., 2020, compare the two.
    The arguments and parts are those of `TransformerBlock`.

    Example:
        >>> PostNormBlock(8, 2)(Tensor(np.zeros((1, 5, 8))), mask=causal_mask(5)).shape
        (1, 5, 8)
    """

    @incremental
    @reading.read_by(partial(reading.read_block, pre_norm=False))
    def forward(self, x: Any, mask: Any = None, **cache: Any) -> Tensor:
        """Map `(batch, seq, embed_dim)` to the same shape; see `TransformerBlock.forward`."""
        x = self.ln1(x + self.dropout(self.attention(x, mask=mask, **cache)))
        return self.ln2(x + self.mlp(x))


# The published models (Radford et al., 2019, table 2; heads as in the released code).
GPT2_SHAPES = {
    "gpt2-small": {"embed_dim": 768, "num_layers": 12, "num_heads": 12},
    "gpt2-medium": {"embed_dim": 1024, "num_layers": 24, "num_heads": 16},
    "gpt2-large": {"embed_dim": 1280, "num_layers": 36, "num_heads": 20},
    "gpt2-xl": {"embed_dim": 1600, "num_layers": 48, "num_heads": 25},
}


class GPT(Module):
    """A language model that reads tokens and scores what comes next (Radford et al., 2018, 2019).

    Weights start as in GPT-2: normal with deviation 0.02, those that write into the residual stream
    smaller by `sqrt(2 num_layers)` (Radford et al., 2019, section 2.3), biases 0. Narrow models
    learn faster from larger weights: `init_std=0.1` for 64 numbers a token. The output layer
    is the token table unless `tie_weights=False`: weight tying, see `tied_logits`.

    Args:
        vocab_size: number of tokens.
        embed_dim: length of the vectors.
        num_layers: number of blocks.
        num_heads: attention heads in each block.
        max_seq_len: the longest sequence.
        dropout: share that training drops, of embeddings, attention weights and branches.
        tie_weights: whether the output layer is the token table.
        pos_encoding: `'learned'`, `'sinusoidal'`, `'rotary'`, `'alibi'` or None.
        pre_norm: False for blocks of the kind `PostNormBlock`.
        norm: a replacement for `LayerNorm`, called as `norm(embed_dim)`.
        attention: a replacement for `MultiHeadAttention`, called as
            `attention(embed_dim, num_heads, dropout)`.
        mlp: a replacement for `MLP`, called as `mlp(embed_dim, hidden_dim, dropout)`.
        init_std: the standard deviation of the initial weights.
        rng: where the initial weights come from; if it is given, the default generator is left as
            it is.

    Attributes:
        dropout: the `Dropout` of the embeddings.
        token_embedding: the token table.
        position_embedding: the learned positions, the sinusoidal table, or None.
        blocks: the list of blocks.
        ln_f: the last norm.
        lm_head: the output layer, or None when it is tied.

    Raises:
        ValueError: `pos_encoding` is none of these, sizes do not fit, or a number is out of range.
        TypeError: an argument is of another type.

    Example:
        >>> model = GPT(vocab_size=65, embed_dim=16, num_layers=2, num_heads=2, max_seq_len=32)
        >>> model([[1, 2, 3]]).shape
        (1, 3, 65)
    """

    def __init__(
        self,
        vocab_size: int,
        embed_dim: int,
        num_layers: int,
        num_heads: int,
        max_seq_len: int = 1024,
        *,
        dropout: float = 0.0,
        tie_weights: bool = True,
        pos_encoding: str | None = "learned",
        pre_norm: bool = True,
        norm: Callable[..., Any] = LayerNorm,
        attention: Callable[..., Any] = MultiHeadAttention,
        mlp: Callable[..., Any] = MLP,
        init_std: float = 0.02,
        rng: Any = None,
    ) -> None:
        arguments.check_sizes(vocab_size=vocab_size, embed_dim=embed_dim, num_layers=num_layers)
        arguments.check_sizes(num_heads=num_heads, max_seq_len=max_seq_len)
        arguments.check_not_negative(init_std=init_std)
        arguments.check_flags(tie_weights=tie_weights, pre_norm=pre_norm)
        _check_parts(norm=norm, attention=attention, mlp=mlp)
        kinds = "learned", "sinusoidal", "rotary", "alibi", None
        arguments.check_choice(pos_encoding, "pos_encoding", kinds)
        self.vocab_size, self.embed_dim, self.max_seq_len = vocab_size, embed_dim, max_seq_len
        self.num_layers, self.num_heads, self.init_std = num_layers, num_heads, init_std
        self.tie_weights, self.pos_encoding, self.pre_norm = tie_weights, pos_encoding, pre_norm
        weights = default_rng(rng)
        # the parts draw weights too, which _initialise replaces: from a copy, if `rng` is given
        with drawing_from(weights if rng is None else copy.deepcopy(weights)):
            self._add_parts(dropout, norm, attention, mlp)
        self._initialise(init_std, weights)

    @classmethod
    def preset(cls, name: str, **options: Any) -> GPT:
        """A model in one of the published GPT-2 shapes, with random weights.

        Args:
            name: `'gpt2-small'`, `'gpt2-medium'`, `'gpt2-large'` or `'gpt2-xl'`.
            options: passed on to `GPT`, for instance `vocab_size`.

        Raises:
            ValueError: another name.
        """
        if name not in GPT2_SHAPES:
            raise ValueError(f"no preset {name!r}; there are {', '.join(GPT2_SHAPES)}")
        return cls(**{"vocab_size": 50257, **GPT2_SHAPES[name], **options})

    @incremental
    @reading.read_by(reading.read_gpt)
    def forward(
        self, tokens: Any, cache: KVCache | None = None, *, last_only: bool = False
    ) -> Tensor:
        """Score every token of the vocabulary as the next one, at every position.

        Args:
            tokens: integer ids `(batch, seq)` or `(seq,)`.
            cache: what was read before: the tokens go on from there, and are added to it.
            last_only: whether to score the last position alone, which is all that writing needs.

        Returns:
            Logits `(batch, seq, vocab_size)`, or `(seq, vocab_size)`; seq is 1 with `last_only`.

        Raises:
            ValueError: the ids have another number of axes, are none, or exceed `max_seq_len`.
            TypeError: the ids are not integers.
            IndexError: an id is outside the vocabulary.
        """
        shape = arguments.check_equal_lengths(tokens, "GPT")
        if len(shape) not in (1, 2) or 0 in shape:
            expected = "expected ids of shape (batch, seq) or (seq,), not empty"
            raise ValueError(f"GPT: {expected}, got shape {shape}")
        seq, past = shape[-1], 0 if cache is None else cache.length
        positions.check_length(seq, self.max_seq_len, past)
        x = self.token_embedding(tokens)
        if len(shape) == 1:
            x = x.reshape(1, seq, self.embed_dim)  # a batch of one
        x = self._with_positions(x, past)
        # a single new token may look at everything that is cached
        mask = None if cache is not None and seq == 1 else causal_mask(seq, past)
        for i, block in enumerate(self.blocks):
            x = block(x, mask=mask) if cache is None else block(x, mask=mask, cache=cache.layer(i))
        if cache is not None:
            cache.advance(seq)
        if last_only and seq > 1:
            x = x[:, -1:]
        x = self.ln_f(x)
        if len(shape) == 1:
            x = x.reshape(-1, self.embed_dim)
        return tied_logits(x, self.token_embedding) if self.lm_head is None else self.lm_head(x)

    generate = generation.generate  # of the model itself, with all its options

    def new_cache(self) -> KVCache | None:
        """An empty cache for one batch of texts; None if a part cannot read piece by piece.

        The model, its positions, its blocks, their attentions and rotations must all be
        `incremental`; norms and MLPs need not be, they see each token by itself.

        Example:
            >>> class Attention(MultiHeadAttention):  # a forward of your own, without a cache
            ...     def forward(self, query, mask=None):
            ...         return super().forward(query, mask=mask)
            >>> (
            ...     GPT(5, 8, 2, 2).new_cache().num_layers,
            ...     GPT(5, 8, 2, 2, attention=Attention).new_cache(),
            ... )
            (2, None)
        """
        attentions = [getattr(block, "attention", block) for block in self.blocks]
        by_position = [self.position_embedding, *(getattr(a, "rotate", None) for a in attentions)]
        parts = [self, *self.blocks, *attentions, *(p for p in by_position if callable(p))]
        if all(is_incremental(part) for part in parts):
            return KVCache(len(self.blocks), self.max_seq_len)
        return None

    def num_parameters(self) -> dict[str, int]:
        """How many numbers each part learns, and the total; a tied table counts once.

        Returns:
            `{'token_embedding': ..., 'position_embedding': ..., 'attention': ..., 'mlp': ...,
            'norms': ..., 'lm_head': ..., 'total': ...}`.

        Example:
            >>> GPT(65, 64, 2, 4, max_seq_len=32).num_parameters()["attention"]
            33280
        """
        parts = ("token_embedding", "position_embedding", "attention", "mlp", "norms", "lm_head")
        count = dict.fromkeys(parts, 0)
        for name, parameter in self.named_parameters():
            found = [part for part in parts if part in name.split(".")]
            count[found[0] if found else "norms"] += parameter.size
        return {**count, "total": sum(count.values())}

    def _add_parts(self, dropout: float, *parts: Callable[..., Any]) -> None:
        """Make the embeddings, the blocks and the output layer."""
        (norm, attention, mlp), d = parts, self.embed_dim
        options: dict[str, Any] = {}  # what the attentions are told about positions
        self.token_embedding = Embedding(self.vocab_size, d)
        self.position_embedding: Any = None
        if self.pos_encoding == "learned":
            self.position_embedding = PositionalEncoding(self.max_seq_len, d)
        elif self.pos_encoding == "sinusoidal":
            self.position_embedding = positions.create_sinusoidal_embeddings(self.max_seq_len, d)
        elif self.pos_encoding == "rotary":
            options = {"rotate": positions.Rotary(self.max_seq_len, d // self.num_heads)}
        elif self.pos_encoding == "alibi":
            options = {"bias": positions.create_alibi_bias(self.num_heads, self.max_seq_len)}
        kind = TransformerBlock if self.pre_norm else PostNormBlock
        self.dropout = Dropout(dropout)
        self.blocks = [
            kind(
                d, self.num_heads, dropout_prob=dropout,
                norm=norm, attention=partial(attention, **options), mlp=mlp,
            )
            for _ in range(self.num_layers)
        ]  # fmt: skip
        self.ln_f = norm(d)
        self.lm_head = None if self.tie_weights else Linear(d, self.vocab_size, bias=False)

    def _with_positions(self, x: Tensor, start: int) -> Tensor:
        """Add the vectors of the positions from `start` on to `(batch, seq, embed_dim)`."""
        if isinstance(self.position_embedding, Tensor):
            x = x + self.position_embedding[start : start + x.shape[1]]  # + (seq, d)
        elif self.position_embedding is not None:
            x = self.position_embedding(x, start) if start else self.position_embedding(x)
        return self.dropout(x)

    def _initialise(self, init_std: float, rng: np.random.Generator) -> None:
        """GPT-2's initialisation for every matrix; vectors keep their zeros and ones."""
        into_the_stream = ("attention.out_proj.weight", "mlp.linear2.weight")
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2:
                deviation = init_std
                if name.endswith(into_the_stream):
                    deviation /= math.sqrt(2 * len(self.blocks))
                parameter.data[...] = rng.normal(0.0, deviation, size=parameter.shape)


def tied_logits(x: Any, token_embedding: Embedding) -> Tensor:
    """Weight tying: each token is scored by its own row of the token table (Press and Wolf, 2017).

    Args:
        x: vectors `(..., embed_dim)`.
        token_embedding: the table, whose gradient is the sum of those of its two uses. One that is
            stored in another way has a method `scores(x)`, which is asked instead.

    Returns:
        Logits `(..., vocab_size)`: dot products, without a bias.

    Example:
        >>> table = Embedding(5, 8, rng=0)
        >>> tied_logits(table([3]), table).shape
        (1, 5)
    """
    if hasattr(token_embedding, "scores"):
        return token_embedding.scores(x)
    return functional.linear(x, token_embedding.weight.transpose())  # (d, vocab_size)


def _check_parts(**parts: Any) -> None:
    for name, part in parts.items():
        if not callable(part):
            raise TypeError(f"{name} must be a class or a function that makes it, got {part!r}")
