"""What a page folds away: sections that go deeper, and answers to predictions.

A section whose heading begins with "Deeper: " is folded under the rest of its heading. And

    ```{prediction} broadcast
    A column of three numbers is added to a row of four. What comes out?

    - an error
    - [x] a table

      An explanation, if the choice needs one.
    ```

asks for a prediction. All that follows in the same section is its answer, which stays folded until
the reader has made a choice (`predictions.js`) or asks to see it. A number may be asked for:

    ```{prediction} growth
    :number: 237
    :tolerance: 20%
    :unit: times

    How many times too large is it at the end?
    ```

The tolerance is what a right prediction may differ by, as a number or in percent of the answer;
without one only the number itself is right.

A fold is a `<details>`, put around the parts of a section when its page is written, so that the
contents, the search and the notebooks see the section as it was. `folds.js` opens one for a link
that leads into it, and for printing.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from .elements import build, element
from .questions import MARKS

logger = logging.getLogger(__name__)

DEEPER = "Deeper: "
BOX, ANSWER = "tt-prediction", "tt-answer"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
OPENS_DEEPER = '<details class="tt-fold tt-deeper"><summary>'
OPENS_ANSWER = (
    f'<details class="tt-fold {ANSWER}"><summary><span class="{ANSWER}__show">Show me'
    f'<span class="visually-hidden"> the answer</span></span><span class="{ANSWER}__hide">'
    f'Hide the answer</span><span class="visually-hidden"> ({{}})</span></summary>'
)


# Predictions ----------------------------------------------------------------------------------


class Prediction(SphinxDirective):
    """A question whose answer, the rest of its section, waits for the reader's prediction."""

    has_content = True
    required_arguments = 1
    option_spec: ClassVar = {
        "number": directives.unchanged_required,
        "tolerance": directives.unchanged_required,
        "unit": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Build the question, with its choices or with the number that is asked for."""
        name = self.arguments[0]
        if not NAME.fullmatch(name):
            raise self.error(f"a prediction's name is made of a-z, 0-9 and -, not {name!r}")
        content = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, content)
        asks_number = "number" in self.options
        question, choices = content.children, None
        if not asks_number and question and isinstance(question[-1], nodes.bullet_list):
            *question, choices = question
        if not question:
            raise self.error(f"the prediction {name} needs a question")
        box = build("div", classes=BOX, role="group", **{"aria-label": "Your prediction"})
        self.set_source_info(box)
        box["names"].append(f"predict-{name}")
        self.state.document.note_explicit_target(box, box)
        box += build("div", *question, classes=f"{BOX}__question")
        box += self.number(box) if asks_number else self.choices(name, choices)
        return [box]

    def choices(self, name: str, choices: nodes.Node | None) -> nodes.Node:
        """Turn the list that ends the content into choices."""
        items = choices.children if choices is not None else []
        made = [self.choice(item) for item in items]
        if len(made) < 2 or not any(f"{BOX}__choice--right" in item["classes"] for item in made):
            raise self.error(
                f"the prediction {name} needs a list of at least two choices, a right one marked "
                f"[x], or the option :number:"
            )
        return build("ul", *made, classes=f"{BOX}__choices")

    def choice(self, item: nodes.Node) -> nodes.Node:
        """Turn `[x] choice`, or `choice`, and its explanation into an item."""
        first, *explanation = item.children
        if not isinstance(first, nodes.paragraph):
            raise self.error("a choice of a prediction begins with text")
        text = first.next_node(nodes.Text)
        mark = text[:4] if text is not None and text.parent is first else ""
        if mark in MARKS:
            first.replace(text, nodes.Text(text[4:]))
        right = MARKS.get(mark, False)
        made = build("li", classes=f"{BOX}__choice {f'{BOX}__choice--right' if right else ''}")
        made += build("span", *first.children, classes=f"{BOX}__text")
        if right:
            made += build("span", text="This one is right", classes=f"{BOX}__mark")
        if explanation:
            made += build("div", *explanation, classes=f"{BOX}__why")
        return made

    def number(self, box: element) -> nodes.Node:
        """Return the answer in words, hidden at first, and as data for the script."""
        number, unit = self.options["number"], self.options.get("unit", "")
        tolerance = self.options.get("tolerance", "0")
        try:
            spread = float(tolerance.removesuffix("%"))
            spread *= abs(float(number)) / 100 if tolerance.endswith("%") else 1
        except ValueError:
            raise self.error(
                "a prediction's :number: and :tolerance: are numbers, the tolerance with or "
                f"without %, not {number!r} and {tolerance!r}"
            ) from None
        box["html"] |= {"data-number": number, "data-spread": f"{spread:g}", "data-unit": unit}
        text = f"The answer: {number} {unit}".strip()
        return build("p", text=f"{text}.", classes=f"{BOX}__came")


# Folds ----------------------------------------------------------------------------------------


def check_predictions(app: Sphinx, doctree: nodes.document) -> None:
    """Refuse a prediction that has no answer: nothing follows it in its section."""
    for box in predictions(doctree):
        if not isinstance(box.parent, nodes.section):
            logger.warning("a prediction belongs in a section, not in a box", location=box)
        elif box.parent.index(box) == len(box.parent) - 1:
            logger.warning("the prediction has no answer: its section ends with it", location=box)


def predictions(doctree: nodes.Element) -> Iterator[element]:
    """Find the predictions of a page."""
    return (node for node in doctree.findall(element) if BOX in node["classes"])


def fold(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put folds around what is folded; elsewhere than on the site everything is open."""
    if app.builder.format != "html":
        return
    for box in list(predictions(doctree)):
        section = box.parent
        opens = OPENS_ANSWER.format(escape(section[0].astext().removeprefix(DEEPER)))
        section.insert(section.index(box) + 1, html(opens))
        section += html("</details>")
    for section in list(doctree.findall(nodes.section)):
        if is_deeper(section):
            label(section[0])
            section.insert(0, html(OPENS_DEEPER))
            section.insert(2, html("</summary>"))
            section += html("</details>")


def is_deeper(section: nodes.section) -> bool:
    """Recognise a section that goes deeper by its heading."""
    return isinstance(section[0], nodes.title) and section[0].astext().startswith(DEEPER)


def label(title: nodes.title) -> None:
    """Set the heading's first word apart from the question that follows it."""
    text = title.next_node(nodes.Text)
    word = build("span", text="Deeper", classes="tt-deeper__label")
    colon = build("span", text=": ", classes="visually-hidden")
    text.parent.replace(text, [word, colon, nodes.Text(text.removeprefix(DEEPER))])


def html(text: str) -> nodes.raw:
    """Write HTML as it is."""
    return nodes.raw("", text, format="html")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("prediction", Prediction)
    app.connect("doctree-read", check_predictions)
    app.connect("doctree-resolved", fold, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
