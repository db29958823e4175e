"""Python begins to load before a press that is likely: once, in silence, and not at a cost."""

import pytest
from test_live import SHORT, cell, ended, press, rewrite
from visit import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
STATE = "() => tinytorchLive.kernel.state"
STARTED = "() => tinytorchLive.kernel.state !== 'off'"
READY = "() => tinytorchLive.kernel.state === 'ready'"
COUNT = """
    globalThis.started = 0;
    const Real = globalThis.Worker;
    globalThis.Worker = class extends Real { constructor(...all) { super(...all); started += 1; } };
"""
CONNECTION = "Object.defineProperty(navigator, 'connection', {{value: {}}});"
FAST = "{saveData: false, effectiveType: '4g'}"
METERED = [
    "{saveData: true, effectiveType: '4g'}",
    "{saveData: false, effectiveType: '3g'}",
    "{saveData: false, effectiveType: '4g', type: 'cellular'}",
]
WAITED = """() => { globalThis.waited = [];
    const real = setTimeout;
    globalThis.setTimeout = (act, ms, ...all) => real(() => {
        act(); if (ms === 150 || ms === 1500) waited.push(ms); }, ms, ...all); }"""


@pytest.fixture
def opened(context, site):
    """A function that opens a page in a browser that says this of its connection."""

    def open_page(connection=FAST, more=""):
        context.add_init_script(COUNT + CONNECTION.format(connection) + more)
        visit = Visit(context, site)
        visit.open_live(SHORT)
        visit.page.evaluate(WAITED)
        return visit

    return open_page


def hover(visit):
    cell(visit, 1).get_by_role("button", name="Run").hover()


def focus(visit):
    cell(visit, 1).get_by_role("button", name="Run").focus()


def scroll(visit):
    visit.page.evaluate(  # the next one that no fold hides
        "tinytorchLive.cells.slice(1).find((cell) => cell.bar.checkVisibility())"
        ".bar.scrollIntoView({block: 'start'})"
    )


@pytest.fixture
def silent(opened):
    """An opened page that remembers what its lines say, to the eye or to a screen reader."""
    visit = opened()
    visit.page.evaluate(
        """() => { globalThis.said = [];
        const lines = document.querySelectorAll('.tt-live__status, body > [role=status]');
        for (const line of lines) new MutationObserver(() => said.push(line.textContent))
            .observe(line, {childList: true, characterData: true, subtree: true}); }"""
    )
    return visit


@pytest.mark.parametrize("act", [hover, focus, scroll])
def test_python_starts_once_where_a_press_is_likely(silent, act):
    act(silent)
    silent.page.wait_for_function(STARTED)
    for again in (hover, focus, scroll):
        again(silent)
    silent.page.wait_for_function("() => started > 0")
    silent.page.evaluate("new Promise(resolve => setTimeout(resolve, 1501))")
    assert silent.page.evaluate("started") == 1
    assert silent.page.evaluate("said") == []
    silent.page.evaluate("tinytorchLive.kernel.restart()")
    scroll(silent)
    hover(silent)
    silent.page.evaluate("new Promise(resolve => setTimeout(resolve, 1501))")
    assert silent.page.evaluate(STATE) == "off", "never twice, even if it has ended"


def test_a_press_finds_python_ready(silent):
    hover(silent)
    silent.page.wait_for_function(READY)
    assert silent.page.evaluate("said") == []
    rewrite(silent, 1, "print('it runs')")
    press(silent, 1)
    assert "it runs" in ended(silent, 1)
    assert silent.page.evaluate("started") == 1
    assert silent.problems == []


@pytest.mark.parametrize("connection", METERED)
def test_a_metered_connection_waits_for_the_press(opened, connection):
    visit = opened(connection)
    scroll(visit)
    visit.page.wait_for_function("() => waited.includes(1500)")
    hover(visit)
    visit.page.wait_for_function("() => waited.includes(150)")
    assert visit.page.evaluate(STATE) == "off"
    press(visit, 1)
    visit.page.wait_for_function(STARTED)


def test_a_page_that_is_not_seen_waits(opened):
    hidden = "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'});"
    visit = opened(more=hidden)
    hover(visit)
    visit.page.wait_for_function("waited.includes(150)")
    assert visit.page.evaluate(STATE) == "off"


def test_the_first_screen_is_no_reason_to_start(opened):
    visit = opened()
    visit.page.evaluate("scrollTo(0, 40)")
    visit.page.evaluate("new Promise(resolve => setTimeout(resolve, 1501))")
    assert visit.page.evaluate(STATE) == "off"


def test_a_press_meanwhile_says_where_the_loading_is(opened):
    """Its worker is silent; what it might say comes from the test."""
    visit = opened(
        more="""Worker.prototype.postMessage = function () {
            const heard = (data) => new MessageEvent('message', {data});
            globalThis.hear = (data) => this.dispatchEvent(heard(data)); };"""
    )
    visit.page.evaluate("() => { tinytorchLive.kernel.settings.patience = 600; }")
    status = cell(visit, 1).locator(".tt-live__status")
    before = status.inner_text()
    hover(visit)
    visit.page.wait_for_function("() => globalThis.hear")
    count = {"type": "progress", "text": "Loading Python", "bytes": 4e6, "total": 9e6}
    visit.page.evaluate("count => hear(count)", count)
    assert status.inner_text() == before
    press(visit, 1)
    assert "4.0 of 9.0 MB" in status.inner_text()
