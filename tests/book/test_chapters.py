"""Every chapter has the parts that a chapter of this book has, on its page and in its notebook."""

import json
import re

import pytest
from built import NAMES, PAGES, ROOT, SITE, cells, soup, tags

PARTS = {
    "a prediction": r"\bpredict|\bwhat will",
    "what breaks": r"\bbreak(s|ing)?\b|\bwrong\b",
    "exercises": r"^exercises?\b",
    "questions to reflect on": r"\breflect",
    "a recap": r"^recap\b",
}
EXERCISE = ".admonition.exercise, .tag_exercise-stub, .admonition.dropdown, .tag_exercise-solution"
FOLDED = {"hide-input", "hide-cell", "exercise-stub"}  # a stub to debug has its code
LONGEST_CELL = 15
PHONE, SMALLEST = 390, 11.5  # pixels: the width of a phone, and of a letter there
# In the first chapter nothing breaks yet.
NOT_YET = {"what breaks"}
FIRST = "counting-letters"
NOT_PROSE = (
    "pre, svg, .math, .tt-card, .tt-live-plain, figcaption, .headerlink, summary .toggle-button"
)


@pytest.fixture
def article(chapter_page):
    return chapter_page.select_one("article")


@pytest.fixture
def code(chapter):
    """The chapter's cells, without the one that installs the package on Colab."""
    return cells(chapter.rsplit("/", 1)[-1])[1:]


def words(tag):
    return tag.get_text(" ", strip=True)


@pytest.mark.parametrize("part", PARTS)
def test_has_its_parts(chapter, article, part):
    if chapter.endswith(FIRST) and part in NOT_YET:
        pytest.skip("plain Python")
    titles = article.select("h1, h2, h3, h4, .admonition-title")
    titles = [re.sub(r"\s*#$", "", words(title)) for title in titles]
    assert [title for title in titles if re.search(PARTS[part], title, re.I)], f"no {part}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("book/proofs/")])
def test_a_page_of_proofs_has_costs_and_pytorch_for_its_part(page):
    titles = [words(title).casefold() for title in soup(page).select("article h2, article h3")]
    if not page.endswith("systems"):  # there costs are what the chapters are about
        assert [title for title in titles if "cost" in title], "what it costs"
    assert [title for title in titles if "in pytorch" in title], "the same in PyTorch"


def test_begins_with_its_card(article):
    assert "tt-card" in article.h1.find_next_sibling()["class"]


def test_an_exercise_is_followed_by_stub_hint_and_solution(article):
    kinds = []
    for tag in article.select(EXERCISE):
        classes = set(tag["class"])
        if "exercise" in classes:
            kinds.append("exercise")
        elif "dropdown" in classes:
            kinds += ["hint"] * words(tag.p).lower().startswith("hint")
        else:
            kinds += [c.removeprefix("tag_") for c in classes if c.startswith("tag_exercise-")]
    count = kinds.count("exercise")
    assert 3 <= count <= 8
    one_of_two = "exercise exercise-stub hint( hint)? exercise-solution"
    assert re.fullmatch(f"({one_of_two} ?){{{count}}}", " ".join(kinds))
    solutions = article.select(".tag_exercise-solution")
    assert all("tag_hide-cell" in tag["class"] for tag in solutions), "a solution is folded"


def test_has_three_or_four_questions_each_with_a_right_choice(article):
    questions = article.select(".tt-reflect")
    assert 3 <= len(questions) <= 4
    for question in questions:
        assert words(question.select_one(".tt-reflect__question"))
        assert len(question.select("details")) >= 2
        assert question.select(".tt-reflect__choice--right")
        for verdict in question.select(".tt-reflect__verdict"):
            assert len(words(verdict).split()) > 3, "each choice is explained"


def test_has_15_to_24_cells(code, chapter):
    most = 26 if chapter.endswith("/talk") else 24  # it measures a published model, too
    assert 15 <= len(code) <= most


def test_its_source_has_at_most_4200_words(chapter):
    text = (ROOT / f"{chapter}.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 4200


def test_a_cell_fits_on_a_phone(code):
    long = {}
    for cell in code:
        lines = [line for line in cell["source"].splitlines() if line.strip()]
        if len(lines) > LONGEST_CELL and not FOLDED & tags(cell):
            long[cell["id"]] = len(lines)
    assert long == {}, f"cells of more than {LONGEST_CELL} lines"


def test_has_1500_to_3700_words_with_what_is_folded(chapter):
    text = "\n".join(cell["source"] for cell in cells(chapter.rsplit("/", 1)[-1], "markdown"))
    assert 1500 <= len(prose_of(text).split()) <= 3700


def prose_of(markdown):
    """The words of the text without code, formulas, captions, markup and card; a link is one."""
    markdown = re.sub(r"(?m)^(\*(From|What it shows)|\*\*Fig\.|\| \*\*).*$", "", markdown)
    text = re.sub(r"(`{3,}).*?\1", " ", markdown, flags=re.S)
    text = re.sub(r"\$\$.*?\$\$|(?<!\\)\$[^$]*\$", " ", text, flags=re.S)
    text = re.sub(r"\[[^\]]*\]\([^)]*\)", "link", text)
    text = re.sub(r"\w+( and \w+| \*et al\.\*)? \(link\)", "link", text)  # a citation
    text = re.sub(r"</?\w[^>]*>|\*\*(Right|Not quite)\.\*\*", " ", text)
    return re.sub(r"[|*`>#\[\]-]+", " ", text)


def test_figures_have_alternative_text(article):
    for figure in article.select("figure:not(.tt-drawing)"):
        assert figure["id"].startswith("fig-")
        assert figure.select_one("figcaption .caption-text")
        assert len(figure.svg["aria-label"].split()) >= 8, "say what one would see"


def test_letters_of_figures_are_large_enough_on_a_phone(article):
    for figure in article.select("svg.tt-figure"):
        scale = PHONE / float(figure["viewbox"].split()[2])
        sizes = re.findall(r"font(?:-size)?: ([\d.]+)px", str(figure))
        small = {float(size) * scale for size in sizes if float(size) * scale < SMALLEST}
        assert small == set(), figure["id"]


def test_cites_and_links_to_the_glossary(article):
    links = [str(tag["href"]) for tag in article.find_all("a", href=True)]
    assert [link for link in links if "appendix/bibliography.html#" in link]
    assert [link for link in links if "appendix/glossary.html#term-" in link]


def test_the_card_gives_reading_time_and_the_run_time_that_the_cells_announce(chapter, article):
    card = words(article.select_one(".tt-card"))
    assert re.search(r"about \d+ min\b", card)
    told = json.loads(soup(chapter).select_one("#tt-live").string)["cells"]
    runnable = [cell for cell in told if "live-skip" not in cell["tags"]]
    seconds = sum(cell["expected"] for cell in runnable)  # each to a tenth
    found = re.search(r"Run time about (\d+) s in the browser", card)
    assert found, "the page was not executed when it was built"
    assert abs(int(found[1]) - max(1, seconds)) <= 0.5 + 0.05 * len(runnable)


def test_each_claim_names_the_place_where_it_stands():
    rows = soup("book/appendix/claims-checked").select("article table tbody tr")
    assert rows, "the appendix is a table of claims"
    for row in rows:
        links = [str(a["href"]) for a in row.td.find_all("a", href=True)]
        places = [x for x in links if x.startswith("https://") or "bibliography.html#" in x]
        assert places, f"no place: {words(row.td)}"


def test_claims_checked_link_to_the_cells_that_settle_them():
    page = soup("book/appendix/claims-checked")
    rows = page.select("article table tbody tr")
    assert rows, "the appendix is a table of claims"
    for row in rows:
        settled = row.find_all("td")[-1]
        links = [str(a["href"]) for a in settled.find_all("a", href=True)]
        assert links, f"no link to a cell: {words(row)[:80]}"
        for link in links:
            path, _, anchor = link.partition("#")
            target = (SITE / "book/appendix" / path).resolve()
            docname = target.relative_to(SITE.resolve()).as_posix().removesuffix(".html")
            assert anchor and soup(docname).find(id=anchor), f"{link} leads nowhere"
            assert target.stem in NAMES
