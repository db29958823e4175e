"""A cell is run, and one goes through its lines by mouse and by keyboard."""

import re

import pytest
from visit import OVERFLOW

MARK = """code => { const style = getComputedStyle(code), line = parseFloat(style.lineHeight);
    const top = parseFloat(style.getPropertyValue('--tt-step-top')) - parseFloat(style.paddingTop);
    return Math.round(top / line) + 1; }"""
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("python_inside")]


def test_the_lines_of_a_cell_are_gone_through(visit):
    from playwright.sync_api import expect

    page = visit.open_live("book/attention/scaled-dot-product")
    cell = page.locator("div.cell", has_text="in percent").first
    cell.get_by_role("button", name=re.compile("Run to here")).click()
    expect(cell).to_have_attribute("data-live", "done")
    cell.get_by_role("button", name="Step through").click()
    panel = cell.get_by_role("group", name="Steps of cell")
    slider, changes = panel.get_by_role("slider"), panel.locator("li")
    expect(panel.locator("p")).to_have_text("Step 1 of 17, line 1 of 6")
    expect(changes).to_have_text(["scoresarray 6 × 6, float640 2 0 0 0 2 …"])
    expect(cell.locator(".cell_output")).to_contain_text("'they' gets")
    panel.get_by_role("button", name="Next").click(click_count=2)
    expect(changes).to_have_text("No name changes.")
    assert cell.locator(".tt-step__code").evaluate(MARK) == 3
    slider.press("ArrowRight")
    said = "line 4 of 6: word, str of 4 'Anna'; row, array of 6"
    expect(slider).to_have_attribute("aria-valuetext", said)
    slider.press("End")
    panel.get_by_role("button", name="Previous").press("ArrowLeft")
    expect(page.locator("body > [role=log] p").last).to_have_text("line 4 of 6: no name changes")
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate(OVERFLOW) == []
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(cell.get_by_role("button", name="Step through")).to_be_focused()
    assert visit.problems == []
