"""The book as an EPUB, for e-readers: `make epub`.

    python -m _ext.print.epub      writes _build/print/tinytorch.epub from the built site

An e-reader knows less than a browser: no custom properties of CSS, so the drawings are given the
colours that Chromium computes for them; and it wants XML, which Chromium writes. Formulas stay
MathML, with their TeX as alternative text; text takes the reader's own font and size.
"""

import re
import sys
from html import escape
from itertools import groupby
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
from xml.etree import ElementTree
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from ..addresses import ROOT
from ..built_pages import text_of, there
from .chromium import opened
from .pdf import AUTHOR, TITLE, title_page
from .printed_pages import EPUB, RUNTIME, SITE, Chapter, chapters, home_of, made_at

FONTS = ROOT / "book" / "_static" / "fonts"
EMBEDDED = ["math.woff2", "mono.woff2"]  # the text takes what the reader has chosen
FIRST, NAV, COVER = "title.xhtml", "nav.xhtml", "cover.png"
XML = '<?xml version="1.0" encoding="utf-8"?>\n'
CONTAINER = f"""{XML}<container version="1.0"
  xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/book.opf" media-type="application/oebps-package+xml"/>
</rootfiles></container>"""
PAGE = """{xml}<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"
  lang="en" xml:lang="en">
<head><meta charset="utf-8"/><title>{title}</title><link rel="stylesheet" href="epub.css"/></head>
<body>{body}</body></html>"""
TYPES = {
    ".xhtml": "application/xhtml+xml",
    ".css": "text/css",
    ".woff2": "font/woff2",
    ".png": "image/png",
}


# Chapters -----------------------------------------------------------------------------------------


def articles(book: list[Chapter], site: Path, source: Path) -> dict[str, str]:
    """Write each chapter as XML."""
    for chapter in book:
        for anchor in chapter.body.select('a[href^="#"]'):
            anchor["href"] = in_files(text_of(anchor, "href")[1:], chapter.name)
    style = Path("..", site.name, "_static", "book.css")
    body = "".join(str(chapter.body) for chapter in book)
    source.write_text(
        f'<!doctype html><html data-theme="light"><meta charset="utf-8">'
        f'<link rel="stylesheet" href="{style}"><body>{body}</body></html>',
        encoding="utf-8",
    )
    with opened(source) as page:
        page.add_script_tag(path=RUNTIME / "as_xml.js")
        xml = page.evaluate("articlesAsXml()")
    source.unlink()
    return xml


def cover(site: Path, source: Path) -> bytes:
    """Draw what a shelf shows of the book."""
    text = (RUNTIME / "cover.html").read_text(encoding="utf-8")
    static = Path("..", site.name, "_static")
    source.write_text(text.format(static=static, title=title_page("")), encoding="utf-8")
    with opened(source) as page:
        page.set_viewport_size({"width": 800, "height": 1280})
        page.evaluate("document.fonts.ready.then(() => true)")
        picture = page.screenshot()
    source.unlink()
    return picture


def in_files(place: str, here: str) -> str:
    """Address a place when each chapter is a file.

    >>> in_files("gpt--recap", "gpt"), in_files("gpt--recap", "block"), in_files("gpt", "block")
    ('#gpt--recap', 'gpt.xhtml#gpt--recap', 'gpt.xhtml')
    """
    name, inside, _ = place.partition("--")
    fragment = f"#{place}" if inside else ""
    return fragment if name == here and inside else f"{name}.xhtml{fragment}"


# What a reader's program asks for -----------------------------------------------------------------


def navigation(book: list[Chapter]) -> str:
    """Write the contents: parts, chapters, sections."""
    parts = []
    for part, of_part in groupby(book, key=lambda chapter: chapter.part):
        lines = [entry(chapter) for chapter in of_part]
        parts.append(f"<li><span>{escape(part)}</span><ol>{''.join(lines)}</ol></li>")
    return (
        f'<nav epub:type="toc" id="toc"><h1>Contents</h1><ol>'
        f'<li><a href="{FIRST}">{escape(TITLE)}</a></li>{"".join(parts)}</ol></nav>'
    )


def entry(chapter: Chapter) -> str:
    """Write a chapter and its sections in the contents."""
    sections = []
    for heading in chapter.body.find_all("h2"):
        place = text_of(there(heading.find_parent("section"), "section"), "id")
        title = heading.get_text("", strip=False)
        sections.append(f'<li><a href="{chapter.name}.xhtml#{place}">{escape(title)}</a></li>')
    inner = f"<ol>{''.join(sections)}</ol>" if sections else ""
    return f'<li><a href="{chapter.name}.xhtml">{escape(chapter.title)}</a>{inner}</li>'


def package(files: dict[str, bytes], order: list[str], home: str) -> str:
    """Write the list of all that is in the book, and what is to be known of it."""
    return (
        (RUNTIME / "package.opf")
        .read_text(encoding="utf-8")
        .format(
            identifier=uuid5(NAMESPACE_URL, home),
            title=TITLE,
            author=AUTHOR,
            home=home,
            modified=f"{made_at():%Y-%m-%dT%H:%M:%SZ}",
            manifest="".join(listed(name, content) for name, content in files.items()),
            spine="".join(f'<itemref idref="{identifier(name)}"/>' for name in order),
        )
    )


def listed(name: str, content: bytes) -> str:
    """List a file, with what a program must know to show it."""
    holds = {
        "nav": name == NAV,
        "cover-image": name == COVER,
        "mathml": b"<math" in content,
        "svg": b"<svg" in content,
    }
    says = " ".join(each for each, holds_it in holds.items() if holds_it)
    properties = f' properties="{says}"' if says else ""
    kind = TYPES[Path(name).suffix]
    return f'<item id="{identifier(name)}" href="{name}" media-type="{kind}"{properties}/>'


def identifier(name: str) -> str:
    """Name a file within the list of files."""
    return re.sub(r"[^\w-]", "-", f"file-{name}")


def files_of(book: list[Chapter], site: Path, source: Path) -> dict[str, bytes]:
    """Return the files of the book: its chapters, what stands before them, style and fonts."""
    xml = articles(book, site, source)

    def page(title: str, body: str) -> bytes:
        return PAGE.format(xml=XML, title=escape(title), body=body).encode()

    files = {
        COVER: cover(site, source),
        FIRST: page(TITLE, title_page(home_of(site))),
        NAV: page("Contents", navigation(book)),
    }
    for chapter in book:
        files[f"{chapter.name}.xhtml"] = page(chapter.title, xml[chapter.name])
    files["epub.css"] = (RUNTIME / "epub.css").read_bytes()
    return files | {font: (FONTS / font).read_bytes() for font in EMBEDDED}


def write(files: dict[str, bytes], opf: str, target: Path) -> None:
    """Pack the book: first, and plainly, what it is.

    Raises:
        ValueError: a file that must be XML is not.
    """
    inside = {"META-INF/container.xml": CONTAINER.encode(), "book/book.opf": opf.encode()}
    inside |= {f"book/{name}": content for name, content in files.items()}
    for name, content in inside.items():
        if name.endswith((".xhtml", ".xml", ".opf")):
            try:
                ElementTree.fromstring(content)
            except ElementTree.ParseError as error:
                raise ValueError(f"{name} is not XML: {error}") from None
    with ZipFile(target, "w") as archive:
        archive.writestr(ZipInfo("mimetype"), "application/epub+zip", ZIP_STORED)
        for name, content in inside.items():
            archive.writestr(ZipInfo(name), content, ZIP_DEFLATED)


def make(site: Path = SITE, target: Path = EPUB) -> None:
    """Write the EPUB of a built site."""
    target.parent.mkdir(parents=True, exist_ok=True)
    book = chapters(site)
    files = files_of(book, site, target.with_suffix(".epub.html"))
    order = [FIRST, NAV, *(f"{chapter.name}.xhtml" for chapter in book)]
    write(files, package(files, order, home_of(site)), target)
    size = target.stat().st_size / 1e6
    sys.stdout.write(f"{target}: {len(book)} chapters, {size:.1f} MB\n")


if __name__ == "__main__":
    make()
