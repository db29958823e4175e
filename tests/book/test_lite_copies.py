"""The book in JupyterLite: a copy of every notebook, links to it, and nothing from elsewhere."""

import json
import re
from urllib.parse import parse_qs, urlsplit
from xml.etree.ElementTree import canonicalize
from zipfile import ZipFile

import pytest
from built import NOTEBOOKS, SITE

LITE = SITE / "lite"


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def offered(chapter_page):
    """Where the page's link to JupyterLite leads."""
    return [a["href"] for a in chapter_page.find_all("a", href=True) if "/lite/" in a["href"]]


@pytest.fixture
def built():
    if not (SITE / "_static/live/pyodide").exists():
        pytest.skip("the site holds no Python: run `make live`, then `make book`")


def test_every_chapter_offers_its_copy(built, chapter, offered):
    (menu,) = map(urlsplit, offered)
    assert (SITE / chapter).parent.joinpath(menu.path).resolve() == LITE / "lab" / "index.html"
    assert (LITE / "lab" / "index.html").exists()
    name = f"{chapter.rsplit('/', 1)[-1]}.ipynb"
    assert parse_qs(menu.query) == {"path": [name]}
    copy = read(LITE / "files" / name)
    shown = re.compile(r"https://[^)]*/(?=_static/drawings/)")
    original = json.loads(shown.sub("../../", (NOTEBOOKS / name).read_text(encoding="utf-8")))
    assert copy["cells"] == original["cells"]
    assert copy["metadata"]["kernelspec"]["name"] == "python"


def test_without_the_runtime_no_page_offers_it(chapter, offered):
    if not LITE.exists():
        assert offered == []


def test_the_file_browser_lists_every_notebook(built):
    listing = read(LITE / "api/contents/all.json")
    names = [entry["name"] for entry in listing["content"]]
    assert names == sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
    drawings = read(LITE / "api/contents/_static/drawings/all.json")["content"]
    assert drawings
    for entry in (*listing["content"], *drawings):
        assert entry["size"] == (LITE / "files" / entry["path"]).stat().st_size


def test_every_picture_of_a_copy_is_in_its_folder(built, chapter):
    text = (LITE / "files" / f"{chapter.rsplit('/', 1)[-1]}.ipynb").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^]]*\]\((?!attachment:|data:)([^)]+)\)", text)
    for address in shown:
        assert (LITE / "lab" / address).resolve().is_file(), "what the browser asks for first"
        assert (LITE / "files" / address.removeprefix("../../")).is_file()


def test_every_drawing_is_an_ascii_copy_of_the_sites(built):
    """What JupyterLite makes of the others is no picture."""
    folder = "_static/drawings"
    drawings = sorted((SITE / folder).iterdir())
    assert drawings
    for path in drawings:
        copy = LITE / "files" / folder / path.name
        assert copy.read_bytes().isascii(), path.name
        same = [canonicalize(from_file=file) for file in (copy, path)]
        assert same[0] == same[1], path.name


def test_python_and_every_package_come_from_this_site(built):
    settings = read(LITE / "jupyter-lite.json")["jupyter-config-data"]["litePluginSettings"]
    kernel = settings["@jupyterlite/pyodide-kernel-extension:kernel"]
    assert kernel["disablePyPIFallback"] is True
    assert LITE.joinpath(kernel["pyodideUrl"]).resolve().exists()
    assert all(urlsplit(address).scheme == "" for address in kernel["pipliteUrls"])
    lock = read(LITE / kernel["loadPyodideOptions"]["lockFileURL"])
    for entry in lock["packages"].values():
        assert LITE.joinpath(urlsplit(entry["file_name"]).path).resolve().is_file()
    assert set(kernel["loadPyodideOptions"]["packages"]) <= set(lock["packages"])
    ours = lock["packages"]["tinytorch-book"]
    with ZipFile(LITE.joinpath(urlsplit(ours["file_name"]).path)) as wheel:
        held = {name.partition("/")[0] for name in wheel.namelist() if ".dist-info/" not in name}
    assert sorted(ours["imports"]) == sorted(held), "else a cell's import finds nothing to load"
    copies = [path.name for path in LITE.rglob("*") if path.name.startswith(("numpy-", "pyodide."))]
    assert copies == [], "JupyterLite shares these with the live cells"
