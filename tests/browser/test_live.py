"""Live cells in a real browser: every cell of every chapter runs there and prints what is stored.

The states of a cell are tested without a browser (tests/scripts/live_cells.test.mjs). One Python a
page, one page at a time; the network reaches only this machine. A cell with a smaller
run is run at that size; one that cannot run in a browser (tag `live-skip`) is not run, and what one
with tag `live-varies` prints is not compared.
"""

import re
from urllib.parse import urlsplit

import pytest
from _ext.live import pinned_downloads
from _ext.notebooks.tolerance import agree
from conftest import missing
from served_pages import PAGES, ROOT, SITE
from visit import LAPTOP, OVERFLOW, PHONE, READY, UNFOLD, Visit

# In these a walk meets all that the runner does: plain Python, checks, smaller runs, skipped cells.
WALKED = {
    "book/first-words/counting-letters",
    "book/attention/scaled-dot-product",
    "book/systems/more-than-one-machine",
}
CHAPTERS = [p for p in PAGES if "{code-cell}" in (ROOT / f"{p}.md").read_text(encoding="utf-8")]
SHORT = "book/foundations/tensors"
VOICE = "[...document.querySelectorAll('body > [aria-live]')].map(e => e.textContent).join(' ')"
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("python_inside")]
IGNORED = {"nbval-ignore-output", "live-varies"}

# Walks through the cells in their order, each once; a solution is written into its stub's editor
# and checked there.
WALK = """async () => {
    const walked = [];
    const figures = (cell) => cell.element.querySelectorAll('svg.tt-figure').length;
    let stub = null;
    for (const cell of tinytorchLive.cells) {
        const told = {number: cell.number, tags: cell.info.tags,
            compare: cell.info.compare, stored: cell.output.text,
            figures: figures(cell)};
        walked.push(told);
        if (!cell.runnable) continue;
        const pressed = cell.isSolution ? stub : cell;
        if (cell.isSolution) { await stub.edit(); stub.editor.text = cell.original; }
        const {type, ok, text} = await pressed.press(Boolean(cell.info.smaller));
        Object.assign(told, {small: pressed.small, type, ok, passed: pressed.report?.passed,
            came: pressed.output.text + (cell.isStub ? '' : pressed.report?.text ?? '')
                || text || '',
            drawn: figures(pressed),
            open: cell.isSolution && cell.element.querySelector('details').open});
        if (cell.isStub) stub = cell;
    }
    return walked;
}"""


@pytest.fixture
def opened(context, site):
    """A function that opens a page whose cells are ready to be run."""

    def open_page(docname):
        visit = Visit(context, site)
        visit.open_live(docname)
        visit.page.evaluate(UNFOLD)
        return visit

    return open_page


@pytest.fixture(scope="module")
def started(browser, site):
    """A page whose Python runs, for every test that disturbs no other by its cells."""
    context = browser.new_context(color_scheme="light", viewport=LAPTOP)
    visit = Visit(context, site)
    visit.open_live(SHORT)
    visit.page.evaluate(UNFOLD)
    press(visit, 1)
    ended(visit, 1)
    yield visit
    context.close()


@pytest.fixture
def live(started):
    """That page with its cells as the book has them; what names Python has is not said."""
    started.forget()
    started.page.evaluate("tinytorchLive.cells.forEach((cell) => cell.reset())")
    yield started
    if started.page.evaluate("tinytorchLive.kernel.state") != "ready":
        started.page.evaluate("tinytorchLive.kernel.restart()")
    assert started.problems == []


def reload(visit):
    """Come back to the page; what it folds is open, for a test that sees its cells."""
    visit.page.reload()
    visit.page.wait_for_function(READY)
    visit.page.evaluate(UNFOLD)


def cell(visit, number):
    return visit.page.locator("div.cell:has(.cell_input)").nth(number - 1)


def rewrite(visit, number, code):
    """Type into a cell what a reader might, and wait until the editor has measured its lines.

    It measures what is in sight. Until then what is below it moves, and a press begins on a button
    and ends beside it.
    """
    visit.page.evaluate(
        """async ([n, code]) => {
            const cell = tinytorchLive.cells[n - 1];
            cell.element.scrollIntoView({block: "center", behavior: "instant"});
            await cell.edit();
            cell.editor.text = code;
            await document.fonts.ready;
            const height = (part) => cell.element.querySelector(part).offsetHeight;
            const frame = () => new Promise(requestAnimationFrame);
            const still = () => height(".cm-gutters") <= height(".cm-content");
            for (let frames = 0; frames < 5; frames = still() ? frames + 1 : 0) await frame();
        }""",
        [number, code],
    )


def press(visit, number, name="Run"):
    cell(visit, number).get_by_role("button", name=name).first.click()


def focused(visit):
    return visit.page.evaluate("document.activeElement.ariaLabel")


def ended(visit, number, state="done"):
    """Wait until a cell has ended, as it should; what it printed."""
    ends = visit.page.locator(f'[data-live="{state}"], [data-live="error"]')
    cell(visit, number).and_(ends).wait_for()
    printed = cell(visit, number).locator(".cell_output").last.inner_text()
    assert cell(visit, number).get_attribute("data-live") == state, printed
    return printed


def lines(text):
    """The stored text has lost empty lines and spaces at line ends on its way into the page.

    It does not say which parts are kept: those of the page that was built are not.
    """
    told = re.sub(r"^  kept as your part[^)]*\)", "", text, flags=re.M)  # it may be two lines
    return [line.rstrip() for line in told.splitlines() if line.strip()]


@pytest.mark.parametrize(
    "docname",
    [pytest.param(c, marks=[] if c in WALKED else [pytest.mark.proof]) for c in CHAPTERS],
)
def test_every_cell_prints_what_is_stored_and_every_exercise_is_checked(opened, docname):
    """Each stub is refused and each solution, in its stub's editor, accepted."""
    visit = opened(docname)
    fetch_the_model(visit)
    walked = visit.page.evaluate(WALK)
    assert [told for told in walked if "type" not in told and "live-skip" not in told["tags"]] == []
    for told in (told for told in walked if "type" in told):
        where, tags = f"cell {told['number']} of {docname}", set(told["tags"])
        wanted = "raises-exception" not in tags
        assert (told["type"], told["ok"]) == ("done", wanted), f"{where}: {told['came']}"
        assert told["small"] or told["drawn"] == told["figures"], where
        if not told["small"] and not IGNORED & tags:
            came, stored = ("\n".join(lines(told[text])) for text in ("came", "stored"))
            assert agree(came, stored, told["compare"]), where
        if "exercise-stub" in tags:
            assert told["passed"] is False, f"{where}: the stub is accepted"
        if "exercise-solution" in tags:
            assert told["passed"], f"{where}: the solution is refused: {told['came']}"
            assert told["open"], f"{where}: the solution does not unfold"
    solutions = [told for told in walked if "exercise-solution" in told["tags"]]
    assert visit.page.locator(".tt-live__solved").count() == len(solutions)
    visit.page.set_viewport_size(PHONE)
    assert visit.page.evaluate(OVERFLOW) == []
    assert visit.problems == []


def fetch_the_model(visit):
    """Press the button of a page whose cells run a published model."""
    place = visit.page.locator(".tt-talk")
    if place.count():
        if not (SITE / "_static/live/smollm2/manifest.json").exists():
            missing("the site holds no model: run `make live`, then `make book`")
        place.get_by_role("button", name="Fetch the model").click()
        visit.page.wait_for_function(
            "() => document.querySelector('.tt-talk').dataset.state === 'whole'"
        )


def test_stop_keeps_the_names_from_the_first_visit_on(opened):
    """Through the service worker at first; once the page is isolated through shared memory."""
    visit = opened(SHORT)
    for isolated in (False, True):
        assert visit.page.evaluate("crossOriginIsolated") == isolated
        press(visit, 1)
        ended(visit, 1)
        assert visit.page.evaluate("tinytorchLive.kernel.canInterrupt")
        rewrite(visit, 2, "while True:\n    pass")
        cell(visit, 2).get_by_role("button", name="Run").first.focus()
        visit.page.keyboard.press("Enter")
        cell(visit, 2).and_(visit.page.locator('[data-live="running"]')).wait_for()
        assert focused(visit) == "Stop cell 2"
        visit.page.keyboard.press("Enter")
        assert "Stopped." in ended(visit, 2, "error")
        assert focused(visit) == "Run cell 2"
        rewrite(visit, 2, "print(np.ones(2))")
        press(visit, 2)
        assert "[1. 1.]" in ended(visit, 2), "the names of cell 1 are still there"
        visit.page.evaluate("async () => { await navigator.serviceWorker.ready; }")
        reload(visit)
        source = visit.page.evaluate("tinytorchLive.cells[1].source")
        assert source == "print(np.ones(2))", "edits are kept"
    assert visit.problems == []


def test_an_error_is_explained_before_a_traceback_that_begins_in_the_cell(live):
    for code, said, last in (
        ("def half(x):\n    return x / 0\n\nhalf(1)", "", "return x / 0"),
        (
            "vektors = 1\nvektor",
            "Nothing is called “vektor” here; there is “vektors”.",
            "NameError: ",
        ),
    ):
        rewrite(live, 1, code)
        press(live, 1)
        printed = ended(live, 1, "error")
        assert printed.startswith(said)
        assert "live_runner" not in printed and "pyodide" not in printed
        assert last in printed
        assert said in live.page.evaluate(VOICE)


def test_two_tabs_keep_their_names_apart_and_their_progress_together(opened):
    """Solve the first exercise in one tab, the second in another, and the third in the first."""
    tabs = opened(SHORT), opened(SHORT)
    stubs = tabs[0].page.evaluate(
        "tinytorchLive.cells.filter((cell) => cell.isStub).map((cell) => cell.number)"
    )
    solutions = tabs[0].page.evaluate(
        "tinytorchLive.cells.filter((cell) => cell.isSolution).map((cell) => cell.original)"
    )
    for i, visit in enumerate((tabs[0], tabs[1], tabs[0])):
        imports = "import numpy as np\nfrom tinytorch import Tensor, functional, ops\n"
        imports += "from tinytorch_book import check"
        rewrite(visit, stubs[i], f"{imports}\ntab = {i % 2}\n{solutions[i]}")
        press(visit, stubs[i], "Check")
        ended(visit, stubs[i])
    for i, visit in enumerate(tabs):
        badges = visit.page.locator(".tt-live__solved")
        badges.nth(2).wait_for()
        assert badges.count() == 3
        assert visit.page.locator(".bd-links .tt-live__count").inner_text().startswith("4/")
        rewrite(visit, 1, "print('tab', tab)")
        press(visit, 1)
        assert f"tab {i}" in ended(visit, 1)
    assert tabs[0].problems == tabs[1].problems == []


def test_long_output_and_progress_lines_are_kept_short(live):
    code = "for i in range(100):\n    print(f'\\r{i} %', end='', flush=True)\nprint()\n"
    rewrite(live, 1, code + "for i in range(60_000):\n    print(i)")
    press(live, 1)
    ended(live, 1)
    text = live.page.evaluate("tinytorchLive.cells[0].output.text")
    assert text.startswith("99 %\n0\n1\n") and "is left out" in text
    assert len(text) < 250_000
    assert cell(live, 1).bounding_box()["height"] < LAPTOP["height"]
    assert cell(live, 1).locator(".cell_output pre").get_attribute("tabindex") == "0"
    rewrite(live, 1, "for i in range(200):\n    display(i)")
    press(live, 1)
    live.page.wait_for_function("() => tinytorchLive.cells[0].output.text.endsWith('199\\n')")
    assert cell(live, 1).bounding_box()["height"] < 2 * LAPTOP["height"]


def test_an_unsupported_action_names_where_it_is_possible(live):
    rewrite(live, 1, "!pip install torch\nimport torch")
    press(live, 1)
    ended(live, 1, "error")
    notes = cell(live, 1).locator(".tt-live__note")
    assert "Line 1 was left out (!pip install torch)" in notes.first.inner_text()
    assert "torch cannot be installed in this page" in notes.last.inner_text()
    assert "Run this in Colab or Binder." in notes.last.inner_text()
    link = notes.last.get_by_role("link", name="Colab").get_attribute("href")
    assert link.endswith("book/notebooks/tensors.ipynb")
    rewrite(live, 1, "%timeit 1\nname = input('Who? ')")
    press(live, 1)
    cell(live, 1).get_by_text("A page cannot wait for an answer.").wait_for()
    lite = notes.first.get_by_role("link", name="JupyterLite").evaluate("link => link.href")
    assert urlsplit(lite).path == "/lite/lab/index.html"


def test_a_plot_of_the_readers_own_has_the_books_style_in_both_schemes(live):
    rewrite(
        live, 1, "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2], label='mine');plt.legend();"
    )
    press(live, 1)
    ended(live, 1)
    look = """scheme => { document.documentElement.dataset.theme = scheme;
        const svg = document.querySelector('.tt-live__own svg.tt-figure');
        const paper = getComputedStyle(svg.querySelector('g path')).fill;
        const page = getComputedStyle(svg.closest('.cell_output')).backgroundColor;
        const words = [...svg.querySelectorAll('text')].map(e => getComputedStyle(e).fill);
        return [paper, page, words.join()]; }"""
    light, dark = (live.page.evaluate(look, scheme) for scheme in ("light", "dark"))
    live.page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert light[0] == light[1] and dark[0] == dark[1], "the figure stands on the page's paper"
    assert light[0] != dark[0] and light[2] != dark[2]


def test_the_output_is_announced_once_and_shortened(live):
    live.page.evaluate(
        """() => { const region = document.querySelector('body > [role=log]');
        globalThis.heard = [];
        new MutationObserver(() => heard.push(region.lastChild.textContent)).observe(region,
            {childList: true}); }"""
    )
    rewrite(live, 1, "for i in range(100):\n    print('line', i)")
    press(live, 1)
    ended(live, 1)
    told = "cell 1: finished\nline 0\nline 1\nline 2\nand 97 more lines"
    live.page.wait_for_function("told => heard.includes(told)", arg=told)
    assert [text for text in live.page.evaluate("heard") if "line 0" in text] == [told]
    assert live.page.locator(".cell_output [aria-live], .cell_output[aria-live]").count() == 0


def test_the_editor_shows_code_at_the_size_it_had(live):
    size = """() => { const block = tinytorchLive.cells[1].element.querySelector('.cell_input');
        const code = block.querySelector('.cm-line') ?? block.querySelector('pre');
        const style = getComputedStyle(code);
        return [style.fontSize, parseFloat(style.lineHeight)]; }"""
    before = live.page.evaluate(size)
    live.page.evaluate("() => tinytorchLive.cells[1].edit()")
    assert live.page.locator(".cm-line").count()
    assert live.page.evaluate(size) == before


def test_a_cell_does_not_jump_when_its_editor_opens(live):
    """What stands below it keeps its place; so it does when the code is put back."""
    below = """async (i) => { const {bar} = tinytorchLive.cells[i];
        bar.scrollIntoView({block: 'center'});
        for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
        await document.fonts.ready;
        return [bar, bar.parentElement.closest('div.cell').nextElementSibling]
            .map(e => e.getBoundingClientRect().top + scrollY); }"""
    opened = "() => document.querySelectorAll('div.cell details').forEach(e => { e.open = true; })"
    live.page.evaluate(opened)  # an editor opens a fold
    for i in range(4):
        before = live.page.evaluate(below, i)
        live.page.evaluate("i => tinytorchLive.cells[i].edit()", i)
        after = live.page.evaluate(below, i)
        live.page.evaluate("i => tinytorchLive.cells[i].reset()", i)
        assert after == pytest.approx(before, abs=2), f"cell {i + 1}"
        assert live.page.evaluate(below, i) == pytest.approx(before, abs=2)


@pytest.mark.parametrize("touch", [False, True])
def test_keys_are_not_mentioned_without_a_keyboard(browser, site, touch):
    context = browser.new_context(viewport=PHONE, has_touch=touch, is_mobile=touch)
    page = Visit(context, site).open_live(SHORT)
    page.evaluate("tinytorchLive.cells[0].edit()")
    said = page.locator(".tt-live__status").first.inner_text()
    assert said == ("" if touch else "Esc leaves the editor, Ctrl+Enter runs")
    context.close()


def test_every_button_is_named_and_large_enough(opened):
    visit = opened(SHORT)
    visit.page.set_viewport_size(PHONE)
    visit.page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
    small = visit.page.evaluate(
        "() => [...document.querySelectorAll('.tt-live__button')].filter(b => b.offsetParent)"
        ".map(b => [b.ariaLabel || b.textContent, b.getBoundingClientRect()])"
        ".filter(([name, r]) => !name || r.height < 24 || r.width < 24)"
    )
    assert small == []


def test_without_scripts_the_page_says_where_its_cells_run(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}{SHORT}.html")
    note = page.locator(".tt-live-plain:visible")
    assert "Colab" in note.inner_text() and "Binder" in note.inner_text()
    assert page.get_by_role("button", name="Run").count() == 0
    context.close()


def test_opened_as_a_file_the_page_is_the_plain_book(context):
    page, problems = context.new_page(), []
    page.on("pageerror", lambda error: problems.append(str(error)))

    def hear(message):
        """A page opened as a file gets no fonts from Chromium, and has others to fall back on."""
        if message.type == "error" and "/fonts/" not in message.text + message.location["url"]:
            problems.append(message.text)

    page.on("console", hear)
    page.goto((SITE / f"{SHORT}.html").as_uri())
    assert page.locator(".tt-live-plain:visible").count() == 1
    assert page.locator(".tt-live__button").count() == 0
    assert problems == []


def test_nothing_of_python_is_loaded_before_the_first_press(opened):
    visit = opened(SHORT)
    visit.page.wait_for_load_state("networkidle")
    asked = [urlsplit(response.url).path for response in visit.responses]
    assert not [
        path for path in asked if "pyodide" in path or path.endswith((".whl", ".bin", "editor.js"))
    ]
    assert (
        visit.page.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length")
        == 0
    )


def test_the_sites_python_is_the_pinned_one():
    page = (SITE / f"{SHORT}.html").read_text(encoding="utf-8")
    assert '"runtime":"_static/live/pyodide/"' in page
    wanted = {path.name for path in pinned_downloads.files("pyodide")}
    assert wanted == {path.name for path in (SITE / "_static/live/pyodide").iterdir()}
