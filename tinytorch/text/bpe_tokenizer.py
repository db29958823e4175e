"""The byte-pair encoding of any text: trained, applied, read from files, with special tokens.

Its vocabulary is the one that the loop in `tinytorch.text.bpe` would learn, from the faster
functions of `tinytorch.text.bpe_fast`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from tinytorch.core.arguments import check_choice, check_sizes
from tinytorch.core.types import TokenIds
from tinytorch.files.atomic_files import StrPath
from tinytorch.text import tokenizer_files
from tinytorch.text.bpe import Pair
from tinytorch.text.bpe_fast import join_by_rank, learn_merges
from tinytorch.text.pretokenization import PRETOKENIZERS, split_like, split_like_gpt2
from tinytorch.text.special_tokens import any_of, checked_names
from tinytorch.text.token_ids import check_natural, check_text, look_up

__all__ = ["BPETokenizer"]

_BYTES = [bytes([byte]) for byte in range(256)]
_CACHE_SIZE, _CACHED_LENGTH = 1 << 15, 64  # how many pieces are cached, and their longest length


class BPETokenizer:
    """Byte-pair encoding: a text becomes bytes, and learned pairs of neighbours become tokens.

    Every text can be encoded, and decoding returns exactly that text. Special tokens represent what
    is not text, such as the end of a document; they are never merged from other tokens, and text
    becomes one only where `encode` is asked to allow it.

    Args:
        ranks: the bytes of every token and its id; all 256 single bytes must be there. Of several
            neighbours that could be joined, those that make the lowest id are joined first.
        special_tokens: names and ids of the special tokens.
        merges: the only pairs to join, and in this order, as files list them. With such a list,
            bytes may be missing; a text's ids then leave these bytes out.
        pretokenizer: how a text is cut into pieces, see `split_like`. With `"llama-bpe"`, a piece
            that is a token is not merged but taken as it is, as in Llama 3.

    Attributes:
        ranks: the bytes of every token and its id, in the order of the ids.
        special_tokens: names and ids of the special tokens.
        merge_ranks: the place of every pair in the list of merges, or None without a list.
        pretokenizer: how a text is cut into pieces.
        vocab_size: the highest id plus one: how many rows an embedding table needs.

    Raises:
        TypeError: a token is not bytes, a name is not a string, one of them is empty, or an id is
            not an integer.
        ValueError: a byte is missing, an id is negative or given twice, what a merge makes has no
            id, or there is no such pretokenizer.

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
        self,
        ranks: Mapping[bytes, int],
        special_tokens: Mapping[str, int] | None = None,
        merges: Iterable[Pair] | None = None,
        pretokenizer: str = "gpt-2",
    ) -> None:
        specials = {} if special_tokens is None else special_tokens
        check_choice(pretokenizer, "pretokenizer", PRETOKENIZERS)
        self.pretokenizer = pretokenizer
        self.merge_ranks = None if merges is None else {pair: i for i, pair in enumerate(merges)}
        self._missing = _check_vocabulary(ranks, specials, self.merge_ranks)
        in_order = sorted(ranks.items(), key=lambda item: item[1])
        self.ranks: dict[bytes, int] = {token: int(i) for token, i in in_order}
        self.special_tokens: dict[str, int] = {name: int(i) for name, i in specials.items()}
        self._tokens = {i: token for token, i in self.ranks.items()}
        self._tokens.update((i, name.encode()) for name, i in self.special_tokens.items())
        self.vocab_size = max(self._tokens) + 1
        self._special_pattern = any_of(specials)
        self._cache: dict[str, list[int]] = {}

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Iterable[str] = ()) -> BPETokenizer:
        """Learn a vocabulary from a text; the same text always gives the same vocabulary.

        The text is cut into pieces (`split_like_gpt2`). Repeatedly, the most frequent pair of
        neighbours becomes a token; of several equally frequent pairs, the one that occurs first in
        the text. The ids 0 to 255 are the bytes, then come the merges in order, then the special
        tokens.

        Args:
            text: the text to learn from. Names of special tokens split it and are not learned from.
            vocab_size: the number of all tokens: 256 bytes, merges and special tokens.
            special_tokens: the names of the special tokens, in the order of their ids.

        Returns:
            The tokenizer.

        Raises:
            TypeError: `text` is not a string, or `vocab_size` is not an integer.
            ValueError: the vocabulary is too small for the bytes and the special tokens, or so
                large that the text does not have enough pairs; or the text contains half a
                character.

        Example:
            >>> BPETokenizer.train("to be or not to be", 260, ["<|end|>"]).merges
            [(b't', b'o'), (b' ', b'b'), (b' b', b'e')]
        """
        names = checked_names(special_tokens)
        check_text(text)
        check_sizes(vocab_size=vocab_size)
        smallest = 256 + len(names)
        if vocab_size < smallest:
            need = f"the 256 bytes and {len(names)} special tokens alone need {smallest}"
            raise ValueError(f"vocab_size={vocab_size} is too small: {need}")
        parts = any_of(names).split(text)
        counts = Counter(piece for part in parts for piece in split_like_gpt2(part))
        in_bytes = {piece.encode(): count for piece, count in counts.items()}
        merges = learn_merges(in_bytes, int(vocab_size) - smallest)
        if smallest + len(merges) < vocab_size:
            remedy = f"pass vocab_size={smallest + len(merges)} or less, or a longer text"
            raise ValueError(f"the text allows only {len(merges)} merges; {remedy}")
        tokens = [*_BYTES, *(left + right for left, right in merges)]
        ranks = {token: i for i, token in enumerate(tokens)}
        return cls(ranks, {name: len(ranks) + i for i, name in enumerate(names)})

    @cached_property
    def merges(self) -> list[Pair]:
        """The merges as given, or the two sides of every longer token in the order of the ids.

        Raises:
            ValueError: a token is not the concatenation of two earlier ones, as may happen in a
                vocabulary that was not made by merging.
        """
        if self.merge_ranks is not None:
            return list(self.merge_ranks)
        merges = []
        for token, rank in self.ranks.items():
            if len(token) > 1:
                left, *rest = join_by_rank(token, self.ranks, below=rank)
                if len(rest) != 1:
                    what = f"the token {token!r} (id {rank}) is not two earlier tokens joined"
                    raise ValueError(f"{what} but {[left, *rest]}: there is no list of merges")
                merges.append((left, rest[0]))
        return merges

    def __repr__(self) -> str:
        return f"BPETokenizer({len(self.ranks)} tokens, {len(self.special_tokens)} special tokens)"

    # -------------------------------------------------------------------------- text to ids

    def encode(self, text: str, allowed_special: Collection[str] = ()) -> list[int]:
        """The ids of a text.

        The name of a special token in the text is an error unless it is allowed: a user who types
        ``<|endoftext|>`` must not end the document by accident. Where one name begins another,
        the longer one is meant.

        Args:
            text: any text.
            allowed_special: the names of the special tokens that the text may use, or `"all"`.

        Returns:
            The ids.

        Raises:
            TypeError: `text` is not a string.
            ValueError: the text contains the name of a special token that is not allowed, or half
                a character; or an allowed name is not a special token.

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
                what = f"the text has the special token {name!r} at position {match.start()}"
                remedy = f"pass allowed_special={{{name!r}}}, or use encode_ordinary for plain text"
                raise ValueError(f"{what}: {remedy}")
            ids += [*self._encode(text[start : match.start()]), self.special_tokens[name]]
            start = match.end()
        return ids + self._encode(text[start:])

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which nothing is special: every character is just a character.

        Raises:
            TypeError: `text` is not a string.
            ValueError: the text contains half a character (a lone surrogate).

        Example:
            >>> tokenizer = BPETokenizer.train("ab ab", 258, ["<|end|>"])
            >>> tokenizer.encode_ordinary("<|end|>")
            [60, 124, 101, 110, 100, 124, 62]
        """
        check_text(text)
        return self._encode(text)

    def pieces(self, text: str) -> list[bytes]:
        """The tokens of a text as bytes, for inspection; nothing in the text is special.

        Example:
            >>> BPETokenizer.train("low lower lowest", 259).pieces("slower")
            [b's', b'low', b'e', b'r']
        """
        return [self._tokens[i] for i in self.encode_ordinary(text)]

    def _allowed(self, names: Collection[str]) -> Collection[str]:
        """The names that a text may use, checked to be special tokens."""
        if names == "all":
            return self.special_tokens
        allowed = checked_names(names, "allowed_special")
        if unknown := [name for name in allowed if name not in self.special_tokens]:
            known = ", ".join(map(repr, self.special_tokens)) or "none"
            raise ValueError(f"{unknown[0]!r} is not a special token here; there are {known}")
        return allowed

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for piece in split_like(self.pretokenizer, text):
            known = self._cache.get(piece)
            if known is None:
                known = [self.ranks[token] for token in self._tokens_of(piece.encode())]
                if len(piece) <= _CACHED_LENGTH and len(self._cache) < _CACHE_SIZE:
                    self._cache[piece] = known
            ids += known
        return ids

    def _tokens_of(self, piece: bytes) -> list[bytes]:
        whole = self.merge_ranks is None or self.pretokenizer == "llama-bpe"
        if whole and piece in self.ranks:
            return [piece]
        there = piece.translate(None, self._missing)  # before the merges, so neighbours close up
        return join_by_rank(there, self.ranks, merges=self.merge_ranks)

    # -------------------------------------------------------------------------- ids to text

    def decode(self, ids: TokenIds, errors: str = "replace") -> str:
        r"""The text of a sequence of ids: a list, an array or a Tensor.

        A token may be part of a character, so some sequences of ids are not valid UTF-8, for
        instance one that was cut off.

        Args:
            ids: integers, `(n,)`.
            errors: what to do about bytes that are not UTF-8: `"replace"` puts "\ufffd" in their
                place, `"strict"` raises.

        Returns:
            The text; special tokens appear as their names.

        Raises:
            TypeError: the ids are not integers.
            IndexError: there is no token with this id.
            ValueError: the ids are not one row; or `errors` is `"strict"` and the bytes are not
                UTF-8.

        Example:
            >>> tokenizer = BPETokenizer.train("café", 256)
            >>> tokenizer.encode("é")
            [195, 169]
            >>> tokenizer.decode([195, 169]), tokenizer.decode([195])
            ('é', '\ufffd')
        """
        try:
            return self.decode_bytes(ids).decode("utf-8", errors)
        except UnicodeDecodeError as error:
            remedy = 'decode more of them together, or pass errors="replace"'
            where = f"at byte {error.start} ({error.reason})"
            raise ValueError(f"the tokens are not UTF-8 {where}; {remedy}") from None

    def decode_bytes(self, ids: TokenIds) -> bytes:
        r"""The bytes of a sequence of ids, which need not be whole characters.

        Raises:
            TypeError: the ids are not integers.
            IndexError: there is no token with this id.
            ValueError: the ids are not one row.

        Example:
            >>> BPETokenizer.train("café", 256).decode_bytes([195])
            b'\xc3'
        """
        return b"".join(look_up(ids, self._tokens))

    # ---------------------------------------------------------------------------- files

    def save(self, path: StrPath) -> None:
        """Write the tokenizer to a JSON file that a person can read.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokenizer.json")
            >>> BPETokenizer.train("low lower lowest", 260, ["<|end|>"]).save(path)
            >>> BPETokenizer.load(path)
            BPETokenizer(259 tokens, 1 special tokens)
        """
        said = self.ranks, self.special_tokens, self.merge_ranks, self.pretokenizer
        tokenizer_files.write_bpe(path, said)

    @classmethod
    def load(cls, path: StrPath) -> BPETokenizer:
        """Read what `save` wrote.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or is not such a file; the message says why.

        Example:
            >>> import os, tempfile
            >>> path = os.path.join(tempfile.mkdtemp(), "tokenizer.json")
            >>> BPETokenizer.train("low lower lowest", 259).save(path)
            >>> BPETokenizer.load(path).encode("low")
            [257]
        """
        with tokenizer_files.own(path, tokenizer_files.BPE) as content:
            return cls(*tokenizer_files.vocabulary(content))

    @classmethod
    def from_gpt2_files(cls, encoder_json: StrPath, vocab_bpe: StrPath) -> BPETokenizer:
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
            >>> from tinytorch.text.tokenizer_files import bytes_to_letters
            >>> folder = pathlib.Path(tempfile.mkdtemp())
            >>> ids = {bytes_to_letters(bytes([i])): i for i in range(256)} | {"lo": 256}
            >>> encoder, merges = folder / "encoder.json", folder / "vocab.bpe"
            >>> _ = encoder.write_text(json.dumps(ids))
            >>> _ = merges.write_text("#version: 0.2\nl o\n")
            >>> BPETokenizer.from_gpt2_files(encoder, merges).merges
            [(b'l', b'o')]
        """
        with tokenizer_files.damaged(encoder_json):
            return cls(*tokenizer_files.read_gpt2(encoder_json, vocab_bpe))

    @classmethod
    def from_tokenizer_json(cls, path: StrPath) -> BPETokenizer:
        r"""Read the byte-level BPE of a `tokenizer.json`, which transformers saves.

        Args:
            path: the file; its merges may be written in either layout.

        Returns:
            A tokenizer that gives each text the ids that the file means; its added tokens are
            special.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged, or has something that would give other ids: a
                normalizer, a way to cut a text that `split_like` lacks, tokens added to every text.

        Example:
            >>> import pathlib, tempfile
            >>> path = pathlib.Path(tempfile.mkdtemp()) / "tokenizer.json"
            >>> _ = path.write_text('{"model": {"type": "WordPiece"}}')
            >>> BPETokenizer.from_tokenizer_json(path)  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            ...
            ValueError: cannot read ...: its model.type is "WordPiece", not "BPE":
            this is not GPT-2's byte-level BPE; encode with the library that wrote it,
            and pass ids
        """
        with tokenizer_files.damaged(path):
            return cls(*tokenizer_files.read_tokenizer_json(path))

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any]) -> BPETokenizer:
        r"""Read the byte-level BPE in the metadata of a GGUF file.

        `encode` gives the ids of the text alone, even where the file asks for a beginning
        (`tokenizer.ggml.add_bos_token`): that is left to the caller.

        Args:
            metadata: names and values, of which those that begin with `tokenizer.ggml.` are read.

        Returns:
            The tokenizer; the tokens that the file does not call normal are special.

        Raises:
            ValueError: the metadata are damaged, or of a tokenizer or pre-tokenizer that is not
                supported; the message names it.

        Example:
            >>> tokens, kinds = ["l", "o", "lo", "1", "<|end|>"], [1, 1, 1, 1, 3]
            >>> said = {"model": "gpt2", "pre": "smollm", "tokens": tokens, "token_type": kinds}
            >>> said = {f"tokenizer.ggml.{key}": value for key, value in said.items()}
            >>> tokenizer = BPETokenizer.from_gguf({**said, "tokenizer.ggml.merges": ["l o"]})
            >>> tokenizer.encode("lo11<|end|>", "all")
            [2, 3, 3, 4]
        """
        return cls(*tokenizer_files.read_gguf(metadata))


def _check_vocabulary(
    ranks: Mapping[bytes, int], specials: Mapping[str, int], merges: Collection[Pair] | None
) -> bytes:
    """The bytes that no token writes, which only a list of merges allows; each id is one token's.

    Raises:
        TypeError: as `BPETokenizer`.
        ValueError: likewise.
    """
    for what, given in (("ranks", ranks), ("special_tokens", specials)):
        if not isinstance(given, Mapping):
            raise TypeError(f"{what} must map tokens to ids, got {type(given).__name__}")
    checked_names(specials)
    for token in ranks:
        if not isinstance(token, bytes) or not token:
            raise TypeError(f"a token is one byte or more, got {token!r}")
    owners: dict[int, object] = {}
    for owner, i in [*ranks.items(), *specials.items()]:
        check_natural(i, f"the id of {owner!r}")
        if owners.setdefault(int(i), owner) != owner:
            raise ValueError(f"{owners[int(i)]!r} and {owner!r} both have the id {i}")
    missing = [token for token in _BYTES if token not in ranks]
    if missing and merges is None:
        what = f"{len(missing)} of the 256 single bytes have no id, the first is {missing[0]!r}"
        raise ValueError(f"{what}: not every text could be encoded")
    for left, right in merges or ():
        if left + right not in ranks:
            raise ValueError(f"a merge makes {left + right!r}, which has no id")
    return b"".join(missing)
