"""What a page asks of its reader: words, lines of code, formulas; and the time to read them.

Counted are the words of the text, its headings, lists and tables; the lines of code that the page
shows, blank ones left out, and among them those of the package's source; and the formulas on lines
of their own. Counted apart is what is folded: sections that go deeper, and what stands behind the
choices of a question. Counted nowhere are the card, captions, what cells print, the folded code of
figures, and the exercises, for which nobody knows how long they take.

The times are those of somebody who learns, 200 words a minute (Carver 1992, "Reading rate: theory,
research, and practical implications", Journal of Reading 36; for reading non-fiction with no such
aim Brysbaert 2019, Journal of Memory and Language 109, finds 238), and of somebody who reviews
code, 500 lines an hour, above which reviewers miss what they look for (Cohen 2006, "Best Kept
Secrets of Peer Code Review"). Such a line is an ordinary one: in the standard library of Python
3.11 a line of code has seven symbols, that is words, numbers and runs of signs. Lines of array code
have twice as many, and take as much longer. For a formula there is no such source: 15 seconds are
an estimate.

The card of a page shows the time and, as `data-` attributes, the counts; `tests/book/page_rules.py`
reads them there.
"""

import re
from collections import Counter
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from .chapter_card import reading_time
from .drawing import drawing
from .elements import build
from .folds_and_predictions import is_deeper

WORDS_A_MINUTE = 200
LINES_A_MINUTE = 500 / 60
SYMBOLS_A_LINE = 7
MINUTES_A_FORMULA = 15 / 60

EXERCISES = re.compile(r"exercises?\b", re.IGNORECASE)
SYMBOL = re.compile(r"\w+|[^\w\s]+")
FOLDED = {"tt-reflect__verdict", "tt-prediction__why", "tt-prediction__came", "dropdown"}
UNCOUNTED = {
    "tt-card",
    "tt-kind",
    "exercise",
    "tag_exercise-stub",
    "tag_exercise-solution",
    "tag_hide-input",
    "tag_hide-cell",
}
SILENT = (drawing, nodes.caption, nodes.comment, nodes.raw, nodes.target, nodes.image)


def measure(doctree: nodes.document) -> dict[str, Counter[str]]:
    """Count what a page holds.

    Returns:
        For "core" and "folded" the numbers of words, lines of code, their symbols, lines of source
        and formulas.
    """
    found: dict[str, Counter[str]] = {"core": Counter(), "folded": Counter()}
    count(doctree, found, "core")
    return found


def count(node: nodes.Element, found: dict[str, Counter[str]], part: str) -> None:
    """Count what a node holds as a part of the page."""
    for child in node.children:
        if isinstance(child, nodes.Text):
            found[part]["words"] += sum(any(map(str.isalnum, word)) for word in child.split())
        elif isinstance(child, nodes.literal_block):
            found[part]["code"] += shown(child)
            found[part]["symbols"] += len(SYMBOL.findall(child.astext()))
            found[part]["source"] += shown(child) if "pyobject" in child else 0
        elif isinstance(child, nodes.math_block):
            found[part]["formulas"] += 1
        elif isinstance(child, nodes.math):
            found[part]["words"] += 1
        elif is_counted(child):
            count(child, found, "folded" if is_folded(child) else part)


def shown(block: nodes.literal_block) -> int:
    """Count the lines that are not blank."""
    return sum(bool(line.strip()) for line in block.astext().splitlines())


def is_counted(node: nodes.Element) -> bool:
    """Leave out what is no reading, and exercises."""
    if isinstance(node, SILENT) or UNCOUNTED & set(node.get("classes", ())):
        return False
    if isinstance(node, nodes.title) and isinstance(node.parent, nodes.table):
        return False
    if node.get("nb_element") == "cell_code_output":
        return False
    return not (isinstance(node, nodes.section) and EXERCISES.match(heading(node)))


def is_folded(node: nodes.Element) -> bool:
    """Recognise what the reader opens or leaves closed."""
    deeper = isinstance(node, nodes.section) and is_deeper(node)
    return deeper or bool(FOLDED & set(node.get("classes", ())))


def heading(section: nodes.section) -> str:
    """Return a section's heading; the text of an exercise is a section without one."""
    title = section.next_node(nodes.title)
    return title.astext() if title is not None and title.parent is section else ""


def minutes(counts: Counter[str]) -> float:
    """Return how many minutes this takes to read.

    >>> minutes(Counter(words=1000, symbols=25 * 7, formulas=4))
    9.0
    """
    return (
        counts["words"] / WORDS_A_MINUTE
        + counts["symbols"] / SYMBOLS_A_LINE / LINES_A_MINUTE
        + counts["formulas"] * MINUTES_A_FORMULA
    )


def fill_reading_time(app: Sphinx, doctree: nodes.document) -> None:
    """Write the reading time into the page's card, and the counts behind it."""
    places = list(doctree.findall(reading_time))
    if not places:
        return
    found = measure(doctree)
    core, folded = (minutes(found[part]) for part in ("core", "folded"))
    text = f"about {max(1, round(core))} min"
    if round(core + folded) > max(1, round(core)):
        text += f", {round(core + folded)} with what is folded"
    data = {
        f"data-{part}-{kind}": str(found[part][kind])
        for part in found
        for kind in ("words", "code", "source", "formulas")
    }
    for place in places:
        place.replace_self(build("span", text=text, classes="tt-card__reading", **data))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-read", fill_reading_time)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
