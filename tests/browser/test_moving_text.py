"""The figures that move in the chapters about text: what they show is what is computed."""

import random
from collections import Counter, defaultdict
from itertools import pairwise
from math import log

import numpy as np
import pytest
from drawings.first_words import LETTERS, LINES
from drawings.foundations import MERGES, WORDS
from drawings.generation import LOGITS, NEXT, NUMBER, WRITTEN
from moving import SCROLL, Moving, stands_still

from tinytorch import GPT, BPETokenizer, KVCache, no_grad
from tinytorch.experiments.staircase import COUNTING_AT_BEST
from tinytorch.models.generation import generate
from tinytorch.models.sampling import choose, next_token_probs
from tinytorch.stories import StoryGrammar

pytestmark = [pytest.mark.browser]
PAGES = {
    "letters-remembered": "book/first-words/counting-letters",
    "tokenization": "book/foundations/tokenization",
    "sampling": "book/generation/sampling",
    "kv-cache": "book/generation/kv-cache",
}
# What the handles of each are set to when its drawing is looked at: both ends.
ENDS = {
    "letters-remembered": ("Letters remembered", (1, 8)),
    "tokenization": ("Merges", (0, 3)),
    "sampling": ("Temperature", (0, 2)),
    "kv-cache": ("Tokens written and read", (0, 5)),
}


@pytest.fixture
def figure(visit):
    """Open a figure by the name of its script."""
    return lambda name: Moving(visit, PAGES[name], name)


@pytest.mark.parametrize("name", PAGES)
def test_a_figure_can_be_read_and_moved_on_a_laptop_and_on_a_phone(figure, visit, name):
    shown = figure(name)
    label, ends = ENDS[name]
    assert shown.faults() == []
    for value in ends:
        shown.move(label, value)
        assert shown.faults() == []
        assert shown.faults_on_a_phone() == []
    assert visit.problems == []


@pytest.mark.parametrize("name", PAGES)
def test_without_scripts_and_on_paper_the_figure_stands_still(figure, browser, site, name):
    assert stands_still(browser, site, PAGES[name], name)
    shown = figure(name)
    still = shown.figure.locator("> .tt-drawing__panels")
    moving = shown.figure.locator(".tt-moving")
    moving.wait_for()
    still.wait_for(state="hidden")
    shown.page.emulate_media(media="print")
    still.wait_for()
    moving.wait_for(state="hidden")


def test_a_figure_whose_script_fails_stands_still(visit):
    failing = "export default (figure, { panel }) => { panel(340, 50); throw new Error('no'); };"
    visit.page.route(
        "**/moving/sampling.js",
        lambda route: route.fulfill(body=failing, content_type="text/javascript"),
    )
    figure = visit.page.locator('figure[data-moves="sampling"]')
    with visit.page.expect_event("pageerror"):
        visit.open(PAGES["sampling"])
        figure.evaluate(SCROLL)
    assert figure.locator("> .tt-drawing__panels").is_visible()
    assert figure.locator(".tt-moving").count() == 0


def test_a_handle_is_moved_by_keys_and_says_where_it_stands(figure):
    shown = figure("tokenization")
    handle = shown.figure.get_by_role("slider", name="Merges")
    handle.press("ArrowLeft")
    assert len(shown.numbers()["merges"]) == MERGES - 1
    assert handle.get_attribute("aria-valuetext") == str(MERGES - 1)
    assert shown.words() == (
        "After 2 merges the text has 8 tokens. "
        "Most often side by side, 2 times: the and n. They merge next."
    )
    shown.page.wait_for_function("!document.querySelector('.tt-moving__words[aria-busy]')")


# Letters remembered ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stories():
    """What was read, and what was not."""
    grammar = StoryGrammar()
    return grammar.generate(500, seed=1), grammar.generate(100, seed=2)


@pytest.mark.parametrize("length", [1, 3, 7, 8])
def test_the_letters_remembered_are_those_of_the_stories(figure, stories, length):
    shown = figure("letters-remembered")
    shown.move("Letters remembered", length)
    read, unseen = stories
    strokes = defaultdict(Counter)
    for i in range(length, len(read)):
        strokes[read[i - length : i]][read[i]] += 1
    letters, nats, never = len(set(read)), 0.0, 0
    for i in range(length, len(unseen)):
        before = unseen[i - length : i]
        row = strokes.get(before, Counter())
        nats -= log((row[unseen[i]] + 0.001) / (row.total() + 0.001 * letters))
        never += not row
    numbers = shown.numbers()
    assert numbers["letters"] == length
    assert numbers["loss"] == pytest.approx(nats / (len(unseen) - length), abs=1e-9)
    assert numbers["never"] == pytest.approx(never / (len(unseen) - length), abs=1e-9)
    assert numbers["floor"] == pytest.approx(StoryGrammar().entropy.nats_per_character, abs=1e-9)
    if length == 7:
        assert abs(numbers["loss"] - COUNTING_AT_BEST) < 0.01
    assert numbers["text"] == lines_of(strokes, length)


def lines_of(strokes, length):
    """The first lines of what these strokes write."""
    rng, text = random.Random(length), "Once upon a "
    for _ in range(150):
        row = strokes[text[-length:]]
        text += rng.choices(list(row), list(row.values()))[0]
    lines = [""]
    for word in text.replace("\n", " \n ").split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if word != "\n" and len(longer) <= LETTERS:
            lines[-1] = longer
        else:
            lines.append(word.strip())
    return [line for line in lines if line][:LINES]


# Merges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", range(MERGES + 1))
def test_the_merges_are_those_of_the_package_s_tokeniser(figure, made):
    shown = figure("tokenization")
    shown.move("Merges", made)
    numbers = shown.numbers()
    tokenizer = BPETokenizer.train(WORDS.replace(" ", "\n"), vocab_size=256 + made)
    merges = [tuple(token.decode() for token in pair) for pair in tokenizer.merges]
    assert [tuple(merge[:2]) for merge in numbers["merges"]] == merges
    cut = [[token.decode() for token in tokenizer.pieces(word)] for word in WORDS.split()]
    assert numbers["words"] == cut
    pairs = Counter(pair for word in cut for pair in pairwise(word))
    assert {tuple(pair[:2]): pair[2] for pair in numbers["pairs"]} == pairs


# Sampling -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1, 6, 0.9), (0, 6, 1), (0.5, 3, 1), (2, 6, 0.05), (2, 6, 1), (1.5, 4, 0.75), (1, 1, 1)],
)
def test_the_bars_are_those_of_the_package(figure, temperature, top_k, top_p):
    shown = figure("sampling")
    for label, value in (("Temperature", temperature), ("Top-k", top_k), ("Top-p", top_p)):
        shown.move(label, value)
    numbers = shown.numbers()
    probs = next_token_probs(LOGITS, temperature, top_k, top_p)
    assert np.allclose(numbers["probs"], probs, rtol=0, atol=1e-12)
    assert numbers["token"] == choose(probs, Drawn(NUMBER))
    kept = next_token_probs(LOGITS, temperature)[probs > 0].sum()
    assert numbers["held"] == pytest.approx(kept, abs=1e-12)


def test_a_number_that_is_drawn_chooses_as_the_package_does(figure):
    shown, found = figure("sampling"), set()
    for _ in range(12):
        shown.press("Draw another number")
        numbers = shown.numbers()
        assert numbers["token"] == choose(numbers["probs"], Drawn(numbers["number"]))
        assert shown.words().endswith(f"draws {NEXT[numbers['token']]}.")
        found.add(numbers["number"])
    assert len(found) == 12


class Drawn:
    """A generator that gives one number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        """Give it."""
        return self.number


# The cache ------------------------------------------------------------------------------------


class Reading(GPT):
    """A model that notes how many tokens each pass reads."""

    def forward(self, tokens, cache=None, *, last_only=False):
        """Note it, and read."""
        self.read.append(np.shape(tokens)[-1])
        return super().forward(tokens, cache, last_only=last_only)


@pytest.mark.parametrize("more", [0, 1, 2, 5])
def test_the_rows_are_those_that_a_model_computes(figure, more):
    shown = figure("kv-cache")
    shown.move("Tokens written and read", more)
    numbers = shown.numbers()
    model, prompt = Reading(12, 8, 2, 2, 16, rng=0), len(WRITTEN) - 5
    model.read, cache = [], KVCache(2, 16)
    with no_grad():
        for new in ([*range(prompt)], *([i] for i in range(more))):
            model(new, cache=cache)
    assert numbers["kept"] == cache.length
    assert numbers["with"] == sum(model.read) and numbers["fresh"] == model.read[-1]
    model.read = []
    generate(model, np.arange(prompt), more + 1, use_cache=False, rng=0)
    assert numbers["without"] == sum(model.read)
