"""Each page in a real browser that reaches only this machine: phone and laptop, light and dark.

A page is opened once, and everything that one opening can show is looked at: scripts and requests,
formulas, weight, what a reader without images gets, the width of a phone, and what axe-core finds
of what WCAG 2.2 asks at level AA, on a laptop in light. What the style sheets decide, which are the
same for all, is asked here of one page of each kind; `make proofs` asks it of every page, in both
schemes at both widths. What lies inside a figure is left out: it has one text as a whole.
"""

from urllib.parse import urlsplit

import pytest
import yaml
from _ext.launch_links import site_url
from _ext.live import pinned_downloads
from conftest import missing
from page_weight import CHAPTER_BYTES, LANDING_BYTES, LANDING_REQUESTS, files_of_page, weight
from served_pages import PAGES, ROOT, SITE
from visit import LAPTOP, OVERFLOW, PHONE, SETTLED, STILL, UNFOLD

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
OTHERS = [
    name for name in ("search", "genindex", "py-modindex") if (SITE / f"{name}.html").exists()
]
SMALLEST = {"width": 320, "height": 640}
BETWEEN = {"width": 768, "height": 1024}, {"width": 1024, "height": 768}
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLOURS = ["color-contrast", "link-in-text-block"]  # all that changes with the scheme
SIZES = ["target-size", "scrollable-region-focusable"]  # all that changes with an article's width
STYLED = {PAGES[0], "book/first-words/counting-letters", "search"}  # one of each kind
WORDS = (LAPTOP, "light", LEVELS, {"without": [*COLOURS, "target-size"]})  # half of the time
# What is audited where: the article's colours and words are the same at both widths.
AUDITS = [
    (LAPTOP, "light", LEVELS, {}),
    (LAPTOP, "dark", COLOURS, {}),
    (PHONE, "dark", COLOURS, {"exclude": ["article"]}),
    (PHONE, "light", LEVELS, {"exclude": ["article"]}),
    (PHONE, "light", SIZES, {"include": ["main"]}),
]
PLAIN = "pre { background-image: none !important }"  # axe-core asks no contrast on a shade
AUDIT = """async ([rules, {include, exclude = [], without = []}]) => {
    const context = {exclude: ['svg.tt-figure > *', ...exclude], ...(include && {include})};
    const off = Object.fromEntries(without.map(id => [id, {enabled: false}]));
    const options = {runOnly: rules, rules: off, resultTypes: ['violations']};
    const {violations} = await axe.run(context, options);
    // a choice that is a formula has MathML for a name, which axe-core does not read
    const formula = (id, [target]) => id === 'summary-name'
        && document.querySelector(target).querySelector('math');
    return violations.flatMap(({id, nodes}) => nodes.filter(n => !formula(id, n.target)).map(n =>
        `${id} ${n.target.join(' ')}: ${n.html.slice(0, 150)} ${n.failureSummary}`));
}"""
TEXTS = """() => [...document.querySelectorAll('article img, article figure svg, svg.tt-figure')]
    .filter(e => !e.closest('[aria-hidden=true]'))
    .map(e => [e.outerHTML.slice(0, 120), e.tagName === 'IMG' ? e.getAttribute('alt')
        : e.getAttribute('aria-label') || e.querySelector('title')?.textContent
        || document.getElementById(e.getAttribute('aria-labelledby'))?.textContent])
    .filter(([, text]) => !(text || '').trim())"""
# The theme looks for what scrolls some time after a change of width, and makes it a tab stop.
SCROLLABLE_BY_KEYBOARD = """() => [...document.querySelectorAll(
    'pre, .cell_output > .output, .tt-formula')]
    .every(e => e.scrollWidth <= e.clientWidth || e.tabIndex === 0 || !e.offsetParent)"""
FOLLOWS = "scheme => document.documentElement.dataset.theme === scheme"  # some time later, too
FONTS = """() => [...document.fonts].filter(f => f.status === 'loading'
    || f.status === 'error' && !['Times', 'DejaVu'].some(name => f.family.includes(name)))
    .map(f => f.family)"""
# Code that is cut off; what is folded is opened to be measured.
CUT_OFF = """() => {
    document.querySelectorAll('article details').forEach(fold => fold.open = true);
    return [...document.querySelectorAll('article pre')].filter(e => e.scrollWidth > e.clientWidth)
        .map(e => e.textContent.split('\\n').sort((a, b) => b.length - a.length)[0]);
}"""
FILLS = """() => [...document.querySelectorAll('svg.tt-figure')].map(svg =>
    [...svg.querySelectorAll('*')].map(e => getComputedStyle(e).fill + getComputedStyle(e).stroke)
    .join())"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def auditor():
    """The text of axe-core."""
    if pinned_downloads.missing("axe"):
        missing("axe-core is not there: `make test-unit` fetches it")
    return pinned_downloads.files("axe")[0].read_text(encoding="utf-8")


def violations(page, audits):
    """What axe-core finds, with the scheme and the width."""
    found = {}
    for size, scheme, rules, part in audits:
        page.set_viewport_size(size)
        page.wait_for_function(SCROLLABLE_BY_KEYBOARD)
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(FOLLOWS, arg=scheme)
        for problem in page.evaluate(AUDIT, [rules, part]):
            found.setdefault(problem, []).append(f"{scheme} {size['width']}")
    return found


@pytest.mark.parametrize("docname", [*PAGES, *OTHERS])
def test_page(visit, auditor, docname):
    page = visit.open(docname)
    page.wait_for_load_state("networkidle")
    formulas = page.locator("article .math").count()
    assert page.locator("article .math math").count() == formulas
    assert page.evaluate(FONTS) == [], "a font that is used and has not come"
    assert page.evaluate(TEXTS) == [], "a figure without its text"
    page.evaluate(UNFOLD)
    assert page.evaluate(CUT_OFF) == [], "lines of code that a laptop does not show"
    assert weight(files_of_page(visit, docname)) < CHAPTER_BYTES
    page.add_style_tag(content=STILL + PLAIN)
    for size in (SMALLEST, PHONE, *(BETWEEN if docname in OTHERS else ())):
        page.set_viewport_size(size)
        assert page.evaluate(OVERFLOW) == [], size
    page.evaluate(auditor)
    assert violations(page, [AUDITS[0] if docname in STYLED else WORDS]) == {}
    assert visit.problems == []


@pytest.mark.proof
@pytest.mark.parametrize("docname", [*PAGES, *OTHERS])
def test_page_in_every_look(visit, auditor, docname):
    page = visit.open(docname)
    page.wait_for_load_state("networkidle")
    page.evaluate(UNFOLD)
    page.add_style_tag(content=STILL + PLAIN)
    page.evaluate(auditor)
    assert violations(page, AUDITS) == {}
    assert visit.problems == []


def test_the_landing_page_is_light(visit):
    page = visit.open(PAGES[0])
    page.wait_for_load_state("networkidle")
    files = files_of_page(visit, PAGES[0])
    assert weight(files) <= LANDING_BYTES
    assert len(files) <= LANDING_REQUESTS


def test_a_formula_is_a_tab_stop_only_while_it_must_be_scrolled(visit):
    page = visit.open("book/after/preferences")
    page.evaluate(UNFOLD)
    page.set_viewport_size(PHONE)
    page.wait_for_function(SCROLLABLE_BY_KEYBOARD)
    assert page.locator(".tt-formula[tabindex]").count(), "a formula wider than a phone"
    page.set_viewport_size(LAPTOP)
    page.wait_for_function("() => !document.querySelector('.tt-formula[tabindex]')")


def test_copy_buttons_are_named_after_their_cells(visit):
    page = visit.open("book/foundations/tensors")
    names = page.locator("button.copybtn").evaluate_all("all => all.map(b => b.ariaLabel)")
    assert len(set(names)) == len(names) > 0
    assert page.locator("div.cell").nth(2).locator(".cell_input .copybtn").get_attribute(
        "aria-label"
    ) == ("Copy cell 3")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_page_has_its_colour_scheme_before_its_scripts_load(visit, scheme):
    visit.page.emulate_media(color_scheme=scheme)
    visit.page.context.route("**/book.js*", lambda route: route.abort())
    visit.page.goto(f"{visit.site}{PAGES[0]}.html")
    assert visit.page.evaluate("document.documentElement.dataset.theme") == scheme
    colour = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (colour == "rgb(19, 23, 28)") == (scheme == "dark")


def test_the_scheme_button_changes_the_colours_of_figures(visit):
    page = visit.open("book/foundations/tensors")
    page.add_style_tag(content=STILL)
    assert page.locator("svg.tt-figure").count(), "the page has an inline figure"
    seen = {}
    for _ in range(3):  # the button goes round three modes: auto, light and dark
        page.locator(".theme-switch-button:visible").first.click()
        seen[page.evaluate("() => document.documentElement.dataset.theme")] = page.evaluate(FILLS)
    assert set(seen) == {"light", "dark"}
    for bright, dim in zip(seen["light"], seen["dark"], strict=True):
        assert bright != dim
    assert visit.problems == []


def test_every_part_of_the_map_leads_to_its_page(visit):
    visit.page.route("**/playground/map.js*", lambda route: route.abort())  # the drawing stays
    page = visit.open(PAGES[0])
    links = page.locator("article svg a")
    targets = {links.nth(i).get_attribute("href") for i in range(links.count())}
    assert targets, "the landing page has a map whose parts are links"
    for target in sorted(targets):
        link = page.locator(f'article svg a[href="{target}"]').first
        link.focus()
        assert link.evaluate("e => e === document.activeElement"), f"{target}: not by keyboard"
        address = link.evaluate("e => new URL(e.href.baseVal ?? e.href, location).href")
        path, _, anchor = address.removeprefix(visit.site).partition("#")
        assert (SITE / path).exists(), f"{address} is no page"
        assert not anchor or f'id="{anchor}"' in (SITE / path).read_text(encoding="utf-8")


def test_the_root_is_the_landing_page_itself(visit):
    page = visit.page
    page.goto(visit.site)
    page.wait_for_load_state("networkidle")
    assert page.url == visit.site
    assert page.locator("h1").first.text_content().startswith("TinyTorch")
    assert page.locator("article svg a").count()
    # leaving while the map's scripts are on their way would stop their requests
    page.locator(".tt-map").scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.tt-map').dataset.map === 'ready'")
    page.locator("article section > p a").first.click()
    page.wait_for_url("**/first-words/counting-letters.html")
    assert visit.problems == []


def test_an_unknown_address_shows_a_complete_page(visit, auditor):
    root, page = urlsplit(site_url(CONFIG["repository"]["url"])).path, visit.page
    lost = f"{visit.site}{root.strip('/')}/book/no/such/page.html"

    def answer(route):  # as GitHub Pages does: a 404's own page, whatever was asked for
        name = route.request.url.removeprefix(visit.site).removeprefix(root.lstrip("/"))
        file = SITE / name.partition("?")[0]
        route.fulfill(path=file if file.is_file() else SITE / "404.html")

    visit.page.context.route(f"**{root}**", answer)
    page.goto(lost)
    page.wait_for_load_state("networkidle")
    assert page.locator("article h1").text_content().startswith("There is no such page")
    assert page.evaluate("() => getComputedStyle(document.body).fontFamily") != ""
    assert page.evaluate("() => [...document.styleSheets].some(s => s.href)")
    page.evaluate(auditor)
    assert page.evaluate(AUDIT, LEVELS) == []
    page.locator("article a").first.click()
    page.wait_for_url(f"**{root}book/intro.html")
    assert visit.problems == []


NOTES = """() => [...document.querySelectorAll('aside.margin')].map(note => {
    const beside = note.nextElementSibling;
    const box = e => e.getBoundingClientRect();
    return {left: box(note).left, right: box(note).right, text: box(beside).left,
            measure: parseFloat(getComputedStyle(beside).maxWidth)};
})"""


@pytest.mark.parametrize(
    "docname", ["book/first-words/counting-letters", "book/foundations/tokenization"]
)
def test_side_notes_stand_beside_the_text_on_a_laptop_and_in_it_on_a_phone(visit, docname):
    page = visit.open(docname)
    notes = page.evaluate(NOTES)
    assert notes
    for note in notes:
        assert note["left"] >= note["text"] + note["measure"]
        assert note["right"] <= LAPTOP["width"]
    page.set_viewport_size(PHONE)
    for note in page.evaluate(NOTES):
        assert note["left"] == note["text"] and note["right"] <= PHONE["width"]


def test_the_list_of_contents_folds_away_for_a_side_note_and_opens_by_keyboard(visit):
    page = visit.open("book/first-words/counting-letters")
    page.add_style_tag(content=STILL)
    page.locator("aside.margin").first.scroll_into_view_if_needed()
    page.wait_for_selector(".bd-sidebar-secondary.hide")
    contents = page.locator(".bd-sidebar-secondary")
    folded = contents.bounding_box()["height"]
    page.locator(".bd-sidebar-secondary a").first.focus()
    assert contents.bounding_box()["height"] > folded


@pytest.mark.parametrize("docname", ["book/inside/what-it-knows"])
def test_wide_figures_use_the_right_third_of_a_laptop(visit, docname):
    figure = visit.open(docname).locator("div.tag_full-width").first
    text = visit.page.locator("article section > p").first.bounding_box()
    box = figure.bounding_box()
    assert box["width"] > 1.4 * text["width"] and box["x"] + box["width"] <= LAPTOP["width"]
    visit.page.set_viewport_size(PHONE)
    assert visit.page.evaluate(OVERFLOW) == []


CONTRAST = """() => {
    const [front, ground] = [document.activeElement, document.activeElement.parentElement].map(
        (e, i) => getComputedStyle(e)[i ? 'backgroundColor' : 'color'].match(/\\d+/g).map(Number));
    const light = (rgb) => rgb.slice(0, 3).map(c => c / 255)
        .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const [low, high] = [light(front), light(ground)].toSorted((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}"""
# How far the page has moved by itself, as the browser counts it.
SHIFTED = """() => new Promise((told) => {
    new PerformanceObserver((list) => told(list.getEntries().reduce((sum, e) => sum + e.value, 0)))
        .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => told(0), 1000); // it says nothing where nothing has moved
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_link_that_skips_to_the_text_can_be_read(visit, scheme):
    visit.page.emulate_media(color_scheme=scheme)
    page = visit.open(PAGES[0])
    page.wait_for_function(FOLLOWS, arg=scheme)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to main content"
    assert page.evaluate(CONTRAST) >= 4.5


@pytest.mark.parametrize(
    "docname", ["book/first-words/counting-letters", "book/generation/sampling"]
)
def test_on_a_phone_the_text_does_not_shift_when_the_scripts_load(visit, docname):
    visit.page.set_viewport_size(PHONE)
    page = visit.open_live(docname)
    page.evaluate(SETTLED)
    assert page.locator(".tt-live-intro").is_visible()
    assert page.evaluate(SHIFTED) < 0.01


def test_no_space_is_reserved_for_the_live_notice_where_cells_cannot_run(visit):
    visit.page.context.route("**/live/cells.js*", lambda route: route.abort())
    visit.page.goto(f"{visit.site}book/generation/sampling.html")
    visit.page.locator(".tt-live-plain:not([hidden])").wait_for()
    assert visit.page.locator(".tt-live-intro").evaluate("e => e.offsetHeight") == 0
