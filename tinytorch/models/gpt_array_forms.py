"""The second form of a GPT, from ids to logits on arrays; see `tinytorch.core.array_forms`.

Nothing that is read here names this module: importing it, as `tinytorch.models` does, registers it.
"""

from __future__ import annotations

import numpy as np

from tinytorch.core import arguments, kernels, positions
from tinytorch.core.activations import gelu_array
from tinytorch.core.array_forms import Reader, as_vectors, maker, reader, reader_of
from tinytorch.core.graph import wrap
from tinytorch.core.masks import causal_mask
from tinytorch.core.primitive import as_operand
from tinytorch.core.types import CachedLayer
from tinytorch.models.gpt_positions import with_positions
from tinytorch.models.kv_cache import KVCache
from tinytorch.models.transformer import GPT, MLP, PostNormBlock, TransformerBlock
from tinytorch.text.embeddings import Embedding, PositionalEncoding


@reader_of(GPT.forward)
def read_gpt(part: GPT, cache: KVCache) -> Reader:
    """A `GPT`, of ids `(batch, new)`: the logits `(batch, vocab)` of the next tokens."""
    embed, norm, head = reader(part.token_embedding), reader(part.ln_f), part.lm_head
    blocks = [reader(block, cache.layer(i)) for i, block in enumerate(part.blocks)]
    tied, place = part.token_embedding, part.position_embedding
    score = read_tied(tied) if head is None else reader(head)
    add, drop = reader(place, cache) if maker(place) else None, reader(part.dropout)

    def read(ids: np.ndarray) -> np.ndarray:
        (batch, new), d = ids.shape, part.embed_dim
        positions.check_length(new, part.max_seq_len, cache.length)
        x = embed(ids)  # (batch, new, d)
        x = add(x) if add else as_operand(with_positions(place, wrap(x), cache.length))
        x = drop(as_vectors(x))  # (batch * new, d)
        mask = None if new == 1 else causal_mask(new, cache.length)
        for block in blocks:
            x = block(x, batch, mask)
        cache.advance(new)
        if new > 1:
            x = as_vectors(x.reshape(batch, new, d)[:, -1:])  # the last of each text
        return score(norm(x)).reshape(batch, -1)

    return read


@reader_of(TransformerBlock.forward)
def read_block(part: TransformerBlock, cache: CachedLayer) -> Reader:
    """A `TransformerBlock`, of vectors `(batch * new, d)`."""
    ln1, ln2, mlp, drop, attention = _parts_of(part, cache)

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        x = x + drop(attention(ln1(x), batch, mask))
        return x + mlp(ln2(x))

    return read


@reader_of(PostNormBlock.forward)
def read_post_norm_block(part: PostNormBlock, cache: CachedLayer) -> Reader:
    """A `PostNormBlock`, of vectors `(batch * new, d)`."""
    ln1, ln2, mlp, drop, attention = _parts_of(part, cache)

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        x = ln1(x + drop(attention(x, batch, mask)))
        return ln2(x + mlp(x))

    return read


def _parts_of(block: TransformerBlock, cache: CachedLayer) -> list[Reader]:
    """The readers of both norms, of the MLP, of the dropout and of the attention."""
    by_token = block.ln1, block.ln2, block.mlp, block.dropout
    return [*map(reader, by_token), reader(block.attention, cache)]


@reader_of(MLP.forward)
def read_mlp(part: MLP) -> Reader:
    """An `MLP`, of vectors `(tokens, d)`."""
    widen, narrow, drop = (reader(x) for x in (part.linear1, part.linear2, part.dropout))
    return lambda x: drop(narrow(gelu_array(widen(x))))


@reader_of(Embedding.forward)
def read_embedding(part: Embedding) -> Reader:
    """An `Embedding`, of ids."""

    def read(ids: np.ndarray) -> np.ndarray:
        arguments.check_ids(ids, part.vocab_size, "token id", "was another tokenizer used?")
        return part.weight.data.take(ids, axis=0)

    return read


@reader_of(PositionalEncoding.forward)
def read_positions(part: PositionalEncoding, cache: CachedLayer) -> Reader:
    """A `PositionalEncoding`, of vectors `(batch, new, d)`."""

    def read(x: np.ndarray) -> np.ndarray:
        positions.check_length(x.shape[1], part.max_seq_len, cache.length)
        table, end = part.position_embeddings.data, cache.length + x.shape[1]
        return x + table[None, cache.length : end]  # NumPy adds equal shapes three times as fast

    return read


def read_tied(table: Embedding) -> Reader:
    """The scores of `tied_logits`, of vectors `(tokens, d)`."""
    if hasattr(table, "scores"):
        return lambda x: as_operand(table.scores(wrap(x)))
    return lambda x: kernels.dot(x, table.weight.data.T)
