"""The transformer and GPT: attention and an MLP, in blocks, between two tables.

The residual stream is the spine: it begins as token plus position, every block adds to it, and at
the end it is compared with every token of the vocabulary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.attention import MultiHeadAttention, causal_mask
from tinytorch.core.layers import Dropout, LayerNorm, Linear, Module, check_sizes
from tinytorch.core.positions import (
    Rotary,
    check_length,
    create_alibi_bias,
    create_sinusoidal_embeddings,
)
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.models.decoding import Decoder
from tinytorch.models.generation import generate
from tinytorch.models.kv_cache import KVCache
from tinytorch.text.embeddings import Embedding, PositionalEncoding

__all__ = ["GPT", "GPT2_SHAPES", "MLP", "LayerNorm", "TransformerBlock"]


class MLP(Module):
    """What each token does by itself: widen, GELU, narrow, drop.

    Args:
        embed_dim: length of the vectors.
        hidden_dim: length in between; None for four times `embed_dim`.
        dropout_prob: share of the result that training drops.
        rng: where the initial weights and the dropout come from.

    Attributes:
        linear1: the `Linear` that widens.
        linear2: the `Linear` that narrows.

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
        hidden_dim = 4 * embed_dim if hidden_dim is None else hidden_dim
        rng = default_rng(rng) if rng is not None else None  # one generator for all three
        self.linear1 = Linear(embed_dim, hidden_dim, rng=rng)
        self.linear2 = Linear(hidden_dim, embed_dim, rng=rng)
        self.dropout = Dropout(dropout_prob, rng=rng)

    def forward(self, x: Any) -> Tensor:
        """Map `(..., embed_dim)` to the same shape."""
        return self.dropout(self.linear2(functional.gelu(self.linear1(x))))


class TransformerBlock(Module):
    """Look, then think: attention and an MLP, each added to what came in.

    Pre-norm (`x + f(norm(x))`, as in GPT-2) keeps the path from end to end free of normalisation;
    post-norm (`norm(x + f(x))`) is the order of Vaswani et al., 2017. Xiong et al., 2020, compare
    the two.

    Args:
        embed_dim: length of the vectors.
        num_heads: number of attention heads.
        mlp_ratio: width of the MLP's hidden layer, in units of `embed_dim`.
        dropout_prob: share of the attention weights and of both branches that training drops.
        pre_norm: False for post-norm.
        norm: called as `norm(embed_dim)`; makes `ln1` and `ln2`.
        attention: called as `attention(embed_dim, num_heads, dropout_prob)`.
        mlp: called as `mlp(embed_dim, hidden_dim, dropout_prob)`.

    Attributes:
        attention: the attention layer.
        ln1: the norm of the attention branch.
        ln2: the norm of the MLP branch.
        mlp: the MLP.

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
        pre_norm: bool = True,
        norm: Callable[..., Any] = LayerNorm,
        attention: Callable[..., Any] = MultiHeadAttention,
        mlp: Callable[..., Any] = MLP,
    ) -> None:
        self.ln1 = norm(embed_dim)
        self.attention = attention(embed_dim, num_heads, dropout_prob)
        self.ln2 = norm(embed_dim)
        self.mlp = mlp(embed_dim, mlp_ratio * embed_dim, dropout_prob)
        self.dropout = Dropout(dropout_prob)
        self.pre_norm = pre_norm

    def forward(self, x: Any, mask: Any = None, cache: Any = None) -> Tensor:
        """Map `(batch, seq, embed_dim)` to the same shape; mask and cache are the attention's."""
        options = {"mask": mask} if cache is None else {"mask": mask, "cache": cache}
        if self.pre_norm:
            x = x + self.dropout(self.attention(self.ln1(x), **options))
            return x + self.mlp(self.ln2(x))
        x = self.ln1(x + self.dropout(self.attention(x, **options)))
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
    learn faster from livelier weights: `init_std=0.1` for 64 numbers a token. The output layer
    reuses the token table unless `tie_weights=False` (Press and Wolf, 2017).

    Args:
        vocab_size: number of tokens.
        embed_dim: length of the vectors.
        num_layers: number of blocks.
        num_heads: attention heads in each block.
        max_seq_len: the longest sequence.
        dropout: share that training drops, of embeddings, attention weights and branches.
        tie_weights: whether the output layer is the token table.
        pos_encoding: `'learned'`, `'sinusoidal'`, `'rotary'`, `'alibi'` or None.
        pre_norm: False for post-norm blocks.
        norm: a replacement for `LayerNorm`, called as `norm(embed_dim)`.
        attention: a replacement for `MultiHeadAttention`, called as
            `attention(embed_dim, num_heads, dropout)`.
        mlp: a replacement for `MLP`, called as `mlp(embed_dim, hidden_dim, dropout)`.
        init_std: the deviation of the initial weights.
        rng: where the initial weights come from.

    Attributes:
        token_embedding: the token table.
        position_embedding: the learned positions, the sinusoidal table, or None.
        blocks: the list of blocks.
        ln_f: the last norm.
        lm_head: the output layer, or None when it is tied.

    Raises:
        ValueError: `pos_encoding` is none of these, or sizes do not fit.

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
        check_sizes(num_layers=num_layers, max_seq_len=max_seq_len, num_heads=num_heads)
        self.vocab_size, self.embed_dim, self.max_seq_len = vocab_size, embed_dim, max_seq_len
        rng = default_rng(rng)
        in_attention = _positions_in_attention(pos_encoding, embed_dim, num_heads, max_seq_len)

        def attention_with_positions(*args: Any) -> Any:
            return attention(*args, **in_attention)

        self.token_embedding = Embedding(vocab_size, embed_dim)
        self.position_embedding: Any = None
        if pos_encoding == "learned":
            self.position_embedding = PositionalEncoding(max_seq_len, embed_dim)
        elif pos_encoding == "sinusoidal":
            self.position_embedding = create_sinusoidal_embeddings(max_seq_len, embed_dim)
        self.dropout = Dropout(dropout)
        self.blocks = [
            TransformerBlock(
                embed_dim, num_heads, dropout_prob=dropout, pre_norm=pre_norm,
                norm=norm, attention=attention_with_positions, mlp=mlp,
            )
            for _ in range(num_layers)
        ]  # fmt: skip
        self.ln_f = norm(embed_dim)
        self.lm_head = None if tie_weights else Linear(embed_dim, vocab_size, bias=False)
        self._initialise(init_std, rng)

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
        shape = np.shape(tokens)
        if len(shape) not in (1, 2) or 0 in shape:
            raise ValueError(
                f"GPT: expected ids of shape (batch, seq) or (seq,), not empty, got shape {shape}"
            )
        past = 0 if cache is None else cache.length
        check_length(shape[-1], self.max_seq_len, past)
        x = self.token_embedding(tokens)
        x = self._positioned(x.reshape(-1, shape[-1], self.embed_dim), past)  # a batch, even of one
        mask = causal_mask(shape[-1], past)
        for i, block in enumerate(self.blocks):
            x = block(x, mask=mask) if cache is None else block(x, mask=mask, cache=cache.layer(i))
        if cache is not None:
            cache.advance(shape[-1])
        if last_only:
            x = x[:, -1:]
        x = self.ln_f(x).reshape(*shape[:-1], -1, self.embed_dim)
        if self.lm_head is not None:
            return self.lm_head(x)
        return functional.linear(x, self.token_embedding.weight.transpose())

    def generate(self, prompt_tokens: Any, max_new_tokens: int = 50, **options: Any) -> Tensor:
        """Write on from a prompt; see `tinytorch.models.generation.generate`."""
        return generate(self, prompt_tokens, max_new_tokens, **options)

    def decoder(self, cache: KVCache) -> Decoder | None:
        """What reads one more token fastest; None if the model has a part of another kind.

        Example:
            >>> model = GPT(65, 16, 2, 2, pos_encoding="rotary")
            >>> model.decoder(KVCache(2, 32)) is None
            True
        """
        places = self.position_embedding
        plain = (
            type(self) is GPT
            and type(self.token_embedding) is Embedding
            and (isinstance(places, Tensor) or type(places) in (PositionalEncoding, type(None)))
            and (type(self.ln_f), type(self.dropout)) == (LayerNorm, Dropout)
            and (self.lm_head is None or _is_linear(self.lm_head, bias=False))
            and all(_is_plain(block) for block in self.blocks)
            and not any("forward" in vars(part) for _, part in self.named_modules())
        )
        return Decoder(self, cache) if plain else None

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

    def _positioned(self, x: Tensor, start: int) -> Tensor:
        if isinstance(self.position_embedding, Tensor):
            places = self.position_embedding[start : start + x.shape[1]]
            x = x + places  # (batch, seq, d) + (seq, d)
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


def _is_plain(block: Any) -> bool:
    """Whether a block is of the kind that `Decoder` can read with."""
    if type(block) is not TransformerBlock or not block.pre_norm:
        return False
    attention, mlp = block.attention, block.mlp
    kinds = type(block.ln1), type(block.ln2), type(mlp), type(block.dropout)
    if kinds != (LayerNorm, LayerNorm, MLP, Dropout) or type(mlp.dropout) is not Dropout:
        return False
    if type(attention) is not MultiHeadAttention or attention.rotate or attention.bias is not None:
        return False
    projections = attention.q_proj, attention.k_proj, attention.v_proj, attention.out_proj
    return all(_is_linear(part) for part in (*projections, mlp.linear1, mlp.linear2))


def _is_linear(part: Any, bias: bool = True) -> bool:
    return type(part) is Linear and (part.bias is not None) == bias


def _positions_in_attention(
    pos_encoding: str | None, embed_dim: int, num_heads: int, max_seq_len: int
) -> dict[str, Any]:
    """What the attention layers are told about positions."""
    if pos_encoding == "rotary":
        return {"rotate": Rotary(max_seq_len, embed_dim // num_heads)}
    if pos_encoding == "alibi":
        return {"bias": create_alibi_bias(num_heads, max_seq_len)}
    if pos_encoding in ("learned", "sinusoidal", None):
        return {}
    raise ValueError(
        "pos_encoding must be 'learned', 'sinusoidal', 'rotary', 'alibi' or None, "
        f"got {pos_encoding!r}"
    )
