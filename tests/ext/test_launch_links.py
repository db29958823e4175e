"""Where launch links lead, and what they are made from."""

from types import SimpleNamespace

import nbformat
import pytest
from _ext.addresses import package_requirement, released_tag, repository_url, site_url
from _ext.launch_links import launch_links, name_repository
from small_site import build

OPTIONS = {
    "repository_url": "https://github.com/someone/book",
    "repository_branch": "main",
    "launch_buttons": {
        "colab_url": "https://colab.example/",
        "binderhub_url": "https://binder.example",
    },
}
PAGE = "book/foundations/tensors"


def application(root, *, executable=True):
    env = SimpleNamespace(
        metadata={PAGE: {"kernelspec": {}} if executable else {}},
        doc2path=lambda docname, base: f"{docname}.md",
    )
    builder = SimpleNamespace(get_target_uri=lambda docname: f"{docname}.html")
    config = SimpleNamespace(html_theme_options=OPTIONS)
    return SimpleNamespace(srcdir=root, env=env, builder=builder, config=config)


def test_a_chapter_with_a_notebook_has_every_link(tmp_path):
    (tmp_path / "book" / "notebooks").mkdir(parents=True)
    (tmp_path / "book" / "notebooks" / "tensors.ipynb").touch()
    assert launch_links(application(tmp_path), PAGE) == {
        "Colab": "https://colab.example/github/someone/book/blob/main/book/notebooks/tensors.ipynb",
        "Binder": "https://binder.example/v2/gh/someone/book/main?urlpath=lab/tree/book/foundations/tensors.md",
        ".ipynb": "../../_sources/book/foundations/tensors.ipynb",
        "Source": "https://github.com/someone/book/blob/main/book/foundations/tensors.md",
    }


def test_jupyterlite_is_offered_where_the_site_holds_it(tmp_path, monkeypatch):
    (tmp_path / "book" / "notebooks").mkdir(parents=True)
    (tmp_path / "book" / "notebooks" / "tensors.ipynb").touch()
    services = {**OPTIONS["launch_buttons"], "jupyterlite_url": "lite/lab/index.html"}
    monkeypatch.setitem(OPTIONS, "launch_buttons", services)
    link = launch_links(application(tmp_path), PAGE)["JupyterLite"]
    assert link == "../../lite/lab/index.html?path=tensors.ipynb"


def test_without_its_notebook_a_chapter_offers_neither_colab_nor_a_download(tmp_path):
    assert set(launch_links(application(tmp_path), PAGE)) == {"Binder", "Source"}


def test_a_page_without_code_offers_only_its_source(tmp_path):
    assert set(launch_links(application(tmp_path, executable=False), PAGE)) == {"Source"}


def test_a_workflow_names_its_own_repository(monkeypatch):
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    assert repository_url("https://github.com/a/b/") == "https://github.com/a/b"
    monkeypatch.setenv("GITHUB_REPOSITORY", "fork/b")
    monkeypatch.delenv("GITHUB_SERVER_URL", raising=False)
    assert repository_url("https://github.com/a/b") == "https://github.com/fork/b"


@pytest.mark.parametrize(
    ("repository", "site"),
    [
        ("https://github.com/Someone/book", "https://someone.github.io/book/"),
        ("https://github.com/Someone/someone.github.io", "https://someone.github.io/"),
    ],
)
def test_the_site_follows_from_the_repository(repository, site):
    assert site_url(repository) == site


def test_links_beside_the_pages_and_notebooks_follow_a_move_of_the_repository(
    tmp_path, monkeypatch
):
    """Also in a second build, for which nothing in the tree has changed."""
    cell = nbformat.v4.new_markdown_cell("https://a.github.io/b/x.html git+https://github.com/a/b")
    text = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
    notebook = tmp_path / "source/book/notebooks/index.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text(text, encoding="utf-8")
    words = "{in-print}`tinytorch.pdf` {on-site}`versions.html` {in-repository}`LICENSE`"
    pages = {"index": f"---\nkernelspec:\n  name: python3\n---\n# A\n\n{words}"}
    for owner in ("a", "fork"):
        folder, _ = build(tmp_path, fresh=bool(pages), **pages)
        page = (folder / "index.html").read_text(encoding="utf-8")
        site, source = f"https://{owner}.github.io/b", f"https://github.com/{owner}/b"
        for address in ("print/tinytorch.pdf", "versions.html"):
            assert f'href="{site}/{address}"' in page
        assert f'href="{source}/blob/main/LICENSE"' in page
        told = (tmp_path / "out/_sources/book/index.ipynb").read_text(encoding="utf-8")
        assert f"{site}/x.html git+{source}" in told
        monkeypatch.setenv("GITHUB_REPOSITORY", "fork/b")
        pages.clear()


@pytest.mark.parametrize(
    ("heading", "tag"),
    [("1.2.3 (2026-12-01)", "v1.2.3"), ("1.2.3 (not released yet)", ""), ("1.2.3", "")],
)
def test_a_dated_heading_in_the_changelog_marks_a_release(tmp_path, heading, tag):
    text = f"# Changes\n\nWords.\n\n## {heading}\n\nNew.\n\n## 1.1.0 (2026-10-01)\n"
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    assert released_tag(tmp_path) == tag
    wanted = "tinytorch-book @ git+https://x.example/a/b" + f"@{tag}" * bool(tag)
    assert package_requirement("https://x.example/a/b", tmp_path) == wanted


def test_the_pages_of_a_release_launch_its_notebooks_and_show_its_files(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3 (2026-12-01)\n", encoding="utf-8")
    (tmp_path / "book" / "notebooks").mkdir(parents=True)
    (tmp_path / "book" / "notebooks" / "tensors.ipynb").touch()
    app = application(tmp_path)
    app.config = SimpleNamespace(html_theme_options=dict(OPTIONS), html_baseurl="")
    name_repository(app, app.config)
    links = launch_links(app, PAGE)
    assert app.config.book_branch == "v1.2.3"
    assert "/someone/book/blob/v1.2.3/book/notebooks/" in links["Colab"]
    assert "/gh/someone/book/v1.2.3?" in links["Binder"]
    assert "/blob/v1.2.3/" in links["Source"]
