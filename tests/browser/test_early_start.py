"""Python begins to load before a press that is likely, in silence.

When it does, and when it waits, is tested without a browser (tests/scripts/live_loading.test.mjs).
"""

import pytest
from test_live import SHORT, cell, ended, press, rewrite
from visit import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
STATE = "tinytorchLive.kernel.state"
READY = "() => tinytorchLive.kernel.state === 'ready'"
COUNT = """
    globalThis.started = 0;
    const Real = globalThis.Worker;
    globalThis.Worker = class extends Real { constructor(...all) { super(...all); started += 1; } };
"""
FAST = "{value: {saveData: false, effectiveType: '4g'}}"
CONNECTION = f"Object.defineProperty(navigator, 'connection', {FAST});"


def hover(visit):
    cell(visit, 1).get_by_role("button", name="Run").hover()


def scroll(visit):
    visit.page.evaluate(  # the next one that no fold hides
        "tinytorchLive.cells.slice(1).find((cell) => cell.bar.checkVisibility())"
        ".bar.scrollIntoView({block: 'start'})"
    )


@pytest.fixture
def silent(context, site):
    """An opened page that remembers what its lines say, to the eye or to a screen reader."""
    context.add_init_script(COUNT + CONNECTION)
    visit = Visit(context, site)
    visit.open_live(SHORT)
    visit.page.evaluate(
        """() => { globalThis.said = [];
        const lines = document.querySelectorAll('.tt-live__status, body > [role=log]');
        for (const line of lines) new MutationObserver(() => said.push(line.textContent))
            .observe(line, {childList: true, characterData: true, subtree: true}); }"""
    )
    return visit


def test_python_is_ready_when_run_is_pressed(silent):
    hover(silent)
    silent.page.wait_for_function(READY)
    assert silent.page.evaluate("said") == []
    rewrite(silent, 1, "print('it runs')")
    press(silent, 1)
    assert "it runs" in ended(silent, 1)
    assert silent.page.evaluate("started") == 1
    assert silent.problems == []


def test_python_starts_early_for_a_pause_past_the_first_screen_only(silent):
    silent.page.evaluate("scrollTo(0, 40)")
    silent.page.evaluate("new Promise(resolve => setTimeout(resolve, 1501))")
    assert silent.page.evaluate(STATE) == "off"
    scroll(silent)
    silent.page.wait_for_function("() => started === 1")
