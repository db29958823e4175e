"""Tokenizers in files: our own JSON, GPT-2's pair of files, `tokenizer.json`, and GGUF.

All but GGUF are text. Reading a file never runs anything in it, and the error for a damaged file
gives the reason. All of them write bytes as letters: a byte that is a visible character
of Latin-1 is written as itself, the others as the letters from U+0100 on. A space is "Ġ", and a
newline is "Ċ".
"""

from __future__ import annotations

import json
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from tinytorch.files.atomic_files import StrPath, readable_file, write_atomically
from tinytorch.files.byte_order_marks import decode_marked
from tinytorch.files.strict_json import parse_json
from tinytorch.text.bpe import Pair
from tinytorch.text.pretokenization import LLAMA_PATTERN, PRETOKENIZERS

Vocabulary = tuple[dict[bytes, int], dict[str, int]]
#: The arguments of a `BPETokenizer`.
Encoding = tuple[dict[bytes, int], dict[str, int], Iterable[Pair] | None, str]

CHARACTERS, BPE = "tinytorch characters", "tinytorch byte-pair encoding"
_VISIBLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _VISIBLE]
_LETTERS = {b: chr(b) for b in _VISIBLE} | {b: chr(0x100 + i) for i, b in enumerate(_OTHERS)}
_BYTES = {letter: byte for byte, letter in _LETTERS.items()}


def bytes_to_letters(token: bytes) -> str:
    r"""Bytes in the alphabet of GPT-2's files.

    Example:
        >>> bytes_to_letters(b" f\xc3\xbcr\n")
        'ĠfÃ¼rĊ'
    """
    return "".join([_LETTERS[byte] for byte in token])


def letters_to_bytes(letters: str) -> bytes:
    r"""The bytes that a word of GPT-2's files represents."""
    try:
        return bytes([_BYTES[letter] for letter in letters])
    except KeyError as error:
        reason = f"{error.args[0]!r} is not one of the 256 letters that stand for bytes"
        raise ValueError(f"{letters!r} is not a token: {reason}") from None


# ------------------------------------------------------------------------- our own files


def write(path: StrPath, kind: str, **content: object) -> None:
    """Write a tokenizer of one kind as JSON, with a checksum."""
    content = {"format": kind, "version": 1, **content}
    content["checksum"] = _checksum(content)
    write_atomically(path, f"{json.dumps(content, ensure_ascii=False, indent=1)}\n".encode())


@contextmanager
def own(path: StrPath, kind: str) -> Iterator[dict[str, Any]]:
    """The content of a file that `write` has written; every error names the file.

    The checksum is verified last, once nothing else was found wrong. Older files have none.
    """
    with damaged(path):
        content = _read(path, kind)
        checksum = content.pop("checksum", None)
        yield content
        if checksum not in (None, _checksum(content)):
            raise ValueError("it is damaged: its checksum is wrong; use another copy")


def _checksum(content: dict[str, Any]) -> str:
    """The CRC-32 of the content of a file, independent of its layout."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def characters(content: dict[str, Any]) -> str:
    """The alphabet in a file of a `CharTokenizer`."""
    alphabet = content.get("alphabet")
    if not isinstance(alphabet, str) or alphabet != "".join(sorted(set(alphabet))):
        raise ValueError(f"its alphabet is {alphabet!r:.60}, not a string of sorted characters")
    return alphabet


def write_bpe(path: StrPath, encoding: Encoding) -> None:
    """Write a `BPETokenizer`; of merges and pre-tokenizer only what is not the usual."""
    ranks, special_tokens, merges, pretokenizer = encoding
    unusual: dict[str, object] = {} if pretokenizer == "gpt-2" else {"pretokenizer": pretokenizer}
    if merges is not None:
        unusual["merges"] = [" ".join(map(bytes_to_letters, pair)) for pair in merges]
    tokens = {bytes_to_letters(token): i for token, i in ranks.items()}
    size = len(tokens) + len(special_tokens)
    write(path, BPE, size=size, special_tokens=dict(special_tokens), tokens=tokens, **unusual)


def vocabulary(content: dict[str, Any]) -> Encoding:
    """What a file of a `BPETokenizer` says."""
    tokens = _ids(content.get("tokens"), "tokens")
    specials = _ids(content.get("special_tokens"), "special tokens")
    if len(tokens) + len(specials) != content.get("size"):
        there = f"{len(tokens)} tokens and {len(specials)} special tokens"
        raise ValueError(f"it has {there}, but declares the size {content.get('size')!r}")
    ranks = {letters_to_bytes(letters): i for letters, i in tokens.items()}
    merges = _pairs(content["merges"]) if "merges" in content else None
    return ranks, specials, merges, content.get("pretokenizer", "gpt-2")


def _read(path: StrPath, kind: str) -> dict[str, Any]:
    """The JSON object in a file, if it is of this kind."""
    content = parse_json(readable_file(path).read_bytes())
    found = content.get("format") if isinstance(content, dict) else None
    if found != kind:
        other = {CHARACTERS: "CharTokenizer", BPE: "BPETokenizer"}.get(str(found))
        remedy = f"read it with {other}.load" if other else "`save` did not write it"
        raise ValueError(f"its format is {found!r}, not {kind!r}; {remedy}")
    if content.get("version") != 1:
        raise ValueError(f"its version is {content.get('version')!r}; this package reads version 1")
    return content


# ----------------------------------------------------------------------- files of others


def read_gpt2(encoder_json: StrPath, vocab_bpe: StrPath) -> Vocabulary:
    """The tokens and the special tokens in GPT-2's two files."""
    encoder = _ids(parse_json(readable_file(encoder_json).read_bytes()), "tokens")
    merged = _read_merges(vocab_bpe)
    known = {*_BYTES, *merged}
    specials = {name: i for name, i in encoder.items() if name not in known}
    apart = f"{os.fspath(vocab_bpe)!r} does not belong to it: "
    for token, following in pairwise([*merged, ""]):
        if token not in encoder:
            raise ValueError(f"{apart}a merge makes {token!r}, which has no id")
        if encoder.get(following, math.inf) <= encoder[token]:
            raise ValueError(f"{apart}{following!r} is merged after {token!r}, but has a lower id")
    for name in specials:
        if not re.fullmatch(r"<\|.+\|>", name):
            raise ValueError(f"{apart}no merge makes the token {name!r}")
    return {letters_to_bytes(t): i for t, i in encoder.items() if t in known}, specials


# What a tokenizer.json must say for its ids to be those of `BPETokenizer`: each part, or a name in
# it, and its allowed values. Other names in it (`trim_offsets`, `unk_token`) change no id.
_ALLOWED: dict[tuple[str, ...], tuple[Any, ...]] = {
    ("model", "type"): ("BPE",),
    ("model", "dropout"): (None, 0),
    ("model", "continuing_subword_prefix"): (None, ""),
    ("model", "end_of_word_suffix"): (None, ""),
    ("model", "ignore_merges"): (None, False),
    ("normalizer",): (None,),
    ("pre_tokenizer", "type"): ("ByteLevel",),
    ("pre_tokenizer", "add_prefix_space"): (False,),
    ("pre_tokenizer", "use_regex"): (None, True),
    ("decoder", "type"): ("ByteLevel",),
    ("truncation",): (None,),
    ("padding",): (None,),
    ("post_processor", "type"): (None, "ByteLevel", "TemplateProcessing"),
}
_LLAMA = {("model", "ignore_merges"): (True,), ("pre_tokenizer", "use_regex"): (False,)}
# What comes before ByteLevel in the sequence of a pre_tokenizer.
_SPLIT = {"pattern": {"Regex": LLAMA_PATTERN}, "behavior": "Isolated", "invert": False}
_FIRST_STEPS: dict[str, object] = {
    "smollm": {"type": "Digits", "individual_digits": True},
    "llama-bpe": {"type": "Split", **_SPLIT},
}
_UNCHANGED = [{"Sequence": {"id": "A"}}]
_REFUSED = "this is not GPT-2's byte-level BPE; encode with the library that wrote it, and pass ids"


def read_tokenizer_json(path: StrPath) -> Encoding:
    """What a `tokenizer.json` of byte-level BPE says; its added tokens are the special ones.

    What would give other ids is refused.
    """
    content = parse_json(readable_file(path).read_bytes())
    pretokenizer = _pretokenizer(content) if isinstance(content, dict) else "gpt-2"
    for names, allowed in (_ALLOWED | (_LLAMA if pretokenizer == "llama-bpe" else {})).items():
        value = content
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if value not in allowed:
            shown = " or ".join(map(json.dumps, allowed))
            what = f"its {'.'.join(names)} is {json.dumps(value)[:60]}, not {shown}"
            raise ValueError(f"{what}: {_REFUSED}")
    after = content.get("post_processor")
    template = after.get("single", _UNCHANGED) if isinstance(after, dict) else _UNCHANGED
    if not isinstance(template, list) or [str(part)[:12] for part in template] != ["{'Sequence':"]:
        raise ValueError(f"its post_processor adds tokens to every text: {_REFUSED}")
    specials = _added(content.get("added_tokens") or [])
    encoder = _ids(content["model"].get("vocab"), "tokens")
    merges = _pairs(content["model"].get("merges"))
    known = {*_BYTES, *(bytes_to_letters(left + right) for left, right in merges)}
    for name, i in encoder.items():
        if specials.get(name, i) != i or (name not in specials and name not in known):
            what = f"no merge makes the token {name!r}, and it is not an added token with id {i}"
            raise ValueError(f"{what}: {_REFUSED}")
    for setting in ("unk_token", "byte_fallback"):
        if content["model"].get(setting) and not encoder.keys() >= _BYTES.keys():
            what = f"its model.{setting} would stand for the bytes that have no id"
            raise ValueError(f"{what}: {_REFUSED}")
    ranks = {letters_to_bytes(t): i for t, i in encoder.items() if t in known}
    return ranks, specials, merges, pretokenizer


def _pretokenizer(content: dict[str, Any]) -> str:
    """The name of the pre-tokenizer, of whose steps only the last remains in the content."""
    match content.get("pre_tokenizer"):
        case {"type": "Sequence", "pretokenizers": [first, last]}:
            for name, step in _FIRST_STEPS.items():
                if first == step:
                    content["pre_tokenizer"] = last
                    return name
    return "gpt-2"


def read_gguf(metadata: Mapping[str, Any]) -> Encoding:
    """What the metadata of a GGUF file say of its byte-level BPE."""
    for name, allowed in (("model", ("gpt2",)), ("pre", PRETOKENIZERS)):
        if (found := metadata.get(f"tokenizer.ggml.{name}")) not in allowed:
            what = f"its tokenizer.ggml.{name} is {found!r}, not {' or '.join(map(repr, allowed))}"
            raise ValueError(f"{what}; encode with the program that wrote it, and pass ids")
    tokens, kinds = (metadata.get(f"tokenizer.ggml.{k}", ()) for k in ("tokens", "token_type"))
    different = {token for token in tokens if isinstance(token, str) and token}
    if not len(kinds) == len(tokens) == len(different):
        what = f"{len(tokens)} tokens, {len(different)} different texts, and {len(kinds)} types"
        raise ValueError(f"its tokenizer is damaged: it has {what}; use another copy")
    ranks = {letters_to_bytes(token): i for i, token in enumerate(tokens) if kinds[i] == 1}
    specials = {token: i for i, token in enumerate(tokens) if kinds[i] != 1}
    merges = _pairs(metadata.get("tokenizer.ggml.merges"))
    return ranks, specials, merges, metadata["tokenizer.ggml.pre"]


def _added(tokens: object) -> dict[str, int]:
    """The added tokens, each of which occurs in a text exactly as written."""
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise ValueError("its added_tokens are not a list of objects")
    found = {}
    for token in tokens:
        name = token["content"] if isinstance(token.get("content"), str) else ""
        for flag in ("single_word", "lstrip", "rstrip"):
            if token.get(flag):
                what = f"its added token {name!r} has {flag}, which changes where it is found"
                raise ValueError(f"{what}: {_REFUSED}")
        found[name] = token.get("id")
    return _ids(found, "added tokens")


def _pairs(merges: object) -> list[Pair]:
    """The merges, each of which is written as "a b" or as ["a", "b"]."""
    if not isinstance(merges, list):
        raise ValueError(f"its merges are {type(merges).__name__}, not a list")
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    for pair in pairs:
        if not isinstance(pair, list) or [*map(type, pair)] != [str, str] or not all(pair):
            raise ValueError(f"its merge {pair!r:.60} is not two tokens")
    return [(letters_to_bytes(left), letters_to_bytes(right)) for left, right in pairs]


def _read_merges(path: StrPath) -> list[str]:
    """What the merges make, in order."""
    merged: list[str] = []
    known = set(_BYTES)
    with damaged(path):
        lines = decode_marked(readable_file(path).read_bytes()).splitlines()
        for number, line in enumerate(lines, 1):
            if line.strip() and not (number == 1 and line.startswith("#version")):
                sides = line.split(" ")
                if len(sides) != 2 or not known.issuperset(sides):
                    wrong = "not two tokens of the lines above with a space between them"
                    raise ValueError(f"line {number} is {line!r}, {wrong}")
                merged.append("".join(sides))
                known.add("".join(sides))
    return merged


# ------------------------------------------------------------------------- shared helpers


@contextmanager
def damaged(path: StrPath) -> Iterator[None]:
    """Name the file in which something is wrong."""
    try:
        yield
    except ValueError as error:
        if str(error).startswith("cannot read"):
            raise  # an error in the other of two files, already named
        wrong = f"it is not UTF-8, {error}" if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"cannot read {os.fspath(path)!r} as a tokenizer: {wrong}") from None


def _ids(content: object, what: str) -> dict[str, int]:
    """A JSON object of names and integers."""
    if not isinstance(content, dict):
        raise ValueError(f"its {what} are {type(content).__name__}, not names with their ids")
    for name, i in content.items():
        if not name:
            raise ValueError(f"one of its {what} is empty")
        if not isinstance(i, int) or isinstance(i, bool):
            raise ValueError(f"the id of {name!r} is {i!r}, not an integer")
    return content
