"""What search engines and messages are told of every page, and the site's own pages."""

import struct
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree

import pytest
from _ext.addresses import site_url
from _ext.look.page_cards import CARD_SIZE, CARDS
from built import ROOT, SITE, pages, read, soup

PAGES = [*pages(), "404", "search", "index"]
BASE = site_url(read("_config.yml")["repository"]["url"])
NAMES = ["description", "twitter:card"]
PROPERTIES = ["og:title", "og:type", "og:url", "og:site_name", "og:description", "og:image"]
INDEX_BYTES = 400_000  # far above what it has: a second copy of all names, or formulas, pass it
PARTS = {page.split("/")[1] for page in pages() if page.count("/") == 2} - {"appendix", "proofs"}


def content(page, kind, name):
    found = page.select(f'head meta[{kind}="{name}"]')
    assert len(found) == 1, f"{name} stands {len(found)} times"
    return found[0]["content"]


@pytest.mark.parametrize("built_page", PAGES)
def test_a_page_has_a_title_and_description(built_page):
    page = soup(built_page)
    assert all(content(page, "name", key) for key in NAMES)
    assert all(content(page, "property", key) for key in PROPERTIES)
    assert 20 < len(content(page, "name", "description")) <= 160
    assert content(page, "name", "viewport") == "width=device-width, initial-scale=1.0"
    picture = content(page, "property", "og:image").removeprefix(BASE)
    assert (SITE / picture).exists(), picture


@pytest.mark.parametrize("built_page", pages())
def test_a_page_has_one_address(built_page):
    page = soup(built_page)
    assert page.select_one('link[rel="canonical"]')["href"] == f"{BASE}{built_page}.html"
    assert content(page, "property", "og:url") == f"{BASE}{built_page}.html"


def test_descriptions_differ():
    told = [content(soup(name), "name", "description") for name in pages()]
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("part", ["book", *sorted(PARTS)])
def test_every_part_has_a_picture_of_the_announced_size(part):
    data = (ROOT / "book/_static" / CARDS / f"{part}.png").read_bytes()
    assert struct.unpack(">II", data[16:24]) == CARD_SIZE, "run `make cards`"


def test_a_chapter_shows_the_picture_of_its_part():
    page = soup("book/attention/multi-head")
    assert content(page, "property", "og:image") == f"{BASE}_static/cards/attention.png"


def test_the_sitemap_lists_every_page_and_robots_name_it():
    urls = ElementTree.parse(SITE / "sitemap.xml").getroot()
    listed = {place.text for place in urls.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")}
    assert listed == {f"{BASE}{name}.html" for name in pages()}
    assert f"Sitemap: {BASE}sitemap.xml" in (SITE / "robots.txt").read_text(encoding="utf-8")


def links(page):
    for tag, attribute in (("a", "href"), ("link", "href"), ("script", "src"), ("img", "src")):
        for found in page.select(f"{tag}[{attribute}]"):
            address = found[attribute]
            if not urlsplit(address).scheme and not address.startswith("#"):
                yield address.partition("#")[0].partition("?")[0]


def test_the_page_for_lost_addresses_works_at_any_depth():
    root = urlsplit(BASE).path
    found = set(links(soup("404")))
    assert len(found) > 20 and all(address.startswith(root) for address in found)
    missing = [a for a in found if not (SITE / a.removeprefix(root)).exists()]
    assert not missing


def test_the_root_is_the_landing_page():
    page, landing = soup("index"), soup(pages()[0])
    assert not page.select('meta[http-equiv="refresh" i]')
    assert page.title.text == landing.title.text and page.h1.text == landing.h1.text
    missing = [a for a in links(page) if not (SITE / a).exists()]
    assert not missing
    here = {urljoin("/", address) for address in links(page)}
    assert here == {urljoin(f"/{pages()[0]}.html", address) for address in links(landing)}


def test_the_search_index_has_not_grown():
    index = (SITE / "searchindex.js").read_text(encoding="utf-8")
    assert len(index.encode()) <= INDEX_BYTES
    for source in ("mathrm", "tfrac", "sqrt{"):
        assert f"{source}:" not in index and f'"{source}"' not in index
