"""The theme's faults that are mended after a page has been written."""

from accessible import mended


def test_a_fold_is_named_by_its_text():
    page = '<summary aria-label="Toggle hidden content">\n<p>Show the solution</p></summary>'
    assert mended(page) == "<summary>\n<p>Show the solution</p></summary>"


def test_the_search_button_is_named_by_its_text():
    page = '<button class="btn search-button-field x" title="S" aria-label="Search" data-a="b">S'
    assert mended(page) == '<button class="btn search-button-field x" title="S" data-a="b">S'


def test_a_search_form_gets_one_button_that_sends_it():
    page = '<form class="bd-search d-flex">\n<input>\n</form><form class="other"></form>'
    once = mended(page)
    assert once.count('type="submit"') == 1
    assert once.index('type="submit"') < once.index("</form>")
    assert mended(once) == once


def test_other_pages_stay_as_they_are():
    page = '<button aria-label="Stop">Stop</button><summary aria-label="More">More</summary>'
    assert mended(page) == page
