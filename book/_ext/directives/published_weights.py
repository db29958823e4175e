"""The directive that brings GPT-2's published weights into a page, when its reader asks for them.

    ```{published-weights}
    What is seen where no scripts run, in print and in a notebook.
    ```

Where scripts run, those of `book/_static/published` put in its place what fetches the weights,
keeps them in the browser in 8 bits and writes with them in the page's Python. They are told the
address and what it costs.
"""

import math

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from tinytorch.models import gpt2

from .elements import build, has_class
from .page_files import give

CLASS = "tt-published"


class PublishedWeights(SphinxDirective):
    """The place of the weights' panel, with its fallback content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Make the place; there is one on a page, for there is one model."""
        if any(map(has_class(CLASS), self.state.document.findall(nodes.Element))):
            raise self.error("a page fetches the weights once, and this one does already")
        if not self.content:
            raise self.error("the weights need a content: what is seen where no scripts run")
        place = build("div", classes=CLASS, **{f"data-{k}": v for k, v in costs().items()})
        self.set_source_info(place)
        self.state.nested_parse(self.content, self.content_offset, place)
        return [place]


def costs() -> dict[str, str]:
    """Where the weights are, and in bytes: the file, what is fetched of it, what is made of that.

    Left out are the masks; in 8 bits are all matrices but that of the positions.
    """
    revision, files = gpt2.PUBLISHED["gpt2"]
    tensors = gpt2.published_tensors("gpt2")
    numbers = {name: math.prod(shape) for name, (shape, _) in tensors.items()}
    small = {n: s for n, (s, _) in tensors.items() if len(s) == 2 and n != "wpe.weight"}
    scales = sum(shape[0] * len(tensors[name][1]) for name, shape in small.items())
    in_8_bits = sum(numbers[name] for name in small)
    made = in_8_bits + 4 * (sum(numbers.values()) - in_8_bits + scales)
    found = {
        "address": gpt2.ADDRESS.format("gpt2", revision) + "/",
        "file": files["model.safetensors"][0],
        "fetched": 4 * sum(numbers.values()),
        "made": made + sum(files[name][0] or 0 for name in ("vocab.json", "merges.txt")),
    }
    return {name: str(value) for name, value in found.items()}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("published-weights", PublishedWeights)
    # the script comes with those of the cells
    give(app, has_class(CLASS), "published/published.css")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
