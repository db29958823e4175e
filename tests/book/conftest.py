"""What the tests of the book share: every page and chapter in turn, and what the chapters hold."""

import pytest
from built import CHAPTERS, PAGES, ROOT, book_index, soup


def pytest_generate_tests(metafunc):
    """A test with an argument `docname` runs for every page, with `chapter` for every chapter."""
    for name, values in (("docname", PAGES), ("chapter", CHAPTERS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, values)


@pytest.fixture(scope="session")
def index():
    """Titles, labels and numbers, as the generator reads them from the chapters."""
    return book_index.BookIndex.read(ROOT)


@pytest.fixture
def page(docname):
    """The built page of each page of the book."""
    return soup(docname)


@pytest.fixture
def chapter_page(chapter):
    """The built page of each chapter."""
    return soup(chapter)
