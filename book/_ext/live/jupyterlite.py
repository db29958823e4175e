"""The whole book in JupyterLite, a JupyterLab that runs in the reader's browser, under `lite/`.

It is there when `make live` has fetched the runtime, and shares that with the live cells: its own
lock file names the same NumPy and matplotlib, the package's wheel, and what the kernel needs
besides. Its notebooks are copies of `book/notebooks` that ask for the kernel it has. Nothing comes
from another site; installing from the package index is switched off.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from ..addresses import DRAWINGS
from ..launch_links import with_own_addresses
from . import pinned_downloads
from .live_site import LOCK, STATIC, trimmed_lock
from .package_wheel import wheel_name

logger = logging.getLogger(__name__)

FOLDER = "lite"
START = f"{FOLDER}/lab/index.html"
NOTE = "made_of.txt"  # beside what was built: whether it is to be built again
PARTS = ("jupyterlite-core", "jupyterlite-pyodide-kernel")
EXTENSION = "@jupyterlite/pyodide-kernel-extension"
KERNEL = {"display_name": "Python (Pyodide)", "language": "python", "name": "python"}
BESIDES = ["numpy", "matplotlib"]  # loaded with the package
EPOCH = "2026-01-01T00:00:00Z"  # the notebooks' times, so that a build can be repeated


def can_be_built(root: Path) -> bool:
    """Return whether everything that JupyterLite needs has been fetched."""
    return not pinned_downloads.missing("pyodide", root) and not pinned_downloads.missing(
        "kernel", root
    )


def offer(app: Sphinx, config: Config) -> None:
    """Have the pages link to JupyterLite if it can be built."""
    if can_be_built(Path(app.srcdir)):
        config.html_theme_options["launch_buttons"]["jupyterlite_url"] = START


def complete_site(app: Sphinx, error: Exception | None) -> None:
    """Put JupyterLite, its packages and the book's notebooks into the site."""
    if error is not None or app.builder.format != "html":
        return
    root, target = Path(app.srcdir), Path(app.outdir, FOLDER)
    if "jupyterlite_url" not in app.config.html_theme_options.get("launch_buttons", {}):
        shutil.rmtree(target, ignore_errors=True)
        return
    if build(target, settings(app.config.project, kernel_packages(root))):
        add_packages(root, target)
        notebooks = sorted((root / "book/notebooks").glob("*.ipynb"))
        add_notebooks(app.config, notebooks, Path(app.outdir, DRAWINGS), target)


def kernel_packages(root: Path) -> dict[str, Path]:
    """Return the wheel of each package that the kernel needs, by the package's name."""
    wheels = pinned_downloads.files("kernel", root)
    return {path.name.split("-")[0].replace("_", "-"): path for path in wheels}


def build(target: Path, site_settings: dict[str, Any]) -> bool:
    """Build JupyterLite without contents, unless it is there; says whether it worked."""
    key = f"{made_of()} {json.dumps(site_settings, sort_keys=True)}\n"
    note = target / NOTE
    if note.exists() and note.read_text(encoding="utf-8") == key:
        return True
    shutil.rmtree(target, ignore_errors=True)
    extension = Path(sys.prefix, "share/jupyter/labextensions", EXTENSION)
    options = {
        "apps": ["lab"],
        "no_sourcemaps": True,
        "no_unused_shared_packages": True,
        "ignore_sys_prefix": ["federated_extensions"],  # those that happen to be installed
        "federated_extensions": [str(extension)],
    }
    with tempfile.TemporaryDirectory() as place:
        write(Path(place, "jupyter_lite_config.json"), {"LiteBuildConfig": options})
        write(Path(place, "jupyter-lite.json"), site_settings)
        command = [sys.executable, "-m", "jupyterlite_core", "build"]
        done = subprocess.run(
            [*command, "--lite-dir", place, "--output-dir", str(target)],
            cwd=place,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        logger.error("cannot build JupyterLite: %s", done.stderr or done.stdout)
        return False
    note.write_text(key, encoding="utf-8")
    return True


def made_of() -> str:
    """Name the versions of what JupyterLite is built from."""
    return " ".join(f"{name} {metadata.version(name)}" for name in PARTS)


def settings(name: str, kernel_packages: Iterable[str]) -> dict[str, Any]:
    """Return the settings: where Python is and what it loads before the first cell.

    Args:
        name: what the window is called.
        kernel_packages: the packages that the kernel needs.
    """
    kernel = {
        "pyodideUrl": f"./../{STATIC}/pyodide/pyodide.mjs",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {"lockFileURL": LOCK, "packages": sorted(kernel_packages)},
    }
    data = {
        "appName": name,
        "contentsAllJsonFile": "all.json",
        "litePluginSettings": {f"{EXTENSION}:kernel": kernel},
        # else cells far from the screen are taken out of the page, with what they have printed
        "settingsOverrides": {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}},
    }
    return {"jupyter-lite-schema-version": 0, "jupyter-config-data": data}


def add_packages(root: Path, target: Path) -> None:
    """Copy the kernel's wheels, and write the lock that names them and what the site has anyway."""
    lock = trimmed_lock(root)
    packages = lock["packages"]
    for entry in packages.values():
        entry["file_name"] = f"../{STATIC}/pyodide/{entry['file_name']}"
    place = emptied(target / "packages")
    for name, wheel in kernel_packages(root).items():
        shutil.copyfile(wheel, place / wheel.name)
        packages[name] = package(name, wheel, f"packages/{wheel.name}")
    ours = Path(target.parent, STATIC, wheel_name(root))
    book = package("tinytorch-book", ours, f"../{STATIC}/{ours.name}")
    # an address that changes with the file, so that no older one comes from the browser's cache;
    # Pyodide looks at its end to see that it is a wheel
    book["file_name"] += f"?v={book['sha256'][:16]}.whl"
    imports = ["tinytorch", "tinytorch_book"]
    packages["tinytorch-book"] = {**book, "imports": imports, "depends": BESIDES}
    write(target / LOCK, lock)


def package(name: str, wheel: Path, address: str) -> dict[str, Any]:
    """Describe a wheel as a lock does."""
    return {
        "name": name,
        "version": wheel.name.split("-")[1],
        "file_name": address,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "install_dir": "site",
        "package_type": "package",
        "unvendored_tests": False,
        "imports": [],
        "depends": [],
    }


def add_notebooks(config: Config, notebooks: list[Path], drawn: Path, target: Path) -> None:
    """Copy the notebooks and the drawings that they show, and list both for the file browser.

    Args:
        config: which repository the notebooks name, and which one publishes.
        notebooks: the files.
        drawn: the folder of the drawings.
        target: the folder of JupyterLite.
    """
    # A browser asks for a picture as soon as JupyterLab has made its element, seen from the page:
    # that is the site's. Then JupyterLab looks it up among its files, whose root has no parent.
    folder = DRAWINGS.as_posix()
    files = emptied(target / "files")
    for path in notebooks:
        text = with_own_addresses(config, path.read_bytes()).decode()
        notebook = json.loads(text.replace(f"{config.book_site}{folder}/", f"../../{folder}/"))
        notebook["metadata"]["kernelspec"] = KERNEL
        write(files / path.name, notebook)
    pictures = emptied(files / folder)
    for path in drawn.iterdir():
        # JupyterLite makes an address of the letters, one byte for each: so no letter may need two
        ascii_only = path.read_text(encoding="utf-8").encode("ascii", "xmlcharrefreplace")
        (pictures / path.name).write_bytes(ascii_only)
    names = [path.name for path in notebooks]
    list_folder(target, "", [entry(name, "notebook", files / name) for name in names])
    content = [entry(f"{folder}/{p.name}", "file", p) for p in sorted(pictures.iterdir())]
    list_folder(target, folder, content)


def list_folder(target: Path, folder: str, content: list[dict[str, Any]]) -> None:
    """Write the listing of a folder."""
    listing = target / "api/contents" / folder / "all.json"
    listing.parent.mkdir(parents=True, exist_ok=True)
    write(listing, {**entry(folder, "directory"), "format": "json", "content": content})


def emptied(folder: Path) -> Path:
    """Make a folder, with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def entry(path: str, kind: str, file: Path | None = None) -> dict[str, Any]:
    """Describe a file as Jupyter's contents interface does."""
    return {
        "name": path.rsplit("/", 1)[-1],
        "path": path,
        "type": kind,
        "size": file.stat().st_size if file else None,
        "created": EPOCH,
        "last_modified": EPOCH,
        "writable": True,
        "format": None,
        "mimetype": None,
        "content": None,
    }


def write(path: Path, content: Any) -> None:
    """Write JSON."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("config-inited", offer)
    app.connect("build-finished", complete_site, priority=900)  # live_site has built the wheel
    return {"parallel_read_safe": True, "parallel_write_safe": True}
