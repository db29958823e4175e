"""Loading Python over a bad network: what fails is said in a sentence, with a way to try again.

The server of these tests is bad on request; `patience`, the seconds without a byte after which the
page gives up, is shortened where a test would otherwise wait for it.
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


def retry(visit, network):
    """The network is well again, and the reader tries again."""
    network.trouble = None
    give_up_after(visit, 600)
    cell(visit, 1).get_by_role("button", name="Try again").click()
    reached(visit, "done")
    assert visit.page.locator(".tt-live__above").count() == 0


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


def silent(handler, begin):
    handler.server.healed.wait()


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ((SNAPSHOT, missing), r"the server answers 404 for python\.bin"),
        ((SNAPSHOT, dropped), r"the connection broke after [\d.]+ MB of python\.bin"),
        (("python_worker.js", missing), r"python_worker\.js cannot be reached"),
    ],
)
def test_a_file_that_does_not_come_is_named_and_asked_for_again(visit, network, trouble, said):
    network.trouble = trouble
    press(visit, 1)
    reached(visit, "error")
    assert re.fullmatch(rf"Python could not be loaded: {said}\.", status(visit))
    retry(visit, network)


NO_CONNECTION = "No connection: Python could not be loaded. It is tried again when there is one."


def test_without_a_connection_that_is_said_and_python_comes_when_it_is_back(visit, context):
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


def test_without_a_connection_the_editor_says_so_and_comes_when_asked_again(visit, context):
    context.set_offline(True)
    cell(visit, 1).get_by_role("button", name="Edit").click()
    cell(visit, 1).get_by_text(
        "The editor could not be loaded: press Edit to try again."
    ).wait_for()
    context.set_offline(False)
    cell(visit, 1).get_by_role("button", name="Edit").click()
    cell(visit, 1).locator(".cm-content").wait_for()


@pytest.mark.parametrize("trouble", [missing, silent])
def test_python_does_without_the_service_worker(visit, network, trouble):
    network.trouble = "companion.js", trouble
    press(visit, 1)
    reached(visit, "done")


def test_who_stops_the_loading_is_told_how_to_begin_again(visit, network):
    network.trouble = SNAPSHOT, silent
    give_up_after(visit, 600)
    press(visit, 1)
    cell(visit, 1).get_by_text("Loading Python, NumPy and matplotlib").wait_for()
    press(visit, 1, "Stop")
    reached(visit, "stopped")
    assert status(visit) == "Stopped before Python was loaded: press Run to load it"
    network.trouble = None
    press(visit, 1)
    reached(visit, "done")


@pytest.mark.parametrize("part", [(SNAPSHOT, stalled), (SNAPSHOT, silent), ("worker.js", silent)])
def test_a_file_that_stands_still_is_given_up(visit, network, part):
    network.trouble = part
    give_up_after(visit, 1)
    press(visit, 1)
    reached(visit, "error")
    assert "nothing has come for 1 s" in status(visit)
    retry(visit, network)


def test_a_slow_file_is_waited_for_and_its_bytes_are_counted(visit, network):
    def trickle(handler, begin):
        """200 kB a second, until the test has seen enough."""
        body = begin()
        while body and not network.healed.wait(0.1):
            handler.wfile.write(body[:20_000])
            body = body[20_000:]
        handler.wfile.write(body)

    network.trouble = SNAPSHOT, trickle
    visit.page.evaluate("""() => {
        globalThis.lines = [];
        const status = document.querySelector('.tt-live__status');
        new MutationObserver(() => lines.push(status.textContent))
            .observe(status, {childList: true, characterData: true, subtree: true});
    }""")
    press(visit, 1)
    visit.page.wait_for_function("() => new Set(lines.filter(l => l.includes(' MB'))).size > 5")
    value, most = cell(visit, 1).get_by_role("progressbar").evaluate("bar => [bar.value, bar.max]")
    assert 0 < value < most == (SITE / "_static" / "live" / SNAPSHOT).stat().st_size
    network.healed.set()
    reached(visit, "done")
    assert visit.page.get_by_role("progressbar").count() == 0
    lines = visit.page.evaluate("lines")
    counts = [re.search(r": ([\d.]+) of ([\d.]+) MB", line) for line in lines]
    came = [float(found[1]) for found in counts if found]
    size = (SITE / "_static" / "live" / SNAPSHOT).stat().st_size / 1e6
    assert came == sorted(came)
    assert {found[2] for found in counts if found} == {f"{size:.1f}"}
    assert any("NumPy" in line for line in lines)


def test_a_damaged_snapshot_is_done_without(visit, network):
    """Python then starts from its packages, as it does where there is no snapshot."""
    network.trouble = SNAPSHOT, lambda handler, begin: handler.wfile.write(begin(PIECE))
    rewrite(visit, 1, "import numpy, matplotlib, tinytorch\nprint(tinytorch.Tensor([3.0]))")
    press(visit, 1)
    assert "Tensor([3.])" in ended(visit, 1)
    assert "without its snapshot" in visit.noted.pop()
    assert visit.problems == []


def test_a_thread_that_is_busy_is_no_silence(visit):
    """What has come to a worker meanwhile is read later than its clocks are."""
    worker = """onmessage = async ({ data: address }) => {
        const { Downloads } = await import(address);
        const downloads = new Downloads({ patience: 2, onbytes: () => {} });
        const came = downloads.fetch(address).then((answer) => answer.text());
        await new Promise((resolve) => setTimeout(resolve));
        const end = performance.now() + 2500;
        while (performance.now() < end);
        postMessage(await Promise.race([downloads.failure.catch((error) => error.message), came]));
    }"""
    said = visit.page.evaluate(
        """([code, address]) => new Promise((resolve) => {
            const script = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
            const worker = new Worker(script, { type: "module" });
            worker.onmessage = ({ data }) => resolve(data);
            worker.postMessage(address);
        })""",
        [worker, f"{visit.site}_static/live/downloads.js"],
    )
    assert "class Downloads" in said


def test_python_that_ends_unexpectedly_is_started_anew(visit):
    rewrite(visit, 1, "import time\nprint('it runs', flush=True)\nwhile True:\n    pass")
    press(visit, 1)
    reached(visit, "running")
    visit.page.evaluate("() => tinytorchLive.kernel.worker.dispatchEvent(new Event('error'))")
    reached(visit, "error")
    assert "it ended unexpectedly" in status(visit)
    rewrite(visit, 1, "print('anew')")
    press(visit, 1)
    assert "anew" in ended(visit, 1)


def test_a_full_disk_and_refused_storage_keep_nobody_from_running_cells(context, network):
    context.add_init_script("""
        const setItem = Storage.prototype.setItem;
        Storage.prototype.setItem = function (key, value) {
            if (!key.startsWith('tinytorch-book')) return setItem.call(this, key, value);
            throw new DOMException('full', 'QuotaExceededError');
        };
        Object.defineProperty(globalThis, 'caches', {get() { throw new Error('refused'); }});
        Object.defineProperty(globalThis, 'indexedDB', {get() { throw new Error('refused'); }});
    """)
    visit = Visit(context, network.address)
    visit.open_live(SHORT)
    rewrite(visit, 1, "print('it runs')")
    press(visit, 1)
    assert "it runs" in ended(visit, 1)
    assert visit.problems == []


def test_what_suits_the_browser_is_loaded_after_the_snapshot(visit):
    """The library for products, everywhere; and random numbers are not everybody's same."""
    code = """
        import random, numpy, tinytorch.training
        from tinytorch.core import functional, products
        assert products.matmul is not numpy.matmul, "the library is not there"
        assert functional.matmul is products.matmul and functional.dot is products.dot
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
