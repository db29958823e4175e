"""Two chapters in print, in seconds; `make proofs` prints the whole book (test_print.py)."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from _ext.print import epub, pdf
from _ext.print.chromium import find_chromium
from _ext.print.printed_pages import PRINT, SITE, chapter, contents
from conftest import missing

TWO = ("book/foundations/tensors", "book/training/data-and-loss")  # a poor model writes there
pytestmark = pytest.mark.browser


def test_two_chapters_settle_on_paper_and_are_xml_for_an_e_reader(tmp_path):
    if find_chromium() is None:
        missing("there is no Chromium: install it, or name it in $CHROMIUM")
    PRINT.mkdir(parents=True, exist_ok=True)
    source, target = PRINT / "two.html", tmp_path / "two.pdf"
    paper, reader = ([chapter(SITE, *e) for e in contents() if e[1] in TWO] for _ in range(2))
    source.write_text(pdf.document(paper, SITE), encoding="utf-8")
    with ThreadPoolExecutor(1) as apart:  # in this thread a browser of other tests may be open
        assert apart.submit(pdf.print_pdf, source, target).result() < pdf.PASSES
    first, second = (pdf.places(target)[each.name] for each in paper)
    assert 2 < first < second - 5
    with ThreadPoolExecutor(1) as apart:
        files = apart.submit(epub.files_of, reader, SITE, source).result()
    epub.write(files, "<package/>", tmp_path / "two.epub")
