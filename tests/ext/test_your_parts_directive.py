"""The list of the parts of a reader's GPT, the link to it on the cards, and what a page is told."""

import json
from types import SimpleNamespace

import pytest
from _ext.directives import your_parts
from _ext.execution import cached_runs
from bs4 import BeautifulSoup
from small_site import build

from tinytorch_book.exercises.capstone.parts import PARTS

pytestmark = pytest.mark.filterwarnings("default")
FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
CARD = """
```{chapter-card}
:question: Which?
:build: it
:needs: nothing
:difficulty: 1
- say it
```
"""


def exercises(*checks):
    """Exercises in their order, each with a stub that asks this check."""
    return "".join(
        f"""
```{{exercise}} The {check}, 2 points
:label: ex-{check}

Do it.
```

```{{code-cell}}
:tags: [exercise-stub]
def mine(x): ...

check.{check}(mine)
```
"""
        for check in checks
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two chapters, the first before that on the GPT, and the page with the list."""
    first = FRONT + "# First" + CARD + exercises("no_part", "norm_layer")
    others = [check for check, _ in PARTS.values() if check != "norm_layer"]
    second = FRONT + "# Second" + CARD + exercises(*others)
    last = FRONT + "# Last" + CARD + "\n```{your-parts}\n```\n"
    index = "# A\n\n```{toctree}\nfirst\nsecond\nlast\n```\n"
    pages = {"index": index, "first": first, "second": second, "last": last}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(your_parts, "FIRST", "book/second")
        ran = SimpleNamespace(err=None, time=1.0)
        patch.setattr(cached_runs, "execute", lambda notebook, timeout: ran)
        folder, warnings = build(tmp_path_factory.mktemp("site"), **pages)
    assert warnings == ""
    return {
        name: BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        for name in pages
    }


def test_each_place_of_the_file_is_listed_with_the_exercise_that_fills_it(site):
    rows = site["last"].select("#your-parts tbody tr")
    assert [row["id"] for row in rows] == [f"part-{p.replace(' ', '-')}" for p in your_parts.PLACES]
    norm = site["last"].select_one("#part-norm")
    told = [" ".join(cell.text.split()) for cell in norm.select("td")]
    assert told == ["norm normalises each token", "Exercise 2 of First, The norm_layer"]
    assert norm.a["href"] == "first.html#ex-norm_layer"


def test_of_two_parts_in_one_place_both_exercises_are_named(site):
    heads = site["last"].select_one("#part-heads")
    assert [a["href"] for a in heads.select("a")] == [
        "second.html#ex-heads_attention",
        "second.html#ex-cache_attention",
    ]
    assert ", The heads_attention or Exercise " in heads.text


def test_cards_from_the_chapter_on_the_gpt_on_link_to_the_list(site):
    assert not site["first"].select(".tt-parts")
    chip = site["second"].select_one(".tt-card .tt-parts")
    assert chip.text == f"Your own GPT has {len(your_parts.PLACES)} parts"
    assert chip.a["href"] == "last.html#your-parts"
    assert site["last"].select_one(".tt-card .tt-parts a")["href"] == "#your-parts"


def test_each_page_with_cells_is_told_the_way_to_every_part(site):
    assert site["index"].find(id="tt-parts") is None
    told = json.loads(site["first"].find(id="tt-parts").string)
    assert told["list"] == "last.html#your-parts"
    assert [part["name"] for part in told["parts"]] == list(PARTS)
    parts = {part["name"]: part for part in told["parts"]}
    assert parts["norm"] == {
        "name": "norm",
        "place": "norm",
        "said": "The norm is",
        "where": "Exercise 2",
        "href": "#ex-norm_layer",
    }
    assert parts["heads with a cache"]["place"] == "heads"
    assert parts["merges"]["where"] == "Exercise 1 of Second"


def test_every_part_has_words_that_greet_it():
    assert list(your_parts.SAID) == list(PARTS)
    assert all(said.endswith((" is", " are")) for said in your_parts.SAID.values())


def test_a_part_that_no_exercise_builds_is_a_warning(tmp_path):
    _, warnings = build(tmp_path, index="# A\n\n```{your-parts}\n```\n")
    assert "no exercise builds merges, encode, lookup" in warnings
