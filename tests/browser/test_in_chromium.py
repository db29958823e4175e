"""Each page in a real browser that reaches only this machine: phone and laptop, light and dark."""

from urllib.parse import urlsplit

import pytest
from chromium import PAGES, ROOT

PHONE, LAPTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
TYPESET = "() => !window.MathJax?.startup?.promise || MathJax.startup.promise.then(() => true)"
FILLS = """() => [...document.querySelectorAll('svg.tt-figure')].map(svg =>
    [...svg.querySelectorAll('*')].map(e => getComputedStyle(e).fill + getComputedStyle(e).stroke)
    .join())"""
OVERFLOW = """() => {
    const wide = document.documentElement.clientWidth;
    const held = ['auto', 'scroll', 'hidden', 'clip'];
    const scrolls = e => { for (; e; e = e.parentElement)
        if (held.includes(getComputedStyle(e).overflowX)) return true; };
    if (document.documentElement.scrollWidth <= wide) return [];
    return [...document.querySelectorAll('body *')].filter(e =>
        e.getBoundingClientRect().right > wide + 1 && !scrolls(e.parentElement))
        .slice(0, 5).map(e => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 60))
        .concat(['the page is ' + document.documentElement.scrollWidth + ' wide']);
}"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Visit:
    """One opened page and everything that went wrong on it."""

    def __init__(self, context, site):
        self.site, self.problems = site, []
        self.page = context.new_page()
        self.page.route("**/*", self.gate)
        self.page.on("console", self.listen)
        self.page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        self.page.on("requestfailed", lambda r: self.problems.append(f"request failed: {r.url}"))
        self.page.on("response", self.check)

    def gate(self, route):
        url = route.request.url
        if url.startswith((self.site, "data:", "blob:")):
            route.continue_()
        else:
            self.problems.append(f"foreign request: {url}")
            route.abort()

    def listen(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def check(self, response):
        if response.status >= 400:
            self.problems.append(f"{response.status}: {response.url}")

    def open(self, docname):
        self.page.goto(f"{self.site}{docname}.html", wait_until="load")
        self.page.evaluate(TYPESET)
        self.page.wait_for_load_state("networkidle")
        return self.page


@pytest.fixture(params=["light", "dark"])
def visit(request, browser, site):
    context = browser.new_context(color_scheme=request.param, viewport=LAPTOP)
    yield Visit(context, site)
    context.close()


@pytest.mark.parametrize("docname", PAGES)
def test_page(visit, docname):
    """No error, no foreign request, maths typeset; no sideways scrolling on a phone."""
    page = visit.open(docname)
    formulas = page.locator("article .math").count()
    assert page.locator("article .math mjx-container").count() >= formulas
    assert page.locator("article mjx-merror").count() == 0
    page.set_viewport_size(PHONE)
    assert page.evaluate(OVERFLOW) == []
    assert visit.problems == []


def figures_page():
    sources = {page: (ROOT / f"{page}.md").read_text(encoding="utf-8") for page in PAGES}
    return next((page for page, text in sources.items() if "fig-" in text and "mystnb" in text), "")


@pytest.fixture
def light(browser, site):
    context = browser.new_context(color_scheme="light", viewport=LAPTOP)
    yield Visit(context, site)
    context.close()


def test_the_scheme_button_changes_the_colours_of_figures(light):
    page = light.open(figures_page())
    assert page.locator("svg.tt-figure").count(), "the page has an inline figure"
    seen = {}
    for _ in range(3):  # the button goes round three modes: auto, light and dark
        page.locator(".theme-switch-button:visible").first.click()
        page.wait_for_timeout(300)  # longer than any colour's transition
        seen[page.evaluate("() => document.documentElement.dataset.theme")] = page.evaluate(FILLS)
    assert set(seen) == {"light", "dark"}
    for bright, dim in zip(seen["light"], seen["dark"], strict=True):
        assert bright != dim


def test_every_part_of_the_map_leads_to_its_page(light):
    page = light.open(PAGES[0])
    links = page.locator("article svg a")
    targets = [links.nth(i).get_attribute("href") for i in range(links.count())]
    assert targets, "the landing page has a map whose parts are links"
    for target in dict.fromkeys(targets):
        visited = Visit(page.context, light.site)
        link = page.locator(f'article svg a[href="{target}"]').first
        link.focus()
        assert link.evaluate("e => e === document.activeElement"), f"{target}: not by keyboard"
        address = link.evaluate("e => new URL(e.href.baseVal ?? e.href, location).href")
        assert urlsplit(address).netloc == urlsplit(light.site).netloc
        visited.page.goto(address, wait_until="domcontentloaded")
        anchor = urlsplit(address).fragment
        assert not anchor or visited.page.locator(f'[id="{anchor}"]').count() == 1
        assert visited.problems == []
        visited.page.close()


def test_the_start_page_leads_to_the_landing_page(light):
    light.page.goto(light.site)
    light.page.wait_for_url(f"**/{PAGES[0]}.html")
    assert light.problems == []


def test_a_question_opens_by_keyboard(light):
    reflective = [page for page in PAGES if "{reflect}" in (ROOT / f"{page}.md").read_text("utf-8")]
    if not reflective:
        pytest.fail("no chapter asks a question", pytrace=False)
    page = light.open(reflective[0])
    choice = page.locator("details.tt-reflect__choice").first
    choice.locator("summary").focus()
    page.keyboard.press("Enter")
    assert choice.get_attribute("open") is not None
    assert choice.locator(".tt-reflect__verdict").is_visible()
