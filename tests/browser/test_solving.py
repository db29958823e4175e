"""Exercises in a real browser: solved with the page's Python, and work kept in a file.

Reports, hints and what is kept are tested without one (tests/scripts/live_kept.test.mjs).
"""

import json

import pytest
from served_pages import PAGES
from test_live import SHORT, VOICE, cell, ended, focused, opened, press, reload, rewrite  # noqa: F401
from visit import PHONE, READY

import tinytorch

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("python_inside")]
IMPORTS = """\
import numpy as np
from tinytorch import Module, Parameter, Tensor, functional, ops
from tinytorch_book import check
"""
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


SOLVED = """async ([address, ids]) => {
    const solved = (await import(address)).memory("solved");
    ids.forEach((id) => solved.set(id, true));
}"""


def test_success_is_announced_links_to_the_next_exercise_and_saves_the_code(opened):  # noqa: F811
    visit = opened(SHORT)
    boxes = visit.page.locator(".exercise.admonition")
    ids = boxes.evaluate_all("(boxes) => boxes.map((box) => box.id)")
    number = solve(visit, ids[0])
    said = visit.page.evaluate(VOICE)
    assert "exercise 1: Solved: 1 of 1 point." in said and "Next: Exercise " in said
    assert cell(visit, number).locator('.tt-report[data-state="solved"]').count() == 1
    assert focused(visit) == "Check exercise 1"
    assert visit.page.locator(".tt-live__points").inner_text().startswith("You have 1 of ")
    assert visit.page.locator(".bd-links .tt-live__count").inner_text().startswith("1/")
    cell(visit, number).get_by_role("link", name="Next: Exercise ").click()
    visit.page.wait_for_url(f"**#{ids[1]}")
    number = solve(visit, ids[-1])
    link = cell(visit, number).get_by_role("link", name="Next: Exercise ")
    assert link.get_attribute("href") == f"#{ids[1]}", "which was passed over"

    landing = opened(PAGES[0])
    count = landing.page.locator(".bd-links .tt-live__count")
    assert count.count() == 1 and count.inner_text().startswith("4/")
    assert landing.page.locator(".tt-progress__text").inner_text().startswith("4 of ")
    work = json.loads(saved_file(landing.page))
    assert work["release"] == tinytorch.__version__
    sources = work["kept"]["sources"]
    assert {*sources} == {"tensors_agreements", "tensors_heads"}
    assert all(f"check.{name}(" in cells[-1] for name, cells in sources.items())

    visit.page.set_viewport_size(PHONE)
    width = "(e) => [e.getBoundingClientRect().right, document.documentElement.clientWidth]"
    right, page = cell(visit, number).locator(".tt-report").evaluate(width)
    assert right <= page

    visit.page.evaluate(SOLVED, [f"{visit.site}_static/live/remembered_progress.js", ids])
    reload(visit)
    cell(visit, number).get_by_role("link", name="Next chapter: ").click()
    visit.page.wait_for_url("**/autograd.html")
    assert visit.problems == landing.problems == []


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
    assert read_back(page, text) == "Read back: everything in the file was here already."
    assert kept(page) == everything

    page.evaluate("localStorage.clear()")
    read_back(page, text)
    assert kept(page) == KEPT
    assert page.locator(".tt-progress__text").inner_text().startswith("2 of ")


EXPORTED = """
from tinytorch_book.exercises.capstone.your_gpt import your_gpt
mine = your_gpt()
print(mine.yours, mine.reasons)
mine
"""


def test_two_solved_parts_are_kept_and_make_a_file_on_another_page(opened):  # noqa: F811
    visit = opened("book/embeddings/token-embeddings")
    number = solve(visit, "ex-tok-lookup")
    report = cell(visit, number).locator(".tt-report__kept").inner_text()
    assert report.startswith("The lookup is yours now: 1 of 22 parts for your GPT.")
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
