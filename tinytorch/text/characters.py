"""One token for each character: the simplest tokenizer."""

from __future__ import annotations

from collections.abc import Iterable

from tinytorch.core.types import TokenIds
from tinytorch.files.atomic_files import StrPath
from tinytorch.text import tokenizer_files
from tinytorch.text.token_ids import check_text, look_up

__all__ = ["CharTokenizer"]


class CharTokenizer:
    """One token for each character.

    Args:
        alphabet: the characters, in any order and with repetitions: an alphabet, or a whole text.
            The distinct characters, sorted, are the vocabulary.

    Attributes:
        alphabet: the characters in the order of their ids.
        vocab_size: how many there are.

    Raises:
        TypeError: the alphabet is not made of strings.
        ValueError: the alphabet is empty, or contains half a character (a lone surrogate).

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
            what = f"an alphabet is a string, or a list of characters, got {alphabet!r}"
            raise TypeError(what) from None
        if not self.alphabet:
            raise ValueError("the alphabet is empty; pass the text that you want to encode")
        check_text(self.alphabet)
        self.vocab_size = len(self.alphabet)
        self._ids = {character: i for i, character in enumerate(self.alphabet)}

    def __repr__(self) -> str:
        return f"CharTokenizer({self.alphabet!r})"

    def encode(self, text: str) -> list[int]:
        """The id of every character.

        Raises:
            TypeError: `text` is not a string.
            ValueError: a character is not in the alphabet; the message says which, and where.

        Example:
            >>> CharTokenizer("abc").encode("cab")
            [2, 0, 1]
        """
        check_text(text)
        try:
            return [self._ids[character] for character in text]
        except KeyError as error:
            new = error.args[0]
            what = f"the character {new!r} (U+{ord(new):04X}) at position {text.index(new)}"
            where = f"the alphabet of {self.vocab_size} characters; build the tokenizer"
            raise ValueError(f"{what} is not in {where} from a text that has it") from None

    def decode(self, ids: TokenIds) -> str:
        """The text of a sequence of ids: a list, an array or a Tensor.

        Raises:
            TypeError: the ids are not integers.
            IndexError: an id is outside the vocabulary.
            ValueError: the ids are not one row.

        Example:
            >>> CharTokenizer("abc").decode([2, 0, 1])
            'cab'
        """
        return "".join(look_up(ids, dict(enumerate(self.alphabet))))

    def save(self, path: StrPath) -> None:
        """Write the alphabet to a JSON file.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "characters.json")
            >>> CharTokenizer("abc").save(path)
            >>> CharTokenizer.load(path)
            CharTokenizer('abc')
        """
        tokenizer_files.write(path, tokenizer_files.CHARACTERS, alphabet=self.alphabet)

    @classmethod
    def load(cls, path: StrPath) -> CharTokenizer:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or is not such a file; the message says why.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "characters.json")
            >>> CharTokenizer("hello").save(path)
            >>> CharTokenizer.load(path).alphabet
            'ehlo'
        """
        with tokenizer_files.own(path, tokenizer_files.CHARACTERS) as content:
            return cls(tokenizer_files.characters(content))
