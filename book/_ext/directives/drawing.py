"""The directive that puts a drawing of `book/drawings` into a page.

    ```{drawing} scaled-dot-product
    :caption: A query meets the keys.
    ```

A page gets its SVG, which follows light and dark; a notebook gets the address of the same drawing
as a file, which the site serves from `_static/drawings`. `model` also takes `lit`, the part that it
lights.

With `:moves: NAME` the reader gets handles: `_static/moving/NAME.js` draws the picture in place of
the static one, which stays for paper and for pages without scripts, from the numbers that the
drawing's module gives it (`moving_data`).
"""

import json
import re
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from drawings import DRAWINGS, Panel, model
from drawings.parts import MOVING_DATA, PAGE
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from ..addresses import DRAWINGS as FOLDER
from ..addresses import ROOT
from .page_files import give

BOOK = ROOT / "book"
STYLE = BOOK / "_static" / "drawings.css"
MOVING = BOOK / "_static" / "moving"
ROW, GAP = 740, 24  # of a file
LINK = re.compile(rf'(?<=href="){PAGE}([^"]+)')


class drawing(nodes.General, nodes.Element):
    """A drawing, by its name; what it holds is its caption."""


class DrawingDirective(SphinxDirective):
    """Put a drawing into the page."""

    required_arguments = 1
    option_spec: ClassVar = {
        "caption": directives.unchanged_required,
        "lit": directives.unchanged_required,
        "moves": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Look the drawing up."""
        name, lit, moves = self.arguments[0], self.options.get("lit", ""), self.options.get("moves")
        try:
            found = drawing_node(name, lit, moves or "")
        except ValueError as error:
            raise self.error(str(error)) from None
        inline, messages = self.state.inline_text(self.options.get("caption", ""), self.lineno)
        found.extend(inline)
        self.set_source_info(found)
        note_sources(self.env)
        return [found, *messages]


def note_sources(env: BuildEnvironment) -> None:
    """Have the page that is read now read again when a drawing has changed."""
    for path in sorted((BOOK / "drawings").glob("*.*")):
        env.note_dependency(str(path))


def drawing_node(name: str, lit: str = "", moves: str = "") -> drawing:
    """Make the node of a drawing.

    Args:
        name: the name of the drawing.
        lit: the part of the model that is lit.
        moves: the script that makes it move.

    Raises:
        ValueError: There is no such drawing or script, it has no such part, or it has no parts.
    """
    if name not in DRAWINGS:
        raise ValueError(f"there is no drawing {name!r}; there are {', '.join(sorted(DRAWINGS))}")
    if lit and name != "model":
        raise ValueError(f"only the drawing 'model' has parts to light, not {name!r}")
    if lit and lit not in model.PARTS:
        raise ValueError(f"the model has no part {lit!r}; it has {', '.join(model.PARTS)}")
    if moves and not (MOVING / f"{moves}.js").exists():
        raise ValueError(f"there is no script {moves!r} in {MOVING.relative_to(BOOK).as_posix()}")
    return drawing("", name=name, lit=lit, moves=moves)


def described(name: str, lit: str = "") -> tuple[str, list[Panel]]:
    """Return a drawing's alternative text and its panels."""
    found = DRAWINGS[name]
    if not lit:
        return found.alt, found.draw()
    return f"{found.alt} Lit: {model.PARTS[lit]}.", found.draw(lit)


# On a page ------------------------------------------------------------------------------------


def inline(name: str, lit: str, address_of: Callable[[str], str]) -> str:
    """Return a drawing as HTML; its panels stand side by side where they fit.

    Args:
        name: the name of the drawing.
        lit: the part of the model that is lit.
        address_of: gives the address of a document, seen from the page.
    """
    alt, panels = described(name, lit)
    drawn = [LINK.subn(lambda found: address_of(f"book/{found[1]}"), p.body) for p in panels]
    said = f'aria-label="{escape(alt)}"'
    each, whole = 'aria-hidden="true"', f' role="img" {said}'
    if any(links for _, links in drawn):  # a screen reader goes from one to the next
        each, whole = f'role="group" {said}', ""
    body = "".join(
        f'<svg {each} viewBox="0 0 {p.width:g} {p.height:g}" style="--w: {p.width:g}">{svg}</svg>'
        for p, (svg, _) in zip(panels, drawn, strict=True)
    )
    return f'<div class="tt-drawing__panels"{whole}>{body}</div>'


def numbers(name: str) -> str:
    """Return the data of a figure that moves, or nothing if it needs none."""
    if name not in MOVING_DATA:
        return ""
    told = json.dumps(MOVING_DATA[name](), separators=(",", ":"), ensure_ascii=False)
    safe = told.replace("<", "\\u003c")
    return f'<script type="application/json" class="tt-moving__data">{safe}</script>\n'


def visit(translator: Any, node: drawing) -> None:
    """Open the figure."""
    builder, page = translator.builder, translator.builder.current_docname
    body = inline(node["name"], node["lit"], lambda name: builder.get_relative_uri(page, name))
    moves = node.get("moves", "")
    kind = f' data-moves="{escape(moves)}"' if moves else ""
    translator.body.append(f'<figure class="tt-drawing"{kind}>\n{body}\n{numbers(moves)}')
    translator.body.append("<figcaption>" if node.children else "")


def depart(translator: Any, node: drawing) -> None:
    """Close the figure and its caption."""
    translator.body.append("</figcaption>\n" if node.children else "")
    translator.body.append("</figure>\n")


def is_moving(node: nodes.Element) -> bool:
    """Return whether this is a drawing that moves."""
    return isinstance(node, drawing) and bool(node.get("moves"))


# As a file ------------------------------------------------------------------------------------


def address(name: str, lit: str = "") -> str:
    """Return the path of the drawing's file in the site."""
    return f"{FOLDER.as_posix()}/{name}{'-' * bool(lit)}{lit}.svg"


def as_file(name: str, lit: str = "") -> str:
    """Return a drawing as a file that needs nothing else: in light colours, on paper."""
    alt, panels = described(name, lit)
    placed, left, top, row = [], 0.0, 0.0, 0.0
    width = 0.0
    for panel in panels:
        if left and left + panel.width > ROW:
            left, top, row = 0.0, top + row + GAP, 0.0
        place = f"translate({left + GAP:g} {top + GAP:g})"
        body = re.sub("</?a\\b[^>]*>", "", panel.body)  # a picture leads nowhere
        placed.append(f'<g transform="{place}">{body}</g>')
        left, row = left + panel.width + GAP, max(row, panel.height)
        width = max(width, left)
    height = top + row
    style = STYLE.read_text(encoding="utf-8").replace("html {", "svg {", 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tt-drawing" font-size="14" role="img"'
        f' width="{width + GAP:g}" height="{height + 2 * GAP:g}"'
        f' viewBox="0 0 {width + GAP:g} {height + 2 * GAP:g}">'
        f"<title>{escape(alt)}</title><style>{style}</style>"
        f'<rect class="d-paper d-plain" width="100%" height="100%"/>{"".join(placed)}</svg>\n'
    )


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Put the files of all drawings into the site."""
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir, FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    files = [(name, "") for name in DRAWINGS] + [("model", part) for part in model.PARTS]
    for name, lit in files:
        Path(app.outdir, address(name, lit)).write_text(as_file(name, lit), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_node(drawing, html=(visit, depart))
    app.add_directive("drawing", DrawingDirective)
    give(app, is_moving, "moving/moving.css", "moving/moving.js", type="module")
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
