"""A second form of each `forward`, from array to array, for speed.

A model that generates text reads one token at a time. Its arrays are then so small that the tensors
around them, and the checks before each operation, take longer than the arithmetic. So `@read_by`
names, at a `forward`, the function that does the same to arrays, in evaluation and with a cache
(bench: decoding). It replaces that `forward` only: a subclass's `forward` is called itself. The
weights are looked up at every call. The tests check that both forms give equal results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core import arguments, functional, hooks, positions, products
from tinytorch.core.activations import softmax_array
from tinytorch.core.attention_options import bias_between
from tinytorch.core.tracing import as_operand, wrap

Reader = Callable[..., np.ndarray]
_makers: dict[Any, Callable[..., Reader]] = {}  # makes the reader of each `forward`


def read_by(make: Callable[..., Reader]) -> Callable[[Any], Any]:
    """Register, for a `forward`, that `make(part)` returns a function that does the same to arrays.

    Args:
        make: called with the part and, if the part uses what was read before, with its cache.

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
    """What `read_by` registered for the `forward` of `part`, or None while hooks are open."""
    if hooks.are_open():  # they see modules, which arrays would bypass
        return None
    return _makers.get(getattr(getattr(part, "forward", None), "__func__", None))


def reader(part: Any, cache: Any = None) -> Reader:
    """A function that does to arrays what `part` does to tensors.

    Args:
        part: a module. Without a cache it works on each token by itself, as norms and MLPs do.
        cache: what the part has read before: a layer of a `KVCache` for a block or an attention.

    Returns:
        A function of vectors `(tokens, d)`, or with a cache of `(batch * new, d)`, the size of the
        batch and the mask. It returns the same shape.

    Example:
        >>> from tinytorch.core.layers import LayerNorm
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


# The layers -----------------------------------------------------------------------------------


def read_linear(part: Any) -> Reader:
    """A `Linear`, of vectors `(tokens, in_features)`."""
    if part.bias is None:
        return lambda x: products.dot(x, part.weight.data)
    return lambda x: products.dot(x, part.weight.data) + part.bias.data


def read_dropout(part: Any) -> Reader:
    """A `Dropout`, which drops nothing in evaluation."""
    return lambda x: x


def read_norm(part: Any) -> Reader:
    """A `LayerNorm`, of vectors `(tokens, d)`."""

    def read(x: np.ndarray) -> np.ndarray:
        value = functional.standardised(x, part.eps)[0]
        value *= part.gamma.data
        value += part.beta.data
        return value

    return read


def read_attention(part: Any, cache: Any) -> Reader:
    """A `MultiHeadAttention`, of vectors `(batch * new, d)`."""
    projections = [reader(layer) for layer in (part.q_proj, part.k_proj, part.v_proj)]
    mix, scale = reader(part.out_proj), 1 / math.sqrt(part.head_dim)

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        shape = batch, len(x) // batch, -1, part.head_dim  # -1: the heads, fewer of k and v
        q, k, v = [project(x).reshape(shape).swapaxes(1, 2) for project in projections]
        start = cache.length
        if part.rotate is not None:
            q, k = (as_operand(part.rotate(wrap(y), start)) for y in (q, k))
        k, v = cache.extend(k, v)  # (batch, heads, keys, d / h)
        # heads that share their keys are treated as further queries of one head
        q = (q * scale).reshape(batch, part.num_kv_heads, -1, part.head_dim)
        scores = products.matmul(q, k.swapaxes(-1, -2))  # (batch, kv heads, h / g * new, keys)
        scores = scores.reshape(batch, part.num_heads, -1, k.shape[2])
        for shift in (mask, bias_between(part.bias, start, *scores.shape[2:])):
            if shift is not None:
                scores += shift
        weights = softmax_array(scores, -1, out=scores)  # (batch, heads, new, keys)
        taken = products.matmul(weights.reshape(*q.shape[:3], -1), v)
        # (batch, heads, new, d / h)
        taken = taken.reshape(batch, part.num_heads, -1, part.head_dim)
        return mix(taken.swapaxes(1, 2).reshape(x.shape))

    return read


def read_embedding(part: Any) -> Reader:
    """An `Embedding`, of ids."""

    def read(ids: np.ndarray) -> np.ndarray:
        arguments.check_ids(ids, part.vocab_size, "token id", "was another tokenizer used?")
        return part.weight.data[ids]

    return read


def read_tied(table: Any) -> Reader:
    """The scores of `tied_logits`, of vectors `(tokens, d)`."""
    if hasattr(table, "scores"):
        return lambda x: as_operand(table.scores(wrap(x)))
    return lambda x: products.dot(x, table.weight.data.T)


def read_positions(part: Any, cache: Any) -> Reader:
    """A `PositionalEncoding`, of vectors `(batch, new, d)`."""

    def read(x: np.ndarray) -> np.ndarray:
        positions.check_length(x.shape[1], part.max_seq_len, cache.length)
        return x + part.position_embeddings.data[cache.length : cache.length + x.shape[1]]

    return read
