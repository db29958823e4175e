"""A chapter for those without a mouse: everything is reached, seen and left by keyboard alone."""

import pytest
from visit import OVERFLOW, PHONE

SHORT = "book/foundations/tensors"
FOCUSED = """() => { const e = document.activeElement; const r = e.getBoundingClientRect();
    const s = getComputedStyle(e);
    return {tag: e.tagName, text: (e.ariaLabel || e.innerText || e.value || '').trim(),
        classes: e.getAttribute('class') || '', shown: r.width > 0 && r.height > 0,
        top: r.top + scrollY, inArticle: Boolean(e.closest('article')),
        ring: s.outlineStyle !== 'none' || s.boxShadow !== 'none'}; }"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def focus_after(page, *keys):
    for key in keys:
        page.keyboard.press(key)
    return page.evaluate(FOCUSED)


def tab_to(page, name, most=120):
    """Press Tab until something of that name has the focus; everything on the way must be seen."""
    for _ in range(most):
        now = focus_after(page, "Tab")
        if name in now["text"]:
            return now
        assert now["shown"], f"the focus is on something unseen: {now}"
        assert now["ring"], f"one does not see that this has the focus: {now}"
    raise AssertionError(f"Tab does not reach {name!r}")


def test_a_chapter_can_be_completed_by_keyboard_alone(visit):
    """Skip what precedes the text, edit a cell, leave the editor, run it, answer a question."""
    page = visit.open_live(SHORT)
    assert "Skip to main content" in focus_after(page, "Tab")["text"]
    assert focus_after(page, "Enter")["tag"] == "H1"
    first = tab_to(page, "Edit")
    assert first["inArticle"]
    page.keyboard.press("Enter")
    page.locator(".cm-content:focus").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("for i in range(2):\nprint(i)\n")
    page.keyboard.press("Tab")
    assert page.locator(".cm-content:focus").count() == 1, "Tab indents"
    assert focus_after(page, "Escape")["text"].startswith("Run")
    page.keyboard.press("Enter")
    cell = page.locator('div.cell[data-live="done"]').first
    cell.wait_for()
    assert cell.locator(".cell_output").inner_text().split() == ["0", "1"]
    choice = page.locator("details.tt-reflect__choice").first
    tab_to(page, choice.locator("summary").inner_text(), most=400)
    page.keyboard.press("Enter")
    assert choice.locator(".tt-reflect__verdict").is_visible()


def test_an_open_editor_does_not_widen_a_phone(visit):
    page = visit.open_live(SHORT)
    page.set_viewport_size(PHONE)
    page.evaluate(
        "async () => { for (const cell of tinytorchLive.cells.slice(0, 4)) await cell.edit();"
        " tinytorchLive.cells[1].editor.text = '#' + ' wide'.repeat(100); }"
    )
    assert page.locator(".cm-editor").count() >= 4
    assert page.evaluate(OVERFLOW) == []


def test_a_question_opens_by_keyboard(visit):
    page = visit.open(SHORT)
    choice = page.locator("details.tt-reflect__choice").first
    choice.locator("summary").focus()
    page.keyboard.press("Enter")
    assert choice.get_attribute("open") is not None
    assert choice.locator(".tt-reflect__verdict").is_visible()
