"""The published weights on their way into the browser: fetched in ranges, made into 8 bits, kept.

No page is built for this: the modules of `book/_static/published` are enough. The other site is one
of this machine.
"""

import base64
import itertools

import numpy as np
import pytest
from published_hub import EXPOSED, WEIGHTS, serving, write_folder
from served_pages import ROOT, serve

from tinytorch.core.quantization import quantize_rows
from tinytorch.files.safetensors import load_safetensors
from tinytorch.models.gpt2 import load_gpt2
from tinytorch.training.checkpoint import save_weights

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOLDER = ROOT / "book" / "_static"
HEADER = [None, None]  # the answers with its length, and with it
FIRST = [*HEADER, None]  # and with what lies between the first mask and the second
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


def test_the_file_that_is_made_is_pythons_to_the_bit(context, static, each, tmp_path):
    with serving(each) as hub:
        page = opened(context, static, hub.address)
        assert page.evaluate("fetched()") == "whole"
        assert content_of(page) == made_by_python(each, tmp_path)
        for name in ("config.json", "vocab.json", "merges.txt"):
            assert content_of(page, name) == (each / name).read_bytes()


def test_masks_are_not_fetched(page, hub, folder):
    assert page.evaluate("fetched()") == "whole"
    header = 8 + int.from_bytes((folder / WEIGHTS).read_bytes()[:8], "little")
    arrays, _ = load_safetensors(folder / WEIGHTS)
    useful = sum(a.nbytes for name, a in arrays.items() if not name.endswith(".attn.bias"))
    asked = [tuple(map(int, found[6:].split("-"))) for found in ranges_of(hub)]
    assert sum(last + 1 - first for first, last in asked) == header + useful


def test_numbers_between_two_are_rounded_as_numpy_does(page):
    rng = np.random.default_rng(1)
    matrix = rng.integers(-254, 255, (50, 300)).astype(np.float32) / 2  # many halves
    matrix[:, 0] = 127
    matrix[3], matrix[4, :], matrix[5] = 0, -0.0, 1e-44
    matrix[6:20] *= rng.uniform(0.1, 10, (14, 1)).astype(np.float32)
    found = page.evaluate(
        """async (rows) => {
            const {quantizeRows} = await import('/published/rows.js');
            const {q, scales} = quantizeRows(new Float32Array(rows.flat()), rows[0].length);
            return [[...q], [...scales]];
        }""",
        matrix.tolist(),
    )
    q, scales = quantize_rows(matrix)
    np.testing.assert_array_equal(np.reshape(found[0], q.shape), q)
    np.testing.assert_array_equal(np.float32(found[1]), scales)


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


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (("break", 100_000), "The connection to 127.0.0.1:"),
        (429, "Too many requests"),
        (503, "cannot answer at the moment (503)"),
    ],
)
def test_a_break_is_said_and_made_good(page, hub, expected, fault, words):
    hub.faults = [*FIRST, fault, *HEADER, fault]
    ending, said = fetched(page)
    assert ending == "whole"
    assert [words in why for why in said] == [True, True]
    assert "The next try comes in 0.0" in said[0]
    assert content_of(page) == expected


def test_silence_is_said_and_made_good(page, hub, expected):
    page.evaluate("published.patience = 1")
    hub.faults = [*FIRST, ("stall", 100_000)]
    ending, said = fetched(page)
    assert ending == "whole"
    assert any("has sent nothing of model.safetensors for 1 s" in why for why in said)
    assert content_of(page) == expected


def test_what_has_come_is_not_fetched_again(page, hub, expected, context, static):
    """Also not after the page has been closed."""
    hub.faults = [*FIRST, ("break", 1_000_000), *[503] * 9]
    ending, said = fetched(page)
    assert "cannot answer" in ending and len(said) == 4
    page.close()
    kept = hub.sent
    hub.faults = []
    again = opened(context, static, hub.address)
    found = looked(again)
    assert 0 < found["came"] < found["total"] and not found["isWhole"] and found["kept"] > 0
    assert again.evaluate("fetched()") == "whole"
    assert hub.sent - kept < found["total"] - found["came"] + 10_000
    assert content_of(again) == expected
    assert looked(again)["isWhole"]


def test_once_it_is_here_nothing_is_asked_for(page, hub, context, static, expected):
    page.evaluate("fetched()")
    page.close()
    hub.requests.clear()
    again = opened(context, static, hub.address)
    assert looked(again)["isWhole"]
    assert content_of(again) == expected
    assert hub.requests == []


@pytest.mark.parametrize("status", [401, 403, 404, 410, 418])
def test_a_refusal_is_said_at_once(page, hub, status):
    hub.faults = [status]
    ending, said = fetched(page)
    assert f"({status}: model.safetensors)" in ending and said == []
    assert len(hub.requests) == 1
    assert looked(page)["kept"] == 0


def test_a_site_that_answers_no_other_is_said_at_once(page, hub):
    hub.always.clear()
    ending, said = fetched(page)
    assert "it does not let pages of other sites read its files" in ending and said == []


def test_without_a_connection_that_is_said(page, hub):
    page.context.set_offline(True)
    assert fetched(page) == ("There is no connection to the network.", [])


def test_a_site_that_knows_no_ranges_is_read_from_the_beginning(page, hub, expected):
    hub.ranges = False
    assert page.evaluate("fetched()") == "whole"
    assert content_of(page) == expected


@pytest.mark.parametrize("exposed", [True, False])
def test_more_than_was_asked_for_is_left_unread(page, hub, expected, exposed):
    if not exposed:
        del hub.always[EXPOSED]
    hub.faults = [*HEADER, "long", "long"]
    assert page.evaluate("fetched()") == "whole"
    assert content_of(page) == expected


def test_another_part_than_was_asked_for_is_refused(page, hub):
    hub.faults = [*HEADER, "elsewhere"]
    assert "another part of model.safetensors than it was asked for" in fetched(page)[0]


@pytest.mark.parametrize("what", ["etag", "header"])
def test_a_changed_file_begins_again(context, static, tmp_path, what):
    """The second file has other weights; where its mark cannot be seen, its header tells."""
    folder = write_folder(tmp_path / "hub")
    with serving(folder) as hub:
        if what == "header":
            del hub.always[EXPOSED]
        page = opened(context, static, hub.address)
        hub.faults = [*FIRST, ("break", 1_000_000), 404]
        fetched(page)
        assert looked(page)["came"] > 0
        write_folder(folder, seed=1, n_layer=1 + (what == "etag"))
        ending, said = fetched(page)
        assert ending == "whole" and "it begins anew" in said[0] and len(said) == 1
        assert content_of(page) == made_by_python(folder, tmp_path)


def test_a_file_that_changes_all_the_time_is_given_up(page, hub):
    class Another:
        marks = itertools.count()

        def __str__(self):
            return f'"{next(self.marks)}"'

    hub.headers[f"/{WEIGHTS}"] = {"ETag": Another()}
    ending, said = fetched(page)
    assert "changes while it is fetched" in ending and len(said) == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: b"<html>" + content, "it does not begin like one"),
        (lambda content: content.replace(b'"F32"', b'"F64"', 1), "not of F32 or F16"),
        (lambda content: content.replace(b'{"', b'["', 1), "its header is not JSON"),
        (lambda content: content.replace(b"[20000, 60]", b"[20001, 60]"), "is not as long"),
        (lambda content: content[:-5000], "The connection to"),
    ],
)
def test_a_damaged_file_is_refused_in_words(context, static, folder, tmp_path, change, words):
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    file = tmp_path / WEIGHTS
    file.write_bytes(change(file.read_bytes()))
    with serving(tmp_path) as hub:
        del hub.always[EXPOSED]
        assert words in fetched(opened(context, static, hub.address))[0]


# Room, and other tabs -------------------------------------------------------------------------


def limit(page, size):
    session = page.context.new_cdp_session(page)
    origin = page.evaluate("location.origin")
    session.send("Storage.overrideQuotaForOrigin", {"origin": origin, "quotaSize": size})


def test_too_little_room_is_said_before_anything_is_fetched(page, hub):
    page.evaluate("navigator.storage.estimate = async () => ({quota: 2e6, usage: 1.1e6})")
    ending, _ = fetched(page)
    assert "The model takes 1 MB" in ending and "keep no more than 1 MB" in ending
    assert hub.sent < 10_000


def test_a_full_disk_is_said_and_what_has_come_stays(page, hub, expected):
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


def test_what_is_forgotten_is_gone(page, hub):
    page.evaluate("fetched()")
    kept = looked(page)["kept"]
    assert page.evaluate("published.forget()") == kept > 1_300_000
    assert looked(page) == {"kept": 0, "came": 0, "total": None, "isWhole": False}
    gone = "async () => (await Array.fromAsync((await navigator.storage.getDirectory()).keys()))"
    assert page.evaluate(gone) == []


def test_of_two_tabs_one_fetches(page, hub, context, static, expected):
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


def test_a_pause_ends_it_and_keeps_what_has_come(page, hub, expected):
    hub.faults = [*FIRST, ("stall", 1_000_000)]
    page.evaluate("() => { fetched().then((ending) => { globalThis.ending = ending; }); }")
    page.wait_for_function("() => said.some(({came}) => came > 0)")
    page.evaluate("abort.abort(new Error('paused'))")
    page.wait_for_function("() => globalThis.ending")
    assert page.evaluate("ending") == "paused"
    assert looked(page)["came"] > 0
    assert page.evaluate("fetched()") == "whole"
    assert content_of(page) == expected


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


def test_where_nothing_can_be_kept_that_is_said(context, static, hub):
    context.add_init_script("""
        delete FileSystemFileHandle.prototype.createWritable;
        caches.open = async () => { throw new DOMException('no', 'SecurityError'); };
    """)
    page = opened(context, static, hub.address)
    assert looked(page) is None
    assert "keeps nothing for this page" in fetched(page)[0]
    assert hub.requests == []
