"""Every page for readers who see it differently or not at all, and for those without a mouse.

axe-core looks at every page in both schemes at a phone's and a laptop's width, for what WCAG 2.2
asks at level AA. What MathJax draws is left out: it has its own assistive text, and is not ours.
So is what lies inside a figure, which has one text as a whole.
"""

import re

import axe
import pytest
from chromium import PAGES, SITE
from conftest import missing
from test_in_chromium import LAPTOP, OVERFLOW, PHONE, TYPESET

SHORT = "book/foundations/tensors"
OTHERS = [
    name for name in ("search", "genindex", "py-modindex") if (SITE / f"{name}.html").exists()
]
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = ["color-contrast", "link-in-text-block"]  # all that changes with the scheme
AUDIT = """async (levels) => {
    const options = {runOnly: levels, resultTypes: ['violations']};
    const {violations} = await axe.run({exclude: ['mjx-container', 'svg.tt-figure > *']}, options);
    // a choice that is a formula has MathML for a name, which axe-core does not read
    const formula = (id, [target]) => id === 'summary-name'
        && document.querySelector(target).querySelector('mjx-assistive-mml math');
    return violations.flatMap(({id, nodes}) => nodes.filter(n => !formula(id, n.target)).map(n =>
        `${id} ${n.target.join(' ')}: ${n.html.slice(0, 150)} ${n.failureSummary}`));
}"""
STILL = "*, *::before, *::after { transition: none !important; animation: none !important }"
FOCUSED = """() => { const e = document.activeElement; const r = e.getBoundingClientRect();
    const s = getComputedStyle(e);
    return {tag: e.tagName, text: (e.ariaLabel || e.innerText || e.value || '').trim(),
        classes: e.getAttribute('class') || '', shown: r.width > 0 && r.height > 0,
        top: r.top + scrollY, inArticle: Boolean(e.closest('article')),
        ring: s.outlineStyle !== 'none' || s.boxShadow !== 'none'}; }"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def auditor():
    """The text of axe-core."""
    try:
        return axe.script()
    except OSError as error:
        missing(f"axe-core cannot be fetched: {error}")


@pytest.fixture
def page(browser):
    context = browser.new_context(color_scheme="light", viewport=PHONE, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("docname", [*PAGES, *OTHERS])
def test_no_violation_of_wcag(page, site, auditor, docname):
    page.goto(f"{site}{docname}.html", wait_until="load")
    page.evaluate(TYPESET)
    page.add_style_tag(content=STILL)
    page.evaluate(auditor)
    found = {}
    for size in (PHONE, LAPTOP):
        page.set_viewport_size(size)
        page.wait_for_timeout(400)  # the theme waits that long before it looks at what scrolls
        if size == PHONE:
            assert page.evaluate(OVERFLOW) == []
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            for problem in page.evaluate(AUDIT, LEVELS if scheme == "light" else COLOURS):
                found.setdefault(problem, []).append(f"{scheme} {size['width']}")
    assert found == {}


@pytest.mark.parametrize("docname", PAGES)
def test_without_images_every_figure_has_its_text(page, site, docname):
    page.route(re.compile(r"\.(png|svg|jpe?g|gif|webp)$"), lambda route: route.abort())
    page.goto(f"{site}{docname}.html", wait_until="domcontentloaded")
    texts = page.locator("article").evaluate(
        """article => [...article.querySelectorAll('img, figure svg, svg.tt-figure')]
            .filter(e => !e.closest('[aria-hidden=true]'))
            .map(e => [e.outerHTML.slice(0, 120), e.tagName === 'IMG' ? e.getAttribute('alt')
                : e.getAttribute('aria-label') || e.querySelector('title')?.textContent
                || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent])"""
    )
    assert [element for element, text in texts if not (text or "").strip()] == []


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


def test_a_chapter_by_keyboard_alone(page, site):
    """Skip what precedes the text, run a cell, edit it, leave the editor, answer a question."""
    page.set_viewport_size(LAPTOP)
    page.goto(f"{site}{SHORT}.html", wait_until="load")
    page.wait_for_function("() => document.documentElement.dataset.live === 'ready'")
    assert "Skip to main content" in focus_after(page, "Tab")["text"]
    page.keyboard.press("Enter")
    first = tab_to(page, "Edit")
    assert first["inArticle"]
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.closest('.cm-editor')")
    page.keyboard.press("End")
    page.keyboard.type("  # mine")
    assert focus_after(page, "Escape")["text"].startswith("Run")
    page.keyboard.press("Enter")
    cell = page.locator('div.cell[data-live="done"]').first
    cell.wait_for()
    assert "# mine" in cell.inner_text()
    choice = page.locator("details.tt-reflect__choice").first
    tab_to(page, choice.locator("summary").inner_text(), most=400)
    page.keyboard.press("Enter")
    assert choice.locator(".tt-reflect__verdict").is_visible()


def test_an_open_editor_does_not_widen_a_phone(page, site):
    page.goto(f"{site}{SHORT}.html", wait_until="load")
    page.wait_for_function("() => document.documentElement.dataset.live === 'ready'")
    page.evaluate(
        "async () => { for (const cell of tinytorchLive.cells.slice(0, 4)) await cell.edit();"
        " tinytorchLive.cells[1].editor.text = '#' + ' wide'.repeat(100); }"
    )
    assert page.locator(".cm-editor").count() >= 4
    assert page.evaluate(OVERFLOW) == []
