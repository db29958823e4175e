"""Tables that a screen reader can follow: each cell is read with the names of row and column."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

LONGEST = 12  # words of a name: it is read again with every cell of its row


def name_rows(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Mark the first column of each table whose rows it names."""
    for group in doctree.findall(nodes.tgroup):
        body = group.next_node(nodes.tbody)
        if group["cols"] > 1 and names([row[0].astext() for row in body.children]):
            group.next_node(nodes.colspec)["stub"] = 1


def names(cells: list[str]) -> bool:
    """Return whether these can be the names of rows: short, and no two alike.

    >>> names(["norm", "MLP"]), names(["norm", ""]), names(["norm", "norm"])
    (True, False, False)
    """
    return len({*cells}) == len(cells) and all(0 < len(c.split()) <= LONGEST for c in cells)


def scope(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Write what each head of a table names, a column or a row."""
    for start, what in ('<th class="head', "col"), ('<th class="stub', "row"):
        if "body" in context:
            named = start.replace(" ", f' scope="{what}" ')
            context["body"] = context["body"].replace(start, named)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", name_rows)
    app.connect("html-page-context", scope)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
