"""The page for teachers has every chapter, every exercise and every project."""

import re

import pytest
from built import CHAPTERS, ROOT, soup

PAGE = "book/appendix/teaching"
CARD = re.compile(r"```\{chapter-card\}\n(.*?)```", re.S)
EXERCISE = re.compile(r"\{exercise\}[^\n]*\n((?::[^\n]*\n)+)")


def text_of(chapter):
    return (ROOT / f"{chapter}.md").read_text(encoding="utf-8")


def options(chapter):
    """The options of each exercise of a chapter, by its label."""
    found = [dict(re.findall(r":(\w+): (.*)", o[1])) for o in EXERCISE.finditer(text_of(chapter))]
    return {exercise["label"]: exercise for exercise in found}


def table(what):
    """The rows of a table of the page, whose first heads are these."""
    for found in soup(PAGE).select("article table"):
        if [th.get_text() for th in found.select("th")][: len(what)] == what:
            yield from found.select("tbody tr")


def linked(rows):
    """What rows link to: pages, and labels on them."""
    return [str(a["href"]).rpartition("/")[2] for row in rows for a in row.select("a")]


def page_of(chapter):
    return f"{chapter.rsplit('/', 1)[-1]}.html"


def test_every_exercise_is_listed_beside_an_aim(chapter):
    rows = list(table(["chapter", "at the end you can"]))
    links = linked(rows)
    for label in options(chapter):
        assert links.count(f"{page_of(chapter)}#{label}") == 1, label
    assert all(row.select("td")[1].get_text().strip() for row in rows)


def test_an_exercise_is_listed_beside_the_aim_it_names(chapter):
    aims = re.findall(r"(?m)^- ((?:.|\n  )*)", CARD.search(text_of(chapter))[1])
    for label, exercise in options(chapter).items():
        if "aim" not in exercise:
            continue
        row = next(
            r
            for r in table(["chapter", "at the end you can"])
            if f"{page_of(chapter)}#{label}" in linked([r])
        )
        assert int(exercise["aim"]) <= len(aims)
        said = re.sub(r"\W+", "", row.select("td")[1].get_text())
        assert said == re.sub(r"\W+", "", aims[int(exercise["aim"]) - 1]), label


def read_in(weeks):
    """The chapters of the course of so many weeks: all but those that it leaves out."""
    text = text_of(PAGE)
    course = next(
        found
        for found in re.findall(r"```\{syllabus\}\n(.*?)```", text, re.S)
        if len(re.findall(r"(?m)^[a-z][^|\n]*\|", found)) == weeks
    )
    without = (re.search(r"(?m)^:without: (.*)$", course) or ["", ""])[1].split()
    return [
        c
        for c in CHAPTERS
        if not any(c == f"book/{name}" or c.startswith(f"book/{name}/") for name in without)
    ]


def rows_of(weeks):
    """The rows of the syllabus of so many weeks, and the row of the whole course."""
    tables = [t for t in soup(PAGE).select("article table") if t.th.get_text() == "week"]
    return next(t for t in tables if len(t.select("tbody tr")) == weeks + 1).select("tbody tr")


@pytest.mark.parametrize("weeks", [6, 12])
def test_no_week_of_a_syllabus_has_more_than_three_chapters(weeks):
    assert all(0 < len(linked([row])) <= 3 for row in rows_of(weeks)[:-1])


@pytest.mark.parametrize("weeks", [6, 12])
def test_a_syllabus_has_its_chapters_once_and_sums_the_hours_of_the_cards(weeks):
    rows, read = rows_of(weeks), read_in(weeks)
    assert linked(rows) == [page_of(chapter) for chapter in read]
    told = re.search(r"([\d.]+) h, .*; (\d+) exercises", rows[-1].get_text())
    hours = sum(minutes_of(chapter) for chapter in read) / 60
    assert abs(float(told[1]) - hours) <= 0.05 + len(read) * 0.5 / 60  # as they are rounded
    assert int(told[2]) == sum(len(options(chapter)) for chapter in read)


def minutes_of(chapter):
    return int(re.search(r"\d+", soup(chapter).select_one(".tt-card__reading").get_text())[0])


def test_all_open_projects_are_listed_with_their_prerequisites():
    wanted = [
        f"{page_of(c)}#{label}"
        for c in CHAPTERS
        for label, exercise in options(c).items()
        if exercise.get("kind") == "project"
    ]
    rows = list(table(["project"]))
    assert [href for href in linked(rows) if "#" in href] == wanted
    assert all("aim" in row.select("td")[-1].get_text() for row in rows)
