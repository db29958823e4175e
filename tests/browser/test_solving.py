"""Exercises in a real browser: reports, the ladder of hints, points, and work kept in a file."""

import json

import pytest
from served_pages import PAGES
from test_live import SHORT, VOICE, cell, ended, focused, opened, press, reload, rewrite  # noqa: F401
from visit import PHONE, READY

import tinytorch

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("python_inside")]
IMPORTS = "import numpy as np\nfrom tinytorch import Tensor, check, functional, ops\n"
HALF_RIGHT = (
    IMPORTS + "def my_centre_rows(x):\n    return x - x.mean(axis=1, keepdims=True)\n\n"
    "check.tensors_centre_rows(my_centre_rows)"
)
STORAGE = "({ ...localStorage })"


def stub(visit, exercise):
    """The number of the cell in which an exercise is solved."""
    return visit.page.evaluate(
        "(id) => { let e = document.getElementById(id);"
        " while (!e.matches('.tag_exercise-stub')) e = e.nextElementSibling;"
        " return tinytorchLive.cells.find((cell) => cell.element === e).number; }",
        exercise,
    )


def solve(visit, exercise):
    """Check the book's own solution in the reader's cell."""
    number = stub(visit, exercise)
    solution = visit.page.evaluate(
        "(n) => tinytorchLive.cells.slice(n).find((cell) => cell.isSolution).original", number
    )
    rewrite(visit, number, IMPORTS + solution)
    press(visit, number, "Check")
    ended(visit, number)
    return number


def test_a_report_lists_every_check_in_words_and_opens_the_first_failure(opened):  # noqa: F811
    visit = opened(SHORT)
    number = stub(visit, "ex-tensors-centre")
    rewrite(visit, number, HALF_RIGHT)
    press(visit, number, "Check")
    ended(visit, number)
    report = cell(visit, number).locator(".tt-report")
    states = report.locator(".tt-report__state").all_inner_texts()
    assert states[0] == "passed" and "not yet" in states and len(states) == 12
    verdict = report.locator(".tt-report__verdict").inner_text()
    assert verdict == f"Not yet: {states.count('passed')} of 12 checks passed."
    assert report.locator("details").count() == states.count("not yet") > 1
    assert report.locator("details[open]").count() == 1
    found = report.locator("details[open] dl").inner_text()
    assert [line for line in found.split() if line in ("given", "expected", "got")] == [
        "given",
        "expected",
        "got",
    ]
    first = report.locator("details summary span").nth(1).inner_text()
    assert verdict in visit.page.evaluate(VOICE) and first in visit.page.evaluate(VOICE)
    visit.page.set_viewport_size(PHONE)
    width = "(e) => [e.getBoundingClientRect().right, document.documentElement.clientWidth]"
    right, page = report.evaluate(width)
    assert right <= page
    assert visit.problems == []


def test_what_is_not_begun_is_told_without_a_failure(opened):  # noqa: F811
    visit = opened(SHORT)
    number = stub(visit, "ex-tensors-centre")
    first = cell(visit, number).locator(".cell_output").inner_text()
    assert first.strip() == "Write it, then press Check."
    rewrite(visit, number, f"{IMPORTS}check.tensors_centre_rows(...)")
    press(visit, number, "Check")
    ended(visit, number)
    states = cell(visit, number).locator(".tt-report__state").all_inner_texts()
    assert set(states) == {"not reached"}
    assert "Nothing is written yet" in cell(visit, number).locator(".tt-report").inner_text()


def test_hints_come_one_at_a_time_the_solution_last_and_stay(opened):  # noqa: F811
    visit = opened(SHORT)
    ladder = visit.page.locator("#ex-tensors-centre-hints")
    hint = visit.page.locator(".tt-hint:visible")
    solution = visit.page.locator(".tag_exercise-solution:visible")
    assert (hint.count(), solution.count()) == (0, 0)
    ladder.get_by_role("button", name="A hint").click()
    assert "keep it" in hint.inner_text() and solution.count() == 0
    assert hint.get_by_role("button").count() == 0, "one press, not two"
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert (hint.count(), solution.count()) == (1, 0)
    ladder.get_by_role("button", name="Show the solution").click()
    assert solution.locator("details[open]").count() == 1
    assert ladder.is_hidden()
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert (hint.count(), solution.count()) == (1, 1)
    assert visit.problems == []


def test_what_a_check_advises_is_the_next_hint(opened):  # noqa: F811
    visit = opened(SHORT)
    number = stub(visit, "ex-tensors-centre")
    rewrite(visit, number, HALF_RIGHT)
    press(visit, number, "Check")
    ended(visit, number)
    assert "axis=-1" not in cell(visit, number).locator(".cell_output").inner_text()
    ladder = visit.page.locator("#ex-tensors-centre-hints")
    ladder.get_by_role("button", name="A hint on what failed").click()
    hint = visit.page.locator(".tt-hint:visible")
    assert hint.count() == 1 and "axis=-1" in hint.inner_text()
    assert "axis=-1" in visit.page.evaluate(VOICE)
    ladder.get_by_role("button", name="A hint", exact=True).click()
    assert hint.count() == 2
    ladder.get_by_role("button", name="Show the solution").wait_for()


SOLVED = """async ([address, ids]) => {
    const solved = (await import(address)).memory("solved");
    ids.forEach((id) => solved.set(id, true));
}"""


def test_success_is_said_leads_on_and_its_code_is_saved(opened):  # noqa: F811
    visit = opened(SHORT)
    boxes = visit.page.locator(".exercise.admonition")
    ids = boxes.evaluate_all("(boxes) => boxes.map((box) => box.id)")
    number = solve(visit, ids[0])
    said = visit.page.evaluate(VOICE)
    assert said.startswith(f"cell {number}: Solved: 2 of 2 points.") and "Next exercise: " in said
    assert cell(visit, number).locator('.tt-report[data-state="solved"]').count() == 1
    assert focused(visit) == f"Check cell {number}"
    assert visit.page.locator(".tt-live__points").inner_text().startswith("You have 2 of ")
    assert visit.page.locator(".bd-links .tt-live__count").inner_text().startswith("2/")
    cell(visit, number).get_by_role("link", name="Next exercise: ").click()
    visit.page.wait_for_url(f"**#{ids[1]}")
    number = solve(visit, ids[-1])
    link = cell(visit, number).get_by_role("link", name="Next exercise: ")
    assert link.get_attribute("href") == f"#{ids[1]}", "which was passed over"

    landing = opened(PAGES[0])
    count = landing.page.locator("#the-path .tt-live__count")
    assert count.count() == 1 and count.inner_text().startswith("3/")
    assert landing.page.locator(".tt-progress__text").inner_text().startswith("3 of ")
    work = json.loads(saved_file(landing.page))
    assert work["release"] == tinytorch.__version__
    sources = work["kept"]["sources"]
    assert {*sources} == {"tensors_broadcast_shape", "tensors_distances"}
    assert all(f"check.{name}(" in cells[-1] for name, cells in sources.items())

    visit.page.evaluate(SOLVED, [f"{visit.site}_static/live/remembered_progress.js", ids])
    reload(visit)
    cell(visit, number).get_by_role("link", name="Next chapter: ").click()
    visit.page.wait_for_url("**/autograd.html")
    assert visit.problems == landing.problems == []


WRITES_BETWEEN = """async (address) => {
    const other = await import(`${address}?another`);
    const [mine, theirs] = [await import(address), other].map((tab) => tab.memory("solved"));
    const set = Storage.prototype.setItem;
    Storage.prototype.setItem = function (...given) {
        Storage.prototype.setItem = set;
        theirs.set("theirs", true);
        set.apply(this, given);
    };
    mine.set("mine", true);
    return [mine.all, theirs.all];
}"""


def test_what_another_tab_writes_at_the_same_moment_is_kept(opened):  # noqa: F811
    """Between the moment when this one has made up its mind and the moment when it writes."""
    page = opened(SHORT).page
    address = "../../_static/live/remembered_progress.js"
    address = page.evaluate("(path) => new URL(path, location.href).href", address)
    assert page.evaluate(WRITES_BETWEEN, address) == [{"mine": True, "theirs": True}] * 2


def test_what_the_first_edition_kept_is_not_lost(opened):  # noqa: F811
    visit = opened(SHORT)
    kept = {
        "solved": {"ex-tensors-centre": True, "ex-tensors-heads": True},
        f"edits:{SHORT}": {"1": {"of": "?", "text": "mine"}},
    }
    visit.page.evaluate(
        "(kept) => Object.entries(kept).forEach(([name, values]) =>"
        " localStorage.setItem(`tinytorch-book:${name}`, JSON.stringify(values)))",
        kept,
    )
    visit.page.reload()
    visit.page.wait_for_function(READY)
    assert visit.page.locator(".tt-live__solved").count() == 2
    assert json.loads(visit.page.evaluate(STORAGE)[f"tinytorch-book:edits:{SHORT} 1"]) == {
        "of": "?",
        "text": "mine",
    }


KEPT = {
    "solved ex-tensors-centre": True,
    "answers tensors.html#reflect-tensors-1/0": True,
    "hints ex-tensors-centre/0": True,
    "predictions book/foundations/tensors#p": {"choice": "two"},
    "edits:book/foundations/tensors 1": {"of": "a", "text": "b"},
    "sources tensors_centre_rows": ["import numpy as np", "check.tensors_centre_rows(1)"],
}


def keep(page, entries):
    page.evaluate(
        "(kept) => Object.entries(kept).forEach(([name, value]) =>"
        " localStorage.setItem(`tinytorch-book:${name}`, JSON.stringify(value)))",
        entries,
    )


def kept(page):
    ours = "tinytorch-book:"
    stored = page.evaluate(STORAGE).items()
    return {name[len(ours) :]: json.loads(text) for name, text in stored if name.startswith(ours)}


def read_back(page, text):
    """Choose a file, as a reader would; what the page then says."""
    page.evaluate("document.querySelector('.tt-progress__told').textContent = ''")
    with page.expect_file_chooser() as chosen:
        page.get_by_role("button", name="Read it back").click()
    file = {"name": "work.json", "mimeType": "application/json", "buffer": text.encode()}
    chosen.value.set_files([file])
    told = page.locator(".tt-progress__told:not(:empty)")
    told.wait_for()
    return told.inner_text()


def saved_file(page):
    with page.expect_download() as download:
        page.get_by_role("button", name="Save my work to a file").click()
    assert download.value.suggested_filename.startswith("tinytorch-book-")
    return download.value.path().read_text(encoding="utf-8")


def test_an_account_is_given_once_there_is_a_point(opened):  # noqa: F811
    """Until then there is only the way to bring work from another browser."""
    page = opened(PAGES[0]).page
    box = page.locator(".tt-progress")
    assert "points" not in box.inner_text() and box.locator("progress").is_hidden()
    assert box.locator("button:visible").all_inner_texts() == ["Read it back"]
    keep(page, {"solved ex-tensors-centre": True})
    page.reload()
    page.wait_for_function(READY)
    assert box.inner_text().startswith("2 of ") and box.locator("progress").is_visible()
    assert box.locator("button:visible").count() == 3


def test_work_is_saved_to_a_file_and_read_back(opened):  # noqa: F811
    page = opened(PAGES[0]).page
    keep(page, KEPT)
    page.reload()
    page.wait_for_function(READY)
    text = saved_file(page)
    assert json.loads(text)["version"] == 1

    keep(page, {"solved ex-tensors-heads": True})
    page.evaluate("localStorage.removeItem('tinytorch-book:hints ex-tensors-centre/0')")
    other = {"of": "a", "text": "c"}
    keep(page, {"edits:book/foundations/tensors 1": other})
    assert read_back(page, text).startswith("Read back: 2 entries were new here.")
    merged = {"of": "a", "text": "c\n\n# From the file that was read back:\n# b"}
    everything = KEPT | {
        "solved ex-tensors-heads": True,
        "edits:book/foundations/tensors 1": merged,
    }
    assert kept(page) == everything
    assert read_back(page, text) == "Read back: everything in it was here already."
    assert kept(page) == everything

    page.evaluate("localStorage.clear()")
    read_back(page, text)
    assert kept(page) == KEPT
    assert page.locator(".tt-progress__text").inner_text().startswith("2 of ")


REFUSED = {
    "no JSON": ("{", "not JSON"),
    "cut off": ('{"book": "tinytorch", "version": 1, "kept": {"solved": {"ex-', "not JSON"),
    "another program's": ('{"cells": []}', "not saved by this book"),
    "a list": ("[]", "not saved by this book"),
    "nothing": ("null", "not saved by this book"),
    "a later edition's": ('{"book": "tinytorch", "version": 2, "kept": {}}', "later edition"),
    "without a version": ('{"book": "tinytorch", "kept": {}}', "damaged"),
    "without work": ('{"book": "tinytorch", "version": 1}', "damaged"),
    "an unknown name": (
        '{"book": "tinytorch", "version": 1, "kept": {"solved": {"a": true}, "other": {"a": 1}}}',
        "“other”",
    ),
    "another kind of value": (
        '{"book": "tinytorch", "version": 1, "kept": {"solved": {"a": true, "b": "<b>"}}}',
        "“solved”",
    ),
    "code that is no list of cells": (
        '{"book": "tinytorch", "version": 1, "kept": {"sources": {"a": "b"}}}',
        "“sources”",
    ),
    "an edit without text": (
        '{"book": "tinytorch", "version": 1, "kept": {"edits:book/a": {"1": {"of": "a"}}}}',
        "“edits:book/a”",
    ),
}


def test_a_damaged_or_foreign_file_is_refused_and_changes_nothing(opened):  # noqa: F811
    visit = opened(PAGES[0])
    keep(visit.page, KEPT)
    for what, (text, reason) in REFUSED.items():
        assert reason in read_back(visit.page, text), what
        assert kept(visit.page) == KEPT, what
    assert visit.problems == []


def test_a_full_browser_says_so_and_loses_nothing(opened):  # noqa: F811
    page = opened(PAGES[0]).page
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new Error('full'); }; }")
    names = {"solved": {"ex-tensors-centre": True, "ex-tensors-heads": True}}
    text = json.dumps({"book": "tinytorch", "version": 1, "kept": names})
    assert "no room for 2 of them" in read_back(page, text)
    assert page.locator(".tt-progress__text").inner_text().startswith("5 of ")
    assert json.loads(saved_file(page))["kept"] == names


EXPORTED = """
from tinytorch.exercises.capstone.your_gpt import your_gpt
mine = your_gpt()
print(mine.yours, mine.reasons)
mine
"""


def test_two_parts_that_are_solved_are_kept_and_make_a_file_on_another_page(opened):  # noqa: F811
    visit = opened("book/embeddings/token-embeddings")
    number = solve(visit, "ex-tok-lookup")
    report = cell(visit, number).locator(".tt-report__kept").inner_text()
    assert report.startswith("Kept as your part “lookup”, with your progress")
    visit = opened("book/transformer/normalisation-and-mlp")
    number = stub(visit, "ex-norm-layer")
    solve(visit, "ex-norm-layer")
    rewrite(visit, number, EXPORTED)
    press(visit, number, "Check")
    ended(visit, number)
    assert "('lookup', 'norm') {}" in cell(visit, number).inner_text()
    with visit.page.expect_download() as download:
        cell(visit, number).locator(".tt-live__file").click()
    text = download.value.path().read_text(encoding="utf-8")
    assert "def my_lookup(table, ids):" in text and "class MyLayerNorm(Module):" in text
    kept = visit.page.evaluate(STORAGE)
    assert {key.rpartition(" ")[2] for key in kept if ":parts " in key} == {"lookup", "norm"}
