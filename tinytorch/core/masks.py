"""Masks: which token may look at which.

One convention everywhere: a mask is *added* to the scores, 0 keeps a pair and -inf blocks it, and
it broadcasts over `(batch, heads, queries, keys)`. Other libraries write 1 or True, some to keep
and some to block; a mask that could be read either way is refused.
"""

from __future__ import annotations

import numpy as np

from tinytorch.core.arguments import check_not_negative, check_sizes
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike

_RULE = "attention: a mask is added to the scores, 0 keeps and -inf blocks"
BLOCKS_BELOW = -1e4  # the smallest mask in use: half precision ends at -65,504


def causal_mask(seq_len: int, past: int = 0) -> np.ndarray:
    """The mask of a model that generates from left to right: no token sees a later one.

    Args:
        seq_len: number of positions, T.
        past: number of positions before them, whose keys are cached; every token sees those.

    Returns:
        `(T, past + T)` in float32: 0 where a token looks at itself or back, -inf ahead of it.

    Raises:
        TypeError: a length is not an integer.
        ValueError: `seq_len` is less than 1 or `past` is negative.

    Example:
        >>> causal_mask(3)
        array([[  0., -inf, -inf],
               [  0.,   0., -inf],
               [  0.,   0.,   0.]], dtype=float32)
        >>> causal_mask(2, past=1)
        array([[  0.,   0., -inf],
               [  0.,   0.,   0.]], dtype=float32)
    """
    check_sizes(seq_len=seq_len)
    check_not_negative(past=past)
    blocked = np.full((seq_len, past + seq_len), -np.inf, dtype=np.float32)
    return np.triu(blocked, k=1 + past)


def check_mask(mask: TensorLike, scores: tuple[int, ...]) -> np.ndarray:
    """The mask as an array, if it is unambiguous: each number either keeps or blocks.

    Args:
        mask: numbers that are 0 or at most `BLOCKS_BELOW`, -inf for instance.
        scores: the shape of what it is added to, `(..., queries, keys)`.

    Example:
        >>> check_mask([[1, 0], [1, 1]], (2, 2))
        Traceback (most recent call last):
        ...
        ValueError: attention: a mask is added to the scores, 0 keeps and -inf blocks; got 1 at
            (0, 0). If 1 means keep, convert with np.where(mask, 0.0, -np.inf); numbers that only
            weaken a pair, as ALiBi's do, are passed as bias=
    """
    array = without_gradient("mask", mask)
    if array.dtype == bool:
        raise TypeError(f"{_RULE}; got Booleans, convert with np.where(keep, 0.0, -np.inf)")
    check_fits("mask", array.shape, scores)
    clear = array == 0
    clear |= array <= BLOCKS_BELOW  # in place: a third table would be the largest of the call
    if not clear.all():  # NaN is not clear
        at = tuple(int(i) for i in np.argwhere(~clear)[0])
        convert = "If 1 means keep, convert with np.where(mask, 0.0, -np.inf)"
        weaken = "numbers that only weaken a pair, as ALiBi's do, are passed as bias="
        raise ValueError(f"{_RULE}; got {array[at]} at {at}. {convert}; {weaken}")
    if 2 < array.ndim < len(scores) and max(array.shape[:-2]) > 1:
        axes = f"has {array.ndim} axes and the scores {scores} have {len(scores)}"
        remedy = "write mask[:, None] for one a text, mask[None] for one a head"
        taken = "it would be taken for one mask a head"
        raise ValueError(f"attention: mask {array.shape} {axes}: {taken}; {remedy}")
    return array


def without_gradient(name: str, shift: TensorLike) -> np.ndarray:
    """A mask or bias as an array, provided that no gradient is lost.

    Example:
        >>> without_gradient("bias", Tensor([0.0, -1.0]))
        array([ 0., -1.], dtype=float32)
    """
    if isinstance(shift, Tensor) and shift.requires_grad:
        remedy = "numbers to be learned as the bias= of scaled_dot_product_attention"
        lost = f"the {name} gets no gradient here, but requires it; pass {name}.data"
        raise TypeError(f"attention: {lost}, or {remedy}")
    return np.asarray(shift.data if isinstance(shift, Tensor) else shift)


def check_fits(name: str, shape: tuple[int, ...], scores: tuple[int, ...]) -> None:
    """Raise unless a mask or bias broadcasts to the scores.

    Example:
        >>> check_fits("mask", (3, 3), (2, 5, 5))
        Traceback (most recent call last):
        ...
        ValueError: attention: mask (3, 3) does not broadcast to the scores (2, 5, 5)
    """
    try:
        fits = np.broadcast_shapes(shape, scores) == scores
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"attention: {name} {shape} does not broadcast to the scores {scores}")
