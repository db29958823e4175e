"""A real Chromium, with the network closed, on the built pages."""

import contextlib
import os

import pytest
from _ext.print.chromium import ARGUMENTS, find_chromium
from served_pages import SITE, serve
from visit import LAPTOP, PATIENCE, Visit

SLOWED = float(os.environ.get("SLOWED", 1))  # `SLOWED=4 pytest ...`: a processor slowed four times


def missing(reason: str) -> None:
    """Skip on a reader's machine; fail where CI=true promises a browser."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI=true, but {reason}", pytrace=False)
    pytest.skip(reason)


def pytest_collection_modifyitems(items):
    """Let a test in a browser that fails run once more: the summary names it (RERUN).

    What a browser does in time depends on what else the machine does; a fault fails twice. On a
    processor that is slowed to find such tests none runs again.
    """
    for item in items:
        if SLOWED == 1 and item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def site():
    """The address of the built pages."""
    if not (SITE / "index.html").exists():
        pytest.fail("there are no built pages: run `make book` first", pytrace=False)
    server, address = serve(SITE)
    yield address
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def python_inside(site):
    """The site must hold Python itself: without it no cell could run with a closed network."""
    if not (SITE / "_static" / "live" / "pyodide" / "pyodide-lock.json").exists():
        pytest.fail("the site holds no Python: run `make live`, then `make book`", pytrace=False)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests."""
    executable = find_chromium()
    if executable is None:
        missing("there is no Chromium: install it, or name it in $CHROMIUM")
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        missing("the Python package playwright is not installed")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE)
        running = playwright.chromium.launch(
            executable_path=executable, args=ARGUMENTS, timeout=PATIENCE
        )
        let_wait(running)
        yield running
        running.close()


def let_wait(browser):
    """Let every context of a browser be patient; slow its pages, if asked to."""
    new_context = browser.new_context

    def patient(**options):
        context = new_context(**options)
        context.set_default_timeout(PATIENCE)
        if SLOWED > 1:
            context.on("page", slow_down)
        return context

    browser.new_context = patient


def slow_down(page):
    """Slow a page as a slow processor does."""
    from playwright.sync_api import Error

    with contextlib.suppress(Error):  # it may be closed by then
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})


@pytest.fixture
def context(browser):
    """A reader with a laptop who likes it light, and has never been here."""
    context = browser.new_context(color_scheme="light", viewport=LAPTOP)
    yield context
    context.close()


@pytest.fixture
def visit(context, site):
    """A page to open."""
    return Visit(context, site)
