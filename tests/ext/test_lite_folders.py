"""What JupyterLite gets: copies of the notebooks, the drawings they show, and lists of both."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from _ext.live import jupyterlite

ADDRESS = "https://someone.github.io/book/_static/drawings/"
CONFIG = SimpleNamespace(
    book_repository="https://github.com/someone/book",
    book_site="https://fork.github.io/book/",
    html_theme_options={"repository_url": "https://github.com/fork/book"},
)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def given(tmp_path):
    """Two notebooks, one of which shows a drawing, and a folder with that drawing."""
    texts = {"b": f"![A]({ADDRESS}a.svg) and [here](https://someone.github.io/book/)", "a": "×"}
    for name, text in texts.items():
        cells = [{"cell_type": "markdown", "source": text}]
        content = {"cells": cells, "metadata": {"kernelspec": {"name": "python3"}}}
        jupyterlite.write(tmp_path / f"{name}.ipynb", content)
    drawn = tmp_path / "drawn"
    drawn.mkdir()
    (drawn / "a.svg").write_text("<svg><text>x × ω</text></svg>", encoding="utf-8")
    return SimpleNamespace(notebooks=sorted(tmp_path.glob("*.ipynb")), drawn=drawn)


def test_a_copy_shows_the_drawings_from_beside_it_and_asks_for_its_own_kernel(given, tmp_path):
    jupyterlite.add_notebooks(CONFIG, given.notebooks, given.drawn, tmp_path / "lite")
    copy = read(tmp_path / "lite/files/b.ipynb")
    shown = "![A](../../_static/drawings/a.svg) and [here](https://fork.github.io/book/)"
    assert copy["cells"] == [{"cell_type": "markdown", "source": shown}]
    assert copy["metadata"]["kernelspec"]["name"] == "python"


def test_a_drawing_is_copied_in_ascii(given, tmp_path):
    jupyterlite.add_notebooks(CONFIG, given.notebooks, given.drawn, tmp_path / "lite")
    copy = tmp_path / "lite/files/_static/drawings/a.svg"
    assert copy.read_bytes() == b"<svg><text>x &#215; &#969;</text></svg>"


def test_every_folder_has_a_list_of_what_is_in_it(given, tmp_path):
    jupyterlite.add_notebooks(CONFIG, given.notebooks, given.drawn, tmp_path / "lite")
    lists = tmp_path / "lite/api/contents"
    found = {path.parent.relative_to(lists).as_posix() for path in lists.rglob("all.json")}
    assert found == {".", "_static/drawings"}
    for folder in found:
        told = read(lists / folder / "all.json")
        path = "" if folder == "." else folder
        assert (told["type"], told["path"], told["name"]) == ("directory", path, Path(path).name)
        for entry in told["content"]:
            file = tmp_path / "lite/files" / entry["path"]
            assert entry["name"] == file.name and file.parent == tmp_path / "lite/files" / path
            assert entry["size"] == file.stat().st_size
            assert entry["created"] == entry["last_modified"] == jupyterlite.EPOCH
    names = [(e["name"], e["type"]) for e in read(lists / "all.json")["content"]]
    assert names == [("a.ipynb", "notebook"), ("b.ipynb", "notebook")]
    drawings = read(lists / "_static/drawings/all.json")["content"]
    assert [(e["name"], e["type"]) for e in drawings] == [("a.svg", "file")]


def test_files_that_the_book_no_longer_has_are_removed(given, tmp_path):
    jupyterlite.add_notebooks(CONFIG, given.notebooks, given.drawn, tmp_path / "lite")
    (given.drawn / "a.svg").rename(given.drawn / "c.svg")
    jupyterlite.add_notebooks(CONFIG, given.notebooks[:1], given.drawn, tmp_path / "lite")
    files = [path for path in (tmp_path / "lite/files").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["a.ipynb", "c.svg"]
    assert [e["name"] for e in read(tmp_path / "lite/api/contents/all.json")["content"]] == [
        "a.ipynb"
    ]
