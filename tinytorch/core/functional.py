"""The fused operations: several steps of arithmetic with one pullback.

Each could be composed of `ops`; the tests do so, and require the same values and gradients. Fused,
it needs one node instead of many, keeps fewer arrays for the backward pass, and its derivative is a
formula that can be read. The activations and the losses are in separate files, and can be imported
from here too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from tinytorch.core.activations import gelu, relu, sigmoid
from tinytorch.core.arguments import check_ids, check_probability
from tinytorch.core.kernels import dot, matmul
from tinytorch.core.losses import cross_entropy, mse
from tinytorch.core.masks import check_fits, check_mask, without_gradient
from tinytorch.core.ops import Result
from tinytorch.core.primitive import as_operand, floats, primitive
from tinytorch.core.seeding import default_rng
from tinytorch.core.softmax import log_softmax, softmax, softmax_array
from tinytorch.core.sparse import RowSparse
from tinytorch.core.types import DType, Mask, Rng, TensorLike, TokenIds

__all__ = [
    "attention",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "merge_heads",
    "mse",
    "relu",
    "sigmoid",
    "softmax",
    "split_heads",
]

BLOCK = 64  # how many queries attention processes at a time


@primitive
def embedding(weight: TensorLike, ids: TokenIds | int, *, sparse: bool = False) -> Result:
    """The rows of `weight` that `ids` name.

    The gradient of row i is the sum of the gradients of all positions where i was looked up, and
    zero for all other rows: it is row-sparse. It is stored as a full matrix unless `sparse`.

    Args:
        weight: `(vocab_size, embed_dim)`.
        ids: integers of any shape, each in `0..vocab_size - 1`; an array of them is copied.
        sparse: whether the gradient is a `RowSparse`.

    Returns:
        `ids.shape + (embed_dim,)`.

    Raises:
        TypeError: the ids are not integers.
        ValueError: `weight` has another number of axes.
        IndexError: an id is negative or too large; the message says which one, and where it is.

    Example:
        >>> embedding([[1.0, 1.0], [2.0, 2.0]], [1, 0, 1])
        Tensor([[2., 2.],
                [1., 1.],
                [2., 2.]])
    """
    weight = np.asarray(weight)
    if weight.ndim != 2:
        raise ValueError(f"embedding: weight {weight.shape} must be (vocab_size, embed_dim)")
    ids = check_ids(np.asarray(ids), len(weight), "token id", "was another tokenizer used?")

    def pullback(g: np.ndarray) -> tuple[Any, None]:
        rows = RowSparse(ids.reshape(-1), g.reshape(-1, weight.shape[1]), weight.shape)
        return rows if sparse else rows.to_dense(), None

    return weight.take(ids, axis=0), pullback  # as weight[ids] (bench: row-sparse step)


@primitive
def dropout(x: TensorLike, *, p: float, rng: Rng = None) -> Result:
    """Set each element to zero with probability `p` and divide the others by `1 - p`.

    The division keeps the expected value unchanged (Srivastava et al., 2014, section 10).

    Raises:
        ValueError: `p` is not in `0 <= p < 1`.

    Example:
        >>> dropout([1.0, 1.0, 1.0, 1.0], p=0.5, rng=0)
        Tensor([2., 0., 0., 0.])
    """
    check_probability(p, "dropout: p")
    x = np.asarray(x)
    scale = _dropout_scale(x.shape, p, rng)
    return x * scale, lambda g: g * scale


@primitive
def layer_norm(x: TensorLike, gamma: TensorLike, beta: TensorLike, *, eps: float = 1e-5) -> Result:
    """Normalise the last axis to mean 0 and variance 1, then scale and shift (Ba et al., 2016).

    Mean and deviation depend on every element, so the gradient has two correction terms: one for
    the mean and one for the deviation. Leaving either out is a common error.

    Args:
        x: `(..., d)`.
        gamma: `(d,)`, the scale.
        beta: `(d,)`, the shift.
        eps: added to the variance; a constant row becomes `beta`, even without it.

    Raises:
        ValueError: the last axis of `x` does not have the length of `gamma`, or is empty.

    Example:
        >>> layer_norm([[1.0, 2.0, 3.0]], np.ones(3), np.zeros(3), eps=0.0)
        Tensor([[-1.2247,  0.    ,  1.2247]])
    """
    x, gamma, beta = floats(x), floats(gamma), floats(beta)
    if x.ndim == 0 or x.shape[-1:] != gamma.shape or gamma.size == 0:
        wanted = f"the last axis must have length {max(gamma.size, 1)}"
        raise ValueError(f"layer_norm: input {x.shape} does not fit gamma {gamma.shape}; {wanted}")
    d = x.shape[-1]
    rows = x.reshape(-1, d)  # (N, d)
    if not rows.dtype == gamma.dtype == beta.dtype:
        rows = rows.astype(np.result_type(x, gamma, beta))
    value, mean, inverse_std = standardised(rows, eps)
    value *= gamma
    value += beta

    def pullback(g: np.ndarray) -> tuple[Any, Any, Any]:
        g = g.reshape(-1, d)
        # grad_x = (g gamma - mean(g gamma) - normalised * mean(g gamma normalised)) / deviation
        normalised = rows - mean  # computed again: it is not kept
        normalised *= inverse_std
        ones, gamma_over_d = np.ones(len(rows), dtype=g.dtype), gamma[:, None] / d
        g_normalised = g * normalised
        grad_gamma, grad_beta = ones @ g_normalised, ones @ g  # sums over rows, as products
        normalised *= g_normalised.dot(gamma_over_d)
        grad_x = g * gamma
        grad_x -= g.dot(gamma_over_d)
        grad_x -= normalised
        grad_x *= inverse_std
        return grad_x.reshape(x.shape), grad_gamma, grad_beta

    return value.reshape(x.shape), pullback


@primitive
def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Result:
    """`x @ weight + bias`.

    Args:
        x: `(..., in_features)`.
        weight: `(in_features, out_features)`.
        bias: `(out_features,)` or nothing.

    Returns:
        `(..., out_features)`.

    Raises:
        ValueError: the last axis of `x` is not `in_features` long, or `weight` is not 2-D.

    Example:
        >>> linear([[1.0, 2.0]], [[1.0, 0.0], [0.0, 10.0]], [0.5, 0.5])
        Tensor([[ 1.5, 20.5]])
    """
    x, weight = floats(x), floats(weight)
    if weight.ndim != 2:
        raise ValueError(f"linear: weight {weight.shape} must be (in_features, out_features)")
    if x.ndim == 0 or x.shape[-1] != weight.shape[0]:
        wanted = f"the last axis must have length {weight.shape[0]}"
        raise ValueError(f"linear: input {x.shape} does not fit weight {weight.shape}; {wanted}")
    rows = x.reshape(-1, weight.shape[0])  # (N, in): one 2-D product is faster than many
    # For a single row, a token being generated, `dot` is twice as fast as `@`.
    value = dot(rows, weight)  # (N, out)
    if bias is not None:
        value = value + bias

    def pullback(g: np.ndarray) -> tuple[Any, ...]:
        g = g.reshape(-1, weight.shape[1])  # (N, out)
        # Functions, so that a frozen weight costs no product.
        parts = (lambda: dot(g, weight.T).reshape(x.shape)), (lambda: dot(rows.T, g))
        return parts if bias is None else (*parts, np.ones(len(g), g.dtype) @ g)

    return value.reshape(*x.shape[:-1], weight.shape[1]), pullback


@primitive
def split_heads(x: TensorLike, *, num_heads: int) -> Result:
    """Cut every vector into a slice for each head, and put the heads before the positions.

    Args:
        x: `(batch, seq, d)`.
        num_heads: number of heads h, which divides d.

    Returns:
        `(batch, h, seq, d / h)`.

    Raises:
        ValueError: `x` has another number of axes, or `num_heads` does not divide d.

    Example:
        >>> split_heads([[[1.0, 2.0, 3.0, 4.0]]], num_heads=2).data.tolist()
        [[[[1.0, 2.0]], [[3.0, 4.0]]]]
    """
    x = np.asarray(x)
    if x.ndim != 3:
        raise ValueError(f"split_heads: expected (batch, seq, d), got shape {x.shape}")
    batch, seq, d = x.shape
    heads = x.reshape(batch, seq, num_heads, d // num_heads)  # (batch, seq, h, d / h)
    return heads.swapaxes(1, 2), lambda g: g.swapaxes(1, 2).reshape(batch, seq, d)


@primitive
def attention(
    q: TensorLike,
    k: TensorLike,
    v: TensorLike,
    *,
    mask: Mask = None,
    bias: Mask = None,
    dropout: float = 0.0,
    rng: Rng = None,
) -> Result:
    """`softmax(q k^T / sqrt(d) + mask + bias) v` in one node (Vaswani et al., 2017, section 3.2.1).

    Args:
        q: queries `(..., queries, d)`.
        k: keys `(..., keys, d)`.
        v: values `(..., keys, dv)`.
        mask: an array added to the scores, 0 keeps and -inf blocks, broadcast to
            `(..., queries, keys)`; None blocks nothing. It gets no gradient.
        bias: an array of any numbers, likewise added to the scores, ALiBi's for instance.
        dropout: probability with which a weight is set to zero, the others being scaled up.
        rng: where the dropout comes from.

    Returns:
        `(..., queries, dv)`; a query for which every key is blocked gets zeros.

    Raises:
        ValueError: the shapes do not fit, the mask holds other numbers, the bias NaN or +infinity,
            or `dropout` is not in `0 <= dropout < 1`.
        TypeError: the mask is of Booleans, which cannot be added.

    Example:
        >>> attention([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0], [0.0]])
        Tensor([[0.6698]])
    """
    q, k, v = floats(q), floats(k), floats(v)
    mask = check_attention(q.shape, k.shape, v.shape, mask, bias)
    bias = None if bias is None else without_gradient("bias", bias)
    check_probability(dropout, "attention: dropout")
    (queries, d), keys = q.shape[-2:], k.shape[-2]
    tables = _common_shape(q.shape[:-2], k.shape[:-2])  # as many tables of scores
    lead = _common_shape(tables, v.shape[:-2])
    shifts = [_table(shift, queries, keys) for shift in (mask, bias) if shift is not None]
    drop = _dropout_scale((*tables, queries, keys), dropout, rng) if dropout else None
    scale, dtype = 1 / math.sqrt(d), np.result_type(q, k, v)
    value = _empty_heads((*lead, queries, v.shape[-1]), dtype)
    blocks = []
    for rows, seen in _blocks(mask, queries, keys):  # bench: attention
        scores = matmul(q[..., rows, :] * scale, k[..., seen, :].swapaxes(-1, -2))
        for shift in shifts:
            scores += shift[..., rows, seen]
        weights = softmax_array(scores, -1, out=scores)  # (..., block, seen)
        kept = None if drop is None else drop[..., rows, seen]
        used = weights if kept is None else weights * kept
        value[..., rows, :] = matmul(used, v[..., seen, :])
        blocks.append((rows, seen, weights, kept, used))

    def pullback(g: np.ndarray) -> tuple[Any, ...]:
        grad_q, grad_k, grad_v = (_empty_heads((*lead, *x.shape[-2:]), dtype) for x in (q, k, v))
        grad_k[...] = grad_v[...] = 0
        along = (g * value).sum(axis=-1, keepdims=True)  # = (h * weights).sum(), shorter rows
        for rows, seen, weights, kept, used in blocks:
            h = matmul(g[..., rows, :], v[..., seen, :].swapaxes(-1, -2))  # of the used weights
            if kept is not None:
                h *= kept
            h -= along[..., rows, :]
            h *= weights
            h *= scale  # gradient of q k^T
            grad_q[..., rows, :] = matmul(h, k[..., seen, :])
            grad_k[..., seen, :] += matmul(h.swapaxes(-1, -2), q[..., rows, :])
            grad_v[..., seen, :] += matmul(used.swapaxes(-1, -2), g[..., rows, :])
        return grad_q, grad_k, grad_v

    return value, pullback


@primitive
def merge_heads(x: TensorLike) -> Result:
    """Put the slices of all heads side by side again: the inverse of `split_heads`.

    Args:
        x: `(batch, h, seq, d / h)`.

    Returns:
        `(batch, seq, d)`.

    Raises:
        ValueError: `x` has another number of axes.

    Example:
        >>> merge_heads([[[[1.0, 2.0]], [[3.0, 4.0]]]])
        Tensor([[[1., 2., 3., 4.]]])
    """
    x = np.asarray(x)
    if x.ndim != 4:
        raise ValueError(f"merge_heads: expected (batch, heads, seq, d / h), got shape {x.shape}")
    batch, heads, seq, head_dim = x.shape
    merged = x.swapaxes(1, 2).reshape(batch, seq, heads * head_dim)
    return merged, lambda g: g.reshape(batch, seq, heads, head_dim).swapaxes(1, 2)


# Helpers -------------------------------------------------------------------------------------

TINY = float(np.finfo(np.float32).tiny)  # an eps below it may be 0 to the numbers it is added to


def standardised(rows: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows `(N, d)` with mean 0 and variance 1, their former means, and one over their deviations.

    Example:
        >>> standardised(np.array([[1.0, 5.0]]), eps=0.0)
        (array([[-1.,  1.]]), array([[3.]]), array([[0.5]]))
    """
    d = rows.shape[1]
    ones = _ones(d)  # a product with ones is faster than a sum (bench: layer_norm)
    mean = rows.dot(ones) / d
    value = rows - mean
    variance = (value * value).dot(ones) / d + eps
    if eps < TINY:  # what rounding leaves of a constant row must not be divided by its own size
        variance[np.ptp(rows, axis=1) == 0] = np.inf
    inverse_std = 1 / np.sqrt(variance)
    value *= inverse_std
    return value, mean, inverse_std


@lru_cache
def _ones(d: int) -> np.ndarray:
    return np.ones((d, 1), dtype=np.float32)


def _dropout_scale(shape: tuple[int, ...], p: float, rng: Rng) -> np.ndarray:
    """For every element, 0 with probability `p`, otherwise `1 / (1 - p)`."""
    return (default_rng(rng).random(shape) >= p).astype(np.float32) / np.float32(1 - p)


def _empty_heads(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    """Memory for `(..., heads, seq, d)`, a token's heads side by side: merging copies nothing."""
    if len(shape) < 3:
        return np.empty(shape, dtype)
    return np.empty((*shape[:-3], shape[-2], shape[-3], shape[-1]), dtype).swapaxes(-2, -3)


def _common_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """What two shapes broadcast to; for equal ones NumPy's own check is slower than a product."""
    return a if a == b else np.broadcast_shapes(a, b)


def _table(shift: np.ndarray, queries: int, keys: int) -> np.ndarray:
    """What is added to the scores, as wide as they are: `(..., queries, keys)`."""
    return np.broadcast_to(shift, np.broadcast_shapes(shift.shape, (queries, keys)))


def _blocks(mask: np.ndarray | None, queries: int, keys: int) -> Iterator[tuple[slice, slice]]:
    """`BLOCK` queries at a time, and the keys up to the last one that any of them may look at."""
    for start in range(0, queries, BLOCK):
        rows, end = slice(start, start + BLOCK), keys
        if mask is not None:
            part = _table(mask, queries, keys)[..., rows, :]
            is_open = (part != -np.inf).any(axis=tuple(range(part.ndim - 1)))  # (keys,)
            end = int(np.flatnonzero(is_open)[-1]) + 1 if is_open.any() else 1
        yield rows, slice(0, end)


def check_attention(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], mask: Mask, bias: Mask = None
) -> np.ndarray | None:
    """Raise unless queries, keys, values, mask and bias fit together; see `check_mask`.

    Example:
        >>> check_attention((3, 4), (5, 4), (6, 4), None)
        Traceback (most recent call last):
        ...
        ValueError: attention: 5 keys (5, 4) need as many values, got (6, 4)
    """
    if min(len(q), len(k), len(v)) < 2:
        raise ValueError(f"attention: queries {q}, keys {k} and values {v} need two axes or more")
    if q[-1] != k[-1]:
        raise ValueError(f"attention: queries {q} and keys {k} must have the same last axis")
    if k[-2] != v[-2]:
        raise ValueError(f"attention: {k[-2]} keys {k} need as many values, got {v}")
    if 0 in k[-2:]:
        raise ValueError(f"attention: keys {k} need at least one key of at least one number")
    if mask is None and bias is None:
        return None
    scores = (*_common_shape(q[:-2], k[:-2]), q[-2], k[-2])
    if bias is not None:
        check_fits("bias", np.shape(bias), scores)  # type: ignore[arg-type]
        if not np.less(as_operand(bias), np.inf).all():
            raise ValueError("attention: a bias holds numbers or -inf, but this one has nan or inf")
    return None if mask is None else check_mask(mask, scores)
