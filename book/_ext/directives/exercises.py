"""The kinds of exercises, shown in their title lines.

    ```{exercise} The heads that see nothing
    :label: ex-heads-debug
    :kind: debug
    ```

Without the option an exercise is one to write. `:aim: 2` names which of the aims of the chapter's
card it leads (`teaching/syllabus.py`).
"""

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx_exercise.directive import ExerciseDirective
from sphinx_exercise.nodes import is_exercise_node

from .elements import build

KINDS = {
    "write": "write it",
    "predict": "predict it",
    "debug": "debug it",
    "puzzle": "puzzle",
    "project": "open project",
}


class KindOfExercise(ExerciseDirective):
    """An exercise that says of which kind it is."""

    option_spec: ClassVar = {
        **ExerciseDirective.option_spec,
        "kind": lambda value: directives.choice(value, tuple(KINDS)),
        "aim": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        """Note the kind and the aim."""
        found = super().run()
        for node in found:
            node["kind"] = self.options.get("kind", "write")
            node["aim"] = self.options.get("aim", 0)
        return found


def show_kinds(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write each exercise's kind behind its title; a notebook's writer does so itself."""
    if app.builder.format != "html":
        return
    for exercise in doctree.findall(is_exercise_node):
        title = exercise.children[0]
        kind = build("span", text=KINDS[exercise["kind"]], classes="tt-kind")
        title += [nodes.Text(" "), kind]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("sphinx_exercise")
    app.add_directive("exercise", KindOfExercise, override=True)
    app.connect("doctree-resolved", show_kinds, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
