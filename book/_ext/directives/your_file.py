"""The directive that lets a reader give a file to the cells of a page.

    ```{your-file} your-text.txt
    :title: Your text
    :takes: Plain text of 4,000 characters or more.
    :least: 4000

    What is seen without scripts, in print and in a notebook: a sentence.
    ```

Its argument is the name under which the cells find the file. Where cells run, `your_file.js` puts a
place to drop a file in the place of the content, with a button that chooses one; what is dropped
goes to the page's own Python and nowhere else. With `:download:`, a file of that name that a cell
has written can be saved. A text needs as many characters as `:least:` says.
"""

import re
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .elements import build, has_class
from .page_files import give

CLASS = "tt-file"
NAME = re.compile(r"[\w-]+\.(txt|safetensors)")


class YourFile(SphinxDirective):
    """The place of a reader's file, with its fallback content."""

    has_content = True
    required_arguments = 1
    option_spec: ClassVar = {
        "title": directives.unchanged_required,
        "takes": directives.unchanged_required,
        "least": directives.nonnegative_int,
        "download": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        """Make the place."""
        name = self.arguments[0]
        if not NAME.fullmatch(name):
            raise self.error(f"a file is called something.txt or .safetensors, not {name!r}")
        if not self.content or not {"title", "takes"} <= set(self.options):
            raise self.error("a file needs :title:, :takes: and what is seen where no cells run")
        told = {f"data-{option}": str(value or "") for option, value in self.options.items()}
        place = build("div", classes=CLASS, **{"data-name": name}, **told)
        self.set_source_info(place)
        self.state.nested_parse(self.content, self.content_offset, place)
        return [place]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("your-file", YourFile)
    give(app, has_class(CLASS), "live/your_file.css")  # live/cells.js brings the script
    return {"parallel_read_safe": True, "parallel_write_safe": True}
