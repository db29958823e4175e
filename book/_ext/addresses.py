"""Where things are: the repository, its site and releases, folders in both, and the pages in order.

`repository.url` in `_config.yml` is the one place that names the repository.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]  # of this repository
NOTEBOOKS = PurePosixPath("book/notebooks")
IN_PRINT = "print"  # folders of the published site
DRAWINGS = Path("_static/drawings")


def repository_url(configured: str) -> str:
    """Name the repository: the one a workflow runs in, else the one of `_config.yml`."""
    name = os.environ.get("GITHUB_REPOSITORY")
    if not name:
        return configured.rstrip("/")
    return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{name}"


def site_url(repository: str) -> str:
    """Return the address at which GitHub Pages serves a repository's site."""
    owner, name = repository.rsplit("/", 2)[-2:]
    host = f"https://{owner.lower()}.github.io/"
    return host if name.lower() == f"{owner.lower()}.github.io" else f"{host}{name}/"


def released_tag(root: Path) -> str:
    """Return the tag of the release that this tree is, by the changelog's first date; else ""."""
    changes = root / "CHANGELOG.md"
    text = changes.read_text(encoding="utf-8") if changes.exists() else ""
    found = re.search(r"^## (\S+)(?: \((.*)\))?$", text, re.M)
    return f"v{found[1]}" if found and re.fullmatch(r"\d{4}-\d\d-\d\d", found[2] or "") else ""


def package_requirement(repository: str, root: Path) -> str:
    """Return pip's requirement for the package: at a release's tag, else the newest state."""
    tag = released_tag(root)
    return f"tinytorch-book @ git+{repository}{f'@{tag}' if tag else ''}"


def reading_order(env: Any) -> list[str]:
    """Name the pages of the book in the order in which one reads them."""

    def below(docname: str) -> Iterator[str]:
        yield docname
        for child in env.toctree_includes.get(docname, []):
            yield from below(child)

    return [*below(env.config.root_doc)]
