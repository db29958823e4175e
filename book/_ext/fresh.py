"""No stale page: outputs depend on the package, and pages on their style sheets.

jupyter-cache keys an executed notebook on the code of its cells alone: after a change in
`tinytorch/` it would serve yesterday's outputs. Here the cache's directory carries a hash of the
package and of what executes it; when that changes, Sphinx sees another configuration, reads every
page again and finds an empty cache.
"""

import hashlib
import shutil
import sys
from importlib import metadata
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

CACHE_PREFIX = ".jupyter_cache-"


def looks(root: Path) -> str:
    """Hash what makes the pages look as they do: style sheets, scripts and pictures.

    Sphinx copies them only when it writes a page, so a change in them alone has to make it write.
    """
    digest = hashlib.sha256()
    for path in sorted((root / "book" / "_static").rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def fingerprint(root: Path) -> str:
    """Hash the package's files and the versions of what executes it.

    Args:
        root: the repository's root, the directory that holds `tinytorch/`.

    Returns:
        Sixteen hexadecimal digits.
    """
    digest = hashlib.sha256(f"timed {sys.version_info[:3]}".encode())
    for library in ("numpy", "matplotlib", "ipykernel"):
        digest.update(f"{library} {metadata.version(library)}\n".encode())
    for path in sorted((root / "tinytorch").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def choose_cache(app: Sphinx, config: Config) -> None:
    """Point myst-nb at the cache of this very package, and remove those of older ones."""
    root = Path(app.srcdir)
    cache = root / "_build" / f"{CACHE_PREFIX}{fingerprint(root)}"
    for old in cache.parent.glob(f"{CACHE_PREFIX}*"):
        if old != cache:
            shutil.rmtree(old, ignore_errors=True)
    config.nb_execution_cache_path = str(cache)
    config.static_fingerprint = looks(root)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_config_value("static_fingerprint", "", "html")
    app.connect("config-inited", choose_cache)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
