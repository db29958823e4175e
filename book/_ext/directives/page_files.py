"""What some pages alone need: a style sheet and a script for those that hold a certain element."""

from collections.abc import Callable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def give(
    app: Sphinx,
    needs: Callable[[nodes.Element], bool],
    style: str,
    script: str = "",
    **how: Any,
) -> None:
    """Add a style sheet and a script to the pages with an element that needs them.

    Args:
        app: what builds the site.
        needs: says whether an element does.
        style: a file of `_static`, like the others.
        script: the script, if there is one.
        how: attributes of the script, and its `loading_method`.
    """

    def add(
        app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
    ) -> None:
        if doctree is None or not any(map(needs, doctree.findall(nodes.Element))):
            return
        app.add_css_file(style)
        if script:
            app.add_js_file(script, **how)

    app.connect("html-page-context", add)
