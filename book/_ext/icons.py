"""The theme's icons as plain SVG, without the script of one and a half megabytes that draws them.

The theme ships every icon of Font Awesome as one script, and each page loads it for about a dozen
of them. Here a page gets those it shows, taken from that very script, when it is written.
"""

import html
import re
from functools import cache
from pathlib import Path

import pydata_sphinx_theme
from sphinx.application import Sphinx
from sphinx.util import logging
from written_pages import change_pages

logger = logging.getLogger(__name__)

SCRIPT = Path(pydata_sphinx_theme.__file__).parent.joinpath(
    "theme/pydata_sphinx_theme/static/scripts/fontawesome.js"
)
LOADS_SCRIPT = re.compile(r"\s*<script[^>]*scripts/fontawesome\.js[^>]*></script>")
ICON = re.compile(r'<i\s([^>]*\bclass="(?:[^"]*\s)?fa[bsr]?[\s-][^"]*"[^>]*)>\s*</i>')
CLASSES = re.compile(r'class="([^"]*)"')
# name:[width,height,[other names],"character","path"]
ENTRY = re.compile(
    r'[{,]"?(?P<name>[a-z0-9-]+)"?:\[(?P<width>\d+),(?P<height>\d+),\[(?P<others>[^\]]*)\],'
    r'"[0-9a-f]+","(?P<path>[^"]+)"\]'
)
SIZES = {"lg", "xs", "sm", "xl", "fw", "solid", "regular", "brands"}


@cache
def drawings() -> dict[str, list[tuple[str, str, str]]]:
    """Read the theme's script: for every name of an icon its drawings, the solid one last."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for entry in ENTRY.finditer(SCRIPT.read_text(encoding="utf-8")):
        names = [entry["name"], *re.findall(r'"([^"]+)"', entry["others"])]
        for name in names:
            found.setdefault(name, []).append((entry["width"], entry["height"], entry["path"]))
    return found


def drawing(name: str, brand: bool) -> tuple[str, str, str] | None:
    """Find an icon.

    Args:
        name: such as `magnifying-glass`; an icon's other names count.
        brand: whether it is a company's sign.

    Returns:
        Width, height and path, or None if there is no such icon.
    """
    found = drawings().get(name)
    return found[0 if brand else -1] if found else None


def as_svg(match: re.Match[str]) -> str:
    """Turn one `<i class="fas fa-name">` into its drawing; an unknown one is left as it is."""
    attributes = match[1]
    classes = html.unescape(CLASSES.search(attributes)[1]).split()
    names = [c.removeprefix("fa-") for c in classes if c.startswith("fa-")]
    name = next((n for n in names if n not in SIZES), "")
    found = drawing(name, "fab" in classes or "fa-brands" in classes)
    if found is None:
        logger.warning("the theme has no icon %r", name)
        return match[0]
    width, height, path = found
    kept = " ".join(["svg-inline--fa", *classes])
    attributes = CLASSES.sub(f'class="{html.escape(kept)}"', attributes)
    return (
        f'<svg {attributes} viewBox="0 0 {width} {height}" aria-hidden="true" focusable="false">'
        f'<path fill="currentColor" d="{path}"></path></svg>'
    )


def with_icons(page: str) -> str:
    """Put the icons into a page and take out the script; a page that has none stays as it is."""
    return LOADS_SCRIPT.sub("", ICON.sub(as_svg, page))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", change_pages(with_icons))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
