"""A model trained in a real page, by the page's own Python: a few steps of the smallest one.

What goes wrong and what is kept is tested without a browser (tests/scripts/training_here.test.mjs).
"""

import json

import pytest
from test_opened_pages import COLOURS, SCROLLABLE_BY_KEYBOARD
from test_playground import AUDIT, LANDING, LEVELS, PAGE, Playground, auditor
from visit import LAPTOP, OVERFLOW, PHONE

from tinytorch.files.safetensors import load_safetensors
from tinytorch_book.experiments.live_training import live_trainer, load_trained

expect = pytest.importorskip("playwright.sync_api").expect
__all__ = ["auditor"]  # a fixture

READY = "() => document.documentElement.dataset.live === 'ready'"
PAUSED = "() => document.querySelector('.tt-train [data-training]').dataset.training === 'paused'"
STEPS = "() => /^Training: [1-9]/.test(document.querySelector('[data-is=state]').textContent)"
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("python_inside")]


class Training(Playground):
    """A page whose panel is open, with the smallest model chosen."""

    def __init__(self, visit, docname=LANDING):
        super().__init__(visit, docname)
        self.page.wait_for_function(READY)
        self.page.get_by_role("button", name="Train one here").click()
        self.of("size").select_option("smaller")

    def of(self, name):
        return self.page.locator(f"[data-is={name}]")

    def train(self):
        """Let it take some steps, and pause it."""
        self.of("go").click()
        self.page.wait_for_function(STEPS)
        self.of("go").click()
        self.page.wait_for_function(PAUSED)
        return self.losses

    @property
    def losses(self):
        """Those of the page's Python, which is asked for them, and those that the page knows."""
        self.page.evaluate(
            "globalThis.asked = tinytorchLive.kernel.run({force: true, asserts: true, title: '',"
            " alt: '', prefix: 'x', source: 'import json; print(json.dumps([r[\"loss\"] for r in"
            " training_here.history]))', onmessage: ({text}) => { globalThis.told = text; }})"
        )
        self.page.evaluate("asked.then(() => {})")
        return json.loads(self.page.evaluate("told"))


@pytest.fixture
def training(visit):
    """The panel of the landing page."""
    return Training(visit)


def test_a_model_is_trained_paused_trained_on_and_kept(training, visit):
    assert visit.page.locator("link[href*=training_here]").count() == 1
    first = training.train()
    assert len(first) >= 10
    assert training.losses == first, "it has paused"
    losses = training.train()
    assert losses[: len(first)] == first and len(losses) > len(first)
    native = live_trainer("smaller")
    native.run(10)
    for here, there in zip(losses, native.history[:10], strict=False):
        assert here == pytest.approx(there["loss"], rel=1e-4), "the package's recipe"
    count = len(losses)
    expect(training.of("state")).to_have_text(f"Paused after {count} steps (smaller size, seed 0).")
    expect(training.of("texts").locator("span").last).not_to_be_empty()
    training.of("put").click()
    expect(training.part("note")).to_contain_text(f"your own, trained here: {count} steps")
    bars = training.part("bars").locator("tr").first.inner_text()
    assert training.page.locator("[data-part=trainedBars] tr").first.inner_text() == bars
    with visit.page.expect_download() as saved:
        training.of("save").click()
    path = saved.value.path()
    assert load_safetensors(path)[1]["step"] == str(count)
    assert load_trained(path).num_parameters()["total"] == 41_856
    training.part("more").click()
    visit.page.wait_for_url("**/playground.html#play*step=mine*")
    whole = Training(visit, PAGE)
    expect(whole.of("state")).to_have_text(f"Paused after {count} steps (smaller size, seed 0).")
    whole.of("python").click()
    cell = whole.page.locator("div.cell").first
    cell.get_by_role("button", name="Run").click()
    expect(cell.locator(".cell_output").last).to_contain_text("One sunny morning")
    again = whole.train()
    assert again[:count] == losses and len(again) > count, "it goes on where it was"
    assert visit.problems == []


def test_a_cell_runs_while_a_model_is_trained_and_its_stop_loses_nothing(visit):
    training = Training(visit, PAGE)
    page = training.page
    training.of("go").click()
    page.wait_for_function(STEPS)
    page.evaluate("tinytorchLive.cells[0].write('while True: pass')")
    cell = page.locator("div.cell").first
    cell.get_by_role("button", name="Run").click()
    expect(cell.locator(".tt-live__status")).to_have_text("Running")
    cell.get_by_role("button", name="Stop").click()
    expect(cell.locator(".tt-live__status")).not_to_have_text("Running")
    expect(training.of("state")).to_contain_text("It was stopped together with a cell.")
    training.of("go").click()
    page.wait_for_function(STEPS)
    training.of("go").click()
    page.wait_for_function(PAUSED)
    losses = training.losses
    native = live_trainer("smaller").run(len(losses[:10]))
    assert losses[:10] == pytest.approx([record["loss"] for record in native], rel=1e-4)


def test_the_panel_works_by_keyboard_is_accessible_and_stays_on_the_page(training, auditor):
    page = training.page
    training.of("go").focus()
    page.keyboard.press("Enter")
    page.wait_for_function(STEPS)
    page.keyboard.press("Enter")
    page.wait_for_function(PAUSED)
    assert page.evaluate("document.activeElement.dataset.is") == "go"
    for name in ("again", "size", "seed"):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.dataset.is") == name
    page.evaluate(auditor)
    for scheme, rules in (("light", LEVELS), ("dark", COLOURS)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
        for size in (PHONE, LAPTOP):
            page.set_viewport_size(size)
            page.wait_for_function(SCROLLABLE_BY_KEYBOARD)
            page.evaluate("scrollTo(0, 0)")  # or the page's bar may lie over what is looked at
            assert page.evaluate(AUDIT, rules) == [], (scheme, size)
            assert page.evaluate(OVERFLOW) == []
    assert page.locator(".tt-play :is([role=status], [aria-live], output)").count() == 1


def test_python_that_does_not_come_is_said_and_can_be_tried_again(visit):
    visit.page.context.route("**/python_worker.js*", lambda route: route.abort())
    training = Training(visit)
    training.of("go").click()
    expect(training.of("state")).to_contain_text("Python could not be loaded")
    visit.page.context.unroute("**/python_worker.js*")
    assert len(training.train()) >= 10


def test_without_its_script_the_rest_of_the_playground_works(visit):
    visit.page.context.route("**/training_here.js*", lambda route: route.fulfill(status=404))
    play = Playground(visit, LANDING)
    play.page.get_by_role("button", name="Train one here").click()
    expect(play.part("training")).to_contain_text("could not be loaded")
    play.write("token")
    assert play.text.startswith("One sunny morning ")
