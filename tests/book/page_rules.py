"""The rules that a chapter's page keeps, and how far each chapter is: `make pages` prints it.

A rule is a function that names what breaks it on a page. The pages are read as they were built; the
counts in them are those of `book/_ext/directives/page_measures.py`. `test_page_rules.py` asks all
rules of all chapters.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

if __name__ == "__main__":  # what conftest.py does for the tests
    sys.path.append(str(Path(__file__).resolve().parents[2] / "book"))

from built import CHAPTERS, ROOT, soup, tags
from myst_nb.core.read import read_myst_markdown_notebook as read_notebook

MOST = {"words": 1500, "code": 150, "source": 40, "folds": 6}
COUNTS = ("core-words", "folded-words", "core-code", "folded-code")
KINDS = {"write it", "predict it", "debug it"}
NO_PROSE = ".tt-card, .tt-live-plain, pre, script, style, svg, math, .toctree-wrapper"
UNIT = "milliseconds?|microseconds?|nanoseconds?|seconds?|minutes?|hours?"
NUMBER = "two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty|sixty"
TIME = re.compile(
    rf"\d[\d.,]*(?:\s(?:s|ms|[µμ]s|ns|min|h)|[\s-]?(?:{UNIT}))\b"
    rf"|\b(?:{NUMBER}|few|some|several)\s(?:{UNIT.replace('seconds?', 'seconds')})\b"
    r"|\b(?:half an?|of a|an?)\s(?:millisecond|minute|hour)\b|\b(?:half|of) a second\b"
)
CLOCKS = {"perf_counter", "process_time", "thread_time", "monotonic", "timeit"}


# What a page holds ----------------------------------------------------------------------------


def name_of(chapter: str) -> str:
    """The last part of a chapter's path."""
    return chapter.rsplit("/", 1)[-1]


def counted(chapter: str, what: str) -> int:
    """A count of the page, such as `core-words`."""
    return int(soup(chapter).select_one(".tt-card__reading")[f"data-{what}"])


@cache
def texts(chapter: str) -> tuple[str, ...]:
    """The page's paragraphs, captions and descriptions of figures, as a reader gets them."""
    article = soup(chapter).select_one("article")
    hidden = {id(inner) for outer in article.select(NO_PROSE) for inner in outer.find_all(True)}
    hidden |= {id(outer) for outer in article.select(NO_PROSE)}
    blocks = article.select("p, li, td, th, dd, h1, h2, h3, h4")
    found = [spoken(block) for block in blocks if id(block) not in hidden]
    found += [svg.get("aria-label", "") for svg in article.select("svg, [role=img]")]
    found += [image.get("alt", "") for image in article.select("img")]
    return tuple(found)


def spoken(block) -> str:
    """The words of a block, without its code and formulas."""
    strings = block.find_all(string=True)
    unspoken = ("code", "pre", "math", "script", "svg")
    return "".join(s for s in strings if not s.find_parent(unspoken))


def clocked(sources: list[str]) -> set[str]:
    """The names of a notebook that read a clock, or hold what one has said.

    >>> sorted(
    ...     clocked(
    ...         [
    ...             "from timeit import repeat",
    ...             "def best(f): return min(repeat(f))",
    ...             "took = best(len)",
    ...             "more = 1",
    ...         ]
    ...     )
    ...     - CLOCKS
    ... )
    ['best', 'repeat', 'took']
    """
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    clocks, before = set(CLOCKS), set()
    for node in imports:
        clocks |= {a.asname or a.name for a in node.names if node.module in ("time", "timeit")}
    while clocks != before:  # what reads a time has one
        before = set(clocks)
        for names, value in (pair for node in nodes for pair in given(node)):
            clocks |= names if (used(value) | called(value)) & clocks else set()
    return clocks


def given(node: ast.AST) -> list[tuple[set[str], ast.AST]]:
    """The names to which a piece of code gives a meaning, and what it is made of."""
    if isinstance(node, ast.FunctionDef):
        return [({node.name}, node)]
    if isinstance(node, ast.Assign):
        return [(used(target), node.value) for target in node.targets]
    if isinstance(node, (ast.AugAssign, ast.NamedExpr)):
        return [(used(node.target), node.value)]
    if isinstance(node, (ast.For, ast.comprehension)):
        return [(used(node.target), node.iter)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        changed = used(node.func) if node.func.attr in ("append", "extend") else set()
        return [(changed, argument) for argument in node.args]
    return []


def called(node: ast.AST) -> set[str]:
    """The names of the functions that a piece of code calls."""
    return {name for leaf in ast.walk(node) if isinstance(leaf, ast.Call) for name in last(leaf)}


def last(call: ast.Call) -> set[str]:
    """The name of what is called, the last one of `time.perf_counter`."""
    name = getattr(call.func, "id", None) or getattr(call.func, "attr", None)
    return {name} if name else set()


def used(node: ast.AST) -> set[str]:
    """The names that a piece of code reads or gives a meaning to."""
    return {leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)}


# The rules ------------------------------------------------------------------------------------


def too_many_words(chapter: str) -> list[str]:
    """The core has at most 1,500 words."""
    return over("words", counted(chapter, "core-words"))


def too_much_code(chapter: str) -> list[str]:
    """The core shows at most 150 lines of code, exercises and the code of figures apart."""
    return over("code", counted(chapter, "core-code"))


def too_much_source(chapter: str) -> list[str]:
    """The page shows at most 40 lines of the package."""
    return over("source", counted(chapter, "core-source") + counted(chapter, "folded-source"))


def too_many_folds(chapter: str) -> list[str]:
    """The page has at most six sections that are folded."""
    return over("folds", len(soup(chapter).select(".tt-deeper")))


def over(what: str, count: int) -> list[str]:
    """Say by how much a count is too large."""
    return [f"{count} of {what}, at most {MOST[what]}"] if count > MOST[what] else []


def times_in_the_text(chapter: str) -> list[str]:
    """No text speaks of seconds: they were measured on one machine, once."""
    return [
        f"{found[0]!r} in {text[max(0, found.start() - 30) : found.end() + 20]!r}"
        for text in dict.fromkeys(texts(chapter))
        for found in TIME.finditer(text)
    ]


def outputs_not_compared(chapter: str) -> list[str]:
    """Only times are not compared: such a cell prints nothing else, but for what labels them."""
    text = (ROOT / f"{chapter}.md").read_text(encoding="utf-8")
    code = [cell for cell in read_notebook(text).cells if cell.cell_type == "code"]
    names, problems = clocked([cell.source for cell in code]), []
    for cell in (cell for cell in code if "nbval-ignore-output" in tags(cell)):
        tree = ast.parse(cell.source)
        if not (used(tree) | called(tree)) & names:
            problems.append(f"no time is printed by {cell.source.strip().splitlines()[0]!r}")
        problems += [
            f"{ast.unparse(v)!r} is no time, and not compared" for v in untimed(tree, names)
        ]
    return problems


def untimed(tree: ast.AST, clocks: set[str]) -> list[ast.AST]:
    """What a cell prints that is neither made of a time nor the name of a loop or an error.

    >>> cell = ast.parse("for n in 1, 2: print(f'{n} of {len(x)}: {took(n)} s', size)")
    >>> [ast.unparse(value) for value in untimed(cell, {"took"})]
    ['size', 'len(x)']
    """
    nodes = list(ast.walk(tree))
    loops = [used(node.target) for node in nodes if isinstance(node, (ast.For, ast.comprehension))]
    errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}
    prints = [n for n in nodes if isinstance(n, ast.Call) and used(n.func) == {"print"}]
    shown = [
        value for call in prints for value in call.args if not isinstance(value, ast.JoinedStr)
    ]
    shown += [node.value for node in nodes if isinstance(node, ast.FormattedValue)]
    labels = errors.union(*loops)
    return [v for v in shown if not used(v) <= labels and not (used(v) | called(v)) & clocks]


def kinds_missing(chapter: str) -> list[str]:
    """There is an exercise to write, one to predict and one to debug."""
    there = {tag.get_text() for tag in soup(chapter).select(".exercise .tt-kind")}
    return [f"no exercise to {kind.removesuffix(' it')}" for kind in sorted(KINDS - there)]


def no_prediction(chapter: str) -> list[str]:
    """A prediction is made before its answer is seen."""
    return [] if soup(chapter).select(".tt-prediction + .tt-answer") else ["no prediction"]


def no_drawing(chapter: str) -> list[str]:
    """A drawing carries the page's idea; the map in its card is not it."""
    drawings = soup(chapter).select("figure.tt-drawing")
    own = [drawing for drawing in drawings if not drawing.find_parent(class_="tt-card")]
    return [] if own else ["no drawing"]


RULES = {
    "words": too_many_words,
    "code": too_much_code,
    "source": too_much_source,
    "folds": too_many_folds,
    "times": times_in_the_text,
    "outputs": outputs_not_compared,
    "kinds": kinds_missing,
    "prediction": no_prediction,
    "drawing": no_drawing,
}


# The table ------------------------------------------------------------------------------------


def main() -> None:
    """Print the counts of each chapter and what breaks a rule."""
    heads = ("words", "folded", "code", "folded", "source")
    print(f"{'':28}{''.join(f'{head:>8}' for head in heads)}  reading time")
    for chapter in CHAPTERS:
        counts = [counted(chapter, what) for what in COUNTS]
        counts.append(counted(chapter, "core-source") + counted(chapter, "folded-source"))
        time = soup(chapter).select_one(".tt-card__reading").get_text()
        print(f"{name_of(chapter):28}{''.join(f'{n:8}' for n in counts)}  {time}")
    for rule, broken in RULES.items():
        print(f"\n{rule}: {broken.__doc__.strip()}")
        for chapter in CHAPTERS:
            for problem in broken(chapter):
                print(f"  {name_of(chapter)}: {problem}")


if __name__ == "__main__":
    main()
