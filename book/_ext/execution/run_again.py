"""What decides that a chapter runs again: its code, or that of a module that it uses, has changed.

jupyter-cache keys an executed notebook on the code of its cells alone: after a change in
the package it would serve yesterday's outputs. So beside the cache stands what each chapter was
executed with: the modules that it uses (`used_modules.py` finds them), and the fingerprint of what
they did then.
"""

import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from .cell_times import read_json

USED = "used_modules.json"  # by chapter: the modules it was executed with, and their fingerprint


def must_run(cache: Any, notebook: NotebookNode, noted: Any, used: dict[str, Any]) -> bool:
    """Return whether a chapter's outputs are missing, or are those of other code."""
    return noted != used or not is_cached(cache, notebook)


def changed_below(app: Any, env: Any, *args: Any) -> list[str]:
    """Name the pages whose modules have changed since they were read: Sphinx reads them again."""
    known = {d: u for d, u in getattr(env, "used_modules", {}).items() if d in env.found_docs}
    noted = read_json(Path(app.config.nb_execution_cache_path) / USED)  # empty without a cache
    return [
        docname
        for docname, used in known.items()
        if noted.get(docname) != used or described(app, used["modules"]) != used
    ]


def used_by(app: Any, notebook: NotebookNode) -> dict[str, Any]:
    """Return the modules that a chapter uses, and the fingerprint of what they do now."""
    manager = TransformerManager()  # a cell may hold what is Python to a notebook alone
    code = (c.source for c in notebook.cells if c.cell_type == "code")
    return described(app, app.book_packages.used(map(manager.transform_cell, code)))


def described(app: Any, modules: Iterable[str]) -> dict[str, Any]:
    """Return modules with the fingerprint of what they do now."""
    print_ = f"{versions()} {app.book_packages.fingerprint(modules)}"
    return {"modules": sorted(modules), "fingerprint": print_}


def versions() -> str:
    """Name the versions of what executes the chapters."""
    libraries = (
        f"{name} {metadata.version(name)}" for name in ("numpy", "matplotlib", "ipykernel")
    )
    return " ".join(["python", ".".join(map(str, sys.version_info[:3])), *libraries])


def is_cached(cache: Any, notebook: NotebookNode) -> bool:
    """Return whether the outputs of exactly this code are cached."""
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return False
    return True
