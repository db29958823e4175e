"""Where the book's parts are, its built pages and its committed notebooks."""

import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from _ext.addresses import site_url
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
NOTEBOOKS = ROOT / "book" / "notebooks"


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def pages():
    """The pages in reading order."""
    toc = read("_toc.yml")
    chapters = [entry for part in toc["parts"] for entry in part["chapters"]]
    entries = [page for entry in chapters for page in (entry, *entry.get("sections", ()))]
    return [toc["root"], *(entry["file"] for entry in entries)]


def has_code(docname):
    return "\nkernelspec:" in (ROOT / f"{docname}.md").read_text(encoding="utf-8")


PAGES = pages()
NAMES = {page.rsplit("/", 1)[-1]: page for page in PAGES if has_code(page)}  # of the notebooks
# chapters lie in a folder of their part; the landing page, the appendix and the pages of proofs are
# not chapters
NO_CHAPTERS = ("book/appendix/", "book/proofs/")
CHAPTERS = [p for p in PAGES if p.count("/") == 2 and not p.startswith(NO_CHAPTERS)]


@cache
def repository():
    """The repository that `_config.yml` names: its address, its branch, and its site."""
    named = read("_config.yml")["repository"]
    return SimpleNamespace(
        repository=named["url"], branch=named["branch"], site=site_url(named["url"])
    )


@cache
def soup(docname: str) -> BeautifulSoup:
    """The built page, parsed once."""
    path = SITE / f"{docname}.html"
    source = SITE / "_sources" / f"{docname}.md"
    if not path.exists():
        pytest.fail(f"{docname}.html has not been built: run `make book` first", pytrace=False)
    if source.exists() and source.read_bytes() != (ROOT / f"{docname}.md").read_bytes():
        pytest.fail(
            f"{docname}.html is older than its source: run `make book` first", pytrace=False
        )
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@cache
def cells(name: str, kind: str = "code") -> list:
    """The code or Markdown cells of a committed notebook; `source` is one text."""
    notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    found = [cell for cell in notebook["cells"] if cell["cell_type"] == kind]
    return [{**cell, "source": "".join(cell["source"])} for cell in found]


def tags(cell):
    return set(cell["metadata"].get("tags", []))
