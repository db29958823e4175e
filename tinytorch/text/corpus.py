"""Something to read: the prose of this book, and your own text.

Both are one string, ready for a tokenizer: `book_prose` is the text of this book's chapters, and
`load_text` reads a file of yours, or downloads one, checks it and keeps it. Stories whose entropy
is known come from `tinytorch.stories`.
"""

import hashlib
import os
import re
from importlib import resources
from pathlib import Path

from tinytorch.core.arguments import check_sizes
from tinytorch.core.atomic_files import StrPath, readable_file

__all__ = ["book_prose", "load_text"]

_TIMEOUT = 30.0  # seconds without a byte


def book_prose() -> str:
    """The prose of this book: the paragraphs of its chapters, in reading order.

    Returns:
        One string; it comes with the package, so no network is needed.

    Raises:
        FileNotFoundError: the package was built without its data.

    Example:
        >>> "tensor" in book_prose()
        True
    """
    file = resources.files("tinytorch.text") / "data" / "book_prose.txt"
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        remedy = "in a clone of the book, `make notebooks` writes it; otherwise, install it again"
        raise FileNotFoundError(f"{file} is missing: {remedy}") from None


def load_text(
    path_or_url: StrPath,
    sha256: str | None = None,
    cache_dir: StrPath | None = None,
    *,
    max_bytes: int = 100_000_000,
) -> str:
    r"""Read a text of your own: a local file, or a URL whose content you identify by its SHA-256.

    A download is resumed after a break, checked, and only then put in the cache; the next call
    reads it from there and needs no network. Newlines are universal: ``\r\n`` and ``\r`` become
    ``\n``, and a byte-order mark at the beginning is dropped. The checksum is that of the bytes as
    they are stored.

    Args:
        path_or_url: a path, or an ``http:`` or ``https:`` URL.
        sha256: the SHA-256 of the file, 64 hexadecimal digits. A download must have one: the same
            address may send another text tomorrow. For a local file it is optional.
        cache_dir: where downloads are kept; by default the user's cache folder for `tinytorch`,
            on Linux ``~/.cache/tinytorch``.
        max_bytes: refuse anything larger.

    Returns:
        The text.

    Raises:
        TypeError: `path_or_url` is not a path or a URL.
        FileNotFoundError: there is no such file.
        ConnectionError: the download failed; the message says how to do without it.
        ValueError: the checksum is missing, malformed or different; the text is empty, too large
            or not UTF-8.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "poem.txt"
        >>> _ = path.write_bytes(b"Roses are red.\r\n")
        >>> load_text(path)
        'Roses are red.\n'
    """
    if not isinstance(path_or_url, (str, os.PathLike)):
        raise TypeError(f"load_text needs a path or a URL as a string, got {path_or_url!r}")
    check_sizes(max_bytes=max_bytes)
    if sha256 is not None and not re.fullmatch(r"[0-9A-Fa-f]{64}", str(sha256)):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    name = str(os.fspath(path_or_url))
    if re.match("https?://", name, re.IGNORECASE):
        path = _download(name, sha256, cache_dir)
    elif re.match("[a-z][a-z0-9+.-]+:/", name, re.IGNORECASE):
        raise ValueError(f"load_text reads paths, and http and https URLs, got {name!r}")
    else:
        path = Path(name)
    return _decode(name, _read(path, sha256, max_bytes))


def _read(path: Path, sha256: str | None, max_bytes: int) -> bytes:
    """The bytes of a file, if they are the expected ones and not too many."""
    with readable_file(path).open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"{path} has more than {max_bytes} bytes; pass a larger max_bytes=")
    actual = hashlib.sha256(content).hexdigest()
    if sha256 is not None and actual != sha256.lower():
        remedy = "look at it, and pass its checksum if this is the text you want"
        raise ValueError(f"{path}: its SHA-256 is {actual}, not {sha256}; {remedy}")
    return content


def _decode(name: str, content: bytes) -> str:
    """UTF-8 with universal newlines, or an error that says where it stops being UTF-8."""
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = f"byte 0x{content[error.start]:02x} at position {error.start} (line {line})"
        raise ValueError(f"{name} is not UTF-8: {where}; save it as UTF-8") from None
    if not text.strip():
        raise ValueError(f"{name} is empty: there is nothing to read in its {len(content)} bytes")
    return text.replace("\r\n", "\n").replace("\r", "\n")


# ------------------------------------------------------------------------------ downloads


def _download(url: str, sha256: str | None, cache_dir: StrPath | None) -> Path:
    """Where the content of a URL is kept, after downloading it if it is not there and whole."""
    if sha256 is None:
        how = "hashlib.sha256(open(FILE, 'rb').read()).hexdigest()"
        remedy = f"download it once, look at it, and pass {how}, or the path of your copy"
        raise ValueError(f"{url} needs sha256=, for it may send another text tomorrow: {remedy}")
    from tinytorch.core.downloads import cache_folder, download  # urllib loads slowly

    folder = cache_folder() if cache_dir is None else Path(cache_dir)
    try:
        return download(url, folder / f"{sha256.lower()}.txt", sha256=sha256, timeout=_TIMEOUT)
    except ConnectionError as error:
        raise ConnectionError(f"{error}, or pass the path of your copy") from None
    except OSError as error:
        raise OSError(f"cannot write to {folder} ({error}); pass another cache_dir=") from error
