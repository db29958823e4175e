"""The site by release: the newest state, the releases beside it, and the list that names them."""

import re
import zipfile

import pytest
from _ext.look import versions

PAGE = '<!doctype html><html><body class="book" data-x="1"><h1>{}</h1></body></html>'
LIST = f"<body><h1>Versions</h1>{versions.PAGE.format(latest='only this', releases='#')}</body>"


def files(version, *pages):
    """The files of a site, with two pages of its own beside the one that every version has."""
    names = ["index.html", "book/intro.html", *pages]
    return {name: PAGE.format(f"{name} of {version}") for name in names} | {
        versions.LIST: LIST,
        "404.html": "lost",
        "robots.txt": "all",
        "sitemap.xml": "<urlset/>",
        f"_static/live/tinytorch_book-{version}-py3-none-any.whl": "the package",
    }


@pytest.fixture
def site(tmp_path):
    for name, content in files("1.3.0", "book/new.html").items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return tmp_path / "site"


@pytest.fixture
def released(tmp_path):
    """Three releases, two of them of one minor version; one archive has a folder of its own."""
    archives = []
    for version, top in (("1.0.0", ""), ("1.2.0", "offline/"), ("1.0.10", "")):
        archives.append(tmp_path / f"v{version}.zip")
        with zipfile.ZipFile(archives[-1], "w") as archive:
            for name, content in files(version, "book/old.html").items():
                archive.writestr(f"{top}{name}", content)
    return archives


def test_each_release_stands_beside_the_newest_state(site, released, tmp_path):
    pages = tmp_path / "pages"
    assert versions.assemble(site, pages, released) == ["1.2", "1.0"]
    assert "book/intro.html of 1.3.0" in (pages / "book/intro.html").read_text("utf-8")
    assert "book/intro.html of 1.2.0" in (pages / "v/1.2/book/intro.html").read_text("utf-8")
    assert "book/intro.html of 1.0.10" in (pages / "v/1.0/book/intro.html").read_text("utf-8")
    assert not list((pages / "v").rglob("404.html")) + list((pages / "v").rglob("sitemap.xml"))
    assert (pages / "404.html").exists() and (pages / "sitemap.xml").exists()


def test_the_oldest_minor_version_makes_room(site, released, tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "KEPT", 1)
    assert versions.assemble(site, tmp_path / "pages", released) == ["1.2"]
    assert [path.name for path in (tmp_path / "pages/v").iterdir()] == ["1.2"]
    assert "1.0.10" not in (tmp_path / "pages" / versions.LIST).read_text("utf-8")


def test_the_newest_pages_are_left_as_they_were_tested(site, released, tmp_path):
    versions.assemble(site, tmp_path / "pages", released)
    for path in (site / "book").rglob("*.html"):
        assert (tmp_path / "pages" / path.relative_to(site)).read_bytes() == path.read_bytes()


def links(page):
    text = page.read_text(encoding="utf-8")
    return [(page.parent / link).resolve() for link in re.findall(r'href="([^"]+)"', text)]


def test_an_old_page_says_what_it_is_and_leads_to_the_newest(site, released, tmp_path):
    pages = tmp_path / "pages"
    versions.assemble(site, pages, released)
    page = pages / "v/1.0/book/intro.html"
    assert re.search(r"<body [^>]*><p [^>]*>This is version 1\.0\.10 ", page.read_text("utf-8"))
    assert links(page) == [pages / "book/intro.html", pages / versions.LIST]
    gone = pages / "v/1.0/book/old.html"  # which the newest state lacks
    assert links(gone) == [pages / "index.html", pages / versions.LIST]


def test_the_list_names_all_wherever_it_is_read(site, released, tmp_path):
    pages = tmp_path / "pages"
    versions.assemble(site, pages, released)
    wanted = [pages / name for name in ("index.html", "v/1.2/index.html", "v/1.0/index.html")]
    assert links(pages / versions.LIST)[-3:] == wanted
    assert links(pages / "v/1.0" / versions.LIST)[-3:] == wanted
    assert all(page.exists() for page in wanted)


def test_without_a_release_the_site_is_published_as_it_is(site, tmp_path, capsys):
    assert versions.main([str(site), str(tmp_path / "pages")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'pages'}: the newest state\n"
    assert not (tmp_path / "pages" / "v").exists()


def test_an_archive_that_is_not_a_release_is_refused_before_writing(site, tmp_path, capsys):
    strange = tmp_path / "strange.zip"
    with zipfile.ZipFile(strange, "w") as archive:
        archive.writestr("index.html", "another site")
    assert versions.main([str(site), str(tmp_path / "pages"), str(strange)]) == 1
    assert "holds no wheel of the package: is it a site of this book?" in capsys.readouterr().err
    assert not (tmp_path / "pages").exists()


def test_an_archive_cannot_write_beside_its_folder(site, tmp_path):
    archive = tmp_path / "v1.0.0.zip"
    with zipfile.ZipFile(archive, "w") as written:
        for name, content in (files("1.0.0") | {"../../outside.html": "here"}).items():
            written.writestr(name, content)
    versions.assemble(site, tmp_path / "pages", [archive])
    assert not list(tmp_path.rglob("outside.html"))
