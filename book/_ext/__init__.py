"""The extensions of Sphinx that this book needs, in folders by concern.

- `directives`: what a page is written with
- `execution`: running the chapters
- `notebooks`: the notebooks that are made of them
- `live`: cells that run in the reader's browser, and JupyterLite
- `look`: theme, style sheets, search, sharing, versions
- `print`: the PDF, the EPUB and the archive
- `teaching`: slides, syllabus, a course for nbgrader

`addresses`, `cell_options`, `launch_links` and `built_pages` are what several of them need. No
two folders import each other (`make check` verifies it). The folder above, `book`, must be on
Python's path.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

EXTENSIONS = (  # in this order: of two that follow the same event, the first is called first
    "execution.cached_runs",
    "launch_links",
    "directives.chapter_card",
    "directives.questions",
    "directives.drawing",
    "directives.playground",
    "directives.talk_to_it",
    "directives.your_file",
    "directives.folds_and_predictions",
    "directives.exercises",
    "directives.your_parts",
    "directives.page_measures",
    "teaching.slides",
    "teaching.syllabus",
    "directives.citations",
    "directives.figures",
    "directives.tables",
    "live.live_cells",
    "live.live_site",
    "live.jupyterlite",
    "look.theme",
    "look.toolbar",
    "directives.formulas",
    "look.bundles",
    "look.page_cards",
    "look.own_pages",
    "look.versions",
    "look.search_index",
    "notebooks.builder",
)


def write_in_parallel(app: Sphinx, env: object) -> None:
    """Write pages in as many processes as there are processors; they were read in one."""
    app.parallel = os.cpu_count() or 1


def link_alias(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: Element
) -> Element | None:
    """Link a name of `tinytorch.core.types`: Sphinx looks for a class, but it is data."""
    if node["reftype"] != "class" or not node["reftarget"].startswith("tinytorch.core.types."):
        return None
    place = node["refdoc"], app.builder, "obj", node["reftarget"]
    return env.get_domain("py").resolve_xref(env, *place, node, shown)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register every extension with Sphinx."""
    for name in EXTENSIONS:
        app.setup_extension(f"{__name__}.{name}")
    app.connect("env-check-consistency", write_in_parallel)
    app.connect("missing-reference", link_alias)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
