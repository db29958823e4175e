"""The fused operations: several steps of arithmetic with one pullback.

Each could be composed of `ops`; the tests do so, and require the same values and gradients. Fused,
it needs one node instead of many, keeps fewer arrays for the backward pass, and its derivative is a
formula that can be read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.core.chunks import chunks
from tinytorch.core.ops import Result
from tinytorch.core.seeding import default_rng
from tinytorch.core.sparse import RowSparse
from tinytorch.core.tracing import primitive

__all__ = [
    "attention",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "linear",
    "log_softmax",
    "mse",
    "relu",
    "sigmoid",
    "softmax",
]

BLOCK = 64  # queries that attention works on at a time

# Layers --------------------------------------------------------------------------------------


@primitive
def linear(x: Any, weight: Any, bias: Any = None) -> Result:
    """`x @ weight + bias`.

    Args:
        x: `(..., in_features)`.
        weight: `(in_features, out_features)`.
        bias: `(out_features,)` or nothing.

    Returns:
        `(..., out_features)`.

    Raises:
        ValueError: the last axis of `x` is not `in_features` long.

    Example:
        >>> linear([[1.0, 2.0]], [[1.0, 0.0], [0.0, 10.0]], [0.5, 0.5])
        Tensor([[ 1.5, 20.5]])
    """
    x, weight = np.asarray(x), np.asarray(weight)
    if x.ndim == 0 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"linear: input {x.shape} does not fit weight {weight.shape}; "
            f"the last axis must have length {weight.shape[0]}"
        )
    rows = x.reshape(-1, weight.shape[0])  # (N, in): one 2-D product is faster than many
    value = rows @ weight  # (N, out)
    if bias is not None:
        value = _add(value, bias)

    def pullback(g: np.ndarray) -> tuple[Any, ...]:
        g = g.reshape(-1, weight.shape[1])  # (N, out)
        parts = (g @ weight.T).reshape(x.shape), rows.T @ g
        return parts if bias is None else (*parts, _column_sums(g))

    return value.reshape(*x.shape[:-1], weight.shape[1]), pullback


@primitive
def embedding(weight: Any, ids: Any, *, sparse: bool = False) -> Result:
    """The rows of `weight` that `ids` name.

    The gradient of row i is the sum of the gradients of all places where i was looked up, and zero
    for a row that was not: row-sparse by nature. It is stored as a full matrix unless `sparse`.

    Args:
        weight: `(vocab_size, embed_dim)`.
        ids: integers of any shape, each in `0..vocab_size - 1`.
        sparse: whether the gradient shall be a `RowSparse`.

    Returns:
        `ids.shape + (embed_dim,)`.

    Raises:
        TypeError: the ids are not integers.
        IndexError: an id is negative or too large; names it and where it stands.

    Example:
        >>> embedding([[1.0, 1.0], [2.0, 2.0]], [1, 0, 1])
        Tensor([[2., 2.],
                [1., 1.],
                [2., 2.]])
    """
    weight, ids = np.asarray(weight), np.asarray(ids)
    _check_ids(ids, len(weight))

    def pullback(g: np.ndarray) -> tuple[Any, None]:
        rows = RowSparse(ids.reshape(-1), g.reshape(-1, weight.shape[1]), weight.shape)
        return rows if sparse else rows.to_dense(), None

    return weight[ids], pullback


@primitive
def layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5) -> Result:
    """Normalise the last axis to mean 0 and variance 1, then scale and shift (Ba et al., 2016).

    Mean and deviation depend on every element, so the gradient has two correction terms: one for
    the mean and one for the deviation. Leaving either out is a common error.

    Args:
        x: `(..., d)`.
        gamma: `(d,)`, the scale.
        beta: `(d,)`, the shift.
        eps: added to the variance, so that a constant row does not divide by zero.

    Raises:
        ValueError: the last axis of `x` does not have the length of `gamma`.

    Example:
        >>> layer_norm([[1.0, 2.0, 3.0]], np.ones(3), np.zeros(3), eps=0.0)
        Tensor([[-1.2247,  0.    ,  1.2247]])
    """
    x, gamma = np.asarray(x), np.asarray(gamma)
    if x.ndim == 0 or x.shape[-1:] != gamma.shape:
        raise ValueError(
            f"layer_norm: input {x.shape} does not fit gamma {gamma.shape}; "
            f"the last axis must have length {gamma.size}"
        )
    d = x.shape[-1]
    rows = x.reshape(-1, d)  # (N, d)
    value = np.empty(rows.shape, dtype=np.result_type(x, gamma, beta, np.float32))
    mean, inverse_std = (np.empty((len(rows), 1), dtype=value.dtype) for _ in range(2))
    ones = np.ones((d, 1), dtype=value.dtype)  # a sum is a product with ones, and faster so
    for at in chunks(len(rows), d):
        mean[at] = rows[at] @ ones / d
        centred = np.subtract(rows[at], mean[at], out=value[at])
        variance = np.einsum("nd,nd->n", centred, centred)[:, None] / d
        inverse_std[at] = 1 / np.sqrt(variance + eps)
        centred *= inverse_std[at]
        centred *= gamma
        centred += beta

    def pullback(g: np.ndarray) -> tuple[Any, Any, Any]:
        g = g.reshape(-1, d)
        grad_x, grad_gamma = np.empty(rows.shape, dtype=g.dtype), np.zeros(d, dtype=g.dtype)
        for at in chunks(len(rows), d):
            normalised = rows[at] - mean[at]
            normalised *= inverse_std[at]
            along = g[at] * normalised
            grad_gamma += _column_sums(along)
            h = np.multiply(g[at], gamma, out=grad_x[at])
            h -= g[at] @ gamma[:, None] / d  # the mean of h
            normalised *= along @ gamma[:, None] / d  # the mean of h * normalised
            h -= normalised
            h *= inverse_std[at]
        return grad_x.reshape(x.shape), grad_gamma, _column_sums(g)

    return value.reshape(x.shape), pullback


@primitive
def dropout(x: Any, *, p: float, rng: Any = None) -> Result:
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
def attention(
    q: Any, k: Any, v: Any, *, mask: Any = None, dropout: float = 0.0, rng: Any = None
) -> Result:
    """`softmax(q k^T / sqrt(d) + mask) v` in one node (Vaswani et al., 2017, section 3.2.1).

    Args:
        q: queries `(..., queries, d)`.
        k: keys `(..., keys, d)`.
        v: values `(..., keys, dv)`.
        mask: an array added to the scores, 0 keeps and -inf blocks, broadcast to
            `(..., queries, keys)`; None blocks nothing. It gets no gradient.
        dropout: probability with which a weight is set to zero, the others being scaled up.
        rng: where the dropout comes from.

    Returns:
        `(..., queries, dv)`; a query for which every key is blocked gets zeros.

    Raises:
        ValueError: the shapes do not fit, or `dropout` is not in `0 <= dropout < 1`.
        TypeError: the mask is of Booleans, which cannot be added.

    Example:
        >>> attention([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0], [0.0]])
        Tensor([[0.6698]])
    """
    q, k, v = np.asarray(q), np.asarray(k), np.asarray(v)
    check_attention_shapes(q.shape, k.shape, v.shape, mask)
    check_probability(dropout, "attention: dropout")
    (queries, d), keys = q.shape[-2:], k.shape[-2]
    tables = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])  # as many tables of scores
    drop = _dropout_scale((*tables, queries, keys), dropout, rng) if dropout else None
    shape = np.broadcast_shapes(tables, v.shape[:-2])
    lead = shape or (1,)
    dtype = np.result_type(q, k, v, np.float32)
    q, k, v = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (q, k, v))
    if drop is not None:
        drop = np.broadcast_to(drop, (*lead, queries, keys))
    scale = 1 / math.sqrt(d)
    value = np.empty_like(q, shape=(*lead, queries, v.shape[-1]), dtype=dtype)
    tiles = []
    for items, rows, seen, shift in _tiles(mask, (*lead, queries, keys), dtype):
        # A column for each query: NumPy reduces short columns several times as fast as short rows.
        scores = k[items, ..., seen, :] @ (q[items, ..., rows, :] * scale).swapaxes(-1, -2)
        if shift is not None:
            scores += shift
        weights = _softmax(scores, -2, out=scores)  # (..., keys, queries)
        kept = None if drop is None else drop[items, ..., rows, seen].swapaxes(-1, -2)
        used = weights if kept is None else weights * kept
        np.matmul(used.swapaxes(-1, -2), v[items, ..., seen, :], out=value[items, ..., rows, :])
        tiles.append((items, rows, seen, weights, kept, used))

    def pullback(g: np.ndarray) -> tuple[Any, ...]:
        g = g.reshape(value.shape)
        grad_q, grad_k, grad_v = (np.zeros_like(x, dtype=dtype) for x in (q, k, v))
        along = np.vecdot(g, value)[..., None, :]  # = (h * weights).sum(), from shorter rows
        for items, rows, seen, weights, kept, used in tiles:
            g_tile = g[items, ..., rows, :]
            h = v[items, ..., seen, :] @ g_tile.swapaxes(-1, -2)  # gradient of the used weights
            if kept is not None:
                h *= kept
            h -= along[items, ..., rows]
            h *= weights
            h *= scale  # gradient of k q^T
            np.matmul(h.swapaxes(-1, -2), k[items, ..., seen, :], out=grad_q[items, ..., rows, :])
            grad_k[items, ..., seen, :] += h @ q[items, ..., rows, :]
            grad_v[items, ..., seen, :] += used @ g_tile
        return tuple(grad.reshape(*shape, *grad.shape[-2:]) for grad in (grad_q, grad_k, grad_v))

    return value.reshape(*shape, *value.shape[-2:]), pullback


# Activations ---------------------------------------------------------------------------------


@primitive
def relu(x: Any) -> Result:
    """`max(x, 0)`, elementwise; its gradient at 0 is taken as 0.

    Example:
        >>> relu([-1.0, 2.0])
        Tensor([0., 2.])
    """
    return np.maximum(x, 0), lambda g: g * np.greater(x, 0)


@primitive
def sigmoid(x: Any) -> Result:
    """`1 / (1 + exp(-x))`, elementwise, computed so that it cannot overflow.

    Example:
        >>> sigmoid([0.0, -1000.0])
        Tensor([0.5, 0. ])
    """
    e = np.exp(-np.abs(x))  # at most 1
    y = np.where(np.greater_equal(x, 0), 1, e) / (1 + e)
    return y, lambda g: g * e / ((1 + e) * (1 + e))


@primitive
def gelu(x: Any) -> Result:
    """The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel, 2016, section 2).

    `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`: what GPT-2 uses. It differs from the exact
    `x Phi(x)` by less than 0.0005.

    Example:
        >>> gelu([-1.0, 0.0, 1.0])
        Tensor([-0.1588,  0.    ,  0.8412])
    """
    x = np.asarray(x, dtype=np.result_type(x, np.float32))
    c, k = math.sqrt(2 / math.pi), 0.044715
    flat = x.reshape(-1)
    value = np.empty_like(flat)

    def share(part: np.ndarray, square: np.ndarray) -> np.ndarray:
        """`(1 + tanh(...)) / 2`, so that the value is x times it."""
        s = square * (c * k)
        s += c
        s *= part
        np.tanh(s, out=s)
        s *= 0.5
        s += 0.5
        return s

    for at in chunks(x.size):
        part = flat[at]
        np.multiply(part, share(part, part * part), out=value[at])

    def pullback(g: np.ndarray) -> np.ndarray:
        grad = np.empty(flat.shape, dtype=g.dtype)
        g = g.reshape(-1)
        for at in chunks(x.size):
            part, h = flat[at], grad[at]
            square = part * part
            s = share(part, square)
            np.multiply(square, 6 * c * k, out=h)
            h += 2 * c
            h *= part
            h *= s
            h *= 1 - s
            h += s
            h *= g[at]
        return grad.reshape(x.shape)

    return value.reshape(x.shape), pullback


@primitive
def softmax(x: Any, *, axis: int = -1) -> Result:
    """`exp(x) / sum(exp(x))` along `axis`: positive numbers that sum to one.

    The largest element is subtracted first, which changes nothing but the size of the exponents.
    A row in which every element is -inf, nothing allowed, gives zeros.

    Example:
        >>> softmax([0.5, 1.0, 1.5])
        Tensor([0.1863, 0.3072, 0.5065])
    """
    y = _softmax(np.asarray(x), axis)
    return y, lambda g: y * (g - (g * y).sum(axis=axis, keepdims=True))


@primitive
def log_softmax(x: Any, *, axis: int = -1) -> Result:
    """The logarithm of `softmax`, without computing the small numbers first.

    Example:
        >>> log_softmax([0.0, 0.0])
        Tensor([-0.6931, -0.6931])
    """
    y = _log_softmax(np.asarray(x), axis)
    return y, lambda g: g - np.exp(y) * g.sum(axis=axis, keepdims=True)


# Losses --------------------------------------------------------------------------------------


@primitive
def cross_entropy(logits: Any, targets: Any) -> Result:
    """Mean of `-log softmax(logits)[target]` over all positions, in nats.

    Args:
        logits: `(..., num_classes)`, unnormalised.
        targets: integers of the shape of `logits` without its last axis.

    Returns:
        A single number. The gradient is `(softmax(logits) - one_hot(targets)) / positions`.

    Raises:
        TypeError: the targets are not integers.
        ValueError: the shapes do not fit.
        IndexError: a target is outside `0..num_classes - 1`.

    Example:
        >>> cross_entropy([[0.0, 0.0]], [1])
        Tensor(0.6931)
    """
    logits, targets = np.asarray(logits), np.asarray(targets)
    if logits.ndim == 0 or targets.shape != logits.shape[:-1]:
        raise ValueError(
            f"cross_entropy: logits {logits.shape} need targets of shape {logits.shape[:-1]}, "
            f"got {targets.shape}"
        )
    if targets.size == 0:
        raise ValueError(f"cross_entropy: logits {logits.shape} hold no position to average over")
    _check_ids(targets, logits.shape[-1], "target", "class")
    log_probs = _log_softmax(logits, -1).reshape(-1, logits.shape[-1])  # (N, classes)
    at = np.arange(targets.size), targets.reshape(-1)

    def pullback(g: np.ndarray) -> tuple[np.ndarray, None]:
        grad = np.exp(log_probs)
        grad[at] -= 1
        return (grad * (g / targets.size)).reshape(logits.shape), None

    return -log_probs[at].mean(), pullback


@primitive
def mse(prediction: Any, target: Any) -> Result:
    """Mean squared error over all elements.

    Raises:
        ValueError: the shapes differ; broadcasting here is almost always a mistake.

    Example:
        >>> mse([1.0, 2.0], [1.0, 4.0])
        Tensor(2.)
    """
    if np.shape(prediction) != np.shape(target):
        raise ValueError(
            f"mse: prediction {np.shape(prediction)} and target {np.shape(target)} must have "
            "the same shape"
        )
    if np.size(target) == 0:
        raise ValueError(f"mse: shape {np.shape(target)} has no elements to average over")
    error = np.asarray(prediction) - np.asarray(target)
    scaled = 2 / error.size * error
    return (error * error).mean(), lambda g: (g * scaled, -g * scaled)


# Helpers -------------------------------------------------------------------------------------


def _add(value: np.ndarray, shift: Any) -> np.ndarray:
    """`value + shift`, in the memory of `value` if its dtype can hold the sum."""
    fits = np.result_type(value, shift) == value.dtype
    return np.add(value, shift, out=value if fits else None)


def _column_sums(rows: np.ndarray) -> np.ndarray:
    """The sum over the first axis, as a product: several times as fast as `sum(axis=0)`."""
    return np.ones(len(rows), dtype=rows.dtype) @ rows


def _tiles(mask: Any, shape: tuple[int, ...], dtype: Any) -> Iterator[Any]:
    """The table of all scores, `(..., queries, keys)`, in parts that fit the cache.

    Each is some items of the first axis, some queries, the keys up to the last one that any of
    these queries may look at, and their part of the mask, `(..., keys, queries)`.
    """
    *lead, queries, keys = shape
    mask = np.zeros(()) if mask is None else np.asarray(mask)
    mask = np.broadcast_to(mask, np.broadcast_shapes(mask.shape, (*[1] * len(lead), queries, keys)))
    for start in range(0, queries, BLOCK):
        shift = mask[..., start : start + BLOCK, :].swapaxes(-1, -2)
        is_open = (shift != -np.inf).any(axis=(*range(len(lead)), -1))  # (keys,)
        end = int(np.flatnonzero(is_open)[-1]) + 1 if is_open.any() else 1
        shift = np.ascontiguousarray(shift[..., :end, :], dtype=dtype)
        for items in chunks(lead[0], math.prod(lead[1:]) * end * shift.shape[-1]):
            part = shift if len(shift) == 1 else shift[items]
            yield items, slice(start, start + BLOCK), slice(0, end), part if part.any() else None


def _softmax(x: np.ndarray, axis: int, out: np.ndarray | None = None) -> np.ndarray:
    lowest = np.finfo(np.result_type(x, np.float32)).min  # where all is -inf: exp gives zeros
    e = np.subtract(x, np.maximum(x.max(axis=axis, keepdims=True), lowest), out=out)
    e = np.exp(e, out=out)
    total = e.sum(axis=axis, keepdims=True)
    total += total == 0
    e /= total
    return e


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    largest = x.max(axis=axis, keepdims=True)
    if (largest == -np.inf).any():
        raise ValueError("log_softmax: a row is -inf everywhere; it has no probabilities")
    shifted = x - largest
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def _dropout_scale(shape: tuple[int, ...], p: float, rng: Any) -> np.ndarray:
    """0 with probability `p`, otherwise `1 / (1 - p)`, for every element."""
    return (default_rng(rng).random(shape) >= p).astype(np.float32) / np.float32(1 - p)


def check_probability(p: float, name: str) -> None:
    """Raise unless `0 <= p < 1`.

    Raises:
        ValueError: it is not; `name` says what was asked for.

    Example:
        >>> check_probability(1.5, "dropout: p")
        Traceback (most recent call last):
        ...
        ValueError: dropout: p must be in 0 <= p < 1, got 1.5
    """
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be in 0 <= p < 1, got {p}")


def check_mask(mask: Any) -> None:
    """Raise if a mask is of Booleans: other libraries mean opposite things by True.

    Raises:
        TypeError: it is; says how to write it as numbers to be added.

    Example:
        >>> check_mask([[True, False]])
        Traceback (most recent call last):
        ...
        TypeError: attention: a mask is added to the scores, 0 keeps and -inf blocks;
            got Booleans, convert with np.where(keep, 0.0, -np.inf)
    """
    if np.asarray(mask).dtype == bool:
        raise TypeError(
            "attention: a mask is added to the scores, 0 keeps and -inf blocks; got Booleans, "
            "convert with np.where(keep, 0.0, -np.inf)"
        )


def check_attention_shapes(
    q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], mask: Any
) -> None:
    """Raise unless queries, keys, values and mask fit together.

    Raises:
        ValueError: they do not; says which two and what is needed.

    Example:
        >>> check_attention_shapes((3, 4), (5, 4), (6, 4), None)
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
    if mask is None:
        return
    check_mask(mask)
    scores = (*np.broadcast_shapes(q[:-2], k[:-2]), q[-2], k[-2])
    try:
        fits = np.broadcast_shapes(np.shape(mask), scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"attention: mask {np.shape(mask)} does not broadcast to the scores {scores}"
        )


def _check_ids(ids: np.ndarray, count: int, what: str = "token id", of: str = "token") -> None:
    """Raise unless every id is an integer in `0..count - 1`."""
    if ids.dtype.kind not in "iu":
        raise TypeError(
            f"{what}s must be integers, got {ids.dtype}; convert with ids.astype(numpy.int64)"
        )
    if ids.size and (ids.min() < 0 or ids.max() >= count):
        where = np.argwhere((ids < 0) | (ids >= count))[0]
        at = tuple(int(i) for i in where)
        place = f" at {at}" if at else ""
        raise IndexError(
            f"{what} {ids[at]}{place} is outside 0..{count - 1}; "
            + ("was another tokenizer used?" if of == "token" else f"there are {count} classes")
        )
