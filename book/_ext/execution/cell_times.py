"""What each cell took when it was executed, noted beside the cache, or takes in a browser."""

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

TIMES = "cell_times.json"
MEASURED = Path("book/_runtime/browser_times.json")  # seconds in a browser, by the cells' keys


def key_of(source: str) -> str:
    """Name a cell by its code."""
    return hashlib.sha256(source.strip().encode()).hexdigest()[:16]


def expected_seconds(notebook: NotebookNode, measured: dict[str, float]) -> float:
    """Guess from what its cells take in a browser whether a chapter is slow."""
    return sum(measured.get(key_of(cell.source), 0) for cell in notebook.cells)


def note_times(notebook: NotebookNode, path: Path) -> None:
    """Move the times from the cells, where they would be part of the cache's key, to a file."""
    times = read_json(path)
    for cell in notebook.cells:
        if seconds := seconds_of(cell):
            times[key_of(cell.source)] = round(seconds, 3)
        cell.metadata.pop("execution", None)
    write_json(path, times)


def seconds_of(cell: NotebookNode) -> float:
    """Subtract the two times that the Jupyter protocol has left in a cell; 0 without them."""
    stamps = cell.metadata.get("execution") or {}
    begun, ended = (stamps.get(k) for k in ("iopub.status.busy", "shell.execute_reply"))
    if not (begun and ended):
        return 0.0
    first, last = (datetime.fromisoformat(t.replace("Z", "+00:00")) for t in (begun, ended))
    return (last - first).total_seconds()


def read_json(path: Path) -> dict[str, Any]:
    """Read what was noted; nothing if nothing has been executed yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_json(path: Path, noted: dict[str, Any]) -> None:
    """Write what is noted beside the cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(noted, indent=0, sort_keys=True), encoding="utf-8")
