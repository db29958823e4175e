"""The site's own pages: for addresses that lead nowhere, for search engines, and at its root.

The site gets a list of its pages (`sitemap.xml`, `robots.txt`), a page for addresses that lead
nowhere (`404.html`), and at its root the landing page itself. The site's address, with which all of
them are absolute, follows from the repository (`addresses.py`).
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from sphinx.application import Sphinx

RELATIVE = re.compile(r'\b(href|src|action|data-content_root)="(?!#|/|[a-z]+:)([^"]*)"')
LITE = re.compile(r'(?<=")\.\./(?=lite/)')
LOST = """<section><h1>There is no such page</h1>
<p>The address may have a slip in it, or the page has moved. The list of pages and the search are
at the left; <a href="{root}">the landing page</a> shows the way through the book.</p></section>"""


def lost_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Make the page for addresses that lead nowhere; a server looks for it by this name."""
    root = app.builder.get_target_uri(app.config.root_doc)
    yield "404", {"title": "There is no such page", "body": LOST.format(root=root)}, "page.html"


def complete(app: Sphinx, error: Exception | None) -> None:
    """Write what the site needs beside its pages."""
    if error is not None or app.builder.format != "html":
        return
    site, base = Path(app.outdir), app.config.html_baseurl
    names = sorted(app.env.all_docs)
    (site / "sitemap.xml").write_text(sitemap(app, names), encoding="utf-8")
    (site / "robots.txt").write_text(
        f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n", encoding="utf-8"
    )
    lost, root = site / "404.html", urlsplit(base).path
    lost.write_text(moved(lost.read_text(encoding="utf-8"), root), encoding="utf-8")
    landing = app.builder.get_target_uri(app.config.root_doc)
    page = (site / landing).read_text(encoding="utf-8")
    (site / "index.html").write_text(moved(page, "", f"/{landing}"), encoding="utf-8")


def sitemap(app: Sphinx, names: list[str]) -> str:
    """List the pages for search engines (https://www.sitemaps.org)."""
    addresses = [urljoin(app.config.html_baseurl, app.builder.get_target_uri(n)) for n in names]
    urls = "".join(f"  <url><loc>{html.escape(address)}</loc></url>\n" for address in addresses)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'
    )


def moved(page: str, root: str, origin: str = "/") -> str:
    """Let a page be served from elsewhere: the addresses of its links are rewritten.

    Args:
        page: its HTML.
        root: the site's root as seen from where the page is served; `/book/` is absolute.
        origin: where it was written for, from the site's root.

    >>> moved('<a href="../lite/a.html"><a href="b.html#c"><a href="#d">', "", "/book/intro.html")
    '<a href="lite/a.html"><a href="book/b.html#c"><a href="#d">'
    >>> moved('<a href="b.html">', "/site/")
    '<a href="/site/b.html">'
    """

    def address(match: re.Match[str]) -> str:
        path = urljoin(origin, match[2]).removeprefix("/") if match[2] else origin.lstrip("/")
        return f'{match[1]}="{root}{path or ("" if root else "./")}"'

    return LITE.sub(root, RELATIVE.sub(address, page))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-collect-pages", lost_page)
    app.connect("build-finished", complete, priority=960)  # after bundles.py
    return {"parallel_read_safe": True, "parallel_write_safe": True}
