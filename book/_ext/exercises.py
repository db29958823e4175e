"""Exercises: what the directive of sphinx-exercise leaves to be mended.

It gives the content of every exercise on a page the same HTML id. Two of them make the page invalid
and a link to that id ambiguous, so here each gets an id of its own.
"""

from docutils import nodes
from sphinx.application import Sphinx

SHARED = "exercise-content"


def tell_apart(app: Sphinx, doctree: nodes.document) -> None:
    """Number the ids of the contents, in the order of the page."""
    contents = (section for section in doctree.findall(nodes.section) if SHARED in section["ids"])
    for number, section in enumerate(contents, start=1):
        section["ids"] = [f"{SHARED}-{number}"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-read", tell_apart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
