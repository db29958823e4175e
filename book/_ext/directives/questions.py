"""The questions at the end of a chapter.

    ```{reflect}
    A token occurs three times in a batch. Which gradient does its row get?

    - [x] the sum of three

      Each occurrence is a path to the loss.
    - [ ] the last one

      Assignment would keep one and lose two.
    ```

A choice is a `<details>` that opens with the keyboard, and needs no script.
"""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from .elements import build, with_class

BOX = "tt-reflect"
MARKS = {"[x] ": True, "[X] ": True, "[ ] ": False}


class Reflect(SphinxDirective):
    """A question with choices; each choice opens to say whether it holds, and why."""

    has_content = True
    option_spec: ClassVar = {"label": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Turn the list that ends the content into choices."""
        content = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, content)
        *question, choices = content.children or [None]
        if not question or not isinstance(choices, nodes.bullet_list):
            raise self.error("a reflect needs a question and then a list of choices")
        box = build("div", classes=BOX, role="group")
        self.set_source_info(box)
        if "label" in self.options:
            box["names"].append(nodes.fully_normalize_name(self.options["label"]))
            self.state.document.note_explicit_target(box, box)
        box += build("div", *question, classes="tt-reflect__question")
        box.extend(self.choice(item) for item in choices.children)
        if not any("tt-reflect__choice--right" in child["classes"] for child in box.children):
            raise self.error("a reflect needs a choice marked [x]")
        return [box]

    def choice(self, item: nodes.Node) -> nodes.Node:
        """Turn `[x] choice` and its explanation into a `<details>`."""
        first, *explanation = item.children
        text = first.next_node(nodes.Text) if isinstance(first, nodes.paragraph) else None
        mark = text[:4] if text is not None and text.parent is first else ""
        if text is None or mark not in MARKS:
            raise self.error("each choice of a reflect begins with [x] or [ ]")
        if not explanation or not isinstance(explanation[0], nodes.paragraph):
            raise self.error(f"the choice {first.astext()[4:]!r} of a reflect has no explanation")
        first.replace(text, nodes.Text(text[4:]))
        right = MARKS[mark]
        verdict = nodes.strong("", "Right." if right else "Not quite.")
        explanation[0].insert(0, [verdict, nodes.Text(" ")])
        state = "tt-reflect__choice--right" if right else "tt-reflect__choice--wrong"
        return build(
            "details",
            build("summary", *first.children),
            build("div", *explanation, classes="tt-reflect__verdict"),
            classes=f"tt-reflect__choice {state}",
        )


def number(app: Sphinx, doctree: nodes.document) -> None:
    """Name the questions of a page by their numbers."""
    boxes = [*with_class(doctree, BOX)]
    for place, box in enumerate(boxes, start=1):
        box["html"]["aria-label"] = f"Question {place} of {len(boxes)}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.setup_extension(f"{__package__}.elements")
    app.add_directive("reflect", Reflect)
    app.connect("doctree-read", number)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
