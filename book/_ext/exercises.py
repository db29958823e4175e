"""Exercises: what sphinx-exercise and myst-nb leave to be mended.

The directive gives the content of every exercise on a page the same HTML id. Two of them make the
page invalid and a link to that id ambiguous, so here each gets an id of its own. And the line that
opens a folded cell says what is behind it: a solution, or the code of a figure.
"""

from docutils import nodes
from sphinx.application import Sphinx

SHARED = "exercise-content"
SOLUTION = "tag_exercise-solution"


def tell_apart(app: Sphinx, doctree: nodes.document) -> None:
    """Number the ids of the contents, in the order of the page."""
    contents = (section for section in doctree.findall(nodes.section) if SHARED in section["ids"])
    for number, section in enumerate(contents, start=1):
        section["ids"] = [f"{SHARED}-{number}"]


def name_folds(app: Sphinx, doctree: nodes.document) -> None:
    """Say what a folded cell holds."""
    for cell in doctree.findall(nodes.container):
        if "prompt_show" in cell:
            what = "solution" if SOLUTION in cell["classes"] else "code of the figure"
            cell["prompt_show"], cell["prompt_hide"] = f"Show the {what}", f"Hide the {what}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("doctree-read", tell_apart)
    app.connect("doctree-read", name_folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
