"""What a page tells of itself: its description, and where its links lead when it is moved."""

import pytest
from _ext.look import sharing
from docutils import nodes


def page(*paragraphs):
    section = nodes.section("", *(nodes.paragraph("", text) for text in paragraphs))
    return nodes.section("", section)


def test_a_description_is_whole_sentences_as_far_as_they_fit():
    text = "A short one. " + "x" * 100 + ". " + "y" * 100 + "."
    assert sharing.description(page(text)) == f"A short one. {'x' * 100}."


def test_a_short_sentence_alone_is_no_description():
    assert sharing.description(page("Short.", "word " * 60)).startswith("Short. word word")


def test_a_sentence_that_is_too_long_ends_between_two_words():
    told = sharing.description(page("word " * 60))
    assert len(told) <= sharing.LONGEST and told.endswith("word…")


def test_a_page_without_paragraphs_has_no_description():
    assert sharing.description(nodes.section()) == ""


@pytest.mark.parametrize(
    ("pagename", "picture"),
    [
        ("book/training/optimisation", "training"),
        ("book/intro", "book"),
        ("book/appendix/glossary", "book"),
        ("book/appendix/api/core", "book"),
        ("search", "book"),
    ],
)
def test_a_page_has_the_picture_of_its_part(pagename, picture, tmp_path):
    folder = tmp_path / "book" / "_static" / "cards"
    folder.mkdir(parents=True)
    (folder / "training.png").touch()
    assert sharing.picture_of(tmp_path, pagename) == picture


def test_what_leads_elsewhere_or_stays_on_the_page_is_not_touched():
    text = '<a href="https://x.org/y"><a href="#z"><a href="/q"><a href="mailto:a@b.c">'
    assert sharing.moved(text, "/site/") == text


def test_the_root_that_scripts_read_is_moved_too():
    assert sharing.moved('<html data-content_root="../">', "", "/book/intro.html") == (
        '<html data-content_root="./">'
    )
    assert sharing.moved('<html data-content_root="./">', "/s/") == '<html data-content_root="/s/">'
