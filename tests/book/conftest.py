"""What the tests of the book share: every page, chapter and notebook in turn."""

import pytest
from built import CHAPTERS, NAMES, PAGES, repository, soup


def pytest_generate_tests(metafunc):
    """A test with an argument `docname` runs for every page, and so on, under its short name."""
    for name, values in (("docname", PAGES), ("chapter", CHAPTERS), ("name", list(NAMES))):
        if name in metafunc.fixturenames:
            ids = [value.rsplit("/", 1)[-1] for value in values]
            metafunc.parametrize(name, values, ids=ids)


@pytest.fixture
def index():
    """The repository and its site, as `_config.yml` names them."""
    return repository()


@pytest.fixture
def page(docname):
    """The built page of each page of the book."""
    return soup(docname)


@pytest.fixture
def chapter_page(chapter):
    """The built page of each chapter."""
    return soup(chapter)
