"""Live cells in a real browser: every cell of every chapter runs there and prints what is stored.

One Python a page, one page at a time; the network reaches only this machine. A cell with a smaller
run is run at that size; one that cannot run in a browser (tag `live-skip`) is not run.
"""

import re
from urllib.parse import urlsplit

import pinned
import pytest
from chromium import PAGES, ROOT, SITE
from visit import OVERFLOW, PHONE, READY, Visit

CHAPTERS = [p for p in PAGES if "{code-cell}" in (ROOT / f"{p}.md").read_text(encoding="utf-8")]
SHORT = "book/foundations/tensors"
pytestmark = [pytest.mark.browser, pytest.mark.slow]
IGNORED = {"nbval-ignore-output"}

RUN_ALL = """async () => {
    const results = [];
    for (const cell of tinytorchLive.cells) {
        const left = {number: cell.number, tags: cell.info.tags, left: true};
        if (!cell.runnable) { results.push(left); continue; }
        const figures = cell.element.querySelectorAll('svg.tt-figure').length;
        const {type, ok, text} = await cell.run({small: Boolean(cell.info.smaller)});
        if (type === 'missing') { results.push(left); continue; }
        results.push({number: cell.number, tags: cell.info.tags, small: cell.small, type, ok,
            came: cell.output.text || text || '', figures,
            drawn: cell.element.querySelectorAll('svg.tt-figure').length});
    }
    return results;
}"""
SOLVE = """async () => {
    const solved = [];
    const at = (element) => tinytorchLive.cells.find((cell) => cell.element === element);
    for (const stub of tinytorchLive.cells.filter((cell) => cell.isStub)) {
        let next = stub.element;
        while (!next.matches('.tag_exercise-solution')) next = next.nextElementSibling;
        await stub.press();
        const refused = stub.report && !stub.report.passed;
        await stub.edit();
        stub.editor.text = at(next).original;
        await stub.press();
        solved.push({number: stub.number, refused, came: stub.output.text,
            passed: stub.report?.passed, open: next.querySelector('details').open});
    }
    return solved;
}"""


@pytest.fixture(scope="module", autouse=True)
def runtime():
    """The site must hold Python itself: without it nothing here could run with a closed network."""
    if not (SITE / "_static" / "live" / "pyodide" / "pyodide-lock.json").exists():
        pytest.fail("the site holds no Python: say `make live`, then `make book`", pytrace=False)


@pytest.fixture
def opened(context, site):
    """A function that opens a page whose cells are ready to be run."""

    def open_page(docname):
        visit = Visit(context, site)
        visit.open_live(docname)
        return visit

    return open_page


def cell(visit, number):
    return visit.page.locator("div.cell:has(.cell_input)").nth(number - 1)


def rewrite(visit, number, code):
    """Type into a cell what a reader might."""
    visit.page.evaluate(
        "async ([n, code]) => { const cell = tinytorchLive.cells[n - 1];"
        " await cell.edit(); cell.editor.text = code; }",
        [number, code],
    )


def press(visit, number, name="Run"):
    cell(visit, number).get_by_role("button", name=name).first.click()


def ended(visit, number, state="done"):
    cell(visit, number).and_(visit.page.locator(f'[data-live="{state}"]')).wait_for()
    return cell(visit, number).locator(".cell_output").last.inner_text()


def lines(text):
    """The stored text has lost empty lines and spaces at line ends on its way into the page."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


@pytest.mark.parametrize("docname", CHAPTERS)
def test_every_cell_prints_what_is_stored_and_every_exercise_is_checked(opened, docname):
    """Run all, compare; then each stub is refused and each solution accepted."""
    visit = opened(docname)
    stored = visit.page.evaluate("tinytorchLive.cells.map((cell) => cell.output.text)")
    results = visit.page.evaluate(RUN_ALL)
    assert [r for r in results if r.get("left") and "live-skip" not in r["tags"]] == []
    for result in (r for r in results if not r.get("left")):
        where = f"cell {result['number']} of {docname}"
        wanted = "raises-exception" not in result["tags"]
        assert (result["type"], result["ok"]) == ("done", wanted), f"{where}: {result['came']}"
        assert result["small"] or result["drawn"] == result["figures"], where
        if not result["small"] and not IGNORED & set(result["tags"]):
            assert lines(result["came"]) == lines(stored[result["number"] - 1]), where
    exercises = visit.page.evaluate(SOLVE)
    for exercise in exercises:
        where = f"cell {exercise['number']} of {docname}"
        assert exercise["refused"], f"{where}: the stub is accepted"
        assert exercise["passed"], f"{where}: the solution is refused: {exercise['came']}"
        assert exercise["open"], f"{where}: the solution does not unfold"
    assert visit.page.locator(".tt-live__solved").count() == len(exercises)
    visit.page.set_viewport_size(PHONE)
    assert visit.page.evaluate(OVERFLOW) == []
    assert visit.problems == []


def test_an_endless_loop_is_stopped(opened):
    """First by starting Python anew; once the page is isolated by a true interrupt."""
    visit = opened(SHORT)
    press(visit, 1)
    ended(visit, 1)
    assert not visit.page.evaluate("tinytorchLive.kernel.canInterrupt")
    rewrite(visit, 2, "while True:\n    pass")
    press(visit, 2)
    cell(visit, 2).and_(visit.page.locator('[data-live="running"]')).wait_for()
    press(visit, 2, "Stop")
    ended(visit, 2, "stopped")
    assert "started anew" in cell(visit, 2).locator(".tt-live__status").inner_text()
    visit.page.evaluate("async () => { await navigator.serviceWorker.ready; }")
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert visit.page.evaluate("crossOriginIsolated")
    press(visit, 1)
    ended(visit, 1)
    press(visit, 2)  # the endless loop is still there: edits are kept
    cell(visit, 2).and_(visit.page.locator('[data-live="running"]')).wait_for()
    press(visit, 2, "Stop")
    assert "Stopped." in ended(visit, 2, "error")
    rewrite(visit, 2, "print(np.ones(2))")
    press(visit, 2)
    assert "[1. 1.]" in ended(visit, 2), "the names of cell 1 are still there"
    assert visit.problems == []


def test_an_exception_shows_a_traceback_that_begins_in_the_cell(opened):
    visit = opened(SHORT)
    rewrite(visit, 1, "def half(x):\n    return x / 0\n\nhalf(1)")
    press(visit, 1)
    text = ended(visit, 1, "error")
    assert "return x / 0" in text and "ZeroDivisionError: division by zero" in text
    assert "live_runner" not in text and "pyodide" not in text
    assert visit.problems == []


def test_two_pages_do_not_disturb_each_other(opened):
    first, second = (opened(page) for page in (SHORT, CHAPTERS[0]))
    for visit, value in ((first, 1), (second, 2)):
        rewrite(visit, 1, f"mine = {value}")
        press(visit, 1)
        ended(visit, 1)
    for visit, value in ((first, 1), (second, 2)):
        rewrite(visit, 1, "print('mine is', mine)")
        press(visit, 1)
        visit.page.wait_for_function("() => tinytorchLive.cells[0].output.text.includes('mine')")
        assert f"mine is {value}" in ended(visit, 1)


def test_what_a_cell_needs_from_above_is_offered_and_run(opened):
    visit = opened(SHORT)
    stored = cell(visit, 3).locator(".cell_output").inner_text()
    press(visit, 3)
    offer = cell(visit, 3).get_by_role("button", name="Run all above (2 cells)")
    offer.wait_for()
    assert cell(visit, 3).locator(".cell_output").inner_text() == stored
    offer.click()
    assert ended(visit, 3) == stored
    assert ended(visit, 1) is not None
    assert visit.problems == []


def test_an_exercise_runs_of_the_cells_above_what_it_needs(opened):
    visit = opened(SHORT)
    stubs = "tinytorchLive.cells.filter((cell) => cell.isStub)"
    stub = visit.page.evaluate(f"{stubs}.at(-1).number")
    press(visit, stub, "Check")
    offer = cell(visit, stub).get_by_role("button", name="Run what it needs (1 cell)")
    offer.click()
    assert "not yet" in ended(visit, stub)
    ran = "tinytorchLive.cells.filter((cell) => cell.ran !== null).map((cell) => cell.number)"
    assert visit.page.evaluate(ran) == [1, stub]
    assert visit.problems == []


def test_a_smaller_run_stands_beside_the_stored_one(opened):
    """Tell the page that its first cell has one, as a cell's options would."""

    def tell(route):
        text = route.fetch().text()
        small = r'\1"expected":40,"smaller":{"name":"steps","value":3}'
        text = re.sub(r'("cells":\[\{.*?)"expected":[\d.]+', small, text, count=1)
        route.fulfill(body=text, content_type="text/html")

    visit = opened(SHORT)
    visit.page.route(f"**/{SHORT}.html", tell)
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert "about 40 s" in cell(visit, 1).locator(".tt-live__status").inner_text()
    rewrite(visit, 1, "steps = 600\nassert steps > 100\nprint(steps, 'steps')")
    cell(visit, 1).get_by_label("steps =").fill("7")
    press(visit, 1, "Smaller run")
    assert "7 steps" in ended(visit, 1)
    assert "600" in visit.page.evaluate("tinytorchLive.cells[0].source")
    stored = visit.page.locator(".cell_output:not(.tt-live__own)").first.inner_text()
    rewrite(visit, 2, "assert steps > 100\nprint('still', steps)")
    press(visit, 2)
    ended(visit, 2)
    own = cell(visit, 2).locator(".tt-live__own").inner_text()
    assert "still 7" in own and "smaller" in own
    assert cell(visit, 2).locator(".cell_output").first.inner_text() == stored, "beside it"


def test_edits_and_solved_exercises_survive_a_reload_until_they_are_forgotten(opened):
    visit = opened(SHORT)
    rewrite(visit, 1, "print('mine')")
    stub = visit.page.evaluate("tinytorchLive.cells.find((cell) => cell.isStub).number")
    solution = visit.page.evaluate(
        "tinytorchLive.cells.find((c) => c.info.tags.includes('exercise-solution')).original"
    )
    rewrite(visit, stub, f"import numpy as np\nfrom tinytorch import check\n{solution}")
    press(visit, stub, "Check")
    ended(visit, stub)
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert "print('mine')" in cell(visit, 1).locator(".cell_input").inner_text()
    assert visit.page.locator(".tt-live__solved").count() == 1
    assert visit.page.locator(".bd-links .tt-live__count").inner_text().startswith("1/")
    press(visit, 1, "Reset")
    assert "mine" not in cell(visit, 1).locator(".cell_input").inner_text()

    landing = opened(PAGES[0])
    progress = landing.page.locator(".tt-progress")
    assert progress.locator(".tt-progress__text").inner_text().startswith("1 of ")
    progress.get_by_role("button").click()
    progress.get_by_role("button").click()
    assert progress.locator(".tt-progress__text").inner_text().startswith("0 of ")
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert visit.page.locator(".tt-live__solved").count() == 0
    assert visit.problems == landing.problems == []


def test_hints_open_one_after_another_and_then_the_solution(opened):
    visit = opened(SHORT)
    visit.page.evaluate("() => tinytorchLive.runAll(tinytorchLive.cells.slice(0, 2))")
    stub = visit.page.evaluate("tinytorchLive.cells.find((cell) => cell.isStub).number")
    press(visit, stub, "Check")
    assert "not yet" in ended(visit, stub)
    buttons = cell(visit, stub).locator(".tt-live__next button")
    hint = buttons.filter(has_text="hint")
    while hint.count():
        hint.first.click()
    assert visit.page.locator(".toggle-hidden").count() < visit.page.locator(".dropdown").count()
    buttons.filter(has_text="solution").click()
    assert visit.page.locator(".tag_exercise-solution details[open]").count() == 1
    assert visit.problems == []


def test_an_answer_to_a_question_is_remembered(opened):
    visit = opened(SHORT)
    visit.page.locator("details.tt-reflect__choice summary").first.click()
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert visit.page.locator("details.tt-reflect__choice[open]").count() == 1


def test_a_cell_is_edited_run_and_left_by_keyboard(opened):
    visit = opened(SHORT)
    keyboard = visit.page.keyboard
    run = cell(visit, 1).get_by_role("button", name="Run cell 1")
    for _ in range(200):
        keyboard.press("Tab")
        if run.evaluate("e => e === document.activeElement"):
            break
    else:
        pytest.fail("Tab does not reach the first Run button", pytrace=False)
    keyboard.press("Tab")  # Edit
    keyboard.press("Enter")
    visit.page.locator(".cm-content:focus").wait_for()
    keyboard.press("Control+a")
    keyboard.type("for i in range(2):\nprint(i)\n")
    keyboard.press("Tab")
    assert visit.page.locator(".cm-content:focus").count() == 1, "Tab indents"
    keyboard.press("Escape")
    assert run.evaluate("e => e === document.activeElement")
    keyboard.press("Enter")
    assert ended(visit, 1).split() == ["0", "1"]
    assert visit.problems == []


def test_long_output_and_progress_lines_are_kept_short(opened):
    visit = opened(SHORT)
    code = "for i in range(100):\n    print(f'\\r{i} %', end='', flush=True)\nprint()\n"
    rewrite(visit, 1, code + "for i in range(60_000):\n    print(i)")
    press(visit, 1)
    ended(visit, 1)
    text = visit.page.evaluate("tinytorchLive.cells[0].output.text")
    assert text.startswith("99 %\n0\n1\n") and "is left out" in text
    assert len(text) < 250_000


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
    page.on("console", lambda m: m.type == "error" and problems.append(m.text))
    page.goto((SITE / f"{SHORT}.html").as_uri())
    assert page.locator(".tt-live-plain:visible").count() == 1
    assert page.locator(".tt-live__button").count() == 0
    assert problems == []


def test_nothing_of_python_is_loaded_before_the_first_press(opened):
    visit = opened(SHORT)
    visit.page.wait_for_load_state("networkidle")
    asked = [urlsplit(response.url).path for response in visit.responses]
    assert not [path for path in asked if "pyodide" in path or path.endswith((".whl", "editor.js"))]
    assert (
        visit.page.evaluate("async () => (await navigator.serviceWorker.getRegistrations()).length")
        == 0
    )


def test_the_sites_python_is_the_pinned_one():
    page = (SITE / f"{SHORT}.html").read_text(encoding="utf-8")
    assert '"runtime":"_static/live/pyodide/"' in page
    wanted = {path.name for path in pinned.files("pyodide")}
    assert wanted == {path.name for path in (SITE / "_static/live/pyodide").iterdir()}
