"""Directives and options that do not exist, found without a build.

    python -m _ext.directives.names     name each with its file, its line and the nearest name

Sphinx finds them too, in the minutes of a build; of an option, only by an error in the page.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from docutils.parsers.rst import directives
from markdown_it import MarkdownIt
from mdit_py_plugins.colon_fence import colon_fence_plugin
from sphinx.directives.code import LiteralInclude
from sphinx.domains.std import Glossary

from ..cell_options import OPTIONS, TAGS

BOOK = Path(__file__).resolve().parents[2]
OURS = (
    *("directives.chapter_card", "directives.drawing", "directives.exercises"),
    *("directives.folds_and_predictions", "directives.playground", "directives.talk_to_it"),
    *("directives.questions", "directives.your_file", "directives.your_parts"),
    *("teaching.slides", "teaching.syllabus"),
)
OTHERS = {  # what pages use of Sphinx, MyST and the theme, with its options
    "literalinclude": set(LiteralInclude.option_spec),
    "glossary": set(Glossary.option_spec),
    "bibliography": {"all", "filter", "style", "labelprefix"},
    "code-cell": OPTIONS,
    "eval-rst": set(),
    "margin": {"class", "name"},
}
STANDARD = ("admonition", "figure", "image", "list-table", "math", "note", "tip", "warning")
CODE = {"code-cell", "literalinclude", "eval-rst", "math", "bibliography"}  # hold no Markdown
DIRECTIVE = re.compile(r"\{([^}\s]+)\}")
OPTION = re.compile(r":([\w-]+):")


class Recorder:
    """Stands for the application while extensions register: keeps what directives they bring."""

    def __init__(self) -> None:
        self.options: dict[str, set[str]] = {}

    def add_directive(self, name: str, directive: Any, override: bool = False) -> None:
        """Note a directive and its options."""
        self.options[name] = set(directive.option_spec or ())

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


def known() -> dict[str, set[str]]:
    """Name the directives that a page may use, and the options of each."""
    recorder = Recorder()
    for name in OURS:
        import_module(f"{__package__.rpartition('.')[0]}.{name}").setup(recorder)
    standard = standard_options(STANDARD)
    return {**standard, **OTHERS, **recorder.options}


def standard_options(names: Iterable[str]) -> dict[str, set[str]]:
    """Ask docutils for the options of its own directives."""
    from docutils.parsers.rst.languages import en

    found = {name: directives.directive(name, en, None)[0] for name in names}
    return {name: {*(kind.option_spec or ()), "class", "name"} for name, kind in found.items()}


def problems(text: str, names: dict[str, set[str]], first: int = 1) -> Iterator[tuple[int, str]]:
    """Find what does not exist in a page, with its line."""
    markdown = MarkdownIt("commonmark").use(colon_fence_plugin)
    for token in markdown.parse(text):
        called = DIRECTIVE.match(token.info) if token.type in ("fence", "colon_fence") else None
        if called is None or token.map is None:
            continue
        name, line = called[1], first + token.map[0]
        if name not in names:
            yield line, f"there is no directive {name!r}{nearest(name, names)}"
            continue
        options, lines = head(token.content)
        for option in sorted(set(options) - names[name]):
            yield line, f"{name} has no option {option!r}{nearest(option, names[name])}"
        if name == "code-cell":
            for tag in sorted(set(options.get("tags") or ()) - TAGS):
                yield line, f"a cell has no tag {tag!r}{nearest(tag, TAGS)}"
        elif name not in CODE:
            below = "\n".join(token.content.splitlines()[lines:])
            yield from problems(below, names, line + 1 + lines)


def head(content: str) -> tuple[dict[str, Any], int]:
    """Read the options of a directive, and how many lines they take."""
    lines = content.splitlines()
    if lines and lines[0].strip() == "---":
        end = lines.index("---", 1)
        return yaml.safe_load("\n".join(lines[1:end])) or {}, end + 1
    given: dict[str, Any] = {}
    for line in lines:
        found = OPTION.match(line)
        if found is None:
            break
        value = line[found.end() :].strip()
        given[found[1]] = yaml.safe_load(value) if value.startswith("[") else value
    return given, len(given)


def nearest(name: str, names: Iterable[str]) -> str:
    """Suggest the name that was meant."""
    close = get_close_matches(name, sorted(names), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(names))}"


def main() -> int:
    """Print what is wrong in any page of the book; returns the exit status."""
    names, status = known(), 0
    for path in sorted(BOOK.rglob("*.md")):
        if path.name == "README.md" or "notebooks" in path.parts:
            continue
        for line, problem in problems(path.read_text(encoding="utf-8"), names):
            print(f"{path.relative_to(BOOK.parent)}:{line}: {problem}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
