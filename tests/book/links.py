"""Where a link leads: to a page of the site, to a file of the repository, or elsewhere."""

import re
from functools import cache
from urllib.parse import parse_qs, unquote, urlsplit

from _ext.addresses import IN_PRINT
from _ext.print.printed_pages import ARCHIVE, EPUB, PDF
from built import ROOT, SITE, soup

URL = re.compile(r"https?://[^\s)\"'<>\]]+")
PRINTED = {f"{IN_PRINT}/{path.name}" for path in (PDF, EPUB, ARCHIVE)}
LAUNCHERS = ("https://colab.research.google.com/", "https://mybinder.org/")


@cache
def anchors(docname: str) -> frozenset[str]:
    """The ids of a built page."""
    return frozenset(str(tag["id"]) for tag in soup(docname).find_all(id=True))


def problem_with(text: str, index) -> list[str]:
    """What is wrong with the addresses in a text; addresses elsewhere are not looked at."""
    found = (resolve(url, index) for url in URL.findall(text))
    return [problem for problem in found if problem]


def resolve(url: str, index) -> str:
    """Say why an address of this book leads nowhere; an empty string when it leads somewhere."""
    parts = urlsplit(url)
    owner, name = index.repository.split("/")[-2:]
    if url.startswith(index.site):
        return site_problem(url[len(index.site) :])
    if parts.netloc == "mybinder.org":
        expected = f"/v2/gh/{owner}/{name}/{index.branch}"
        path = parse_qs(parts.query).get("urlpath", [""])[0]
        known = parts.path == expected and path.startswith("lab/tree/")
        return file_problem(path.removeprefix("lab/tree/")) if known else f"{url}: other repository"
    for host, prefix in (
        ("colab.research.google.com", f"/github/{owner}/{name}/blob/{index.branch}/"),
        ("raw.githubusercontent.com", f"/{owner}/{name}/{index.branch}/"),
    ):
        if parts.netloc == host:
            known = parts.path.startswith(prefix)
            return file_problem(parts.path[len(prefix) :]) if known else f"{url}: other repository"
    in_repository = re.match(
        rf"{re.escape(index.repository)}/(?:blob|edit|tree|raw)/{re.escape(index.branch)}/(.+)", url
    )
    return file_problem(urlsplit(in_repository[1]).path) if in_repository else ""


def file_problem(path: str) -> str:
    """A file of the repository must exist."""
    path = unquote(path)
    return "" if (ROOT / path).exists() else f"the repository has no {path}"


def site_problem(path: str) -> str:
    """A page of the site must exist, and the place on it."""
    path, _, anchor = path.partition("#")
    if path in PRINTED:  # is made after the pages, and published beside them
        return ""
    if not (SITE / path).exists():
        return f"the site has no page {path}"
    if anchor and unquote(anchor) not in anchors(path.removesuffix(".html")):
        return f"{path} has no place #{anchor}"
    return ""
