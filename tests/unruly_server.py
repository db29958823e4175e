"""A web server on this machine that does what servers do: breaks off, stalls, refuses.

It answers ranges as a server should unless it is told otherwise. `requests` are the paths that were
asked for, each with its range; `faults` are used up, one a request, before it behaves.
"""

import gzip
import hashlib
import http.server
import re
import threading
from contextlib import contextmanager

__all__ = ["UnrulyServer", "unruly_server"]


class UnrulyServer:
    """What is served, and how.

    Attributes:
        files: the content by path; a path may be changed or added at any time.
        faults: what the next requests get: `("break", n)` and `("stall", n)` after n bytes, a
            status such as 404 or `(429, "3")` with a Retry-After, `("length", n)` for a false one.
        headers: what is sent besides, by path; None for the ETag leaves it out.
        ranges: whether ranges are answered.
    """

    def __init__(self):
        self.files, self.headers = {}, {}
        self.faults, self.requests, self.ranges = [], [], True
        self.over = threading.Event()

    def answer(self, request):
        """Answer one request."""
        self.requests.append((request.path, request.headers.get("Range")))
        fault = self.faults.pop(0) if self.faults else None
        kind, value = fault if isinstance(fault, tuple) else (fault, None)
        if request.path not in self.files and kind is None:
            kind = 404
        if isinstance(kind, int):
            request.send_response(kind)
            if value is not None:
                request.send_header("Retry-After", value)
            request.send_header("Content-Length", "0")
            return request.end_headers()
        content = self.files[request.path]
        if isinstance(content, str):  # another address
            request.send_response(302)
            self._send_headers(request, Location=content)
            return request.end_headers()
        headers = {"ETag": f'"{hashlib.md5(content).hexdigest()}"'}
        wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range") or "")
        first = int(wanted[1]) if wanted and self.ranges else 0
        if first >= len(content) > 0:
            request.send_response(416)
            request.send_header("Content-Length", "0")
            return request.end_headers()
        request.send_response(206 if first else 200)
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(content) - 1}/{len(content)}"
        body = content[first:]
        if self.headers.get(request.path, {}).get("Content-Encoding") == "gzip":
            body = gzip.compress(body)
        headers["Content-Length"] = str(value if kind == "length" else len(body))
        self._send_headers(request, **headers)
        request.end_headers()
        request.wfile.write(body[: value if kind in ("break", "stall") else None])
        if kind == "stall":
            request.wfile.flush()
            self.over.wait()

    def _send_headers(self, request, **headers):
        for name, value in (headers | self.headers.get(request.path, {})).items():
            if value is not None:
                request.send_header(name, value)


@contextmanager
def unruly_server():
    """The server, its address in `.url`, for as long as the context lasts."""
    unruly = UnrulyServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            unruly.answer(self)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    unruly.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield unruly
    finally:
        unruly.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
