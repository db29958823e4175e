"""The built pages as chapters of one book: what gives an answer away goes to the end."""

from contextlib import contextmanager

import pytest
from _ext.print import epub, pdf, printed_pages

HOME = "https://a.github.io/b/"
PAGE = """<link rel="canonical" href="{home}book/foundations/tensors.html"/>
<article class="bd-article"><section id="tensors">
<h1>Tensors<a class="headerlink" href="#tensors">#</a></h1>
<section id="predict"><h2>Predict</h2>
<div class="tt-prediction" id="predict-x"><p>Which?</p><ul>
<li class="tt-prediction__choice"><span>no</span>
<div class="tt-prediction__why"><p>Never.</p></div></li>
<li class="tt-prediction__choice tt-prediction__choice--right"><span>yes</span></li>
</ul></div>
<details class="tt-fold tt-answer"><summary>Show me</summary><p>What came out</p></details>
</section>
<div class="exercise admonition" id="ex-1"><p class="admonition-title">
<span class="caption-number">Exercise 1 </span></p></div>
<div class="cell tag_exercise-solution"><details>
<summary><p class="admonition-title">Show</p></summary>
<pre>the = "solution"</pre></details></div>
<p><a href="#predict">here</a> <a href="autograd.html#nudge">there</a>
<a href="../../x.zip">file</a></p>
<p>More to play:</p><ul class="tt-panels"><li><a href="play.html#open=ask">Ask</a></li></ul>
<script>gone()</script></section></article>"""


@pytest.fixture
def chapter(tmp_path):
    """A page of two exercises, as it is printed."""
    page = tmp_path / "book" / "foundations" / "tensors.html"
    page.parent.mkdir(parents=True)
    page.write_text(PAGE.format(home=HOME), encoding="utf-8")
    index = f'<link rel="canonical" href="{HOME}book/intro.html"/>'
    (tmp_path / "index.html").write_text(index, encoding="utf-8")
    return printed_pages.chapter(tmp_path, "Foundations", "book/foundations/tensors")


def test_a_printed_question_keeps_its_choices_without_explanations(chapter):
    box = chapter.body.select_one(".tt-prediction").get_text(" ", strip=True)
    assert box == "Prediction 1 answer Which? no yes"
    assert chapter.body.find(string="What came out").find_parent("div", class_="tt-answer")


def test_answers_and_solutions_are_the_last_section(chapter):
    *_, last = chapter.body.section.find_all("section", recursive=False)
    said = last.get_text(" ", strip=True)
    assert said == (
        'Answers Prediction 1 A, wrong. Never. B, right. Solution of exercise 1 the = "solution"'
    )
    assert chapter.body.select("details, summary, script, .headerlink, .tt-panels") == []
    assert "More to play" not in chapter.body.get_text()


def test_links_lead_to_chapters_and_files_to_the_site(chapter):
    addresses = [a["href"] for a in chapter.body.select("p:not([class]) > a")]
    assert addresses == [
        "#foundations-tensors--predict",
        "#foundations-autograd--nudge",
        f"{HOME}x.zip",
    ]


def test_every_id_is_of_its_chapter_and_every_answer_can_be_reached(chapter):
    ids = {element["id"] for element in chapter.body.select("[id]")}
    assert all(each.startswith("foundations-tensors--") for each in ids)
    reached = {a["href"][1:] for a in chapter.body.select(".tt-print-where, .tt-print-label a")}
    assert reached <= ids and len(reached) == 4


def test_a_site_that_is_not_built_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="make book"):
        printed_pages.chapters(tmp_path)


def test_a_page_that_lacks_what_is_printed_is_named_with_the_remedy(tmp_path):
    page = tmp_path / "book" / "foundations" / "tensors.html"
    page.parent.mkdir(parents=True)
    page.write_text("<main>not a chapter</main>", encoding="utf-8")
    with pytest.raises(LookupError, match=r"no article\.bd-article.*make book"):
        printed_pages.chapter(tmp_path, "Foundations", "book/foundations/tensors")


@pytest.mark.parametrize("broken", ["ho\x15 one", "a<br>b", "a&nbsp;b"])
def test_a_chapter_that_is_no_xml_is_named_and_no_epub_is_written(tmp_path, broken):
    files = {"fine.xhtml": b"<p>good</p>", "gpt.xhtml": f"<p>one\n{broken}</p>".encode()}
    with pytest.raises(ValueError, match=r"gpt\.xhtml is not XML: .* line 2, column \d"):
        epub.write(files, "<package/>", tmp_path / "book.epub")
    assert not (tmp_path / "book.epub").exists()


class Printing:
    """A page whose one place is found on `pages[i]` in the i-th pass, but moves if not reloaded."""

    def __init__(self, monkeypatch, pages):
        self.pages, self.laid_out = iter(pages), 0
        monkeypatch.setattr(pdf, "opened", contextmanager(lambda source: (yield self)))
        monkeypatch.setattr(pdf, "places", lambda path: self.found)

    def pdf(self, **_):
        self.laid_out += 1
        self.found = {"gpt": next(self.pages) + self.laid_out - 1, "block": 7}

    def reload(self):
        self.laid_out = 0

    def evaluate(self, script, filled):
        self.digits = filled[1]


@pytest.mark.parametrize("pages", [[249, 249], [99, 100, 99, 99], [249, 250, 251, 252, 252]])
def test_the_book_is_printed_until_nothing_moves(monkeypatch, tmp_path, pages):
    page = Printing(monkeypatch, pages)
    assert pdf.print_pdf(tmp_path / "book.html", tmp_path / "book.pdf") == len(pages)
    assert page.digits == {"gpt": 3, "block": 1}, "a number gets no narrower"


def test_places_that_do_not_settle_are_named(monkeypatch, tmp_path):
    Printing(monkeypatch, [249, 250] * 3)
    with pytest.raises(RuntimeError, match=r"still move: gpt \(249, then 250\)$"):
        pdf.print_pdf(tmp_path / "book.html", tmp_path / "book.pdf")
