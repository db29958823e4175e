"""Changes to the HTML of every page, made when its template has been filled in."""

from collections.abc import Callable
from typing import Any

from sphinx.application import Sphinx


def change_pages(change: Callable[[str], str]) -> Callable[[Sphinx], None]:
    """Make the handler of `builder-inited` that passes every page through `change`."""

    def wrap(app: Sphinx) -> None:
        templates: Any = getattr(app.builder, "templates", None)
        if app.builder.format != "html" or templates is None:
            return
        render = templates.render
        templates.render = lambda name, context: change(render(name, context))

    return wrap
