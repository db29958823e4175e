"""Reading on arrays: what each part does to tensors, as a function from array to array.

A model that writes reads one token after the other. Its arrays are then so small that the tensors
around them, and the checks before each operation, take longer than the arithmetic. So there is
beside each `forward` of the package what it comes to for arrays, in evaluation and with a cache
(bench: decoding). It stands for that very `forward`: one of your own is called itself. The weights
are looked up at every call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core import arguments, functional, hooks, positions, products
from tinytorch.core.activations import gelu_array, softmax_array
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.layers import Dropout, LayerNorm, Linear
from tinytorch.core.masks import causal_mask
from tinytorch.core.tracing import as_operand, wrap
from tinytorch.text.embeddings import Embedding, PositionalEncoding

Reader = Callable[..., np.ndarray]
_makers: dict[Any, Callable[..., Reader]] = {}  # what makes the reader, for each `forward`


def read_by(make: Callable[..., Reader]) -> Callable[[Any], Any]:
    """Say of a `forward` that `make(part)` returns a function which does the same to arrays.

    Args:
        make: called with the part and, if that looks at what was read before, with its cache.

    Example:
        >>> from tinytorch.core.module import Module
        >>> class Double(Module):
        ...     @read_by(lambda part: lambda x: 2 * x)
        ...     def forward(self, x):
        ...         return x + x
        >>> reader(Double())(np.array([[3.0]]))
        array([[6.]])
    """

    def noted(forward: Any) -> Any:
        _makers[forward] = make
        return forward

    return noted


def maker(part: Any) -> Callable[..., Reader] | None:
    """What was said by `read_by` of the `forward` that `part` has, or None while hooks look on."""
    if hooks.are_open():  # they see the modules, which arrays would pass by
        return None
    return _makers.get(getattr(getattr(part, "forward", None), "__func__", None))


def reader(part: Any, cache: Any = None) -> Reader:
    """A function that does to arrays what `part` does to tensors.

    Args:
        part: a module. Without a cache it works on each token by itself, as norms and MLPs do.
        cache: what the part has read before: a layer of a `KVCache` for a block or an attention.

    Returns:
        A function of vectors `(tokens, d)`, and with a cache of `(batch * new, d)`, the size of the
        batch and the mask, which returns the same shape.

    Example:
        >>> reader(LayerNorm(2))(np.array([[1.0, 3.0]])).round(2)
        array([[-1.,  1.]])
    """
    if (make := maker(part)) is not None:
        return make(part) if cache is None else make(part, cache)
    if cache is None:
        return lambda x: as_operand(part(wrap(x[None])))[0]

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        stacked = wrap(x.reshape(batch, -1, x.shape[-1]))  # (batch, new, d)
        return as_operand(part(stacked, mask=mask, cache=cache)).reshape(x.shape)

    return read


# The parts of core and text ------------------------------------------------------------------


def _linear(part: Any) -> Reader:
    if part.bias is None:
        return lambda x: products.dot(x, part.weight.data)
    return lambda x: products.dot(x, part.weight.data) + part.bias.data


def _norm(part: Any) -> Reader:
    def read(x: np.ndarray) -> np.ndarray:
        value = functional.standardised(x, part.eps)[0]
        value *= part.gamma.data
        value += part.beta.data
        return value

    return read


def _attention(part: Any, cache: Any) -> Reader:
    projections = [reader(layer) for layer in (part.q_proj, part.k_proj, part.v_proj)]
    mix, scale = reader(part.out_proj), 1 / math.sqrt(part.head_dim)

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        shape = batch, len(x) // batch, -1, part.head_dim  # -1: the heads, fewer of k and v
        q, k, v = [project(x).reshape(shape).swapaxes(1, 2) for project in projections]
        start = cache.length
        if part.rotate is not None:
            q, k = (as_operand(part.rotate(wrap(y), start)) for y in (q, k))
        k, v = cache.extend(k, v)  # (batch, heads, keys, d / h)
        # heads that share their keys are so many queries more of one head
        q = (q * scale).reshape(batch, part.num_kv_heads, -1, part.head_dim)
        scores = products.matmul(q, k.swapaxes(-1, -2))  # (batch, kv heads, h / g * new, keys)
        scores = scores.reshape(batch, part.num_heads, -1, k.shape[2])
        for shift in (mask, part._bias_for(start, *scores.shape[2:])):
            if shift is not None:
                scores += shift
        weights = softmax_array(scores, -1, out=scores)  # (batch, heads, new, keys)
        taken = products.matmul(weights.reshape(*q.shape[:3], -1), v)
        taken = taken.reshape(
            batch, part.num_heads, -1, part.head_dim
        )  # (batch, heads, new, d / h)
        return mix(taken.swapaxes(1, 2).reshape(x.shape))

    return read


def _embedding(part: Any) -> Reader:
    def read(ids: np.ndarray) -> np.ndarray:
        arguments.check_ids(ids, part.vocab_size, "token id", "was another tokenizer used?")
        return part.weight.data[ids]

    return read


def _tied(table: Any) -> Reader:
    if hasattr(table, "scores"):
        return lambda x: as_operand(table.scores(wrap(x)))
    return lambda x: products.dot(x, table.weight.data.T)


def _positions(part: Any, cache: Any) -> Reader:
    def read(x: np.ndarray) -> np.ndarray:
        positions.check_length(x.shape[1], part.max_seq_len, cache.length)
        return x + part.position_embeddings.data[cache.length : cache.length + x.shape[1]]

    return read


_makers.update(
    {
        Linear.forward: _linear,
        LayerNorm.forward: _norm,
        Dropout.forward: lambda part: lambda x: x,
        MultiHeadAttention.forward: _attention,
        Embedding.forward: _embedding,
        PositionalEncoding.forward: _positions,
    }
)

# Those of the transformer, which names them ------------------------------------------------------


def read_mlp(part: Any) -> Reader:
    """An `MLP`, of vectors `(tokens, d)`."""
    widen, narrow, drop = (reader(x) for x in (part.linear1, part.linear2, part.dropout))
    return lambda x: drop(narrow(gelu_array(widen(x))))


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


def read_gpt(part: Any, cache: Any) -> Reader:
    """A `GPT`, of ids `(batch, new)`: the logits `(batch, vocab)` of what follows them."""
    embed, norm, head = reader(part.token_embedding), reader(part.ln_f), part.lm_head
    blocks = [reader(block, cache.layer(i)) for i, block in enumerate(part.blocks)]
    tied, place = part.token_embedding, part.position_embedding
    score = _tied(tied) if head is None else reader(head)
    place, drop = reader(place, cache) if maker(place) else None, reader(part.dropout)

    def read(ids: np.ndarray) -> np.ndarray:
        (batch, new), d = ids.shape, part.embed_dim
        positions.check_length(new, part.max_seq_len, cache.length)
        x = embed(ids)  # (batch, new, d)
        x = place(x) if place else as_operand(part._with_positions(wrap(x), cache.length))
        x = drop(x.reshape(-1, d)) if place else x.reshape(-1, d)  # (batch * new, d)
        mask = None if new == 1 else causal_mask(new, cache.length)
        for block in blocks:
            x = block(x, batch, mask)
        cache.advance(new)
        return score(norm(x.reshape(batch, new, d)[:, -1]))

    return read
