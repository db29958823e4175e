"""Every drawing on a phone: letters can be read, nothing leaves it, and no words cover others."""

import pytest
from _ext.directives import drawing
from drawings import DRAWINGS, model
from drawn import COVERED, OUTSIDE, SMALLEST, TOO_SMALL
from served_pages import ROOT
from visit import PHONE, SETTLED

STATIC = ROOT / "book" / "_static"
# A press on the words of a link must not meet another part, such as a frame around it.
COVERED_LINKS = """() => [...document.querySelectorAll('a.d-link')].flatMap(link =>
    [...link.querySelectorAll('text')].map(words => {
        words.scrollIntoView({block: 'center'});
        const box = words.getBoundingClientRect();
        const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        return top?.closest('a') === link ? '' : words.textContent;
    })).filter(Boolean)"""
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
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.goto(path.as_uri())
    page.evaluate(SETTLED)
    yield page.locator("body")
    context.close()


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


def test_a_press_on_a_part_follows_its_own_link(phone):
    assert phone.locator("a.d-link").count() > 10
    assert phone.evaluate(COVERED_LINKS) == []
