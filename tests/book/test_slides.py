"""Every part has a deck of slides, which holds what its chapters say."""

from functools import cache

import pytest
from _ext.live.pinned_downloads import missing
from _ext.teaching.slides import FOLDER, parts
from bs4 import BeautifulSoup
from built import CHAPTERS, ROOT, SITE, soup

PARTS = parts(ROOT)


@cache
def deck(folder):
    path = SITE / FOLDER / f"{folder}.html"
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def slides_of(chapter):
    """The slides from a chapter's first one up to the next chapter's."""
    _, folder, name = chapter.split("/")
    first = deck(folder).find("section", id=name)
    found = [first]
    for slide in first.find_next_siblings("section"):
        if slide.get("id"):
            break
        found.append(slide)
    return found


def words(tag):
    return " ".join(tag.get_text().split())


def test_every_chapter_is_in_a_deck():
    assert sorted(file for _, files in PARTS.values() for file in files) == sorted(CHAPTERS)


def test_a_chapter_opens_with_its_question_beside_the_map(chapter):
    first = slides_of(chapter)[0]
    card = soup(chapter).select_one(".tt-card")
    assert words(first.select_one(".tt-card__question")) == words(
        card.select_one(".tt-card__question")
    )
    assert first.select_one("figure.tt-drawing svg") or not card.select("figure")


def test_a_chapters_drawings_outside_its_folds_are_on_its_slides(chapter):
    """Each is known by the words that say what one would see in it."""
    article = soup(chapter).select_one("article")
    folded = {id(d) for d in article.select(".tt-card figure, .tt-deeper figure")}
    said = {
        d.select_one("[aria-label]")["aria-label"]
        for d in article.select("figure.tt-drawing")
        if id(d) not in folded
    }
    shown = {t["aria-label"] for s in slides_of(chapter) for t in s.select("[aria-label]")}
    assert said and said <= shown


def test_a_chapter_asks_its_prediction_and_ends_with_its_recap(chapter):
    slides = slides_of(chapter)
    asked = words(soup(chapter).select_one(".tt-prediction__question"))
    assert any(asked in words(slide) for slide in slides), "its prediction"
    assert words(slides[-1].h2) == "Recap" and slides[-1].select("li")
    right = [s for s in slides if "tt-slide--question" in s["class"] and s.select("ol, .fragment")]
    assert all(slide.select(".fragment") for slide in right), "the answer comes at a key"


def test_links_of_a_deck_lead_to_pages(chapter):
    for slide in slides_of(chapter):
        for link in slide.select("a[href]"):
            address = str(link["href"]).partition("#")[0]
            if not address.startswith(("http", "mailto:")):
                assert (SITE / FOLDER / address).resolve().exists(), address


def test_the_library_is_the_pinned_one():
    assert missing("slides") == []


@pytest.mark.parametrize("folder", PARTS)
def test_ids_of_a_deck_are_unique(folder):
    ids = [tag["id"] for tag in deck(folder).find_all(id=True)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("folder", PARTS)
def test_the_map_is_dimmed_beside_a_part_of_it_alone(folder):
    links = deck(folder).select(".tt-slide .tt-drawing a[href^='../book/']")
    dim = [link.get("opacity") for link in links]
    own = [f"/{folder}/" in link["href"] for link in links]
    assert dim == [None if mine or not any(own) else "0.3" for mine in own] and dim
