"""The parts of the reader's own GPT: which exercise builds each, and how many are theirs.

    ```{your-parts}
    ```

is the list of all parts, each with the exercise that builds it and its chapter; the exercises are
found by their checks while the chapters are read. From the chapter on the GPT on, each card links
to this list. In the page, `live/own_parts.js` counts there, and in the list, what is the reader's.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import is_exercise_node

from tinytorch_book.exercises.capstone.parts import PARTS, place_of

from ..addresses import reading_order
from .chapter_card import add_to_card
from .elements import build
from .exercises import title_and_points

logger = logging.getLogger(__name__)

FIRST = "book/transformer/gpt"  # the first page whose card speaks of the reader's parts
LIST = "your-parts"  # the id of the list
CHECK = re.compile(r"^check\.(\w+)\(", re.MULTILINE)
SAID = {  # what a part is called when it has become the reader's
    "merges": "The merges are",
    "encode": "The encoder is",
    "lookup": "The lookup is",
    "lookup gradient": "The gradient of the lookup is",
    "positions": "The positions are",
    "positions gradient": "The gradient of the positions is",
    "mask": "The mask is",
    "attention": "Attention is",
    "attention gradient": "The gradient of attention is",
    "heads": "The heads are",
    "heads with a cache": "The heads with a cache are",
    "norm": "The norm is",
    "mlp": "The MLP is",
    "block": "The block is",
    "model": "The model’s frame is",
    "loss": "The loss is",
    "clip": "Clipping is",
    "schedule": "The schedule is",
    "optimiser": "The optimiser is",
    "temperature": "The temperature is",
    "top-p": "Top-p is",
    "draw": "The draw is",
    "write": "The loop that writes is",
}


PLACES = {place_of(name): [n for n in PARTS if place_of(n) == place_of(name)] for name in PARTS}


class list_of_parts(nodes.General, nodes.Element):
    """Stands for the list until all chapters have been read."""


class YourParts(SphinxDirective):
    """Leave a place for the list of the parts."""

    def run(self) -> list[nodes.Node]:
        """Note the page, which is written again whenever a chapter has been read."""
        env: Any = self.env
        env.your_parts_page = env.docname
        place = list_of_parts()
        self.set_source_info(place)
        return [place]


# What the chapters say ------------------------------------------------------------------------


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Note which exercises of a page build a part: by the check that ends their stubs."""
    part_of = {check: part for part, (check, _) in PARTS.items()}
    for number, (box, check) in enumerate(checked(doctree), start=1):
        if check in part_of:
            found = app.env.docname, number, box["label"], title_and_points(box)[0]
            built_by(app.env)[part_of[check]] = found


def checked(doctree: nodes.document) -> Iterator[tuple[nodes.Element, str]]:
    """Find the exercises of a page, and the check that each of them asks."""
    box = None
    for node in doctree.findall(nodes.Element):
        if is_exercise_node(node):
            box = node
        elif box is not None and "tag_exercise-stub" in node.get("classes", ()):
            names = CHECK.findall(node.astext())
            yield box, names[-1] if names else ""
            box = None


def built_by(env: Any) -> dict[str, tuple[str, int, str, str]]:
    """Return of each part the page, the number, the label and the title of its exercise."""
    if not hasattr(env, "your_parts"):
        env.your_parts = {}
    return env.your_parts


def forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget the exercises of a page that is read again."""
    for part in [part for part, found in built_by(env).items() if found[0] == docname]:
        del built_by(env)[part]


def merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    """Take over what another process has read."""
    built_by(env).update({p: f for p, f in built_by(other).items() if f[0] in docnames})
    if getattr(other, "your_parts_page", None) in docnames:
        env.your_parts_page = other.your_parts_page  # type: ignore[attr-defined]


def page_of_the_list(app: Sphinx, env: Any) -> list[str]:
    """Write the page with the list again whenever a chapter has been read."""
    page = getattr(env, "your_parts_page", None)
    return [page] if page is not None and page in env.all_docs else []


# What the pages show --------------------------------------------------------------------------


def where(app: Sphinx, part: str, docname: str) -> tuple[str, str]:
    """Say which exercise builds a part, "Exercise 3 of Tensors", and give its address."""
    page, number, label, _ = built_by(app.env)[part]
    text = f"Exercise {number}"
    text += f" of {app.env.titles[page].astext()}" if page != docname else ""
    return text, f"{app.builder.get_relative_uri(docname, page)}#{label}"


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put the list into its place; all chapters have been read by now."""
    for place in list(doctree.findall(list_of_parts)):
        if missing := [part for part in PARTS if part not in built_by(app.env)]:
            logger.warning("no exercise builds %s", ", ".join(missing), location=place)
        group = nodes.tgroup("", nodes.colspec(colwidth=1), nodes.colspec(colwidth=1), cols=2)
        group += nodes.thead(
            "", row([nodes.Text("part")], [nodes.Text("the exercise that builds it")])
        )
        group += nodes.tbody("", *(row_of(app, name, docname) for name in PLACES))
        place.replace_self(nodes.table("", group, ids=[LIST], classes=["tt-parts__list"]))


def row_of(app: Sphinx, place: str, docname: str) -> nodes.row:
    """Set a part beside the exercise that builds it, or the two of them."""
    links: list[nodes.Node] = []
    for part in (part for part in PLACES[place] if part in built_by(app.env)):
        text, address = where(app, part, docname)
        links += [nodes.Text(" or ")] if links else []
        links += [nodes.reference("", text, refuri=address, internal=True)]
        links += [nodes.Text(f", {built_by(app.env)[part][3]}")]
    made = row([nodes.strong("", place), nodes.Text(f" {PARTS[place][1]}")], links)
    made["ids"] = [f"part-{place.replace(' ', '-')}"]
    return made


def row(*cells: list[nodes.Node]) -> nodes.row:
    """Make a row of a table."""
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))


def add_chip(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link from the card of a chapter to the list; `own_parts.js` counts there."""
    if app.builder.format != "html" or docname not in later_pages(app.env):
        return
    page = getattr(app.env, "your_parts_page", None)
    if page is None:
        return
    address = f"{app.builder.get_relative_uri(docname, page)}#{LIST}"
    link = nodes.reference("", f"{len(PLACES)} parts", refuri=address, internal=True)
    add_to_card(doctree, build("p", nodes.Text("Your own GPT has "), link, classes="tt-parts"))


def later_pages(env: Any) -> list[str]:
    """Name the pages from the one on the GPT on, in reading order."""
    pages = reading_order(env)
    return pages[pages.index(FIRST) :] if FIRST in pages else []


def tell_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Tell a page with cells which parts there are, and where each of them is built."""
    page = getattr(app.env, "your_parts_page", None)
    if page is None or "kernelspec" not in app.env.metadata.get(pagename, {}):
        return
    parts = []
    for name in (name for name in PARTS if name in built_by(app.env)):
        text, address = where(app, name, pagename)
        said = {"name": name, "place": place_of(name), "said": SAID[name]}
        parts.append({**said, "where": text, "href": address})
    told = {"list": f"{app.builder.get_relative_uri(pagename, page)}#{LIST}", "parts": parts}
    text = json.dumps(told, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    context["body"] += f'<script type="application/json" id="tt-parts">{text}</script>'


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_node(list_of_parts)
    app.add_directive("your-parts", YourParts)
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("env-updated", page_of_the_list)
    app.connect("doctree-resolved", fill)
    app.connect("doctree-resolved", add_chip)
    app.connect("html-page-context", tell_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
