"""A browser that stores nothing, its cookies blocked: the book works, and says what it forgets."""

import json

import pytest
from _ext.print.chromium import ARGUMENTS, find_chromium
from served_pages import PAGES
from test_live import SHORT, ended, press, rewrite
from visit import Visit

FORGETS = "This browser keeps nothing for the book"
SCHEME = "document.documentElement.dataset.theme"
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def visit(browser, site, tmp_path):
    """A page in a Chromium whose reader has blocked all cookies, and storage with them."""
    blocked = {"profile": {"default_content_setting_values": {"cookies": 2}}}
    (tmp_path / "Default").mkdir()
    (tmp_path / "Default" / "Preferences").write_text(json.dumps(blocked), encoding="utf-8")
    context = browser.browser_type.launch_persistent_context(
        tmp_path, executable_path=find_chromium(), args=ARGUMENTS, color_scheme="light"
    )
    yield Visit(context, site)
    context.close()


def refused(page):
    """Whether the browser itself refuses storage: before any script of the page has run."""
    return page.evaluate("() => !(localStorage instanceof Storage)")


@pytest.mark.parametrize("docname", [PAGES[0], SHORT, "search", "book/playground"])
def test_no_script_fails(visit, docname):
    page = visit.open(docname)
    assert refused(page)
    page.wait_for_load_state("networkidle")
    assert visit.problems == []


def test_the_scheme_is_switched_and_stays_for_the_visit(visit):
    page = visit.open(SHORT)
    dark = f"({SCHEME}) === 'dark'"
    for _ in range(30):  # auto, light and dark; the switch may not listen yet
        page.locator(".theme-switch-button:visible").first.click()
        page.wait_for_timeout(200)
        if page.evaluate(dark):
            break
    page.wait_for_function(dark)
    for docname in (PAGES[0], "slides/attention"):
        page.wait_for_load_state("networkidle")  # a request cut off by the next page has failed
        page = visit.open(docname)
        page.wait_for_function(dark)
    assert visit.problems == []


def test_pages_with_cells_say_when_no_work_is_remembered(visit):
    page = visit.open_live(SHORT)
    assert FORGETS in page.locator(".tt-live-intro").inner_text()
    rewrite(visit, 1, "print('it', 'runs')")
    press(visit, 1)
    assert "it runs" in ended(visit, 1)
    page = visit.open_live(PAGES[0])
    assert "this browser keeps nothing for the book" in page.locator(".tt-progress").inner_text()
    assert visit.problems == []


def test_no_notice_is_shown_where_work_is_remembered(context, site):
    page = Visit(context, site).open_live(SHORT)
    assert "What you write stays on this page." in page.locator(".tt-live-intro").inner_text()
