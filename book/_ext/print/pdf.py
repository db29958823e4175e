"""The book as a PDF, printed by Chromium: `make pdf`.

    python -m _ext.print.pdf       writes _build/print/tinytorch.pdf from the built site

Chromium lays out what the site shows, so formulas (MathML), drawings (SVG) and fonts are the same,
and sharp; it tags what it prints for screen readers and makes the outline of the headings. But it
knows no page numbers before it has printed. So it prints more than once: with blanks, from which
the places of all that is linked to are read, then with these, until no place moves any more. A
number is as wide as its count of digits says, and gets no narrower: places cannot take turns. The
page is loaded each time: what Chromium has laid out before, it parts at other places.
"""

import re
import sys
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import pikepdf
from bs4 import BeautifulSoup, Tag

from ..built_pages import text_of, there
from .chromium import opened
from .printed_pages import (
    PDF,
    RUNTIME,
    SITE,
    Chapter,
    chapters,
    edition,
    home_of,
    leaves_the_book,
    new,
)

TITLE, AUTHOR = "TinyTorch: embeddings to GPT", "The TinyTorch Book authors"
BLANK, PASSES = "000", 6
INDEX, REFERENCE = "Index", "book/appendix/api/"
GLOSSARY = "appendix-glossary"
ON_EACH_PAGE = {"Predict", "Reflect", "Recap"}  # sections that the contents need not name
LONG = 14  # lines of code that may be parted by the end of a page
FILL = """([places, digits]) => document.querySelectorAll('.tt-page').forEach(number => {
    number.textContent = places[number.dataset.to] ?? '000';
    number.style.minWidth = `${digits[number.dataset.to] ?? 3}ch`;
    const before = number.parentElement.previousElementSibling;  // in the index, once a page
    number.parentElement.hidden = number.closest('.tt-print-index') !== null
        && before !== null && before.textContent === number.textContent;
})"""
# a page's margins: at its outer edge the number, at its inner one where in the book it is
RUNNING = """
@page {name}:left {{ @top-left {{ content: counter(page) }} @top-right {{ content: "{part}" }} }}
@page {name}:right {{ @top-left {{ content: "{title}" }} @top-right {{ content: counter(page) }} }}
[id="{name}"] {{ page: {name} }}
"""
GOES_ON = '[id="{name}"] {{ page: appendix-api; break-before: auto }}'
HEADING = re.compile("^h[1-5]$")
NAMES_ITS_PLACE = {"std-ref", "std-numref", "std-doc", "doc"}  # links to a place, not to a word
ADDRESS_IN_WORDS = re.compile(r"^(doi|arXiv):")


# The document -------------------------------------------------------------------------------------


def document(book: list[Chapter], site: Path) -> str:
    """Write the whole book as one page."""
    style = Path("..", site.name, "_static", "book.css")
    found = index(book)  # marks what it names before the chapters are written
    running = "".join(running_heads(chapter) for chapter in book)
    running += RUNNING.format(name=INDEX.lower(), part=INDEX, title=INDEX)
    return f"""<!doctype html>
<html lang="en" data-theme="light">
<head><meta charset="utf-8"><title>{TITLE}</title>
<link rel="stylesheet" href="{style}">
<style>{(RUNTIME / "print.css").read_text(encoding="utf-8")}{running}</style></head>
<body>{title_page(home_of(site))}{table_of_contents(book)}{"".join(body(book))}{found}</body></html>"""


def running_heads(chapter: Chapter) -> str:
    """Style the margins of a chapter's pages; those of the reference follow one another."""
    if chapter.docname.startswith(REFERENCE):
        return GOES_ON.format(name=chapter.name)
    part, title = (text.replace('"', r"\"") for text in (chapter.part, chapter.title))
    return RUNNING.format(name=chapter.name, part=part, title=title)


def title_page(home: str) -> str:
    """Write the first page."""
    return (RUNTIME / "title.html").read_text(encoding="utf-8").format(home=home, edition=edition())


def table_of_contents(book: list[Chapter]) -> str:
    """Write the table of contents: parts, and chapters with the question that each answers."""
    lines = []
    for part, of_part in groupby(book, key=lambda chapter: chapter.part):
        lines.append(f"<li><p>{escape(part)}</p><ol>")
        for chapter in of_part:
            asked = f' <span class="tt-print-asked">{escape(chapter.question)}</span>'
            lines.append(
                f'<li><a href="#{chapter.name}"><span>{escape(chapter.title)}'
                f"{asked if chapter.question else ''}</span>{number(chapter.name)}</a>"
                f"{sections(chapter)}</li>"
            )
        lines.append("</ol></li>")
    place = INDEX.lower()
    lines.append(f'<li><a href="#{place}"><span>{INDEX}</span>{number(place)}</a></li>')
    return f"""<nav class="tt-print-contents" aria-labelledby="contents">
<h1 id="contents">Contents</h1><ol>{"".join(lines)}</ol></nav>"""


def sections(chapter: Chapter) -> str:
    """List the sections of a chapter; one of the reference has none worth a line."""
    if chapter.docname.startswith(REFERENCE):
        return ""
    found = []
    for heading in chapter.body.select("h2"):
        place = text_of(there(heading.find_parent("section"), "section"), "id")
        title = heading.get_text().strip()
        if title in ON_EACH_PAGE:
            continue
        found.append(f'<a href="#{place}">{escape(title)} {number(place)}</a>')
    return f'<p class="tt-print-sections">{" ".join(found)}</p>' if found else ""


def index(book: list[Chapter]) -> str:
    """Write the index: the glossary's terms, each with the pages that refer to it."""
    used: dict[str, list[str]] = {}
    for chapter in book:
        if chapter.name != GLOSSARY:
            for anchor in chapter.body.select(f'a[href^="#{GLOSSARY}--term-"]'):
                term = text_of(anchor, "href")[1:]
                name = f"{term}--{len(used.setdefault(term, []))}"
                anchor["id"] = name
                used[term].append(name)
    terms = (term for chapter in book for term in chapter.body.select("dl.glossary > dt[id]"))
    lines = []
    for entry in sorted(terms, key=lambda entry: entry.get_text().casefold()):
        own = text_of(entry, "id")
        places = [*used.get(own, ()), own]
        pages = "".join(f'<a href="#{place}">{number(place)}</a>' for place in places)
        lines.append(f"<li><span>{escape(entry.get_text().strip())}</span>{pages}</li>")
    return (
        f'<section class="bd-article tt-print-index" id="{INDEX.lower()}"><h2>{INDEX}</h2>'
        f"<ul>{''.join(lines)}</ul></section>"
    )


def number(place: str) -> str:
    """Write the number of the page on which something stands, blank at first."""
    return f'<span class="tt-page" data-to="{escape(place)}">{BLANK}</span>'


def body(book: list[Chapter]) -> Iterator[str]:
    """Write parts and chapters."""
    for place, (part, of_part) in enumerate(groupby(book, key=lambda chapter: chapter.part)):
        first = next(of_part)
        heading = f'<h1 class="tt-print-part" id="part-{place}">{escape(part)}</h1>'
        style = f'style="page: {first.name}"'  # another page's name would be another page
        yield f'<section class="tt-print-first" {style}>{heading}{article(first)}</section>'
        yield from map(article, of_part)


def article(chapter: Chapter) -> str:
    """Write a chapter: headings under that of its part, places with numbers, addresses in full."""
    soup = BeautifulSoup("", "html.parser")
    for heading in chapter.body.find_all(HEADING):
        heading.name = f"h{int(heading.name[1]) + 1}"
        for words in heading.find_all(string=True):
            words.replace_with(words.replace("\n", " "))  # the outline would join two lines
    for drawing in chapter.body.select("figure > [role=img]"):  # its words are tagged here alone
        figure = there(drawing.parent, "figure")
        figure["role"] = drawing.attrs.pop("role")
        figure["aria-label"] = drawing.attrs.pop("aria-label")
    for code in chapter.body.find_all("pre"):
        if code.get_text().count("\n") >= LONG:
            long: Any = [*(code.get("class") or []), "tt-print-long"]
            code["class"] = long
    for anchor in chapter.body.select("a[href]"):
        if anchor.find_parent("svg"):
            continue
        if leaves_the_book(anchor):
            if ADDRESS_IN_WORDS.sub("", anchor.get_text()) not in text_of(anchor, "href"):
                anchor.insert_after(new(soup, "span", f" <{anchor['href']}>", "tt-print-address"))
        elif is_far(anchor, chapter):
            anchor.insert_after(page_of(text_of(anchor, "href")[1:]))
    return str(chapter.body)


def is_far(anchor: Tag, chapter: Chapter) -> bool:
    """Return whether a link leads to a place that the reader has to turn pages for."""
    inner = anchor.find("span")
    kinds = {*anchor["class"], *((inner.get("class") or []) if inner else [])}
    place = text_of(anchor, "href")[1:]
    of_here = place.startswith(f"{chapter.name}--")
    return bool(kinds & NAMES_ITS_PLACE) and (not of_here or "--answer-" in place)


def page_of(place: str) -> Tag:
    """Return the page reference that follows a link."""
    return BeautifulSoup(f'<span class="tt-print-page"> (p. {number(place)})</span>', "html.parser")


# The file -----------------------------------------------------------------------------------------


def print_pdf(source: Path, target: Path) -> int:
    """Print a page until its page numbers are right; say how often that was.

    Raises:
        RuntimeError: the numbers do not settle.
    """
    found: dict[str, int] = {}
    digits: dict[str, int] = {}
    with opened(source) as page:
        for times in range(1, PASSES + 1):
            last = times > 1  # the first never is: its numbers are blank
            page.pdf(path=target, tagged=last, outline=last, prefer_css_page_size=True)
            before, found = found, places(target)
            if found == before:
                return times
            digits |= {name: max(digits.get(name, 0), len(str(n))) for name, n in found.items()}
            page.reload()
            page.evaluate(FILL, [found, digits])
    moved = [
        f"{name} ({before.get(name)}, then {n})"
        for name, n in found.items()
        if before.get(name) != n
    ]
    raise RuntimeError(f"after {PASSES} passes some places still move: {', '.join(moved)}")


def places(path: Path) -> dict[str, int]:
    """Read on which page each linked place stands."""
    with pikepdf.open(path) as pdf:
        pages: Any = pdf.pages
        numbers = {page.objgen: place for place, page in enumerate(pages, start=1)}
        named = pdf.Root.Dests
        return {name[1:]: numbers[target[0].objgen] for name, target in named.items()}


def page_labels(first: int) -> pikepdf.Dictionary:
    """Number the pages before the first chapter in Roman numerals, the others as is printed."""
    roman = pikepdf.Dictionary(S=pikepdf.Name.r)
    arabic = pikepdf.Dictionary(S=pikepdf.Name.D, St=first)
    return pikepdf.Dictionary(Nums=pikepdf.Array([0, roman, first - 1, arabic]))


def finish(path: Path, target: Path, first: int) -> None:
    """Add metadata and compress: most of what Chromium writes is uncompressed.

    Args:
        path: what Chromium has printed.
        target: where the PDF goes.
        first: the page on which the first chapter begins.
    """
    with pikepdf.open(path) as pdf:
        pdf.Root.PageLabels = page_labels(first)
        pdf.Root.ViewerPreferences = pikepdf.Dictionary(DisplayDocTitle=True)
        pdf.Root.PageMode = pikepdf.Name.UseOutlines
        for entry in pdf.objects:  # a heading in two fonts, as of "√d", comes twice
            if isinstance(entry, pikepdf.Dictionary) and {"/Title", "/Parent"} <= set(entry.keys()):
                title = str(entry.Title)
                half = title[: len(title) // 2]
                entry.Title = half if title == 2 * half else title
        with pdf.open_metadata(set_pikepdf_as_editor=False) as about:
            about["dc:title"], about["dc:creator"], about["dc:language"] = TITLE, [AUTHOR], ["en"]
            about["dc:description"] = edition()
        for changing in ("/CreationDate", "/ModDate", "/Creator"):
            if changing in pdf.docinfo:
                del pdf.docinfo[changing]
        pdf.save(
            target,
            object_stream_mode=pikepdf.ObjectStreamMode.generate,
            compress_streams=True,
            recompress_flate=True,
            deterministic_id=True,
        )


def make(site: Path = SITE, target: Path = PDF) -> None:
    """Write the PDF of a built site."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source, raw = target.with_suffix(".pdf.html"), target.with_suffix(".raw.pdf")
    book = chapters(site)
    source.write_text(document(book, site), encoding="utf-8")
    times = print_pdf(source, raw)
    finish(raw, target, places(raw)[book[0].name])
    with pikepdf.open(target) as pdf:
        pages = len(pdf.pages)
    raw.unlink()
    source.unlink()
    sys.stdout.write(
        f"{target}: {pages} pages, {target.stat().st_size / 1e6:.1f} MB ({times} passes)\n"
    )


if __name__ == "__main__":
    make()
