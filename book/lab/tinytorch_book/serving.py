"""The book without a network: a local server of the downloaded site.

    python -m tinytorch_book book                        looks for the archive in this folder
    python -m tinytorch_book book tinytorch-offline.zip  or the folder where it was unpacked

The archive is read as it is. A browser runs Python only in pages that come from a server, with the
right types and, for memory that a page shares with its Python, two headers: hence this one.
"""

import sys
import zipfile
from contextlib import suppress
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

__all__ = ["address_of", "archive_address", "book_server", "content_type", "find_book"]

Place = Path | zipfile.Path

_HERE = (".", "tinytorch-offline", "_build/html")  # where the book may be unpacked or built
# Written out: on Windows the registry may say that a script is plain text.
_TYPES = {
    ".css": "text/css", ".html": "text/html; charset=utf-8", ".ico": "image/x-icon",
    ".ipynb": "application/json", ".jpg": "image/jpeg", ".js": "text/javascript",
    ".json": "application/json", ".mjs": "text/javascript", ".pdf": "application/pdf",
    ".png": "image/png", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm", ".woff2": "font/woff2", ".xml": "application/xml",
}  # fmt: skip
_ALONE = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


def find_book(path: str | None = None) -> Place:
    """The book's site: a folder with `index.html`, or that folder in an archive.

    Args:
        path: A folder or a zip file. Without one, the first that is found in the current folder:
            `tinytorch*.zip`, or a folder where it was unpacked or built.

    >>> find_book("no-such.zip")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no 'no-such.zip'; ...
    """
    if path is not None:
        return _site(Path(path))
    for place in [*sorted(Path().glob("tinytorch*.zip")), *map(Path, _HERE)]:
        try:
            return _site(place)
        except (FileNotFoundError, ValueError):
            continue
    raise FileNotFoundError(f"there is no book in {str(Path().absolute())!r}; {_remedy()}")


def _site(path: Path) -> Place:
    """The folder of the site's first page, at the top of a folder or archive or one below."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {str(path)!r}; {_remedy()}")
    if path.is_file() and not zipfile.is_zipfile(path):
        raise ValueError(f"{str(path)!r} is not a complete zip archive; {_remedy()}")
    top: Place = zipfile.Path(path) if path.is_file() else path
    below: list[Place] = sorted(top.iterdir(), key=str)
    for place in [top, *below]:
        if (place / "index.html").is_file() and (place / "book" / "intro.html").is_file():
            return place
    raise ValueError(f"{str(path)!r} does not hold the book's pages; {_remedy()}")


def address_of(name: str) -> str:
    """An address that the package's metadata gives, `Book` or `Source`; where it is, if none does.

    >>> address_of("Book").startswith("https://")
    True
    """
    with suppress(PackageNotFoundError):
        for line in metadata("tinytorch-book").get_all("Project-URL") or ():
            label, _, address = line.partition(", ")
            if label == name:
                return address
    return f"the address of the project ({name})"


def archive_address() -> str:
    """Where the book is downloaded as one archive: the newest release.

    >>> archive_address().endswith("/releases/latest/download/tinytorch-offline.zip")
    True
    """
    return f"{address_of('Source')}/releases/latest/download/tinytorch-offline.zip"


def _remedy() -> str:
    run = "python -m tinytorch_book book tinytorch-offline.zip"
    return f"download {archive_address()} and run: {run}"


def content_type(name: str) -> str:
    """The type of a file as sent to the browser, by the end of its name.

    >>> content_type("pyodide.asm.wasm"), content_type("page.js")
    ('application/wasm', 'text/javascript')
    """
    return _TYPES.get(name[name.rfind(".") :].lower(), "application/octet-stream")


def book_server(book: Place, port: int = 8000) -> ThreadingHTTPServer:
    """A server of the book for this machine only; start it with `serve_forever()`.

    >>> book_server(Path(), port=70000)
    Traceback (most recent call last):
        ...
    ValueError: the port must be from 0 to 65535, got 70000
    """
    if not 0 <= port <= 65535:
        raise ValueError(f"the port must be from 0 to 65535, got {port}")
    handler = type("_BookHandler", (_Handler,), {"book": book})
    try:
        return _Server(("127.0.0.1", port), handler)
    except OSError as error:
        why = f"cannot listen on port {port}: {error.strerror}"
        raise OSError(f"{why}; choose another: python -m tinytorch_book book --port 8001") from None


class _Server(ThreadingHTTPServer):
    # on Windows two programs could otherwise share a port, and take turns
    allow_reuse_address = sys.platform != "win32"
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a connection that the browser has closed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(SimpleHTTPRequestHandler):
    book: Place
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a file."""
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        """Answer with the headers of the file."""
        self._answer(with_content=False)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a page requests many files."""

    def _answer(self, with_content: bool) -> None:
        """Send a file of the book, or the address of a folder with its slash."""
        path = urlsplit(self.path).path
        place = self._place(unquote(path))
        if place is not None and place.is_dir():
            if not path.endswith("/"):
                return self._send(HTTPStatus.MOVED_PERMANENTLY, b"", {"Location": f"{path}/"})
            place /= "index.html"
        if place is None or not place.is_file():
            lost, text = b"There is no such page.\n", {"Content-Type": content_type(".txt")}
            return self._send(HTTPStatus.NOT_FOUND, lost, text, with_content)
        headers = {"Content-Type": content_type(place.name), "Cache-Control": "no-cache"}
        if path.startswith(("/book/", "/_static/live/")):  # as the site's service worker does
            headers |= _ALONE
        self._send(HTTPStatus.OK, place.read_bytes(), headers, with_content)

    def _send(
        self, status: HTTPStatus, content: bytes, headers: dict[str, str], whole: bool = True
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if whole:
            self.wfile.write(content)

    def _place(self, path: str) -> Place | None:
        """What an address names; None if it would lead out of the book."""
        place = self.book
        for part in PurePosixPath(path).parts[1:]:
            if part == ".." or any(sign in part for sign in "\\:\0"):
                return None
            place /= part
        return place
