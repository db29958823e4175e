"""What the search's index leaves out: formulas' source, numbers, and names that it has already.

No query finds the first two. Sphinx lists each name of the package as an object, which the search
looks through, and once more as an entry of a printed index.

How the search ranks, forgives and quotes stands in `book/_static/search.js`.
"""

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish


class BookEnglish(SearchEnglish):
    """English without numbers."""

    def word_filter(self, word: str) -> bool:
        """Say whether a word may be found."""
        return not word.isdigit() and super().word_filter(word)


def slim_index(app: Sphinx) -> None:
    """Have the index see of every page only what a query can find, and that once."""
    index_page = getattr(app.builder, "index_page", None)
    if index_page is not None:
        app.builder.index_page = lambda pagename, doctree, title: index_page(
            pagename, slimmed(doctree), title
        )


def slimmed(doctree: Any) -> Any:
    """Copy a page, its formulas left out and the entries of what is found as an object."""
    page = doctree.deepcopy()
    for node in list(page.findall(unwanted)):
        node.parent.remove(node)
    return page


def unwanted(node: nodes.Node) -> bool:
    """Say whether this is a formula, or the entry of the description that follows."""
    if isinstance(node, addnodes.index):
        following = node.next_node(descend=False, siblings=True)
        return isinstance(following, addnodes.desc)
    return isinstance(node, nodes.math | nodes.math_block)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_search_language(BookEnglish)
    app.connect("builder-inited", slim_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
