"""The decks in Chromium: all that is on a slide is seen, nothing is fetched from elsewhere."""

import pytest
from _ext.teaching.slides import parts
from served_pages import ROOT
from visit import LAPTOP, OVERFLOW, PHONE

expect = pytest.importorskip("playwright.sync_api").expect

READY = "() => document.documentElement.dataset.slides === 'ready'"
SLIDE = {"width": 1280, "height": 720}
SMALLEST_CODE = 11  # pixels, of 720
SEEN = "p, li, pre, math, table, h1, h2, figcaption, figure"
# Each slide in turn, with its answer: what sticks out, and code too small for the last row.
WRONG = """([seen, smallest]) => {
    const found = [];
    for (let i = 0; i < Reveal.getTotalSlides(); i++) {
        Reveal.slide(i, 0, 99);
        const slide = Reveal.getCurrentSlide(), body = slide.querySelector('.tt-slide__body');
        const frame = (slide.matches('.tt-slide--title') ? slide : body).getBoundingClientRect();
        const wrong = [...body.querySelectorAll(seen)].filter(e => {
            const box = e.getBoundingClientRect(), code = e.tagName === 'PRE';
            return box.width && (box.right > frame.right + 1 || box.bottom > frame.bottom + 1
                || box.left < frame.left - 1 || box.top < frame.top - 1
                || code && (e.scrollWidth > e.clientWidth + 1
                            || parseFloat(getComputedStyle(e).fontSize) < smallest));
        });
        found.push(...wrong.map(e => [i, slide.querySelector('h1, h2').textContent, e.tagName]));
    }
    return found;
}"""
pytestmark = pytest.mark.browser


def open_deck(visit, folder, how=""):
    visit.page.set_viewport_size(SLIDE)
    visit.page.goto(f"{visit.site}slides/{folder}.html{how}", wait_until="load")
    visit.page.wait_for_function(READY)
    return visit.page


@pytest.mark.parametrize("folder", parts(ROOT))
def test_nothing_sticks_out_of_a_slide(visit, folder):
    assert open_deck(visit, folder).evaluate(WRONG, [SEEN, SMALLEST_CODE]) == []
    assert visit.problems == []


def test_keys_turn_the_slides_mark_the_right_choice_and_change_the_scheme(visit):
    page = open_deck(visit, "attention", "#/scaled-dot-product")
    right = page.locator(".present .tt-slide__right")
    for _ in range(8):
        if right.count():
            break
        page.keyboard.press("ArrowRight")
    marked = "e => e.classList.contains('visible')"
    assert not right.evaluate(marked)
    page.keyboard.press("ArrowRight")
    assert right.evaluate(marked)
    page.keyboard.press("d")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_deck_prints_a_page_a_slide_with_the_answers(visit):
    page = open_deck(visit, "first-words", "?view=print")
    page.wait_for_selector(".pdf-page")
    slides = page.evaluate("document.querySelectorAll('section.tt-slide').length")
    pdf = page.pdf(prefer_css_page_size=True, print_background=True)
    assert pdf.count(b"/Type /Page\n") == slides > 10
    assert page.locator(".pdf-page .tt-slide__right.visible").count() > 2


# What is written smaller than one reads without effort; what is drawn scales with the phone.
SMALL = """() => [...document.querySelectorAll('.tt-slide :is(p, li, td, pre, h1, h2)')]
    .filter(e => e.checkVisibility() && !e.closest('svg')
        && parseFloat(getComputedStyle(e).fontSize) * e.getBoundingClientRect().width
            / Math.max(1, e.offsetWidth) < 12.5)
    .map(e => e.textContent.slice(0, 60))"""


# What scrolls sideways, and no key can scroll.
NO_KEYS = """() => [...document.querySelectorAll('.tt-slide *')]
    .filter(e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0
        && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX))
    .map(e => e.outerHTML.slice(0, 80))"""


def test_a_screen_of_another_shape_shows_the_bar_of_a_title_once(visit):
    page = open_deck(visit, "attention")
    page.set_viewport_size(LAPTOP)
    bars = "all => all.filter(e => parseFloat(getComputedStyle(e).borderTopWidth) > 9).length"
    assert page.locator(".present").evaluate_all(bars) == 1


@pytest.mark.parametrize("folder", ["attention", "inside"])
def test_on_a_phone_held_upright_the_slides_can_be_read_one_below_the_other(visit, folder):
    page = visit.page
    page.set_viewport_size(PHONE)
    page.goto(f"{visit.site}slides/{folder}.html")
    page.wait_for_function(READY)
    assert page.evaluate(SMALL) == []
    assert page.evaluate(OVERFLOW) == []
    tops = "() => [...document.querySelectorAll('.tt-slide')].map(e => e.getBoundingClientRect().y)"
    places = page.evaluate(tops)
    assert places == sorted(set(places)) and len(places) > 10
    assert page.evaluate(NO_KEYS) == []
    assert visit.problems == []


def test_on_a_phone_an_address_leads_to_its_slide_and_an_answer_waits_for_a_press(visit):
    page = visit.page
    page.set_viewport_size(PHONE)
    page.goto(f"{visit.site}slides/attention.html#/multi-head")
    page.wait_for_function(READY)
    expect(page.locator("#multi-head > h1")).to_be_in_viewport()
    question = page.locator(".tt-slide--question:has(.tt-slide__right)").first
    right = question.locator(".tt-slide__right").first
    expect(right).not_to_contain_class("visible")
    question.get_by_role("button", name="Show the answer").click()
    expect(right).to_contain_class("visible")
    expect(question.get_by_role("button")).to_have_count(0)
    page.set_viewport_size(SLIDE)  # turned, or on a projector
    page.wait_for_function("() => document.documentElement.dataset.slides && Reveal.isReady()")
