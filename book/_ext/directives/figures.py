"""Figures that follow the reader's light or dark scheme, scale, and say what they show.

The SVG outputs of cells are put inline (`inline_svg.py`), with the cell's alternative text.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from .inline_svg import inline_svg

logger = logging.getLogger(__name__)

CELL_IMAGES = "jupyter_execute"


class InlineFigures(SphinxPostTransform):
    """Put the SVG outputs of cells into the page."""

    default_priority = (
        6  # after myst-nb has chosen among a cell's outputs, before images are collected
    )
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        """Visit every image of a page; an output without alternative text is a warning."""
        images = [n for n in self.document.findall(nodes.image) if CELL_IMAGES in n["uri"]]
        for number, image in enumerate(images, start=1):
            if not image.get("alt", "").strip():
                logger.warning(
                    "this cell draws an image without alternative text: "
                    "add `mystnb: {image: {alt: ...}}` to its options",
                    location=image,
                )
            if image["uri"].endswith(".svg"):
                self.inline(image, number)

    def inline(self, image: nodes.image, number: int) -> None:
        """Replace one image by its SVG."""
        path = Path(self.app.srcdir, image["uri"].lstrip("/"))
        prefix = f"tt-{self.env.docname.rsplit('/', 1)[-1]}-{number}"
        try:
            svg = inline_svg(path.read_text(encoding="utf-8"), image.get("alt", ""), prefix)
        except (OSError, ValueError) as error:
            logger.warning("cannot put the figure %s inline: %s", path.name, error, location=image)
            return
        image.replace_self(nodes.raw("", svg, format="html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_post_transform(InlineFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
