"""Tokenizers in files: our own JSON, GPT-2's pair of files, and tiktoken's lines.

All of them are text. Reading one runs nothing that the file says, and a file that is damaged is
refused with the reason. GPT-2's files and ours write bytes as letters: a byte that is a visible
character of Latin-1 stands for itself, the others take the letters from U+0100 on, so that a space
is "Ġ" and a newline "Ċ".
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from tinytorch.core.atomic_files import write_atomically

__all__ = ["bytes_to_letters", "letters_to_bytes"]

_CHARACTERS = "tinytorch characters"
_BPE = "tinytorch byte-pair encoding"
_VERSION = 1

Path_ = str | os.PathLike[str]
Vocabulary = tuple[dict[bytes, int], dict[str, int]]


def _letters() -> list[str]:
    """The letter of each byte."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in visible]
    letters = {byte: chr(byte) for byte in visible}
    letters.update((byte, chr(0x100 + i)) for i, byte in enumerate(others))
    return [letters[byte] for byte in range(256)]


_LETTERS = _letters()
_BYTES = {letter: byte for byte, letter in enumerate(_LETTERS)}


def bytes_to_letters(token: bytes) -> str:
    r"""Bytes in the alphabet of GPT-2's files.

    Example:
        >>> bytes_to_letters(b" f\xc3\xbcr\n")
        'ĠfÃ¼rĊ'
    """
    return "".join([_LETTERS[byte] for byte in token])


def letters_to_bytes(letters: str) -> bytes:
    r"""The bytes that a word of GPT-2's files stands for.

    Raises:
        ValueError: a character is not one of the 256 letters.

    Example:
        >>> letters_to_bytes("ĠfÃ¼rĊ")
        b' f\xc3\xbcr\n'
    """
    try:
        return bytes([_BYTES[letter] for letter in letters])
    except KeyError as error:
        raise ValueError(
            f"{letters!r} is not a token: {error.args[0]!r} is not one of the 256 letters that "
            "stand for bytes"
        ) from None


# ------------------------------------------------------------------------- our own files


def write_characters(path: Path_, alphabet: str) -> None:
    """Write a `CharTokenizer`."""
    _write(path, {"format": _CHARACTERS, "version": _VERSION, "alphabet": alphabet})


def read_characters(path: Path_) -> str:
    """The alphabet in a file of a `CharTokenizer`."""
    alphabet = _read(path, _CHARACTERS).get("alphabet")
    if not isinstance(alphabet, str):
        raise ValueError(f"its alphabet is {alphabet!r}, not a string")
    if alphabet != "".join(sorted(set(alphabet))):
        raise ValueError("its alphabet is not sorted, or has a character twice")
    return alphabet


def write_bpe(path: Path_, ranks: Mapping[bytes, int], special_tokens: Mapping[str, int]) -> None:
    """Write a `BPETokenizer`."""
    content = {
        "format": _BPE,
        "version": _VERSION,
        "size": len(ranks) + len(special_tokens),
        "special_tokens": dict(special_tokens),
        "tokens": {bytes_to_letters(token): i for token, i in ranks.items()},
    }
    _write(path, content)


def read_bpe(path: Path_) -> Vocabulary:
    """The tokens and the special tokens in a file of a `BPETokenizer`."""
    content = _read(path, _BPE)
    tokens = _ids(content.get("tokens"), "tokens")
    specials = _ids(content.get("special_tokens"), "special tokens")
    if len(tokens) + len(specials) != content.get("size"):
        raise ValueError(
            f"it has {len(tokens)} tokens and {len(specials)} special tokens, but says that "
            f"together they are {content.get('size')!r}"
        )
    return {letters_to_bytes(letters): i for letters, i in tokens.items()}, specials


def _write(path: Path_, content: dict[str, Any]) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
    write_atomically(path, text.encode())


def _read(path: Path_, kind: str) -> dict[str, Any]:
    """The JSON object in a file, if it is of this kind."""
    content = _parse(path)
    if not isinstance(content, dict) or content.get("format") not in (_CHARACTERS, _BPE):
        raise ValueError("it is JSON, but not a tokenizer that `save` wrote")
    if content["format"] != kind:
        owner = {_CHARACTERS: "CharTokenizer", _BPE: "BPETokenizer"}[content["format"]]
        raise ValueError(f"its format is {content['format']!r}; read it with {owner}.load")
    if content.get("version") != _VERSION:
        raise ValueError(
            f"its version is {content.get('version')!r}, and this package reads version {_VERSION}"
        )
    return content


# ----------------------------------------------------------------------- files of others


def read_gpt2(encoder_json: Path_, vocab_bpe: Path_) -> Vocabulary:
    """The tokens and the special tokens in GPT-2's two files."""
    encoder = _ids(_parse(encoder_json), "tokens")
    with damaged(vocab_bpe):
        merged = _read_merges(vocab_bpe)
        ids = [_id_of(letters, encoder, encoder_json) for letters in merged]
        for letters, (before, after) in zip(merged[1:], pairwise(ids), strict=True):
            if after <= before:
                raise ValueError(
                    f"{letters!r} has the id {after} in {os.fspath(encoder_json)}, and the merge "
                    f"before it the id {before}: the two files do not belong together"
                )
    known = {*_LETTERS, *merged}
    specials = {name: i for name, i in encoder.items() if name not in known}
    for name in specials:
        if not re.fullmatch(r"<\|.+\|>", name):
            raise ValueError(
                f"no merge in {os.fspath(vocab_bpe)} makes its token {name!r}: the two files do "
                "not belong together"
            )
    return {letters_to_bytes(t): i for t, i in encoder.items() if t in known}, specials


def _read_merges(path: Path_) -> list[str]:
    """What the merges make, in their order."""
    known, merged = set(_LETTERS), []
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        sides = line.rstrip("\r").split(" ")
        if len(sides) != 2 or not all(sides):
            raise ValueError(f"line {number} is {line!r}, not two tokens with a space between them")
        for side in sides:
            if side not in known:
                raise ValueError(f"line {number} joins {side!r}, which no line above it makes")
        known.add("".join(sides))
        merged.append("".join(sides))
    return merged


def _id_of(letters: str, encoder: dict[str, int], encoder_json: Path_) -> int:
    if letters not in encoder:
        raise ValueError(
            f"a merge makes {letters!r}, which {os.fspath(encoder_json)} does not have: the two "
            "files do not belong together"
        )
    return encoder[letters]


def read_tiktoken(path: Path_) -> dict[bytes, int]:
    """The tokens in a file of tiktoken: base64, a space, and the id."""
    import base64

    ranks: dict[bytes, int] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            letters, rank = line.split()
            token = base64.b64decode(letters, validate=True)
            i = int(rank)
        except ValueError as error:
            raise ValueError(
                f"line {number} is {line[:60]!r}, not a token in base64 and its id ({error})"
            ) from None
        if token in ranks:
            raise ValueError(f"line {number} has the token {token!r} for a second time")
        ranks[token] = i
    return ranks


# ------------------------------------------------------------------------- what all share


class _Damaged(ValueError):
    """What is wrong with which file."""


@contextmanager
def damaged(path: Path_) -> Iterator[None]:
    """Say in which file it is that something is wrong."""
    try:
        yield
    except _Damaged:
        raise  # one of its two files, which has been named
    except ValueError as error:
        name = os.fspath(path)
        raise _Damaged(f"cannot read {name!r} as a tokenizer: {error}") from None


def _text(path: Path_) -> str:
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"there is no file {str(file)!r} (looked from {str(Path.cwd())!r})")
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8: {error.reason} at byte {error.start}") from None


def _parse(path: Path_) -> Any:
    """The JSON in a file; a name that is given twice is an error."""
    try:
        return json.loads(_text(path), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"it is not whole: as JSON it stops making sense in line {error.lineno}, column "
            f"{error.colno} ({error.msg})"
        ) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it has {twice!r} twice")
    return content


def _ids(content: Any, what: str) -> dict[str, int]:
    """A JSON object of names and integers."""
    if not isinstance(content, dict):
        raise ValueError(f"its {what} are {type(content).__name__}, not names with their ids")
    for name, i in content.items():
        if not isinstance(i, int) or isinstance(i, bool):
            raise ValueError(f"the id of {name!r} is {i!r}, not an integer")
    return content
