"""The committed notebooks are those of the last build, in plain Markdown and plain Python."""

import ast
import re

import pytest
from _ext.notebooks import builder
from built import NAMES, NOTEBOOKS, ROOT, SITE, cells, soup, tags
from links import problem_with
from raw_myst import raw_myst


def test_there_is_a_notebook_for_every_chapter():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(NAMES)


def test_notebooks_and_prose_are_those_of_the_last_build():
    if not (ROOT / builder.FRESH / builder.PROSE.name).exists():
        pytest.fail(f"{builder.FRESH} is empty: run `make test` or `make notebooks`", False)
    assert builder.check(ROOT) == []


def test_shows_no_raw_myst(name):
    assert [what for cell in cells(name, "markdown") for what in raw_myst(cell["source"])] == []


def test_is_plain_python_except_for_the_install_cell(name):
    first, *rest = cells(name)
    assert "pip" in first["source"]
    assert tags(first) == {"remove-cell"}
    for cell in (first, *rest):
        ast.parse(cell["source"], filename=cell["id"])
    assert not [cell["id"] for cell in rest if "get_ipython" in cell["source"]]


def test_every_cell_has_run_and_stores_no_picture(name):
    code = cells(name)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    kinds = {kind for cell in code for out in cell["outputs"] for kind in out.get("data", {})}
    assert not [kind for kind in kinds if kind.startswith("image/")]


def test_links_lead_to_built_pages_and_files(name, index):
    texts = [cell["source"] for cell in cells(name, "markdown")]
    assert [problem for text in texts for problem in problem_with(text, index)] == []


def test_a_page_and_its_notebook_use_the_same_numbers(name):
    page = soup(NAMES[name]).select_one("article")
    text = "\n".join(cell["source"] for cell in cells(name, "markdown"))
    formulas = [tag.get_text().strip("()#") for tag in page.select(".eqno")]
    assert re.findall(r"\\tag\{(.*?)\}", text) == [f.replace("¶", "").strip("()") for f in formulas]
    figures = [tag.get_text().strip() for tag in page.select("figcaption .caption-number")]
    assert re.findall(r"\*\*(Fig\. [\d.]+):\*\*", text) == figures
    exercises = [tag.get_text() for tag in page.select(".exercise .caption-number")]
    assert re.findall(r"(?m)^### (Exercise [\d.]+)", text) == [e.strip() for e in exercises]


def test_a_page_offers_the_committed_notebook(name):
    copied = SITE / "_sources" / f"{NAMES[name]}.ipynb"
    assert copied.read_bytes() == (NOTEBOOKS / f"{name}.ipynb").read_bytes()
