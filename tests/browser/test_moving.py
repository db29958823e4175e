"""The figures that move, in a real browser: they can be read and moved on a laptop and a phone.

What they show is compared with the package without a browser (tests/scripts/figures.test.mjs).
"""

import pytest
from moving import SCROLL, Moving, stands_still

PAGES = {
    "query-over-keys": "book/attention/scaled-dot-product",
    "causal-mask": "book/attention/scaled-dot-product",
    "root-d": "book/attention/scaled-dot-product",
    "who-looks-at-whom": "book/attention/scaled-dot-product",
    "where-heads-look": "book/attention/multi-head",
    "three-back": "book/attention/positions-in-attention",
    "rotary-angle": "book/attention/positions-in-attention",
    "shift-rotates": "book/embeddings/positional-encodings",
    "letters-remembered": "book/first-words/counting-letters",
    "tokenization": "book/foundations/tokenization",
    "sampling": "book/generation/sampling",
    "kv-cache": "book/generation/kv-cache",
    "autograd": "book/foundations/autograd",
    "word-vectors": "book/embeddings/token-embeddings",
    "bowl": "book/training/optimisation",
    "warm-up": "book/training/optimisation",
}
GRAPH = "w, the weight", "x, the input", "y, the target"
DIAL = "Position of the query", "Position of the key"
# What the handles of each are set to when its drawing is looked at: where it is fullest.
SET = {
    "query-over-keys": [
        *([("Which token asks", token)] for token in ("Anna", "dogs", "because", "they")),
        *([("Step", step)] for step in range(7)),
    ],
    "causal-mask": [
        [("Causal mask", mask), ("Which word asks", word)]
        for mask in ("off", "on")
        for word in ("Anna", "feeds", "bark")
    ],
    "root-d": [
        [("The dot products", how), ("d, the length of query and key", power)]
        for how in ("as they are", "divided by √d")
        for power in (0, 4, 10)
    ],
    "who-looks-at-whom": [
        [("Which word asks", word), ("The number", number)]
        for word in ("Anna", "they", "bark")
        for number in (-4, 8)
    ],
    "where-heads-look": [[("Heads", count)] for count in ("1", "2", "4", "8", "16")],
    "three-back": [[("Position of the query", query)] for query in (3, 15, 24, 63)],
    "rotary-angle": [
        list(zip(DIAL, places, strict=True))
        for places in [(5, 3), (0, 0), (15, 0), (0, 15), (15, 15), (8, 0), (12, 13)]
    ],
    "shift-rotates": [
        [("Position p", at), ("Further by k", by)] for at, by in [(0, 1), (50, 6), (22, 6), (3, 1)]
    ],
    "letters-remembered": [[("Letters remembered", n)] for n in (1, 8)],
    "tokenization": [[("Merges", n)] for n in (0, 3)],
    "sampling": [[("Temperature", t)] for t in (0, 2)],
    "kv-cache": [[("Tokens written and read", n)] for n in (0, 5)],
    "autograd": [
        *([("Gradients", back)] for back in range(5)),
        *(list(zip(GRAPH, values, strict=True)) for values in [(-3, -3, -3), (1.5, -2.5, 0.5)]),
        list(zip(GRAPH, (-3, 4, 8), strict=True)),
    ],
    "word-vectors": [[("Training", at)] for at in range(24)],
    "bowl": [
        [("Learning rate", rate), ("Momentum", momentum)]
        for rate, momentum in [(0.001, 0), (0.045, 0.8), (0.051, 0), (0.1, 0), (0.1, 0.95)]
    ],
    "warm-up": [
        [("Warm-up", warmup), ("All steps", total)]
        for warmup, total in [(0, 110), (5, 160), (40, 120), (100, 110), (40, 40)]
    ],
}
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.mark.parametrize("name", PAGES)
def test_a_figure_can_be_read_and_moved_on_a_laptop_and_on_a_phone(visit, name):
    figure = Moving(visit, PAGES[name], name)
    assert figure.faults() == []
    ends = SET[name][:: max(1, len(SET[name]) - 1)]  # a laptop has room: the phone sees all
    for look, settings in ((figure.faults, ends), (figure.faults_on_a_phone, SET[name])):
        for handles in settings:
            for label, value in handles:
                figure.set(label, value)
            assert look() == [], handles
    assert visit.problems == []
    still, moving = (
        figure.figure.locator("> .tt-drawing__panels"),
        figure.figure.locator(".tt-moving"),
    )
    moving.wait_for()
    still.wait_for(state="hidden")
    visit.page.emulate_media(media="print")
    still.wait_for()
    moving.wait_for(state="hidden")


@pytest.mark.parametrize("name", ["causal-mask", "word-vectors"])  # one style sheet hides all
def test_without_scripts_the_drawing_stands_still(browser, site, name):
    assert stands_still(browser, site, PAGES[name], name)


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


def test_a_handle_is_moved_by_keys_and_announces_its_value(visit):
    figure = Moving(visit, PAGES["tokenization"], "tokenization")
    handle = figure.figure.get_by_role("slider", name="Merges")
    handle.press("ArrowLeft")
    assert handle.get_attribute("aria-valuetext") == "2"
    assert figure.words().startswith("After 2 merges the text has 8 tokens.")
    figure = Moving(visit, PAGES["query-over-keys"], "query-over-keys")
    figure.press("Next step")
    assert figure.words().startswith("“they” asks with its query")
