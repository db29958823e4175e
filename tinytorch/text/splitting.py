"""Cutting a text into pieces, roughly words, before its bytes are joined: GPT-2's pattern."""

from __future__ import annotations

import re
from functools import cache

__all__ = ["split_like_gpt2"]

# The property White_Space of Unicode. (`\s` of `re` also matches four separators, \x1c to \x1f.)
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def split_like_gpt2(text: str) -> list[str]:
    r"""Cut a text into pieces as GPT-2 does; joined, they are the text again.

    A piece is an English ending such as `'s`; or letters, or digits, or other signs, with one space
    before them; or white space, of which the last space is left to the word that follows. The
    pattern is `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    (Radford et al., 2019, in the code published with it).

    Args:
        text: any string.

    Returns:
        The pieces in their order.

    Example:
        >>> split_like_gpt2("It's  2 dogs, isn't it?")
        ['It', "'s", ' ', ' 2', ' dogs', ',', ' isn', "'t", ' it', '?']
    """
    return _pattern().findall(text)


@cache
def _pattern() -> re.Pattern[str]:
    r"""The pattern in the words of `re`, which knows neither \p{L} nor \p{N}.

    What `\w` matches is a letter, a decimal digit (`\d`), another number such as ² or Ⅷ, or "_".
    """
    numbers = _other_numbers()
    letter, number = rf"[^\W\d_{numbers}]", rf"[\d{numbers}]"
    other = rf"(?:[^\w{_SPACE}{numbers}]|_)"
    return re.compile(
        rf"'(?:[sdmt]|ll|ve|re)| ?{letter}+| ?{number}+| ?{other}+"
        rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
    )


def _other_numbers() -> str:
    """The numbers that are not decimal digits, as ranges for a character class."""
    import sys
    import unicodedata

    ranges: list[list[int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code)) in ("Nl", "No"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(rf"\U{first:08x}-\U{last:08x}" for first, last in ranges)
