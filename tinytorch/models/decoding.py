"""Reading one more token, in bare NumPy.

A model that writes spends its time on one token after the other. For one token of a small model the
arrays are so small that what surrounds the arithmetic, the making of tensors and the checking of
shapes, costs several times as much as the arithmetic. `Decoder` does what `GPT.forward` does with a
cache, on the same arrays and to the same numbers, and nothing else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core.positions import check_length
from tinytorch.core.tensor import Tensor
from tinytorch.models.kv_cache import KVCache

__all__ = ["Decoder"]


class Decoder:
    """A GPT of the package's own parts, ready to read one token of each row after another.

    The weights are those at the time when it is made.

    Args:
        model: the model; `GPT.decoder` makes a decoder only where it can do the same arithmetic.
        cache: what the model has read so far; every token is added to it.

    Example:
        >>> from tinytorch import GPT, no_grad
        >>> model = GPT(vocab_size=65, embed_dim=16, num_layers=2, num_heads=2, max_seq_len=32)
        >>> cache, again = KVCache(2, 32), KVCache(2, 32)
        >>> with no_grad():
        ...     prompt = model([[1, 2, 3]], cache=cache), model([[1, 2, 3]], cache=again)
        ...     expected = model([[4]], cache=again).data[:, -1]
        >>> logits = Decoder(model, cache).read(np.array([4]))
        >>> logits.shape, bool(np.allclose(logits, expected, atol=1e-6))
        ((1, 65), True)
    """

    def __init__(self, model: Any, cache: KVCache) -> None:
        self.cache, self.max_seq_len = cache, model.max_seq_len
        self.table, self.places = model.token_embedding.weight.data, _places(model)
        self.head = self.table.T if model.lm_head is None else model.lm_head.weight.data
        self.last_norm = _norm_of(model.ln_f)
        self.layers = [_layer_of(block) for block in model.blocks]
        self.average = np.full((model.embed_dim, 1), 1 / model.embed_dim, self.table.dtype)

    def read(self, ids: np.ndarray) -> np.ndarray:
        """The logits `(batch, vocab)` of what follows one more token `(batch,)` of each row."""
        check_length(1, self.max_seq_len, self.cache.length)
        x = self.table[ids]  # (batch, d)
        if self.places is not None:
            x += self.places[self.cache.length]
        for i, (norm1, qkv, heads, out, norm2, widen, narrow) in enumerate(self.layers):
            x += _linear(self._attention(i, heads, _linear(self._norm(x, *norm1), *qkv)), *out)
            x += _linear(_gelu(_linear(self._norm(x, *norm2), *widen)), *narrow)
        self.cache.advance(1)
        return self._norm(x, *self.last_norm) @ self.head

    def _norm(self, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float) -> np.ndarray:
        h = x - x @ self.average
        variance = (h * h) @ self.average
        variance += eps
        h /= np.sqrt(variance, out=variance)
        h *= gamma
        h += beta
        return h

    def _attention(self, layer: int, num_heads: int, qkv: np.ndarray) -> np.ndarray:
        """What the one query of each row and head mixes from all values, `(batch, d)`."""
        at = self.cache.length
        keys, values = self.cache.arrays[layer]  # (batch, heads, max_seq_len, d / h)
        q, k, v = qkv.reshape(len(qkv), 3, num_heads, -1).swapaxes(0, 1)
        keys[:, :, at], values[:, :, at] = k, v
        weights = q[:, :, None] @ keys[:, :, : at + 1].swapaxes(-1, -2)  # (batch, heads, 1, seq)
        weights -= np.maximum.reduce(weights, axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= np.add.reduce(weights, axis=-1, keepdims=True)
        return (weights @ values[:, :, : at + 1]).reshape(len(qkv), -1)


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    value = x @ weight
    value += bias
    return value


def _gelu(x: np.ndarray) -> np.ndarray:
    c = math.sqrt(2 / math.pi)
    t = x * x
    t *= 0.044715 * c
    t += c
    t *= x
    np.tanh(t, out=t)
    t += 1
    t *= x
    t *= 0.5
    return t


def _places(model: Any) -> np.ndarray | None:
    part = model.position_embedding
    if part is None or isinstance(part, Tensor):
        return None if part is None else part.data
    return part.position_embeddings.data


def _norm_of(norm: Any) -> tuple[np.ndarray, np.ndarray, float]:
    return norm.gamma.data, norm.beta.data, norm.eps


def _layer_of(block: Any) -> tuple[Any, ...]:
    """The arrays of a block in the order in which they are needed.

    The matrices for queries, keys and values are joined into one, the scale of the scores included.
    """
    attention, mlp = block.attention, block.mlp
    scale = 1 / math.sqrt(attention.embed_dim // attention.num_heads)
    parts = attention.q_proj, attention.k_proj, attention.v_proj
    weight = np.concatenate([part.weight.data for part in parts], axis=1)  # (d, 3 d)
    bias = np.concatenate([part.bias.data for part in parts])
    weight[:, : attention.embed_dim] *= scale
    bias[: attention.embed_dim] *= scale
    out, widen, narrow = (
        (part.weight.data, part.bias.data)
        for part in (attention.out_proj, mlp.linear1, mlp.linear2)
    )
    qkv = weight, bias
    return (
        _norm_of(block.ln1), qkv, attention.num_heads, out, _norm_of(block.ln2), widen, narrow
    )  # fmt: skip
