"""What a page folds away: predictions with their answers, and sections that go deeper."""

import pytest
from bs4 import BeautifulSoup
from small_site import build

# Sphinx and its extensions may warn of their own deprecations
pytestmark = pytest.mark.filterwarnings("default")

CHOICES = """# A

## Predict

```{prediction} sum
What is $1 + 1$?

- one
- [x] **two**

  Count them.
- [ ] three
```

It is two.

### Inside

More of it.

## After

Not a part of it.
"""
NUMBER = """# A

```{prediction} growth
:number: 200
:tolerance: 20%
:unit: times

How large?
```

Large.
"""
DEEPER = """# A

## Deeper: Why is the *root* there?

Because.

### Deeper: And here?

Too.

## Recap
"""


def article(tmp_path, page):
    folder, warnings = build(tmp_path, index=page)
    assert warnings == ""
    text = (folder / "index.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser").select_one("article")


def words(tag):
    return " ".join(tag.get_text(" ", strip=True).replace("#", "").split())


def test_a_prediction_is_a_question_with_choices_one_of_them_right(tmp_path):
    box = article(tmp_path, CHOICES).select_one("#predict-sum")
    choices = box.select(".tt-prediction__choice")
    assert [words(c.select_one(".tt-prediction__text")) for c in choices] == ["one", "two", "three"]
    right = box.select(".tt-prediction__choice--right")
    assert right == [choices[1]]
    assert words(right[0].select_one(".tt-prediction__why")) == "Count them."
    assert "[x]" not in words(box) and "[ ]" not in words(box)


def test_the_answer_is_the_rest_of_the_section(tmp_path):
    page = article(tmp_path, CHOICES)
    fold = page.select_one("#predict-sum + details.tt-answer")
    assert not fold.has_attr("open")
    assert words(fold.summary).startswith("Show me")
    assert "It is two." in words(fold) and "More of it." in words(fold)
    assert "Not a part of it." not in words(fold)
    assert "Not a part of it." in words(page)
    assert fold.select_one("section#inside h3")


@pytest.mark.parametrize(
    ("tolerance", "spread"),
    [(":tolerance: 20%\n", "40"), (":tolerance: 0.5\n", "0.5"), ("", "0")],
    ids=["in percent", "as a number", "none"],
)
def test_a_number_is_asked_for_with_its_tolerance(tmp_path, tolerance, spread):
    page = article(tmp_path, NUMBER.replace(":tolerance: 20%\n", tolerance))
    box = page.select_one("#predict-growth")
    assert (box["data-number"], box["data-spread"], box["data-unit"]) == ("200", spread, "times")
    assert words(box.select_one(".tt-prediction__came")) == "The answer: 200 times."
    assert page.select_one("#predict-growth + details.tt-answer")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("{prediction} sum", "{prediction} The-sum", "a prediction's name is made of"),
        ("[x] **two**", "**two**", "at least two choices, a right one marked [x]"),
        ("- one\n", "", "sum needs a list of at least two choices"),
        ("What is $1 + 1$?\n", "", "the prediction sum needs a question"),
        (":number: 200", ":number: many", "are numbers, the tolerance with or without %"),
        (":tolerance: 20%", ":tolerance: a bit", "are numbers, the tolerance with or without %"),
        (":number: 200\n", "", "at least two choices, a right one marked [x], or the option"),
        ("\nLarge.\n", "", "the prediction has no answer"),
        ("## After", "```{prediction} sum\nQ\n- a\n- [x] b\n```\n\nx\n\n## After", "predict-sum"),
    ],
    ids=[
        "a capital in its name",
        "no right choice",
        "one choice",
        "no question",
        "no number",
        "no tolerance",
        "neither choices nor number",
        "no answer",
        "twice the same name",
    ],
)
def test_an_incomplete_prediction_names_what_is_missing(tmp_path, before, after, message):
    source = next(text for text in (CHOICES, NUMBER) if before in text)
    source = source.replace("- [ ] three\n", "") if before == "- one\n" else source
    _, warnings = build(tmp_path, index=source.replace(before, after))
    assert message in " ".join(warnings.split())


def test_a_prediction_in_a_box_is_refused(tmp_path):
    inner = NUMBER.partition("\n\n")[2].partition("\n\nLarge.")[0]
    _, warnings = build(tmp_path, index=f"# A\n\n````{{note}}\n{inner}\n````\n\nLarge.\n")
    assert "belongs in a section, not in a box" in warnings


def test_a_deeper_section_is_folded_under_its_heading(tmp_path):
    page = article(tmp_path, DEEPER)
    outer, inner = page.select("details.tt-deeper")
    assert outer.parent.name == "section" and outer.parent["id"] == "deeper-why-is-the-root-there"
    assert words(outer.summary.h2) == "Deeper : Why is the root there?"
    assert words(outer.summary.select_one(".tt-deeper__label")) == "Deeper"
    assert words(inner.summary.h3) == "Deeper : And here?"
    assert "Because." in words(outer) and inner in outer.descendants
    assert page.select_one("section#recap").find_parent("details") is None


def test_the_contents_name_a_folded_section(tmp_path):
    folder, _ = build(tmp_path, index=DEEPER)
    page = BeautifulSoup((folder / "index.html").read_text(encoding="utf-8"), "html.parser")
    assert "Deeper: Why is the root there?" in words(page.select_one(".bd-sidebar-secondary"))


def test_nothing_is_folded_outside_the_site(tmp_path):
    both = CHOICES + DEEPER.partition("\n\n")[2]
    folder, _ = build(tmp_path, builder="text", index=both)
    text = (folder / "index.txt").read_text(encoding="utf-8")
    assert "Deeper: Why is the" in text and "It is two." in text
    assert "details" not in text and "Show me" not in text
