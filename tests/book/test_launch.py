"""Every way to run a chapter leads somewhere: Colab, Binder, the download and the source."""

import os
import re
import subprocess

import pytest
from built import NAMES, NOTEBOOKS, ROOT
from links import resolve

BINDER = ROOT / "binder"


def hrefs(page):
    return [str(tag["href"]) for tag in page.find_all("a", href=True)]


def starting(page, start):
    return sorted({link for link in hrefs(page) if link.startswith(start)})


class TestEveryChapter:
    def test_opens_in_colab(self, chapter, chapter_page, index):
        name = chapter.rsplit("/", 1)[-1]
        repository = "/".join(index.repository.split("/")[-2:])
        expected = f"github/{repository}/blob/{index.branch}/book/notebooks/{name}.ipynb"
        assert starting(chapter_page, "https://colab") == [
            f"https://colab.research.google.com/{expected}"
        ]
        assert (NOTEBOOKS / f"{name}.ipynb").exists()

    def test_opens_in_binder(self, chapter, chapter_page, index):
        (link,) = starting(chapter_page, "https://mybinder.org")
        assert link.endswith(f"lab/tree/{chapter}.md")
        assert resolve(link, index) == ""

    def test_offers_its_source(self, chapter, chapter_page, index):
        assert f"{index.repository}/blob/{index.branch}/{chapter}.md" in hrefs(chapter_page)

    def test_offers_its_own_notebook(self, chapter, chapter_page):
        name = chapter.rsplit("/", 1)[-1]
        offered = [
            link for link in hrefs(chapter_page) if link.endswith(f"_sources/{chapter}.ipynb")
        ]
        offered += [link for link in hrefs(chapter_page) if link.endswith(f"/{name}.ipynb")]
        assert offered, "the toolbar must offer the notebook"

    def test_one_menu_names_every_place_to_open_it(self, chapter_page):
        assert len(chapter_page.select(".tt-open > button")) == 1
        told = [entry.get_text(" ", strip=True) for entry in chapter_page.select(".tt-open li")]
        lite = (ROOT / "_build/html/lite").exists()
        first_words = ["This", *["JupyterLite,"] * lite, "Binder,", "Colab,", "Download"]
        assert [text.split()[0] for text in told] == first_words
        assert chapter_page.find(id="run-here"), "where the first entry leads"


def test_only_pages_with_a_notebook_offer_colab(docname, page, index):
    links = starting(page, "https://colab") + starting(page, "https://mybinder.org")
    if docname not in NAMES.values():
        assert [link for link in links if f"/{docname}" in link] == []
    assert [problem for link in links if (problem := resolve(link, index))] == []


class TestBinder:
    def test_requirements_are_pinned_and_do_not_install_the_tree(self):
        lines = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
        named = [line.split("#")[0].strip(" \\") for line in lines]
        named = [line for line in named if line and not line.startswith("--hash")]
        assert [
            line for line in named if not re.match(r"[\w.\[\]-]+==[\w.]+(\s*;.*)?$", line)
        ] == []
        packages = {re.split(r"[\[=]", line)[0].lower() for line in named}
        assert {"numpy", "matplotlib", "jupytext"} <= packages

    def test_runtime_is_a_python_that_the_package_supports(self):
        runtime = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip()
        assert re.fullmatch(r"python-3\.\d+", runtime)
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        lowest = re.search(r'requires-python = ">=3\.(\d+)"', project)
        assert int(runtime.rpartition(".")[2]) >= int(lowest[1])

    def test_post_build_can_be_executed_and_opens_chapters_as_notebooks(self):
        script = BINDER / "postBuild"
        text = script.read_text(encoding="utf-8")
        assert os.access(script, os.X_OK)
        assert text.startswith("#!")
        assert "jupytext-config set-default-viewer" in text
        assert re.search(r"pip install .*--no-deps", text), "the package itself is installed here"

    def test_repo2docker_finds_and_uses_these_files(self, monkeypatch):
        packs = pytest.importorskip("repo2docker.buildpacks", reason="repo2docker is not installed")
        monkeypatch.chdir(ROOT)
        pack = packs.PythonBuildPack(base_image="docker.io/library/buildpack-deps:jammy")
        assert pack.detect()
        runtime = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip()
        assert pack.python_version == runtime.removeprefix("python-")
        commands = " ".join(script for _, script in pack.get_assemble_scripts())
        commands += " ".join(script for _, script in pack.get_preassemble_scripts())
        assert "binder/requirements.txt" in commands
        assert "binder/postBuild" in pack.get_post_build_scripts()
        assert pack.get_start_script().endswith("/binder/start")
        shown = subprocess.run([BINDER / "start", "env"], check=True, capture_output=True).stdout
        assert b"OPENBLAS_NUM_THREADS=1" in shown.splitlines()
