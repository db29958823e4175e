r"""Pre-tokenization: cutting a text into pieces, roughly words, which no merge crosses."""

import re
from functools import cache
from importlib import resources

from tinytorch.core.arguments import check_choice

#: The names by which files of tokenizers ask for a way to cut a text, see `split_like`.
PRETOKENIZERS = ("gpt-2", "smollm", "llama-bpe")
#: How Llama 3 cuts a text, in the words of its `tokenizer.json`.
LLAMA_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
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
    return _pattern("gpt-2").findall(text)


def split_like(name: str, text: str) -> list[str]:
    r"""Cut a text into pieces as the files of a tokenizer ask for; joined, they are the text again.

    Args:
        name: `"gpt-2"`, see `split_like_gpt2`; `"smollm"`, which first sets each digit apart (any
            character of the Unicode category N) and then cuts what is left like GPT-2; or
            `"llama-bpe"`, the pattern of Llama 3, which is `LLAMA_PATTERN` in this module.
        text: any string.

    Returns:
        The pieces in order.

    Raises:
        TypeError: `text` is not a string.
        ValueError: another name.

    Example:
        >>> split_like("smollm", "We're  1234")
        ['We', "'re", '  ', '1', '2', '3', '4']
        >>> split_like("llama-bpe", "WE'RE (about) 1234")
        ['WE', "'RE", ' (', 'about', ')', ' ', '123', '4']
    """
    check_choice(name, "pretokenizer", PRETOKENIZERS)
    return _pattern(name).findall(text)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    r"""The pattern of one name for `re`, which has neither `\p{L}` nor `\p{N}`.

    Letters and numbers are those of Unicode 16.0, the same for every Python. They are looked up in
    two classes, since `re` tries the ranges above U+FFFF one by one: first the common ones.
    """
    table = resources.files("tinytorch.text").joinpath("data/unicode_16.txt")
    classes = table.read_text(encoding="utf-8").splitlines()[1:]
    letters, number = _run(*classes[:2]), _run(*classes[2:], times="")
    low, high = (classes[i] + classes[i + 2] for i in (0, 1))
    symbols = _run(rf"^{_SPACE}{low}{_HIGH}", rf"^\0-\uffff{high}")
    before = _run(rf"^\r\n{low}{_HIGH}", rf"^\0-\uffff{high}", times="")
    ending, space = "'(?:[sdmt]|ll|ve|re)", f"[{_SPACE}]"
    by_name = {
        "gpt-2": rf"{ending}| ?{letters}| ?{number}+| ?{symbols}",
        "smollm": rf"{ending}| ?{letters}|{number}| ?{symbols}|{space}+(?={number})",
        "llama-bpe": rf"(?i:{ending})|{before}?{letters}|{number}{{1,3}}"
        rf"| ?{symbols}[\r\n]*|{space}*[\r\n]+",
    }
    return re.compile(rf"{by_name[name]}|{space}+(?![^{_SPACE}])|{space}+")


def _run(low: str, high: str, *, times: str = "+") -> str:
    return rf"(?:[{low}]{times}|(?=[{_HIGH}])[{high}]{times}){times}"
