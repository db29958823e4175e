"""Cells that run in the reader's browser: what the pages and the site need for it.

What runs is in `book/_static/live` (the page's scripts) and, fetched by `make live`, in
`_build/live/pyodide` (Python itself). Here each page is told about its cells: their tags, what
they took when the book was built, whether there is a smaller run; and the site gets the runtime
and the package as a wheel. Without the runtime the pages point to Pyodide's official address.

A cell's options may say

    tags: [live-skip]               not to be run in the browser
    tags: [live-varies]             prints other words there: its products round in another order
    live: {smaller: steps = 60}     offer the same cell with this number for `steps`
"""

import html
import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _static.live.cell_names import missing_names, needed_cells
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from ..execution.cached_runs import MEASURED, TIMES, fingerprint, key_of, read_json
from ..launch_links import launch_links
from . import pinned_downloads
from .package_wheel import wheel, wheel_name
from .snapshot import NAME, can_be_made, snapshot, state

logger = logging.getLogger(__name__)

LOCK = "pyodide-lock.json"
HEADERS = Path("book/_runtime/live-headers.js")
STATIC = "_static/live"
MEGABYTES = 27  # what a first run loads, if the site does not hold it
PLACES = ("Colab", "Binder", "JupyterLite")  # where more is possible than in a page
SHORT = 2  # seconds: shorter cells are not kept among the measured ones
SLOWER = 2  # times longer than natively, for a longer cell that was not measured
REPORT = re.compile(r"\w+: not yet\n")
FIRST = {True: "Write it, then press Check.", False: "Change it, then press Check."}
INTRO = (
    "Every cell of this page runs here, in your browser: press Run or change the code. Python,"
    " about {megabytes} MB, is loaded at the first press or, where the connection is not metered,"
    " shortly before it; the browser then keeps it. What you write stays on this page."
)
NAMED_NUMBER = re.compile(r"([A-Za-z_]\w*)\s*=\s*(\d[\d_]*)")


# What a page knows of its cells -----------------------------------------------------------------


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
    """Say of one cell what its page needs; None if the page does not show its code."""
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
    both += f'<p class="tt-live-intro" hidden>{INTRO.format(**start_of(app))}</p>'
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
    """Give a page with cells its script, its style and what they need to know."""
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
    """Say how long each cell takes in the browser, as measured or by a rule of thumb.

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
    """Say how long all cells of a page take in the browser; nothing where none was executed."""
    cells = getattr(app.env, "live_cells", {}).get(docname, [])
    known = [cell for cell in cells if "live-skip" not in cell["tags"]]
    seconds = [s for s in expected_seconds(app, known) if s is not None]
    return f"about {max(1, round(sum(seconds)))} s in the browser" if seconds else ""


def start_of(app: Sphinx) -> dict[str, Any]:
    """Say what a page loads before its first cell: the snapshot, if there is one, and bytes."""
    making = app.live_snapshot  # type: ignore[attr-defined]
    if making is None:
        return {"megabytes": app.config.live_megabytes}
    size = making.result().stat().st_size
    address = f"{NAME}?v={app.config.live_snapshot}"
    return {"snapshot": address, "bytes": size, "megabytes": round(size / 1e6)}


# What the site holds ----------------------------------------------------------------------------


def choose_runtime(app: Sphinx, config: Config) -> None:
    """Let the pages use the site's own runtime if it has been fetched."""
    root = Path(app.srcdir)
    own = not pinned_downloads.missing("pyodide", root)
    official = pinned_downloads.pins(root)["pyodide"]["addresses"][0].format(name="")
    config.live_runtime = f"{STATIC}/pyodide/" if own else official
    sizes = [path.stat().st_size for path in pinned_downloads.files("pyodide", root)] if own else []
    config.live_megabytes = round(sum(sizes) / 1e6) if own else MEGABYTES
    config.live_snapshot = state(root) if can_be_made(root) else ""
    config.live_wheel = f"{wheel_name(root)}?v={fingerprint(root)}"


def make_snapshot(app: Sphinx) -> None:
    """Start to make the snapshot, which takes half a minute, while the chapters are read."""
    app.live_snapshot = None  # type: ignore[attr-defined]
    if app.config.live_snapshot and app.builder.format == "html":
        pool = ThreadPoolExecutor(1)
        app.live_snapshot = pool.submit(snapshot, Path(app.srcdir))  # type: ignore[attr-defined]
        pool.shutdown(wait=False)


def complete_site(app: Sphinx, error: Exception | None) -> None:
    """Put the package's wheel, the runtime, the snapshot and two shared files into the site."""
    if error is not None or app.builder.format != "html":
        return
    root, static = Path(app.srcdir), Path(app.outdir, STATIC)
    static.mkdir(parents=True, exist_ok=True)
    copy_changed(wheel(root), static / wheel_name(root))
    copy_changed(root / "book/_ext/directives/inline_svg.py", static / "inline_svg.py")
    copy_changed(root / HEADERS, Path(app.outdir, HEADERS.name))
    making = app.live_snapshot  # type: ignore[attr-defined]
    if making is None:
        (static / NAME).unlink(missing_ok=True)
    else:
        copy_changed(making.result(), static / NAME)
    target = static / "pyodide"
    if pinned_downloads.missing("pyodide", root):
        shutil.rmtree(target, ignore_errors=True)
        return
    target.mkdir(exist_ok=True)
    for path in pinned_downloads.files("pyodide", root):
        if path.name != LOCK:
            copy_changed(path, target / path.name)
    lock = json.dumps(trimmed_lock(root), indent=1, sort_keys=True) + "\n"
    (target / LOCK).write_text(lock, encoding="utf-8")


def copy_changed(source: Path, target: Path) -> None:
    """Copy a file and its time, unless it is there already."""
    new = source.stat()
    old = target.stat() if target.exists() else None
    if old is None or (old.st_size, old.st_mtime_ns) != (new.st_size, new.st_mtime_ns):
        shutil.copyfile(source, target)
        os.utime(target, ns=(new.st_atime_ns, new.st_mtime_ns))


def trimmed_lock(root: Path) -> dict[str, Any]:
    """Keep of Pyodide's lock the packages whose wheels are pinned, with plain file names.

    Raises:
        KeyError: One of them needs a package that is not pinned.
    """
    wheels = {path.name for path in pinned_downloads.files("pyodide", root)}
    lock = json.loads((pinned_downloads.folder("pyodide", root) / LOCK).read_text(encoding="utf-8"))
    kept = {}
    for name, entry in lock["packages"].items():
        file = entry["file_name"].rsplit("/", 1)[-1]
        if file in wheels:
            kept[name] = {**entry, "file_name": file}
    lacking = {need for entry in kept.values() for need in entry["depends"]} - set(kept)
    if lacking:
        raise KeyError(f"{pinned_downloads.PINS} lacks the wheels of {', '.join(sorted(lacking))}")
    return {**lock, "packages": kept}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("live_runtime", "", "html")
    app.add_config_value("live_wheel", "", "html")
    app.add_config_value("live_snapshot", "", "html")
    app.add_config_value("live_megabytes", 0, "html")
    app.connect("config-inited", choose_runtime)
    app.connect("builder-inited", make_snapshot)
    app.connect("doctree-read", collect)
    app.connect("doctree-resolved", add_places)
    app.connect("doctree-resolved", begin_without_failure)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", tell_page)
    app.connect("build-finished", complete_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 2}
