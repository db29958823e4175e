"""The second form of a GPT, from ids to logits on arrays; see `tinytorch.core.array_forms`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core import positions
from tinytorch.core.activations import gelu_array
from tinytorch.core.array_forms import Reader, as_vectors, maker, read_tied, reader
from tinytorch.core.masks import causal_mask
from tinytorch.core.tracing import as_operand, wrap
from tinytorch.models.gpt_options import with_positions


def read_gpt(part: Any, cache: Any) -> Reader:
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


def read_block(part: Any, cache: Any, pre_norm: bool = True) -> Reader:
    """A `TransformerBlock`, or without `pre_norm` a `PostNormBlock`; vectors `(batch * new, d)`."""
    ln1, ln2, mlp, drop = (reader(x) for x in (part.ln1, part.ln2, part.mlp, part.dropout))
    attention = reader(part.attention, cache)

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        if not pre_norm:
            x = ln1(x + drop(attention(x, batch, mask)))
            return ln2(x + mlp(x))
        x = x + drop(attention(ln1(x), batch, mask))
        return x + mlp(ln2(x))

    return read


def read_mlp(part: Any) -> Reader:
    """An `MLP`, of vectors `(tokens, d)`."""
    widen, narrow, drop = (reader(x) for x in (part.linear1, part.linear2, part.dropout))
    return lambda x: drop(narrow(gelu_array(widen(x))))
