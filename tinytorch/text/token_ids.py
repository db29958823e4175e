"""Texts and token ids, checked: what every tokenizer takes, and what batches are cut from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from tinytorch.core.types import TokenIds

Token = TypeVar("Token", str, bytes)


def as_token_ids(ids: TokenIds) -> np.ndarray:
    """The ids of one text as an array `(n,)`, after a check that they are integers.

    They are a copy in int64; only those of a memory map stay as they are.
    """
    try:
        array = np.asarray(ids)
    except ValueError:  # ragged
        raise ValueError("token ids must form one sequence, got rows of several lengths") from None
    if array.size and array.dtype.kind not in "iu":
        got = repr(array.ravel().tolist()[0])[:60] if array.dtype.kind in "OUS" else array.dtype
        raise TypeError(f"token ids must be integers, got {got}; encode the text first")
    if array.ndim != 1:
        remedy = "[id]" if array.ndim == 0 else "one row at a time, as in ids[0]"
        raise ValueError(f"token ids must have the shape (n,), got {array.shape}; pass {remedy}")
    return array if _is_mapped(array) else array.astype(np.int64)


def _is_mapped(array: np.ndarray | None) -> bool:
    while not isinstance(array, np.memmap) and isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, np.memmap)


def check_natural(number: int, name: str, error: type[Exception] = ValueError) -> None:
    """Raise unless a number is an integer from 0 on."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {number!r}")
    if number < 0:
        raise error(f"{name} must be 0 or more, got {number}")


def look_up(ids: TokenIds, tokens: Mapping[int, Token]) -> list[Token]:
    """The token of every id."""
    numbers = as_token_ids(ids).tolist()
    try:
        return [tokens[i] for i in numbers]
    except KeyError as error:
        wrong, last = error.args[0], max(tokens)
        what = f"token id {wrong} at position {numbers.index(wrong)} is"
        where = f"outside 0..{last}" if not 0 <= wrong <= last else "not in this vocabulary"
        raise IndexError(f"{what} {where}; was another tokenizer used?") from None


def check_text(text: object) -> None:
    """Raise unless a text is a string that UTF-8 can write."""
    if not isinstance(text, str):
        given = type(text).__name__
        raise TypeError(f"a text is a string, got {given}; decode bytes with .decode('utf-8')")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        where = f"the character {text[error.start]!r} at position {error.start}"
        remedy = 'drop it with text.encode(errors="ignore").decode()'
        raise ValueError(f"{where} is a lone surrogate, half of a character; {remedy}") from None
