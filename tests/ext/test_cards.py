"""The book's own directives, as Sphinx renders them."""

import pytest
from small_site import build

# Sphinx and its extensions may warn of their own deprecations
pytestmark = pytest.mark.filterwarnings("default")

CARD = """# A

```{chapter-card}
:question: How do *integers* learn?
:build: a table
:needs: PAGE, nothing else
:difficulty: 2
- write a lookup
```
"""
REFLECT = """# A

```{reflect}
:label: q-sum
Which gradient?

- [x] the sum of $3$

  Each is a path.

  A second paragraph.
- [ ] the last one

  Two are lost.
```
"""


def render(tmp_path, page):
    """Build a page beside another one; give its HTML and the warnings."""
    other = "---\norphan: true\n---\n\n# The other page\n"
    folder, warnings = build(tmp_path, index=page, other=other)
    return (folder / "index.html").read_text(encoding="utf-8"), warnings


def test_a_card_has_its_question_prerequisites_difficulty_and_reading_time(tmp_path):
    page, warnings = render(tmp_path, CARD.replace("PAGE", "book/other"))
    assert warnings == ""
    assert '<p class="tt-card__question">How do <em>integers</em> learn?</p>' in page
    assert '<span class="doc">The other page</span></a>, nothing else</dd>' in page
    assert '<span class="visually-hidden">2 of 5</span>' in page
    assert "about 1 min" in page
    assert "Run time" not in page  # nothing was executed


def test_the_map_on_a_card_leads_to_its_part_at_work(tmp_path):
    page = CARD.replace("PAGE", "nothing")
    hidden = "---\norphan: true\n---\n\n"
    folder, warnings = build(tmp_path, index="# A\n", block=hidden + page, intro=hidden + "# I\n")
    html = (folder / "block.html").read_text(encoding="utf-8")
    assert warnings == ""
    assert (
        '<a aria-label="See it at work: the block, in the map of the model" class="tt-card__live"'
        ' href="intro.html#play&amp;map=block">See it at work</a>' in html
    )


def test_a_prerequisite_that_is_no_page_is_a_warning(tmp_path):
    _, warnings = render(tmp_path, CARD.replace("PAGE", "book/nowhere"))
    assert "unknown document: '/book/nowhere'" in warnings


BELIEVE = """
```{admonition} What you may believe for now
:class: believe
The shift changes nothing.
```
"""


def test_a_card_says_what_may_be_taken_on_trust_if_the_page_has_such_a_box(tmp_path):
    card = CARD.replace("PAGE, ", "")
    page, warnings = render(tmp_path, card + BELIEVE)
    assert warnings == ""
    said = "No maths? A box <em>What you may believe for now</em> lets you skip a derivation."
    assert page.index("</dl>") < page.index(said) < page.index("Aims and map")
    assert '<div class="believe admonition">' in page
    without, _ = render(tmp_path / "without", card + BELIEVE.replace("believe\n", "note\n"))
    assert "tt-card__believe" not in without


def test_a_choice_opens_to_its_verdict_and_explanation(tmp_path):
    page, warnings = render(tmp_path, REFLECT)
    assert warnings == ""
    assert 'class="tt-reflect" id="q-sum"' in page
    assert "<p><strong>Right.</strong> Each is a path.</p>\n<p>A second paragraph.</p>" in page
    assert "<summary>the last one</summary>" in page
    assert "<p><strong>Not quite.</strong> Two are lost.</p>" in page
    assert "[x]" not in page


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (":build: a table\n", "", "a chapter-card needs build"),
        ("- write a lookup\n", "", "a chapter-card needs its objectives"),
        (":difficulty: 2", ":difficulty: 9", "difficulty"),
        ("[x] the sum", "[ ] the sum", "needs a choice marked [x]"),
        ("[ ] the last", "the last", "begins with [x] or [ ]"),
        ("\n  Two are lost.\n", "", "'the last one' of a reflect has no explanation"),
        ("Which gradient?\n", "", "needs a question"),
    ],
    ids=[
        "no build",
        "no objectives",
        "difficulty 9",
        "no right choice",
        "no mark",
        "no explanation",
        "no question",
    ],
)
def test_an_incomplete_directive_names_what_is_missing(tmp_path, before, after, message):
    source = next(text for text in (CARD, REFLECT) if before in text)
    _, warnings = render(tmp_path, source.replace(before, after).replace("PAGE", "book/other"))
    assert message in warnings
