"""The kinds of exercises, shown in their title lines, and their numbers.

    ```{exercise} The heads that see nothing
    :label: ex-heads-debug
    :kind: debug
    ```

Without the option an exercise is one to write. `:aim: 2` names which of the aims of the chapter's
card it leads (`teaching/syllabus.py`).

Each chapter counts its exercises from 1; a reference from another page names the chapter as well:
"Exercise 3 of Tensors". Sphinx itself counts through the whole book.
"""

import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
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
POINTS = re.compile(r",\s*(\d+) points?$")


class heading(nodes.title):
    """The title line of an exercise, in HTML."""


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
        exercise.replace(title, heading("", "", *title.children, nodes.Text(" "), kind))


def open_heading(translator: Any, node: heading) -> None:
    """Write a title line as a heading, by which a screen reader goes from exercise to exercise."""
    start = len(translator.body)
    translator.visit_title(node)
    role = '<p role="heading" aria-level="3" '
    translator.body[start] = translator.body[start].replace("<p ", role, 1)


def close_heading(translator: Any, node: heading) -> None:
    """Close a title line."""
    translator.depart_title(node)


def title_and_points(exercise: nodes.Element) -> tuple[str, int]:
    """Read from the title line of an exercise its title, and what it is worth."""
    said = " ".join(exercise.children[0].children[-1].astext().split())
    points = POINTS.search(said)
    return POINTS.sub("", said), int(points[1]) if points else 0


def count_as_sphinx(app: Sphinx, env: Any) -> list[str]:
    """Give Sphinx back its own numbers, so that it sees which pages have others than before."""
    for docname, numbers in getattr(env, "exercises_of_the_book", {}).items():
        if docname in env.toc_fignumbers:
            env.toc_fignumbers[docname]["exercise"] = numbers
    return []


def count_by_chapter(app: Sphinx, env: Any) -> list[str]:
    """Count each page's exercises from 1."""
    env.exercises_of_the_book = {
        docname: kinds["exercise"]
        for docname, kinds in env.toc_fignumbers.items()
        if "exercise" in kinds
    }
    for docname, numbers in env.exercises_of_the_book.items():
        env.toc_fignumbers[docname]["exercise"] = {
            label: (number,) for number, label in enumerate(numbers, start=1)
        }
    return []


def name_the_chapter(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Say in a reference to an exercise of another page which page that is."""
    env: Any = app.env
    registry = getattr(env, "sphinx_exercise_registry", {})
    for link in doctree.findall(addnodes.number_reference):
        label = link.get("refuri", "").partition("#")[2]
        if label in registry and (home := registry[label]["docname"]) != docname:
            link += nodes.Text(f" of {env.titles[home].astext()}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("sphinx_exercise")
    app.add_directive("exercise", KindOfExercise, override=True)
    app.add_node(heading, html=(open_heading, close_heading))
    app.connect("env-get-updated", count_as_sphinx, priority=499)  # Sphinx counts at 500
    app.connect("env-get-updated", count_by_chapter, priority=501)
    app.connect("doctree-resolved", name_the_chapter)
    app.connect("doctree-resolved", show_kinds, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
