"""The whole site as one archive, to be read and run without a network: `make offline`.

    python -m _ext.print.offline   writes _build/print/tinytorch-offline.zip from the built site

Opened as files the pages can be read. Their cells, and the playground, need a server on the same
machine: browsers let no page that is a file load modules or start workers. What is in the archive
says how to start one; Python brings it. What only a search engine or a developer would look for
is left out.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from ..addresses import ROOT
from .printed_pages import ARCHIVE, SITE

FOLDER = "tinytorch-offline"
MOST = 80_000_000  # bytes
LEFT_OUT = ("*.map", "robots.txt", "sitemap.xml", "404.html", "print/*", "_static/live/smollm2/*")
LICENCES = ("LICENSE", "LICENSE-prose", "THIRD-PARTY.md")
PYTHON = "_static/live/pyodide/pyodide-lock.json"
README = """TinyTorch: embeddings to GPT, to be read and run without a network

To read, open index.html in a browser.

To run the cells as well, serve this folder on your own machine. With Python, in this folder:

    python -m http.server --bind 127.0.0.1 8000

Then open http://localhost:8000 in a browser. Where the package is installed,
`python -m tinytorch_book book` does both, with this folder or its archive. Pages that are opened as
files cannot run cells or the playground: browsers do not let them start what runs
there. Colab and Binder need the network.

Code: LICENSE (MIT). Prose and figures: LICENSE-prose (CC BY 4.0). Parts made by others, among them
Pyodide (MPL 2.0): THIRD-PARTY.md.
"""


def files(site: Path) -> Iterator[Path]:
    """Yield the files that belong in the archive, in a fixed order."""
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site)
        left_out = any(name.match(pattern) or name.parts[0] == pattern[:-2] for pattern in LEFT_OUT)
        if path.is_file() and not left_out:
            yield path


def make(site: Path = SITE, target: Path = ARCHIVE) -> None:
    """Write the archive of a built site.

    Raises:
        FileNotFoundError: the site holds no Python to run cells with.
        ValueError: the archive is larger than it may be.
    """
    if not (site / PYTHON).exists():
        raise FileNotFoundError(f"{site} holds no Python: run `make live`, then `make book`")
    target.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        archive.writestr(ZipInfo(f"{FOLDER}/README.txt"), README, ZIP_DEFLATED)
        for name in LICENCES:
            text = (ROOT / name).read_bytes()
            archive.writestr(ZipInfo(f"{FOLDER}/{name}"), text, ZIP_DEFLATED)
        for path in files(site):
            entry = ZipInfo(f"{FOLDER}/{path.relative_to(site).as_posix()}")
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), ZIP_DEFLATED)
    size = target.stat().st_size
    if size > MOST:
        raise ValueError(f"{target} has {size:,} bytes, {MOST:,} are allowed")
    sys.stdout.write(f"{target}: {size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    make()
