"""The keys and values of what a model has read, kept so that they are computed once.

No token of a causal model sees a later one, so the keys and values of a text do not change when it
grows. Kept, they let the model read only what is new.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.layers import check_sizes
from tinytorch.core.positions import check_length
from tinytorch.core.tensor import Tensor

__all__ = ["KVCache"]


class KVCache:
    """Room for the keys and values of every layer.

    Each layer has two arrays `(batch, heads, max_seq_len, head_dim)`, made when the first keys
    come, of which the first `length` places are filled. `GPT.forward` hands each block its own
    `layer(i)`, and calls `advance` when all layers have read the new tokens.

    Args:
        num_layers: number of layers.
        max_seq_len: the most tokens there is room for.

    Attributes:
        length: how many tokens have been read.
        arrays: the two arrays of each layer, or None where nothing has come yet.

    Example:
        >>> from tinytorch import GPT, no_grad
        >>> model = GPT(vocab_size=65, embed_dim=16, num_layers=2, num_heads=2, max_seq_len=32)
        >>> cache = KVCache(num_layers=2, max_seq_len=32)
        >>> with no_grad():
        ...     prompt = model([[1, 2, 3]], cache=cache)
        ...     new = model([[4]], cache=cache)  # reads one token, sees four
        >>> new.shape, cache.length
        ((1, 1, 65), 4)
        >>> cache.nbytes == 2 * 2 * 32 * 16 * 4  # keys and values, layers, places, numbers, bytes
        True
    """

    def __init__(self, num_layers: int, max_seq_len: int) -> None:
        check_sizes(num_layers=num_layers, max_seq_len=max_seq_len)
        self.num_layers, self.max_seq_len = num_layers, max_seq_len
        self.clear()

    def clear(self) -> None:
        """Forget everything; the next keys may be of another batch."""
        self.length = 0
        self.arrays: list[Any] = [None] * self.num_layers  # keys and values of each layer

    def extend(self, layer: int, k: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """Store the keys and values of new tokens after those of one layer.

        `length` stays what it is until `advance`, so that every layer writes to the same places.

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
        self._check(layer, k, v)
        stored = self.arrays[layer]
        if stored is None:
            batch, heads, _, head_dim = k.shape
            shape = batch, heads, self.max_seq_len, head_dim
            stored = np.empty(shape, dtype=k.dtype), np.empty(shape, dtype=v.dtype)
            self.arrays[layer] = stored
        keys, values = stored
        end = self.length + k.shape[2]
        keys[:, :, self.length : end] = np.asarray(k)
        values[:, :, self.length : end] = np.asarray(v)
        return keys[:, :, :end], values[:, :, :end]

    def advance(self, n: int) -> None:
        """Count `n` more tokens as read; call it once all layers have stored theirs.

        Raises:
            ValueError: there is no room for so many.
        """
        check_length(n, self.max_seq_len, start=self.length)
        self.length += n

    def layer(self, index: int) -> LayerCache:
        """What one layer needs of the cache.

        Raises:
            IndexError: there is no such layer.
        """
        self._check_layer(index)
        return LayerCache(self, index)

    @property
    def nbytes(self) -> int:
        """The bytes that the arrays take, filled or not; 0 before the first keys come."""
        return sum(part.nbytes for stored in self.arrays if stored is not None for part in stored)

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < self.num_layers:
            raise IndexError(
                f"KVCache: there is no layer {layer} in 0..{self.num_layers - 1}; make the cache "
                "with as many layers as the model has blocks"
            )

    def _check(self, layer: int, k: Any, v: Any) -> None:
        self._check_layer(layer)
        if any(isinstance(x, Tensor) and x.requires_grad for x in (k, v)):
            raise ValueError(
                "KVCache: keys and values are stored without a gradient, but one is being "
                "recorded; call the model inside no_grad()"
            )
        if len(k.shape) != 4 or k.shape != v.shape:
            raise ValueError(
                f"KVCache: keys {k.shape} and values {v.shape} must both be "
                "(batch, heads, new, head_dim)"
            )
        check_length(k.shape[2], self.max_seq_len, start=self.length)
        stored = self.arrays[layer]
        if stored is None:
            return
        expected, came = stored[0].shape, k.shape
        if (*expected[:2], expected[3]) != (*came[:2], came[3]) or stored[0].dtype != k.dtype:
            raise ValueError(
                f"KVCache: stores {stored[0].dtype} keys {expected}, got {k.dtype} {came}; "
                "clear() it before reading another batch"
            )


class LayerCache:
    """The part of a `KVCache` that belongs to one layer: what an attention is given as `cache`.

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

    def extend(self, k: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """Store new keys and values, return all; see `KVCache.extend`."""
        return self._cache.extend(self._index, k, v)
