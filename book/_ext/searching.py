"""What the search's index leaves out: the source of formulas, and numbers, which no query finds.

How the search ranks, forgives and quotes stands in `book/_static/search.js`.
"""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish


class BookEnglish(SearchEnglish):
    """English without numbers."""

    def word_filter(self, word: str) -> bool:
        """Say whether a word may be found."""
        return not word.isdigit() and super().word_filter(word)


def leave_formulas_out(app: Sphinx) -> None:
    """Have the index see every page without its formulas."""
    index_page = getattr(app.builder, "index_page", None)
    if index_page is not None:
        app.builder.index_page = lambda pagename, doctree, title: index_page(
            pagename, without_formulas(doctree), title
        )


def without_formulas(doctree: Any) -> Any:
    """Copy a page, its formulas left out."""
    page = doctree.deepcopy()
    for formula in list(page.findall(lambda n: isinstance(n, nodes.math | nodes.math_block))):
        formula.parent.remove(formula)
    return page


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_search_language(BookEnglish)
    app.connect("builder-inited", leave_formulas_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
