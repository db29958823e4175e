"""Talk to it: what a reader does and hears in the panel; it answers as Python does elsewhere."""

import json
import re

import pytest
from _ext.live import pinned_downloads
from conftest import missing
from served_pages import SITE
from talk_site import serving, write_llama
from test_playground import AUDIT, LEVELS
from visit import LAPTOP, OVERFLOW, PHONE, SETTLED, Visit

from tinytorch.models.llama import load_llama
from tinytorch_book.experiments.talking import Talk

PAGE = "book/foundations/tensors"  # any with live cells: the panel is put into it
SIGNS = "<|im_end|> \"why\"\n'\\'"
NARROW = {"width": 320, "height": 700}
STATE = "(state) => document.querySelector('.tt-talk').dataset.state === state"
STATUS = ".tt-talk__form ~ .tt-talk__status"
ENDED = f"""() => /a second|Stopped|Error|could not/
    .test(document.querySelector('{STATUS}').textContent)"""
PLACE = """(known) => new MutationObserver((_, observer) => {
    const title = document.querySelector('.bd-article h1');
    if (!title) return;
    observer.disconnect();
    const style = Object.assign(document.createElement('link'), {rel: 'stylesheet'});
    style.href = '../../_static/published/talk.css';
    document.head.append(style);
    const place = Object.assign(document.createElement('div'), {className: 'tt-talk'});
    Object.assign(place.dataset, known);
    title.after(place);
}).observe(document, {childList: true, subtree: true})"""
RUN = """async (code) => {
    const cell = tinytorchLive.cells.find((cell) => cell.runnable);
    await cell.edit();
    cell.editor.text = code;
    await cell.run({force: true});
    return cell.output.text;
}"""
NAMED = {".": "full stop", ",": "comma", "\n": "line break", " ": "space"}
SLOWLY = """
from tinytorch_book.experiments.talking import Talk
loops, scores = 2_000_000, Talk._scores
Talk._scores = lambda self, ids: ([None for _ in range(loops)], scores(self, ids))[1]
"""
HEAR = """() => {
    globalThis.heard = [];
    for (const voice of document.querySelectorAll('body > [aria-live]'))
        new MutationObserver((all) => all.forEach(({addedNodes}) => addedNodes.forEach(
            (node) => heard.push(node.textContent.trim())))).observe(voice, {childList: true});
}"""
pytestmark = [pytest.mark.browser, pytest.mark.slow]


class Panel:
    """The panel on a page; its model is on this machine."""

    def __init__(self, context, site, known, size=LAPTOP, scheme="light", docname=PAGE):
        self.visit = Visit(context, site)
        self.page = self.visit.page
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        if "address" in known:
            context.route(f"{known['address']}**", lambda route: route.continue_())
        if known:  # a page that has no panel of its own
            context.add_init_script(f"({PLACE})({json.dumps(known)})")
        self.visit.open_live(docname)
        self.place = self.page.locator(".tt-talk")
        self.question = self.place.get_by_label("Your question")

    def button(self, name):
        return self.place.get_by_role("button", name=name)

    def press(self, name):
        self.button(name).click()

    def wait(self, state):
        self.page.wait_for_function(STATE, arg=state)

    def fetch(self):
        self.press("Fetch the model")
        self.wait("whole")

    def ask(self, question, temperature=0):
        """Ask, and wait for the answer; what is said of it."""
        self.place.get_by_label("temperature").fill(str(temperature))
        self.question.fill(question)
        status = self.place.locator(STATUS)
        status.evaluate("(status) => { status.textContent = ''; }")
        self.press("Ask")
        self.page.wait_for_function(ENDED)
        return status.inner_text()

    def run(self, code):
        """Run code in the page's first cell; what it prints."""
        return self.page.evaluate(RUN, code)

    @property
    def told(self):
        return self.place.locator(".tt-talk__told").inner_text()

    @property
    def answer(self):
        return self.place.locator(".tt-talk__text").last

    @property
    def tokens(self):
        return self.answer.locator("span").all_text_contents()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_llama(tmp_path_factory.mktemp("llama") / "some.gguf")


@pytest.fixture(scope="module")
def talk(path):
    """What answers natively."""
    return Talk(*load_llama(path, dtype="stored"))


@pytest.fixture
def server(path, tmp_path):
    with serving(path, tmp_path / "pieces") as server:
        yield server


@pytest.fixture
def panel(context, site, server):
    return Panel(context, site, server.known)


def said(*texts):
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": text} for i, text in enumerate(texts)]


def texts_of(tokens):
    return [token["text"] for token in tokens]


# Fetching --------------------------------------------------------------------------------------


def test_at_first_the_panel_states_the_cost_and_requests_nothing(context, site, server):
    known = {**server.known, "size": 98_362_432}
    panel = Panel(context, site, known)
    assert "a file of 98 MB" in panel.told and "It comes from this site, once" in panel.told
    assert panel.button("Fetch the model (98 MB)").is_visible()
    assert panel.place.get_by_role("button").count() == 1
    assert server.requests == [] and panel.visit.problems == []


def test_the_download_can_be_paused_resumed_and_forgotten(panel, server):
    server.faults = [None, ("stall", 10_000)]
    panel.press("Fetch the model")
    came = "(size) => document.querySelector('.tt-talk progress').value > size / 4 + 9_999"
    panel.page.wait_for_function(came, arg=server.known["size"])
    panel.press("Pause")
    panel.wait("part")
    assert re.search(r"\d MB of \d MB are downloaded", panel.told)
    focused = "document.activeElement.textContent"
    assert panel.page.evaluate(focused) == "Resume fetching", "where the button was that is gone"
    server.faults = []
    panel.press("Resume fetching")
    panel.wait("whole")
    assert (server.pieces[1], "bytes=10000-") in server.requests, "on from where it was"
    panel.press("Forget the model")
    panel.wait("none")
    assert panel.told.startswith("Forgotten: ") and "freed." in panel.told
    assert panel.button("Fetch the model").is_visible()


@pytest.mark.parametrize(
    ("fault", "words"),
    [(403, "refuses this page (403: "), ("damage", "has arrived damaged twice"),
     ("none", "holds no model: run make live")],
)  # fmt: skip
def test_what_goes_wrong_is_said_in_a_sentence_and_another_try_helps(panel, server, fault, words):
    name = "/manifest.json" if fault == "none" else server.pieces[0]
    right = server.files.pop(name)
    if fault == 403:
        server.faults = [403]
    elif fault == "damage":
        server.files[name] = bytes(right.stat().st_size)
    panel.press("Fetch the model")
    panel.wait("none")
    assert words in panel.told
    server.files[name] = right
    panel.fetch()


def test_progress_is_announced_rarely(panel):
    panel.page.evaluate(HEAR)
    panel.fetch()
    panel.page.wait_for_function("() => heard.some((text) => text.includes('is kept'))")
    heard = panel.page.evaluate("heard")
    assert heard[0] == "Fetching the model" and 2 <= len(heard) <= 7


# Talking ---------------------------------------------------------------------------------------


def test_python_in_the_page_answers_as_natively(panel, talk, context, site, server):
    panel.fetch()
    expected = [*talk.answer(said("Who?"))]
    status = panel.ask("Who?")
    assert re.search(r"\d tokens, [\d.]+ a second", status) and "model and tokenizer" in status
    assert panel.tokens == texts_of(expected)
    # another question of the same conversation, with letters that a template might take for
    # signs; a Python that has been restarted is shown the file again, and goes on
    first = panel.page.evaluate("(text) => text.trim()", "".join(panel.tokens))
    panel.page.evaluate("tinytorchLive.kernel.restart()")
    panel.ask(SIGNS)
    assert panel.tokens == texts_of(talk.answer(said("Who?", first, SIGNS)))
    panel.press("New conversation")
    assert panel.place.locator(".tt-talk__text").count() == 0
    panel.ask("Who?")
    assert panel.tokens == texts_of(expected)
    # another visit fetches nothing
    panel.page.close()
    server.requests.clear()
    again = Panel(context, site, server.known)
    again.wait("whole")
    again.ask("Who?")
    assert again.tokens == texts_of(expected) and server.requests == []
    assert panel.visit.problems == again.visit.problems == []


def test_under_each_token_is_what_else_it_could_have_been(panel, talk):
    panel.fetch()
    expected = [*talk.answer(said("Who?"))]
    panel.ask("Who?")
    about = panel.place.locator(".tt-talk__about")
    chooser = panel.place.get_by_label("What else could it have said?")
    shown = [i for i, token in enumerate(expected) if token["text"].isascii() and token["text"]]
    first = panel.answer.locator("span").nth(shown[2])
    panel.page.evaluate(HEAR)
    for at, look in (
        (0, lambda: chooser.press("Enter")),
        (shown[2], first.click),
        (shown[2] + 1, lambda: chooser.press("ArrowRight")),
    ):
        look()
        block = talk.first_choice(said("Who?"), [token["id"] for token in expected[: at + 1]])
        sentence = f"from block {block} on" if block else "before the first block"
        about.get_by_text(sentence).wait_for()
        others = about.locator("li").all_text_contents()
        assert len(others) == 5
        for (name, share), text in zip(expected[at]["others"], others, strict=True):
            assert name.replace("\n", "⏎") in text
            assert share < 0.001 or f"{100 * share:.1f} %" in text
        name = NAMED.get(expected[at]["name"], f"“{expected[at]['name']}”")
        assert chooser.get_attribute("aria-valuetext") == f"{name}, {at + 1} of {len(expected)}"
    aloud = [text for text in panel.page.evaluate("heard") if "Otherwise" in text]
    assert len(aloud) == 2, "an arrow key shows it and says no more"
    assert all(len(re.findall(" %[,.]", text)) == 4 for text in aloud)


def test_an_answer_can_be_stopped_and_the_conversation_goes_on(panel):
    panel.fetch()
    panel.run(SLOWLY)
    panel.question.fill("Who?")
    panel.press("Ask")
    panel.page.wait_for_function(
        "() => document.querySelectorAll('.tt-talk__text span').length > 3"
    )
    panel.press("Stop")
    panel.place.get_by_text("Stopped.").wait_for()
    assert 3 < len(panel.tokens) < 200
    panel.run("loops = 0")
    assert "a second" in panel.ask("And?")
    assert panel.place.locator(".tt-talk__question").count() == 2


def test_a_question_that_does_not_fit_is_in_its_field_again(panel):
    panel.fetch()
    panel.question.fill(long := "Why? " * 400)
    panel.press("Ask")
    panel.place.get_by_text(re.compile(r"^The conversation has \d+ tokens")).wait_for()
    assert panel.question.input_value() == long.strip()
    assert panel.place.locator(".tt-talk__question").count() == 0
    assert "a second" in panel.ask("Why?")


def test_the_cells_use_the_model_and_may_take_its_names(panel):
    panel.fetch()
    panel.ask("Who?")
    printed = panel.run("print(len(model.blocks), tokenizer.vocab_size)\ntalk = 5")
    assert printed.strip() == "3 261"
    assert "AttributeError" in panel.ask("And?")
    assert panel.button("Ask").is_visible()
    assert "a second" in panel.ask("And?"), "it has been loaded again"


def test_it_works_by_keyboard_and_an_answer_is_announced(panel):
    panel.button("Fetch the model").focus()
    panel.page.keyboard.press("Enter")
    panel.wait("whole")
    first = "() => document.activeElement.textContent === 'What is the capital of France?'"
    panel.page.wait_for_function(first)
    panel.page.evaluate(HEAR)
    panel.question.focus()
    panel.page.keyboard.type("Who?")
    panel.page.keyboard.press("Enter")
    panel.page.wait_for_function(ENDED)
    answer = panel.page.evaluate("(t) => t.trim()", "".join(panel.tokens))
    waiting = ["Loading the model …", "Thinking …", "Answering …"]
    assert panel.page.evaluate("heard") == [*waiting, answer]
    assert panel.page.evaluate("document.activeElement.tagName") == "TEXTAREA"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [NARROW, PHONE, LAPTOP], ids=["narrow", "phone", "laptop"])
def test_each_state_is_accessible_and_stays_on_the_page(context, site, server, size, scheme):
    if pinned_downloads.missing("axe"):
        missing("axe-core is not there: `make test-unit` fetches it")
    panel = Panel(context, site, server.known, size, scheme)
    panel.page.wait_for_function("s => document.documentElement.dataset.theme === s", arg=scheme)
    panel.page.evaluate(SETTLED)
    panel.page.evaluate(pinned_downloads.files("axe")[0].read_text(encoding="utf-8"))

    def check(state):
        panel.wait(state)
        assert panel.page.evaluate(AUDIT, LEVELS) == [], state
        assert panel.page.evaluate(OVERFLOW) == [], state

    check("none")
    server.faults = [None, 403]
    panel.press("Fetch the model")
    check("part")
    panel.press("Resume fetching")
    check("whole")
    panel.ask("x" * 200)
    panel.place.get_by_label("What else could it have said?").press("ArrowRight")
    panel.place.get_by_text(re.compile("block|Another|another")).last.wait_for()
    panel.place.locator("summary").click()
    check("whole")


# The published model ---------------------------------------------------------------------------


@pytest.mark.proof
def test_the_published_model_answers(context, site, record_property):
    """The pieces are those of the site; two of the three first questions are answered right."""
    if not (SITE / "_static" / "live" / "smollm2" / "manifest.json").exists():
        missing("the site holds no model: run `make live`, then `make book`")
    panel = Panel(context, site, {}, docname="book/real/talk")
    panel.fetch()
    answers = []
    for name in ("capital of France", "lost a drum", "17 plus 28"):
        panel.press(re.compile(name))
        panel.page.wait_for_function(ENDED)
        answers.append(panel.answer.text_content())
        panel.press("New conversation")
    assert answers[0] == "The capital of France is Paris."
    assert "drum" in answers[1] and "45" not in answers[2], "the last one is said to be wrong"
