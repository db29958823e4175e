"""What the search's index leaves out: the source of formulas, numbers, letters in pictures, names.

No query finds the first two, and the labels of a picture come as one long word. Sphinx lists each
name of the package as an object, which the search looks through, and once more as an entry of a
printed index. The entries of pages that are not written again are kept, which Sphinx forgets.

`book/_static/search.js` ranks what is found, forgives typing errors and quotes.
"""

import json
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish


class BookEnglish(SearchEnglish):
    """English without numbers."""

    def word_filter(self, word: str) -> bool:
        """Return whether a word is indexed."""
        return not word.isdigit() and super().word_filter(word)


def slim_index(app: Sphinx) -> None:
    """Have the index see of every page only what a query can find, and that once."""
    builder: Any = app.builder
    if not hasattr(builder, "index_page"):
        return
    index_page, load_indexer = builder.index_page, builder.load_indexer

    def index_slimmed(pagename: str, doctree: Any, title: str) -> None:
        index_page(pagename, slimmed(doctree), title)

    def load_whole(docnames: Any) -> None:
        load_indexer(docnames)
        keep_entries(app, docnames)

    builder.index_page, builder.load_indexer = index_slimmed, load_whole


def keep_entries(app: Sphinx, docnames: Any) -> None:
    """Restore the entries of the last build's index: Sphinx reads back everything but them."""
    path = Path(app.outdir, "searchindex.js")
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8")
    frozen = json.loads(text[text.index("{") : text.rindex("}") + 1])
    kept: dict[str, list[tuple[str, str, str]]] = {}
    for entry, places in frozen["indexentries"].items():
        for number, place, main in places:
            kept.setdefault(frozen["docnames"][number], []).append((entry, place, "main" * main))
    unwritten = set(app.env.all_docs) - set(docnames)
    builder: Any = app.builder
    builder.indexer._index_entries.update({d: kept[d] for d in unwritten & set(kept)})


def slimmed(doctree: Any) -> Any:
    """Copy a page without its formulas, pictures and the entries of what is found as an object."""
    page = doctree.deepcopy()
    for node in list(page.findall(unwanted)):
        node.parent.remove(node)
    return page


def unwanted(node: nodes.Node) -> bool:
    """Return whether this is a formula, a picture, or the entry of the description that follows."""
    if isinstance(node, addnodes.index):
        following = node.next_node(descend=False, siblings=True)
        return isinstance(following, addnodes.desc)
    if isinstance(node, nodes.raw):
        return "<svg" in node.astext()
    return isinstance(node, nodes.math | nodes.math_block)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_search_language(BookEnglish)
    app.connect("builder-inited", slim_index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
