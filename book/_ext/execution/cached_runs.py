"""Chapters are executed once, and again when `run_again.py` says so; a cache keeps the outputs.

Those that must run are run side by side, the slowest first (`cell_times.py`). The pages, and the
notebooks of `book/notebooks`, show the outputs of this one run. Where strict validation has run the
same cells with the same modules just before, as in `make test`, its run is that one.

A chapter may need a published model, which `make book` has fetched into `_build/models`. Where that
is not there, OFFLINE=1 keeps the outputs of the chapter's notebook instead.
"""

import gc
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import SphinxError
from sphinx.util import logging

from .cell_times import (
    MEASURED,
    TIMES,
    expected_seconds,
    note_times,
    read_json,
    seconds_of,
    write_json,
)
from .run_again import USED, changed_below, must_run, used_by
from .used_modules import Packages

logger = logging.getLogger(__name__)

CACHE = Path("_build/.jupyter_cache")
VALIDATED = Path("_build/validated")  # what tests/book/validated_runs.py keeps
MODELS = Path("_build/models")  # published ones, where cells look for them
COMMITTED = Path("book/notebooks")
PUBLISHED = "tinytorch_book.experiments.published_model"  # a chapter that uses this needs one


class CannotExecute(SphinxError):
    """A chapter's cell failed, or took too long."""

    category = "Execution error"


# The cache ------------------------------------------------------------------------------------


def choose_cache(app: Sphinx, config: Config) -> None:
    """Point myst-nb at the cache, and read the packages that the chapters use."""
    config.nb_execution_cache_path = str(Path(app.srcdir) / CACHE)
    packages = Packages.below_root(Path(app.srcdir))
    app.book_packages = packages  # type: ignore[attr-defined]


def notebook_of(app: Sphinx, docname: str) -> NotebookNode | None:
    """Read a chapter as a notebook; None if it is a page without code."""
    env: Any = app.env
    path = env.doc2path(docname)
    text = Path(path).read_text(encoding="utf-8")
    reader = create_nb_reader(path, env.myst_config, env.mystnb_config, text)
    return reader and reader.read(text)


def executed(app: Sphinx, docname: str) -> NotebookNode:
    """Return a chapter's executed notebook."""
    cache = get_cache(app.config.nb_execution_cache_path)
    return cache.merge_match_into_notebook(notebook_of(app, docname))[1]


# Running --------------------------------------------------------------------------------------


def execute_missing(app: Sphinx, env: Any, docnames: list[str]) -> None:
    """Run the chapters that are about to be read and whose outputs are not there, or too old.

    Raises:
        CannotExecute: A cell of at least one of them failed; the others are in the cache.
    """
    folder = Path(app.config.nb_execution_cache_path)
    cache, noted = get_cache(str(folder)), read_json(folder / USED)
    read = {name: found for name in docnames if (found := notebook_of(app, name))}
    used = {name: used_by(app, notebook) for name, notebook in read.items()}
    waiting = {
        name: notebook
        for name, notebook in read.items()
        if must_run(cache, notebook, noted.get(name), used[name])
    }
    measured = read_json(Path(app.srcdir) / MEASURED)
    slowest_first = sorted(waiting, key=lambda name: -expected_seconds(waiting[name], measured))
    problems = []
    timeout = app.config.nb_execution_timeout
    os.environ["TINYTORCH_CACHE"] = str(Path(app.srcdir) / MODELS)
    stored = {name for name in waiting if keeps_stored(app, used[name])}

    def run(name: str) -> Any:
        file = f"{name.rpartition('/')[2]}.ipynb"
        if name in stored:
            return stored_run(waiting[name], Path(app.srcdir) / COMMITTED / file)
        kept = Path(app.srcdir) / VALIDATED / file
        return taken(waiting[name], kept, used[name]) or execute(waiting[name], timeout)

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        runs = pool.map(run, slowest_first)
        for docname, result in zip(slowest_first, runs, strict=True):
            if result.err is not None:
                problems.append(f"{docname}.md: {result.err}")
                continue
            how = "kept the stored outputs of" if docname in stored else "executed"
            logger.info("%s %s in %.1f s", how, docname, result.time)
            note_times(waiting[docname], folder / TIMES)
            data = {"execution_seconds": result.time}
            bundle = CacheBundleIn(waiting[docname], env.doc2path(docname), data=data)
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            noted[docname] = None if docname in stored else used[docname]  # None: to be run yet
            write_json(folder / USED, noted)
    if problems:
        # the theme copies its logos already now: without the folder the first would take its name
        Path(app.outdir, "_static").mkdir(parents=True, exist_ok=True)
        raise CannotExecute("\n".join(problems))
    env.used_modules = {**getattr(env, "used_modules", {}), **used}


def taken(notebook: NotebookNode, path: Path, used: dict[str, Any]) -> Any:
    """Fill a notebook from a validated run of its cells with these modules, if there is one."""
    run = nbformat.read(path, as_version=4) if path.exists() else None
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if run is None or run.metadata.used != used:
        return None
    if [cell.source for cell in run.cells] != [cell.source for cell in cells]:
        return None
    for cell, ran in zip(cells, run.cells, strict=True):
        cell.outputs, cell.execution_count = ran.outputs, ran.execution_count
        cell.metadata["execution"] = ran.metadata.execution
    return SimpleNamespace(err=None, time=sum(map(seconds_of, run.cells)))


def keeps_stored(app: Sphinx, used: dict[str, Any]) -> bool:
    """Say whether a chapter needs a model that is not there, and OFFLINE=1 says to go on."""
    there = any((Path(app.srcdir) / MODELS).glob("*/*.gguf"))
    return os.environ.get("OFFLINE") == "1" and PUBLISHED in used["modules"] and not there


def stored_run(notebook: NotebookNode, path: Path) -> Any:
    """Fill a notebook from the committed one, which has its texts and no pictures."""
    stored = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    texts = {cell.source.strip(): cell for cell in stored}
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        if (known := texts.get(cell.source.strip())) is None:
            why = f"OFFLINE=1 keeps what {path.name} has, and its cells are not the chapter's"
            return SimpleNamespace(err=f"{why}: {cell.source.splitlines()[0]!r}", time=0.0)
        cell.outputs, cell.execution_count = known.outputs, known.execution_count
    return SimpleNamespace(err=None, time=0.0)


def execute(notebook: NotebookNode, timeout: int) -> Any:
    """Run one notebook in place, in an empty folder."""
    # A slow machine may also take its time to start a kernel, or to hand over an output.
    os.environ["TINYTORCH_PARTS"] = ""  # what the book solves is no reader's
    patience = {"timeout": timeout, "startup_timeout": timeout, "iopub_timeout": timeout}
    # a kernel that has just ended may still hold its folder, on Windows
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        result = single_nb_execution(
            notebook, cwd=folder, allow_errors=False, record_timing=True, **patience
        )
    join_streams(notebook)
    return result


def join_streams(notebook: NotebookNode) -> None:
    """Put together what a cell printed: the kernel sends it in pieces, wherever it was slow."""
    for cell in notebook.cells:
        joined: list[tuple[Any, NotebookNode]] = []
        for output in cell.get("outputs", []):
            kind = (output.output_type, output.get("name"))
            if joined and kind[0] == "stream" and kind == joined[-1][0]:
                joined[-1][1].text += output.text
            else:
                joined.append((kind, output))
        if joined:
            cell.outputs = [output for _, output in joined]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    # Pages are read back as millions of small objects: with Python's own thresholds nine tenths of
    # the time of a small build go into looking for garbage among them.
    gc.set_threshold(200_000, 20, 100)
    app.connect("config-inited", choose_cache)
    app.connect("env-get-outdated", changed_below)
    app.connect("env-before-read-docs", execute_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
