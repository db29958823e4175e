"""A site of a few pages, for the tests of directives."""

import io

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

EXTENSIONS = (
    "myst_nb",
    "_ext.launch_links",
    "_ext.directives.chapter_card",
    "_ext.directives.questions",
    "_ext.directives.page_measures",
    "_ext.directives.folds_and_predictions",
    "_ext.directives.exercises",
    "_ext.directives.tables",
    "_ext.execution.cached_runs",
    "_ext.notebooks.builder",
    "_ext.directives.playground",
    "_ext.directives.talk_to_it",
    "_ext.directives.your_file",
    "_ext.directives.your_parts",
)


def build(tmp_path, *, builder="html", fresh=True, **pages):
    """Build pages; give the folder of the site and the warnings."""
    source = tmp_path / "source" / "book"
    source.mkdir(parents=True, exist_ok=True)
    for name, page in pages.items():
        (source / f"{name}.md").write_text(page, encoding="utf-8")
    warnings = io.StringIO()
    settings = {
        "extensions": EXTENSIONS,
        "root_doc": "book/index",
        "exclude_patterns": ["book/notebooks/*"],
        "nb_execution_mode": "off",
        "myst_enable_extensions": ["dollarmath"],
        "html_theme": "sphinx_book_theme",
        "html_theme_options": {"repository_url": "https://github.com/a/b"},
    }
    folders = (tmp_path / "source", None, tmp_path / "out", tmp_path / "trees")
    with docutils_namespace():
        told = {"status": None, "warning": warnings, "freshenv": fresh}
        app = Sphinx(*folders, builder, settings, **told)
        app.build()
        (tmp_path / "read").write_text("\n".join(map(str, app.env.dependencies["book/index"])))
    return tmp_path / "out" / "book", warnings.getvalue()


def built(tmp_path, body):
    """A page with this body, and one of the same site without it; neither has a warning."""
    other = "---\norphan: true\n---\n# B\n\nNothing but words.\n"
    folder, warnings = build(tmp_path, index=f"# A\n\n{body}", other=other)
    assert warnings == ""
    return [(folder / f"{name}.html").read_text(encoding="utf-8") for name in ("index", "other")]
