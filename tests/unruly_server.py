"""A web server on this machine that does what servers do: breaks off, stalls, refuses.

It answers ranges as a server should unless it is told otherwise. `requests` are the paths that were
asked for, each with its range; `faults` are used up, one a request, before it behaves.
"""

import gzip
import http.server
import re
import threading
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["UnrulyServer", "unruly_server"]


class UnrulyServer:
    """What is served, and how.

    Attributes:
        files: the content by path, its bytes or the file that holds them; text is another address.
            A path may be changed or added at any time.
        faults: what the next requests get: `("break", n)` and `("stall", n)` after n bytes, a
            status such as 404 or `(429, "3")` with a Retry-After, `("length", n)` for a false one,
            "long" for more than was asked for, "elsewhere" for another part, bytes for an answer
            of these bytes alone; None for no fault.
        faulty: how the paths end whose requests get them.
        headers: what is sent besides, by path; None for the ETag leaves it out.
        always: what is sent besides with every answer.
        ranges: whether ranges are answered.
        sent: how many bytes of files have been sent.
        over: ends every stall.
    """

    def __init__(self):
        self.files, self.headers, self.always = {}, {}, {}
        self.faults, self.faulty, self.ranges = [], "", True
        self.requests, self.sent = [], 0
        self.over = threading.Event()

    def answer(self, request):
        """Answer one request."""
        path, wanted = request.path, request.headers.get("Range")
        self.requests.append((path, wanted))
        fault = self.faults.pop(0) if self.faults and path.endswith(self.faulty) else None
        kind, value = fault if isinstance(fault, tuple) else (fault, None)
        if path not in self.files and kind is None:
            kind = 404
        if isinstance(kind, bytes):
            with suppress(ConnectionError):
                request.wfile.write(kind)
            return None
        if isinstance(kind, int):
            return self._begin(request, kind, {"Retry-After": value, "Content-Length": "0"})
        content = self.files[path]
        if isinstance(content, str):
            return self._begin(request, 302, {"Location": content})
        if isinstance(content, Path):
            content = content.read_bytes()
        status, body, headers = self._part(content, wanted, kind)
        if self.headers.get(path, {}).get("Content-Encoding") == "gzip":
            body = gzip.compress(body)
        length = value if kind == "length" else len(body)
        self._begin(request, status, {**headers, "Content-Length": str(length)})
        body = body[: value if kind in ("break", "stall") else None]
        with suppress(ConnectionError):  # whoever asked may have left
            request.wfile.write(body)
            request.wfile.flush()
            self.sent += len(body)
        if kind == "stall":
            self.over.wait()

    def _part(self, content, wanted, kind):
        """The status, what is sent of a file where this range is wanted, and its headers."""
        headers = {"ETag": f'"{zlib.crc32(content):08x}"'}
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
        if not found or not self.ranges:
            return 200, content, headers
        first, end = int(found[1]), int(found[2]) + 1 if found[2] else len(content)
        if first >= len(content) > 0:
            return 416, b"", {}
        first += kind == "elsewhere"
        body = content[first : end + 100 if kind == "long" else end]
        where = f"bytes {first}-{first + len(body) - 1}/{len(content)}"
        return 206, body, {**headers, "Content-Range": where}

    def _begin(self, request, status, headers):
        request.send_response(status)
        for name, value in (headers | self.always | self.headers.get(request.path, {})).items():
            if value is not None:
                request.send_header(name, value)
        request.end_headers()


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
