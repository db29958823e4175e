"""The published weights on their way into the browser: fetched in ranges, made into 8 bits, kept.

No page is built for this: the modules of `book/_static/published` are enough. The other site is one
of this machine. What goes wrong on the way is tested without a browser
(tests/scripts/published.test.mjs).
"""

import base64

import numpy as np
import pytest
from published_hub import WEIGHTS, serving, write_folder
from served_pages import ROOT, serve

from tinytorch.models.gpt2 import load_gpt2
from tinytorch.training.checkpoint import save_weights

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOLDER = ROOT / "book" / "_static"
FIRST = 3 * [None]  # the answers before the large part
LOAD = """async (address) => {
  const {Published} = await import('/published/fetching.js');
  globalThis.published = new Published(address, {patience: 600, pause: 0.01});
  globalThis.said = [];
  globalThis.fetched = async () => {
    said.length = 0;
    globalThis.abort = new AbortController();
    try {
      await published.fetch({signal: abort.signal, onprogress: (about) => said.push(about)});
      return 'whole';
    } catch (error) { return error.message; }
  };
  globalThis.encoded = (blob) => new Promise((done) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => done(reader.result.split(',')[1] ?? ''));
    reader.readAsDataURL(blob);
  });
}"""


@pytest.fixture(scope="module")
def static():
    server, address = serve(FOLDER)
    yield address
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module", params=[np.float32, np.float16], ids=["float32", "float16"])
def each(request, tmp_path_factory):
    """A folder of each kind."""
    return write_folder(tmp_path_factory.mktemp("hub"), request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("hub"))


@pytest.fixture
def hub(folder):
    with serving(folder) as hub:
        yield hub


def opened(context, static, address):
    page = context.new_page()
    page.goto(f"{static}playground/tokenizer.json")
    page.evaluate(LOAD, address)
    return page


@pytest.fixture
def page(context, static, hub):
    return opened(context, static, hub.address)


def content_of(page, name=WEIGHTS):
    """What Python would read of a file."""
    code = "async (name) => encoded((await published.files()).find((f) => f.name === name).data)"
    return base64.b64decode(page.evaluate(code, name))


def made_by_python(folder, tmp_path):
    """The file that Python makes of a folder."""
    model, _ = load_gpt2(folder, dtype="int8")
    save_weights(tmp_path / "made", model)
    return (tmp_path / "made").read_bytes()


def ranges_of(hub, name=WEIGHTS):
    return [asked for path, asked in hub.requests if path == f"/{name}"]


# What becomes of it ---------------------------------------------------------------------------


def test_the_quantised_file_equals_pythons_bit_for_bit(context, static, each, tmp_path):
    with serving(each) as hub:
        page = opened(context, static, hub.address)
        assert page.evaluate("fetched()") == "whole"
        assert content_of(page) == made_by_python(each, tmp_path)
        for name in ("config.json", "vocab.json", "merges.txt"):
            assert content_of(page, name) == (each / name).read_bytes()


# What goes wrong ------------------------------------------------------------------------------


def fetched(page):
    """How it ended, in words, and what was said on the way."""
    ending = page.evaluate("fetched()")
    return ending, [about["why"] for about in page.evaluate("said") if "why" in about]


def looked(page):
    return page.evaluate("published.look()")


@pytest.fixture
def expected(folder, tmp_path):
    return made_by_python(folder, tmp_path)


def test_once_the_weights_are_stored_nothing_is_requested(page, hub, context, static, expected):
    page.evaluate("fetched()")
    page.close()
    hub.requests.clear()
    again = opened(context, static, hub.address)
    assert looked(again)["isWhole"]
    assert content_of(again) == expected
    assert hub.requests == []


def test_a_site_that_refuses_other_origins_is_reported_at_once(page, hub):
    hub.always.clear()
    ending, said = fetched(page)
    assert "it does not let pages of other sites read its files" in ending and said == []


# Room, and other tabs -------------------------------------------------------------------------


def limit(page, size):
    session = page.context.new_cdp_session(page)
    origin = page.evaluate("location.origin")
    session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": size})


def test_a_full_disk_is_reported_and_fetched_parts_are_kept(page, hub, expected):
    hub.faults = [*FIRST, ("stall", 1_000_000)]
    page.evaluate("() => { fetched().then((ending) => { globalThis.ending = ending; }); }")
    page.wait_for_function("() => said.some(({came}) => came > 0)")
    limit(page, 1000)
    hub.over.set()
    page.wait_for_function("() => globalThis.ending")
    assert "The disk is full" in page.evaluate("ending")
    limit(page, 1_000_000_000)
    assert looked(page)["came"] > 0
    assert page.evaluate("fetched()") == "whole"
    assert content_of(page) == expected


def test_forgotten_weights_are_deleted(page, hub):
    page.evaluate("fetched()")
    kept = looked(page)["kept"]
    assert page.evaluate("published.forget()") == kept > 1_300_000
    assert looked(page) == {"kept": 0, "came": 0, "total": None, "isWhole": False}
    gone = "async () => (await Array.fromAsync((await navigator.storage.getDirectory()).keys()))"
    assert page.evaluate(gone) == []


def test_only_one_of_two_tabs_fetches(page, hub, context, static, expected):
    hub.faults = [*FIRST, ("stall", 1_000_000)]
    page.evaluate("() => { fetched().then((ending) => { globalThis.ending = ending; }); }")
    page.wait_for_function("() => said.some(({came}) => came > 0)")
    other = opened(context, static, hub.address)
    other.evaluate("() => { fetched().then((ending) => { globalThis.ending = ending; }); }")
    other.wait_for_function("() => said.length > 0")
    forgotten = other.evaluate("published.forget().catch((error) => error.message)")
    assert "Another tab" in forgotten
    hub.over.set()
    for tab in (page, other):
        tab.wait_for_function("() => globalThis.ending")
        assert tab.evaluate("ending") == "whole"
        assert content_of(tab) == expected
    assert "Another tab" in other.evaluate("said[0].why")
    ranges = [found for found in ranges_of(hub) if not found.startswith("bytes=0-7")]
    assert len(ranges_of(hub, "vocab.json")) == 1, "fetched by both"
    assert len(ranges) < 12


def test_without_private_files_the_cache_keeps_it(context, static, hub, expected):
    context.add_init_script("delete FileSystemFileHandle.prototype.createWritable")
    page = opened(context, static, hub.address)
    hub.faults = [*FIRST, ("break", 1_000_000), 404]
    fetched(page)
    assert looked(page)["came"] > 0
    assert page.evaluate("fetched()") == "whole"
    assert content_of(page) == expected
    assert page.evaluate("published.forget()") > 0
    assert page.evaluate("caches.open('tinytorch-gpt2').then((c) => c.keys())") == []


def test_a_browser_that_cannot_store_files_is_reported(context, static, hub):
    context.add_init_script("""
        delete FileSystemFileHandle.prototype.createWritable;
        caches.open = async () => { throw new DOMException('no', 'SecurityError'); };
    """)
    page = opened(context, static, hub.address)
    assert looked(page) is None
    assert "keeps nothing for this page" in fetched(page)[0]
    assert hub.requests == []
