"""What the book's chapters say about one another, read without building the site.

The notebook generator turns cross-references into links to the site. For that it needs to know what
Sphinx knows: the title of every page, the label of every section, the number of every figure,
table, equation and exercise. `BookIndex` reads these from the chapters in the order of `_toc.yml`;
the tests compare its numbers with those of the built pages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from docutils.nodes import make_id
from docutils.parsers.rst import Directive
from launch import site_url
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.directives import parse_directive_text
from myst_parser.parsers.mdit import create_md_parser

EXTENSIONS = {"amsmath", "colon_fence", "deflist", "dollarmath", "substitution"}
FENCES = ("fence", "colon_fence")
NUMBER_FORMAT = {"figure": "Fig. {}", "table": "Table {}", "exercise": "Exercise {}", "eq": "({})"}
# Directives whose content is ordinary chapter text, which may hold labels and numbered things.
CONTAINERS = {"note", "tip", "warning", "important", "admonition", "exercise", "reflect", "table"}


class MystError(Exception):
    """Something in a chapter that a plain notebook cannot show; names file and line."""


class _AnyOption(dict[str, Callable[[str | None], str]]):
    """Accepts every option as the text it is; what an option means is decided where it is used."""

    def __missing__(self, name: str) -> Callable[[str | None], str]:
        return lambda text: text or ""


class _AnyDirective(Directive):
    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = _AnyOption(any=str)


@dataclass
class Fenced:
    """One directive of a chapter.

    Attributes:
        name: What stands between the braces.
        argument: The rest of the first line.
        options: The options, as YAML reads them for `code-cell`, else as strings.
        body: The content.
        line: The line of the file where the content starts, counted from 1.
    """

    name: str
    argument: str
    options: dict[str, Any]
    body: str
    line: int


@dataclass
class Label:
    """A place that a role can point at: where it is, and what a link to it should say."""

    docname: str
    anchor: str
    kind: str = ""
    number: str = ""
    title: str = ""


@dataclass
class BookIndex:
    """Pages, labels and numbers of the book, in the order of its table of contents.

    Attributes:
        root: The folder of `_config.yml`.
        repository: The address of the repository, without a slash at its end.
        branch: The branch that links name.
        docnames: The pages in reading order, such as `book/foundations/tensors`.
        titles: The Markdown source of each page's title.
        labels: What each label points at.
        terms: The glossary's terms, in lower case, and the anchor of each.
        pages: `glossary` and `bibliography`: the pages that hold them.
    """

    root: Path
    repository: str
    branch: str
    docnames: list[str]
    titles: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    terms: dict[str, str] = field(default_factory=dict)
    pages: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, root: Path) -> BookIndex:
        """Read the configuration, the table of contents and every page.

        Raises:
            MystError: A page of the table of contents is missing, or a label is used twice.
        """
        config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
        chapters = read_toc(root)
        repository = config["repository"]
        index = cls(
            root=root,
            repository=repository["url"].rstrip("/"),
            branch=repository.get("branch", "main"),
            docnames=[docname for docname, _ in chapters],
        )
        counts: dict[tuple[str, str], int] = {}
        for docname, chapter_number in chapters:
            path = index.source(docname)
            if not path.exists():
                raise MystError(f"_toc.yml names {docname}, but there is no {docname}.md")
            _PageReader(index, docname, chapter_number, counts).read(path.read_text("utf-8"))
        return index

    @property
    def site(self) -> str:
        """The address of the published site, with a slash at its end."""
        return site_url(self.repository)

    def source(self, docname: str) -> Path:
        """The file of a page."""
        return self.root / f"{docname}.md"

    def page_url(self, docname: str, anchor: str = "") -> str:
        """Where the site shows a page, or a place on it."""
        return f"{self.site}{docname}.html" + (f"#{anchor}" if anchor else "")

    def raw_url(self, path: str) -> str:
        """Where the repository serves a file as it is."""
        owner, name = self.repository.split("/")[-2:]
        return f"https://raw.githubusercontent.com/{owner}/{name}/{self.branch}/{path}"

    def resolve(self, target: str, docname: str) -> str | None:
        """The page that `target` means when it stands on page `docname`; None if there is none.

        Example:
            `embedding-layer`, `../foundations/tensors`, `/book/intro` and `foundations/tensors`
            (from the book's folder) all work, with or without `.md`.
        """
        target = target.removesuffix(".md")
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(docname), target))
        for candidate in (target.lstrip("/"), beside, f"book/{target}"):
            if candidate in self.docnames:
                return candidate
        return None

    def notebook_pages(self) -> list[str]:
        """The pages that hold code cells: those whose front matter names jupytext."""
        return [name for name in self.docnames if _has_jupytext(self.source(name))]


def read_toc(root: Path) -> list[tuple[str, str]]:
    """The pages of `_toc.yml` in reading order, each with its chapter number ("" for none)."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    numbered_everywhere = bool((toc.get("defaults") or {}).get("numbered"))
    pages = [(str(toc["root"]), "")]
    count = 0
    for part in toc.get("parts") or [toc]:
        numbered = part.get("numbered", (part.get("options") or {}).get("numbered"))
        numbered = numbered_everywhere if numbered is None else bool(numbered)
        for entry in part.get("chapters") or []:
            count += numbered
            pages.append((str(entry["file"]), str(count) if numbered else ""))
            pages += [(str(sub["file"]), "") for sub in entry.get("sections") or []]
    return pages


def block_parser() -> Any:
    """The parser that the site uses, stopped before it looks inside paragraphs."""
    config = MdParserConfig(enable_extensions=EXTENSIONS, disable_syntax=["inline"])
    return create_md_parser(config, RendererHTML)


def directive_name(token: Token) -> str | None:
    """The name of the directive that a fence opens; None for a fence of plain code."""
    info = token.info.strip()
    if token.type not in FENCES or not info.startswith("{") or "}" not in info:
        return None
    return info[1 : info.index("}")]


def read_directive(token: Token, line: int) -> Fenced:
    """Read the options and the content of the directive that `token` opens on line `line`.

    Raises:
        MystError: The options are not valid YAML.
    """
    name = directive_name(token) or ""
    argument = token.info.strip()[len(name) + 2 :].strip()
    parsed = parse_directive_text(
        _AnyDirective,
        first_line="",
        content=token.content,
        validate_options=name != "code-cell",  # a cell's options are YAML, all others are text
    )
    if parsed.warnings:
        raise MystError(f"line {line}: {{{name}}}: {parsed.warnings[0].msg}")
    return Fenced(
        name, argument, parsed.options, "\n".join(parsed.body), line + 1 + parsed.body_offset
    )


def numbered_caption(block: Fenced) -> tuple[str, str, str] | None:
    """What Sphinx would number in this directive: its kind, its label and its caption."""
    if block.name == "code-cell":
        figure = (block.options.get("mystnb") or {}).get("figure") or {}
        if figure.get("caption"):
            return "figure", str(figure.get("name") or ""), str(figure["caption"]).strip()
    elif block.name == "figure" and block.body.strip():
        return "figure", str(block.options.get("name") or ""), block.body.strip()
    elif block.name in ("table", "list-table") and block.argument:
        return "table", str(block.options.get("name") or ""), block.argument
    elif block.name == "math" and block.options.get("label"):
        return "eq", str(block.options["label"]), ""
    elif block.name == "exercise":
        return "exercise", str(block.options.get("label") or ""), block.argument
    return None


def glossary_entries(body: str) -> list[tuple[list[str], str]]:
    """The terms of a glossary directive and their definitions."""
    entries: list[tuple[list[str], list[str]]] = []
    for line in body.splitlines():
        if line.strip() and not line[0].isspace():
            if not entries or any(entries[-1][1]):
                entries.append(([], []))
            entries[-1][0].append(line.strip())
        elif entries:
            entries[-1][1].append(line.strip())
    return [(terms, "\n".join(text).strip()) for terms, text in entries]


def parse_reflect(body: str) -> tuple[str, list[tuple[bool, str, str]]]:
    """Split a reflect question into its text and its choices.

    Args:
        body: Paragraphs, then a bullet list whose items begin with `[x]` (right) or `[ ]` (wrong).

    Returns:
        The question, and for each choice whether it is right, its text and its explanation.

    Raises:
        MystError: There is no list, or an item begins with neither mark.
    """
    lines = body.splitlines()
    tokens = block_parser().parse(body)
    lists = [t for t in tokens if t.type == "bullet_list_open" and t.level == 0 and t.map]
    if not lists:
        raise MystError("a reflect question needs a bullet list of choices, [x] or [ ] each")
    choices = []
    for token in tokens:
        if token.type == "list_item_open" and token.level == 1 and token.map[0] >= lists[-1].map[0]:
            item = _outdent(lines[token.map[0] : token.map[1]])
            mark, text = item[:3].lower(), item[3:].strip()
            if mark not in ("[x]", "[ ]"):
                raise MystError(
                    f"a choice must begin with [x] or [ ], got {item.splitlines()[0]!r}"
                )
            choice, _, explanation = text.partition("\n\n")
            choices.append((mark == "[x]", choice.strip(), explanation.strip()))
    return "\n".join(lines[: lists[-1].map[0]]).strip(), choices


class _PageReader:
    """Notes the title, labels and numbered things of one page."""

    def __init__(
        self, index: BookIndex, docname: str, chapter: str, counts: dict[tuple[str, str], int]
    ) -> None:
        self.index, self.docname, self.chapter, self.counts = index, docname, chapter, counts
        self.pending: list[str] = []

    def read(self, text: str) -> None:
        tokens = block_parser().parse(text)
        for place, token in enumerate(tokens):
            if token.type == "myst_target":
                self.pending.append(token.content.strip())
            elif token.type == "heading_open":
                self._heading(token, tokens[place + 1].content)
            elif token.type == "math_block_label":
                self._numbered("eq", token.info, "")
            elif directive_name(token):
                self._directive(token)
            elif token.type in ("paragraph_open", "table_open", "bullet_list_open", "fence"):
                self._flush("")

    def _heading(self, token: Token, title: str) -> None:
        if token.tag == "h1":
            self.index.titles.setdefault(self.docname, title)
        self._flush(title)

    def _flush(self, title: str) -> None:
        for name in self.pending:
            self._note(name, Label(self.docname, make_id(name), title=title))
        self.pending = []

    def _note(self, name: str, label: Label) -> None:
        if name in self.index.labels:
            other = self.index.labels[name].docname
            raise MystError(f"{self.docname}.md: the label {name!r} is used in {other}.md too")
        self.index.labels[name] = label

    def _numbered(self, kind: str, name: str, caption: str) -> None:
        key = (kind, self.chapter)
        self.counts[key] = self.counts.get(key, 0) + 1
        number = f"{self.chapter}.{self.counts[key]}" if self.chapter else str(self.counts[key])
        for label in [name, *self.pending]:
            anchor = f"equation-{make_id(label)}" if kind == "eq" else make_id(label)
            if label:
                self._note(label, Label(self.docname, anchor, kind, number, caption))
        self.pending = []

    def _directive(self, token: Token) -> None:
        block = read_directive(token, token.map[0] + 1 if token.map else 0)
        numbered = numbered_caption(block)
        if numbered:
            self._numbered(*numbered)
        elif block.options.get("label") or block.options.get("name"):
            self.pending.append(str(block.options.get("label") or block.options.get("name")))
        self._flush(block.argument)
        if block.name == "glossary":
            self._glossary(block)
        elif block.name == "bibliography":
            self.index.pages["bibliography"] = self.docname
        elif block.name in CONTAINERS:
            self.read(block.body)

    def _glossary(self, block: Fenced) -> None:
        from sphinx.util.nodes import _make_id

        self.index.pages["glossary"] = self.docname
        for terms, _ in glossary_entries(block.body):
            for term in terms:
                self.index.terms[term.lower()] = f"term-{_make_id(term)}"


def _has_jupytext(path: Path) -> bool:
    text = path.read_text(encoding="utf-8")
    if not text.startswith("---\n"):
        return False
    return "jupytext" in (yaml.safe_load(text[4:].partition("\n---")[0]) or {})


def _outdent(lines: list[str]) -> str:
    """The text of a list item without its marker and indentation."""
    marker = re.match(r"\s*([-*+]|\d+[.)])\s+", lines[0])
    width = marker.end() if marker else 0
    rest = [line[width:] if not line[:width].strip() else line.lstrip() for line in lines[1:]]
    return "\n".join([lines[0][width:], *rest]).strip()
