"""The way on, sharing, lessons and the tour in a real browser: layout, keyboard, what they cost.

What they say and do is tested without a browser (tests/scripts/playground_extras.test.mjs).
"""

import pytest
from test_opened_pages import SCROLLABLE_BY_KEYBOARD
from test_playground import AUDIT, LANDING, LEVELS, PAGE, Playground, auditor
from visit import LAPTOP, OVERFLOW, PHONE

expect = pytest.importorskip("playwright.sync_api").expect
__all__ = ["auditor"]  # a fixture

SOLVED = "localStorage.setItem('tinytorch-book:solved ex-tensors-agreements', 'true')"
LIVE = "() => document.documentElement.dataset.live === 'ready'"
MAP_READY = "() => document.querySelector('.tt-map__heads button')"
PLACED = "() => document.querySelector('.tt-play').getBoundingClientRect().top + scrollY"
LESSON = "() => document.querySelector('.tt-lesson')"
FOCUSED = "() => document.activeElement.outerHTML.slice(0, 120)"
INSIDE = (
    "() => document.activeElement.closest('.tt-play') || document.activeElement === document.body"
)
# What has the focus is in sight and under nothing.
HIDDEN = """() => {
    const e = document.activeElement, {left, top, width, height} = e.getBoundingClientRect();
    const at = document.elementFromPoint(left + width / 2, top + height / 2);
    return e.contains(at) || at?.contains(e) ? null : e.outerHTML.slice(0, 80);
}"""
ENDED = """() => new Promise(done => {
    let last = scrollY, still = 0;
    const look = () => {
        still = scrollY === last ? still + 1 : 0;
        last = scrollY;
        still > 20 ? done() : requestAnimationFrame(look);
    };
    look();
})"""
# What the frame around it crosses, of the lines above and below.
CROSSED = """() => {
    const lit = document.querySelector('.tt-tour__lit'), {outlineOffset} = getComputedStyle(lit);
    const {top, bottom} = lit.getBoundingClientRect(), frame = parseFloat(outlineOffset) + 3;
    const lines = document.querySelectorAll('.tt-play :is(p, ol, label, table, h2, textarea)');
    return [...lines].filter(e => {
        const box = e.getBoundingClientRect();
        return !lit.contains(e) && !e.contains(lit) && e.checkVisibility() && box.height
            && (box.bottom > top - frame && box.top < top
                || box.top < bottom + frame && box.bottom > bottom);
    }).map(e => e.outerHTML.slice(0, 80));
}"""
STOP = "n => document.querySelector('.tt-tour strong')?.textContent.startsWith(n)"
BEST = """() => {
    const truest = [...tinytorchPlay.view.truth].sort((a, b) => b[1] - a[1])[0][0];
    return tinytorchPlay.likeliest.indexOf(truest);
}"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


def audited(page, size, where):
    """Assert that what is seen is accessible and stays within the screen."""
    page.set_viewport_size(size)
    page.wait_for_function(SCROLLABLE_BY_KEYBOARD)
    assert page.evaluate(AUDIT, LEVELS) == [], (where, size)
    assert page.evaluate(OVERFLOW) == [], (where, size)


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_the_way_on_has_its_room_before_the_scripts_come(visit, size):
    page = visit.page
    page.set_viewport_size(size)
    page.context.add_init_script(SOLVED)
    page.goto(f"{visit.site}{LANDING}.html", wait_until="domcontentloaded")
    early = page.evaluate(PLACED)
    page.wait_for_function(LIVE)
    above = page.locator(".tt-continue")
    expect(above).to_contain_text("Continue: Exercise 2 of Tensors")
    assert page.evaluate(PLACED) == early
    box = above.bounding_box()
    assert box["y"] + box["height"] < size["height"], "on the first screen"


def test_without_anything_solved_there_is_no_way_on(visit):
    page = visit.open_live(LANDING)
    assert page.locator(".tt-continue").bounding_box() is None


def test_nothing_of_it_is_loaded_before_it_is_asked_for(visit):
    play = Playground(visit, LANDING)
    asked = " ".join(response.url for response in visit.responses)
    assert not any(name in asked for name in ("sharing", "lesson", "tour."))
    play.page.get_by_role("button", name="Share this").click()
    expect(play.page.locator(".tt-play__sharing canvas")).to_be_visible()
    assert "sharing.js" in visit.responses[-1].url
    assert visit.problems == []


def test_the_picture_is_saved_as_large_as_messages_show_it(visit, auditor):
    play = Playground(visit, LANDING, "#play&text=Once%20upon")
    page = play.page
    page.get_by_role("button", name="Share this").press("Enter")
    canvas = page.locator(".tt-play__sharing canvas")
    expect(canvas).to_be_visible()
    assert canvas.get_attribute("aria-label").startswith("After “Once upon” the model expects: “a”")
    assert page.evaluate("document.activeElement.textContent") in ("Copy the link", "Send a link")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the picture").click()
    data = saved.value.path().read_bytes()
    assert data[:4] == b"\x89PNG" and data[16:24] == (1200).to_bytes(4) + (630).to_bytes(4)
    page.evaluate(auditor)
    for size in (PHONE, LAPTOP):
        audited(page, size, "sharing")


@pytest.mark.parametrize("full", [True, False], ids=["full", "over"])
def test_a_lesson_works_by_key_and_is_accessible(visit, auditor, full):
    if not full:
        visit.page.context.add_init_script("Element.prototype.requestFullscreen = undefined")
    play = Playground(visit)
    page = play.page
    play.open("attention")
    page.locator("[data-lesson=attention]").press("Enter")
    page.wait_for_function(LESSON)
    assert page.evaluate("Boolean(document.fullscreenElement)") == full
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => tinytorchPlay.state.drawn.length === 1")
    page.keyboard.press("p")
    expect(page.locator(".tt-lesson__told")).to_have_text("Without the positions.")
    page.keyboard.press("u")
    page.wait_for_function("() => tinytorchPlay.state.drawn.length === 0")
    page.evaluate(auditor)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
        for size in (PHONE, LAPTOP):
            audited(page, size, scheme)
    for _ in range(60):
        page.keyboard.press("Tab")
        assert page.evaluate(INSIDE), page.evaluate(FOCUSED)
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.querySelector('.tt-lesson')")
    assert 'data-lesson="attention"' in page.evaluate(FOCUSED)
    page.wait_for_function(f"() => ({HIDDEN})() === null")  # it is in sight
    assert page.evaluate("document.querySelectorAll('main [inert]').length") == 0


def test_the_link_for_a_class_opens_the_same_panel(visit):
    page = Playground(visit, PAGE, "#play&text=Once&lesson=lens").page
    page.wait_for_function(LESSON)
    expect(page.locator("[data-fold=lens] table")).to_be_visible()
    expect(page.locator("[data-fold=attention]")).to_be_hidden()
    large = page.evaluate("parseFloat(getComputedStyle(document.documentElement).fontSize)")
    assert large > 16


def test_the_link_for_a_class_opens_in_a_page_that_is_open(visit):
    page = Playground(visit).page
    page.goto(f"{page.url}#play&text=Once&lesson=lens")
    page.wait_for_function(LESSON)
    expect(page.locator("[data-fold=lens] table")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".tt-lesson")).to_have_count(0)


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_the_tour_is_taken_by_keyboard_and_covers_nothing_that_it_speaks_of(visit, auditor, size):
    visit.page.set_viewport_size(size)
    visit.page.emulate_media(reduced_motion="reduce")
    play = Playground(visit, LANDING)
    page = play.page
    page.evaluate(auditor)

    def at(number):
        page.wait_for_function(STOP, arg=str(number))
        page.evaluate(ENDED)
        assert page.evaluate(HIDDEN) is None, number
        assert number > 3 or size == LAPTOP or page.evaluate(CROSSED) == [], number
        lit = page.locator(".tt-tour__lit").bounding_box()
        assert lit["y"] >= 0 and lit["y"] < page.locator(".tt-tour").bounding_box()["y"], number

    def go_on():
        expect(page.locator(".tt-tour button").first).to_have_text("Next")
        assert page.evaluate(HIDDEN) is None
        page.keyboard.press("Enter")

    page.get_by_role("button", name="Show me in a minute").press("Enter")
    at(1)
    assert page.evaluate(AUDIT, LEVELS) == [] and page.evaluate(OVERFLOW) == []
    page.keyboard.press("Enter")
    go_on()
    at(2)
    page.keyboard.press("Enter")
    at(3)
    play.part("bars").locator("button").nth(page.evaluate(BEST)).press("Enter")
    at(4)
    page.keyboard.press("Home")
    go_on()
    page.wait_for_function(MAP_READY)
    at(5)
    page.locator(".tt-map__heads").first.get_by_role("button", name="Head 3").press("Enter")
    go_on()
    at(6)
    page.keyboard.press("Home")
    expect(page.locator(".tt-tour")).to_contain_text("Now drag it back")
    page.keyboard.press("End")
    expect(page.locator(".tt-tour a")).to_have_text("Begin with forty lines of Python")
    page.keyboard.press("Escape")
    assert 'data-part="tour"' in page.evaluate(FOCUSED)
    assert page.locator(".tt-tour").count() == 0
    assert visit.problems == []
