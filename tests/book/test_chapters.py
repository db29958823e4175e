"""Every chapter has the parts that a chapter of this book has."""

import json
import re

import book_index
import pytest
from built import NOTEBOOKS, ROOT, SITE, soup

PARTS = {
    "a prediction": r"\bpredict|\bwhat will",
    "what breaks": r"\bbreak(s|ing)?\b",
    "the same in PyTorch": r"\bin pytorch\b",
    "what it costs": r"\bcosts?\b",
    "exercises": r"^exercises?\b",
    "questions to reflect on": r"\breflect",
    "a recap": r"^recap\b",
}
FOLDED = {"hide-input", "hide-cell"}
LONGEST_CELL = 15


def tokens_of(text):
    return book_index.block_parser().parse(text)


def headings(text):
    tokens = tokens_of(text)
    found = [tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open"]
    return [re.sub(r"[*`]", "", heading).strip() for heading in found]


def directives(text):
    tokens = [token for token in tokens_of(text) if book_index.directive_name(token)]
    return [book_index.read_directive(token, token.map[0] + 1) for token in tokens]


def named(text, *names):
    return [block for block in directives(text) if block.name in names]


def tags(block):
    return set(block.options.get("tags") or [])


def prose_of(text):
    """The words a reader reads: everything but code cells, included source and options."""
    words = []
    tokens = tokens_of(text)
    for token in tokens:
        name = book_index.directive_name(token)
        if token.type == "inline":
            words += re.sub(r"\$[^$]*\$|\{[\w:]+\}|[|*`]", " ", token.content).split()
        elif name and name not in ("code-cell", "literalinclude", "math"):
            block = book_index.read_directive(token, 1)
            words += prose_of(f"{block.argument}\n\n{block.body}")
    return words


@pytest.fixture
def text(chapter):
    return (ROOT / f"{chapter}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("part", PARTS)
def test_has_its_parts(text, part):
    titles = headings(text) + [block.argument for block in named(text, "admonition")]
    assert [title for title in titles if re.search(PARTS[part], title, re.I)], f"no {part}"


def test_begins_with_its_card(text):
    first = [t for t in tokens_of(text) if t.type != "front_matter"]
    kinds = [book_index.directive_name(t) or t.type for t in first]
    heading = kinds.index("heading_close")
    assert kinds[heading + 1] == "chapter-card"


def test_has_three_to_five_exercises(text):
    assert 3 <= len(named(text, "exercise")) <= 5


def test_an_exercise_is_followed_by_stub_hint_and_solution(text):
    kinds = []
    for block in directives(text):
        if block.name == "exercise":
            kinds.append("exercise")
        elif block.name == "admonition" and "dropdown" in str(block.options.get("class")):
            kinds += ["hint"] * block.argument.lower().startswith("hint")
        kinds += sorted(tag for tag in tags(block) if tag.startswith("exercise-"))
    count = kinds.count("exercise")
    assert kinds == ["exercise", "exercise-stub", "hint", "exercise-solution"] * count
    solutions = [b for b in directives(text) if "exercise-solution" in tags(b)]
    assert all("hide-cell" in tags(block) for block in solutions), "a solution is folded"


def test_has_three_or_four_questions_each_with_a_right_choice(text):
    questions = named(text, "reflect")
    assert 3 <= len(questions) <= 4
    for block in questions:
        question, choices = book_index.parse_reflect(block.body)
        assert question and len(choices) >= 2
        assert any(right for right, _, _ in choices)
        assert all(why for _, _, why in choices), "each choice is explained"


def test_has_15_to_30_cells(text):
    assert 15 <= len(named(text, "code-cell")) <= 30


def test_a_cell_fits_on_a_phone(text):
    long = {}
    for block in named(text, "code-cell"):
        lines = [line for line in block.body.splitlines() if line.strip()]
        if len(lines) > LONGEST_CELL and not FOLDED & tags(block):
            long[block.line] = len(lines)
    assert long == {}, f"cells (by line) of more than {LONGEST_CELL} lines"


def test_has_1500_to_3000_words(text):
    assert 1500 <= len(prose_of(text)) <= 3000


def test_figures_say_what_they_show(text):
    figures = [b.options["mystnb"] for b in named(text, "code-cell") if "mystnb" in b.options]
    assert figures, "a chapter has a figure"
    for options in figures:
        alt = (options.get("image") or {}).get("alt") or ""
        assert len(alt.split()) >= 8, f"{options}: say what one would see"
        assert options["figure"]["caption"] and options["figure"]["name"].startswith("fig-")


def test_shows_the_source_of_the_package(text):
    included = named(text, "literalinclude")
    assert [b for b in included if "tinytorch/" in b.argument and "pyobject" in b.options]


def test_cites_and_links_to_the_glossary(text):
    assert "{cite:" in text
    assert "{term}`" in text


def test_the_card_gives_reading_time_and_measured_run_time(chapter):
    """The card measured a run time, so the page was executed when it was built."""
    card = soup(chapter).select_one(".tt-card")
    assert card is not None
    assert re.search(r"about \d+ min", card.get_text())
    assert re.search(r"about (\d+) s\b", card.get_text()), "the run time was measured"


def test_claims_checked_link_to_the_cells_that_settle_them():
    name = "book/appendix/claims-checked"
    page = soup(name)
    rows = [row for row in page.select("article table tbody tr")]
    assert rows, "the appendix is a table of claims"
    for row in rows:
        settled = row.find_all("td")[-1]
        links = [str(a["href"]) for a in settled.find_all("a", href=True)]
        assert links, f"no link to a cell: {row.get_text(' ')[:80]}"
        for link in links:
            path, _, anchor = link.partition("#")
            target = (SITE / "book/appendix" / path).resolve()
            docname = target.relative_to(SITE.resolve()).as_posix().removesuffix(".html")
            place = soup(docname).find(id=anchor)
            assert anchor and place is not None, f"{link} leads nowhere"
            assert json.loads((NOTEBOOKS / f"{target.stem}.ipynb").read_text("utf-8"))["cells"]
