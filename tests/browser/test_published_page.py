"""GPT-2 in the page: what a reader does and hears there; Python writes what it writes elsewhere."""

import re

import pytest
from _ext.live import pinned_downloads
from conftest import missing
from published_hub import serving, write_folder
from test_playground import AUDIT
from visit import LAPTOP, OVERFLOW, PHONE, SETTLED, Visit

from tinytorch.models.gpt2 import compare, load_gpt2, stream_text

PAGE = "book/real/gpt2"
STATE = "(state) => document.querySelector('.tt-published').dataset.state === state"
BEGINNING = 'Once "upon" a\ntime'
pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Place:
    """The place of the weights on a page, which fetches them from this machine."""

    def __init__(self, context, site, hub, size=LAPTOP, scheme="light"):
        self.hub, self.visit = hub, Visit(context, site)
        self.page = self.visit.page
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        context.route(f"{hub.address}**", lambda route: route.continue_())
        context.add_init_script(f"""new MutationObserver(() => {{
            const place = document.querySelector('.tt-published');
            const settings = {{address: "{hub.address}", patience: 600, pause: 0.01}};
            Object.assign(place?.dataset ?? {{}}, settings);
        }}).observe(document, {{childList: true, subtree: true}});""")
        self.visit.open_live(PAGE)
        self.place = self.page.locator(".tt-published")

    def press(self, name):
        self.place.get_by_role("button", name=name).click()

    def wait(self, state):
        self.page.wait_for_function(STATE, arg=state)

    @property
    def told(self):
        return self.place.locator(".tt-published__told").inner_text()

    @property
    def text(self):
        return self.place.locator(".tt-published__text").text_content()

    def write(self, beginning, tokens, temperature):
        self.place.get_by_label("Beginning").fill(beginning)
        self.place.get_by_label("tokens").fill(str(tokens))
        self.place.get_by_label("temperature").fill(str(temperature))
        status = self.place.locator(".tt-published__status")
        status.evaluate("(status) => { status.textContent = ''; }")
        self.press("Write")
        self.page.wait_for_function(
            "() => /a second|Error|could not/"
            ".test(document.querySelector('.tt-published__status').textContent)"
        )
        return status.inner_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("hub"), n_embd=48, vocab_size=259)


@pytest.fixture
def hub(folder):
    with serving(folder) as hub:
        yield hub


@pytest.fixture
def place(context, site, hub):
    return Place(context, site, hub)


def test_at_first_the_panel_states_the_cost_and_requests_nothing(place):
    assert "has 548 MB" in place.told and "fetches 498 MB of them" in place.told
    assert "keeps 129 MB in this browser" in place.told
    assert place.place.get_by_role("button", name="Fetch GPT-2 (498 MB)").is_visible()
    assert place.place.get_by_role("button").count() == 1
    assert place.hub.requests == [] and place.visit.problems == []


def test_python_in_the_page_writes_the_same_text_as_natively(place, folder, context, site):
    model, tokenizer = load_gpt2(folder, dtype="int8")
    greedy = "".join(stream_text(model, tokenizer, BEGINNING, 30, temperature=0))
    drawn = "".join(stream_text(model, tokenizer, "Tom", 20, temperature=0.9, rng=0))
    place.press("Fetch GPT-2")
    place.wait("whole")
    status = place.write(BEGINNING, 30, 0)
    assert place.text == BEGINNING + greedy
    assert re.search(r"\d pieces of text, about [\d.]+ a second", status)
    place.write("Tom", 20, 0.9)
    assert place.text == "Tom" + drawn
    assert (
        'stream_text(gpt2, gpt2_tokenizer, "Tom", 20'
        in place.place.locator("details pre").text_content()
    )
    # a Python that has been restarted is shown the files again
    place.page.evaluate("tinytorchLive.kernel.restart()")
    place.write(BEGINNING, 30, 0)
    assert place.text == BEGINNING + greedy
    # and so is another visit, which fetches nothing
    place.page.close()
    place.hub.requests.clear()
    again = Place(context, site, place.hub)
    again.wait("whole")
    assert "kept in this browser" in again.told
    again.write(BEGINNING, 30, 0)
    assert again.text == BEGINNING + greedy
    assert again.hub.requests == []
    assert place.visit.problems == again.visit.problems == []


def test_what_has_been_fetched_is_compared_at_once_with_what_is_known(place, folder):
    model, tokenizer = load_gpt2(folder, dtype="int8")
    expected = "".join(f"{each}\n" for each in compare(model, tokenizer))
    place.press("Fetch GPT-2")
    place.wait("whole")
    lines = place.place.locator(".tt-published__lines")
    verdict = place.place.get_by_text("tokens come as expected")
    verdict.wait_for()
    assert lines.text_content() == expected and "which was ' was found in a field" in expected
    place.page.evaluate("document.querySelector('.tt-published__lines').textContent = ''")
    place.press("Compare")
    said = "(text) => document.querySelector('.tt-published__lines')?.textContent === text"
    place.page.wait_for_function(said, arg=expected)


def test_an_error_from_python_is_shown(place):
    place.press("Fetch GPT-2")
    place.wait("whole")
    status = place.write("x" * 9, 3, 0)
    assert "pieces of text" in status
    place.page.evaluate("tinytorchLive.kernel.mount('/published/gpt2', [])")
    place.page.evaluate("tinytorchLive.kernel.restart()")
    place.page.evaluate(
        "() => { tinytorchLive.kernel.mount = function (folder) { this.mounted.set(folder, []); } }"
    )
    assert "FileNotFoundError" in place.write("x", 3, 0)


def test_the_download_can_be_paused_resumed_and_forgotten(place):
    place.hub.faults = [*3 * [None], ("stall", 100_000)]
    place.press("Fetch GPT-2")
    place.page.wait_for_function("() => document.querySelector('.tt-published progress').value > 0")
    place.press("Pause")
    place.wait("part")
    assert re.search(r"\d MB of \d MB have come", place.told)
    focused = "document.activeElement.textContent"
    assert place.page.evaluate(focused) == "Go on", "where the button was that is gone"
    place.hub.faults = []
    place.press("Go on")
    place.wait("whole")
    place.press("Forget the model")
    place.wait("none")
    assert place.told.startswith("Forgotten: ") and "are free again" in place.told
    assert place.place.get_by_role("button", name="Fetch GPT-2").is_visible()


def test_a_refusal_is_reported_beside_the_button(place):
    place.hub.faults = [403]
    place.press("Fetch GPT-2")
    place.wait("none")
    assert "refuses this page (403: model.safetensors)" in place.told
    place.press("Fetch GPT-2")
    place.wait("whole")


def test_progress_is_announced_rarely(place):
    place.page.evaluate("""() => {
        globalThis.heard = [];
        const voice = document.querySelector('.visually-hidden[role=status]');
        new MutationObserver(() => heard.push(voice.textContent)).observe(voice, {childList: true});
    }""")
    place.press("Fetch GPT-2")
    place.wait("whole")
    heard = place.page.evaluate("heard")
    assert heard[0] == "Fetching GPT-2"
    kept = [i for i, each in enumerate(heard) if "kept in this browser" in each]
    assert len(kept) == 1 and 3 <= kept[0] + 1 <= 7


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_each_state_is_accessible_and_stays_on_the_page(context, site, hub, size, scheme):
    if pinned_downloads.missing("axe"):
        missing("axe-core is not there: `make test-unit` fetches it")
    place = Place(context, site, hub, size, scheme)
    place.page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
    place.page.evaluate(SETTLED)
    place.page.evaluate(pinned_downloads.files("axe")[0].read_text(encoding="utf-8"))
    levels = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]

    def check(state):
        place.wait(state)
        assert place.page.evaluate(AUDIT, levels) == [], state
        assert place.page.evaluate(OVERFLOW) == [], state

    check("none")
    hub.faults = [*3 * [None], 403]
    place.press("Fetch GPT-2")
    check("part")
    place.press("Go on")
    check("whole")
    place.write("x" * 200, 5, 0)
    place.place.locator("summary").click()
    check("whole")


def test_without_scripts_there_is_a_sentence(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}{PAGE}.html")
    assert page.locator(".tt-published > p").first.is_visible()
    assert page.locator(".tt-published button").count() == 0
    context.close()
