"""What a phone shows of what does not fit it: code that goes on is shaded, compounds stay whole."""

import io

import pytest
from PIL import Image
from visit import PHONE, STILL

CHAPTER = "book/attention/scaled-dot-product"
pytestmark = [pytest.mark.browser, pytest.mark.slow]
# The first listing that is too wide, and the first that is not.
LISTINGS = """() => {
    const all = [...document.querySelectorAll('article div.highlight pre')]
        .filter(e => e.checkVisibility());
    const wide = all.find(e => e.scrollWidth > e.clientWidth + 100);
    return [wide, all.find(e => e.scrollWidth <= e.clientWidth)].map((e) => {
        e.id = e === wide ? 'wide' : 'fits';
        return e.id;
    });
}"""
BROKEN = """() => [...document.querySelectorAll(
    'h1, h2, nav a, .tt-card, .prev-next-title')].flatMap((e) => {
    const words = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), broken = [];
    while (words.nextNode()) {
        for (const found of words.currentNode.data.matchAll(/[\\p{L}\\d]+-[\\p{L}\\d]+/gu)) {
            const range = document.createRange();
            range.setStart(words.currentNode, found.index);
            range.setEnd(words.currentNode, found.index + found[0].length);
            const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
            if (lines.size > 1) broken.push(found[0]);
        }
    }
    return broken;
})"""


@pytest.fixture
def phone(visit):
    """That chapter on a phone."""
    visit.page.set_viewport_size(PHONE)
    page = visit.open(CHAPTER)
    page.add_style_tag(content=STILL)
    return page


def edges(page, listing):
    """The colours at both edges of a listing and in its middle, above its first line."""
    image = Image.open(io.BytesIO(page.locator(f"#{listing}").screenshot())).convert("RGB")
    return [image.getpixel((x, 3)) for x in (1, image.width // 2, image.width - 2)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_that_overflows_is_shaded_at_that_edge(phone, scheme):
    phone.emulate_media(color_scheme=scheme)
    phone.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
    wide, fits = phone.evaluate(LISTINGS)
    left, middle, right = edges(phone, fits)
    assert left == middle == right

    def shaded(to):
        phone.locator(f"#{wide}").evaluate("(e, to) => { e.scrollLeft = to; }", to)
        left, middle, right = edges(phone, wide)
        far = [max(abs(a - b) for a, b in zip(edge, middle, strict=True)) for edge in (left, right)]
        assert all(distance == 0 or distance > 40 for distance in far), "to be seen, or not there"
        return [distance > 0 for distance in far]

    assert shaded(0) == [False, True]
    assert shaded(50) == [True, True]
    assert shaded(100_000) == [True, False]


def test_no_short_compound_of_a_title_or_a_card_is_broken(phone):
    assert "dot-product" in phone.locator("article h1").inner_text()
    assert phone.evaluate(BROKEN) == []


def test_no_button_lies_on_the_text_while_one_scrolls_up(phone):
    """The theme has one that comes when one has scrolled down and then up."""
    assert phone.locator("#pst-back-to-top").count() == 0


def test_the_text_begins_within_the_first_screen(phone):
    """The aims and the map of a chapter are folded, and open at a press."""
    first = phone.get_by_text("Anna feeds dogs").first.bounding_box()
    assert first["y"] < PHONE["height"]
    assert not phone.locator(".tt-card__map").is_visible()
    phone.get_by_text("Aims and map").click()
    assert phone.locator(".tt-card__map").is_visible()


def test_where_there_is_room_the_aims_and_the_map_are_not_folded(visit):
    page = visit.open(CHAPTER)
    assert page.locator(".tt-card__map").is_visible()
    assert not page.get_by_text("Aims and map").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".tt-card__map").is_visible()


WRAPPED = """([selector, text]) => {
    const pre = [...document.querySelectorAll(selector)].find(e => e.textContent.includes(text));
    const range = document.createRange();
    range.selectNodeContents(pre);
    const line = parseFloat(getComputedStyle(pre).lineHeight);
    return {sticksOut: pre.scrollWidth - pre.clientWidth,
            lines: Math.round(range.getBoundingClientRect().height / line)};
}"""


def test_what_is_printed_breaks_on_a_phone_and_columns_scroll(phone):
    outputs = "article .cell_output pre"
    table = phone.evaluate(WRAPPED, [outputs, "in percent"])
    assert table["sticksOut"] > 0 and table["lines"] == 8, "its columns stay below each other"
    scrolling = phone.evaluate(
        """() => [...document.querySelectorAll('article .cell_output:not(.tt-columns) pre')]
            .filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)"""
    )
    assert scrolling == []


def test_a_printed_message_breaks_on_a_phone(visit):
    visit.page.set_viewport_size(PHONE)
    page = visit.open("book/proofs/proofs-attention")
    message = page.evaluate(WRAPPED, ["article .cell_output pre", "must have the same last axis"])
    assert message["sticksOut"] == 0


def test_a_printed_story_breaks_where_the_line_of_a_phone_ends(visit):
    visit.page.set_viewport_size({"width": 320, "height": 640})
    page = visit.open("book/how-to-use")
    story = "article .cell_output pre"
    printed = page.locator(story).first.text_content()
    assert printed.count("\n") > 2, "a laptop's line ends stay in the text, for who copies it"
    narrow = page.evaluate(WRAPPED, [story, printed])
    assert narrow["sticksOut"] == 0
    assert narrow["lines"] < 2 * printed.count("\n"), "no line is cut short by one of those"


def test_punctuation_stays_with_its_formula(visit):
    page = visit.open("book/attention/scaled-dot-product")
    apart = """() => [...document.querySelectorAll('article span.math')].filter(e => {
        const after = e.nextSibling;
        if (after?.nodeType !== Node.TEXT_NODE || !/^[,.;:)]/.test(after.data)) return false;
        const range = document.createRange();
        range.setStart(after, 0);
        range.setEnd(after, 1);
        const sign = range.getBoundingClientRect();
        return sign.width && sign.left < e.getBoundingClientRect().left;
    }).map(e => e.parentElement.textContent.slice(0, 80))"""
    for width in range(320, 480, 16):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate(apart) == [], width


def test_the_landing_page_is_at_most_five_screens(visit):
    visit.page.set_viewport_size(PHONE)
    page = visit.open("book/intro")
    page.locator(".tt-progress__text").wait_for()
    page.locator(".tt-train").wait_for()
    assert page.evaluate("document.documentElement.scrollHeight") <= 5 * PHONE["height"]
    assert page.locator(".tt-play + ul > li").count() == 4
    assert page.locator(".tt-panels li").count() == 7
