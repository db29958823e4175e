"""The published model in the site: in pieces that any static host takes, with a list of them.

`make live` and `make book` have fetched it into `_build/models`. Without it the site has no pieces,
and the panel that would fetch them says so.
"""

import hashlib
import json
import shutil
from pathlib import Path

from . import pinned_downloads

GROUP = "smollm2"
MANIFEST = "manifest.json"
MOST = 20_000_000  # bytes of a piece


def put(root: Path, target: Path) -> None:
    """Make a folder hold the pieces of the model and their list, or nothing if it is not there."""
    (path,) = pinned_downloads.files(GROUP, root)
    (digest,) = pinned_downloads.pins(root)[GROUP]["files"].values()
    if not path.exists():
        shutil.rmtree(target, ignore_errors=True)
    elif not is_current(target / MANIFEST, digest):
        shutil.rmtree(target, ignore_errors=True)
        if not pinned_downloads.missing(GROUP, root):
            split(path, target)


def is_current(manifest: Path, digest: str) -> bool:
    """Return whether a folder was made of the file with this hash; its list is written last."""
    return manifest.exists() and json.loads(manifest.read_text("utf-8"))["sha256"] == digest


def split(path: Path, target: Path, most: int = MOST) -> None:
    """Write a file's pieces of at most so many bytes, named by their hashes, and their list."""
    target.mkdir(parents=True)
    pieces: list[dict[str, str | int]] = []
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(most):
            whole.update(piece)
            digest = hashlib.sha256(piece).hexdigest()
            name = f"{digest[:16]}.bin"
            pieces.append({"name": name, "size": len(piece), "sha256": digest})
            (target / name).write_bytes(piece)
    size = path.stat().st_size
    manifest = {"name": path.name, "size": size, "sha256": whole.hexdigest(), "pieces": pieces}
    (target / MANIFEST).write_text(f"{json.dumps(manifest, indent=1)}\n", encoding="utf-8")
