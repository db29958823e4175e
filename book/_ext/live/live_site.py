"""What the site holds so that cells run in the reader's browser: Python, the package, a model.

The runtime was fetched by `make live` into `_build/live/pyodide`, and the package is built as a
wheel. Without the runtime the pages point to Pyodide's official address. `live_cells.py` tells the
pages where all this is.
"""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config

from . import model_pieces, pinned_downloads
from .package_wheel import fingerprint, wheel, wheel_name
from .snapshot import NAME, can_be_made, snapshot, state

LOCK = "pyodide-lock.json"
SERVICE_WORKER = Path("book/_runtime/service-worker.js")
STATIC = "_static/live"
MEGABYTES = 27  # what a first run loads, if the site does not hold it


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


def start_of(app: Sphinx) -> dict[str, Any]:
    """Describe what a page loads before its first cell: the snapshot, if any, and its size."""
    making = app.live_snapshot  # type: ignore[attr-defined]
    if making is None:
        return {"megabytes": app.config.live_megabytes}
    size = making.result().stat().st_size
    address = f"{NAME}?v={app.config.live_snapshot}"
    return {"snapshot": address, "bytes": size, "megabytes": round(size / 1e6)}


def complete_site(app: Sphinx, error: Exception | None) -> None:
    """Put the wheel, the runtime, the snapshot, the model and two shared files into the site."""
    if error is not None or app.builder.format != "html":
        return
    root, static = Path(app.srcdir), Path(app.outdir, STATIC)
    static.mkdir(parents=True, exist_ok=True)
    copy_changed(wheel(root), static / wheel_name(root))
    copy_changed(root / "book/_ext/directives/inline_svg.py", static / "inline_svg.py")
    copy_changed(root / SERVICE_WORKER, Path(app.outdir, SERVICE_WORKER.name))
    making = app.live_snapshot  # type: ignore[attr-defined]
    if making is None:
        (static / NAME).unlink(missing_ok=True)
    else:
        copy_changed(making.result(), static / NAME)
    model_pieces.put(root, static / model_pieces.GROUP)
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
    app.connect("build-finished", complete_site)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
