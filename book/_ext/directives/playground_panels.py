"""The directive that shows what else the playground's page has: a small picture and a link each.

    ```{playground-panels}
    ```

Each link opens its panel there (`open` in `state.js`); the questions are those of `layout.js`.
"""

import html

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

PAGE = "book/playground"
ABOVE = "More questions, on the page to play on:"
# Each panel's name, its question, and its picture, 96 by 48, in the classes of `door.css`.
TOKENS = "".join(f'<rect x="{x}" y="34" width="18" height="10" rx="3"/>' for x in (4, 28, 52, 76))
PANELS = {
    "attention": (
        "Where does it look?",
        f'{TOKENS}<path class="m" d="M85 32Q49 0 13 32"/>'
        '<path class="m n" d="M85 32Q73 18 61 32"/>',
    ),
    "lens": (
        "When does it know?",
        '<rect x="4" y="6" width="88" height="10" rx="3"/><rect x="4" y="20" width="88"'
        ' height="10" rx="3"/><rect x="4" y="34" width="88" height="10" rx="3"/><path class="m"'
        ' d="M8 11h14M8 25h34M8 39h70"/>',
    ),
    "beliefs": (
        "Does it know which animal will come?",
        '<circle cx="24" cy="26" r="12"/><path d="M14 18l2-12 8 8 8-8 2 12"/><path class="m"'
        ' d="M52 16h34M52 36h12"/><path class="t" d="M52 22h32M52 42h16"/>',
    ),
    "surprise": (
        "How surprised was it so far?",
        f'{TOKENS}<path class="t" d="M13 30v-4M37 30v-22M61 30v-2M85 30v-9"/>',
    ),
    "broken": (
        "What if a part were missing?",
        '<rect x="4" y="6" width="26" height="36" rx="4"/><rect class="d" x="35" y="6" width="26"'
        ' height="36" rx="4"/><rect x="66" y="6" width="26" height="36" rx="4"/>',
    ),
    "ask": (
        "Ask it",
        '<path d="M6 6h52v18H20l-8 8v-8H6z"/><path class="m" d="M26 36h42"/>'
        '<path class="t" d="M26 42h34"/>',
    ),
    "wish": (
        "How much does it want a happy ending?",
        '<path d="M8 4v38h84"/><path class="t n" d="M10 38Q20 12 88 9"/>'
        '<circle cx="40" cy="24" r="5"/>',
    ),
}


def anchor(name: str) -> str:
    """Return what an address ends with that opens a panel (`state.js` reads it).

    Example:
        >>> anchor("lens")
        'play&open=lens'
    """
    return f"play&open={name}"


def teaser(name: str, href: str) -> str:
    """Write one panel's teaser.

    Example:
        >>> teaser("lens", "playground.html")[:44]
        '<li><a href="playground.html#play&amp;open=l'
    """
    question, picture = PANELS[name]
    address = html.escape(f"{href}#{anchor(name)}")
    drawn = f'<svg viewBox="0 0 96 48" aria-hidden="true" focusable="false">{picture}</svg>'
    return f'<li><a href="{address}">{drawn}<span>{question}</span></a></li>'


class PanelList(nodes.General, nodes.Element):
    """The place of the list."""


class PlaygroundPanels(SphinxDirective):
    """A list of the panels of the playground's page."""

    def run(self) -> list[nodes.Node]:
        """Make its place."""
        return [PanelList()]


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the list, which only a page of the site shows."""
    for place in list(doctree.findall(PanelList)):
        if app.builder.format != "html":
            place.parent.remove(place)
            continue
        href = app.builder.get_relative_uri(docname, PAGE)
        items = "".join(teaser(name, href) for name in PANELS)
        listed = f'<p>{ABOVE}</p><ul class="tt-panels">{items}</ul>'
        place.replace_self(nodes.raw("", listed, format="html"))


def setup(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.add_directive("playground-panels", PlaygroundPanels)
    app.connect("doctree-resolved", fill)
