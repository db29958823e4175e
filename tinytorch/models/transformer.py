"""The transformer and GPT: attention and an MLP, in blocks, between two tables.

Read it from the top: each class uses those above it. The residual stream begins as token plus
position, every block adds to it, and at the end it is compared with every token of the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self, Unpack

from tinytorch.core import arguments, functional
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.incremental import incremental
from tinytorch.core.layers import Dropout, LayerNorm, Linear, Sequential
from tinytorch.core.masks import causal_mask
from tinytorch.core.module import Module
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import CachedLayer, Mask, Rng, TensorLike, TokenIds
from tinytorch.models import generation, gpt_positions
from tinytorch.models.gpt_checks import check_arguments, check_tokens
from tinytorch.models.gpt_weights import count_parameters, initial_weights
from tinytorch.models.kv_cache import KVCache, can_continue
from tinytorch.models.weight_tying import tied_logits
from tinytorch.text.embeddings import Embedding

__all__ = ["GPT", "GPT2_SHAPES", "MLP", "LayerNorm", "PostNormBlock", "TransformerBlock"]

Part = Callable[..., Any]  # a class, or a function that makes the part

# The published models (Radford et al., 2019, table 2; heads as in the released code).
GPT2_SHAPES = {
    "gpt2-small": {"embed_dim": 768, "num_layers": 12, "num_heads": 12},
    "gpt2-medium": {"embed_dim": 1024, "num_layers": 24, "num_heads": 16},
    "gpt2-large": {"embed_dim": 1280, "num_layers": 36, "num_heads": 20},
    "gpt2-xl": {"embed_dim": 1600, "num_layers": 48, "num_heads": 25},
}


class MLP(Module):
    """What each token does by itself: widen, GELU, narrow, drop.

    Vaswani et al., 2017, section 3.3, with GELU for ReLU as in Radford et al., 2018, section 4.1.

    Args:
        embed_dim: length of the vectors.
        hidden_dim: length in between; None for four times `embed_dim`.
        dropout_prob: fraction of the result dropped in training.
        rng: where the initial weights and the dropout come from.

    Attributes:
        linear1: the `Linear` that widens.
        linear2: the `Linear` that narrows.

    Raises:
        ValueError: a size is less than 1, or `dropout_prob` is not in `0 <= dropout_prob < 1`.
        TypeError: a size is not an integer.

    Example:
        >>> MLP(8)(Tensor([[[0.0] * 8] * 5])).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        hidden_dim: int | None = None,
        dropout_prob: float = 0.1,
        rng: Rng = None,
    ) -> None:
        arguments.check_sizes(embed_dim=embed_dim)
        hidden_dim = 4 * embed_dim if hidden_dim is None else hidden_dim
        arguments.check_sizes(hidden_dim=hidden_dim)
        self.embed_dim, self.hidden_dim, self.dropout_prob = embed_dim, hidden_dim, dropout_prob
        rng = default_rng(rng) if rng is not None else None  # one generator for all three
        self.linear1 = Linear(embed_dim, hidden_dim, rng=rng)
        self.linear2 = Linear(hidden_dim, embed_dim, rng=rng)
        self.dropout = Dropout(dropout_prob, rng=rng)

    def forward(self, x: TensorLike) -> Tensor:
        """Map `(..., embed_dim)` to the same shape."""
        return self.dropout(self.linear2(functional.gelu(self.linear1(x))))


class TransformerBlock(Module):
    """Look, then think: attention and an MLP, each added to the residual stream.

    The norms are inside the branches, `x + f(norm(x))`, as in GPT-2 (Radford et al., 2019, section
    2.3), so the residual path has none. `PostNormBlock` has the other order.

    Args:
        embed_dim: length of the vectors.
        num_heads: number of attention heads.
        mlp_ratio: width of the MLP's hidden layer, in units of `embed_dim`.
        dropout_prob: fraction of the attention weights and of both branches dropped in training.
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
        >>> TransformerBlock(8, 2)(Tensor([[[0.0] * 8] * 5]), mask=causal_mask(5)).shape
        (1, 5, 8)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: int = 4,
        dropout_prob: float = 0.1,
        *,
        norm: Part = LayerNorm,
        attention: Part = MultiHeadAttention,
        mlp: Part = MLP,
    ) -> None:
        arguments.check_sizes(embed_dim=embed_dim, num_heads=num_heads, mlp_ratio=mlp_ratio)
        arguments.check_callable(norm=norm, attention=attention, mlp=mlp)
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.mlp_ratio, self.dropout_prob = mlp_ratio, dropout_prob
        self.ln1 = norm(embed_dim)
        self.attention = attention(embed_dim, num_heads, dropout_prob)
        self.ln2 = norm(embed_dim)
        self.mlp = mlp(embed_dim, mlp_ratio * embed_dim, dropout_prob)
        self.dropout = Dropout(dropout_prob)

    @incremental
    def forward(self, x: TensorLike, mask: Mask = None, **cache: CachedLayer) -> Tensor:
        """Map `(batch, seq, embed_dim)` to the same shape.

        Args:
            x: the residual stream.
            mask: the attention's.
            cache: `cache=`, one layer of a `KVCache`, for the attention; passed on only when
                given, so a custom attention need not take one.
        """
        x = x + self.dropout(self.attention(self.ln1(x), mask=mask, **cache))
        return x + self.mlp(self.ln2(x))


class PostNormBlock(TransformerBlock):
    """The block of the first transformer, which normalises the stream after every addition.

    `norm(x + f(x))` (Vaswani et al., 2017, section 3.1). Xiong et al., 2020, compare the two.
    The arguments and parts are those of `TransformerBlock`.

    Example:
        >>> PostNormBlock(8, 2)(Tensor([[[0.0] * 8] * 5]), mask=causal_mask(5)).shape
        (1, 5, 8)
    """

    @incremental
    def forward(self, x: TensorLike, mask: Mask = None, **cache: CachedLayer) -> Tensor:
        """Map `(batch, seq, embed_dim)` to the same shape; see `TransformerBlock.forward`."""
        x = self.ln1(x + self.dropout(self.attention(x, mask=mask, **cache)))
        return self.ln2(x + self.mlp(x))


class GPT(Module):
    """A language model that reads tokens and scores what comes next (Radford et al., 2018, 2019).

    Weights start as in GPT-2: normal with deviation 0.02, those that write into the residual stream
    smaller by `sqrt(2 num_layers)` (Radford et al., 2019, section 2.3), biases 0. So do the
    matrices of a replacement, where names decide which ones write: `attention.out_proj` and
    `mlp.linear2`; its other parameters stay as it made them. Narrow models learn faster from larger
    weights: `init_std=0.1` for 64 numbers a token. The output layer is the token table
    unless `tie_weights=False`: see `weight_tying`.

    Args:
        vocab_size: number of tokens.
        embed_dim: length of the vectors.
        num_layers: number of blocks.
        num_heads: attention heads in each block.
        max_seq_len: the longest sequence.
        dropout: fraction of embeddings, attention weights and branches dropped in training.
        tie_weights: whether the output layer is the token table.
        pos_encoding: `'learned'`, `'sinusoidal'`, `'rotary'`, `'alibi'` or None.
        pre_norm: False for `PostNormBlock`, which ends in a norm: `ln_f` is then empty.
        norm: a replacement for `LayerNorm`, called as `norm(embed_dim)`.
        attention: a replacement for `MultiHeadAttention`, called as
            `attention(embed_dim, num_heads, dropout)`.
        mlp: a replacement for `MLP`, called as `mlp(embed_dim, hidden_dim, dropout)`.
        init_std: the standard deviation of the initial weights.
        rng: where the initial weights come from; if given, the default generator is not used.
        rotary_base: with rotary positions, as for `Rotary`; today's models take 100,000 and more.

    Attributes:
        dropout: the `Dropout` of the embeddings.
        token_embedding: the token table.
        position_embedding: the learned positions, the sinusoidal table, or None.
        blocks: the list of blocks.
        ln_f: the last norm.
        lm_head: the output layer, or None when it is tied.

    Raises:
        ValueError: `pos_encoding` is unknown, sizes do not fit, or a number is out of range.
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
        rng: Rng = None,
        pos_encoding: str | None = "learned",
        pre_norm: bool = True,
        norm: Part = LayerNorm,
        attention: Part = MultiHeadAttention,
        mlp: Part = MLP,
        init_std: float = 0.02,
        rotary_base: float = 10_000.0,
    ) -> None:
        self.vocab_size, self.embed_dim, self.max_seq_len = vocab_size, embed_dim, max_seq_len
        self.num_layers, self.num_heads, self.init_std = num_layers, num_heads, init_std
        self.tie_weights, self.pos_encoding, self.pre_norm = tie_weights, pos_encoding, pre_norm
        self.rotary_base = rotary_base
        check_arguments(self, norm=norm, attention=attention, mlp=mlp)
        block = TransformerBlock if pre_norm else PostNormBlock
        with initial_weights(self, rng):  # as GPT-2's, drawn at its end
            self.token_embedding = Embedding(vocab_size, embed_dim)
            self.position_embedding, in_attention = gpt_positions.positions_of(self)
            self.dropout = Dropout(dropout)
            attend = partial(attention, **in_attention)
            parts: Any = {"norm": norm, "attention": attend, "mlp": mlp, "dropout_prob": dropout}
            self.blocks = [block(embed_dim, num_heads, **parts) for _ in range(num_layers)]
            self.ln_f: Any = norm(embed_dim) if pre_norm else Sequential()
            self.lm_head = None if tie_weights else Linear(embed_dim, vocab_size, bias=False)

    @incremental
    def forward(
        self, tokens: TokenIds, cache: KVCache | None = None, *, last_only: bool = False
    ) -> Tensor:
        """Score every token of the vocabulary as the next one, at every position.

        With a cache, generation reads `read_gpt` in its place, the same on arrays.

        Args:
            tokens: integer ids `(batch, seq)` or `(seq,)`.
            cache: the tokens read before: the new ones continue them, and are added to the cache.
            last_only: whether to score only the last position, which is all that generation needs.

        Returns:
            Logits `(batch, seq, vocab_size)`, or `(seq, vocab_size)`; seq is 1 with `last_only`.

        Raises:
            ValueError: the ids have another number of axes, are empty, or exceed `max_seq_len`.
            TypeError: the ids are not integers.
            IndexError: an id is outside the vocabulary.
        """
        shape, past = check_tokens(self, tokens, cache)
        x = self.token_embedding(tokens)  # (batch, seq, d)
        x = self.dropout(gpt_positions.with_positions(self.position_embedding, x, past))
        mask = causal_mask(shape[-1], past)
        for i, block in enumerate(self.blocks):
            x = block(x, mask=mask) if cache is None else block(x, mask=mask, cache=cache.layer(i))
        if cache is not None:
            cache.advance(shape[-1])
        x = self.ln_f(x[:, -1:] if last_only else x)
        logits = tied_logits(x, self.token_embedding) if self.lm_head is None else self.lm_head(x)
        return logits if len(shape) == 2 else logits.squeeze(0)

    def generate(
        self,
        prompt_tokens: TokenIds,
        max_new_tokens: int = 50,
        **options: Unpack[generation.Options],
    ) -> Tensor:
        """Continue every prompt, one token at a time, each drawn from the last position's scores.

        Args:
            prompt_tokens: integer ids `(batch, prompt)` or `(prompt,)`.
            max_new_tokens: how many tokens to write at most.
            options: `temperature`, `top_k`, `top_p`, `rng` and others; see `generation.stream`.

        Returns:
            Ids `(batch, prompt + new)` or `(prompt + new,)`.
        """
        return generation.generate(self, prompt_tokens, max_new_tokens, **options)

    def new_cache(self) -> KVCache | None:
        """An empty cache for one batch of texts; None if a part cannot continue from one."""
        return KVCache(len(self.blocks), self.max_seq_len) if can_continue(self) else None

    def num_parameters(self) -> dict[str, int]:
        """How many numbers each part learns, and the total; a tied table counts once.

        Those of a part that you have added are `"other"`. Weights in fewer bits count as before
        they were rounded, without their scales.

        Example:
            >>> GPT(65, 64, 2, 4, max_seq_len=32).num_parameters()["attention"]
            33280
        """
        return count_parameters(self)

    @classmethod
    def preset(cls, name: str, **options: Any) -> Self:
        """A model in a published shape, `'gpt2-small'` for instance, with random weights.

        Args:
            name: one of `GPT2_SHAPES`.
            options: passed on to `GPT`, for instance `vocab_size`.

        Raises:
            ValueError: another name.
        """
        if name not in GPT2_SHAPES:
            raise ValueError(f"no preset {name!r}; the presets are {', '.join(GPT2_SHAPES)}")
        return cls(**{"vocab_size": 50257, **GPT2_SHAPES[name], **options})
