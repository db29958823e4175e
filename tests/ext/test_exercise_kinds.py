"""The kind and the number of an exercise stand in its title line."""

from types import SimpleNamespace

import pytest
from _ext.directives import exercises
from bs4 import BeautifulSoup
from small_site import build
from test_folds import article, words

EXERCISE = """# A

```{exercise} Seen twice
:label: ex-twice
:kind: debug

Find it.
```
"""
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize(
    ("option", "label"),
    [(":kind: debug\n", "debug it"), (":kind: puzzle\n", "puzzle"), ("", "write it")],
    ids=["debug", "puzzle", "none"],
)
def test_a_title_names_the_kind_of_the_exercise(tmp_path, option, label):
    page = article(tmp_path, EXERCISE.replace(":kind: debug\n", option))
    assert words(page.select_one(".exercise .admonition-title .tt-kind")) == label


def test_an_unknown_kind_is_an_error_that_names_the_known_ones(tmp_path):
    _, warnings = build(tmp_path, index=EXERCISE.replace("debug", "guess"))
    assert '"guess" unknown; choose from "write", "predict", "debug"' in warnings


TWO = """---
{front}
---
(ch-{name})=
# The {name}

```{{exercise}} One, 1 point
:label: ex-{name}-one

Do it.
```

```{{exercise}} Two, 1 point
:label: ex-{name}-two

See {{ref}}`ex-first-one`, {{ref}}`ex-second-two` and {{ref}}`the last <ex-second-two>`.
```
"""


def numbers(page):
    return [words(number) for number in page.select(".exercise .caption-number")]


def test_each_page_counts_its_exercises_from_one(tmp_path):
    index = TWO.format(name="first", front="a: 1") + "\n```{toctree}\nsecond\n```\n"
    pages = {"index": index, "second": TWO.format(name="second", front="a: 1")}
    folder, warnings = build(tmp_path, **pages)
    assert warnings == ""
    for name in pages:
        page = BeautifulSoup((folder / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        assert numbers(page) == ["Exercise 1", "Exercise 2"], name


def test_a_reference_names_the_chapter_of_an_exercise_on_another_page(tmp_path):
    index = TWO.format(name="first", front="a: 1") + "\n```{toctree}\nsecond\n```\n"
    pages = {"index": index, "second": TWO.format(name="second", front="a: 1")}
    folder, _ = build(tmp_path, **pages)
    told = {
        name: BeautifulSoup((folder / f"{name}.html").read_text(), "html.parser").article.text
        for name in pages
    }
    assert "See Exercise 1, Exercise 2 of The second and the last." in told["index"]
    assert "See Exercise 1 of The first, Exercise 2 and the last." in told["second"]


def test_sphinx_compares_its_own_numbers_when_a_page_has_changed():
    mine = {"a": {"exercise": {"x": (1,), "y": (2,)}, "figure": {"f": (1,)}}, "b": {}}
    env = SimpleNamespace(toc_fignumbers={**mine, "c": {"exercise": {"z": (3,)}}})
    exercises.count_by_chapter(None, env)
    assert env.toc_fignumbers["c"] == {"exercise": {"z": (1,)}}
    del env.toc_fignumbers["a"]  # it is read again
    exercises.count_as_sphinx(None, env)
    assert env.toc_fignumbers == {"b": {}, "c": {"exercise": {"z": (3,)}}}
