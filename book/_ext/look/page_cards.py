"""What others see of a page before they open it.

Every page gets a description and the tags from which a message or a search engine makes a card
(Open Graph, https://ogp.me), with the picture of its part.
"""

import html
import re
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from docutils import nodes
from sphinx.application import Sphinx

from ..notebooks.plain_markdown import prose

SHORTEST, LONGEST = 80, 160  # characters of a description: a list of results shows no more
CARDS = "cards"  # the folder of the pictures, made by `make cards`
CARD_SIZE = (1200, 630)
WHOLE_BOOK = "book"  # the picture of a page without a part of its own
SENTENCE_END = re.compile(r"(?<=[.?!])\s+")


def describe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add a description and a card to a page."""
    address = urljoin(app.config.html_baseurl, app.builder.get_target_uri(pagename))
    text = description(doctree) if doctree is not None else ""
    title = context.get("title") or app.config.html_title
    card = picture_of(Path(app.srcdir), pagename)
    tags = {
        "name": {
            "description": text or app.config.html_title,
            "twitter:card": "summary_large_image",
        },
        "property": {
            "og:type": "website" if pagename == app.config.root_doc else "article",
            "og:site_name": app.config.html_title,
            "og:title": html.unescape(re.sub("<[^>]*>", "", title)),
            "og:description": text or app.config.html_title,
            "og:url": address,
            "og:image": urljoin(app.config.html_baseurl, f"_static/{CARDS}/{card}.png"),
            "og:image:width": str(CARD_SIZE[0]),
            "og:image:height": str(CARD_SIZE[1]),
            "og:image:alt": f"{app.config.html_title}, {card.replace('-', ' ')}",
        },
    }
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n    <meta {kind}="{name}" content="{html.escape(value)}" />'
        for kind, values in tags.items()
        for name, value in values.items()
    )


def description(doctree: nodes.document) -> str:
    """Describe a page by what its first paragraphs say, in whole sentences as far as they fit."""
    sentences = [s for text in prose(doctree) for s in SENTENCE_END.split(text)]
    if not sentences:
        return ""
    kept = sentences[0]
    for sentence in sentences[1:]:
        if len(kept) + len(sentence) >= LONGEST and len(kept) >= SHORTEST:
            break
        kept += f" {sentence}"
    return kept if len(kept) <= LONGEST else kept[: LONGEST - 1].rsplit(" ", 1)[0] + "…"


def picture_of(root: Path, pagename: str) -> str:
    """Name the picture of a page: its part's, if there is one, or the whole book's."""
    part = pagename.split("/")[-2] if pagename.count("/") == 2 else WHOLE_BOOK
    return part if (root / "book" / "_static" / CARDS / f"{part}.png").exists() else WHOLE_BOOK


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", describe, priority=910)  # after the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
