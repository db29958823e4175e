"""The page on how to use the book is short, and begins with a cell to run."""

from bs4 import Tag
from built import soup

PAGE = "book/how-to-use"
MOST = 320  # words: one screen and a half on a laptop


def words(tags):
    return sum(len(tag.get_text(" ").split()) for tag in tags)


def test_a_cell_to_run_is_the_first_thing():
    article = soup(PAGE).select_one("article")
    before = [
        tag for tag in article.select_one("div.cell").previous_siblings if isinstance(tag, Tag)
    ]
    assert [tag.name for tag in before] == ["p", "h1"]
    assert words(before[:1]) < 20


def test_it_is_short():
    article = soup(PAGE).select_one("article")
    assert words(article.select("p, li, h1, h2")) <= MOST
