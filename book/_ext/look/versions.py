"""The site by release: the newest state at its root, each release under v/1.0/, and a list of them.

    python -m _ext.look.versions _build/html _build/pages RELEASED.zip ...

GitHub Pages shows what was sent last and nothing else, so that every publication holds all
releases: their sites come from the archives attached to them (`make offline`). Of a minor version
the newest stays, and of minor versions the newest five. Search engines are led to the newest state,
whose address every page names as its own; a reader of an old page is told so at its top.
"""

import argparse
import html
import re
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from sphinx.application import Sphinx

LIST = "versions.html"
KEPT = 5  # minor versions: a static host holds a gigabyte, and each takes 122 MB of it
BODY = re.compile(r"<body\b[^>]*>")
ITEMS = re.compile(r'(<ul class="tt-versions">).*?(</ul>)', re.S)
PAGE = """<section><h1>Versions of this book</h1>
<p>A released version stays at its address, so that a citation leads to what was read, until five
newer ones are listed. Then <a href="{releases}">its release</a> still has it as an archive.</p>
<ul class="tt-versions"><li>{latest}</li></ul></section>"""
LATEST = '<a href="{root}">The newest state</a>, with what has been fixed since the last release'
TOLD = (
    '<p style="margin: 0; padding: 0.5rem 1rem; background: #f9ece1; color: #1c2733">'
    "This is version {version} of the book. "
    '<a style="color: inherit" href="{newest}">The newest state of this page</a>, '
    '<a style="color: inherit" href="{versions}">all versions</a></p>'
)


class CannotAssemble(Exception):
    """An archive is not that of a release."""


def list_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Make the list of versions, on which only this one stands until it is published."""
    root = app.builder.get_target_uri(app.config.root_doc)
    releases = f"{app.config.html_theme_options['repository_url']}/releases"
    body = PAGE.format(latest=LATEST.format(root=root), releases=releases)
    yield LIST.removesuffix(".html"), {"title": "Versions of this book", "body": body}, "page.html"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("site", type=Path, help="the newest state, as `make book` built it")
    parser.add_argument("target", type=Path, help="what is to be published; it is replaced")
    parser.add_argument("archives", type=Path, nargs="*", help="the sites of the releases")
    options = parser.parse_args(arguments)
    try:
        kept = assemble(options.site, options.target, options.archives)
    except (CannotAssemble, OSError, zipfile.BadZipFile) as error:
        print(f"cannot assemble the site: {error}", file=sys.stderr)
        return 1
    print(f"{options.target}: the newest state{''.join(f', v/{name}' for name in kept)}")
    return 0


def assemble(site: Path, target: Path, archives: list[Path]) -> list[str]:
    """Put the newest state and the releases into one folder; returns their names, newest first."""
    if not (site / LIST).is_file():
        raise CannotAssemble(f"{site} has no {LIST}: run `make book` first")
    releases: dict[tuple[int, int], tuple[int, Path]] = {}
    for archive in archives:
        major, minor, patch = version_of(archive)
        newest = releases.get((major, minor), (-1, archive))
        releases[major, minor] = max(newest, (patch, archive))
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(site, target)
    newest_first = sorted(releases.items(), reverse=True)[:KEPT]
    names = {}
    for branch, (patch, archive) in newest_first:
        name = ".".join(map(str, branch))
        names[name] = f"{name}.{patch}"
        unpack(archive, target / "v" / name)
    for name, version in names.items():
        mark(target, name, version)
    for page in [target / LIST, *(target / "v" / name / LIST for name in names)]:
        write_list(page, names, "" if page.parent == target else "../../")
    return list(names)


def version_of(archive: Path) -> tuple[int, int, int]:
    """Read from a release's site which version it is: it holds the package's wheel."""
    with zipfile.ZipFile(archive) as opened:
        for name in opened.namelist():
            if found := re.search(r"_static/live/tinytorch_book-(\d+)\.(\d+)\.(\d+)-", name):
                return int(found[1]), int(found[2]), int(found[3])
    raise CannotAssemble(f"{archive} holds no wheel of the package: is it a site of this book?")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a site: its landing page, and what is beside and below it."""
    with zipfile.ZipFile(archive) as opened:
        names = [n for n in opened.namelist() if PurePosixPath(n).name == "index.html"]
        top = min(names, key=lambda name: name.count("/")).removesuffix("index.html")
        for name in opened.namelist():
            inner = PurePosixPath(name.removeprefix(top))
            if name.startswith(top) and not name.endswith("/") and ".." not in inner.parts:
                (folder / inner).parent.mkdir(parents=True, exist_ok=True)
                (folder / inner).write_bytes(opened.read(name))
    for name in ("404.html", "robots.txt", "sitemap.xml"):  # a site has one of each
        (folder / name).unlink(missing_ok=True)


def mark(target: Path, name: str, version: str) -> None:
    """Tell readers at the top of each page of a release that there is a newer one, and where."""
    folder = target / "v" / name
    pages = [folder / "index.html", *folder.glob("*.html"), *(folder / "book").rglob("*.html")]
    for page in dict.fromkeys(pages):
        inner = page.relative_to(folder)
        up = "../" * (len(inner.parts) + 1)
        newest = up + (inner.as_posix() if (target / inner).exists() else "index.html")
        told = TOLD.format(version=version, newest=newest, versions=f"{up}{LIST}")
        text = page.read_text(encoding="utf-8")
        page.write_text(BODY.sub(rf"\g<0>{told}", text, count=1), encoding="utf-8")


def write_list(page: Path, names: dict[str, str], root: str) -> None:
    """Write the list of versions into its page."""
    items = [LATEST.format(root=f"{root}index.html")]
    items += [
        f'<a href="{root}v/{name}/index.html">Version {html.escape(version)}</a>'
        for name, version in names.items()
    ]
    listed = "".join(f"<li>{item}</li>" for item in items)
    text = page.read_text(encoding="utf-8")
    page.write_text(ITEMS.sub(rf"\g<1>{listed}\g<2>", text), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-collect-pages", list_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.exit(main())
