"""What becomes of a page on slides."""

from _ext.teaching.slides import Reader
from bs4 import BeautifulSoup

PAGE = """<article><section><h1>A</h1>
<section><h2>Why</h2><p>It follows that</p>
<div class="believe admonition"><p>Take it on trust.</p></div>
<div class="math">y</div></section>
<section><h2>Exercises</h2>
<div class="exercise admonition"><p class="admonition-title"><span class="caption-number">Exercise 1
</span> (Add, 1 point) <span class="tt-kind">write it</span></p></div>
<div class="exercise admonition"><p class="admonition-title"><span class="caption-number">Exercise 2
</span> (Find the bug, 2 points) <span class="tt-kind">debug it</span></p></div>
</section></section></article>"""


def slides():
    return Reader().chapter(BeautifulSoup(PAGE, "html.parser").article)


def test_what_may_be_believed_is_for_the_speaker_and_does_not_displace_the_lead():
    formula = slides()[0]
    assert formula.body.startswith("<p>It follows that</p>")
    assert "Take it on trust." in "".join(formula.notes) and "trust" not in formula.body


def test_exercises_are_listed_by_their_numbers_in_the_chapter():
    listed = BeautifulSoup(slides()[1].body, "html.parser").select("tr")
    assert [[cell.text for cell in row.select("td")] for row in listed] == [
        ["1", "Add", "write it", "1 point"],
        ["2", "Find the bug", "debug it", "2 points"],
    ]
