"""The map of the model at work in a real browser: layout, keyboard, motion, and what it costs.

Its numbers and words are tested without a browser (tests/scripts/playground_map.test.mjs).
"""

import pytest
from page_weight import PLAYGROUND_BYTES, files_of_playground, weight
from test_playground import AUDIT, FOLLOWED, LANDING, LEVELS, READY, auditor
from visit import LAPTOP, OVERFLOW, PHONE, SETTLED

expect = pytest.importorskip("playwright.sync_api").expect

__all__ = ["auditor"]
MAPPED = "() => document.querySelector('.tt-map')?.dataset.map === 'ready'"
LONG = "One sunny morning Tom walked to the barn. There"
SMALL = """() => [...document.querySelectorAll('.tt-map__live *')].filter(e =>
    e.checkVisibility() && e.childNodes.length && [...e.childNodes].some(n => n.nodeType === 3
        && n.data.trim()) && !e.closest('.visually-hidden')).filter(e => {
        const drawn = e.closest('svg')?.getScreenCTM()?.a ?? 1;
        return drawn * parseFloat(getComputedStyle(e).fontSize) < 11;
    }).map(e => e.outerHTML.slice(0, 100))"""
# What is written in a part must stay inside it, and no name may lie under what is beside it.
LEAVES = """() => [...document.querySelectorAll('.tt-map__part')].flatMap(part => {
    const box = part.getBoundingClientRect();
    return [...part.querySelectorAll('button, p, canvas, text, table, svg')].filter(e => {
        const {left, right, width} = e.getBoundingClientRect();
        return e.checkVisibility() && width && !e.closest('.visually-hidden')
            && (left < box.left - 1 || right > box.right + 1);
    }).map(e => part.dataset.map + ' ' + e.outerHTML.slice(0, 80));
})"""
COVERED = """() => [...document.querySelectorAll('.tt-map__part > .tt-map__name')].filter(e => {
    const guess = e.parentNode.querySelector('.tt-map__guess').getBoundingClientRect();
    return guess.width && [...e.children].some(one =>
        [...one.getClientRects()].some(r => r.right > guess.left && r.bottom > guess.top
            && r.top < guess.bottom && guess.left > r.left));
}).map(e => e.textContent)"""
# The lane of the focus runs through the middle of its chip and of all its squares.
ASKEW = """() => {
    const middle = e => { const r = e.getBoundingClientRect(); return (r.left + r.right) / 2; };
    const lane = middle(document.querySelector('.tt-map__lane--focus'));
    const chip = middle(document.querySelector('.tt-map__chips [aria-pressed=true]'));
    const last = [...document.querySelectorAll('.tt-map__tiles')].map(row =>
        middle([...row.children].filter(e => !e.hidden).at(-1)));
    return [chip, ...last].map(x => Math.abs(x - lane)).filter(far => far > 1.5);
}"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Map:
    """The map of the landing page, as a reader uses it."""

    def __init__(self, visit, state=""):
        self.visit, self.page = visit, visit.page
        self.page.goto(f"{visit.site}{LANDING}.html{state}")
        self.page.wait_for_function(READY)
        self.page.locator(".tt-map").scroll_into_view_if_needed()
        self.page.wait_for_function(MAPPED)
        self.settle()

    def settle(self):
        self.page.evaluate(FOLLOWED)
        self.page.evaluate(SETTLED)

    def part(self, key):
        return self.page.locator(f'.tt-map__live [data-map="{key}"]')

    def open(self, key):
        self.part(key).locator("> .tt-map__name").click()
        self.settle()

    def change(self, **changes):
        self.page.evaluate("changes => tinytorchPlay.change(changes)", changes)
        self.settle()

    @property
    def focused(self):
        return self.page.evaluate(
            "document.activeElement.closest('[data-map], [data-control]')?.dataset.map"
            " ?? document.activeElement.dataset.control"
        )


def test_on_any_screen_the_parts_stand_in_order_and_nothing_leaves_them(visit):
    it, page = Map(visit), visit.page
    for size in ({"width": 320, "height": 640}, PHONE, LAPTOP):
        page.set_viewport_size(size)
        for text in ("", "One sunny morning", LONG, LONG * 3):
            for opened in (None, "mlp.1", "sampling"):
                it.change(text=text, map=opened)
                what = f"{size['width']}: {text!r}, {opened}"
                assert page.evaluate(OVERFLOW) == [], what
                assert page.evaluate(LEAVES) == [], what
                assert page.evaluate(COVERED) == [], what
                assert page.evaluate(ASKEW) == [], what
                assert page.evaluate(SMALL) == [], what
    tops = page.locator(".tt-map__live [data-map]").evaluate_all(
        "all => all.map(e => [e.dataset.map, e.getBoundingClientRect().top])"
    )
    assert [name for name, _ in tops] == [name for name, _ in sorted(tops, key=lambda one: one[1])]
    assert len(tops) == 16
    assert visit.problems == []


def test_open_and_closed_in_light_and_dark_it_is_accessible(visit, auditor):
    it, page = Map(visit), visit.page
    it.change(text=LONG)
    page.evaluate(auditor)
    for scheme in ("light", "dark"):
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
        for key in (None, "token-embedding", "attention.1", "mlp.0", "sampling", "training"):
            it.change(map=key)
            assert page.evaluate(AUDIT, LEVELS) == [], f"{scheme}, {key}"


def test_it_works_by_keyboard_alone(visit):
    it, page = Map(visit), visit.page
    it.part("attention.0").locator("> .tt-map__name").focus()
    page.keyboard.press("Enter")
    it.settle()
    expect(it.part("attention.0").locator("> .tt-map__name")).to_have_attribute(
        "aria-expanded", "true"
    )
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    it.settle()
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    for _ in range(5):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Several heads"
    page.keyboard.press("Escape")
    assert it.focused == "attention.0"
    expect(it.part("attention.0").locator(".tt-map__open")).to_be_hidden()
    it.part("tokens").locator("[tabindex='0']").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    it.settle()
    assert page.evaluate("tinytorchPlay.state.at") == 2
    it.part("sampling").locator(".tt-play__press").first.focus()
    page.keyboard.press("Enter")
    it.settle()
    assert page.evaluate("tinytorchPlay.view.ids.length") == 3


def test_a_watch_keeps_the_focus_and_ends_with_escape(visit):
    it, page = Map(visit), visit.page
    page.get_by_role("button", name="Watch one token").press("Enter")
    assert it.focused == "pause"
    page.keyboard.press("Escape")
    assert it.focused == "watch"
    assert not page.evaluate("tinytorchPlay.folds.map.watch.on")


def test_a_part_stays_where_it_was_pressed_though_another_closes(visit):
    it, page = Map(visit), visit.page
    it.change(map="attention.0")
    name = it.part("mlp.1").locator("> .tt-map__name")
    name.focus()
    page.evaluate(SETTLED)
    before = name.bounding_box()["y"]
    page.keyboard.press("Enter")
    expect(name).to_have_attribute("aria-expanded", "true")
    it.settle()
    assert abs(name.bounding_box()["y"] - before) < 2


def test_where_its_scripts_do_not_come_the_drawing_says_so(visit):
    page = visit.page
    page.route("**/map_words*.js", lambda route: route.abort())
    page.goto(f"{visit.site}{LANDING}.html")
    page.wait_for_function(READY)
    page.locator(".tt-map").scroll_into_view_if_needed()
    expect(page.locator(".tt-map [role=status]")).to_contain_text("This drawing stands still")
    expect(page.locator(".tt-map figure")).to_be_visible()


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_a_token_is_watched_without_motion_by_presses_alone(browser, site, size):
    context = browser.new_context(viewport=size, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{site}{LANDING}.html")
    page.wait_for_function(READY)
    page.locator(".tt-map").scroll_into_view_if_needed()
    page.wait_for_function(MAPPED)
    page.get_by_role("button", name="Watch one token").click()
    moving = """document.getAnimations().map(a => a.effect).filter(effect =>
        effect.getComputedTiming().endTime > 50).map(e => e.target.outerHTML.slice(0, 100))"""
    for name in ("tokens", "token-embedding", "positions", "attention.0"):
        lit = page.locator("[data-lit]")
        expect(lit).to_have_attribute("data-map", name)
        seen = """e => { const r = e.getBoundingClientRect(), bar = document.querySelector(
            '.tt-map__bar').getBoundingClientRect();
            return r.top >= bar.bottom - 1 && r.top < innerHeight && bar.top >= 0; }"""
        assert lit.evaluate(seen), f"{name} is lit below what is said about it"
        assert page.evaluate(moving) == []
        page.get_by_role("button", name="Next", exact=True).click()
    page.keyboard.press("Escape")
    expect(page.locator("[data-lit]")).to_have_count(0)
    context.close()


def test_the_card_of_a_chapter_leads_to_its_part(visit):
    page = visit.open("book/transformer/normalisation-and-mlp")
    page.get_by_role("link", name="See it at work: norm and MLP, inside the block").click()
    page.wait_for_function(READY)
    page.wait_for_function(MAPPED)
    part = page.locator('.tt-map__live [data-map="mlp.0"]')
    expect(part.locator(".tt-map__open")).to_be_visible()
    expect(part).to_be_in_viewport()


def test_without_scripts_and_on_paper_the_drawing_is_there(browser, site, visit):
    context = browser.new_context(java_script_enabled=False, viewport=LAPTOP)
    page = context.new_page()
    page.goto(f"{site}{LANDING}.html#play&map=mlp")
    expect(page.locator(".tt-map svg").first).to_be_in_viewport()
    context.close()
    it = Map(visit)
    expect(it.page.locator(".tt-map > figure")).to_be_hidden()
    it.page.emulate_media(media="print")
    expect(it.page.locator(".tt-map > figure")).to_be_visible()
    expect(it.page.locator(".tt-map__live")).to_be_hidden()


def test_nothing_comes_for_the_map_until_it_is_near_and_then_no_second_model(visit):
    page = visit.page
    page.set_viewport_size(PHONE)
    page.goto(f"{visit.site}{LANDING}.html")
    page.wait_for_function(READY)
    page.wait_for_load_state("networkidle")
    names = [r.url.rsplit("/", 1)[-1] for r in files_of_playground(visit)]
    assert [name for name in names if name.startswith("map")] == []
    page.locator(".tt-map").scroll_into_view_if_needed()
    page.wait_for_function(MAPPED)
    files = files_of_playground(visit)
    assert sum("step-" in response.url for response in files) == 1
    assert weight(files) <= PLAYGROUND_BYTES


def test_the_map_comes_also_when_the_page_is_read_in_pieces(visit):
    page = visit.page
    page.context.add_init_script("""(() => { // what is not read yet is not found
        const {get} = Object.getOwnPropertyDescriptor(Document.prototype, 'readyState');
        const find = document.querySelector.bind(document);
        let left = 3, missed = false;
        document.querySelector = (what) => {
            missed = what === '.tt-map' && left > 0;
            left -= missed;
            return missed ? null : find(what);
        };
        Object.defineProperty(document, 'readyState', {
            get: () => missed ? 'loading' : get.call(document),
        });
    })()""")
    page.goto(f"{visit.site}{LANDING}.html")
    page.wait_for_function(READY)
    page.locator(".tt-map").scroll_into_view_if_needed()
    page.wait_for_function(MAPPED)


def test_if_its_scripts_do_not_come_the_drawing_stays_and_the_playground_works(visit):
    page = visit.page
    page.context.route("**/map_panels.js*", lambda route: route.abort())
    page.goto(f"{visit.site}{LANDING}.html")
    page.wait_for_function(READY)
    with page.expect_event("requestfailed"):
        page.locator(".tt-map").scroll_into_view_if_needed()
    expect(page.locator(".tt-map > figure")).to_be_visible()
    page.evaluate("tinytorchPlay.change({text: 'One '})")
    expect(page.locator("[data-part=tokens] button")).to_have_count(1)


def test_the_map_is_drawn_after_the_bars(visit):
    it = Map(visit)
    seen = it.page.evaluate("""async () => {
        const {map} = tinytorchPlay.folds, {show} = map, frame = requestAnimationFrame;
        globalThis.requestAnimationFrame = (then) => setTimeout(() => frame(then), 200); // late
        let frames = 0, before = null;
        map.show = (...all) => { before = frames; show.apply(map, all); };
        requestAnimationFrame(() => { frames += 1; });
        tinytorchPlay.change({text: 'Once'});
        await tinytorchPlay.settled;
        return before;
    }""")
    assert seen == 1
