"""Every drawing on a phone: letters can be read, nothing leaves it, and no words cover others."""

import drawing
import pytest
from chromium import ROOT
from drawings import DRAWINGS, model
from visit import PHONE

STATIC = ROOT / "book" / "_static"
SMALLEST = 11  # pixels of a letter on a phone
TOO_SMALL = """smallest => [...document.querySelectorAll('text, tspan')].filter(e => {
    const svg = e.closest('svg');
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return parseFloat(getComputedStyle(e).fontSize) * scale < smallest;
}).map(e => e.textContent)"""
OUTSIDE = """() => [...document.querySelectorAll('svg *')].filter(e => {
    const box = e.getBoundingClientRect(), svg = e.closest('svg').getBoundingClientRect();
    return box.left < svg.left - 1 || box.right > svg.right + 1
        || box.top < svg.top - 1 || box.bottom > svg.bottom + 1;
}).map(e => e.outerHTML)"""
# The letters themselves are lower than the box of their line.
COVERED = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
    const boxes = [...svg.querySelectorAll('text')].map(e => [e, e.getBoundingClientRect()]);
    return boxes.flatMap(([a, one], i) => boxes.slice(i + 1).filter(([, other]) =>
        Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
        && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 6)
        .map(([b]) => `${a.textContent} / ${b.textContent}`));
})"""
pytestmark = [pytest.mark.browser]


@pytest.fixture(scope="module")
def phone(browser, tmp_path_factory):
    """A phone's page with all the drawings, under the book's style sheets."""
    styles = "".join(
        f'<link rel="stylesheet" href="{(STATIC / name).as_uri()}">'
        for name in ("fonts.css", "tinytorch.css", "drawings.css")
    )
    names = [(name, "") for name in DRAWINGS] + [("model", part) for part in model.PARTS]
    figures = "".join(
        f'<figure class="tt-drawing">{drawing.inline(name, lit, str)}</figure>'
        for name, lit in names
    )
    path = tmp_path_factory.mktemp("drawings") / "all.html"
    path.write_text(
        f'<!doctype html><html data-theme="light"><meta charset="utf-8">{styles}'
        f'<body style="margin: 1rem"><div class="bd-article">{figures}</div></body></html>',
        encoding="utf-8",
    )
    page = browser.new_page(viewport=PHONE)
    page.goto(path.as_uri())
    page.evaluate("document.fonts.ready")
    yield page
    page.close()


def test_no_letter_is_too_small_to_read(phone):
    assert phone.evaluate(TOO_SMALL, SMALLEST) == []


def test_nothing_stands_outside_its_drawing(phone):
    assert phone.evaluate(OUTSIDE) == []


def test_no_words_lie_on_others(phone):
    assert phone.evaluate(COVERED) == []


def test_the_words_are_set_in_the_fonts_of_the_page(phone):
    fonts = "[...document.querySelectorAll('text')].map(e => getComputedStyle(e).fontFamily)"
    first = {family.split(",")[0] for family in phone.evaluate(fonts)}
    assert first == {'"TinyTorch Serif"', '"TinyTorch Mono"'}
