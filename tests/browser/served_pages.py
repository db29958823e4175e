"""The built pages, and a small server for them."""

import functools
import http.server
import sys
import threading
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
CHAPTERS = [chapter for part in TOC["parts"] for chapter in part["chapters"]]
SECTIONS = [page for chapter in CHAPTERS for page in (chapter, *chapter.get("sections", ()))]
PAGES = [TOC["root"], *(page["file"] for page in SECTIONS)]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and writes no log."""

    def log_message(self, *args):
        """Say nothing."""


class Server(http.server.ThreadingHTTPServer):
    """A server that does not mind when a page is closed before it has all it asked for."""

    def handle_error(self, request, client_address):
        """Say nothing of a connection that the browser has closed."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def serve(folder: Path) -> tuple[Server, str]:
    """Serve a folder on a free port of this machine."""
    handler = functools.partial(Quiet, directory=str(folder))
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"
