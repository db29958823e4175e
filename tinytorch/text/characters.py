"""The simplest tokenizer, one token for each character, and what every tokenizer checks."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tinytorch.text import files

__all__ = ["CharTokenizer", "as_ids", "check_is_text", "check_text"]


class CharTokenizer:
    """One token for each character.

    Args:
        alphabet: the characters, in any order and as often as you like: an alphabet, or a whole
            text. The sorted distinct ones are the vocabulary.

    Attributes:
        alphabet: the characters in the order of their ids.

    Raises:
        TypeError: the alphabet holds something that is not a string.
        ValueError: the alphabet is empty, or holds half a character (a lone surrogate).

    Example:
        >>> tokenizer = CharTokenizer("hello world")
        >>> tokenizer.alphabet
        ' dehlorw'
        >>> tokenizer.encode("hold")
        [3, 5, 4, 1]
        >>> tokenizer.decode([3, 5, 4, 1])
        'hold'
    """

    def __init__(self, alphabet: str | Iterable[str]) -> None:
        try:
            self.alphabet = "".join(sorted(set("".join(alphabet))))
        except TypeError:
            raise TypeError(
                f"an alphabet is a string, or a list of characters; got {alphabet!r}"
            ) from None
        if not self.alphabet:
            raise ValueError("the alphabet is empty; pass the text that you want to encode")
        check_text(self.alphabet)
        self._ids = {character: i for i, character in enumerate(self.alphabet)}

    @property
    def vocab_size(self) -> int:
        """The number of characters."""
        return len(self.alphabet)

    def __repr__(self) -> str:
        return f"CharTokenizer({self.alphabet!r})"

    def encode(self, text: str) -> list[int]:
        """The id of every character.

        Raises:
            ValueError: a character is not in the alphabet; the message says which, and where.

        Example:
            >>> CharTokenizer("abc").encode("cab")
            [2, 0, 1]
        """
        check_is_text(text)
        try:
            return [self._ids[character] for character in text]
        except KeyError as error:
            character = error.args[0]
        raise ValueError(
            f"the character {character!r} (U+{ord(character):04X}) at position "
            f"{text.index(character)} is not in the alphabet of {self.vocab_size} characters; "
            "build the tokenizer from a text that has it, or leave it out of this one"
        )

    def decode(self, ids: Any) -> str:
        """The text of a sequence of ids: a list, an array or a Tensor.

        Raises:
            TypeError: the ids are not integers.
            IndexError: an id is outside the vocabulary.
            ValueError: the ids have more or fewer than one axis.

        Example:
            >>> CharTokenizer("abc").decode([2, 0, 1])
            'cab'
        """
        return "".join([self.alphabet[i] for i in as_ids(ids, self.vocab_size)])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the alphabet into one JSON file.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "characters.json")
            >>> CharTokenizer("abc").save(path)
            >>> CharTokenizer.load(path)
            CharTokenizer('abc')
        """
        files.write_characters(path, self.alphabet)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CharTokenizer:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged or is not such a file; the message says why.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "characters.json")
            >>> CharTokenizer("hello").save(path)
            >>> CharTokenizer.load(path).alphabet
            'ehlo'
        """
        with files.damaged(path):
            return cls(files.read_characters(path))


# --------------------------------------------------------------------- shared checks


def as_ids(ids: Any, count: int) -> list[int]:
    """Ids as a list, after a check that they are integers in `0..count - 1`."""
    array = np.asarray(ids)
    if array.ndim != 1:
        raise ValueError(
            f"decode reads one sequence of ids, got shape {array.shape}; "
            + ("pass [id]" if array.ndim == 0 else "decode each row by itself, as in ids[0]")
        )
    if not array.size:
        return []
    if array.dtype.kind not in "iu":
        raise TypeError(f"token ids must be integers, got {array.dtype}; pass what `encode` gave")
    wrong = np.flatnonzero((array < 0) | (array >= count))
    if wrong.size:
        raise IndexError(
            f"token id {array[wrong[0]]} at position {wrong[0]} is outside 0..{count - 1}; "
            "was another tokenizer used?"
        )
    return array.tolist()


def check_is_text(text: str) -> None:
    """Raise unless a text is a string."""
    if not isinstance(text, str):
        raise TypeError(
            f"a text is a string, got {type(text).__name__}; decode bytes with .decode('utf-8')"
        )


def check_text(text: str) -> None:
    """Raise unless a text is a string that UTF-8 can write."""
    check_is_text(text)
    try:
        text.encode()
        return
    except UnicodeEncodeError as error:
        place = error.start
    raise ValueError(
        f"the character {text[place]!r} at position {place} is a lone surrogate, half of a "
        "character, which UTF-8 cannot write; read the text again with the right encoding, or drop "
        'it with text.encode(errors="ignore").decode()'
    )
