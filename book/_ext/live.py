"""Cells that run in the reader's browser: what the pages and the site need for it.

What runs lies in `book/_static/live` (the page's scripts) and, fetched by `make live`, in
`_build/live/pyodide` (Python itself). Here each page is told about its cells: their tags, what
they took when the book was built, whether there is a smaller run; and the site gets the runtime
and the package as a wheel. Without the runtime the pages point to Pyodide's official address.

A cell's options may say

    tags: [live-skip]               not to be run in the browser
    live: {smaller: steps = 60}     offer the same cell with this number for `steps`
"""

import hashlib
import html
import json
import re
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import fresh
import myst_nb.core.execute.cache as executing
from docutils import nodes
from launch import launch_links
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

logger = logging.getLogger(__name__)

RECIPE = Path("book/_live/runtime.json")
RUNTIME = Path("_build/live/pyodide")
HEADERS = Path("book/_live/live-headers.js")
STATIC = "_static/live"
TIMES = "cell_times.json"
MEGABYTES = 27  # what a first run loads, if the site does not hold it
MEASURED = Path("book/_live/browser_times.json")  # seconds in a browser, by the cells' keys
SLOWER = 8  # times longer than natively, for a cell that was not measured
NAMED_NUMBER = re.compile(r"([A-Za-z_]\w*)\s*=\s*(\d[\d_]*)")


# What a cell took -------------------------------------------------------------------------------


def key_of(source: str) -> str:
    """Name a cell by its code."""
    return hashlib.sha256(source.strip().encode()).hexdigest()[:16]


def times_file(app_or_config: Any) -> Path:
    """Give the place of the measured times, beside the outputs they belong to."""
    return Path(app_or_config.nb_execution_cache_path) / TIMES


def time_cells(app: Sphinx, config: Config) -> None:
    """Have every execution note what each cell took; jupyter-cache keeps only the sum."""
    path = times_file(config)

    def timed(notebook: Any, **options: Any) -> Any:
        result = executing_single(notebook, **options, record_timing=True)
        note_times(notebook, path)
        return result

    executing.single_nb_execution = timed


executing_single = executing.single_nb_execution


def note_times(notebook: Any, path: Path) -> None:
    """Move the times from the cells, where they would be part of the cache's key, to a file."""
    times = read_times(path)
    for cell in notebook.cells:
        stamps = cell.metadata.pop("execution", None) or {}
        begun, ended = (stamps.get(k) for k in ("iopub.status.busy", "shell.execute_reply"))
        if begun and ended:
            times[key_of(cell.source)] = round(seconds_between(begun, ended), 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(times, indent=0, sort_keys=True), encoding="utf-8")


def seconds_between(begun: str, ended: str) -> float:
    """Subtract two times of the Jupyter protocol."""
    first, last = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (begun, ended))
    return (last - first).total_seconds()


def read_times(path: Path) -> dict[str, float]:
    """Read the measured times; none if nothing has been executed yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


# What a page knows of its cells -----------------------------------------------------------------


def collect(app: Sphinx, doctree: nodes.document) -> None:
    """Note the cells and exercises of a page, in the order in which they stand there."""
    docname = app.env.docname
    cells = [c for c in doctree.findall(nodes.container) if c.get("nb_element") == "cell_code"]
    app.env.live_cells = {**getattr(app.env, "live_cells", {})}
    app.env.live_exercises = {**getattr(app.env, "live_exercises", {})}
    app.env.live_cells[docname] = [about for cell in cells if (about := describe(cell))]
    boxes = (n for n in doctree.findall(nodes.Element) if "exercise" in n.get("classes", ()))
    app.env.live_exercises[docname] = [node["ids"][0] for node in boxes if node["ids"]]


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
    about = {"key": key_of(source), "tags": tags, "draws": "plots" in source}
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
    """Make room for the reader's progress; tell who cannot run cells here where they run."""
    if docname == app.config.root_doc:
        first = next((s for s in doctree.findall(nodes.section) if s.parent is not doctree), None)
        if first is not None:
            place = '<section class="tt-progress" aria-label="Your progress" hidden></section>'
            first += nodes.raw("", place, format="html")
    card = next(
        (n for n in doctree.findall(nodes.Element) if "tt-card" in n.get("classes", ())), None
    )
    if card is None or not app.env.live_cells.get(docname):
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
    both += '<p class="tt-live-intro" hidden></p>'
    card.parent.insert(card.parent.index(card) + 1, nodes.raw("", both, format="html"))


def tell_page(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page with cells its script, its style and what they need to know."""
    cells = getattr(app.env, "live_cells", {}).get(pagename, [])
    if not cells and pagename != app.config.root_doc:
        return
    times = read_times(times_file(app.config))
    measured = read_times(Path(app.srcdir) / MEASURED)
    told = []
    for cell in cells:
        about = {k: v for k, v in cell.items() if k not in ("key", "draws")}
        seconds = times.get(cell["key"])
        if seconds is not None:
            about["seconds"] = round(seconds, 1)
            guess = SLOWER * seconds if seconds > 2 else 0  # most short cells are short there too
            about["expected"] = measured.get(cell["key"], round(guess, 1))
        told.append(about)
    data = {
        "page": pagename,
        "cells": told,
        "draws": any(cell["draws"] for cell in cells),
        "runtime": app.config.live_runtime,
        "megabytes": app.config.live_megabytes,
        "wheel": app.config.live_wheel,
        "exercises": {d: e for d, e in sorted(app.env.live_exercises.items()) if e},
    }
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    context["body"] += f'<script type="application/json" id="tt-live">{text}</script>'
    app.add_css_file("live/live.css")
    app.add_js_file("live/live.js", loading_method="defer")


# What the site holds ----------------------------------------------------------------------------


def choose_runtime(app: Sphinx, config: Config) -> None:
    """Let the pages use the site's own runtime if it has been fetched."""
    root = Path(app.srcdir)
    official = json.loads((root / RECIPE).read_text(encoding="utf-8"))["official"]
    own = (root / RUNTIME / "pyodide-lock.json").exists()
    config.live_runtime = f"{STATIC}/pyodide/" if own else official
    files = [path for path in (root / RUNTIME).glob("*") if path.is_file()]
    config.live_megabytes = round(sum(p.stat().st_size for p in files) / 1e6) if own else MEGABYTES
    config.live_wheel = f"{wheel_name(root)}?v={fresh.fingerprint(root)}"


def wheel_name(root: Path) -> str:
    """Name the package's wheel as the build backend will."""
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    name, version = (
        re.search(rf'^{field} = "([^"]+)"', project, re.M)[1] for field in ("name", "version")
    )
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def complete_site(app: Sphinx, error: Exception | None) -> None:
    """Put the package's wheel, the runtime and two shared files into the site."""
    if error is not None or app.builder.format != "html":
        return
    root, static = Path(app.srcdir), Path(app.outdir, STATIC)
    static.mkdir(parents=True, exist_ok=True)
    build_wheel(root, static)
    shutil.copyfile(root / "book/_ext/inline_svg.py", static / "inline_svg.py")
    shutil.copyfile(root / HEADERS, Path(app.outdir, HEADERS.name))
    target = static / "pyodide"
    if (root / RUNTIME / "pyodide-lock.json").exists():
        shutil.copytree(root / RUNTIME, target, dirs_exist_ok=True, copy_function=copy_changed)
    else:
        shutil.rmtree(target, ignore_errors=True)


def copy_changed(source: str, target: str) -> None:
    """Copy a file unless it is there already."""
    old, new = Path(target), Path(source)
    if not old.exists() or old.stat().st_size != new.stat().st_size:
        shutil.copyfile(source, target)


def build_wheel(root: Path, folder: Path) -> None:
    """Build the package with its own backend, which needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode or not (folder / wheel_name(root)).exists():
        logger.error("cannot build the package's wheel: %s", done.stderr or done.stdout)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("live_runtime", "", "html")
    app.add_config_value("live_wheel", "", "html")
    app.add_config_value("live_megabytes", 0, "html")
    app.connect("config-inited", time_cells, priority=900)  # after fresh.py has chosen the cache
    app.connect("config-inited", choose_runtime)
    app.connect("doctree-read", collect)
    app.connect("doctree-resolved", add_places)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("html-page-context", tell_page)
    app.connect("build-finished", complete_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
