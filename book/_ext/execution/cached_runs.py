"""Chapters are executed once, and again when their code changes or the package code that they use.

jupyter-cache keys an executed notebook on the code of its cells alone: after a change in
`tinytorch/` it would serve yesterday's outputs. So beside the cache stands what each chapter was
executed with: the modules that it uses (`used_modules`) and their fingerprint. Chapters that need
it are run side by side, the slowest first; what each cell took is noted beside the cache, too. The
pages, and the notebooks of `book/notebooks`, show the outputs of this one run.
"""

import gc
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import SphinxError
from sphinx.util import logging

from .used_modules import Package

logger = logging.getLogger(__name__)

CACHE = Path("_build/.jupyter_cache")
TIMES = "cell_times.json"
USED = "used_modules.json"  # by chapter: the modules it was executed with, and their fingerprint
MEASURED = Path("book/_runtime/browser_times.json")  # seconds in a browser, by the cells' keys


class CannotExecute(SphinxError):
    """A chapter's cell failed, or took too long."""

    category = "Execution error"


# The cache ------------------------------------------------------------------------------------


def fingerprint(root: Path) -> str:
    """Hash the package's files, whatever they contain, and the versions of what runs it.

    Args:
        root: the repository's root, the directory that holds `tinytorch/`.

    Returns:
        Sixteen hexadecimal digits.
    """
    digest = hashlib.sha256(versions().encode())
    for path in sorted((root / "tinytorch").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def versions() -> str:
    """Name the versions of what executes the chapters."""
    libraries = (
        f"{name} {metadata.version(name)}" for name in ("numpy", "matplotlib", "ipykernel")
    )
    return " ".join(["python", ".".join(map(str, sys.version_info[:3])), *libraries])


def choose_cache(app: Sphinx, config: Config) -> None:
    """Point myst-nb at the cache, and read the package that the chapters use."""
    config.nb_execution_cache_path = str(Path(app.srcdir) / CACHE)
    app.book_package = Package(Path(app.srcdir) / "tinytorch")  # type: ignore[attr-defined]


def used_by(app: Any, notebook: NotebookNode) -> dict[str, Any]:
    """Give the modules that a chapter uses, and the fingerprint of what they do now."""
    manager = TransformerManager()  # a cell may hold what is Python to a notebook alone
    code = (c.source for c in notebook.cells if c.cell_type == "code")
    return described(app, app.book_package.used(map(manager.transform_cell, code)))


def described(app: Any, modules: Iterable[str]) -> dict[str, Any]:
    """Give modules with the fingerprint of what they do now."""
    print_ = f"{versions()} {app.book_package.fingerprint(modules)}"
    return {"modules": sorted(modules), "fingerprint": print_}


def changed_below(app: Any, env: Any, *args: Any) -> list[str]:
    """Name the pages whose modules have changed since they were read: Sphinx reads them again."""
    known = {d: u for d, u in getattr(env, "used_modules", {}).items() if d in env.found_docs}
    noted = read_json(Path(app.config.nb_execution_cache_path) / USED)  # empty without a cache
    return [
        docname
        for docname, used in known.items()
        if noted.get(docname) != used or described(app, used["modules"]) != used
    ]


def notebook_of(app: Sphinx, docname: str) -> NotebookNode | None:
    """Read a chapter as a notebook; None if it is a page without code."""
    env: Any = app.env
    path = env.doc2path(docname)
    text = Path(path).read_text(encoding="utf-8")
    reader = create_nb_reader(path, env.myst_config, env.mystnb_config, text)
    return reader and reader.read(text)


def executed(app: Sphinx, docname: str) -> NotebookNode:
    """Give a chapter as a notebook with the outputs of its one run."""
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
        if noted.get(name) != used[name] or not is_cached(cache, notebook)
    }
    measured = read_json(Path(app.srcdir) / MEASURED)
    slowest_first = sorted(waiting, key=lambda name: -expected_seconds(waiting[name], measured))
    problems = []
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        timeout = app.config.nb_execution_timeout
        runs = pool.map(lambda name: execute(waiting[name], timeout), slowest_first)
        for docname, result in zip(slowest_first, runs, strict=True):
            if result.err is not None:
                problems.append(f"{docname}.md: {result.err}")
                continue
            logger.info("executed %s in %.1f s", docname, result.time)
            note_times(waiting[docname], folder / TIMES)
            data = {"execution_seconds": result.time}
            bundle = CacheBundleIn(waiting[docname], env.doc2path(docname), data=data)
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            noted[docname] = used[docname]
            write_json(folder / USED, noted)
    if problems:
        # the theme copies its logos already now: without the folder the first would take its name
        Path(app.outdir, "_static").mkdir(parents=True, exist_ok=True)
        raise CannotExecute("\n".join(problems))
    env.used_modules = {**getattr(env, "used_modules", {}), **used}


def is_cached(cache: Any, notebook: NotebookNode) -> bool:
    """Say whether the outputs of this very code are there."""
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return True


def expected_seconds(notebook: NotebookNode, measured: dict[str, float]) -> float:
    """Guess from what its cells take in a browser whether a chapter is slow."""
    return sum(measured.get(key_of(cell.source), 0) for cell in notebook.cells)


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


# What a cell took -----------------------------------------------------------------------------


def key_of(source: str) -> str:
    """Name a cell by its code."""
    return hashlib.sha256(source.strip().encode()).hexdigest()[:16]


def note_times(notebook: NotebookNode, path: Path) -> None:
    """Move the times from the cells, where they would be part of the cache's key, to a file."""
    times = read_json(path)
    for cell in notebook.cells:
        stamps = cell.metadata.pop("execution", None) or {}
        begun, ended = (stamps.get(k) for k in ("iopub.status.busy", "shell.execute_reply"))
        if begun and ended:
            times[key_of(cell.source)] = round(seconds_between(begun, ended), 3)
    write_json(path, times)


def seconds_between(begun: str, ended: str) -> float:
    """Subtract two times of the Jupyter protocol."""
    first, last = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (begun, ended))
    return (last - first).total_seconds()


def read_json(path: Path) -> dict[str, Any]:
    """Read what was noted; nothing if nothing has been executed yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_json(path: Path, noted: dict[str, Any]) -> None:
    """Write what is noted beside the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(noted, indent=0, sort_keys=True), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    # Pages are read back as millions of small objects: with Python's own thresholds nine tenths of
    # the time of a small build go into looking for garbage among them.
    gc.set_threshold(200_000, 20, 100)
    app.connect("config-inited", choose_cache)
    app.connect("env-get-outdated", changed_below)
    app.connect("env-before-read-docs", execute_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
