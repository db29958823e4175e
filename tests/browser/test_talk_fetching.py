"""The published model on its way into the browser's own store: whole, or in part; one tab or two.

No page is built for this: the modules of `book/_static/published` are enough. What goes wrong on
the way is tested without a browser (tests/scripts/published.test.mjs).
"""

import base64

import pytest
from served_pages import ROOT, serve
from talk_site import serving

pytestmark = [pytest.mark.browser, pytest.mark.slow]
CONTENT = bytes(i * i % 251 for i in range(1_000_000))
LOAD = """async ({address, sha256, ...settings}) => {
  const {Published} = await import('/published/fetching.js');
  globalThis.model = new Published(address, sha256, settings);
  globalThis.said = [];
  globalThis.fetched = async () => {
    said.length = 0;
    delete globalThis.ending;
    const ending = model.fetch({onprogress: (about) => said.push(about)})
      .then(() => 'whole', (error) => error.message);
    return ending.then((words) => { globalThis.ending = words; return words; });
  };
}"""
CONTENT_OF = """async () => {
  const [{data}] = await model.files();
  return new Promise((done) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => done(reader.result.split(',')[1]));
    reader.readAsDataURL(data);
  });
}"""
BEGIN = "() => { fetched(); }"


@pytest.fixture(scope="module")
def static():
    server, address = serve(ROOT / "book" / "_static")
    yield address
    server.shutdown()
    server.server_close()


@pytest.fixture
def server(tmp_path):
    (tmp_path / "model.gguf").write_bytes(CONTENT)
    with serving(tmp_path / "model.gguf", tmp_path / "pieces") as server:
        yield server


def opened(context, static, server):
    page = context.new_page()
    page.goto(f"{static}playground/tokenizer.json")
    page.evaluate(LOAD, server.known)
    return page


@pytest.fixture
def page(context, static, server):
    return opened(context, static, server)


def is_whole(page):
    return base64.b64decode(page.evaluate(CONTENT_OF)) == CONTENT


def looked(page):
    return page.evaluate("model.look()")


def stalled(page, server):
    """Begin to fetch; the second piece stops half way."""
    server.faults = [None, ("stall", 100_000)]
    page.evaluate(BEGIN)
    page.wait_for_function("() => said.some(({came}) => came > 250_000)")


def test_what_is_kept_is_the_file_and_is_not_asked_for_again(page, context, static, server):
    assert page.evaluate("fetched()") == "whole"
    page.close()
    server.requests.clear()
    again = opened(context, static, server)
    assert looked(again)["isWhole"] and is_whole(again)
    assert server.requests == []
    assert again.evaluate("model.forget()") == len(CONTENT)
    assert looked(again) == {"came": 0, "total": None, "isWhole": False}
    gone = "async () => (await Array.fromAsync((await navigator.storage.getDirectory()).keys()))"
    assert again.evaluate(gone) == []


def test_a_damaged_piece_is_not_kept(page, server):
    path = server.pieces[1]
    right, server.files[path] = server.files[path], bytes(250_000)
    assert page.evaluate("fetched()") == "Piece 2 of 4 has arrived damaged twice: try again later."
    assert looked(page)["came"] == 250_000
    server.files[path] = right
    server.faults = [("break", 100_000)]
    assert page.evaluate("fetched()") == "whole" and is_whole(page)


def limit(page, size):
    session = page.context.new_cdp_session(page)
    origin = page.evaluate("location.origin")
    session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": size})


def test_a_full_disk_is_reported_and_fetched_pieces_are_kept(page, server):
    stalled(page, server)
    limit(page, 1000)
    server.over.set()
    page.wait_for_function("() => globalThis.ending")
    assert "The disk is full" in page.evaluate("ending")
    limit(page, 1_000_000_000)
    assert looked(page)["came"] == 250_000
    assert page.evaluate("fetched()") == "whole"
    assert is_whole(page)


def test_only_one_of_two_tabs_fetches(page, server, context, static):
    stalled(page, server)
    other = opened(context, static, server)
    other.evaluate(BEGIN)
    other.wait_for_function("() => said.length > 0")
    forgotten = other.evaluate("model.forget().catch((error) => error.message)")
    assert "Another tab" in forgotten and "Another tab" in other.evaluate("said[0].why")
    server.over.set()
    for tab in (page, other):
        tab.wait_for_function("() => globalThis.ending")
        assert tab.evaluate("ending") == "whole" and is_whole(tab)
    asked = [path for path, _ in server.requests]
    assert asked.count(server.pieces[0]) == asked.count(server.pieces[3]) == 1, "by both"


def test_without_private_files_the_cache_keeps_it(context, static, server):
    context.add_init_script("delete FileSystemFileHandle.prototype.createWritable")
    page = opened(context, static, server)
    server.faults = [None, 404]
    assert page.evaluate("fetched()") != "whole"
    assert looked(page)["came"] == 250_000
    assert page.evaluate("fetched()") == "whole" and is_whole(page)
    assert page.evaluate("model.forget()") == len(CONTENT)
    assert page.evaluate("caches.open('tinytorch-model').then((c) => c.keys())") == []
