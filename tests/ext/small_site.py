"""A site of a few pages, for the tests of directives that bring a script or a style to some."""

import io

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

DIRECTIVES = (
    "_ext.directives.playground",
    "_ext.directives.published_weights",
    "_ext.directives.your_file",
)


def build(tmp_path, **pages):
    """Build pages; give the folder of the site and the warnings."""
    source = tmp_path / "source" / "book"
    source.mkdir(parents=True)
    for name, page in pages.items():
        (source / f"{name}.md").write_text(page, encoding="utf-8")
    warnings = io.StringIO()
    settings = {
        "extensions": [
            "myst_nb",
            "_ext.execution.cached_runs",
            "_ext.launch_links",
            "_ext.directives.chapter_card",
            *DIRECTIVES,
        ],
        "root_doc": "book/index",
        "nb_execution_mode": "off",
        "html_theme": "sphinx_book_theme",
        "html_theme_options": {"repository_url": "https://github.com/a/b"},
    }
    folders = (tmp_path / "source", None, tmp_path / "out", tmp_path / "trees")
    with docutils_namespace():
        Sphinx(*folders, "html", settings, status=None, warning=warnings, freshenv=True).build()
    return tmp_path / "out" / "book", warnings.getvalue()


def built(tmp_path, body):
    """A page with this body, and one of the same site without it; neither has a warning."""
    other = "---\norphan: true\n---\n# B\n\nNothing but words.\n"
    folder, warnings = build(tmp_path, index=f"# A\n\n{body}", other=other)
    assert warnings == ""
    return [(folder / f"{name}.html").read_text(encoding="utf-8") for name in ("index", "other")]
