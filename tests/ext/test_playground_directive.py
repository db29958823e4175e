"""The directive that puts the playground into a page, and the drawing that is seen without it."""

import json
import re
from pathlib import Path

import drawings.playground as drawn
import numpy as np
import pytest
from _ext.directives import playground_panels
from drawings import model
from small_site import build, built

from tinytorch.models.sampling import next_token_probs as model_probs
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.tokens import next_token_probs as true_probs

PLACE = "````{playground}\n```{drawing} playground\n```\n\nIt needs scripts.\n````\n"


@pytest.mark.filterwarnings("default")
def test_the_directive_writes_its_fallback_and_loads_the_waiting_script(tmp_path):
    page, other = built(tmp_path, PLACE)
    place = page.partition('<div class="tt-play" data-size="whole">')[2]
    assert 'role="img" aria-label="The words One sunny morning' in place
    assert "<p>It needs scripts.</p>" in place
    assert "playground/door.js" in page and "playground/door.css" in page
    assert "playground/playground.css" not in page, "it would hold back the paint of the page"
    assert "step-4000" not in page, "what would be asked for with the page holds back its paint"
    assert "playground/door.js" not in other


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (PLACE + "\n" + PLACE, "a page has one playground, and this one has it already"),
        ("```{playground}\n```\n", "a playground needs a content"),
    ],
    ids=["two", "empty"],
)
def test_a_second_playground_or_one_without_a_picture_is_an_error(tmp_path, body, message):
    _, warnings = build(tmp_path, index=f"# A\n\n{body}")
    assert message in warnings


MAP = "````{playground-map}\n```{drawing} map-of-the-book\n```\n````\n"


@pytest.mark.filterwarnings("default")
def test_the_place_of_the_map_holds_its_drawing_and_can_be_reached_at_each_part(tmp_path):
    page, _ = built(tmp_path, f"{PLACE}\n## Below\n\n{MAP}")
    place = page.partition('<div class="tt-map">')[2]
    assert 'role="group" aria-label="A map of GPT' in place
    for part in model.PARTS:
        assert f'<i id="play&amp;map={part}">' in place


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (MAP, "a map of the model needs a playground above it on its page"),
        (PLACE + "\n```{playground-map}\n```\n", "a map needs a content"),
    ],
    ids=["alone", "empty"],
)
def test_a_map_without_a_playground_or_a_picture_is_an_error(tmp_path, body, message):
    _, warnings = build(tmp_path, index=f"# A\n\n{body}")
    assert message in warnings


def test_the_drawing_shows_the_probabilities_of_the_model_and_the_grammar():
    gpt, tokenizer = load_story_gpt(), story_tokenizer()
    ids = tokenizer.encode("".join(drawn.TOKENS))
    assert [tokenizer.decode([i]) for i in ids] == drawn.TOKENS
    start = np.array([[*tokenizer.encode("\n"), *ids]])
    belief = model_probs(gpt(start).data[0, -1])
    truth = true_probs(StoryGrammar(), tokenizer, ids)
    best = np.argsort(-belief)[: len(drawn.EXPECTED)]
    assert [tokenizer.decode([int(i)]) for i in best] == list(drawn.EXPECTED)
    for i, both in zip(best, drawn.EXPECTED.values(), strict=True):
        exact = belief[i], truth[int(i)]
        assert both == pytest.approx(exact, abs=0.0006)
        assert [*map(drawn.percent, both)] == [*map(drawn.percent, exact)]
    assert drawn.percent(0.125) == "13 %", "as the playground rounds"


@pytest.mark.filterwarnings("default")
def test_a_chapter_can_lead_to_each_panel(tmp_path):
    links = " ".join(f"{{ref}}`there <playground-{name}>`" for name in playground_panels.PANELS)
    page, _ = built(tmp_path, f"{PLACE}\n{links}\n")
    for name in playground_panels.PANELS:
        assert f'href="#play&amp;open={name}"' in page
        assert f'<i id="play&amp;open={name}">' in page


def test_the_other_panels_are_named_as_on_their_page_and_each_link_opens_its_own():
    folder = Path(playground_panels.__file__).parents[2] / "_static" / "playground"
    layout = (folder / "layout.js").read_text("utf-8")
    state = (folder / "state.js").read_text("utf-8")
    named = json.loads(re.search(r"export const FOLDS = (\[.*?\]);", state)[1])
    assert list(playground_panels.PANELS) == named[1:], "the first is on the page itself"
    for name, (question, picture) in playground_panels.PANELS.items():
        assert f'fold("{name}", "{question}"' in layout
        item = playground_panels.teaser(name, "playground.html")
        assert f'href="playground.html#play&amp;open={name}"' in item and picture in item
