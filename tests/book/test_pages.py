"""The built pages: complete, readable, linked, and served by one host alone.

These tests read `_build/html`: run `make book` first.
"""

import copy
import re
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from built import NAMES, ROOT, SITE, cells
from links import anchors, resolve

RAW_MYST = re.compile(
    r"\{[a-z][\w:+-]*\}`|:[a-z]+:`|(?:^|\s):::|```|^\([\w:-]+\)=|\{\{|\}\}|\$\$|^:[a-z-]+: ", re.M
)
NOT_PROSE = ["pre", "code", "script", "style", "svg", "textarea"]
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src"}
LOADED_LINKS = {"stylesheet", "preload", "prefetch", "icon", "modulepreload", "preconnect"}


def cells_of(page):
    return page.select("div.cell.docutils.container")


def test_no_system_message(page):
    assert [str(tag)[:300] for tag in page.select(".system-message, .problematic")] == []


def test_no_raw_myst(page):
    text = copy.copy(page.select_one("article") or page.body)
    for tag in [*text.find_all(NOT_PROSE), *text.select(".math")]:
        tag.decompose()
    assert RAW_MYST.findall(text.get_text("\n")) == []


def test_every_cell_that_prints_or_draws_shows_it(docname, page):
    name = docname.rsplit("/", 1)[-1]
    code = cells(name)[1:] if name in NAMES else []  # the first is for Colab
    shown = cells_of(page)
    assert len(shown) == len(code)
    pairs = zip(code, shown, strict=True)
    silent = [c["id"] for c, tag in pairs if c["outputs"] and not tag.select(".cell_output")]
    assert silent == []


def test_no_cell_failed(page):
    errors = page.select(".cell_output .traceback, .cell_output .stderr")
    lessons = page.select(".tag_raises-exception .traceback")
    assert [tag.get_text()[:300] for tag in errors if tag not in lessons] == []


def test_every_internal_link_leads_to_a_page_and_a_place(docname, page):
    base = f"https://here/{docname}.html"
    broken = []
    for tag, name in [(t, n) for n in ("href", "src") for t in page.find_all(attrs={n: True})]:
        parts = urlsplit(urljoin(base, str(tag[name])))
        if parts.netloc != "here" or parts.scheme != "https":
            continue
        path, anchor = unquote(parts.path.lstrip("/")), unquote(parts.fragment)
        if not (SITE / path).exists():
            broken.append(str(tag[name]))
        elif anchor and path.endswith(".html") and not has_place(path, anchor):
            broken.append(str(tag[name]))
    assert broken == []


def has_place(path, anchor):
    docname = path.removesuffix(".html")
    if (ROOT / f"{docname}.md").exists():
        return anchor in anchors(docname)
    return f'id="{anchor}"' in (SITE / path).read_text(encoding="utf-8")


def test_every_link_into_the_repository_leads_to_a_file(page, index):
    links = {str(tag["href"]) for tag in page.find_all("a", href=True)}
    assert [
        problem for problem in (resolve(link, index) for link in sorted(links)) if problem
    ] == []


def test_every_picture_has_alternative_text(page):
    images = [str(tag)[:200] for tag in page.find_all("img") if tag.get("alt") is None]
    drawings = [str(tag)[:200] for tag in page.find_all("svg") if not says_what_it_shows(tag)]
    assert images + drawings == []


def says_what_it_shows(svg):
    hidden = any(tag.get("aria-hidden") == "true" for tag in [svg, *svg.parents])
    named = (
        svg.get("aria-label") or svg.get("aria-labelledby") or svg.find("title", recursive=False)
    )
    return hidden or bool(named)


def test_ids_are_unique(page):
    ids = [str(tag["id"]) for tag in page.find_all(id=True)]
    assert sorted({i for i in ids if ids.count(i) > 1}) == []


def test_one_main_heading(page):
    headings = [h for h in page.find_all("h1") if not h.find_parent(class_="onlyprint")]
    assert len(headings) == 1, "the theme's heading for print does not count"


def test_nothing_is_loaded_from_another_host(page):
    loaded = [str(t[a]) for name, a in LOADED.items() for t in page.find_all(name) if t.get(a)]
    loaded += [
        str(tag["href"])
        for tag in page.find_all("link", href=True)
        if LOADED_LINKS & set(tag.get("rel", []))
    ]
    inline = " ".join(tag.get_text() for tag in page.find_all("style"))
    loaded += re.findall(r"url\(\s*['\"]?([^)'\"]+)", inline)
    assert [url for url in loaded if url.startswith(("http:", "https:", "//"))] == []


def test_no_style_sheet_loads_from_another_host():
    if not SITE.exists():
        pytest.fail("there are no built pages: run `make book` first", pytrace=False)
    foreign = {
        f"{path.relative_to(SITE)}: {url}"
        for path in SITE.rglob("*.css")
        for url in re.findall(
            r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^)'\"\s]+)", text_of(path)
        )
    }
    assert sorted(foreign) == []


def text_of(path):
    return path.read_text(encoding="utf-8", errors="replace")
