"""Training texts: the prose of this book, and your own text.

Both are one string, ready for a tokenizer: `book_prose` is the text of this book's chapters at a
release, and `load_text` reads a file, or downloads one, checks it and keeps it. `describe_text`
summarises a text. Stories with a known entropy come from `tinytorch_book.stories`.
"""

import gzip
import hashlib
import os
import re
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from tinytorch.core.arguments import check_sizes
from tinytorch.files.atomic_files import StrPath, readable_file
from tinytorch.text.file_encodings import decode_text

__all__ = [
    "TextFacts",
    "book_prose",
    "book_prose_version",
    "compressed_bits",
    "describe_text",
    "load_text",
]

_TIMEOUT = 30.0  # seconds without a byte


def book_prose() -> str:
    """The prose of this book: the paragraphs of its chapters, in reading order.

    It is a fixed corpus, taken from the chapters at a release (`book_prose_version`): training on
    it gives the same numbers while the chapters go on changing.

    Returns:
        One string; it comes with the package, so no network is needed.

    Raises:
        FileNotFoundError: the package was built without its data.

    Example:
        >>> "tensor" in book_prose()
        True
    """
    return _read_prose().partition("\n")[2]


def book_prose_version() -> str:
    """The version of `book_prose`: a number, and the date on which it was taken from the book.

    Returns:
        One line.

    Raises:
        FileNotFoundError: the package was built without its data.

    Example:
        >>> book_prose_version()
        'Version 1, 2026-11-23'
    """
    return _read_prose().partition("\n")[0]


def _read_prose() -> str:
    """The file of the prose, whose first line is its version."""
    file = resources.files("tinytorch.text") / "data" / "book_prose.txt"
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        remedy = "in a clone of the book, `make corpus` writes it; otherwise, install it again"
        raise FileNotFoundError(f"{file} is missing: {remedy}") from None


def load_text(
    path_or_url: StrPath,
    sha256: str | None = None,
    cache_dir: StrPath | None = None,
    *,
    encoding: str | None = None,
    first_bytes: int | None = None,
    max_bytes: int = 100_000_000,
) -> str:
    r"""Read your own text: a local file, or a URL whose content you identify by its SHA-256.

    An interrupted download is resumed, checked, and only then cached; the next call reads it from
    there and needs no network. Newlines are universal: ``\r\n`` and ``\r`` become ``\n``. A
    byte-order mark says whether the text is in UTF-8, UTF-16 or UTF-32, and is dropped; without
    one, UTF-8 is assumed. The checksum is that of the stored bytes.

    Args:
        path_or_url: a path, or an ``http:`` or ``https:`` URL.
        sha256: the SHA-256 of the file, 64 hexadecimal digits. A download must have one: the same
            address may send another text tomorrow. For a local file it is optional.
        cache_dir: where downloads are kept; by default the user's cache folder for `tinytorch`,
            on Linux ``~/.cache/tinytorch``.
        encoding: how the characters are stored, for instance "cp1252"; None to detect it.
        first_bytes: read only the beginning of a long text, up to the last whole character within
            this many bytes; None for all of it.
        max_bytes: refuse to read more than this.

    Returns:
        The text.

    Raises:
        TypeError: `path_or_url` is not a path or a URL.
        FileNotFoundError: there is no such file.
        ConnectionError: the download failed; the message says how to do without it.
        ValueError: the checksum is missing, malformed or different; the text is empty, too large
            or in another encoding; or the file is a PDF, a Word document, a picture, an archive or
            another that holds no text. The message says what to do.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "poem.txt"
        >>> _ = path.write_bytes(b"Roses are red.\r\n")
        >>> load_text(path)
        'Roses are red.\n'
    """
    if not isinstance(path_or_url, (str, os.PathLike)):
        raise TypeError(f"load_text needs a path or a URL as a string, got {path_or_url!r}")
    check_sizes(max_bytes=max_bytes, first_bytes=1 if first_bytes is None else first_bytes)
    if sha256 is not None and not re.fullmatch(r"[0-9A-Fa-f]{64}", str(sha256)):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    name = str(os.fspath(path_or_url))
    if re.match("https?://", name, re.IGNORECASE):
        path = _download(name, sha256, cache_dir)
    elif re.match("[a-z][a-z0-9+.-]+:/", name, re.IGNORECASE):
        raise ValueError(f"load_text reads paths, and http and https URLs, got {name!r}")
    else:
        path = Path(name)
    content = _read(path, sha256, max_bytes, first_bytes)
    cut = first_bytes is not None and len(content) > first_bytes
    return decode_text(content[:first_bytes], name, encoding, cut)


def _read(path: Path, sha256: str | None, max_bytes: int, first_bytes: int | None) -> bytes:
    """The bytes of a file, at least the first ones, once its size and checksum are verified."""
    alone = first_bytes is not None and sha256 is None  # the rest is not needed
    limit = first_bytes if first_bytes is not None and alone else max_bytes
    with readable_file(path).open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit and not alone:
        remedy = "pass a larger max_bytes=, or first_bytes= to read its beginning"
        raise ValueError(f"{path} has more than {max_bytes} bytes; {remedy}")
    actual = hashlib.sha256(content).hexdigest() if sha256 is not None else None
    if sha256 is not None and actual != sha256.lower():
        remedy = "look at it, and pass its checksum if this is the text you want"
        raise ValueError(f"{path}: its SHA-256 is {actual}, not {sha256}; {remedy}")
    return content


# ------------------------------------------------------------------------------ a first look


class TextFacts(NamedTuple):
    r"""The result of `describe_text`; it prints as three lines.

    Attributes:
        bytes: the length of the text in UTF-8.
        characters: its length in characters.
        lines: how many lines there are.
        alphabet: each character that occurs, the most frequent one first.
        gzip: bits that `gzip` needs for each byte.
        xz: and `xz`, which looks further back.

    Example:
        >>> describe_text("to be or not to be\n").alphabet
        ' otbern\n'
    """

    bytes: int
    characters: int
    lines: int
    alphabet: str
    gzip: float
    xz: float

    def __str__(self) -> str:
        sizes = f"{self.bytes:,} bytes, {self.characters:,} characters, {self.lines:,} lines"
        often = f"most often {self.alphabet[:16]!r}"
        squeezed = f"gzip {self.gzip:.1f} bits a byte, xz {self.xz:.1f}"
        return f"{sizes}\n{len(self.alphabet)} different characters, {often}\n{squeezed}"


def describe_text(text: str) -> TextFacts:
    r"""Look at a text before training on it: its size, its alphabet, and how well it compresses.

    Args:
        text: any text that is not empty.

    Returns:
        The facts.

    Raises:
        ValueError: the text is empty.

    Example:
        >>> print(describe_text("the cat saw the dog\n" * 100))
        2,000 bytes, 2,000 characters, 100 lines
        12 different characters, most often ' theacswdog\n'
        gzip 0.2 bits a byte, xz 0.4
    """
    often = "".join(character for character, _ in Counter(text).most_common())
    bits = compressed_bits(text)
    return TextFacts(len(text.encode()), len(text), len(text.splitlines()), often, **bits)


def compressed_bits(text: str, before: str = "") -> dict[str, float]:
    """How many bits for each byte two compressors need: the bar for a model's bits per byte.

    A compressor that predicts a text well stores it in few bits, so it can be compared with a model
    trained on `before` and tested on `text`.

    Args:
        text: the text that is measured; it must not be empty.
        before: what the compressor has already read, like the model's training text.

    Returns:
        Bits a byte by name, `gzip` and `xz`: what `text` adds to the compressed size of `before`.

    Raises:
        ValueError: the text is empty.

    Example:
        >>> bits = compressed_bits("0123456789" * 50, before="0123456789" * 50)
        >>> bits["gzip"] < 0.1  # nothing new
        True
    """
    import lzma  # here, since not every Python has it

    if not text:
        raise ValueError("compressed_bits and describe_text need a non-empty text")
    first, both = before.encode(), (before + text).encode()
    size = len(both) - len(first)
    return {
        name: 8 * (len(press(both)) - (len(press(first)) if before else 0)) / size
        for name, press in (("gzip", gzip.compress), ("xz", lzma.compress))
    }


# ------------------------------------------------------------------------------ downloads


def _download(url: str, sha256: str | None, cache_dir: StrPath | None) -> Path:
    """The path of the content of a URL, which is downloaded unless it is there and complete."""
    if sha256 is None:
        how = "hashlib.sha256(open(FILE, 'rb').read()).hexdigest()"
        remedy = f"download it once, look at it, and pass {how}, or the path of your copy"
        raise ValueError(f"{url} needs sha256=, because its text may change: {remedy}")
    from tinytorch.files.downloads import cache_folder, download  # urllib loads slowly

    folder = cache_folder() if cache_dir is None else Path(cache_dir)
    try:
        return download(url, folder / f"{sha256.lower()}.txt", sha256=sha256, timeout=_TIMEOUT)
    except ConnectionError as error:
        raise ConnectionError(f"{error}, or pass the path of your copy") from None
    except OSError as error:
        raise OSError(f"cannot write to {folder} ({error}); pass another cache_dir=") from error
