"""A folder of the hub with random weights, and a site of its own that serves it, well or badly."""

import http.server
import re
import threading
from contextlib import contextmanager

import hub_folders
import numpy as np
from chromium import Server

SIZES = {"n_embd": 60, "vocab_size": 20_000}  # the table of the tokens is more than one piece


def write_folder(folder, dtype=np.float32, seed=0, **sizes):
    """A folder of the hub: its tensors sorted by name, masks among them, a row of zeros."""
    config = {**hub_folders.CONFIG, **SIZES, **sizes}
    tensors = hub_folders.random_weights(config, seed)
    tensors["wte.weight"][7] = 0
    in_order = {name: tensors[name].astype(dtype) for name in sorted(tensors)}
    return hub_folders.write_folder(folder, config, in_order)


class Hub:
    """What the site has been asked for, and what it shall do next to those who ask.

    Attributes:
        asked: (method, file, range) of each request.
        etag: of the weights; None says none.
        faults: one for each of the next answers about the weights, of
            ("cut", bytes), ("stall", bytes), ("status", number), ("long",), ("elsewhere",).
        ranges: whether it knows ranges; open: whether pages of other sites may read.
        exposed: whether they may read more than the simple headers.
    """

    def __init__(self, folder):
        self.folder, self.asked, self.etag = folder, [], '"one"'
        self.faults, self.ranges, self.open, self.exposed = [], True, True, True
        self.sent = 0
        self.going = threading.Event()

    def ranges_of(self, name):
        return [found for _, asked, found in self.asked if asked == name]


def handler_of(hub):
    """The class that answers for a hub."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            """Say nothing."""

        def do_OPTIONS(self):
            hub.asked.append(("OPTIONS", self.path, None))
            self.send_error(403)

        def do_GET(self):
            name, wanted = self.path.rsplit("/", 1)[-1], self.headers["Range"]
            hub.asked.append(("GET", name, wanted))
            content = (hub.folder / name).read_bytes()
            isweights = name == "model.safetensors"
            kind, *more = hub.faults.pop(0) if isweights and hub.faults else ("none",)
            if kind == "status":
                return self.answer(more[0], {"Content-Length": "0"})
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", wanted or "")
            headers, status, begin = {}, 200, 0
            body = content
            if found and hub.ranges:
                status, begin, end = 206, int(found[1]), int(found[2]) + 1
                if begin >= len(content):
                    return self.answer(416, {"Content-Length": "0"})
                begin += kind == "elsewhere"
                body = content[begin : end + 100 if kind == "long" else end]
                last = begin + len(body) - 1
                headers["Content-Range"] = f"bytes {begin}-{last}/{len(content)}"
            if isweights and hub.etag:
                headers["ETag"] = hub.etag
            self.answer(status, {**headers, "Content-Length": str(len(body))})
            count = more[0] if kind in ("cut", "stall") else len(body)
            self.wfile.write(body[:count])
            hub.sent += len(body[:count])
            if kind == "stall" and count < len(body):
                hub.going.wait(30)
            if count < len(body):
                self.close_connection = True
            return None

        def answer(self, status, headers):
            self.send_response(status)
            if hub.open:
                self.send_header("Access-Control-Allow-Origin", "*")
            if hub.exposed:
                self.send_header("Access-Control-Expose-Headers", "ETag, Content-Range")
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

    return Handler


@contextmanager
def serving(folder):
    """A hub that serves a folder on a port of its own, and its address."""
    hub = Hub(folder)
    server = Server(("127.0.0.1", 0), handler_of(hub))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        hub.going.set()
        server.shutdown()
        server.server_close()
