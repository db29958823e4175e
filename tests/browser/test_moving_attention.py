"""The figures of the part Attention that move: each shows what the package computes."""

import re
from math import log, pi

import numpy as np
import pytest
from drawings import attention as drawn
from moving import Moving, stands_still
from served_pages import ROOT

from tinytorch import Tensor, causal_mask, functional, scaled_dot_product_attention
from tinytorch.core.positions import apply_rotary, create_rotary_embeddings

DOT_PRODUCT, POSITIONS = (
    "book/attention/scaled-dot-product",
    "book/attention/positions-in-attention",
)
PAGES = {
    "query-over-keys": DOT_PRODUCT,
    "causal-mask": DOT_PRODUCT,
    "root-d": DOT_PRODUCT,
    "rotary-angle": POSITIONS,
}
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```", re.M | re.S)
pytestmark = [pytest.mark.browser]


@pytest.fixture(params=PAGES)
def name(request):
    return request.param


@pytest.fixture
def moving(visit):
    """Gives a figure by its name; nothing may go wrong on its page."""
    yield lambda name: Moving(visit, PAGES[name], name)
    assert visit.problems == []


def same(shown, computed):
    """Whether numbers of a figure are the package's."""
    computed = np.asarray(computed)
    assert np.shape(shown) == computed.shape
    np.testing.assert_allclose(shown, computed, rtol=0, atol=1e-6)


def test_without_scripts_the_drawing_stands_there(browser, site, name):
    assert stands_still(browser, site, PAGES[name], name)


def test_a_phone_has_room_for_the_figure_and_its_handles(moving, name):
    assert moving(name).faults_on_a_phone() == []


# A query over keys ----------------------------------------------------------------------------


def test_the_query_meets_the_keys_as_in_the_package(moving):
    figure = moving("query-over-keys")
    q, k, v = (np.array(rows, dtype=float) for rows in (drawn.QUERIES, drawn.KEYS, drawn.VALUES))
    output, weights = scaled_dot_product_attention(q, k, v)
    for asks, token in enumerate(drawn.TOKENS):
        figure.choose(token)
        shown = figure.numbers()
        assert (shown["asks"], shown["step"]) == (asks, 6)
        same(shown["scores"], q[asks] @ k.T / np.sqrt(4))
        same(shown["weights"], weights.data[asks])
        same(shown["output"], output.data[asks])
        assert figure.faults() == []


def test_each_step_shows_one_thing_more(moving):
    figure = moving("query-over-keys")
    known = []
    for step in range(7):
        figure.move("Step", step)
        shown = figure.numbers()
        known.append([len(shown[part]) for part in ("scores", "weights", "output")])
        assert figure.faults() == []
    assert known == [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0], [4, 0, 0], [4, 4, 0], [4, 4, 4]]


def test_the_step_after_the_last_is_the_first_and_says_the_products(moving):
    figure = moving("query-over-keys")
    figure.press("Next step")
    assert figure.numbers()["step"] == 0
    assert figure.words().startswith("“it” asks with its query, 2, 0, 1, 1.")
    figure.press("Next step")
    products = "2 · 1 + 0 · 0 + 1 · 1 + 1 · 1 = 4, and divided by √4 the score is 2."
    assert figure.words() == f"The query of “it” meets the key of “dog”: {products}"


# The mask -------------------------------------------------------------------------------------


def example():
    """The queries and keys of the page's own example, from its code."""
    page = (ROOT / f"{DOT_PRODUCT}.md").read_text(encoding="utf-8")
    [code] = [cell for cell in CELL.findall(page) if "W_q = " in cell]
    names = {"np": np, "functional": functional}
    exec(code, names)
    return names["words"], names["q"], names["k"]


@pytest.mark.parametrize("masked", [False, True])
def test_the_mask_hides_what_it_hides_in_the_package(moving, masked):
    words, q, k = example()
    mask = causal_mask(6) if masked else np.zeros((6, 6))
    _, weights = scaled_dot_product_attention(q, k, k, mask)
    figure = moving("causal-mask")
    figure.choose("on" if masked else "off")
    for asks, word in enumerate(words):
        figure.choose(word)
        shown = figure.numbers()
        assert (shown["asks"], shown["masked"]) == (asks, masked)
        same(shown["scores"], q[asks] @ k.T / 2 + mask[asks])
        same(shown["weights"], weights.data[asks])
        same(shown["leaked"], weights.data[asks, asks + 1 :].sum())
        assert figure.faults() == []


def test_the_words_say_what_leaks(moving):
    figure = moving("causal-mask")
    assert figure.words().startswith(
        "“barked” takes 70 % of what it gets from the three later words."
    )
    figure.choose("on")
    assert figure.words().startswith("The mask makes the scores of the three later words −∞.")
    figure.choose("woke")
    assert figure.words().startswith("Nothing comes after “woke”")


# √d -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divided", [False, True])
def test_the_softmax_of_scores_of_any_width_is_the_packages(moving, divided):
    figure = moving("root-d")
    figure.choose("divided by √d" if divided else "as they are")
    for power in (0, 1, 4, 6, 10):
        figure.move("d, the length of query and key", power)
        scores = np.array(drawn.SIZES) * (1 if divided else np.sqrt(2**power))
        weights = functional.softmax(scores).numpy()
        shown = figure.numbers()
        assert (shown["d"], shown["divided"]) == (2**power, divided)
        same(shown["scores"], scores)
        same(shown["weights"], weights)
        same(shown["slopes"], [slope(scores, i) for i in range(8)])
        same(shown["entropy"], -sum(w * log(w) for w in weights.tolist() if w))
        assert figure.faults() == []


def slope(scores, i):
    """The gradient of a weight for its own score, by autograd."""
    x = Tensor(scores, requires_grad=True)
    functional.softmax(x).backward(np.eye(len(scores))[i])
    return x.grad[i]


def test_the_sizes_are_those_of_numbers_with_variance_one():
    assert sum(drawn.SIZES) == pytest.approx(0)
    assert np.mean(np.square(drawn.SIZES)) == pytest.approx(1, abs=0.005)


# The rotary angle -----------------------------------------------------------------------------


def rotated():
    """Every position's rotation of (1, 0), by the second pair of a head, which turns by a 16th."""
    tables = create_rotary_embeddings(16, 4, base=(8 / pi) ** 2)
    return apply_rotary(np.tile([0.0, 0.0, 1.0, 0.0], (16, 1)), *tables).numpy()[:, 2:]


def test_the_hands_turn_as_the_package_rotates(moving):
    figure = moving("rotary-angle")
    for query, key in [(5, 3), (0, 0), (15, 0), (0, 15), (15, 15), (8, 0), (12, 13)]:
        figure.move("Position of the query", query)
        figure.move("Position of the key", key)
        shown = figure.numbers()
        assert (shown["query"], shown["key"]) == (query, key)
        same(shown["rotatedQuery"], rotated()[query])
        same(shown["rotatedKey"], rotated()[key])
        same(shown["product"], rotated()[query] @ rotated()[key])
        assert figure.faults() == []


def test_moved_together_the_two_keep_their_dot_product(moving):
    figure = moving("rotary-angle")
    before = figure.numbers()
    for _ in range(4):
        figure.press("Both one further")
    after = figure.numbers()
    assert (after["query"], after["key"]) == (9, 7)
    same(after["product"], before["product"])
    for _ in range(20):  # no further than the beginning
        figure.press("Both one back")
    assert (figure.numbers()["query"], figure.numbers()["key"]) == (2, 0)
