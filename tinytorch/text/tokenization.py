"""Text to integers and back: characters, and byte-pair encoding as in GPT-2.

A model counts in integers. `CharTokenizer` gives every character of an alphabet a number: easy to
see through, but a long text, and nothing outside the alphabet. `BPETokenizer` starts from the 256
bytes, so that it can write every text there is, and learns which neighbours to join into one token
(Sennrich et al., 2016; on bytes, Radford et al., 2019). Before that, `split_like_gpt2` cuts the
text into pieces, roughly words; a token never reaches from one piece into the next.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from tinytorch.core.layers import check_sizes
from tinytorch.text import files
from tinytorch.text.bpe_encoding import join_by_rank
from tinytorch.text.bpe_training import learn_merges
from tinytorch.text.characters import CharTokenizer, as_ids, check_text
from tinytorch.text.splitting import split_like_gpt2

__all__ = ["BPETokenizer", "CharTokenizer", "split_like_gpt2"]

_CACHE_SIZE = 1 << 15  # pieces
_CACHED_LENGTH = 64  # characters of a piece


class BPETokenizer:
    """Byte-pair encoding: a text becomes bytes, and neighbours are joined as a text has taught.

    Every text can be encoded, and decoding gives exactly that text back. Special tokens stand for
    things that are not text, such as the end of a document; they are never made of other tokens,
    and text becomes one only where `encode` is told to allow it.

    Args:
        ranks: the bytes of every token and its id; all 256 single bytes must be there. Of several
            neighbours that could be joined, those are joined first that make the lowest id.
        special_tokens: names and ids of the special tokens.

    Attributes:
        ranks: the bytes of every token and its id, in the order of the ids.
        special_tokens: names and ids of the special tokens.

    Raises:
        TypeError: a token is not bytes, a name is not a string, or an id is not an integer.
        ValueError: a byte is missing, an id is negative or given twice, or a name is empty.

    Example:
        >>> tokenizer = BPETokenizer.train("low lower lowest", 260)
        >>> tokenizer.merges
        [(b'l', b'o'), (b'lo', b'w'), (b' ', b'low'), (b' low', b'e')]
        >>> tokenizer.encode("low low")
        [257, 258]
        >>> tokenizer.decode([257, 258])
        'low low'
    """

    def __init__(
        self, ranks: Mapping[bytes, int], special_tokens: Mapping[str, int] | None = None
    ) -> None:
        specials = dict(special_tokens or {})
        _check_vocabulary(ranks, specials)
        in_order = sorted(ranks.items(), key=lambda item: item[1])
        self.ranks: dict[bytes, int] = {token: int(i) for token, i in in_order}
        self.special_tokens: dict[str, int] = {name: int(i) for name, i in specials.items()}
        self._tokens = {i: token for token, i in self.ranks.items()}
        self._tokens.update((i, name.encode()) for name, i in self.special_tokens.items())
        self._special_pattern = _any_of(specials)
        self._cache: dict[str, tuple[int, ...]] = {}

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Iterable[str] = ()) -> BPETokenizer:
        """Learn a vocabulary from a text; the same text always teaches the same one.

        The most frequent pair of neighbours becomes a token, again and again; of several equally
        frequent pairs, the one that comes first in the text. The ids 0 to 255 are the bytes, then
        come the merges in their order, then the special tokens.

        Args:
            text: the text to learn from. A special token's name divides it and is not learned from.
            vocab_size: the number of all tokens: 256 bytes, merges and special tokens.
            special_tokens: the names of the special tokens, in the order of their ids.

        Returns:
            The tokenizer.

        Raises:
            TypeError: `text` is not a string, or `vocab_size` is not an integer.
            ValueError: the vocabulary is too small for the bytes and the special tokens, or so
                large that the text has not enough pairs; or the text holds half a character.

        Example:
            >>> BPETokenizer.train("to be or not to be", 260, ["<|end|>"]).merges
            [(b't', b'o'), (b' ', b'b'), (b' b', b'e')]
        """
        names = _checked_names(special_tokens)
        check_text(text)
        check_sizes(vocab_size=vocab_size)
        num_merges = int(vocab_size) - 256 - len(names)
        if num_merges < 0:
            raise ValueError(
                f"vocab_size={vocab_size} is too small: the 256 bytes and {len(names)} special "
                f"tokens alone need {256 + len(names)}"
            )
        merges = learn_merges(_count_pieces(text, names), num_merges)
        if len(merges) < num_merges:
            raise ValueError(
                f"the text allows only {len(merges)} merges: after them each of its pieces is one "
                f"token. Pass vocab_size={256 + len(merges) + len(names)} or less, or a longer text"
            )
        tokens = [bytes([byte]) for byte in range(256)] + [a + b for a, b in merges]
        ranks = {token: i for i, token in enumerate(tokens)}
        return cls(ranks, {name: len(ranks) + i for i, name in enumerate(names)})

    @property
    def vocab_size(self) -> int:
        """The highest id plus one: how many rows an embedding table needs."""
        return max(self._tokens) + 1

    @cached_property
    def merges(self) -> list[tuple[bytes, bytes]]:
        """The two sides of every token that is longer than one byte, in the order of the ids.

        Raises:
            ValueError: a token is not two earlier ones joined, as can be in a vocabulary that was
                made otherwise.
        """
        merges = []
        for token, rank in self.ranks.items():
            if len(token) > 1:
                sides = join_by_rank(token, self.ranks, below=rank)
                if len(sides) != 2:
                    raise ValueError(
                        f"the token {token!r} (id {rank}) is not two earlier tokens joined but "
                        f"{len(sides)}: {sides}; this vocabulary has no list of merges"
                    )
                merges.append((sides[0], sides[1]))
        return merges

    def __repr__(self) -> str:
        return f"BPETokenizer({len(self.ranks)} tokens, {len(self.special_tokens)} special tokens)"

    # -------------------------------------------------------------------------- text to ids

    def encode(self, text: str, allowed_special: Collection[str] = ()) -> list[int]:
        """The ids of a text.

        A special token's name in the text is an error unless it is allowed: a user who types
        ``<|endoftext|>`` shall not end the document by accident. Where one name begins another,
        the longer one is meant.

        Args:
            text: any text.
            allowed_special: the names of the special tokens that the text may use, or `"all"`.

        Returns:
            The ids.

        Raises:
            TypeError: `text` is not a string.
            ValueError: the text holds a special token's name that is not allowed, or half a
                character; or a name that is allowed is not a special token.

        Example:
            >>> tokenizer = BPETokenizer.train("ab ab", 258, ["<|end|>"])
            >>> tokenizer.encode("ab<|end|>", allowed_special={"<|end|>"})
            [256, 257]
        """
        allowed = self._allowed(allowed_special)
        check_text(text)
        ids: list[int] = []
        start = 0
        for match in self._special_pattern.finditer(text):
            name = match[0]
            if name not in allowed:
                raise ValueError(
                    f"the text has the special token {name!r} at position {match.start()}: pass "
                    f"allowed_special={{{name!r}}} if it is meant as one, or use encode_ordinary "
                    "to treat it as any other text"
                )
            ids += self._encode(text[start : match.start()])
            ids.append(self.special_tokens[name])
            start = match.end()
        return ids + self._encode(text[start:])

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which nothing is special: every character is just a character.

        Raises:
            TypeError: `text` is not a string.
            ValueError: the text holds half a character (a lone surrogate).

        Example:
            >>> tokenizer = BPETokenizer.train("ab ab", 258, ["<|end|>"])
            >>> tokenizer.encode_ordinary("<|end|>")
            [60, 124, 101, 110, 100, 124, 62]
        """
        check_text(text)
        return self._encode(text)

    def pieces(self, text: str) -> list[bytes]:
        """The tokens of a text as bytes, to look at; nothing in the text is special.

        Example:
            >>> BPETokenizer.train("low lower lowest", 259).pieces("slower")
            [b's', b'low', b'e', b'r']
        """
        return [self._tokens[i] for i in self.encode_ordinary(text)]

    def _allowed(self, names: Collection[str]) -> Collection[str]:
        """The names that a text may use, after a check that they are special tokens."""
        if isinstance(names, str):
            if names == "all":
                return self.special_tokens
            raise TypeError(f'allowed_special must be "all" or a set of names; pass {{{names!r}}}')
        allowed = set(names)
        for name in sorted(allowed):
            if name not in self.special_tokens:
                raise ValueError(
                    f"{name!r} is not a special token of this tokenizer; there are "
                    f"{', '.join(map(repr, self.special_tokens)) or 'none'}"
                )
        return allowed

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in split_like_gpt2(text):
            known = self._cache.get(piece)
            ids.extend(self._encode_piece(piece) if known is None else known)
        return ids

    def _encode_piece(self, piece: str) -> tuple[int, ...]:
        """The ids of one piece, remembered if it is short enough to come again."""
        token = piece.encode()
        if token in self.ranks:
            ids: tuple[int, ...] = (self.ranks[token],)
        else:
            ids = tuple(self.ranks[part] for part in join_by_rank(token, self.ranks))
        if len(piece) <= _CACHED_LENGTH:
            if len(self._cache) >= _CACHE_SIZE:
                self._cache.clear()
            self._cache[piece] = ids
        return ids

    # -------------------------------------------------------------------------- ids to text

    def decode(self, ids: Any, errors: str = "replace") -> str:
        r"""The text of a sequence of ids: a list, an array or a Tensor.

        A token may be a part of a character, so that some sequences of ids are not UTF-8, for
        instance one that was cut off.

        Args:
            ids: integers, one axis.
            errors: what to do about bytes that are not UTF-8: `"replace"` puts "\ufffd" in their
                place, `"strict"` raises.

        Returns:
            The text; special tokens appear as their names.

        Raises:
            TypeError: the ids are not integers.
            IndexError: there is no token with this id.
            ValueError: the ids have more or fewer than one axis; or `errors` is `"strict"` and the
                bytes are not UTF-8.

        Example:
            >>> tokenizer = BPETokenizer.train("café", 256)
            >>> tokenizer.encode("é")
            [195, 169]
            >>> tokenizer.decode([195, 169]), tokenizer.decode([195])
            ('é', '\ufffd')
        """
        content = self.decode_bytes(ids)
        try:
            return content.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            place, reason = error.start, error.reason
        raise ValueError(
            f"the tokens are not UTF-8 at byte {place} ({content[place : place + 4]!r}: {reason}); "
            'decode more of them together, or pass errors="replace"'
        )

    def decode_bytes(self, ids: Any) -> bytes:
        r"""The bytes of a sequence of ids, which need not be whole characters.

        Raises:
            TypeError: the ids are not integers.
            IndexError: there is no token with this id.
            ValueError: the ids have more or fewer than one axis.

        Example:
            >>> BPETokenizer.train("café", 256).decode_bytes([195])
            b'\xc3'
        """
        numbers = as_ids(ids, self.vocab_size)
        try:
            return b"".join([self._tokens[i] for i in numbers])
        except KeyError as error:
            missing = error.args[0]
        raise IndexError(
            f"token id {missing} at position {numbers.index(missing)} is one of the ids that this "
            "vocabulary leaves out; was another tokenizer used?"
        )

    # ---------------------------------------------------------------------------- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tokenizer into one JSON file, which a person can read.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokenizer.json")
            >>> BPETokenizer.train("low lower lowest", 260, ["<|end|>"]).save(path)
            >>> BPETokenizer.load(path)
            BPETokenizer(259 tokens, 1 special tokens)
        """
        files.write_bpe(path, self.ranks, self.special_tokens)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BPETokenizer:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged or is not such a file; the message says why.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokenizer.json")
            >>> BPETokenizer.train("low lower lowest", 259).save(path)
            >>> BPETokenizer.load(path).encode("low")
            [257]
        """
        with files.damaged(path):
            return cls(*files.read_bpe(path))

    @classmethod
    def from_gpt2_files(
        cls, encoder_json: str | os.PathLike[str], vocab_bpe: str | os.PathLike[str]
    ) -> BPETokenizer:
        r"""Read GPT-2's vocabulary from the two files in which it is published.

        Args:
            encoder_json: the path of `encoder.json` (also called `vocab.json`): every token's id.
            vocab_bpe: the path of `vocab.bpe` (also called `merges.txt`): the merges.

        Returns:
            A tokenizer with the ids of the first file; names such as `<|endoftext|>` are special.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: a file is damaged, or the two do not belong together.

        Example:
            >>> import json, pathlib, tempfile
            >>> from tinytorch.text.files import bytes_to_letters
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> ids = {bytes_to_letters(bytes([byte])): byte for byte in range(256)} | {"lo": 256}
            >>> _ = (folder / "encoder.json").write_text(json.dumps(ids))
            >>> _ = (folder / "vocab.bpe").write_text("#version: 0.2\nl o\n")
            >>> BPETokenizer.from_gpt2_files(folder / "encoder.json", folder / "vocab.bpe").merges
            [(b'l', b'o')]
        """
        with files.damaged(encoder_json):
            return cls(*files.read_gpt2(encoder_json, vocab_bpe))

    @classmethod
    def from_tiktoken_file(
        cls, path: str | os.PathLike[str], special_tokens: Mapping[str, int] | None = None
    ) -> BPETokenizer:
        r"""Read a vocabulary in tiktoken's format: on each line a token in base64, and its id.

        Args:
            path: the file.
            special_tokens: names and ids of the special tokens, which the file does not have.

        Returns:
            The tokenizer. It cuts text into pieces as GPT-2 does, whatever the file was made for.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged; the message says in which line.

        Example:
            >>> import base64, pathlib, tempfile
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "small.tiktoken"
            >>> tokens = [bytes([byte]) for byte in range(256)] + [b"lo"]
            >>> lines = [f"{base64.b64encode(t).decode()} {i}" for i, t in enumerate(tokens)]
            >>> _ = path.write_text("\n".join(lines))
            >>> BPETokenizer.from_tiktoken_file(path, {"<|end|>": 257}).pieces("low")
            [b'lo', b'w']
        """
        with files.damaged(path):
            return cls(files.read_tiktoken(path), special_tokens)


# --------------------------------------------------------------------------------- helpers


def _count_pieces(text: str, special_names: Collection[str]) -> dict[bytes, int]:
    """How often each piece of a text occurs, in the order in which they first occur."""
    counts: Counter[str] = Counter()
    for part in _any_of(special_names).split(text):
        counts.update(split_like_gpt2(part))
    return {piece.encode(): count for piece, count in counts.items()}


def _any_of(names: Collection[str]) -> re.Pattern[str]:
    """A pattern that finds any of the names, the longest first; with no names it finds nothing."""
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first)) if names else r"(?!)")


def _checked_names(names: Iterable[str]) -> list[str]:
    """The names of special tokens as a list."""
    if isinstance(names, str):
        raise TypeError(f"special_tokens is a list of names; pass [{names!r}]")
    checked = list(names)
    for name in checked:
        if not isinstance(name, str):
            raise TypeError(f"the name of a special token is a string, got {name!r}")
        if not name:
            raise ValueError("a special token needs a name, got an empty string")
        if checked.count(name) > 1:
            raise ValueError(f"the special token {name!r} is named twice")
        check_text(name)
    return checked


def _check_vocabulary(ranks: Mapping[bytes, int], specials: Mapping[str, int]) -> None:
    """Raise unless the tokens can write every text, and every id means one token."""
    _checked_names(specials)
    for token in ranks:
        if not isinstance(token, bytes) or not token:
            raise TypeError(f"a token is one byte or more, got {token!r}")
    owners: dict[int, object] = {}
    for owner, i in [*ranks.items(), *specials.items()]:
        if isinstance(i, bool) or not isinstance(i, (int, np.integer)):
            raise TypeError(f"the id of {owner!r} must be an integer, got {i!r}")
        if i < 0:
            raise ValueError(f"the id of {owner!r} must be 0 or more, got {i}")
        if i in owners:
            raise ValueError(f"{owners[i]!r} and {owner!r} both have the id {i}")
        owners[int(i)] = owner
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ValueError(
            f"{len(missing)} of the 256 single bytes have no id, the first is "
            f"{bytes(missing[:1])!r}: not every text could be encoded"
        )
