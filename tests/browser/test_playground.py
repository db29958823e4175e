"""The playground in a real browser: how it is laid out, reached by key and finger, and loaded.

What it computes and says is tested without a browser (tests/scripts/playground.test.mjs).
"""

import pytest
from _ext.live import pinned_downloads
from conftest import missing
from page_weight import PLAYGROUND, PLAYGROUND_BYTES, files_of_playground, weight
from test_opened_pages import COLOURS, SCROLLABLE_BY_KEYBOARD
from visit import LAPTOP, OVERFLOW, PHONE, SETTLED, Visit

expect = pytest.importorskip("playwright.sync_api").expect

PAGE, LANDING = "book/playground", "book/intro"
READY = "() => document.querySelector('.tt-play')?.dataset.play === 'ready'"
QUIET = "() => tinytorchPlay.writing === 0"
FOLLOWED = """async () => {
    for (let last; last !== tinytorchPlay.settled; await last) last = tinytorchPlay.settled;
}"""
# A fold tells that it is open some time after it is; its answer is asked for after the press.
TOGGLED = """fold => {
    globalThis.toggled = new Promise(done => fold.addEventListener('toggle', done, {once: true}));
}"""
FOLDS = "training", "attention", "lens", "beliefs", "surprise", "broken", "ask", "wish"
LONG = (
    "Once upon a time there was a boy named Max. One morning he walked to the meadow. In the grass"
    " sat a tiny rabbit, all alone and sad."
)
AUDIT = """async (levels) => {
    const {violations} = await axe.run('main', {runOnly: levels, resultTypes: ['violations']});
    return violations.flatMap(({id, nodes}) => nodes.map(n => `${id} ${n.html.slice(0, 150)}`));
}"""
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Playground:
    """The playground of a page, as a reader uses it."""

    def __init__(self, visit, docname=PAGE, state=""):
        self.visit, self.page = visit, visit.page
        self.page.goto(f"{visit.site}{docname}.html{state}")
        self.page.wait_for_function(READY)
        self.page.evaluate(SETTLED)

    def part(self, name):
        return self.page.locator(f"[data-part={name}]")

    def type(self, text):
        self.part("field").fill(text)
        self.settle()

    def settle(self):
        """Wait for what is open below the bars, which follows them."""
        self.page.evaluate(FOLLOWED)

    def press(self, name):
        button = self.page.locator(".tt-play").get_by_role("button", name=name, exact=True)
        button.click(force=True)  # also one that is marked as disabled, which does nothing
        self.settle()

    def open(self, name):
        fold = self.page.locator(f"[data-fold={name}]")
        if fold.get_attribute("open") is None:
            fold.evaluate(TOGGLED)
            fold.locator("summary").first.click()
            self.page.evaluate("toggled.then(() => {})")
        self.settle()
        return fold

    def write(self, what):
        self.press(f"Write a {what}")
        self.page.wait_for_function(QUIET)

    @property
    def text(self):
        return self.part("field").input_value()

    @property
    def tokens(self):
        return self.part("tokens").locator("button").all_text_contents()


@pytest.fixture
def auditor():
    """The text of axe-core."""
    if pinned_downloads.missing("axe"):
        missing("axe-core is not there: `make test-unit` fetches it")
    return pinned_downloads.files("axe")[0].read_text(encoding="utf-8")


@pytest.fixture
def play(visit):
    """The whole playground, on its page."""
    return Playground(visit)


def test_a_reload_keeps_what_has_not_reached_the_address_yet(play):
    play.page.evaluate("tinytorchPlay.change({text: 'Once upon'})")
    play.page.reload()
    play.page.wait_for_function(READY)
    assert play.text == "Once upon"
    play.page.evaluate("tinytorchPlay.change({text: 'One sunny morning'})")
    play.page.reload()
    play.page.wait_for_function(READY)
    assert play.text == "One sunny morning"
    play.page.evaluate("tinytorchPlay.change({text: 'Mia was'})")
    play.page.goto(f"{play.visit.site}{LANDING}.html#play&text=Once")
    play.page.wait_for_function(READY)
    assert play.text == "Once", "an address that is opened says what is shown"
    play.page.go_back()
    play.page.wait_for_function(READY)
    assert play.text == "Mia was"


def test_the_playground_works_by_keyboard_alone(play):
    page = play.page
    play.part("field").focus()
    page.keyboard.press("End")
    page.keyboard.type(" Tom")
    assert play.tokens[-1] == " Tom"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "token 4: Tom"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert (
        play.part("heading").inner_text().startswith("What could have stood instead of “morning”")
    )
    page.keyboard.press("Tab")
    focused = "document.activeElement.getAttribute('aria-label')"
    assert page.evaluate(focused) == "morning, which stands there"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert play.tokens[:2] == ["One", " sunny"] and play.tokens[2] != " morning"
    assert page.evaluate("document.activeElement.className") == "tt-play__press"


def test_everything_unfolded_is_accessible_and_stays_on_the_page(visit, auditor):
    play, page = Playground(visit), visit.page
    page.emulate_media(reduced_motion="reduce")
    for name in FOLDS:
        play.open(name)
    assert page.locator(".tt-play :is([role=status], [aria-live], output)").count() == 1
    assert page.get_by_role("region", name="Playground").count() == 1
    for name in ("Write a token", "Write a sentence", "Write a story", "Take back", "Mia"):
        button = page.locator("[data-part=bars], .tt-play__write").get_by_role("button", name=name)
        assert button.count() == 1, name
    assert page.get_by_role("rowheader", name="Mia", exact=True).count() == 3
    assert page.get_by_role("slider", name="Temperature", exact=True).count() == 1
    play.type(f"{LONG} Ma")
    play.part("topK").fill("3")
    play.settle()
    page.evaluate(auditor)
    for scheme, rules in (("light", LEVELS), ("dark", COLOURS)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
        for size in (PHONE, LAPTOP):
            page.set_viewport_size(size)
            play.settle()
            page.wait_for_function(SCROLLABLE_BY_KEYBOARD)
            assert page.evaluate(AUDIT, rules) == [], (scheme, size)
    page.set_viewport_size(PHONE)
    below = "e => e.lastChild.offsetTop >= e.firstChild.offsetTop + e.firstChild.offsetHeight"
    items = page.locator(".tt-play__parts li")
    assert items.evaluate_all(f"all => all.filter({below}).length") == 0, "a link below its label"
    for text in ("", "x" * 3000, "One 😀\f\u2028 漢字 العربية\n\n"):
        play.type(text)
        assert page.evaluate(OVERFLOW) == []
    assert visit.problems == []


def test_the_page_works_offline_once_it_has_loaded(play):
    for name in FOLDS[1:]:
        play.open(name)
    play.page.wait_for_load_state("networkidle")
    expect(play.part("believed")).to_contain_text("The place is not told yet")  # the probes came
    requests = []
    play.page.on("request", lambda request: requests.append(request.url))
    play.page.context.set_offline(True)
    play.type("Once upon a time")
    play.write("story")
    assert len(play.tokens) > 20
    assert [url for url in requests if "favicon" not in url] == []  # that is the browser


@pytest.mark.parametrize("docname", [PAGE, LANDING])
def test_the_playground_waits_for_no_other_script_and_is_light(visit, docname):
    held = []
    visit.page.context.route("**/book.js*", lambda route: held.append(route))
    visit.page.goto(f"{visit.site}{docname}.html", wait_until="commit")
    visit.page.wait_for_function(READY)
    held[0].continue_()
    visit.page.wait_for_load_state("networkidle")
    files = files_of_playground(visit)
    names = [r.url.rsplit("/", 1)[-1] for r in files]
    assert [name for name in names if "step-" in name] == ["step-4000.safetensors"]
    assert {"tokenizer.json", "grammar.json"} <= set(names)
    assert weight(files) <= PLAYGROUND_BYTES
    assert visit.problems == []


def test_nothing_is_fetched_for_the_playground_until_it_is_near_the_screen(visit):
    visit.page.add_init_script("""new MutationObserver((_, observer) => {
        if (!document.head) return;
        observer.disconnect();
        const style = document.createElement('style');
        style.textContent = '.tt-play { margin-top: 5000px !important }';
        document.head.append(style);
    }).observe(document, {childList: true, subtree: true})""")
    page = visit.open(LANDING)
    page.wait_for_load_state("networkidle")
    files = {r.url.rsplit("/", 1)[-1].partition("?")[0] for r in files_of_playground(visit)}
    assert files == {"door.js"}
    page.locator(".tt-play").scroll_into_view_if_needed()
    page.wait_for_function(READY)


def test_open_parts_load_after_the_bars_are_shown(play):
    play.open("lens")
    seen = play.page.evaluate("""async () => {
        const {lens} = tinytorchPlay.folds, {show} = lens, frame = requestAnimationFrame;
        globalThis.requestAnimationFrame = (then) => setTimeout(() => frame(then), 200); // late
        let frames = 0, before = null;
        lens.show = (...all) => { before = frames; show(...all); };
        requestAnimationFrame(() => { frames += 1; });
        tinytorchPlay.change({text: 'Once'});
        await tinytorchPlay.settled;
        return before;
    }""")
    assert seen == 1


def test_the_first_page_passes_its_state_to_the_full_playground_and_on_to_python(visit):
    play = Playground(visit, LANDING)
    tap(play, 1, 0.5)
    text = play.text
    assert text.startswith("One sunny morning ")
    play.part("temperature").fill("0.5")
    play.part("more").click()
    visit.page.wait_for_url("**/playground.html#play*")
    visit.page.wait_for_function(READY)
    visit.page.wait_for_function("() => document.documentElement.dataset.live === 'ready'")
    assert play.text == text
    assert play.part("temperatureIs").inner_text() == "0.50"
    play.press("Open in Python")
    code = visit.page.evaluate("tinytorchLive.cells[0].source")
    assert f'beginning = "{text}"' in code and "temperature = 0.5\n" in code
    assert visit.page.evaluate("document.activeElement === tinytorchLive.cells[0].runButton")


def tap(play, number, part):
    """Press a row of the bars so far from its left end."""
    row = play.page.locator(".tt-play__row").nth(number)
    row.scroll_into_view_if_needed()
    box = row.bounding_box()
    play.page.mouse.click(box["x"] + part * box["width"], box["y"] + box["height"] / 2)


def test_a_tap_in_the_middle_of_a_bar_writes_its_token(play):
    for part in (0.35, 0.5, 0.65):
        token = play.page.locator(".tt-play__row .tt-play__chip").nth(1).inner_text()
        text = play.text
        tap(play, 1, part)
        assert play.text == text + token


def test_on_a_phone_the_field_scrolls_up_so_the_bars_stay_above_the_keyboard(browser, site):
    context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True)
    play = Playground(Visit(context, site), LANDING)
    play.part("field").tap()
    top = "part => { const {y} = part.getBoundingClientRect(); return 40 < y && y < 100; }"
    play.page.wait_for_function(top, arg=play.part("field").element_handle())
    third = play.page.locator(".tt-play__row").nth(2).bounding_box()
    assert third["y"] + third["height"] < PHONE["height"] / 2
    play.page.keyboard.type(". My old grey dog is called Rex, and he was in the garden with a cat")
    play.settle()
    assert play.page.evaluate(top, play.part("field").element_handle()), "what is typed is in sight"
    play.press("The dragon said (in no story)")
    play.part("about").locator("button").first.tap()
    expect(play.part("field")).to_have_value("One")
    assert play.page.evaluate("document.activeElement.tagName") == "BUTTON", "no keyboard comes"
    context.close()


FAILURES = {
    "the weights are cut off": ("step-4000.safetensors", {"body": b"x" * 99}, "damaged"),
    "a module is not there": ("oracle.js", {"status": 404}, "one of its scripts"),
}


@pytest.mark.parametrize(("name", "answer", "words"), FAILURES.values(), ids=FAILURES)
def test_a_failed_download_is_reported_in_the_page_and_can_be_retried(visit, name, answer, words):
    visit.page.set_viewport_size(PHONE)
    visit.page.context.route(f"**/{name}", lambda route: route.fulfill(**answer))
    visit.page.goto(f"{visit.site}{LANDING}.html")
    told = visit.page.locator(".tt-play [role=status]")
    told.get_by_role("button", name="Try again").wait_for()
    assert words in told.inner_text()
    assert visit.page.locator(".tt-play svg").first.is_visible()
    assert visit.page.locator(".tt-play > p").is_hidden(), "that is for those without scripts"
    visit.page.context.unroute(f"**/{name}")
    told.get_by_role("button").click()
    visit.page.wait_for_function(READY)


def test_the_playground_works_without_a_part_that_failed_to_load(visit):
    visit.page.context.route("**/missing.js", lambda route: route.fulfill(status=404))
    play = Playground(visit)
    play.press("Tom")
    assert play.text == "One sunny morning Tom"
    assert play.page.get_by_text("What unfolds here could not be loaded.").is_visible()


def fails_first(play, name, file, place):
    """Open a fold whose file does not come, and let it come."""
    play.page.context.route(f"**/{file}*", lambda route: route.abort())
    assert not any(file in response.url for response in play.visit.responses), "not before"
    fold = play.open(name)
    again = fold.get_by_role("button", name="Try again")
    again.wait_for()
    assert f"{file} did not come" in play.part(place).inner_text()
    assert fold.locator("table").is_hidden(), "it has nothing to show"
    play.page.context.unroute(f"**/{file}*")
    again.press("Enter")
    expect(fold.locator("table")).to_be_visible()
    expect(play.part(place)).to_be_hidden()


def test_it_is_asked_by_key_once_the_model_that_answers_has_come(play):
    fails_first(play, "ask", "answering.safetensors", "answering")
    expect(play.part("answered")).to_contain_text("Asked “Which animal?”")
    play.page.get_by_role("button", name="Who?").press("Enter")
    expect(play.part("voice")).to_contain_text("Asked “Who?”")
    assert play.part("answered").inner_text() == play.part("voice").inner_text()
    rows = play.part("answers").locator("tr")
    assert rows.count() == 11 and "Mia" in rows.first.inner_text()
    longest = rows.evaluate_all("""all => Math.max(...all.map(row =>
        row.querySelector('.tt-play__bar--truth').getBoundingClientRect().width))""")
    assert longest > 10, "the posterior has bars"


def test_it_wants_a_happy_ending_by_key_once_the_files_have_come(play):
    fails_first(play, "wish", "wishes.json", "wishing")
    slider = play.page.get_by_role("slider", name="Its wish")
    slider.press("End")
    expect(play.part("voice")).to_contain_text("β = 0.25:")  # once its story is written
    assert slider.get_attribute("aria-valuetext") == "β\u00a0=\u00a00.25"
    files = [r.url for r in play.visit.responses if "/weights/wish-" in r.url]
    assert [url.partition("weights/")[2] for url in files] == ["wish-0.25.safetensors"]
    assert play.part("wishStory").locator("mark").count() > 0
    chosen = play.part("wishDrawing").locator("[data-chosen]")
    assert chosen.count() == 2
    left = "mark => mark.getBoundingClientRect().left"
    assert chosen.first.evaluate(left) > play.part("wishDrawing").evaluate(left) + 100


def test_everything_is_asked_for_at_once(visit):
    visit.page.context.route("**/playground.js", lambda route: route.abort())
    visit.page.goto(f"{visit.site}{PAGE}.html#play&step=500")
    visit.page.wait_for_function("() => document.querySelector('.tt-play').dataset.play")
    visit.page.context.unroute("**/playground.js")
    visit.page.reload()
    visit.page.wait_for_function(READY)
    urls = {load: [r.url for r, asked in visit.asked.items() if asked == load] for load in (1, 2)}
    early = {url.rsplit("/", 1)[-1] for url in urls[1] if "/_static/" in url}
    late = {url.rsplit("/", 1)[-1] for url in urls[2] if PLAYGROUND in url}
    assert late <= early
    assert {"step-500.safetensors", "grammar.json", "oracle.js", "attention.js"} <= early


def test_during_writing_the_bars_stay_in_place_and_in_view(visit):
    visit.page.set_viewport_size(PHONE)
    play = Playground(visit, LANDING)
    table = play.page.locator(".tt-play__core .tt-play__bars")
    tops = set()
    for end in range(len(" Mia w") + 1):
        play.type("One sunny morning" + " Mia w"[:end])
        tops.add(table.bounding_box()["y"])
    assert len(tops) == 1
    play.type("One sunny morning")
    play.page.evaluate(
        """() => {
            let x = 11;
            tinytorchPlay.random = () => (x = x * 16807 % 2147483647) / 2147483647;
        }"""
    )
    story = play.page.locator("[data-write=story]")
    before = story.bounding_box()
    play.write("story")
    assert story.bounding_box() == before
    field = play.part("field")
    assert field.evaluate("field => field.scrollHeight <= field.clientHeight + 1"), "read whole"
    assert len(play.text) > 150
    play.page.evaluate("scrollTo(0, 0)")
    last = play.page.locator("[data-part=bars] .tt-play__row").nth(4)
    expect(last).to_be_in_viewport(ratio=1)


def test_the_bars_stay_under_the_finger_when_the_text_needs_another_row(visit):
    visit.page.set_viewport_size(PHONE)
    play = Playground(visit, LANDING)
    bars, strip = play.part("bars"), play.part("tokens")
    before, height = bars.bounding_box()["y"], strip.bounding_box()["height"]
    for _ in range(20):
        bars.locator(".tt-play__press").first.click()
        assert abs(bars.bounding_box()["y"] - before) < 1
    assert strip.bounding_box()["height"] > height, "there are more rows now"
    play.page.evaluate("scrollTo(0, 0)")
    play.type("One")
    before, height = bars.bounding_box()["y"], strip.bounding_box()["height"]
    play.type(LONG)
    assert strip.bounding_box()["height"] > height
    assert abs(bars.bounding_box()["y"] - before) < 1


# What can be pressed or typed into, and what is read, that lie on each other.
COVERED = """() => {
    const parts = '.tt-play__write > *, textarea, p, input, small > *, .tt-play__is, thead th';
    const all = [...document.querySelectorAll(`.tt-play__core :is(${parts})`)]
        .filter(e => e.checkVisibility());
    const boxes = all.map(e => [...e.getClientRects()]);
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
        && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
    return all.flatMap((one, i) => all.slice(i + 1).filter((other, j) =>
        !one.contains(other) && boxes[i].some(a => boxes[i + 1 + j].some(b => meet(a, b))))
        .map(other => `${one.textContent || one.tagName} | ${other.textContent || other.tagName}`));
}"""
ROWS = """() => new Set([...document.querySelectorAll('.tt-play__write > *')].map(e => {
    const {top, bottom} = e.getBoundingClientRect();
    return Math.round((top + bottom) / 8);
})).size"""


@pytest.mark.parametrize("docname", [PAGE, LANDING])
def test_on_any_screen_nothing_covers_anything_or_leaves_it(visit, docname, auditor):
    play, page = Playground(visit, docname), visit.page
    assert page.locator("article h1").last.bounding_box()["y"] > 0
    for width, height in [(640, 400), (320, 640), (390, 844), (1280, 800)]:
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate(SETTLED)
        assert page.evaluate(OVERFLOW) == []
        assert page.evaluate(COVERED) == []
        assert page.evaluate(ROWS) == 1, "what lets it write on stands in one row"
        heights = "() => document.querySelector('.tt-play__write > span').getClientRects().length"
        assert page.evaluate(heights) == 1
        if docname == LANDING and height >= 800:  # the first screen shows what the book is
            box = page.locator(".tt-play__core").bounding_box()
            assert box["y"] + box["height"] <= height
    page.evaluate(auditor)
    rule = """async () => (await axe.run('.tt-play', {runOnly: ['td-has-header']}))
        .violations.flatMap(({nodes}) => nodes.map(n => n.html))"""
    assert page.evaluate(rule) == [], "a column of the bars without a head"
    assert play.visit.problems == []


DEAD = """() => [...document.querySelectorAll('.tt-play :is(button, input, select, a)')]
    .filter(e => e.checkVisibility() && !e.matches('.tt-play__press, .tt-play__chip'))
    .map(e => e.outerHTML)"""


@pytest.mark.parametrize("docname", [PAGE, LANDING])
def test_on_paper_the_bars_stay_and_what_is_pressed_goes(visit, docname):
    page = Playground(visit, docname).page
    page.emulate_media(media="print")
    bar = page.locator(".tt-play__bar--truth").first
    assert bar.is_visible()
    assert bar.evaluate("e => getComputedStyle(e).printColorAdjust") == "exact"
    assert page.evaluate(DEAD) == []


def test_the_bars_are_seen_in_forced_colours(browser, site):
    context = browser.new_context(forced_colors="active")
    page = context.new_page()
    page.goto(f"{site}{LANDING}.html")
    page.wait_for_function(READY)
    colours = page.evaluate("""() => ['chosen', 'truth'].map(of => getComputedStyle(
        document.querySelector(`.tt-play__bar--${of}`)).backgroundColor)""")
    seen = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert len({*colours, seen, "rgba(0, 0, 0, 0)"}) == 4
    context.close()


@pytest.mark.parametrize("docname", [PAGE, LANDING])
def test_without_scripts_there_are_a_picture_and_a_sentence(browser, site, docname):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}{docname}.html")
    place = page.locator(".tt-play")
    assert place.locator("[role=img]").get_attribute("aria-label").startswith("The words One sunny")
    assert place.locator("svg").first.is_visible()
    assert place.locator("> p").is_visible()
    context.close()
