"""The directive that puts the playground into a page.

    ```{playground}
    :compact:

    What is seen without scripts, in print and in a notebook: a drawing and a sentence.
    ```

Its content is what everybody gets; where scripts run, those of `book/_static/playground` put a
model to play with in its place when it is near the screen. The pages with a playground get its
style and its door, the script that waits for that and for no other script.

    ````{playground-map}
    ```{drawing} map-of-the-book
    ```
    ````

Below it, the map of the model: its drawing for everybody and, where scripts run, the same parts
filled with what happens to the text in the playground (`map.js`).
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from drawings import model
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from . import playground_panels
from .elements import build, has_class
from .page_files import give

FOLDER = "playground"
CLASS, MAP = "tt-play", "tt-map"


class Playground(SphinxDirective):
    """The place of the playground, with its fallback content."""

    has_content = True
    option_spec: ClassVar = {"compact": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Make the place; there is one on a page, because its address holds the state of one."""
        if any(map(has_class(CLASS), self.state.document.findall(nodes.Element))):
            raise self.error("a page has one playground, and this one has it already")
        if not self.content:
            raise self.error("a playground needs a content: what is seen where no scripts run")
        size = "compact" if "compact" in self.options else "whole"
        place = build("div", classes=CLASS, **{"data-size": size})
        for name in [] if size == "compact" else playground_panels.PANELS:
            place += build("i")
            place[-1]["ids"] = [playground_panels.anchor(name)]
            place[-1]["names"] = [f"playground-{name}"]  # for {ref}
            self.state.document.note_explicit_target(place[-1])
        self.set_source_info(place)
        self.state.nested_parse(self.content, self.content_offset, place)
        return [place]


def map_anchor(part: str) -> str:
    """Return what an address ends with that opens a part of the map (`state.js` reads it).

    Without scripts it leads to the drawing.

    Example:
        >>> map_anchor("mlp")
        'play&map=mlp'
    """
    return f"play&map={part}"


class PlaygroundMap(SphinxDirective):
    """The place of the map of the model, which shows what the playground computes."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the place; its numbers are those of the playground above it."""
        if not any(map(has_class(CLASS), self.state.document.findall(nodes.Element))):
            raise self.error("a map of the model needs a playground above it on its page")
        if not self.content:
            raise self.error("a map needs a content: what is seen where no scripts run")
        place = build("div", classes=MAP)
        for part in model.PARTS:
            place += build("i")
            place[-1]["ids"] = [map_anchor(part)]
        self.set_source_info(place)
        self.state.nested_parse(self.content, self.content_offset, place)
        return [place]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("playground", Playground)
    app.add_directive("playground-map", PlaygroundMap)
    playground_panels.setup(app)
    files = (f"{FOLDER}/door.css", f"{FOLDER}/door.js")
    give(app, has_class(CLASS), *files, loading_method="async")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
