"""Something to read: the prose of this book, and your own text.

Both are one string, ready for a tokenizer: `book_prose` is the text of this book's chapters, and
`load_text` reads a file of yours, or one from the network, which it checks and keeps. Stories whose
entropy is known come from `tinytorch.stories`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from tinytorch.core.atomic_files import write_atomically

__all__ = ["book_prose", "load_text"]

_CHUNK = 1 << 16
_TIMEOUT = 30.0  # seconds without a byte


def book_prose() -> str:
    """The prose of this book: the paragraphs of its chapters, in reading order.

    Returns:
        One string; it comes with the package, so no network is needed.

    Raises:
        FileNotFoundError: The package was built without its data.

    Example:
        >>> "tensor" in book_prose()
        True
    """
    file = resources.files("tinytorch.text") / "data" / "book_prose.txt"
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{file} is missing: in a clone of the book, `make notebooks` writes it; "
            "an installed package should be installed again"
        ) from None


def load_text(
    path_or_url: str | os.PathLike[str],
    sha256: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    *,
    max_bytes: int = 100_000_000,
) -> str:
    r"""Read a text of your own: a local file, or a URL whose content you can name by its SHA-256.

    A download is written under a temporary name, checked, and only then put in the cache; the next
    call reads it from there and needs no network. Line ends are universal: ``\r\n`` and ``\r``
    become ``\n``, and a byte-order mark at the beginning is dropped. The checksum is that of the
    bytes as they are stored.

    Args:
        path_or_url: A path, or an ``http:``, ``https:`` or ``file:`` URL.
        sha256: The SHA-256 of the file, 64 hexadecimal digits. A download must have one: the same
            address may send another text tomorrow. For a local file it is optional.
        cache_dir: Where downloads are kept; by default ``$XDG_CACHE_HOME/tinytorch``, or
            ``~/.cache/tinytorch``.
        max_bytes: Refuse anything larger.

    Returns:
        The text.

    Raises:
        FileNotFoundError: There is no such file.
        ConnectionError: The download failed; the message says how to do without it.
        ValueError: The checksum is missing, malformed or different; the text is empty, too large
            or not UTF-8.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "poem.txt"
        >>> _ = path.write_bytes(b"Roses are red.\r\n")
        >>> load_text(path)
        'Roses are red.\n'
    """
    name = os.fspath(path_or_url)
    if not isinstance(name, str):
        raise TypeError(f"load_text needs a path or a URL as a string, got {name!r}")
    digest = _checked_digest(sha256)
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+)://|(?i:(file)):", name)
    kind = (scheme[1] or scheme[2]).lower() if scheme else "path"
    if kind in ("http", "https"):
        content = _download(name, digest, cache_dir, max_bytes)
    elif kind in ("path", "file"):
        content = _read_file(_path_of_url(name) if kind == "file" else Path(name), max_bytes)
        _check_digest(name, content, digest)
    else:
        raise ValueError(f"load_text reads http, https and file URLs and paths, got {name!r}")
    return _decode(name, content)


def _decode(name: str, content: bytes) -> str:
    """UTF-8 with universal newlines, or an error that says where it stops being UTF-8."""
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name} is not UTF-8: byte 0x{content[error.start]:02x} at position {error.start} "
            f"(line {line}); save it as UTF-8, or decode it yourself"
        ) from None
    if not text.strip():
        raise ValueError(f"{name} is empty: there is nothing to read in its {len(content)} bytes")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _path_of_url(url: str) -> Path:
    """The path that a file: URL names."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ValueError(
            f"{url!r} names a file on the host {parts.netloc!r}; only local files work"
        )
    return Path(url2pathname(parts.path))


def _read_file(path: Path, max_bytes: int) -> bytes:
    """The bytes of a file, if they are not too many."""
    if not path.exists():
        raise FileNotFoundError(f"there is no file {str(path)!r} (looked from {str(Path.cwd())!r})")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; pass the path of one text file")
    with path.open("rb") as file:
        return b"".join(_at_most(max_bytes, str(path), iter(lambda: file.read(_CHUNK), b"")))


def _at_most(max_bytes: int, name: str, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The chunks, as long as their sum is within the limit."""
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > max_bytes:
            raise ValueError(f"{name} has more than {max_bytes} bytes; pass a larger max_bytes=")
        yield chunk


# ------------------------------------------------------------------------------ checksums


def _checked_digest(sha256: str | None) -> str | None:
    if sha256 is None:
        return None
    if not isinstance(sha256, str) or not re.fullmatch(r"[0-9A-Fa-f]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    return sha256.lower()


def _check_digest(name: str, content: bytes, digest: str | None) -> None:
    actual = hashlib.sha256(content).hexdigest()
    if digest is not None and actual != digest:
        raise ValueError(
            f"{name} is not the expected text: its SHA-256 is {actual}, not {digest}; look at it, "
            "and pass the new checksum if this is the text you want"
        )


# ------------------------------------------------------------------------------ downloads


def _download(
    url: str, digest: str | None, cache_dir: str | os.PathLike[str] | None, max_bytes: int
) -> bytes:
    """The bytes behind a URL, from the cache if they are there and whole."""
    if digest is None:
        raise ValueError(
            f"{url} needs sha256=, for the same address may send another text tomorrow. Download "
            "the file once, look at it, and take the first word that `sha256sum FILE` prints (or "
            "hashlib.sha256(open(FILE, 'rb').read()).hexdigest()); or pass the path of your copy"
        )
    folder = Path(cache_dir) if cache_dir is not None else _default_cache()
    cached = folder / f"{digest}.txt"
    if cached.is_file():
        content = _read_file(cached, max_bytes)
        if hashlib.sha256(content).hexdigest() == digest:
            return content
    content = _fetch(url, max_bytes, cached)
    _check_digest(url, content, digest)
    try:
        write_atomically(cached, content)
    except OSError as error:
        raise OSError(
            f"cannot write to the cache folder {folder} ({error}); pass another cache_dir="
        ) from error
    return content


def _default_cache() -> Path:
    """The user's cache folder, as the XDG base directory specification has it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "tinytorch"


def _fetch(url: str, max_bytes: int, cached: Path) -> bytes:
    """The bytes that a server sends."""
    from http.client import HTTPException
    from urllib.request import Request, urlopen

    try:
        request = Request(url, headers={"User-Agent": "tinytorch-book"})
        with urlopen(request, timeout=_TIMEOUT) as reply:
            chunks = iter(lambda: reply.read(_CHUNK), b"")
            content = b"".join(_at_most(max_bytes, url, chunks))
            announced = reply.headers.get("Content-Length", "")
    except (OSError, HTTPException) as error:
        raise ConnectionError(_offline(url, cached, error)) from error
    if announced.isdigit() and int(announced) != len(content):
        broken = f"only {len(content)} of {announced} bytes came"
        raise ConnectionError(_offline(url, cached, broken))
    return content


def _offline(url: str, cached: Path, reason: object) -> str:
    return (
        f"could not download {url} ({reason}). Without a network: download it by hand elsewhere "
        f"and save it as {cached}, or pass the path of your copy to load_text"
    )
