r"""Pre-tokenization: cutting a text into pieces, roughly words, which no merge crosses."""

import re
from functools import cache
from importlib import resources

# The Unicode property White_Space. (`\s` in `re` also matches four separators, \x1c to \x1f.)
_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_HIGH = r"\U00010000-\U0010ffff"


def split_like_gpt2(text: str) -> list[str]:
    r"""Cut a text into pieces as GPT-2 does; joined, they are the text again.

    A piece is an English ending such as `'s`; or letters, or digits, or other symbols, with one
    space before them; or white space, whose last space is left to the word that follows. The
    pattern is `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    (Radford et al., 2019, in the code published with the paper), with the letters and numbers of
    Unicode 16.0.

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

    Letters and numbers are those of Unicode 16.0, the same for every Python. They are looked up in
    two classes, since `re` tries the ranges above U+FFFF one by one: first the common ones.
    """
    table = resources.files("tinytorch.text").joinpath("data/unicode_16.txt")
    classes = table.read_text(encoding="utf-8").splitlines()[1:]
    letter, number = _run(*classes[:2]), _run(*classes[2:])
    low, high = (classes[i] + classes[i + 2] for i in (0, 1))
    symbol = _run(rf"^{_SPACE}{low}{_HIGH}", rf"^\0-\uffff{high}")
    return re.compile(
        rf"'(?:[sdmt]|ll|ve|re)| ?{letter}| ?{number}| ?{symbol}"
        rf"|[{_SPACE}]+(?![^{_SPACE}])|[{_SPACE}]+"
    )


def _run(low: str, high: str) -> str:
    return rf"(?:[{low}]+|(?=[{_HIGH}])[{high}]+)+"
