"""A reader's own file, dropped on the page or chosen, in a real browser: nothing of it leaves."""

import io
import zipfile

import pytest
from visit import LAPTOP, OVERFLOW, PHONE, READY, UNFOLD, Visit

YOURS = "book/real/your-text"
LOOK = 2  # the cell that reads the file
POEM = "Zoë had a hat, and the hat was red.\n" * 200
SECRET = "Mia-lost-her-purple-umbrella"
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("python_inside")]

# Drops files on a place, as the browser would: bytes, or so many bytes of text.
DROP = """([files, which]) => {
    const carried = new DataTransfer();
    for (const [name, content] of files) {
        const part = typeof content !== "number" ? new Uint8Array(content)
            : "words ".repeat(Math.ceil(content / 6)).slice(0, content);
        carried.items.add(new File([part], name));
    }
    const place = which < 0 ? document.body : document.querySelectorAll(".tt-file")[which];
    const events = ["dragenter", "dragover", "drop"].map((type) => (
        new DragEvent(type, {dataTransfer: carried, bubbles: true, cancelable: true})));
    return events.map((event) => !place.dispatchEvent(event));
}"""


@pytest.fixture(scope="module")
def started(browser, site):
    """The page, its first cell run; `sent` is what it has asked for since."""
    context = browser.new_context(color_scheme="light", viewport=LAPTOP)
    visit = Visit(context, site)
    visit.sent = []
    visit.open_live(YOURS)
    visit.page.evaluate(UNFOLD)
    assert run(visit, 1)[0]
    context.on("request", lambda request: visit.sent.append(request))
    yield visit
    context.close()


@pytest.fixture
def yours(started):
    """That page, without a file."""
    started.forget()
    started.sent.clear()
    yield started
    forget = place(started).get_by_role("button", name="Forget it: your text")
    if forget.is_visible():
        forget.click()
        until(started, "It is forgotten.")
    assert [p for p in started.problems if "There is no room" not in p] == []


def place(visit, which=0):
    return visit.page.locator(".tt-file").nth(which)


def until(visit, words, which=0):
    """Wait until a place says this; all that it says."""
    said = place(visit, which).locator(".tt-file__status")
    said.filter(has_text=words).wait_for()
    return said.inner_text()


def drop(visit, *files, which=0):
    sent = [[name, body if isinstance(body, int) else list(body)] for name, body in files]
    return visit.page.evaluate(DROP, [sent, which])


def run(visit, number):
    """Run a cell and wait for it; whether it ended well, and what it printed."""
    return visit.page.evaluate(
        """async (n) => {
            const cell = tinytorchLive.cells[n - 1];
            const {ok} = await cell.press();
            return [ok, cell.output.text];
        }""",
        number,
    )


def zipped(name):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "<x/>")
    return file.getvalue()


def test_a_dropped_text_is_what_the_cells_read(yours):
    taken = drop(yours, ("my poem.txt", POEM.encode()))
    assert taken[1:] == [True, True], "the browser would open it instead"
    said = until(yours, "The cells now find it as your-text.txt")
    assert said.startswith("my poem.txt: 7,200 characters in 201 lines.")
    ok, printed = run(yours, LOOK)
    assert ok and "your-text.txt, the first 7,400 of 7,400 bytes" in printed


def test_nothing_of_a_file_leaves_the_browser(yours):
    drop(yours, ("secret.txt", (f"{SECRET} " * 300).encode()))
    until(yours, "The cells now find it")
    assert run(yours, LOOK)[0]
    asked = [r for r in yours.sent if not r.url.startswith("blob:")]
    assert [r.url for r in asked if not r.url.startswith(yours.site)] == []
    assert {r.method for r in asked} <= {"GET"} and not any(r.post_data for r in asked)
    assert not any(SECRET in r.url for r in asked)
    assert "sent nowhere" in place(yours).inner_text()
    stores = yours.page.evaluate(
        """async () => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie,
            (await indexedDB.databases()).map(({name}) => name)])"""
    )
    assert SECRET not in stores


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.txt", b"", "empty.txt is empty, or a folder."),
        ("tiny.txt", b"abc", "tiny.txt is too short: it has 3 characters, and needs 4,000."),
        ("a.pdf", b"%PDF-1.7\n\xe2\xe3", "a.pdf is a PDF, not a text"),
        ("a.docx", zipped("word/document.xml"), "a.docx is a Word document (.docx), not a text"),
        ("a.zip", zipped("a.txt"), "a.zip is a zip archive, not a text"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0", "a.png is a PNG picture, not a text"),
        ("a.bin", bytes(range(256)) * 40, "a.bin is not a text: byte 0x00 at position 0"),
    ],
)
def test_a_file_without_text_is_explained_and_changes_nothing(yours, name, content, said):
    drop(yours, (name, content))
    assert until(yours, said)
    assert place(yours).locator("[data-state=error]").is_visible()
    ok, printed = run(yours, LOOK)
    assert ok and "there is no your-text.txt: this book's own prose" in printed


def test_a_file_of_50_mb_is_accepted_and_its_beginning_read(yours):
    drop(yours, ("long.txt", 50_000_000))
    assert until(yours, "The cells now find it").startswith("long.txt: 50,000,000 characters")
    ok, printed = run(yours, LOOK)
    assert ok and "the first 1,000,000 of 50,000,000 bytes" in printed


def test_a_file_above_the_size_limit_is_refused(yours):
    drop(yours, ("huge.txt", 100_000_001))
    until(yours, "huge.txt has 100.0 MB; a page takes 100.0 MB at most. Cut off a piece of it.")


def test_another_encoding_is_chosen_by_the_reader_with_the_keyboard(yours):
    drop(yours, ("old.txt", POEM.encode("cp1252")))
    assert "it reads 'Zoë had a hat" in until(yours, "old.txt is not UTF-8: byte 0xeb")
    offered = place(yours).get_by_role("button", name="Read it as Windows-1252")
    offered.focus()
    yours.page.keyboard.press("Enter")
    until(yours, "The cells now find it")
    assert yours.page.evaluate("document.activeElement.textContent") == "Choose a file"
    assert run(yours, LOOK)[0]


def test_a_file_is_chosen_with_the_keyboard_and_the_result_is_announced(yours):
    choose = place(yours).get_by_role("button", name="Choose a file: Your text")
    with yours.page.expect_file_chooser() as chooser:
        choose.focus()  # an answer: from here on the browser hands the chooser over
        choose.press("Enter")
    chooser.value.set_files({"name": "a.txt", "mimeType": "text/plain", "buffer": POEM.encode()})
    said = until(yours, "The cells now find it")
    assert yours.page.locator("body > [role=log] > :last-child").inner_text() == said


def test_several_files_are_refused_and_a_missed_drop_does_not_leave_the_page(yours):
    drop(yours, ("a.txt", b"a"), ("b.txt", b"b"))
    until(yours, "These are 2 files: put them into one.")
    assert drop(yours, ("a.txt", b"a"), which=-1)[1:] == [True, True]


def test_a_restarted_python_gets_the_file_again_unless_it_was_forgotten(yours):
    drop(yours, ("mine.txt", POEM.encode()))
    until(yours, "The cells now find it")
    drop(yours, ("a.pdf", b"%PDF-1.7"))
    assert until(yours, "a.pdf is a PDF").endswith("The file before it is still in place.")
    yours.page.evaluate("tinytorchLive.kernel.restart()")
    assert run(yours, 1)[0]
    assert "your-text.txt, the first 7,400" in run(yours, LOOK)[1]
    place(yours).get_by_role("button", name="Forget it: your text").click()
    until(yours, "It is forgotten.")
    assert "there is no your-text.txt" in run(yours, LOOK)[1]


def test_a_model_is_saved_to_a_file_and_dropped_again(yours):
    save = place(yours, 1).get_by_role("button", name="Save it: my-model.safetensors")
    save.click()
    until(yours, "There is no my-model.safetensors yet: run the cell that saves it.", which=1)
    yours.page.evaluate(
        """async () => {
            const [cell] = tinytorchLive.cells;
            const before = cell.source;
            cell.write(before + `
from tinytorch import Linear
save_weights("my-model.safetensors", Linear(3, 2, rng=0))
`);
            await cell.press();
            cell.write(before);
        }"""
    )
    with yours.page.expect_download() as download:
        save.click()
    content = download.value.path().read_bytes()
    assert download.value.suggested_filename == "my-model.safetensors"
    assert b'"weight"' in content and "among your downloads" in until(yours, "downloads", which=1)
    drop(yours, ("monday.safetensors", content[:-1]), which=1)
    until(yours, "monday.safetensors: tensor 'weight' ends", which=1)
    drop(yours, ("monday.safetensors", content), which=1)
    until(
        yours, "monday.safetensors: 2 tensors. The cells now find it as my-model.safetens", which=1
    )
    until(yours, "Run the cell of imports, then the one below.", which=1)
    place(yours, 1).get_by_role("button", name="Forget it: your model").click()
    until(yours, "It is forgotten.", which=1)


def test_a_file_may_be_dropped_before_python_starts(context, site):
    visit = Visit(context, site)
    visit.open_live(YOURS)
    drop(visit, ("first.txt", POEM.encode()))
    until(visit, "The cells now find it as your-text.txt")
    assert run(visit, 1)[0]
    assert "your-text.txt, the first 7,400" in run(visit, LOOK)[1]
    assert visit.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_place_fits_a_phone_in_both_schemes(browser, site, scheme):
    context = browser.new_context(color_scheme=scheme, viewport=PHONE)
    visit = Visit(context, site)
    visit.open_live(YOURS)
    drop(visit, ("x" * 200 + ".txt", b""))
    until(visit, "is empty, or a folder")
    assert visit.page.evaluate(OVERFLOW) == []
    assert visit.problems == []
    context.close()


def test_without_scripts_a_sentence_says_what_to_do(browser, site):
    context = browser.new_context(java_script_enabled=False, viewport=PHONE)
    page = context.new_page()
    page.goto(f"{site}{YOURS}.html")
    assert "in place of your-text.txt" in page.locator(".tt-file").first.inner_text()
    assert page.locator(".tt-file button").count() == 0
    context.close()


def test_the_page_comes_back_without_the_file(yours):
    """It was said that reloading forgets it."""
    drop(yours, ("mine.txt", POEM.encode()))
    until(yours, "The cells now find it")
    yours.page.reload()
    yours.page.wait_for_function(READY)
    yours.page.evaluate(UNFOLD)
    assert run(yours, 1)[0]
    assert "there is no your-text.txt" in run(yours, LOOK)[1]
