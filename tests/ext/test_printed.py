"""The built pages as chapters of one book: what gives an answer away goes to the end."""

import pytest
from _ext.print import printed_pages

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
    assert chapter.body.select("details, summary, script, .headerlink") == []


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
