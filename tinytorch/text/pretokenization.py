r"""Pre-tokenization: cutting a text into pieces, roughly words, which no merge crosses."""

import re
import sys
import unicodedata
from functools import cache
from itertools import groupby

# The Unicode property White_Space. (`\s` in `re` also matches four separators, \x1c to \x1f.)
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


def split_like_gpt2(text: str) -> list[str]:
    r"""Cut a text into pieces as GPT-2 does; joined, they are the text again.

    A piece is an English ending such as `'s`; or letters, or digits, or other symbols, with one
    space before them; or white space, whose last space is left to the word that follows. The
    pattern is `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    (Radford et al., 2019, in the code published with the paper).

    Args:
        text: any string.

    Returns:
        The pieces in order.

    Raises:
        TypeError: `text` is not a string.

    Example:
        >>> split_like_gpt2("It's  2 dogs, isn't it?")
        ['It', "'s", ' ', ' 2', ' dogs', ',', ' isn', "'t", ' it', '?']
    """
    if not isinstance(text, str):
        raise TypeError(f"split_like_gpt2 needs a string, got {type(text).__name__}")
    return _pattern().findall(text)


@cache
def _pattern() -> re.Pattern[str]:
    r"""GPT-2's pattern for `re`, which has neither `\p{L}` nor `\p{N}`.

    `\w` matches letters, decimal digits (`\d`), other numbers such as ² or Ⅷ, and "_".
    """
    other = [c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)) in ("Nl", "No")]
    runs = [[c for _, c in run] for _, run in groupby(enumerate(other), lambda ic: ic[1] - ic[0])]
    numbers = "".join(rf"\U{run[0]:08x}-\U{run[-1]:08x}" for run in runs)
    letter, number = rf"[^\W\d_{numbers}]", rf"[\d{numbers}]"
    symbol = rf"(?:[^\w{_SPACE}{numbers}]|_)"
    return re.compile(
        rf"'(?:[sdmt]|ll|ve|re)| ?{letter}+| ?{number}+| ?{symbol}+"
        rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
    )
