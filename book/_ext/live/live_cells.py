"""Cells that run in the reader's browser: what each page is told about its own.

What runs them is in `book/_static/live`, the page's scripts; what the site holds for it is in
`live_site.py`. Here each page is told about its cells: their tags, what they took when the book was
built, whether there is a smaller run.

A cell's options may say

    tags: [live-skip]               not to be run in the browser
    tags: [live-varies]             prints other words there: its products round in another order
    live: {smaller: steps = 60}     offer the same cell with this number for `steps`
"""

import html
import json
import re
from pathlib import Path
from typing import Any

from _static.live.cell_names import missing_names, needed_cells
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from ..execution.cell_times import MEASURED, TIMES, key_of, read_json
from ..launch_links import RUN_HERE, launch_links
from .live_site import start_of

logger = logging.getLogger(__name__)

PLACES = ("Colab", "Binder", "JupyterLite")  # where more is possible than in a page
SHORT = 2  # seconds: shorter cells are not kept among the measured ones
SLOWER = 2  # times longer than natively, for a longer cell that was not measured
REPORT = re.compile(r"\w+: not yet\n")
FIRST = {True: "Write it, then press Check.", False: "Change it, then press Check."}
INTRO = (
    "Every cell of this page runs here: press Run or change the code. Python, about {megabytes} MB,"
    " is loaded at the first press or, on an unmetered connection, shortly before; the browser then"
    " keeps it. What you write stays on this page."
)
RUN_ALL = '<button type="button" class="tt-live__all" disabled>Run all cells</button>'
# The way on of a reader who has solved something: only then it has room, before anything is drawn.
# The scripts name the place; should they not come, the path is there.
CONTINUE = (
    '<p class="tt-continue" hidden>'
    '<a href="first-words/counting-letters.html">The first chapter</a></p>'
    "<script>try{document.currentScript.previousElementSibling"
    '.hidden=!Object.keys(localStorage).some(key=>key.startsWith("tinytorch-book:solved "))}catch{}'
    "</script>"
)
NAMED_NUMBER = re.compile(r"([A-Za-z_]\w*)\s*=\s*(\d[\d_]*)")


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Note the cells and exercises of a page, in their order."""
    env: Any = app.env
    docname = env.docname
    cells = [c for c in doctree.findall(nodes.container) if c.get("nb_element") == "cell_code"]
    env.live_cells = {**getattr(env, "live_cells", {})}
    env.live_exercises = {**getattr(env, "live_exercises", {})}
    env.live_cells[docname] = [about for cell in cells if (about := describe(cell))]
    add_needs(env.live_cells[docname])
    boxes = (n for n in doctree.findall(nodes.Element) if "exercise" in n.get("classes", ()))
    env.live_exercises[docname] = {n["ids"][0]: points(n) for n in boxes if n["ids"]}


def points(exercise: nodes.Element) -> int:
    """Read from the title of an exercise what it is worth: "The rule itself, 2 points"."""
    found = re.search(r"(\d+) points?\b", exercise[0].astext())
    return int(found[1]) if found else 0


def describe(cell: nodes.container) -> dict[str, Any] | None:
    """Describe a cell for its page; None if the page does not show its code."""
    code = next(
        (
            block
            for part in cell.findall(nodes.container)
            if part.get("nb_element") == "cell_code_source"
            for block in part.findall(nodes.literal_block)
        ),
        None,
    )
    if code is None:
        return None
    source, metadata = code.astext(), cell.get("cell_metadata", {})
    tags = [c.removeprefix("tag_") for c in cell["classes"] if c.startswith("tag_")]
    about = {"key": key_of(source), "tags": tags, "source": source}
    alt = metadata.get("mystnb", {}).get("image", {}).get("alt")
    if alt:
        about["alt"] = " ".join(alt.split())
    if "compare" in metadata:
        about["compare"] = metadata["compare"]
    wish = metadata.get("live", {}).get("smaller")
    if wish:
        found = NAMED_NUMBER.fullmatch(str(wish).strip())
        name, value = found.groups() if found else ("", "0")
        if len(re.findall(rf"\b{name}\s*=\s*\d", source)) != 1 or not found:
            logger.warning("live: the cell does not set %r once", wish, location=cell)
        else:
            about["smaller"] = {"name": name, "value": int(value)}
    return about


def add_needs(cells: list[dict[str, Any]]) -> None:
    """Replace each cell's source by what it needs from above, and which of the cells there give it.

    The page says so before it has loaded Python, which asks the same functions.
    """
    sources = [cell.pop("source") for cell in cells]
    for i, cell in enumerate(cells):
        names = missing_names(sources[i])
        if needed := needed_cells(sources[:i], names):
            cell["missing"] = {"names": names, "needed": needed}


def forget(app: Sphinx, env: Any, docname: str) -> None:
    """Drop what is known of a page that is read again or gone."""
    for known in ("live_cells", "live_exercises"):
        getattr(env, known, {}).pop(docname, None)


def merge(app: Sphinx, env: Any, docnames: set[str], other: Any) -> None:
    """Take over what another process has read."""
    for known in ("live_cells", "live_exercises"):
        mine = {**getattr(env, known, {})}
        mine.update({d: v for d, v in getattr(other, known, {}).items() if d in docnames})
        setattr(env, known, mine)


def add_places(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make room for the reader's progress; tell who cannot run cells here where to."""
    if app.builder.format != "html":
        return
    if docname == app.config.root_doc:
        first = next((s for s in doctree.findall(nodes.section) if s.parent is not doctree), None)
        if first is not None:
            place = '<section class="tt-progress" aria-label="Your progress" hidden></section>'
            first += nodes.raw("", place, format="html")
        for play in [
            n for n in doctree.findall(nodes.Element) if "tt-play" in n.get("classes", ())
        ]:
            play.parent.insert(play.parent.index(play), nodes.raw("", CONTINUE, format="html"))
    cells = (n for n in doctree.findall(nodes.container) if n.get("nb_element") == "cell_code")
    if (first_cell := next(filter(describe, cells), None)) is not None:
        first_cell["ids"].append(RUN_HERE)
    card = next(
        (n for n in doctree.findall(nodes.Element) if "tt-card" in n.get("classes", ())), None
    )
    if card is None or not getattr(app.env, "live_cells", {}).get(docname):
        return
    links = launch_links(app, docname)
    places = " or ".join(
        f'<a href="{html.escape(links[name])}">{name}</a>'
        for name in ("Colab", "Binder")
        if name in links
    )
    text = f"The cells of this page do not run here; they run in {places}."
    note = f'<p class="tt-live-plain"{{}}>{text}</p>'
    both = f"<noscript>{note.format('')}</noscript>{note.format(' hidden')}"
    # the scripts show it: until then it takes its room (live.css), so that the text below stays
    both += f'<p class="tt-live-intro" hidden>{INTRO.format(**start_of(app))} {RUN_ALL}</p>'
    card.parent.insert(card.parent.index(card) + 1, nodes.raw("", both, format="html"))


def begin_without_failure(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """On a page, say under a stub what to do instead of what its check says of it."""
    if app.builder.format != "html":
        return
    for cell in doctree.findall(nodes.container):
        if "tag_exercise-stub" not in cell["classes"]:
            continue
        for block in list(cell.findall(nodes.literal_block)):
            if REPORT.match(text := block.astext()):
                first = FIRST["nothing yet: write it" in text]
                block.replace_self(nodes.paragraph("", first, classes=["tt-live__first"]))


def tell_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add to a page with cells the script, the style and the data that they need."""
    cells = getattr(app.env, "live_cells", {}).get(pagename, [])
    if not cells and pagename != app.config.root_doc:
        return
    exercises = getattr(app.env, "live_exercises", {})
    links = launch_links(app, pagename)
    told = []
    for cell, seconds in zip(cells, expected_seconds(app, cells), strict=True):
        about = {k: v for k, v in cell.items() if k != "key"}
        told.append(about if seconds is None else {**about, "expected": round(seconds, 1)})
    data = {
        "page": pagename,
        "cells": told,
        "runtime": app.config.live_runtime,
        "wheel": app.config.live_wheel,
        **start_of(app),
        "places": {place: links[place] for place in PLACES if place in links},
        "exercises": {d: e for d, e in sorted(exercises.items()) if e},
    }
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    context["body"] += f'<script type="application/json" id="tt-live">{text}</script>'
    app.add_css_file("live/live.css")
    app.add_js_file("live/live.js", loading_method="defer")


def expected_seconds(app: Sphinx, cells: list[dict[str, Any]]) -> list[float | None]:
    """Return how long each cell takes in the browser, as measured or by a rule of thumb.

    A cell that takes two seconds and more there has been measured; a shorter one takes there about
    as long as where the book is built. None stands for a cell that has not been executed.
    """
    native = read_json(Path(app.config.nb_execution_cache_path) / TIMES)
    measured = read_json(Path(app.srcdir) / MEASURED)

    def expected(key: str) -> float | None:
        seconds = measured.get(key, native.get(key))
        if seconds is None or key in measured or seconds <= SHORT:
            return seconds
        return SLOWER * seconds

    return [expected(cell["key"]) for cell in cells]


def run_time(app: Sphinx, docname: str) -> str:
    """Describe how long a page's cells take in the browser; empty if none was executed."""
    cells = getattr(app.env, "live_cells", {}).get(docname, [])
    known = [cell for cell in cells if "live-skip" not in cell["tags"]]
    seconds = [s for s in expected_seconds(app, known) if s is not None]
    return f"about {max(1, round(sum(seconds)))} s in the browser" if seconds else ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-read", collect)
    app.connect("doctree-resolved", add_places)
    app.connect("doctree-resolved", begin_without_failure)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", tell_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
