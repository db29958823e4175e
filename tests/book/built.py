"""Where the book's parts are, and its built pages."""

import sys
from functools import cache
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
NOTEBOOKS = ROOT / "book" / "notebooks"
if str(ROOT / "book" / "_ext") not in sys.path:
    sys.path.insert(0, str(ROOT / "book" / "_ext"))

import book_index  # noqa: E402

PAGES = [docname for docname, _ in book_index.read_toc(ROOT)]
# chapters lie in a folder of their part; the landing page and the appendix are not chapters
CHAPTERS = [p for p in PAGES if p.count("/") == 2 and not p.startswith("book/appendix/")]


@cache
def soup(docname: str) -> BeautifulSoup:
    """The built page, parsed once."""
    path = SITE / f"{docname}.html"
    source = SITE / "_sources" / f"{docname}.md"
    if not path.exists():
        pytest.fail(f"{docname}.html has not been built: run `make book` first", pytrace=False)
    if source.exists() and source.read_bytes() != (ROOT / f"{docname}.md").read_bytes():
        pytest.fail(
            f"{docname}.html is older than its source: run `make book` first", pytrace=False
        )
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
