"""A second form of each `forward`, from array to array, for speed.

A model that generates text reads one token at a time. Its arrays are then so small that the tensors
around them, and the checks before each operation, take longer than the arithmetic. So the functions
here do to arrays what each `forward` does, in evaluation and with a cache (bench: decoding), and
`@reader_of` names the `forward`. They replace that one only: a subclass's `forward` is called
itself. The weights are looked up at every call. The tests check that both forms give equal results.

A single vector has one axis, `(d,)`, because NumPy takes three times as long to add a bias to
`(1, d)`; in a browser it has two, as the products there ask for (`as_vectors`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core import hooks, kernels
from tinytorch.core.attention import MultiHeadAttention, bias_between
from tinytorch.core.functional import TINY
from tinytorch.core.graph import wrap
from tinytorch.core.layers import Dropout, LayerNorm, Linear
from tinytorch.core.positions import Rotary
from tinytorch.core.primitive import as_operand
from tinytorch.core.types import CachedLayer, Method

Reader = Callable[..., np.ndarray]
_makers: dict[Any, Callable[..., Reader]] = {}  # makes the reader of each `forward`


def reader_of(forward: Callable[..., Any]) -> Callable[[Method], Method]:
    """Register a function that makes of a part what does to arrays what this `forward` does.

    It is called with the part and, if the part uses what was read before, with its cache.

    Args:
        forward: the method of a class.

    Example:
        >>> from tinytorch.core.module import Module
        >>> class Double(Module):
        ...     def forward(self, x):
        ...         return x + x
        >>> @reader_of(Double.forward)
        ... def read_double(part):
        ...     return lambda x: 2 * x
        >>> reader(Double())(np.array([[3.0]]))
        array([[6.]])
    """

    def noted(make: Method) -> Method:
        _makers[forward] = make
        return make

    return noted


def maker(part: object) -> Callable[..., Reader] | None:
    """What `reader_of` registered for the `forward` of `part`, or None while hooks are open."""
    if hooks.opened():  # they see modules, which arrays would bypass
        return None
    return _makers.get(getattr(getattr(part, "forward", None), "__func__", None))


def reader(part: Callable[..., Any], cache: object = None) -> Reader:
    """A function that does to arrays what `part` does to tensors.

    Args:
        part: a module. Without a cache it works on each token by itself, as norms and MLPs do.
        cache: what the part has read before: a layer of a `KVCache` for a block or an attention.

    Returns:
        A function of vectors `(tokens, d)` or of one, `(d,)`; with a cache of `(batch * new, d)` or
        `(d,)`, the size of the batch and the mask. It returns the same shape.

    Example:
        >>> reader(LayerNorm(2))(np.array([[1.0, 3.0]])).round(2)
        array([[-1.,  1.]])
    """
    if (make := maker(part)) is not None:
        return make(part) if cache is None else make(part, cache)
    if cache is None:
        return of_tensors(part)

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        stacked = wrap(x.reshape(batch, -1, x.shape[-1]))  # (batch, new, d)
        return as_operand(part(stacked, mask=mask, cache=cache)).reshape(x.shape)

    return read


def of_tensors(part: Callable[..., Any]) -> Reader:
    """A function of vectors that calls `part` itself."""

    def read(x: np.ndarray) -> np.ndarray:
        found = as_operand(part(wrap(x[None, None] if x.ndim == 1 else x[None])))
        return found[0, 0] if x.ndim == 1 else found[0]

    return read


def as_vectors(x: np.ndarray) -> np.ndarray:
    """Vectors `(batch, new, d)` in the shape that readers take: `(batch * new, d)` or `(d,)`."""
    d = x.shape[-1]
    return x.reshape(d) if x.size == d and kernels.dot is np.dot else x.reshape(-1, d)


# The layers -----------------------------------------------------------------------------------


@reader_of(Dropout.forward)
def read_dropout(part: Dropout) -> Reader:
    """A `Dropout`, which drops nothing in evaluation."""
    return lambda x: x


@reader_of(LayerNorm.forward)
def read_norm(part: LayerNorm) -> Reader:
    """A `LayerNorm`, of vectors `(tokens, d)`."""
    if part.eps < TINY:
        return of_tensors(part)
    (d,) = part.normalized_shape
    dtype = np.result_type(part.gamma.data, part.beta.data)
    average = np.full(d, 1 / d, dtype)  # a product with it is faster than a mean

    def read(x: np.ndarray) -> np.ndarray:
        if x.ndim == 1:  # plain numbers for the mean and the deviation (bench: decoding)
            value = x - x.dot(average)
            value *= 1 / math.sqrt(value.dot(value) / d + part.eps)
        else:
            value = x - x.dot(average)[:, None]
            variance = (value * value).dot(average)  # (tokens,)
            variance += np.asarray(part.eps, variance.dtype)
            value /= np.sqrt(variance)[:, None]
        value *= part.gamma.data
        value += part.beta.data
        return value

    return read


@reader_of(MultiHeadAttention.forward)
def read_attention(part: MultiHeadAttention, cache: CachedLayer) -> Reader:
    """A `MultiHeadAttention`, of vectors `(batch * new, d)`."""
    projections = [reader(layer) for layer in (part.q_proj, part.k_proj, part.v_proj)]
    mix, scale = reader(part.out_proj), 1 / math.sqrt(part.head_dim)
    heads, kv_heads, head_dim = part.num_heads, part.num_kv_heads, part.head_dim

    def read(x: np.ndarray, batch: int, mask: np.ndarray | None) -> np.ndarray:
        new, start = x.size // x.shape[-1] // batch, cache.length
        q, k, v = (split(project(x), batch, new) for project in projections)
        q = q * np.asarray(scale, q.dtype)  # a number takes twice as long as an array
        if part.rotate is not None:
            q, k = rotated(part.rotate, q, start), rotated(part.rotate, k, start)
        k, v = cache.extend(k, v)  # (batch, g, keys, d / h)
        # heads that share their keys are treated as further queries of one head
        q = q.reshape(batch, kv_heads, -1, head_dim)
        scores = kernels.matmul(q, k.swapaxes(2, 3))  # (batch, g, h / g * new, keys)
        scores = scores.reshape(batch, heads, new, -1)
        for shift in (mask, bias_between(part.bias, start, *scores.shape[2:])):
            if shift is not None:
                scores += shift
        scores -= np.maximum.reduce(scores, 3, keepdims=True)
        weights = kernels.exp(scores, scores)
        totals = np.add.reduce(weights, 3, keepdims=True)
        taken = kernels.matmul(weights.reshape(*q.shape[:3], -1), v)
        taken = taken.reshape(batch, heads, new, head_dim)
        taken /= totals  # fewer numbers than the weights
        return mix((taken if new == 1 else taken.swapaxes(1, 2)).reshape(x.shape))

    def split(y: np.ndarray, batch: int, new: int) -> np.ndarray:  # (batch, its heads, new, d / h)
        if new == 1:
            return y.reshape(batch, -1, 1, head_dim)
        return y.reshape(batch, new, -1, head_dim).swapaxes(1, 2)

    return read


def rotated(rotation: Any, x: np.ndarray, start: int) -> np.ndarray:
    """Queries or keys `(batch, heads, new, d / h)`, rotated; a pair is one complex number."""
    if type(rotation) is not Rotary:
        return as_operand(rotation(wrap(x), start))
    some = slice(start, start + x.shape[2])
    turns = rotation.cos[some] + 1j * rotation.sin[some]  # (new, d / h / 2)
    pairs = x.view(np.result_type(x, np.complex64)) * turns
    return pairs.view(pairs.real.dtype)


@reader_of(Linear.forward)
def read_linear(part: Any) -> Reader:
    """A `Linear`, of vectors `(tokens, in_features)`."""
    if part.bias is None:
        return lambda x: kernels.dot(x, part.weight.data)

    def read(x: np.ndarray) -> np.ndarray:
        y, bias = kernels.dot(x, part.weight.data), part.bias.data
        if y.dtype != bias.dtype:
            return y + bias
        y += bias
        return y

    return read
