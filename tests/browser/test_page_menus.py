"""The toolbar above a page: its menus by keyboard and on a phone, and Run all."""

import pytest
from test_live import SHORT, cell, ended, focused
from visit import OVERFLOW, PHONE

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FIVE = ["This page", "JupyterLite", "Binder", "Colab", "Download the notebook"]
TEXT = "document.activeElement.innerText.trim()"


def test_the_menu_of_places_is_used_by_keyboard_alone(visit):
    page = visit.open_live(SHORT)
    opener = page.get_by_role("button", name="Open in…")
    opener.focus()
    page.keyboard.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    told = []
    for _ in page.locator(".tt-open li").all():
        page.keyboard.press("ArrowDown")
        told.append(page.evaluate(TEXT))
    wanted = FIVE if page.locator(".tt-open a[href*='lite/']").count() else [FIVE[0], *FIVE[2:]]
    assert [text.startswith(name) for text, name in zip(told, wanted, strict=True)] == [True] * len(
        told
    )
    page.keyboard.press("Escape")
    assert not page.locator(".tt-open .dropdown-menu").is_visible()
    assert page.evaluate(TEXT) == "Open in…"
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert focused(visit).startswith("Run cell"), "the first entry leads to the first cell"


def test_on_a_phone_every_entry_has_a_visible_name_and_nothing_sticks_out(visit):
    visit.page.set_viewport_size(PHONE)
    page = visit.open_live(SHORT)
    for menu, least in ((".tt-open", 4), (".tt-more", 6)):
        page.locator(f"{menu} > button").click()
        entries = page.locator(f"{menu} .dropdown-item")
        assert entries.count() >= least
        for entry in entries.all():
            box = entry.bounding_box()
            assert entry.inner_text().strip() and box["height"] >= 24
            assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
        page.keyboard.press("Escape")
        assert not page.locator(f"{menu} .dropdown-menu").is_visible(), "also under the pointer"
    assert page.evaluate(OVERFLOW) == []


@pytest.mark.usefixtures("python_inside")
def test_run_all_and_run_to_here_stop_and_go_on(visit):
    page = visit.open_live(SHORT)
    page.evaluate("tinytorchLive.cells[1].write('while True:\\n    pass')")
    page.locator(".article-header-buttons .tt-live__all").click()
    page.get_by_role("button", name="Stop 2/").click()
    ended(visit, 2, "error")
    page.evaluate("tinytorchLive.cells[1].reset()")
    cell(visit, 4).get_by_role("button", name="Run to here").click()
    ended(visit, 4)
    states = page.evaluate(
        "tinytorchLive.cells.slice(0, 4).map(({element}) => element.dataset.live)"
    )
    assert states == ["done"] * 4
    assert page.evaluate("tinytorchLive.kernel.count") == 5, "cell 1 has not run again"
    assert visit.problems == []
