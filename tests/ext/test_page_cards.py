"""What a page tells of itself: its description and its picture."""

import pytest
from _ext.look import page_cards
from docutils import nodes


def page(*paragraphs):
    section = nodes.section("", *(nodes.paragraph("", text) for text in paragraphs))
    return nodes.section("", section)


def test_a_description_is_whole_sentences_as_far_as_they_fit():
    text = "A short one. " + "x" * 100 + ". " + "y" * 100 + "."
    assert page_cards.description(page(text)) == f"A short one. {'x' * 100}."


def test_a_short_sentence_alone_is_no_description():
    assert page_cards.description(page("Short.", "word " * 60)).startswith("Short. word word")


def test_a_sentence_that_is_too_long_ends_between_two_words():
    told = page_cards.description(page("word " * 60))
    assert len(told) <= page_cards.LONGEST and told.endswith("word…")


def test_a_page_without_paragraphs_has_no_description():
    assert page_cards.description(nodes.section()) == ""


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
    assert page_cards.picture_of(tmp_path, pagename) == picture
