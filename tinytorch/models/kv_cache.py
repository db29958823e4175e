"""The keys and values of what a model has read, kept so that they are computed once.

No token of a causal model sees a later one, so the keys and values of a text do not change as it
grows. With them cached (`KVCache`), the model reads only new tokens. When the text outgrows the
model, the oldest half of the window is dropped (`SlidingWindow`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.arguments import check_sizes
from tinytorch.core.incremental import is_incremental
from tinytorch.core.positions import check_length
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike

__all__ = ["KVCache", "LayerCache", "SlidingWindow"]


class KVCache:
    """Memory for the keys and values of every layer.

    Each layer has two arrays `(batch, heads, max_seq_len, head_dim)`, made when the first keys are
    stored; their first `length` positions are filled. `GPT.forward` passes each block its own
    `layer(i)`, and calls `advance` when all layers have read the new tokens.

    Args:
        num_layers: number of layers.
        max_seq_len: the most tokens that fit.

    Attributes:
        length: how many tokens have been read.
        arrays: the two arrays of each layer, or None where nothing is stored yet.

    Raises:
        ValueError: a size is less than 1.
        TypeError: a size is not an integer.

    Example:
        >>> from tinytorch import GPT, no_grad
        >>> model = GPT(vocab_size=65, embed_dim=16, num_layers=2, num_heads=2, max_seq_len=32)
        >>> cache = KVCache(num_layers=2, max_seq_len=32)
        >>> with no_grad():
        ...     prompt = model([[1, 2, 3]], cache=cache)
        ...     new = model([[4]], cache=cache)  # reads one token, sees four
        >>> new.shape, cache.length
        ((1, 1, 65), 4)
        >>> cache.nbytes == 2 * 2 * 32 * 16 * 4  # keys and values, layers, tokens, floats
        True
    """

    def __init__(self, num_layers: int, max_seq_len: int) -> None:
        check_sizes(num_layers=num_layers, max_seq_len=max_seq_len)
        self.num_layers, self.max_seq_len = num_layers, max_seq_len
        self.clear()

    def clear(self) -> None:
        """Clear everything; the next keys may be of another batch."""
        self.length = 0
        self.arrays: list[Any] = [None] * self.num_layers  # keys and values of each layer
        self._ends = [0] * self.num_layers  # how many tokens each layer has stored

    def extend(self, layer: int, k: TensorLike, v: TensorLike) -> tuple[np.ndarray, np.ndarray]:
        """Store the keys and values of new tokens after those of one layer.

        `length` stays what it is until `advance`, so that every layer writes to the same positions.

        Args:
            layer: which layer, from 0.
            k: the new keys `(batch, heads, new, head_dim)`.
            v: the new values, of the same shape.

        Returns:
            Keys and values of all tokens so far, each `(batch, heads, length + new, head_dim)`:
            views of what is stored.

        Raises:
            ValueError: there is no room, a gradient is being recorded, or the shape or dtype
                differs from what is stored.
            IndexError: there is no such layer.
        """
        self._check_layer(layer)
        k, v = _array(k), _array(v)
        if k.ndim != 4 or k.shape != v.shape:
            both = f"keys {k.shape} and values {v.shape} must both be"
            raise ValueError(f"KVCache: {both} (batch, heads, new, head_dim)")
        keys, values = self._stored(layer, k, v)
        end = self.length + k.shape[2]
        keys[:, :, self.length : end] = k
        values[:, :, self.length : end] = v
        self._ends[layer] = end
        return keys[:, :, :end], values[:, :, :end]

    def advance(self, n: int) -> None:
        """Count `n` more tokens as read; call it once all layers have stored theirs.

        Raises:
            ValueError: there is no room for so many, or a layer has not stored its keys and
                values, so that it cannot look back.
        """
        check_length(n, self.max_seq_len, start=self.length)
        missing = [i for i, end in enumerate(self._ends) if end != self.length + n]
        if missing:
            what = f"layer {missing[0]} has stored {self._ends[missing[0]]}, so it cannot look back"
            remedy = "call cache.extend(k, v) once in its forward, or read the whole text without a"
            raise ValueError(f"KVCache: of {self.length + n} tokens {what}; {remedy} cache")
        self.length += n

    def forget(self, length: int) -> None:
        """Keep the first `length` tokens alone; the next ones are stored after them.

        Raises:
            ValueError: so many have not been read.

        Example:
            >>> cache = KVCache(num_layers=1, max_seq_len=4)
            >>> keys, values = cache.extend(0, np.ones((1, 1, 3, 2)), np.ones((1, 1, 3, 2)))
            >>> cache.advance(3)
            >>> cache.forget(2)
            >>> cache.length
            2
        """
        if not 0 <= length <= self.length:
            allowed = f"keep 0 to {self.length}, as many as have been read"
            raise ValueError(f"KVCache: cannot keep {length} tokens; {allowed}")
        self.length = length
        self._ends = [length] * self.num_layers

    def layer(self, index: int) -> LayerCache:
        """What one layer needs of the cache.

        Raises:
            IndexError: there is no such layer.
        """
        self._check_layer(index)
        return LayerCache(self, index)

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays take, filled or not; 0 before the first keys are stored."""
        return sum(part.nbytes for stored in self.arrays if stored is not None for part in stored)

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < self.num_layers:
            remedy = "make the cache with as many layers as the model has blocks"
            what = f"there is no layer {layer} in 0..{self.num_layers - 1}"
            raise IndexError(f"KVCache: {what}; {remedy}")

    def _stored(self, layer: int, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The two arrays of a layer, checked to fit these keys and values."""
        check_length(k.shape[2], self.max_seq_len, start=self.length)
        (batch, heads, _, head_dim), stored = k.shape, self.arrays[layer]
        shape = batch, heads, self.max_seq_len, head_dim
        if stored is None:
            stored = np.empty(shape, dtype=k.dtype), np.empty(shape, dtype=v.dtype)
            self.arrays[layer] = stored
        elif stored[0].shape != shape or stored[0].dtype != k.dtype:
            what = f"stores {stored[0].dtype} keys {stored[0].shape}, got {k.dtype} {k.shape}"
            raise ValueError(f"KVCache: {what}; clear() it before reading another batch")
        return stored


class LayerCache:
    """The part of a `KVCache` that belongs to one layer: the `cache` of an attention.

    Args:
        cache: the whole cache.
        index: which layer, from 0.

    Example:
        >>> layer = KVCache(num_layers=2, max_seq_len=4).layer(1)
        >>> keys, values = layer.extend(np.ones((1, 2, 3, 8)), np.ones((1, 2, 3, 8)))
        >>> layer.length, keys.shape
        (0, (1, 2, 3, 8))
    """

    def __init__(self, cache: KVCache, index: int) -> None:
        self._cache, self._index = cache, index

    @property
    def length(self) -> int:
        """How many tokens were read before: the position of the first new one."""
        return self._cache.length

    def extend(self, k: TensorLike, v: TensorLike) -> tuple[np.ndarray, np.ndarray]:
        """Store new keys and values, return all; see `KVCache.extend`."""
        return self._cache.extend(self._index, k, v)


class SlidingWindow:
    """The end of a growing text, as much as a model can read; older tokens are dropped.

    Whenever the text outgrows `max_seq_len`, the start of the window advances by half of that, the
    cache is cleared, and the model reads the rest from its first position. Dropping only the oldest
    keys would be wrong: the others were computed from the dropped ones, and with learned positions
    each also depends on its position in the longer window. At half a window a time, a token is read
    twice on average, not once for every token written.

    Args:
        text: ids `(batch, seq)`, at least one a row.
        max_seq_len: the most tokens that the model can read.
        cache: the `KVCache` of what has been read of the window; None if every token is read again.

    Attributes:
        start: how many tokens of the text have been dropped.

    Example:
        >>> window = SlidingWindow(np.array([[1, 2, 3]]), max_seq_len=4)
        >>> window.append(np.array([4]))
        >>> window.ids
        array([[1, 2, 3, 4]])
        >>> window.append(np.array([5]))
        >>> window.ids, window.start
        (array([[3, 4, 5]]), 2)
    """

    def __init__(self, text: np.ndarray, max_seq_len: int, cache: KVCache | None = None) -> None:
        check_sizes(max_seq_len=max_seq_len)
        self.max_seq_len, self.cache = max_seq_len, cache
        self.step = max(1, max_seq_len // 2)
        excess = max(0, text.shape[1] - max_seq_len)
        self.start = -(-excess // self.step) * self.step  # the first multiple that is enough
        self._keep(text[:, self.start :])

    @property
    def ids(self) -> np.ndarray:
        """The tokens in the window, `(batch, at most max_seq_len)`; not to be written to."""
        return self._room[:, : self._end]

    @property
    def unread(self) -> np.ndarray:
        """The tokens in the window that are not cached, `(batch, new)`."""
        return self._room[:, 0 if self.cache is None else self.cache.length : self._end]

    def append(self, new: np.ndarray) -> None:
        """Add a token to each row, `(batch,)`; if the window is full, drop half of it first."""
        if self._end == self.max_seq_len:
            self.start += self.step
            self._keep(self._room[:, self.step :])
            if self.cache is not None:
                self.cache.clear()
        elif self._end == self._room.shape[1]:
            self._keep(self._room)
        self._room[:, self._end] = new
        self._end += 1

    def _keep(self, ids: np.ndarray) -> None:
        """Start a new array with these ids and space for more; earlier arrays stay unchanged."""
        self._end = ids.shape[1]
        length = min(self.max_seq_len, 2 * self._end + 64)
        self._room = np.empty((len(ids), length), dtype=np.int64)
        self._room[:, : self._end] = ids


def can_continue(model: Any) -> bool:
    """Whether every part of a GPT can continue from a cache, so that its `new_cache` makes one.

    The model, its positions, its blocks, their attentions and rotations must all be `incremental`;
    norms and MLPs need not be: they see each token by itself.
    """
    attentions = [getattr(block, "attention", block) for block in model.blocks]
    rotations = [getattr(attention, "rotate", None) for attention in attentions]
    by_position = [p for p in (model.position_embedding, *rotations) if callable(p)]
    return all(map(is_incremental, (model, *model.blocks, *attentions, *by_position)))


def _array(x: TensorLike) -> np.ndarray:
    """Keys or values as an array, provided that no gradient is lost."""
    if isinstance(x, Tensor) and x.requires_grad:
        what = "keys and values are stored without a gradient, but one is being recorded"
        raise ValueError(f"KVCache: {what}; call the model inside no_grad()")
    return x.data if isinstance(x, Tensor) else np.asarray(x)
