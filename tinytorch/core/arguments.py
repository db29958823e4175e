"""Checks of arguments: each error names the argument, its value and what is allowed."""

from __future__ import annotations

import numbers

import numpy as np

from tinytorch.core.types import TokenIds


def check_sizes(**sizes: object) -> None:
    """Raise unless every named size is a positive integer."""
    for name, size in sizes.items():
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
            raise TypeError(f"{name} must be an integer, got {size!r}")
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


def check_probability(p: float, name: str) -> None:
    """Raise unless `0 <= p < 1`.

    Example:
        >>> check_probability(1.5, "dropout: p")
        Traceback (most recent call last):
        ...
        ValueError: dropout: p must be in 0 <= p < 1, got 1.5
    """
    check_number(p, name)
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be in 0 <= {name.split()[-1]} < 1, got {p}")


def check_probabilities(name: str, values: np.ndarray, remedy: str) -> None:
    """Raise unless every number is a probability, up to rounding."""
    wrong = ~((values >= -1e-6) & (values <= 1 + 1e-6))  # nan as well
    if wrong.any():
        raise ValueError(f"{name} must be probabilities in 0..1, got {values[wrong][0]}; {remedy}")


def check_distributions(name: str, probs: np.ndarray) -> None:
    """Raise unless the last axis of an array sums to 1, up to rounding in half precision.

    Example:
        >>> check_distributions("draft", np.array([0.5, 0.4]))
        Traceback (most recent call last):
        ...
        ValueError: draft must sum to 1, got a sum of 0.9; pass scores through functional.softmax
            first
    """
    remedy = "pass scores through functional.softmax first"
    check_probabilities(name, probs, remedy)
    sums = np.atleast_1d(probs.sum(axis=-1))
    wrong = np.abs(sums - 1) > 5e-4
    if wrong.any():
        raise ValueError(f"{name} must sum to 1, got a sum of {sums[wrong][0]:.4g}; {remedy}")


def check_not_negative(**values: float) -> None:
    """Raise unless every named number is zero or more, and finite.

    Example:
        >>> check_not_negative(lr=-0.1)
        Traceback (most recent call last):
        ...
        ValueError: lr must be >= 0, got -0.1
    """
    for name, value in values.items():
        check_number(value, name)
        if not value >= 0:
            raise ValueError(f"{name} must be >= 0, got {value}")
        if value == np.inf:
            raise ValueError(f"{name} must be finite, got {value}")


def check_number(value: object, name: str) -> None:
    """Raise unless `value` is a real number, not a Boolean.

    Example:
        >>> check_number("1", "temperature")
        Traceback (most recent call last):
        ...
        TypeError: temperature must be a number, got '1'
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")


def check_flags(**flags: object) -> None:
    """Raise unless every named option is True or False.

    Example:
        >>> check_flags(use_cache="no")
        Traceback (most recent call last):
        ...
        TypeError: use_cache must be True or False, got 'no'
    """
    for name, flag in flags.items():
        if not isinstance(flag, (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, got {flag!r}")


def check_choice(value: object, name: str, allowed: tuple[str | None, ...]) -> None:
    """Raise unless `value` is one of the words allowed, or None if that is among them.

    Example:
        >>> check_choice("average", "reduction", ("mean", "sum", "none"))
        Traceback (most recent call last):
        ...
        ValueError: reduction must be 'mean', 'sum' or 'none', got 'average'
    """
    if not isinstance(value, (str, type(None))) or value not in allowed:
        *most, last = map(repr, allowed)
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}")


def refuse_mask(value: object, who: str) -> None:
    """Raise if `value` is a masked array, whose mask would be lost.

    Example:
        >>> refuse_mask(np.ma.array([1.0, 2.0], mask=[False, True]), "Tensor")
        Traceback (most recent call last):
        ...
        TypeError: Tensor: a masked array would lose its mask; pass its filled(0)
    """
    if isinstance(value, np.ndarray) and hasattr(value, "mask"):  # np.ma is slow to import
        raise TypeError(f"{who}: a masked array would lose its mask; pass its filled(0)")


def check_equal_lengths(ids: TokenIds | int, name: str) -> tuple[int, ...]:
    """The shape of token ids, which may be nested lists; raise if those are ragged.

    Example:
        >>> check_equal_lengths([[1, 2], [3]], "GPT")
        Traceback (most recent call last):
        ...
        ValueError: GPT: the texts of a batch must be equally long; crop them, or read each by
            itself
    """
    try:
        return np.shape(ids)  # type: ignore[arg-type]
    except ValueError:
        remedy = "crop them, or read each by itself"
        raise ValueError(f"{name}: the texts of a batch must be equally long; {remedy}") from None


def check_ids(ids: np.ndarray, count: int, what: str, remedy: str) -> np.ndarray:
    """The ids in int64; raise unless every one is an integer in `0..count - 1`.

    Example:
        >>> check_ids(np.array([[1, 65]]), 65, "token id", "was another tokenizer used?")
        Traceback (most recent call last):
        ...
        IndexError: token id 65 at (0, 1) is outside 0..64; was another tokenizer used?
    """
    if ids.dtype.kind not in "iu" and ids.size:
        remedy = "convert with ids.astype(numpy.int64)"
        raise TypeError(f"{what}s must be integers, got {ids.dtype}; {remedy}")
    if ids.size == 1 and 0 <= ids.item() < count:  # nothing to search (bench: decoding)
        return ids.astype(np.int64, copy=False)
    if ids.size and ids.astype(np.uint64).max() >= count:  # a negative id wraps to a large one
        at = tuple(int(i) for i in np.argwhere((ids < 0) | (ids >= count))[0])
        where = f" at {at}" if at else ""
        raise IndexError(f"{what} {ids[at]}{where} is outside 0..{count - 1}; {remedy}")
    return ids.astype(np.int64, copy=False)


def check_callable(**parts: object) -> None:
    """Raise unless every named part can be called.

    Example:
        >>> check_callable(norm=None)
        Traceback (most recent call last):
        ...
        TypeError: norm must be a class or a function that makes it, got None
    """
    for name, part in parts.items():
        if not callable(part):
            raise TypeError(f"{name} must be a class or a function that makes it, got {part!r}")
