"""The built pages as the chapters of one book: what the PDF and the EPUB are made of.

A page that is printed has no buttons, scripts or folds. What was folded stands open, with two
exceptions: what settles a prediction or a question, and the solution of an exercise. They would
give away what the reader is asked; so they go to the end of their chapter, under *Answers*.
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag

from tinytorch import __version__

from ..addresses import ROOT
from ..built_pages import part_of, text_of, there

SITE = ROOT / "_build" / "html"
PRINT = ROOT / "_build" / "print"
PDF, EPUB, ARCHIVE = (PRINT / f"tinytorch{end}" for end in (".pdf", ".epub", "-offline.zip"))
RUNTIME = ROOT / "book" / "_runtime" / "print"
FRONT = "Before you begin"  # the part of the pages that belong to none
SITE_ALONE = {"book/playground"}  # pages that are nothing on paper
ANSWERS = "Answers"
TIMED = "Times of the machine that made this book; yours will differ."

# what works on a screen only, and what repeats in words what a screen reader is told elsewhere
SCREEN_ONLY = (
    "script, noscript, button, [hidden], a.headerlink, .tt-live-plain, .tt-live-intro, "
    ".tt-live__first, .tt-card__more > summary, .tt-answer > summary, "
    ".tt-talk, .tt-parts, .tt-card__live, .tt-panels, p:has(+ .tt-panels)"
)
CANONICAL = re.compile(r'<link\b[^>]*rel="canonical"[^>]*\bhref="([^"]*)"')
RUN_TIME = "Run time"
RIGHT = re.compile("--right$")
LETTERS = "ABCDEFGHIJ"


@dataclass
class Chapter:
    """A page of the site, made ready to be printed.

    Args:
        docname: the page, `book/foundations/tensors`.
        part: the caption of its part.
        title: its heading.
        body: its article; ids in it begin with the chapter's name.
    """

    docname: str
    part: str
    title: str
    body: Tag

    @property
    def name(self) -> str:
        """Return the chapter's unique name, such as `foundations-tensors`."""
        return name_of(self.docname)

    @property
    def question(self) -> str:
        """Return the question on the chapter's card, if it has one."""
        found = self.body.select_one(".tt-card__question")
        return found.get_text(" ", strip=True) if found else ""


def name_of(docname: str) -> str:
    """Name a page in a way that may be an id and a file.

    >>> name_of("book/foundations/tensors")
    'foundations-tensors'
    """
    return docname.removeprefix("book/").replace("/", "-")


def made_at() -> datetime:
    """Return the edition's date: SOURCE_DATE_EPOCH, else that of the last commit, else now."""
    stamp = os.environ.get("SOURCE_DATE_EPOCH")
    if not stamp:
        log = ["git", "log", "-1", "--format=%ct"]
        if shutil.which("git"):
            stamp = subprocess.run(log, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return datetime.fromtimestamp(float(stamp or time.time()), UTC)


def edition() -> str:
    """Name the edition, "Version 1.0.0, 23 November 2026"."""
    at = made_at()
    return f"Version {__version__}, {at.day} {at:%B %Y}"


@cache
def contents() -> list[tuple[str, str]]:
    """Return every page that is printed, in reading order, after the caption of its part."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    found = [(FRONT, toc["root"])]
    for part in toc["parts"]:
        for entry in part["chapters"]:
            for page in (entry, *entry.get("sections", ())):
                found.append((part.get("caption", FRONT), page["file"]))
    return [entry for entry in found if entry[1] not in SITE_ALONE]


def chapters(site: Path = SITE) -> list[Chapter]:
    """Read the built pages.

    Raises:
        FileNotFoundError: the site has not been built.
    """
    if not (site / "index.html").exists():
        raise FileNotFoundError(f"{site} holds no pages: run `make book` first")
    return [chapter(site, part, docname) for part, docname in contents()]


@cache
def home_of(site: Path) -> str:
    """Return the address at which the site is published, as its pages name it."""
    page = (site / "index.html").read_text(encoding="utf-8")
    found = there(CANONICAL.search(page), "canonical address")
    return found[1].removesuffix("index.html").removesuffix("book/intro.html")


def chapter(site: Path, part: str, docname: str) -> Chapter:
    """Read one page, and make it ready to be printed."""
    soup = BeautifulSoup((site / f"{docname}.html").read_text(encoding="utf-8"), "html.parser")
    body = part_of(soup, "article.bd-article")
    for element in body.select(SCREEN_ONLY):
        element.decompose()
    for term in body.select(".tt-card__facts dt"):
        if term.get_text(strip=True) == RUN_TIME:
            there(term.parent, "fact").decompose()
    for output in body.select(".cell.tag_nbval-ignore-output > .cell_output"):
        output.insert_before(new(soup, "p", TIMED, "tt-print-code"))
    answers = [*predictions(soup, body), *questions(soup, body), *solutions(soup, body)]
    if answers:
        part_of(body, "section").append(section(soup, answers))
    unfold(soup, body)
    title = " ".join(part_of(body, "h1").get_text().split())
    link(body, docname, home_of(site))
    return Chapter(docname, part, title, body)


# What waits for the reader ------------------------------------------------------------------------


def predictions(soup: BeautifulSoup, body: Tag) -> Iterator[Tag]:
    """Take from each prediction what gives it away; what follows in its section stays."""
    for number, box in enumerate(body.select(".tt-prediction"), start=1):
        label(soup, box, f"Prediction {number}")
        answer = answer_to(soup, box, f"Prediction {number}")
        for letter, choice in zip(LETTERS, box.select("li"), strict=False):
            reasons = choice.select_one(".tt-prediction__why")
            if mark := choice.select_one(".tt-prediction__mark"):
                mark.decompose()
            answer.append(verdict(soup, letter, is_right(choice), reasons))
        if came := box.select_one(".tt-prediction__came"):
            answer.append(came.extract())
            box.append(new(soup, "p", "Your prediction: ", "tt-print-blank"))
        yield answer


def questions(soup: BeautifulSoup, body: Tag) -> Iterator[Tag]:
    """Take the verdicts from the questions; the choices become a list."""
    for number, box in enumerate(body.select(".tt-reflect"), start=1):
        label(soup, box, f"Question {number}")
        answer = answer_to(soup, box, f"Question {number}")
        choices = new(soup, "ul", classes="tt-print-choices")
        for letter, choice in zip(LETTERS, box.select("details"), strict=False):
            reasons = part_of(choice, ".tt-reflect__verdict").extract()
            part_of(reasons, "strong").decompose()  # "Right." or "Not quite."
            answer.append(verdict(soup, letter, is_right(choice), reasons))
            item = new(soup, "li")
            item.extend(list(part_of(choice, "summary").contents))
            choices.append(item)
            choice.decompose()
        box.append(choices)
        yield answer


def solutions(soup: BeautifulSoup, body: Tag) -> Iterator[Tag]:
    """Take the solutions away from their exercises; the hints stay."""
    for cell in body.select(".cell.tag_exercise-solution"):
        exercise = there(cell.find_previous("div", class_="exercise"), "exercise")
        number = part_of(exercise, ".caption-number").get_text(strip=True)
        answer = answer_to(soup, exercise, f"Solution of {number.lower()}")
        part_of(exercise, ".admonition-title").append(where(soup, exercise, "solution"))
        for part in cell.select("summary, .cell_output"):  # the check's report, all of it passed
            part.decompose()
        answer.append(cell.extract())
        yield answer


def is_right(choice: Tag) -> bool:
    """Return whether a choice is the right one."""
    return any(RIGHT.search(name) for name in choice["class"])


def label(soup: BeautifulSoup, box: Tag, words: str) -> None:
    """Head a box with its name, and say where its answer is."""
    title = new(soup, "p", words, "tt-print-label")
    title.append(where(soup, box, "answer"))
    box.insert(0, title)


def where(soup: BeautifulSoup, box: Tag, what: str) -> Tag:
    """Link to the answer."""
    link = new(soup, "a", what, "tt-print-where reference internal std-ref")
    link["href"] = f"#answer-{box['id']}"
    return link


def answer_to(soup: BeautifulSoup, box: Tag, words: str) -> Tag:
    """Begin the answer to a box, with a link back to it."""
    answer = new(soup, "div", classes="tt-print-answer")
    answer["id"] = f"answer-{box['id']}"
    back = new(soup, "a", words, "reference internal")
    back["href"] = f"#{box['id']}"
    title = new(soup, "p", classes="tt-print-label")
    title.append(back)
    answer.append(title)
    return answer


def verdict(soup: BeautifulSoup, letter: str, right: bool, reasons: Tag | None) -> Tag:
    """Make the verdict on a choice: right or wrong, and why."""
    said = new(soup, "div", classes="tt-print-verdict")
    said.append(new(soup, "strong", f"{letter}, {'right' if right else 'wrong'}."))
    said.append(" ")
    if reasons:
        for paragraph in reasons.find_all("p", recursive=False):
            paragraph.name = "span"
        said.extend(list(reasons.contents))
    return said


def section(soup: BeautifulSoup, answers: list[Tag]) -> Tag:
    """Put the answers of a chapter together."""
    whole = new(soup, "section", classes="tt-print-answers")
    whole["id"] = ANSWERS.lower()
    whole.append(new(soup, "h2", ANSWERS))
    whole.extend(answers)
    return whole


def new(soup: BeautifulSoup, tag: str, words: str = "", classes: str = "") -> Tag:
    """Make an element."""
    attributes: dict[str, Any] = {"class": classes.split()} if classes else {}
    made = soup.new_tag(tag, attrs=attributes)
    if words:
        made.string = words
    return made


# Folds and links ----------------------------------------------------------------------------------


def unfold(soup: BeautifulSoup, body: Tag) -> None:
    """Open every fold; a heading that opens one stays, and a figure's code gets a name."""
    for summary in body.select("details > summary"):
        if summary.select_one(".admonition-title"):
            summary.replace_with(new(soup, "p", "The code of the figure", "tt-print-code"))
        else:
            summary.unwrap()
    for said in body.select(".tt-deeper__label"):  # above its heading, not a part of it
        heading = there(said.parent, "heading")
        there(said.find_next_sibling(class_="visually-hidden"), "colon").decompose()
        heading.insert_before(said.extract())
        said.name = "p"
    for fold in body.select("details"):
        fold.name = "div"
        fold.attrs.pop("open", None)


def link(body: Tag, docname: str, home: str) -> None:
    """Prefix ids with the chapter's name; point links to chapters, and others to the site."""
    page = urljoin(home, f"{docname}.html")
    names = {urljoin(home, f"{each}.html"): name_of(each) for _, each in contents()}
    drawn = {id(part) for svg in body.find_all("svg") for part in (svg, *svg.find_all(id=True))}
    for element in body.find_all(id=True):
        if id(element) not in drawn:  # a drawing's ids are its own, on whichever page
            element["id"] = f"{name_of(docname)}--{element['id']}"
    body["id"] = name_of(docname)
    for anchor in body.select("a[href]"):
        address = urljoin(page, text_of(anchor, "href"))
        place, _, fragment = address.partition("#")
        if name := names.get(place):
            anchor["href"] = f"#{name}--{fragment}" if fragment else f"#{name}"
        else:
            anchor["href"] = address


def leaves_the_book(anchor: Tag) -> bool:
    """Return whether a link leads out of the book."""
    return bool(urlsplit(text_of(anchor, "href")).scheme)
