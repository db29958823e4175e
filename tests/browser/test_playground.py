"""The playground in a real browser: what a reader does there, and what it may cost."""

from urllib.parse import urlsplit

import pytest
from _ext.live import pinned_downloads
from conftest import missing
from served_pages import SITE
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
FILES = "/_static/playground/"
MOST_BYTES = 600 * 1024
WINDOW, LONGEST = 112, 2000
FOLDS = "training", "attention", "lens", "beliefs", "surprise", "broken"
LONG = (
    "Once upon a time there was a boy named Max. One morning he walked to the meadow. In the grass"
    " sat a tiny rabbit, all alone and sad."
)
AUDIT = """async (levels) => {
    const {violations} = await axe.run('main', {runOnly: levels, resultTypes: ['violations']});
    return violations.flatMap(({id, nodes}) => nodes.map(n => `${id} ${n.html.slice(0, 150)}`));
}"""
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

    def slide(self, name, value):
        self.part(name).fill(str(value))
        self.settle()

    def open(self, name):
        fold = self.page.locator(f"[data-fold={name}]")
        if fold.get_attribute("open") is None:
            fold.evaluate(TOGGLED)
            fold.locator("summary").click()
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

    @property
    def rows(self):
        """Token, the model's and the true percentage of every row, as they are shown."""
        rows = self.page.locator("[data-part=bars] .tt-play__row:not(.tt-play__row--empty)").all()
        return [
            (
                row.locator(".tt-play__chip").inner_text(),
                row.locator(".tt-play__model").inner_text(),
                row.locator(".tt-play__truth").inner_text(),
            )
            for row in rows
        ]

    @property
    def said(self):
        return f"{self.part('verdict').inner_text()} {self.part('reason').inner_text()}"

    @property
    def note(self):
        return self.part("note").inner_text()


@pytest.fixture
def play(visit):
    """The whole playground, on its page."""
    return Playground(visit)


def test_at_first_there_are_a_beginning_its_tokens_and_both_beliefs(play):
    assert play.text == "One sunny morning"
    assert play.tokens == ["One", " sunny", " morning"]
    assert play.rows[0] == (" Mia", "16 %", "17 %")
    assert play.said.startswith("Very close to the truth.")
    assert play.visit.problems == []


def test_a_typed_beginning_changes_tokens_and_bars_and_the_address_but_not_the_history(play):
    before = play.page.evaluate("history.length")
    play.type("Once upon a")
    assert play.tokens == ["Once", " upon", " a"]
    assert play.rows[0] == (" time", "100 %", "100 %")
    play.page.wait_for_url("**#play&text=Once+upon+a")
    assert play.page.evaluate("history.length") == before


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


def test_a_chosen_beginning_is_read(play):
    play.press("Mia was a")
    assert play.text == "Mia was a"
    assert play.tokens == ["M", "ia", " was", " a"]


def test_a_pressed_bar_is_written(play):
    play.press("Tom")
    assert play.text == "One sunny morning Tom"
    assert play.tokens[-1] == " Tom"
    assert len(play.rows) == 8


def test_an_unfinished_word_waits_and_only_what_goes_on_with_it_is_shown(play):
    play.type("One sunny morning An")
    assert play.tokens == ["One", " sunny", " morning"]
    assert play.page.locator(".tt-play__rest").text_content() == " An"
    assert [name for name, *_ in play.rows] == [" Anna"]
    assert play.part("count").inner_text().startswith("“An…” is unfinished.")
    play.press("Anna")
    assert play.text == "One sunny morning Anna"


def test_a_piece_of_a_word_says_which_word_it_begins(play):
    play.press("Mia was a")
    first = play.page.locator("[data-part=bars] .tt-play__row").first
    assert first.locator(".tt-play__chip").inner_text() == " b"
    assert first.get_by_role("button").inner_text().strip() == "brave"
    assert first.get_by_role("button").get_attribute("aria-label") == "b, as in brave"
    play.type("Mia was a brave girl. One")
    names = play.page.locator("[data-part=bars] .tt-play__press").all_inner_texts()
    assert [name.strip() for name in names[:5]] == ["sunny", "windy", "rainy", "warm", "snowy"]
    assert [name for name, *_ in play.rows[:5]] == [" sunny", " windy", " ra", " wa", " s"]
    play.type("")
    assert play.page.get_by_role("button", name="M, as in Mia").inner_text() == "Mia…"


def test_how_far_the_bars_go_is_said(play):
    scale = play.page.locator("thead:has(+ [data-part=bars]) .tt-play__scale :last-child")
    assert scale.inner_text() == "to 25 %"
    play.type("Once upon a")
    assert scale.inner_text() == "to 100 %"


def test_bytes_are_explained_and_no_token_is_empty(play):
    play.type("One 😀\x07")
    assert play.tokens[2:] == ["\\xf0", "\\x9f", "\\x98", "\\x80", "\\x07"]
    assert "Those like \\xf0 are bytes" in play.part("count").inner_text()
    assert play.page.get_by_role("button", name="token 3: byte f0").count() == 1
    play.type("One sunny")
    assert "bytes" not in play.part("count").inner_text()


def test_nothing_and_the_end_of_a_story_are_named(play):
    play.type("")
    assert play.part("count").inner_text().startswith("Nothing is written yet.")
    play.type("One sunny morning\n")
    assert "over" not in play.part("count").inner_text()
    assert "After “morning” a story goes on with Mia" in " ".join(
        play.part("about").inner_text().split()
    )


def test_a_story_is_written_to_its_end_and_taken_back(play):
    play.write("story")
    tokens = play.tokens
    assert tokens[-1] == "↵" or len(tokens) == WINDOW - 1
    play.press("Take back")
    assert play.text == "One sunny morning"
    play.press("Take back")
    assert play.text == "One sunny"


def test_what_is_taken_back_is_the_last_deed_and_nothing_that_was_written_is_lost(play):
    mine = "Once upon a time there was a boy"
    play.type(mine)
    play.press("Mia was a")
    play.write("sentence")
    longer = play.text
    play.page.get_by_role("button", name="token 2: ia").click()
    play.page.locator(".tt-play__row:not(.tt-play__row--here) .tt-play__press").first.click()
    assert len(play.text) < len("Mia was a")
    for before in (longer, "Mia was a", mine):
        play.press("Take back")
        assert play.text == before
    play.press("One sunny morning")
    play.type("One sunny morning Tom")
    play.press("Take back")
    assert play.text == "One sunny morning", "what was typed goes before"
    play.press("Take back")
    assert play.text == mine


def test_a_character_of_several_tokens_is_taken_back_whole(play):
    play.type("One 😀🐈\u200d⬛Ω")
    for left in ("One 😀🐈\u200d⬛", "One 😀", "One ", "One", ""):
        play.press("Take back")
        assert play.text == left


def test_a_tap_in_the_middle_of_a_bar_writes_it(visit):
    for docname in (PAGE, LANDING):
        play = Playground(visit, docname)
        for part in (0.35, 0.5, 0.65):
            row = play.page.locator(".tt-play__row").nth(1)
            row.scroll_into_view_if_needed()
            token, box = row.locator(".tt-play__chip").inner_text(), row.bounding_box()
            text = play.text
            play.page.mouse.click(box["x"] + part * box["width"], box["y"] + box["height"] / 2)
            assert play.text == text + token
        play.page.goto("about:blank")


def test_a_sentence_ends_and_a_token_is_one(play):
    play.write("token")
    assert len(play.tokens) == 4
    play.write("sentence")
    assert play.text.rstrip('"')[-1] in ".!?\n"


def test_writing_can_be_stopped(play):
    play.page.evaluate("""() => {
        const button = document.querySelector('[data-write=story]');
        button.click();
        button.click(); // it says stop by now
    }""")
    assert play.page.evaluate(QUIET)
    play.page.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert len(play.tokens) == 3


def test_what_cannot_be_pressed_while_it_writes_does_nothing(play):
    running = play.page.evaluate("""() => {
        globalThis.setTimeout = () => 0; // so that the story does not end before Stop
        document.querySelector('[data-write=story]').click();
        document.querySelector('[data-write=token]').click();
        return tinytorchPlay.writing > 0;
    }""")
    assert running
    play.press("Stop")
    assert play.page.evaluate(QUIET)


def test_a_drawn_token_is_replaced_by_another_and_what_came_after_goes(play):
    play.press("Tom")
    play.write("sentence")
    play.page.get_by_role("button", name="token 4: Tom").click()
    assert play.part("heading").inner_text() == "What could have stood instead of “Tom”?"
    assert play.rows[0] == (" Mia", "16 %", "17 %")
    play.press("Mia")
    assert play.text == "One sunny morning Mia"
    assert play.part("heading").inner_text() == "What comes next?"


def test_temperature_and_both_filters_change_the_bars_before_a_draw(play):
    outline = play.page.locator(".tt-play__bar--belief:visible")
    assert outline.count() == 0
    play.slide("temperature", 0)
    assert [model for _, model, _ in play.rows][:2] == ["100 %", "0 %"]
    assert outline.count() >= 5, "the belief before it stays as an outline"
    play.slide("temperature", 1)
    play.slide("topK", 2)
    assert sum(model != "0 %" for _, model, _ in play.rows) == 2
    play.slide("topK", 21)
    play.slide("topP", 0.3)
    assert sum(model != "0 %" for _, model, _ in play.rows) == 2
    assert play.page.locator(".tt-play__row--never").count() == 6
    assert [truth for _, _, truth in play.rows][:2] == ["17 %", "16 %"], "the truth does not move"


def test_what_cannot_be_a_story_is_said_with_the_place_and_what_could_stand_there(play):
    play.type("Mia was a brave girl. One dragon")
    assert play.said.startswith("No story goes on like this.")
    about = play.part("about")
    assert about.inner_text().startswith("So there is no truth to compare with; the model guesses")
    assert "After “One” a story goes on with sunny" in about.inner_text().replace("\n", " ")
    assert {truth for _, _, truth in play.rows} == {"–"}


def test_the_words_that_are_offered_are_those_of_stories_and_can_be_pressed(play):
    play.press("The dragon said (in no story)")
    assert play.text == "The dragon said"
    assert play.said.startswith("No story begins like this.")
    offered = play.part("about").locator("button")
    assert offered.all_inner_texts()[:2] == ["One", "Once"]
    offered.nth(1).click()
    assert play.text == "Once"
    assert play.said.endswith(" in common.")
    play.press("Take back")
    assert play.text == "The dragon said"


def test_the_verdict_judges_the_bars_that_are_shown(play):
    assert play.part("about").inner_text().endswith("The model has only read the stories.")
    play.slide("temperature", 0)
    assert play.said.strip() == "The model itself: very close to the truth."
    said = play.part("about").inner_text()
    assert "outline: before the sliders" in said
    assert "far from the truth. They have 17 % in common with the truth now" in said.replace(
        "\u00a0", " "
    )
    assert "without the sliders 97" in said
    play.slide("temperature", 1)
    assert play.said.startswith("Very close to the truth.")


def test_a_part_taken_away_moves_belief_from_the_truth_at_once(play):
    play.type(LONG)
    fold = play.open("broken")
    agreement = "tinytorchPlay.view.agree"
    whole = play.page.evaluate(agreement)
    for switch in fold.get_by_role("switch").all():
        switch.check()
        play.settle()
        assert play.page.evaluate(agreement) != whole
        assert "parts are missing" in play.note
        assert fold.locator("[data-part=broken] tr").count() == 2
        switch.uncheck()
        assert play.page.evaluate(agreement) == whole
    for select in fold.locator("select").all():
        select.select_option(index=1)
        assert play.page.evaluate(agreement) != whole
        play.press("Put everything back")
        assert play.page.evaluate(agreement) == whole


def test_what_is_broken_writes_differently(play):
    fold = play.open("broken")
    fold.get_by_label("The residual stream").check()
    written = fold.locator(".tt-play__writes")
    play.page.wait_for_function(
        "() => [...document.querySelectorAll('.tt-play__writes')].at(-1).textContent.length > 20"
    )
    one, other = written.all_text_contents()
    assert not one.startswith(other)


def test_every_link_leads_to_a_page(play):
    links = play.page.locator(".tt-play a").evaluate_all("all => all.map(a => a.href)")
    assert len(links) >= 9
    for link in links:
        assert (SITE / link.removeprefix(play.visit.site)).exists(), link


def test_a_step_of_the_training_comes_when_it_is_asked_for(play):
    fetched = [r.url for r in play.visit.responses if "step-" in r.url]
    assert [url.rsplit("/", 1)[-1] for url in fetched] == ["step-4000.safetensors"]
    play.open("training")
    play.slide("step", 0)
    play.page.wait_for_function("() => tinytorchPlay.state.step === 0")
    assert play.said.startswith(("Far from", "Some way from"))
    assert play.part("stepIs").inner_text() == "before the first step"
    assert "the model before the first step" in play.note
    assert play.visit.problems == []


def test_a_step_that_cannot_be_had_is_said_and_the_model_stays(play):
    play.page.context.set_offline(True)
    before = play.rows
    play.open("training")
    play.slide("step", 1)
    play.page.get_by_text("could not be loaded").first.wait_for()
    assert play.rows == before
    assert play.part("stepIs").inner_text() == "after 4,000 steps"
    play.type("Once")
    assert play.part("fetching").is_hidden(), "it was said, and the reader has gone on"
    play.page.context.set_offline(False)
    play.slide("step", 1)
    play.page.wait_for_function("() => tinytorchPlay.state.step === 100")
    assert play.part("fetching").is_hidden()


def test_a_link_brings_everything_back(play, visit):
    play.press("Tom")
    play.slide("temperature", 0.7)
    play.slide("topK", 5)
    play.slide("topP", 0.8)
    play.open("broken").get_by_label("The division by √d").check()
    play.open("attention").get_by_role("button", name="3").first.click()
    play.open("training")
    play.slide("step", 2)
    play.page.wait_for_function("() => tinytorchPlay.state.step === 500")
    play.press("Copy a link to this")
    state, rows, url = play.page.evaluate("tinytorchPlay.state"), play.rows, play.page.url
    play.page.goto("about:blank")
    again = Playground(visit, state=f"#{urlsplit(url).fragment}")
    assert again.page.evaluate("tinytorchPlay.state") == state
    assert again.rows == rows
    assert again.open("broken").get_by_label("The division by √d").is_checked()


@pytest.mark.parametrize(
    "state",
    ["#play", "#play&step=7&temperature=x&k=-1&p=2&off=all&drawn=9999&head=9.9&at=500&seen=a",
     "#play&drawn=1..2&block=2", "#play&text=%F0%9F"],
)  # fmt: skip
def test_a_damaged_link_shows_what_can_be_read_of_it(visit, state):
    play = Playground(visit, state=state)
    assert len(play.rows) == 8
    assert visit.problems == []


BAD = {
    "ten thousand letters": "x" * 10_000,
    "ten thousand characters of words": "the cat sat " * 834,
    "emoji": "One 😀🐈‍⬛ day",
    "nothing": "",
    "an empty line": "\n\n",
    "other scripts": "漢字 العربية Ελληνικά",
    "a form feed": "a\f\t\u2028b",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_any_text_is_answered_and_kept(play, text):
    play.type(text)
    text = text[:LONGEST]
    assert play.text == text
    assert len(play.rows) == 8
    assert len(play.tokens) < WINDOW
    if len(text) > 1000:
        assert f"The model reads {WINDOW} tokens and no more" in play.note
        assert "the field holds no more than 2,000 characters" in play.note
        play.press("Take back")
        play.press("Write a token")
        assert play.text == text, "what is not read is not lost"
    for name in FOLDS[1:]:
        play.open(name)
    play.type(f"{text}.")
    assert play.visit.problems == []


def test_half_a_character_is_read_as_one_that_is_unknown(play):
    play.page.evaluate("tinytorchPlay.change({text: 'One \\ud83d'})")
    assert play.tokens[-1].startswith("\\x")
    assert play.visit.problems == []


def test_a_full_window_writes_no_more_until_something_is_taken_back(play):
    play.type("One sunny morning")
    play.page.evaluate("tinytorchPlay.random = () => 0.3")
    for _ in range(4):
        play.write("story")
    assert len(play.tokens) == WINDOW - 1
    assert "Take some back, or begin anew" in play.note
    play.write("token")
    assert len(play.tokens) == WINDOW - 1
    play.press("Take back")
    assert 3 < len(play.tokens) < WINDOW - 2, "the last story goes"


def test_surprise_adds_up_to_that_of_the_truth_and_what_is_above_it(play):
    play.type(LONG)
    fold = play.open("surprise")
    rows = fold.locator("tbody tr").all()
    assert len(rows) == len(play.tokens)
    cells = [
        [float(c.replace("−", "-")) for c in row.locator("td").all_inner_texts()] for row in rows
    ]
    for model, least, above in cells:
        assert abs(model - least - above) < 0.0151
    total = sum(model for model, *_ in cells)
    told = float(play.part("surprise").inner_text().split()[1])
    assert abs(told - total) < 0.01 * len(cells)


def test_attention_is_drawn_as_lines_and_told_as_a_table(play):
    play.type(LONG)
    fold = play.open("attention")
    weights = [
        float(c.rstrip(" %").lstrip("< ")) for c in fold.locator("tbody td").all_inner_texts()
    ]
    assert abs(sum(weights) - 100) < 6
    assert fold.locator("svg path").count() > 0
    before = fold.locator("tbody").inner_text()
    fold.get_by_role("button", name="2").first.click()
    play.settle()
    assert fold.locator("tbody").inner_text() != before
    fold.locator("ol button").nth(3).click()
    assert fold.locator("tbody tr").count() == 4, "the fourth token looks at four"


def test_a_head_is_seen_to_look_at_the_name_before_he(play):
    fold = play.open("attention")
    fold.get_by_role("button", name="Show it").click()
    play.settle()
    assert play.rows[0][0] == " he"
    first = fold.locator("[data-part=weights] tr").first.inner_text().split()
    assert first[0] == "Tom" and int(first[1]) > 90
    play.press("Take back")
    assert play.text == "One sunny morning"


def test_what_is_taken_away_is_said_where_one_looks_at_it(visit):
    play = Playground(visit, state="#play&block=1")
    play.open("attention")
    assert play.part("silent").inner_text() == "Block 2 is passed over: nobody looks."
    play.page.evaluate("tinytorchPlay.change({block: null, head: [1, 0]})")
    play.settle()
    assert play.part("silent").inner_text().startswith("This head is taken away")
    play.page.evaluate("tinytorchPlay.change({head: null})")
    play.settle()
    assert play.part("silent").is_hidden()


def test_the_bars_are_seen_where_training_and_parts_change_them(play):
    for fold, part in (("training", "learnedBars"), ("broken", "brokenBars")):
        play.open(fold)
        assert play.part(part).locator(".tt-play__row").count() == 3
        assert play.part(part).locator("tr").first.inner_text().split() == "Mia 16 % 17 %".split()
    play.type("x" * 200)
    assert play.page.locator(".tt-play__writes").first.inner_text().startswith("Nothing: it reads")


def test_the_layers_end_with_what_the_bars_show(play):
    fold = play.open("lens")
    last = fold.locator("tbody tr").nth(2).locator("td").first.inner_text()
    assert " ".join(last.split()) == "Mia 16 %"


def hidden(play, name):
    """The probe's and the true percentage of all that can be hidden, as they are shown."""
    rows = play.part(name).locator("tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts()[1:] for row in rows}


def test_a_probe_reads_what_is_hidden_when_it_is_due_and_hardly_a_token_earlier(play):
    play.open("beliefs")
    play.press("Right before the animal")
    said = play.part("believed")
    said.get_by_text("in common").wait_for()
    assert " 93 % of the animal’s" in " ".join(said.inner_text().split())
    due = hidden(play, "animal")
    assert due["duck"] == due["duck"][::-1] == ["50 %", "50 %"]
    assert due["frog"] == ["40 %", "40 %"] and due["goat"][1] == "10 %" and due["fox"][1] == "0 %"
    play.press("A token earlier")
    early = hidden(play, "animal")
    assert [true for _, true in early.values()] == [true for _, true in due.values()]
    assert float(early["duck"][0].strip(" %")) < 20
    play.press("Right before “he”")
    assert hidden(play, "child") == {"girl": ["0 %", "0 %"], "boy": ["100 %", "100 %"]}


def test_the_probe_is_silent_where_it_has_nothing_to_read(play):
    play.open("beliefs")
    said = play.part("believed")
    said.get_by_text("The place is not told yet").wait_for()
    assert hidden(play, "animal")["rabbit"] == ["–", "13 %"]
    play.type("One sunny morning Tom walked to the pond. There he met a little duck")
    assert said.inner_text().startswith("The animal is known by now")
    assert hidden(play, "animal")["duck"] == ["–", "100 %"]
    play.press("The dragon said (in no story)")
    assert said.inner_text().startswith("No story begins with these tokens")
    assert hidden(play, "child") == {"girl": ["–", "–"], "boy": ["–", "–"]}
    play.press("Right before the animal")
    play.page.evaluate("tinytorchPlay.change({block: 1})")
    play.settle()
    assert said.inner_text().endswith("the probe was fitted to the whole model.")
    play.open("training")
    play.slide("step", 3)
    play.page.wait_for_function("() => tinytorchPlay.state.step === 2000")
    play.settle()
    assert said.inner_text().startswith("The probe was fitted to the finished model.")


def test_probes_that_cannot_be_had_are_missed_and_the_truth_is_shown(visit):
    visit.page.context.route("**/probes.safetensors", lambda route: route.fulfill(status=404))
    play = Playground(visit)
    play.open("beliefs")
    told = play.part("believed")
    told.get_by_text("could not be loaded: probes.safetensors did not come (404)").wait_for()
    assert hidden(play, "animal")["rabbit"] == ["–", "13 %"]


def test_by_keyboard_alone(play):
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_what_is_folded_keeps_the_rules_of_accessibility_too(visit, size, scheme):
    if pinned_downloads.missing("axe"):
        missing("axe-core is not there: `make test-unit` fetches it")
    visit.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    visit.page.set_viewport_size(size)
    play = Playground(visit)
    for name in FOLDS:
        play.open(name)
    play.type(f"{LONG} Ma")
    play.slide("topK", 3)
    play.page.evaluate(pinned_downloads.files("axe")[0].read_text(encoding="utf-8"))
    levels = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
    assert play.page.evaluate(AUDIT, levels) == []


def test_what_has_changed_is_said_once(play):
    play.page.evaluate("""() => {
        globalThis.heard = [];
        new MutationObserver(() => heard.push(tinytorchPlay.parts.voice.textContent))
            .observe(tinytorchPlay.parts.voice, {childList: true});
    }""")
    play.page.evaluate("""() => {
        for (const letter of ' Tom') {
            tinytorchPlay.parts.field.value += letter;
            tinytorchPlay.parts.field.dispatchEvent(new Event('input'));
        }
    }""")
    play.page.wait_for_function("() => heard.length > 0")
    play.page.evaluate("new Promise((done) => setTimeout(done, 600))")
    heard = play.page.evaluate("heard")
    assert len(heard) == 1
    assert heard[0].startswith("What comes next?") and heard[0].endswith("the truth.")


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
def test_what_is_fetched_for_it_is_at_most_600_kib(visit, docname):
    play = Playground(visit, docname)
    play.page.wait_for_load_state("networkidle")
    files = [r for r in visit.responses if FILES in r.url]
    assert {r.url.rsplit("/", 1)[-1] for r in files} >= {"tokenizer.json", "grammar.json"}
    assert sum(len(response.body()) for response in files) <= MOST_BYTES


def test_nothing_is_fetched_for_it_before_it_is_near_the_screen(visit):
    visit.page.add_init_script("""new MutationObserver((_, observer) => {
        if (!document.head) return;
        observer.disconnect();
        const style = document.createElement('style');
        style.textContent = '.tt-play { margin-top: 5000px !important }';
        document.head.append(style);
    }).observe(document, {childList: true, subtree: true})""")
    page = visit.open(LANDING)
    page.wait_for_load_state("networkidle")
    files = {r.url.rsplit("/", 1)[-1].partition("?")[0] for r in visit.responses if FILES in r.url}
    assert files == {"playground.css", "door.js"}
    page.locator(".tt-play").scroll_into_view_if_needed()
    page.wait_for_function(READY)


@pytest.mark.parametrize("docname", [PAGE, LANDING])
def test_it_waits_for_none_of_the_page_s_other_scripts(visit, docname):
    held = []
    visit.page.context.route("**/book.js*", lambda route: held.append(route))
    visit.page.goto(f"{visit.site}{docname}.html", wait_until="commit")
    visit.page.wait_for_function(READY)
    held[0].continue_()
    visit.page.wait_for_load_state("load")
    assert [r.url for r in visit.responses if "step-" in r.url] == [
        f"{visit.site}{FILES[1:]}weights/step-4000.safetensors"
    ]
    assert visit.problems == []


def test_what_is_open_follows_once_the_bars_have_been_seen(play):
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


def test_a_letter_costs_one_reading_and_one_question_to_the_oracle(play):
    play.type(LONG)
    play.page.evaluate("""() => {
        const {thinking} = tinytorchPlay;
        globalThis.cost = {readings: 0, truths: 0};
        const {reading} = thinking, {oracle} = thinking, {nextTokens} = oracle;
        thinking.reading = (...all) => { cost.readings += 1; return reading.apply(thinking, all); };
        oracle.nextTokens = (...all) => { cost.truths += 1; return nextTokens.apply(oracle, all); };
    }""")
    letters = " Max sat"
    play.part("field").press("End")
    play.part("field").press_sequentially(letters)
    cost = play.page.evaluate("cost")
    assert cost["readings"] == len(letters)
    assert cost["truths"] <= len(letters)


def test_open_in_python_puts_the_beginning_into_the_cell(play):
    play.page.wait_for_function("() => document.documentElement.dataset.live === 'ready'")
    play.type('Oh "no" \\ said Tom')
    play.slide("temperature", 0.5)
    play.slide("topK", 4)
    play.press("Open in Python")
    code = play.page.evaluate("tinytorchLive.cells[0].source")
    assert 'beginning = "Oh \\"no\\" \\\\ said Tom"' in code
    assert "temperature = 0.5\ntop_k = 4\ntop_p = None\n" in code
    assert play.page.evaluate("document.activeElement === tinytorchLive.cells[0].runButton")


def test_the_first_page_leads_on_with_the_same_state(visit):
    play = Playground(visit, LANDING)
    play.press("Tom")
    play.slide("temperature", 0.5)
    play.page.locator("[data-part=more]").click()
    play.page.wait_for_url("**/playground.html#play*")
    play.page.wait_for_function(READY)
    assert play.text == "One sunny morning Tom"
    assert play.part("temperatureIs").inner_text() == "0.50"


def test_a_broken_link_to_the_first_page_can_be_mended_there(visit):
    finished = "**/step-4000.safetensors"
    visit.page.context.route(finished, lambda route: route.fulfill(status=404))
    play = Playground(visit, LANDING, "#play&text=Once&off=mask.norm&block=0&step=500&k=3&p=0.5")
    assert "the model after 500 steps of training, and parts are missing" in play.note
    assert play.note.endswith("Limited by top-k 3 and top-p 0.5.")
    play.press("Put everything back")
    play.page.get_by_text("after 4,000 steps could not be loaded").wait_for()
    assert "parts are missing" not in play.note
    visit.page.context.unroute(finished)
    play.press("Put everything back")
    play.page.wait_for_url("**#play&text=Once")
    assert play.text == "Once"
    assert play.part("note").is_hidden() and play.part("mendAll").is_hidden()
    assert play.page.evaluate("document.activeElement.dataset.part") == "field"


def test_on_a_phone_the_field_goes_up_so_that_the_bars_are_seen_above_the_keyboard(browser, site):
    context = browser.new_context(viewport=PHONE, is_mobile=True, has_touch=True)
    play = Playground(Visit(context, site), LANDING)
    play.part("field").tap()
    top = "part => { const {y} = part.getBoundingClientRect(); return 40 < y && y < 100; }"
    play.page.wait_for_function(top, arg=play.part("field").element_handle())
    third = play.page.locator(".tt-play__row").nth(2).bounding_box()
    assert third["y"] + third["height"] < PHONE["height"] / 2
    play.press("The dragon said (in no story)")
    play.part("about").locator("button").first.tap()
    expect(play.part("field")).to_have_value("One")
    assert play.page.evaluate("document.activeElement.tagName") == "BUTTON", "no keyboard comes"
    context.close()


@pytest.mark.parametrize("size", [PHONE, LAPTOP], ids=["phone", "laptop"])
def test_the_first_screen_shows_what_the_book_is(visit, size):
    visit.page.set_viewport_size(size)
    play = Playground(visit, LANDING)
    box = play.page.locator(".tt-play").bounding_box()
    assert play.page.locator("article h1").last.bounding_box()["y"] > 0
    assert box["y"] + box["height"] <= size["height"]
    play.page.set_viewport_size(PHONE)
    assert play.page.evaluate(OVERFLOW) == []


def test_on_a_phone_nothing_leaves_the_page(visit):
    visit.page.set_viewport_size(PHONE)
    play = Playground(visit)
    for name in FOLDS:
        play.open(name)
    play.write("story")
    assert play.page.evaluate(OVERFLOW) == []
    play.type("x" * 3000)
    assert play.page.evaluate(OVERFLOW) == []


FAILURES = {
    "the weights are not there": ("step-4000.safetensors", {"status": 404}, "(404)"),
    "the weights are cut off": ("step-4000.safetensors", {"body": b"x" * 99}, "damaged"),
    "the grammar is another page": ("grammar.json", {"body": "<html>"}, "grammar.json"),
    "a module is not there": ("oracle.js", {"status": 404}, "one of its scripts"),
}


@pytest.mark.parametrize(("name", "answer", "words"), FAILURES.values(), ids=FAILURES)
def test_what_fails_is_said_in_the_page_and_can_be_tried_again(visit, name, answer, words):
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


def test_what_unfolds_may_fail_and_the_rest_is_played_with(visit):
    visit.page.context.route("**/missing.js", lambda route: route.fulfill(status=404))
    play = Playground(visit)
    play.press("Tom")
    assert play.text == "One sunny morning Tom"
    assert play.page.get_by_text("What unfolds here could not be loaded.").is_visible()


def test_a_step_in_the_address_that_cannot_be_had_is_said(visit):
    visit.page.context.route("**/step-500.safetensors", lambda route: route.fulfill(status=404))
    play = Playground(visit, state="#play&step=500")
    assert "after 500 steps could not be loaded" in play.note
    assert play.rows[0] == (" Mia", "16 %", "17 %")


def test_everything_is_asked_for_at_once(visit):
    visit.page.context.route("**/playground.js", lambda route: route.abort())
    visit.page.goto(f"{visit.site}{PAGE}.html#play&step=500")
    visit.page.wait_for_function("() => document.querySelector('.tt-play').dataset.play")
    visit.page.context.unroute("**/playground.js")
    visit.page.reload()
    visit.page.wait_for_function(READY)
    urls = {load: [r.url for r, asked in visit.asked.items() if asked == load] for load in (1, 2)}
    early = {url.rsplit("/", 1)[-1] for url in urls[1] if "/_static/" in url}
    late = {url.rsplit("/", 1)[-1] for url in urls[2] if FILES in url}
    assert late <= early
    assert {"step-500.safetensors", "grammar.json", "oracle.js", "attention.js"} <= early


def test_one_region_speaks_and_what_can_be_pressed_says_what_it_does(play):
    assert play.page.locator(".tt-play :is([role=status], [aria-live], output)").count() == 1
    assert play.page.get_by_role("region", name="Playground").count() == 1
    for name in ("Write a token", "Write a sentence", "Write a story", "Take back", "Mia"):
        button = play.page.locator(".tt-play").get_by_role("button", name=name, exact=True)
        assert button.count() == 1
    assert play.page.get_by_role("rowheader", name="Mia", exact=True).count() == 1
    assert play.page.get_by_role("slider", name="Temperature", exact=True).count() == 1


def test_inside_a_word_the_layers_are_narrowed_as_the_bars_are(play):
    play.type("One sunny morning Mia r")
    fold = play.open("lens")
    for row in fold.locator("tbody tr").all():
        assert row.locator(".tt-play__chip").first.inner_text().startswith(" r")
    play.page.get_by_role("button", name="token 2: sunny").click()
    assert "unfinished" not in play.part("count").inner_text()


def test_while_words_are_typed_the_bars_stay_where_they_are(visit):
    visit.page.set_viewport_size(PHONE)
    play = Playground(visit, LANDING)
    table = play.page.locator(".tt-play__bars")
    tops = set()
    for end in range(len(" Mia w") + 1):
        play.type("One sunny morning" + " Mia w"[:end])
        tops.add(table.bounding_box()["y"])
    assert len(tops) == 1
    story = play.page.locator("[data-write=story]")
    before = story.bounding_box()
    play.write("story")
    assert story.bounding_box() == before
    field = play.part("field")
    assert field.evaluate("field => field.scrollHeight <= field.clientHeight + 1"), "read whole"


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
@pytest.mark.parametrize("size", [(640, 400), (390, 844), (320, 640)], ids=str)
def test_on_a_small_screen_nothing_covers_anything_or_leaves_it(visit, docname, size):
    visit.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    play = Playground(visit, docname)
    assert play.page.evaluate(OVERFLOW) == []
    assert play.page.evaluate(COVERED) == []
    assert play.page.evaluate(ROWS) == 1, "what lets it write on stands in one row"
    heights = "() => document.querySelector('.tt-play__write > span').getClientRects().length"
    assert play.page.evaluate(heights) == 1


def test_on_a_phone_all_bars_of_the_first_page_are_seen_beside_a_written_story(visit):
    visit.page.set_viewport_size(PHONE)
    play = Playground(visit, LANDING)
    play.page.evaluate(
        """() => {
            let x = 11;
            tinytorchPlay.random = () => (x = x * 16807 % 2147483647) / 2147483647;
        }"""
    )
    play.write("story")
    play.page.evaluate("scrollTo(0, 0)")
    assert len(play.text) > 150
    last = play.page.locator("[data-part=bars] .tt-play__row").nth(4)
    expect(last).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("docname", [PAGE, LANDING])
def test_every_column_of_the_bars_has_a_head_that_names_it(visit, docname):
    if pinned_downloads.missing("axe"):
        missing("axe-core is not there: `make test-unit` fetches it")
    play = Playground(visit, docname)
    play.page.evaluate(pinned_downloads.files("axe")[0].read_text(encoding="utf-8"))
    rule = """async () => (await axe.run('.tt-play', {runOnly: ['td-has-header']}))
        .violations.flatMap(({nodes}) => nodes.map(n => n.html))"""
    assert play.page.evaluate(rule) == []
