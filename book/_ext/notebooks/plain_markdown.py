"""Write a page that Sphinx has resolved as the plain Markdown that a notebook shows.

Jupyter and Colab know CommonMark, tables, `$maths$` and a little HTML; they do not know MyST. Here
each kind of node has one method that says what becomes of it; a node without one is an error that
names the file and the line. Titles, numbers and the targets of links are Sphinx's own.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from markdown_it import MarkdownIt
from sphinx.builders import Builder
from sphinx.errors import SphinxError

from ..addresses import site_url
from ..directives.drawing import address, described
from ..directives.exercises import KINDS

SPECIAL = re.compile(r"[\\`*$]|<(?=[A-Za-z/!?])|\](?=[(\[])|~(?=~)|(?<!\w)_|_(?!\w)")
LINE_START = re.compile(r"^\s*(?=[-+]\s|#{1,6}\s|>)|^\s*\d+(?=[.)]\s)", re.M)
STRAIGHT = str.maketrans("‘’“”", "''\"\"")
LATEX = {  # commands that have a sign; of the others the name is left
    "\\times": "×", "\\cdot": "·", "\\dots": "…", "\\ldots": "…", "\\to": "→", "\\le": "≤",
    "\\ge": "≥", "\\ne": "≠", "\\approx": "≈", "\\infty": "∞", "\\partial": "∂",
}  # fmt: skip
CARD_ROWS = {"Before this": "You need", "Difficulty": "Difficulty"}


class CannotShow(SphinxError):
    """Something on a page that a plain notebook cannot show."""

    category = "Notebook error"


class PlainMarkdown:
    """Writes the nodes of one page.

    Args:
        builder: The builder; its addresses are those of the published site.
        docname: The page, such as `book/foundations/tensors`.
    """

    def __init__(self, builder: Builder, docname: str) -> None:
        self.env, self.docname = builder.env, docname
        self.address: Callable[[str], str] = builder.get_target_uri
        self.root = Path(builder.srcdir)
        self.site = site_url(builder.config.book_repository)
        self.files = f"{builder.config.book_repository}/blob/{builder.config.book_branch}"

    def pieces(self, node: nodes.Element, depth: int = 0) -> Iterator[str | nodes.container]:
        """Yield the blocks of a page in order: Markdown, and each code cell as its node."""
        for child in node.children:
            if is_cell(child):
                yield child
            elif isinstance(child, nodes.section):
                yield from self.pieces(child, depth + 1)
            elif isinstance(child, nodes.title):
                yield "#" * max(depth, 1) + " " + self.inline(child)
            else:
                yield self.block(child)

    def figure_note(self, cell: nodes.container) -> str:
        """Write the caption and the description of the figure that a code cell draws."""
        alt = cell["cell_metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        parts = [self.caption(figure) for figure in cell.findall(nodes.figure)]
        parts += [f"*What it shows:* {' '.join(alt.split())}"] if alt else []
        return "\n\n".join(parts)

    # Blocks

    def block(self, node: nodes.Node) -> str:
        """Write one block."""
        return self.method("block", node)(node)

    def blocks(self, children: Iterable[nodes.Node]) -> str:
        """Write blocks, with an empty line between two of them."""
        return "\n\n".join(filter(None, map(self.block, children)))

    def block_paragraph(self, node: nodes.paragraph) -> str:
        """A paragraph; what looks like a list or a heading at the start of a line is none."""
        return LINE_START.sub(r"\g<0>\\", self.inline(node))

    def block_section(self, node: nodes.section) -> str:
        """A section inside something has no title: the text of an exercise."""
        return self.blocks(node.children)

    def block_target(self, node: nodes.target) -> str:
        """A label's place."""
        return f'<a id="{node["refid"]}"></a>' if "refid" in node else ""

    def block_bullet_list(self, node: nodes.bullet_list) -> str:
        """A list, close together if its items are single paragraphs."""
        return self.items(node, [f"{node['bullet']} "] * len(node.children))

    def block_enumerated_list(self, node: nodes.enumerated_list) -> str:
        """A numbered list."""
        first = node.get("start", 1)
        return self.items(node, [f"{first + i}. " for i in range(len(node.children))])

    def block_block_quote(self, node: nodes.block_quote) -> str:
        """A quotation."""
        return quoted(self.blocks(node.children))

    def block_math_block(self, node: nodes.math_block) -> str:
        """A formula; a labelled one keeps its number."""
        number = self.number(node, "displaymath")
        tag = f" \\tag{{{number}}}" if number else ""
        return f"$$\n{node.astext().strip()}{tag}\n$$"

    def block_literal_block(self, node: nodes.literal_block) -> str:
        """Code, with a link to the file that it is included from."""
        code, language = node.astext().rstrip(), node.get("language", "")
        ticks = "`" * max(3, longest_ticks(code) + 1)
        block = f"{ticks}{'' if language == 'none' else language}\n{code}\n{ticks}"
        if not node.get("source"):
            return block
        path = Path(node["source"]).resolve().relative_to(self.root.resolve()).as_posix()
        place = f"{path}, `{node['pyobject']}`" if node.get("pyobject") else path
        return f"{block}\n\n*From [{place}]({self.files}/{path}).*"

    def block_admonition(self, node: nodes.admonition) -> str:
        """A box; a hint folds."""
        title, *rest = node.children
        if "dropdown" in node["classes"]:
            return details(as_html(self.inline(title)), self.blocks(rest))
        return quoted(f"**{self.inline(title)}**\n\n{self.blocks(rest)}")

    def block_note(self, node: nodes.Element) -> str:
        """A box that is named by its kind."""
        return quoted(f"**{node.tagname.capitalize()}**\n\n{self.blocks(node.children)}")

    block_tip = block_warning = block_important = block_note

    def block_sidebar(self, node: nodes.sidebar) -> str:
        """A side note, as a box; its title may be empty."""
        title, *rest = node.children
        heading = f"**{self.inline(title)}**\n\n" if title.astext() else ""
        return quoted(heading + self.blocks(rest))

    def block_exercise_enumerable_node(self, node: nodes.Element) -> str:
        """An exercise, with its number as a heading."""
        title, *body = node.children
        # sphinx-exercise puts the title in parentheses
        name = "".join(map(self.inline_node, title.children[1:-1]))
        heading = f"### {self.number(node, 'exercise')}" + (f": {name}" if name else "")
        heading += f" ({KINDS[node['kind']]})"
        return f'<a id="{node["label"]}"></a>\n\n{heading}\n\n{self.blocks(body)}'

    def block_figure(self, node: nodes.figure) -> str:
        """A picture of the repository, and its caption."""
        image = self.inline_image(next(node.findall(nodes.image)))
        return f"{image}\n\n{self.caption(node)}"

    def block_drawing(self, node: nodes.Element) -> str:
        """A drawing, as the file that the site serves, and its caption."""
        name, lit = node["name"], node["lit"]
        image = f"![{described(name, lit)[0]}]({self.site}{address(name, lit)})"
        return f"{image}\n\n{self.inline(node)}" if node.children else image

    def block_table(self, node: nodes.table) -> str:
        """A table; one without a head gets an empty one, for Markdown wants it."""
        rows = [list(map(self.cell, row.children)) for row in node.findall(nodes.row)]
        rules = list(map(alignment, next(node.findall(nodes.row)).children))
        if next(node.findall(nodes.thead), None) is None:
            rows.insert(0, [""] * len(rows[0]))
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        body = "\n".join([lines[0], f"|{'|'.join(rules)}|", *lines[1:]])
        caption = self.caption(node)
        return f"{caption}\n\n{body}" if caption else body

    def block_raw(self, node: nodes.raw) -> str:
        """What only a page can draw."""
        return f"*(Drawn on the site: {self.page_link()}.)*"

    def block_compound(self, node: nodes.Element) -> str:
        """The table of contents of the first page is left out; there is no other compound."""
        if "toctree-wrapper" not in node["classes"]:
            self.refuse(node)
        return ""

    def block_comment(self, node: nodes.comment) -> str:
        """Refused, for a line of prose that begins with % is lost in this way."""
        raise CannotShow(f"{place_of(node)}: a comment; a line that begins with % is one")

    def block_element(self, node: nodes.Element) -> str:
        """The book's own directives (`directives/elements.py`)."""
        if "tt-card" in node["classes"]:
            return self.card(node)
        if "tt-prediction" in node["classes"]:
            return self.prediction(node)
        if node["tag"] == "details":
            summary, *rest = node.children
            return details(as_html(self.inline(summary)), self.blocks(rest))
        return self.inline(node) if node["tag"] == "p" else self.blocks(node.children)

    def card(self, node: nodes.Element) -> str:
        """The card at the head of a chapter, as a table and the list of what one learns."""
        named = (part for part in node.findall(nodes.Element) if part["classes"])
        parts = {part["classes"][0].removeprefix("tt-card__"): part for part in named}
        rows = {"The question": self.inline(parts["question"])}
        rows["You build"] = "".join(map(self.inline_node, parts["build"].children[1:]))
        for fact in parts["facts"].children:
            name, value = fact.children
            if name.astext() in CARD_ROWS:
                rows[CARD_ROWS[name.astext()]] = self.inline(value)
        rows["On the site"] = self.page_link()
        table = "\n".join(f"| **{name}** | {in_cell(text)} |" for name, text in rows.items())
        below = [self.block(parts[part]) for part in ("believe", "objectives") if part in parts]
        return "\n\n".join([f"| | |\n|---|---|\n{table}", *below])

    def prediction(self, node: nodes.Element) -> str:
        """A question and its choices; which is right stands, with its reasons, in a fold."""
        question, choices = node.children
        if choices["tag"] != "ul":
            return self.block(question)
        texts = [self.inline(choice.children[0]) for choice in choices.children]
        listed = "\n".join(f"- {text}" for text in texts)
        reasons = [
            f"- {text}: {self.blocks(choice.children[-1].children)}"
            for text, choice in zip(texts, choices.children, strict=True)
            if "tt-prediction__why" in choice.children[-1]["classes"]
        ]
        folded = [details("Choice by choice", "\n".join(reasons))] if reasons else []
        return "\n\n".join([self.block(question), listed, *folded])

    # Inside a line

    def inline(self, node: nodes.Element) -> str:
        """Write what a node holds on one line."""
        return "".join(map(self.inline_node, node.children))

    def inline_node(self, node: nodes.Node) -> str:
        """Write one piece of a line."""
        return self.method("inline", node)(node)

    def inline_Text(self, node: nodes.Text) -> str:
        """Text, with a backslash before what Markdown would take for markup."""
        return SPECIAL.sub(r"\\\g<0>", node.astext())

    def inline_emphasis(self, node: nodes.emphasis) -> str:
        """Emphasis."""
        return f"*{self.inline(node)}*"

    def inline_strong(self, node: nodes.strong) -> str:
        """Strong emphasis."""
        return f"**{self.inline(node)}**"

    def inline_literal(self, node: nodes.literal) -> str:
        """Code, or a key to be pressed."""
        text = node.astext()
        if "kbd" in node["classes"]:
            return f"<kbd>{html.escape(text)}</kbd>"
        ticks = "`" * (longest_ticks(text) + 1)
        space = " " * text.startswith("`") or " " * text.endswith("`")
        return f"{ticks}{space}{text}{space}{ticks}"

    def inline_math(self, node: nodes.math) -> str:
        """A formula."""
        return f"${node.astext()}$"

    def inline_inline(self, node: nodes.inline) -> str:
        """What Sphinx wraps around the text of a link."""
        return self.inline(node)

    def inline_element(self, node: nodes.Element) -> str:
        """A part of a card: what only decorates it is left out."""
        return "" if node["html"].get("aria-hidden") else self.inline(node)

    def inline_abbreviation(self, node: nodes.Element) -> str:
        """An abbreviation and what it stands for."""
        title = html.escape(node.get("explanation", ""))
        return f'<abbr title="{title}">{self.inline(node)}</abbr>'

    def inline_image(self, node: nodes.image) -> str:
        """A picture of the repository, with its description."""
        if not node.get("alt"):
            raise CannotShow(f"{place_of(node)}: a figure needs :alt: text that says what it shows")
        raw = self.files.replace("https://github.com/", "https://raw.githubusercontent.com/")
        return f"![{node['alt']}]({raw.replace('/blob/', '/')}/{node['uri']})"

    def inline_reference(self, node: nodes.Element) -> str:
        """A link; inside the page it leads to the page on the site."""
        url = node.get("refuri") or f"{self.address(self.docname)}#{node['refid']}"
        if node.get("reftitle"):  # a citation: the places in the bibliography are not stable
            url = url.partition("#")[0]
        return f"[{self.inline(node)}]({url})"

    inline_number_reference = inline_reference

    # What several of them need

    def method(self, kind: str, node: nodes.Node) -> Callable[[Any], str]:
        """Find the method of a node."""
        return getattr(self, f"{kind}_{type(node).__name__}", self.refuse)

    def refuse(self, node: nodes.Node) -> str:
        """Refuse a node that has no method.

        Raises:
            CannotShow: Always.
        """
        what = "a code cell inside something" if is_cell(node) else f"a {type(node).__name__} node"
        raise CannotShow(f"{place_of(node)}: {what} cannot be shown in a notebook")

    def items(self, node: nodes.Element, marks: list[str]) -> str:
        """Write the items of a list behind their marks."""
        loose = any(
            sum(isinstance(child, nodes.paragraph) for child in item.children) > 1 for item in node
        )
        lines = [
            mark + self.items_gap(item, loose).replace("\n", "\n" + " " * len(mark))
            for mark, item in zip(marks, node.children, strict=True)
        ]
        return re.sub(r"(?m)^ +$", "", ("\n\n" if loose else "\n").join(lines))

    def items_gap(self, item: nodes.Element, loose: bool) -> str:
        """Write one item; a list in a close list follows its paragraph at once."""
        if not loose and all(
            isinstance(c, (nodes.paragraph, nodes.bullet_list, nodes.enumerated_list)) for c in item
        ):
            return "\n".join(map(self.block, item.children))
        return self.blocks(item.children)

    def cell(self, entry: nodes.Element) -> str:
        """Write one cell of a table."""
        return in_cell(" ".join(map(self.inline, entry.children)))

    def caption(self, node: nodes.Element) -> str:
        """Write the caption of a figure or a table, with its number."""
        kinds = (nodes.title, nodes.caption)
        title = next((child for child in node.children if isinstance(child, kinds)), None)
        if title is None:
            return ""
        number = self.number(node, node.tagname) if node["ids"] else ""
        text = self.inline(title)
        return f"**{number}:** {text}" if number else f"*{text}*"

    def number(self, node: nodes.Element, kind: str) -> str:
        """Return the number of a figure, table, exercise or formula as the page shows it."""
        numbers = self.env.toc_fignumbers.get(self.docname, {}).get(kind, {})
        found = next((numbers[i] for i in node["ids"] if i in numbers), None)
        text = ".".join(map(str, found or ()))
        return self.env.config.numfig_format.get(kind, "%s") % text if text else ""

    def page_link(self) -> str:
        """Link to this page on the site."""
        title = self.inline(self.env.titles[self.docname])
        return f"[{title}]({self.address(self.docname)})"


def is_cell(node: nodes.Node) -> bool:
    """Recognise a code cell."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def place_of(node: nodes.Node) -> str:
    """Return the file and the line that a node comes from, as far as they are known."""
    while node.parent is not None and node.line is None:
        node = node.parent
    source = node.source or (node.document and node.document.get("source"))
    return f"{source}:{node.line}" if node.line else str(source)


def prose(doctree: nodes.Element) -> list[str]:
    """Return a page's paragraphs, one a line, without lists, boxes, tables and display maths."""
    found = []
    for child in doctree.children:
        if isinstance(child, nodes.section):
            found += prose(child)
        elif isinstance(child, nodes.paragraph):
            found.append(" ".join(plain(child).translate(STRAIGHT).split()))
    return found


def plain(node: nodes.Node) -> str:
    """Write a paragraph, or a part of it, without markup."""
    if isinstance(node, nodes.math):
        return plain_math(node.astext())
    if isinstance(node, nodes.Text):
        return str(node.astext())
    return "".join(map(plain, node.children))


def plain_math(formula: str) -> str:
    """Write a formula as one would type it: the root of d becomes `√d`, a subscript `x_i`."""
    formula = re.sub(r"\\(?:bar|hat|tilde|vec|text|math\w+|operatorname|boldsymbol)\b", "", formula)
    formula = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", formula)
    formula = re.sub(r"\\sqrt\{(\w+)\}|\\sqrt\s*(\w)", r"√\1\2", formula)
    formula = re.sub(r"\\sqrt", "√", formula)
    formula = re.sub(r"\\[A-Za-z]+", lambda name: LATEX.get(name[0], name[0][1:]), formula)
    return " ".join(re.sub(r"\\.|[{}]", "", formula).split())


def as_html(markdown: str) -> str:
    """Write inline Markdown as HTML, for a place where Markdown is not read; maths stays."""
    formulas = re.findall(r"(?<!\\)\$[^$]+\$", markdown)
    for number, formula in enumerate(formulas):
        markdown = markdown.replace(formula, f"\ue000{number}\ue001", 1)
    rendered = MarkdownIt("commonmark").renderInline(markdown)
    for number, formula in enumerate(formulas):
        rendered = rendered.replace(f"\ue000{number}\ue001", html.escape(formula, quote=False))
    return rendered


def quoted(text: str) -> str:
    """Put a quotation's sign before every line."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def details(summary: str, body: str) -> str:
    """Fold a text away under its summary."""
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def in_cell(text: str) -> str:
    """Put a text on one line, with its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def alignment(entry: nodes.Element) -> str:
    """Write below the head of a column on which side its text stands."""
    rules = {"text-left": ":--", "text-center": ":-:", "text-right": "--:"}
    return next((rules[name] for name in entry["classes"] if name in rules), "---")


def longest_ticks(code: str) -> int:
    """Count the longest run of backticks."""
    return max((len(run) for run in re.findall(r"`+", code)), default=0)
