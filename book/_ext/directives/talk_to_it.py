"""The directive that puts a published model into a page, which answers when its reader asks.

    ```{talk-to-it}
    What is seen where no scripts run, in print and in a notebook.
    ```

Where scripts run, those of `book/_static/published` put in its place what fetches the model from
this site, keeps it in the browser and lets it answer in the page's Python. They are told what file
it is and how large.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tinytorch.models.llama import PUBLISHED

from .elements import build, has_class
from .page_files import give

CLASS, TITLE = "tt-talk", "Talk to it"


class TalkToIt(SphinxDirective):
    """The place of the panel, with its fallback content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the place; there is one on a page, for there is one model."""
        if any(map(has_class(CLASS), self.state.document.findall(nodes.Element))):
            raise self.error("a page has one model to talk to, and this one has it already")
        if not self.content:
            raise self.error("the panel needs a content: what is seen where no scripts run")
        _, _, size, digest = PUBLISHED["smollm2-135m-instruct"]
        known = {"data-sha256": digest, "data-size": str(size)}
        place = build("div", classes=CLASS, role="region", **{"aria-label": TITLE, **known})
        self.set_source_info(place)
        self.state.nested_parse(self.content, self.content_offset, place)
        return [place]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("talk-to-it", TalkToIt)
    # the script comes with those of the cells
    give(app, has_class(CLASS), "published/talk.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
