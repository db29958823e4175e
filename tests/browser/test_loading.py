"""Loading Python over a bad network: what fails is said in a sentence, with a way to try again.

The server of these tests is bad on request; `patience`, the seconds without a byte after which the
page gives up, is shortened where a test would otherwise wait for it. How bytes are counted and
silence is noticed is tested without a browser (tests/scripts/live_loading.test.mjs).
"""

import functools
import re
import textwrap
import threading

import pytest
from served_pages import SITE, Quiet, Server
from test_live import SHORT, cell, ended, focused, press, rewrite
from visit import READY, Visit

SNAPSHOT = "python.bin"
PIECE = 2_000_000  # bytes that come before the trouble begins
pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Bad(Quiet):
    """Serves files; one of them badly, as `server.trouble` says."""

    def do_GET(self):
        trouble = self.server.trouble
        if trouble and trouble[0] in self.path:
            trouble[1](self, self.begin)
        else:
            super().do_GET()

    def begin(self, length=None):
        """Send the headers, and give the bytes."""
        body = (SITE / "_static" / "live" / SNAPSHOT).read_bytes()[:length]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return body


@pytest.fixture
def network():
    """A server whose `trouble` is None, or the part of a path and what happens to it."""
    server = Server(("127.0.0.1", 0), functools.partial(Bad, directory=str(SITE)))
    server.trouble, server.healed = None, threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.address = f"http://127.0.0.1:{server.server_address[1]}/"
    yield server
    server.healed.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def visit(context, network):
    """A page of that server."""
    visit = Visit(context, network.address)
    visit.open_live(SHORT)
    return visit


def status(visit, number=1):
    return cell(visit, number).locator(".tt-live__status").inner_text()


def reached(visit, state):
    cell(visit, 1).and_(visit.page.locator(f'[data-live="{state}"]')).wait_for()


def give_up_after(visit, seconds):
    visit.page.evaluate("(s) => { tinytorchLive.kernel.settings.patience = s; }", seconds)


def missing(handler, begin):
    handler.send_error(404)


def dropped(handler, begin):
    handler.wfile.write(begin()[:PIECE])
    handler.wfile.flush()
    handler.connection.close()


def stalled(handler, begin):
    handler.wfile.write(begin()[:PIECE])
    handler.wfile.flush()
    handler.server.healed.wait()


TROUBLES = [
    ((SNAPSHOT, missing), r"the server answers 404 for python\.bin"),
    ((SNAPSHOT, dropped), r"the connection broke after [\d.]+ MB of python\.bin"),
    (("python_worker.js", missing), r"python_worker\.js cannot be reached"),
    ((SNAPSHOT, stalled), r"nothing has come for 1 s \(python\.bin\)"),
]


def test_a_file_that_fails_to_load_is_named_and_retried(visit, network):
    name = "Run"
    for trouble, said in TROUBLES:
        network.trouble = trouble
        give_up_after(visit, 1 if trouble[1] is stalled else 600)
        press(visit, 1, name)
        sentence = re.compile(rf"^Python could not be loaded: {said}\.$")
        cell(visit, 1).locator(".tt-live__status").get_by_text(sentence).wait_for()
        name = "Try again"
    network.trouble = None
    give_up_after(visit, 600)
    press(visit, 1, name)
    reached(visit, "done")
    assert visit.page.locator(".tt-live__above").count() == 0


NO_CONNECTION = "No connection: Python could not be loaded. It is tried again when there is one."


def test_offline_is_reported_and_python_loads_once_the_connection_is_back(visit, context):
    context.set_offline(True)
    press(visit, 1)
    reached(visit, "error")
    assert status(visit) == NO_CONNECTION
    cell(visit, 1).get_by_role("button", name="Try again").click()
    reached(visit, "error")
    assert status(visit) == NO_CONNECTION
    assert focused(visit) == "Run cell 1"
    context.set_offline(False)
    reached(visit, "done")
    assert visit.page.locator(".tt-live__above").count() == 0


def test_offline_the_editor_says_so_and_loads_on_a_retry(visit, context):
    context.set_offline(True)
    cell(visit, 1).get_by_role("button", name="Edit").click()
    cell(visit, 1).get_by_text(
        "The editor could not be loaded: press Edit to try again."
    ).wait_for()
    context.set_offline(False)
    cell(visit, 1).get_by_role("button", name="Edit").click()
    cell(visit, 1).locator(".cm-content").wait_for()


def test_the_library_and_fresh_random_numbers_come_after_the_snapshot(visit):
    """The library for products, everywhere; and random numbers are not everybody's same."""
    code = """
        import random, numpy, tinytorch.training
        from tinytorch.core import functional, kernels
        assert kernels.matmul is not numpy.matmul, "the library is not there"
        assert functional.matmul is kernels.matmul and functional.dot is kernels.dot
        print(random.random(), numpy.random.rand())
    """
    printed = []
    for _ in range(2):
        rewrite(visit, 1, textwrap.dedent(code))
        press(visit, 1)
        printed.append(ended(visit, 1).split())
        assert visit.page.evaluate("tinytorchLive.kernel.times.memory") > 0
        visit.page.reload()
        visit.page.wait_for_function(READY)
    assert len({number for numbers in printed for number in numbers}) == 4
    assert visit.problems == []
