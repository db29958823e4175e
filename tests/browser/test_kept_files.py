"""What the service worker keeps: a second visit needs no server for it.

The server of these tests refuses files on request, and its pages can be another build's. What is
kept, replaced and forgotten is tested without a browser (tests/scripts/live_loading.test.mjs).
"""

import functools
import re
import threading
from urllib.parse import urlsplit

import pytest
from served_pages import SITE, Quiet, Server
from test_live import SHORT, ended, press, rewrite
from visit import PATIENCE, READY, Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SNAPSHOT, SCRIPT = "/_static/live/python.bin", "/_static/book.js"
KEPT = """async () => {
    const kept = await caches.open('tinytorch-book');
    return (await kept.keys()).map(({url}) => url);
}"""


class Changing(Quiet):
    """Serves the built pages; `server.changed` says what of them is not as it was."""

    def do_GET(self):
        path = urlsplit(self.path).path
        self.server.asked.append(path)
        change = self.server.changed.get(path, lambda body: body)
        file = SITE / path[1:]
        if path not in self.server.changed and not path.endswith(".html"):
            return super().do_GET()
        body = change(file.read_bytes() if file.exists() else b"")
        if path.endswith(".html"):  # of another build
            body = re.sub(rb"(python\.bin\?v=)\w+", rb"\g<1>" + self.server.build, body)
        if body is None:
            return self.send_error(503)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def end_headers(self):
        """Have the browser itself keep nothing, so that what is kept is the worker's."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


@pytest.fixture
def server():
    server = Server(("127.0.0.1", 0), functools.partial(Changing, directory=str(SITE)))
    server.asked, server.changed, server.build = [], {}, b"1"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.address = f"http://127.0.0.1:{server.server_address[1]}/"
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def visit(context, server):
    return Visit(context, server.address)


def run_a_cell(visit, server):
    """Open the page and run a cell; what the server was asked for meanwhile."""
    server.asked.clear()
    visit.open_live(SHORT)
    rewrite(visit, 1, "import tinytorch\nprint('it', 'runs')")
    press(visit, 1)
    assert "it runs" in ended(visit, 1)
    return set(server.asked)


def until_kept(visit, condition, arg=None):
    """Wait until what is kept is so: a file is once it has come in full."""
    visit.page.evaluate(
        f"""async ([arg, patience]) => {{
            const so = {condition}, end = Date.now() + patience;
            for (let kept = []; !so(kept, arg); kept = await ({KEPT})()) {{
                if (Date.now() > end) throw new Error(`kept: ${{kept}}`);
                await new Promise(resolve => setTimeout(resolve, 50));
            }}
        }}""",
        [arg, PATIENCE],
    )


def all_kept(visit, *paths):
    so = "(urls, paths) => paths.every(p => urls.some(url => new URL(url).pathname === p))"
    until_kept(visit, so, list(paths))


def test_a_file_is_not_requested_again_until_its_version_changes(visit, server):
    first = run_a_cell(visit, server)
    assert {SNAPSHOT, SCRIPT, f"/{SHORT}.html"} <= first
    all_kept(visit, SNAPSHOT)
    visit.open_live(SHORT)
    all_kept(visit, SNAPSHOT, SCRIPT)

    server.changed = dict.fromkeys((SNAPSHOT, SCRIPT), lambda body: None)  # not served any more
    second = run_a_cell(visit, server)
    assert not second & {SNAPSHOT, SCRIPT}
    assert f"/{SHORT}.html" in second, "a page is never kept"
    assert not [url for url in visit.page.evaluate(KEPT) if ".html" in url]

    server.changed, server.build = {}, b"2"
    assert SNAPSHOT in run_a_cell(visit, server)
    server.asked.clear()
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert SCRIPT in server.asked, "a reload brings small files again"
    only = "(urls, wanted) => urls.filter(url => url.includes('python.bin')).join() === wanted"
    until_kept(visit, only, f"{server.address[:-1]}{SNAPSHOT}?v=2")
    assert visit.problems == []


def test_a_damaged_snapshot_is_discarded_and_fetched_again(visit, server):
    server.changed[SNAPSHOT] = lambda body: body[: len(body) // 2]
    run_a_cell(visit, server)
    assert "without its snapshot" in visit.noted.pop()
    server.changed.clear()
    assert SNAPSHOT in run_a_cell(visit, server)
    assert visit.page.evaluate("tinytorchLive.kernel.times.memory") > 0
    assert visit.problems == []
