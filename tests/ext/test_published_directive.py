"""The directive that brings the published weights into a page."""

import math

import pytest
from _ext.directives import published_weights
from small_site import build, built

from tinytorch.models.gpt2 import PUBLISHED

PLACE = "```{published-weights}\nHere GPT-2 writes.\n```\n"


@pytest.mark.filterwarnings("default")
def test_the_directive_writes_the_address_of_the_weights(tmp_path):
    page, other = built(tmp_path, PLACE)
    tag = page.partition('<div class="tt-published"')[2].partition(">")[0]
    revision = PUBLISHED["gpt2"][0]
    address = f"https://huggingface.co/openai-community/gpt2/resolve/{revision}/"
    assert f'data-address="{address}"' in tag
    assert "<p>Here GPT-2 writes.</p>" in page
    assert "published/published.css" in page
    assert "published.css" not in other


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (PLACE + "\n" + PLACE, "a page fetches the weights once"),
        ("```{published-weights}\n```\n", "the weights need a content"),
    ],
    ids=["two", "empty"],
)
def test_a_second_panel_or_one_without_a_sentence_is_an_error(tmp_path, body, message):
    _, warnings = build(tmp_path, index=f"# A\n\n{body}")
    assert message in warnings


def test_the_stated_costs_match_the_published_file():
    """The masks are not fetched: 12 of 1,024 by 1,024 floats; the rest is header and weights."""
    costs = {
        name: int(value) for name, value in published_weights.costs().items() if value.isdecimal()
    }
    assert costs["fetched"] == 4 * 124_439_808
    header = costs["file"] - costs["fetched"] - 12 * 4 * 1024**2
    assert 0 < header < 20_000
    matrices = 50_257 * 768 + 12 * 12 * 768**2
    rows = 50_257 + 12 * (3 * 768 + 768 + 768 + 4 * 768)
    floats = 124_439_808 - matrices
    texts = 1_042_301 + 456_318
    assert costs["made"] == matrices + 4 * (rows + floats) + texts
    assert math.isclose(costs["made"], 129e6, rel_tol=0.01)
