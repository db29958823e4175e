"""Files from the network, complete or absent: resumed after a break, checked, kept.

What has arrived of a file is stored beside it as `.part`, and a note of which file it is as
`.part.json`. The next try requests only the rest (RFC 9110, section 14, "Range Requests"), and
starts again if the server now has another file. The file gets its name only when its length and
its SHA-256, as far as they are known, are right.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import stat
import string
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tinytorch.files.atomic_files import REMEDIES, StrPath, readable_file
from tinytorch.files.strict_json import parse_json

try:
    from ssl import SSLCertVerificationError, SSLError
except ImportError:  # Python in a web page has none

    class SSLError(OSError):  # type: ignore[no-redef]
        """Never raised."""

    SSLCertVerificationError = SSLError  # type: ignore[misc, assignment]

__all__ = ["DownloadError", "cache_folder", "download", "show_progress"]

Progress = Callable[[str, int, int | None], None]
_BLOCK = 1 << 20  # bytes
_LINKED = "X-Linked-ETag"  # the SHA-256 of a large file, where the hub redirects to it
_TRIES, _LONGEST_WAIT = 5, 60.0  # tries in a row without new bytes; seconds between two of them
_PASSING = {408, 429, 500, 502, 503, 504}  # statuses that may be temporary
_STATUSES = {
    401: "it wants a password; choose an address that is open to all, or download it elsewhere",
    403: "it refuses this machine; try from another network, or download it elsewhere",
    404: "there is no such file there; look at the name and the revision in the address",
    410: "the file was there and is no more; look for another address",
    429: "it has had too many requests from here; wait some minutes and run this again",
}

_IN_A_PAGE = "Python in a web page opens no connections; run this on a machine of your own"
_NO_NETWORK = "look at the network and the address"
_CERTIFICATES = "Python finds no certificates: on a Mac, run its `Install Certificates.command`"
_PACKED = {"": False, "identity": False, "gzip": True, "x-gzip": True}  # Content-Encoding
_UNPACKING = (EOFError, zlib.error, gzip.BadGzipFile)
_BREAKS = (ConnectionError, http.client.HTTPException, SSLError, *_UNPACKING)
_sleep = time.sleep


class DownloadError(ConnectionError):
    """A download failed.

    Attributes:
        status: that of the server's answer, such as 404; None if there was none.

    Example:
        >>> try:
        ...     download("http://127.0.0.1:1/model", "model")
        ... except DownloadError as error:
        ...     error.status is None
        True
    """

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


def download(
    url: str,
    path: StrPath,
    *,
    sha256: str | None = None,
    size: int | None = None,
    progress: Progress | None = None,
    timeout: float = 30.0,
) -> Path:
    r"""Download a file unless it is there: complete, or absent.

    A connection that breaks, stalls or is refused for the moment is resumed where it ended, a few
    times in a row and after growing pauses; so is a download that an earlier call left unfinished.
    If no checksum is given but the server states one, as the hub does for large files
    (`X-Linked-ETag`), that one is compared.

    Args:
        url: an `http:` or `https:` address; characters beyond ASCII are sent percent-encoded.
        path: where to save the file; missing folders are created.
        sha256: its SHA-256, 64 hexadecimal digits, if it is known.
        size: its length in bytes, if it is known.
        progress: called as `progress(name, done, total)` with bytes: once before the first byte,
            then as they arrive. `total` is None while it is unknown; see `show_progress`.
        timeout: seconds without a byte after which a connection is given up.

    Raises:
        DownloadError: it failed; the message says why, and what to do. It is a `ConnectionError`.
    """
    url = _checked_address(url)
    if not 0 < timeout < 1e9:
        raise ValueError(f"timeout must be above 0 and below 1e9 seconds, got {timeout}")
    if sha256 is not None and not re.fullmatch(r"[0-9A-Fa-f]{64}", str(sha256)):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}")
    file = _Download(url, Path(path), sha256, size, progress, timeout)
    try:
        if not file.is_there():
            if sys.platform == "emscripten":
                raise _Failed(_IN_A_PAGE, None)
            with file.opened():
                file.bring()
    except _Failed as error:
        why, status = error.args
        why += f", or download it elsewhere and save it as {path}"
        raise DownloadError(f"cannot download {url}: {why}", status) from None
    return file.path


def show_progress(name: str, done: int, total: int | None) -> None:
    """Write to standard error how much of a file has arrived: in a terminal, on one line."""
    finished, rewritten = done == total, sys.stderr.isatty()
    if finished or rewritten or not done:
        size = f"{done / 1e6:.1f}" + (f" of {total / 1e6:.1f}" if total else "")
        end = "\r" if rewritten and not finished else "\n"
        sys.stderr.write(f"{name}: {size} MB{end}")
        sys.stderr.flush()


def cache_folder() -> Path:
    r"""Where downloads are kept: the folder `tinytorch` in the system's cache folder.

    That is ``~/.cache/tinytorch`` (or in ``$XDG_CACHE_HOME``), on a Mac
    ``~/Library/Caches/tinytorch``, on Windows ``%LOCALAPPDATA%\tinytorch``. The environment
    variable `TINYTORCH_CACHE` names another folder.
    """
    if own := os.environ.get("TINYTORCH_CACHE"):
        return Path(own)
    if sys.platform == "win32":
        place = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        place = Path.home() / "Library" / "Caches"
    else:
        place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return place / "tinytorch"


# Helpers -----------------------------------------------------------------------------------------


def _checked_address(url: str) -> str:
    """An address in ASCII, as it is requested, if it can be one."""
    try:
        if not re.fullmatch(r"https?://[^/\s\0-\x20\x7f][^\s\0-\x20\x7f]*", url, re.IGNORECASE):
            raise ValueError("it must begin with http:// or https://, without spaces")
        parts = urllib.parse.urlsplit(url)
        if "@" in parts.netloc or not parts.hostname or parts.port == 0:
            raise ValueError("after the // must come a host and at most a port")
        parts.hostname.encode("idna")
        return urllib.parse.quote(url, safe=string.punctuation)
    except (TypeError, ValueError) as error:
        what = f"a download needs an http or https address, got {url!r}"
        raise ValueError(f"{what}: {error}") from None


class _Failed(Exception):
    """Why a download fails, with a remedy, and the status of the answer."""


class _Interrupted(Exception):
    """What has arrived so far is good, and another try may get the rest."""

    def __init__(
        self,
        why: str,
        wait: float | None = None,
        remedy: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(why)
        # how many seconds to wait, if that is known
        self.wait, self.remedy, self.status = wait, remedy or "try again later", status


class _Redirected(urllib.request.HTTPRedirectHandler):
    """Follows redirects, and keeps what the server states about the file."""

    linked = ""

    def redirect_request(self, *request: Any) -> urllib.request.Request | None:
        self.linked = request[4][_LINKED] or self.linked
        _checked_address(request[5])
        return super().redirect_request(*request)


class _Download:
    """One download in progress."""

    def __init__(
        self,
        url: str,
        path: Path,
        sha256: str | None,
        size: int | None,
        progress: Progress | None,
        timeout: float,
    ) -> None:
        self.url, self.path, self.timeout = url, path, timeout
        self.sha256, self.size = sha256 and sha256.lower(), size
        self.progress = progress or (lambda name, done, total: None)
        self.part = path.with_name(f"{path.name}.part")
        self.note = path.with_name(f"{path.name}.part.json")
        self.pieces = 0  # how many connections it took so far
        self.reached = False

    def is_there(self) -> bool:
        """Whether the file is there, as far as its size and checksum are known."""
        if not self.path.is_file() or self.size not in (None, self.path.stat().st_size):
            return False
        return self.sha256 is None or sha256_of(self.path) == self.sha256

    @contextmanager
    def opened(self) -> Iterator[None]:
        """The part that has arrived, open and locked; errors of the disk get a remedy."""
        try:
            if self.path.is_dir():
                raise OSError(errno.EISDIR, "it is a folder")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(_own_file(self.part), "r+b", buffering=0) as self.file:
                if _is_locked(self.file.fileno()):
                    why = "another process is downloading it; wait until that one has ended"
                    raise _Failed(why, None)
                yield
        except OSError as error:
            if error.errno is None:
                raise
            remedies = {errno.ELOOP: "delete that", **REMEDIES}
            remedy = remedies.get(error.errno, "choose another folder")
            why = f"cannot write {str(self.path)!r}: {error.strerror or error}; {remedy}"
            raise OSError(error.errno, why) from error

    def bring(self) -> None:
        """Request it until it is complete, or until nothing more arrives."""
        tries, most = 0, self._kept()
        while True:
            try:
                self._receive()
                return self._finish()
            except _Interrupted as interrupted:
                tries = 0 if self.done > most else tries + 1
                most = max(most, self.done)
                if not self.about.get("etag"):
                    self._start_again()  # the rest might be of another file
                if tries == _TRIES:
                    why = f"{interrupted}, {tries} times in a row"
                    raise self._failed(why, interrupted.remedy, interrupted.status) from None
                wait = 0.5 * 2**tries if interrupted.wait is None else interrupted.wait
                _sleep(min(wait, _LONGEST_WAIT))

    def _kept(self) -> int:
        """How many bytes an earlier call has left, if the note says which file they are from."""
        self.about: dict[str, Any] = {}
        self.done = os.fstat(self.file.fileno()).st_size
        with suppress(OSError, ValueError):
            about = parse_json(readable_file(self.note).read_bytes())
            if isinstance(about, dict) and about.get("etag") and self.done:
                self.about, self.pieces = about, 1
        if not self.about:
            self._start_again()
        return self.done

    def _start_again(self) -> None:
        self.file.truncate(0)
        self.about, self.done, self.pieces = {}, 0, 0

    def _receive(self) -> None:
        """Receive the rest over one connection."""
        if self.done and self.done == self.about.get("size"):
            return
        request = urllib.request.Request(self.url, headers={"User-Agent": "tinytorch-book"})
        if self.done:
            request.add_header("Range", f"bytes={self.done}-")
        try:
            with self._answer(request) as answer:
                self._read(answer, self._check(answer))
        except TimeoutError:
            raise _Interrupted(f"no data arrived for {self.timeout:g} seconds") from None
        except _BREAKS as error:
            raise _Interrupted(f"the connection broke ({_reason(error)})") from None

    def _answer(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """The server's answer, or why there is none."""
        self.redirected = _Redirected()
        opener = urllib.request.build_opener(self.redirected)
        try:
            return opener.open(request, timeout=self.timeout)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # no such range: it is another file
                self._start_again()
                raise _Interrupted(
                    "the file on the server is shorter than the part already here", 0
                ) from None
            why = f"the server answers {error.code} ({error.reason})"
            remedy = _STATUSES.get(error.code)
            if error.code not in _PASSING:
                remedy = remedy or "check the address"
                raise self._failed(why, remedy, error.code) from None
            after = error.headers.get("Retry-After") or ""
            wait = float(after) if after.isdecimal() else None
            raise _Interrupted(why, wait, remedy, error.code) from None
        except (ValueError, http.client.InvalidURL) as error:  # to which it was redirected
            raise self._failed(f"it is a bad address ({error})", "check the address") from None
        except urllib.error.URLError as error:
            why = f"there is no connection to it ({_reason(error.reason)})"
            if self.reached:
                raise _Interrupted(why) from None
            bad = isinstance(error.reason, SSLCertVerificationError)
            raise self._failed(why, _CERTIFICATES if bad else _NO_NETWORK) from None

    def _check(self, answer: http.client.HTTPResponse) -> bool:
        """Compare what the server says with what is known, and note it; whether gzip packs it."""
        self.reached, headers = True, answer.headers
        packing = (headers["Content-Encoding"] or "").lower()
        if answer.status not in (200, 206) or packing not in _PACKED:
            why = f"the server answers {answer.status} ({answer.reason})"
            why += f" in the encoding {packing!r}" if packing else ", which brings no file"
            raise self._failed(why, "check the address", answer.status)
        packed = _PACKED[packing]
        linked = self.redirected.linked or headers[_LINKED] or ""
        etag = linked or headers["ETag"] or headers["Last-Modified"]
        found = re.fullmatch(r"bytes (\d{1,18})-\d+/(\d{1,18})", headers["Content-Range"] or "")
        length = found[2] if found else headers["Content-Length"] or ""
        differs = packed or (answer.chunked and not found)
        size = int(length) if re.fullmatch(r"\d{1,18}", length) and not differs else self.size
        about = {"etag": None if packed else etag, "size": size}
        if answer.status == 206:
            if about != self.about or found is None or int(found[1]) != self.done:
                self._start_again()
                raise _Interrupted("the file on the server has changed", 0)
        elif self.done:  # it sends all of it
            self._start_again()
        if self.size is not None and size != self.size:
            raise self._another(f"{size:,}")
        digest = linked.strip('"').lower()
        if re.fullmatch("[0-9a-f]{64}", digest):
            self.sha256 = self.sha256 or digest
            self._compare(digest)
        free, needed = shutil.disk_usage(self.part.parent).free, (size or 0) - self.done
        if free < needed:
            few = f"{needed / 1e6:,.1f} MB more are needed, and {free / 1e6:,.1f} MB are free"
            raise OSError(errno.ENOSPC, few)
        self.about, self.pieces = about, self.pieces + 1
        self.note.unlink(missing_ok=True)
        with self.note.open("x", encoding="utf-8") as note:  # never through a link
            note.write(json.dumps(about))
        self.progress(self.path.name, self.done, size)
        return packed

    def _read(self, answer: http.client.HTTPResponse, packed: bool) -> None:
        """Append what arrives, up to the size."""
        told, size = self.done, self.about["size"]
        ours = size is not None and size == self.size and self.pieces == 1
        source = gzip.GzipFile(fileobj=answer) if packed else answer
        self.file.seek(self.done)
        while block := source.read1(_BLOCK):
            if size is not None and self.done + len(block) > size:
                if ours:
                    raise self._another(f"more than {size:,}")
                self._start_again()
                raise _Interrupted(f"the server sends more than the {size:,} bytes that it stated")
            self._write(block)
            if self.done - told >= _BLOCK:
                told = self.done
                self.progress(self.path.name, told, size)
        whole = answer.chunked or (packed and self.done > 0)  # its end was marked
        if size is not None and self.done < size:
            if whole and ours:
                raise self._another(f"{self.done:,}")
            raise _Interrupted(f"the connection broke after {self.done:,} of {size:,} bytes")
        if size is None and not self.done and not whole:  # its header may have been cut off
            raise _Interrupted("the connection broke before any byte arrived")

    def _write(self, block: bytes) -> None:
        """Write all of it: a disk that is nearly full takes only a part."""
        while block:
            written = self.file.write(block)
            self.done += written
            block = block[written:]

    def _finish(self) -> None:
        """Check what has arrived, and give it its name."""
        if self.size not in (None, self.done):
            raise self._another(f"{self.done:,}")
        os.fsync(self.file.fileno())
        digest = sha256_of(self.part)
        if self.sha256 not in (None, digest) and self.pieces > 1:
            self._start_again()  # the pieces do not fit together: download all of it in one
            self.pieces = 0
            raise _Interrupted("its pieces do not fit together", 0)
        self._compare(digest)
        if sys.platform == "win32":
            self.file.close()  # Windows renames no open file
        os.replace(self.part, self.path)
        self.note.unlink(missing_ok=True)
        self.progress(self.path.name, self.done, self.done)

    def _compare(self, digest: str) -> None:
        if self.sha256 not in (None, digest):
            self._refuse()
            what = f"its SHA-256 is {digest}, not {self.sha256}: another file, or a damaged one"
            raise ValueError(f"{self.url}: {what}; nothing was kept, check the address")

    def _refuse(self) -> None:
        """Keep nothing."""
        self.about, self.done = {}, 0
        if sys.platform == "win32":
            self.file.close()
        for path in (self.part, self.note):
            path.unlink(missing_ok=True)

    def _another(self, size: str) -> _Failed:
        """The error for a file of another size, of which nothing is kept."""
        self._refuse()
        why = f"the server's file has {size} bytes, not {self.size:,}"
        return self._failed(why, "that is a different file; check the address")

    def _failed(self, why: str, remedy: str, status: int | None = None) -> _Failed:
        """The error when it fails; nothing is left behind if nothing arrived."""
        if self.done:
            remedy = f"{remedy}: the {self.done:,} bytes that came are kept in {self.part.name}"
        else:
            self._refuse()
        return _Failed(f"{why}; {remedy}", status)


def _own_file(path: Path) -> int:
    """Open a file for writing, unless it is a link or not a file, as if somebody planted it."""
    flags = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW"))
    if not path.is_symlink() and not path.is_dir():
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | flags, 0o666)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink <= 1:
            return descriptor
        os.close(descriptor)
    raise OSError(errno.ELOOP, f"{path.name} beside it is a link or not a regular file")


def _is_locked(descriptor: int) -> bool:
    """Lock an open file, if the system can; returns whether another process has locked it."""
    try:
        import fcntl  # which Windows and browsers lack

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError) as error:
        return isinstance(error, BlockingIOError)
    return False


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reason(error: object) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
