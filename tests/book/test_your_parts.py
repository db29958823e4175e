"""The list of the parts of a reader's GPT, and the links to it, on the built pages."""

from pathlib import PurePosixPath

from _ext.directives.your_parts import FIRST, LIST, PLACES
from built import CHAPTERS, soup

from tinytorch_book.exercises.capstone.parts import PARTS

PAGE = "book/capstone/your-gpt"


def test_each_part_links_to_the_exercise_whose_check_keeps_it():
    rows = soup(PAGE).select(f"#{LIST} tbody tr")
    assert len(rows) == len(PLACES)
    for names, row in zip(PLACES.values(), rows, strict=True):
        links = [str(link["href"]).partition("#") for link in row.select("a")]
        assert len(links) == len(names)
        for name, (page, _, label) in zip(names, links, strict=True):
            chapter = "book/" + str(PurePosixPath(page.removeprefix("../")).with_suffix(""))
            box = soup(chapter).find(id=label)
            stub = box.find_next(class_="tag_exercise-stub")
            assert f"check.{PARTS[name][0]}(" in stub.pre.get_text(), name


def test_the_card_links_to_the_list_from_the_chapter_on_the_gpt_on():
    first = CHAPTERS.index(FIRST)
    for number, chapter in enumerate(CHAPTERS):
        chips = soup(chapter).select(".tt-card .tt-parts a")
        assert [str(c["href"]).endswith(f"#{LIST}") for c in chips] == [True] * (number >= first)
        assert soup(chapter).find(id="tt-parts"), chapter
