"""Turn the Markdown of a chapter into the plain Markdown that a notebook shows.

Jupyter and Colab know CommonMark, tables, `$maths$` and a little HTML; they do not know MyST. Each
directive and role that a chapter may use has one function here that says what becomes of it;
anything else is an error that names the file, the line and what is allowed. Links lead to the site.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import book_index
from book_index import BookIndex, Fenced, Label, MystError
from docutils.nodes import make_id
from markdown_it import MarkdownIt
from markdown_it.token import Token
from pybtex.database import BibliographyData, Entry, parse_file

ADMONITIONS = {"note": "Note", "tip": "Tip", "warning": "Warning", "important": "Important"}
UNSUPPORTED = {
    "footnote_reference_open": "a footnote",
    "dl_open": "a definition list",
    "field_list_open": "a field list",
    "substitution_block": "a substitution",
}
ROLE = re.compile(r"\{([A-Za-z][\w:+-]*)\}(?=`)")
EXPLICIT = re.compile(r"^(.*?)\s*<([^<>]+)>$", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^\s()<>]+)>?((?:\s+\"[^\"]*\")?\s*)\)")
RAW_MYST = (
    (re.compile(r"^[ >]*(`{3,}|~{3,}|:{3,})\s*\{", re.M), "a directive"),
    (re.compile(r"^\s*:{3,}\s*$", re.M), "the end of a directive"),
    (re.compile(r"\{[A-Za-z][\w:+-]*\}`"), "a role"),
    (re.compile(r"^\([\w:.-]+\)=\s*$", re.M), "a label"),
    (re.compile(r"^\+\+\+", re.M), "a cell break"),
    (re.compile(r"\{\{|\}\}"), "a substitution"),
    (re.compile(r"^:[\w-]+:( |$)", re.M), "a directive's option"),
    (re.compile(r"\$\$\s*\([\w:-]+\)\s*$", re.M), "an equation's label"),
)


class Converter:
    """Converts the text of one page.

    Args:
        index: The whole book's titles, labels and numbers.
        docname: The page, such as `book/foundations/tensors`.

    Example:
        `Converter(index, docname).blocks(text, first_line=10)` returns plain Markdown.
    """

    def __init__(self, index: BookIndex, docname: str) -> None:
        self.index, self.docname = index, docname
        self.file = f"{docname}.md"
        self._entries = _bibliography(index)
        self._directives: dict[str, Callable[[Fenced], str]] = {
            **{name: self._admonition for name in (*ADMONITIONS, "admonition")},
            "bibliography": self._bibliography,
            "chapter-card": self._card,
            "exercise": self._exercise,
            "figure": self._figure,
            "glossary": self._glossary,
            "grid": self._grid,
            "grid-item-card": self._grid_card,
            "list-table": self._list_table,
            "literalinclude": self._include,
            "math": self._math_directive,
            "raw": self._raw,
            "reflect": self._reflect,
            "table": self._table,
        }
        self._roles: dict[str, Callable[[str], str]] = {
            "abbr": _abbr,
            "cite:p": lambda keys: f"({self._cite(keys, '; ', '{authors}, {year}')})",
            "cite:t": lambda keys: self._cite(keys, ", ", "{authors} ({year})"),
            "doc": self._doc,
            "eq": self._numbered_reference,
            "kbd": lambda keys: f"<kbd>{html.escape(keys)}</kbd>",
            "math": lambda formula: f"${formula}$",
            "numref": self._numbered_reference,
            "ref": self._reference,
            "term": self._term,
        }

    def blocks(self, text: str, first_line: int = 1) -> str:
        """Convert blocks of Markdown: paragraphs, lists, directives and so on.

        Args:
            text: The Markdown.
            first_line: The line of the file on which `text` begins, for error messages.
        """
        lines = text.splitlines()
        out: list[str] = []
        done = 0
        for token in book_index.block_parser().parse(text + "\n"):
            if token.map is None or token.map[0] < done:
                continue
            start, end = token.map[0], _end_without_blanks(lines, token.map)
            new = self._block(token, lines[start:end], first_line + start)
            if new is not None:
                out += lines[done:start] + _reindent(new, lines[start], token)
                done = end
        return "\n".join(out + lines[done:]).strip("\n")

    def inline(self, text: str, line: int = 1) -> str:
        """Convert what stands inside a paragraph: roles and links. Code and maths stay."""
        out: list[str] = []
        place = 0
        while place < len(text):
            role = ROLE.match(text, place)
            link = LINK.match(text, place)
            if role:
                content, place = _code_span(text, role.end())
                out.append(self._role(role[1], content, line + text.count("\n", 0, role.start())))
            elif link:
                out.append(self._link(link, out, line + text.count("\n", 0, place)))
                place = link.end()
            elif text.startswith(("{{", "[^"), place):
                self._fail(line, f"{text[place : place + 20]!r} is not allowed in a chapter")
            else:
                end = _skip(text, place)
                out.append(text[place:end])
                place = end
        return "".join(out)

    def directive(self, block: Fenced, line: int) -> str:
        """What becomes of one directive.

        Raises:
            MystError: The directive is not among those that a chapter may use.
        """
        convert = self._directives.get(block.name)
        if convert is None:
            allowed = ", ".join(sorted([*self._directives, "code-cell"]))
            remedy = " (a code cell must not stand inside anything)" * (block.name == "code-cell")
            self._fail(line, f"unknown directive {{{block.name}}}{remedy}; allowed: {allowed}")
        try:
            return convert(block)
        except (KeyError, ValueError, OSError) as error:
            raise MystError(f"{self.file}:{line}: {{{block.name}}}: {error}") from error

    def figure_note(self, options: dict[str, Any], line: int) -> str:
        """The caption and the description of a figure that a code cell draws."""
        mystnb = options.get("mystnb") or {}
        figure, alt = mystnb.get("figure") or {}, (mystnb.get("image") or {}).get("alt")
        parts = []
        if figure.get("caption"):
            label = self.index.labels.get(str(figure.get("name") or ""), Label("", ""))
            caption = self.inline(str(figure["caption"]).strip(), line)
            parts.append(_caption(label, caption))
        if alt:
            parts.append(f"*What it shows:* {str(alt).strip()}")
        return "\n\n".join(parts)

    # Blocks

    def _block(self, token: Token, lines: list[str], line: int) -> str | None:
        """What replaces a block; None leaves it to the blocks inside it."""
        kind = token.type
        if kind in UNSUPPORTED:
            self._fail(line, f"{UNSUPPORTED[kind]} is not allowed in a chapter")
        name = book_index.directive_name(token)
        if name is not None:
            return self.directive(self._read(token, line), line)
        if kind in ("front_matter", "myst_line_comment", "myst_block_break"):
            return ""
        if kind == "myst_target":
            return f'<a id="{make_id(token.content.strip())}"></a>\n\n'
        if kind in ("math_block", "math_block_label", "amsmath"):
            return self._display_math(token.content, token.info)
        if kind == "table_open":
            return "\n".join(self.inline(row, line + i) for i, row in enumerate(lines))
        if kind == "inline":
            return self.inline("\n".join(lines), line)
        return None

    def _read(self, token: Token, line: int) -> Fenced:
        try:
            return book_index.read_directive(token, line)
        except MystError as error:
            raise MystError(f"{self.file}: {error}") from error

    def _display_math(self, formula: str, label: str = "") -> str:
        tag = anchor = ""
        if label:
            known = self.index.labels[label]
            tag = f" \\tag{{{known.number}}}"
            anchor = f'<a id="{known.anchor}"></a>\n\n'
        return f"{anchor}$$\n{formula.strip()}{tag}\n$$"

    def _math_directive(self, block: Fenced) -> str:
        formula = "\n".join(filter(None, [block.argument, block.body]))
        return self._display_math(formula, str(block.options.get("label") or ""))

    def _admonition(self, block: Fenced) -> str:
        title = self.inline(block.argument, block.line) or ADMONITIONS.get(block.name, "Note")
        body = self.blocks(block.body, block.line)
        if "dropdown" in str(block.options.get("class") or "").split():
            return _details(self._html(title), body)
        if block.name in ADMONITIONS and block.argument:  # its first line is part of its text
            title, body = ADMONITIONS[block.name], f"{title}\n{body}".strip()
        return _quote(f"**{title}**\n\n{body}")

    def _exercise(self, block: Fenced) -> str:
        label = self.index.labels[str(block.options["label"])]
        title = self.inline(block.argument, block.line)
        heading = f"### Exercise {label.number}" + (f": {title}" if title else "")
        body = self.blocks(block.body, block.line)
        return f'<a id="{label.anchor}"></a>\n\n{heading}\n\n{body}'

    def _reflect(self, block: Fenced) -> str:
        question, choices = book_index.parse_reflect(block.body)
        parts = [self.blocks(question, block.line)]
        for right, choice, why in choices:
            verdict = "**Right.** " if right else "**Not quite.** "
            summary = self._html(self.inline(choice, block.line))
            parts.append(_details(summary, verdict + self.blocks(why, block.line)))
        return "\n\n".join(parts)

    def _card(self, block: Fenced) -> str:
        option = {key: self.inline(str(value)) for key, value in block.options.items()}
        rows = [("The question", option["question"]), ("You build", option["build"])]
        rows.append(("You need", self._needs(str(block.options["needs"]))))
        if "difficulty" in option:
            rows.append(("Difficulty", f"{option['difficulty']} of 5"))
        title = self.inline(self.index.titles[self.docname])
        rows.append(("On the site", f"[{title}]({self.index.page_url(self.docname)})"))
        table = "\n".join(f"| **{name}** | {_cell(text)} |" for name, text in rows)
        body = self.blocks(block.body, block.line)
        lead = "" if body.lower().startswith("at the end") else "At the end you can\n\n"
        return f"| | |\n|---|---|\n{table}\n\n{lead}{body}".rstrip()

    def _needs(self, needs: str) -> str:
        found = [
            (name.strip(), self.index.resolve(name.strip(), self.docname))
            for name in needs.split(",")
        ]
        return ", ".join(
            self._doc(f"/{page}") if page else self.inline(name) for name, page in found
        )

    def _include(self, block: Fenced) -> str:
        from sphinx.directives.code import LiteralInclude, LiteralIncludeReader

        known = LiteralInclude.option_spec
        unknown = sorted(set(block.options) - set(known))
        if unknown:
            raise ValueError(f"unknown options {unknown}; allowed: {sorted(known)}")
        options = {key: known[key](value) for key, value in block.options.items()}
        path = self._path(block.argument)
        reader = LiteralIncludeReader(
            str(self.index.root / path), options, SimpleNamespace(source_encoding="utf-8")
        )
        code, _ = reader.read()
        place = f"{path}, `{options['pyobject']}`" if "pyobject" in options else path
        link = f"{self.index.repository}/blob/{self.index.branch}/{path}"
        fence = "`" * max(3, _longest_ticks(code) + 1)
        language = options.get("language", "python")
        return f"{fence}{language}\n{code.rstrip()}\n{fence}\n\n*From [{place}]({link}).*"

    def _figure(self, block: Fenced) -> str:
        alt = str(block.options.get("alt") or "")
        if not alt:
            raise ValueError("a figure needs :alt: text that says what one would see")
        label = self.index.labels.get(str(block.options.get("name") or ""), Label("", ""))
        image = f"![{alt}]({self.index.raw_url(self._path(block.argument))})"
        caption = self.blocks(block.body, block.line)
        return f"{image}\n\n{_caption(label, caption)}" if caption else image

    def _table(self, block: Fenced) -> str:
        label = self.index.labels.get(str(block.options.get("name") or ""), Label("", ""))
        body = self.blocks(block.body, block.line)
        title = self.inline(block.argument, block.line)
        return f"{_caption(label, title)}\n\n{body}" if title else body

    def _list_table(self, block: Fenced) -> str:
        rows = _list_rows(block.body)
        if not rows:
            raise ValueError("a list-table is a list of rows, each a list of cells")
        cells = [[_cell(self.inline(cell, block.line)) for cell in row] for row in rows]
        if not int(block.options.get("header-rows") or 0):
            cells.insert(0, [""] * len(cells[0]))
        cells.insert(1, ["---"] * len(cells[0]))
        body = "\n".join("| " + " | ".join(row) + " |" for row in cells)
        return self._table(Fenced("table", block.argument, block.options, body, block.line))

    def _raw(self, block: Fenced) -> str:
        if block.argument.strip() != "html":
            raise ValueError(f"only raw html is allowed, got {block.argument!r}")
        title = self.inline(self.index.titles[self.docname])
        return f"*(Drawn on the site: [{title}]({self.index.page_url(self.docname)}).)*"

    def _grid(self, block: Fenced) -> str:
        return self.blocks(block.body, block.line)

    def _grid_card(self, block: Fenced) -> str:
        title = self.inline(block.argument, block.line)
        link = str(block.options.get("link") or "")
        if link:
            page = self.index.resolve(link, self.docname)
            title = f"[{title}]({self.index.page_url(page) if page else link})"
        body = self.blocks(re.sub(r"(?m)^(\^{3,}|\+{3,})$", "", block.body), block.line)
        return _quote(f"**{title}**\n\n{body}" if title else body)

    def _glossary(self, block: Fenced) -> str:
        entries = book_index.glossary_entries(block.body)
        text = [f"**{', '.join(terms)}**: {self.inline(what)}" for terms, what in entries]
        return "\n\n".join(text)

    def _bibliography(self, block: Fenced) -> str:
        return f"*(The list is on [the site]({self.index.page_url(self.docname)}).)*"

    # Roles and links

    def _role(self, name: str, content: str, line: int) -> str:
        convert = self._roles.get(name)
        if convert is None:
            self._fail(line, f"unknown role {{{name}}}; allowed: {', '.join(sorted(self._roles))}")
        try:
            return convert(" ".join(content.split()))
        except KeyError as error:
            self._fail(line, f"{{{name}}}`{content}`: nothing in the book is called {error}")

    def _doc(self, content: str) -> str:
        title, target = _explicit(content)
        page = self.index.resolve(target, self.docname)
        if page is None:
            raise KeyError(target)
        return f"[{title or self._title(page)}]({self.index.page_url(page)})"

    def _title(self, page: str) -> str:
        return Converter(self.index, page).inline(self.index.titles[page])

    def _reference(self, content: str) -> str:
        title, target = _explicit(content)
        label = self.index.labels[target]
        if not title and label.kind == "exercise":
            return self._numbered_reference(content)
        title = title or self.inline(label.title)
        return f"[{title}]({self.index.page_url(label.docname, label.anchor)})"

    def _numbered_reference(self, content: str) -> str:
        title, target = _explicit(content)
        label = self.index.labels[target]
        if not label.number:
            raise KeyError(f"{target} (with a number)")
        if title:
            text = title.replace("%s", label.number).replace("{number}", label.number)
            text = text.replace("{name}", self.inline(label.title))
        else:
            text = book_index.NUMBER_FORMAT[label.kind].format(label.number)
        return f"[{text}]({self.index.page_url(label.docname, label.anchor)})"

    def _term(self, content: str) -> str:
        title, target = _explicit(content)
        anchor = self.index.terms[target.lower()]
        return f"[{title or target}]({self.index.page_url(self.index.pages['glossary'], anchor)})"

    def _cite(self, keys: str, joiner: str, form: str) -> str:
        url = self.index.page_url(self.index.pages["bibliography"])
        parts = []
        for key in keys.split(","):
            entry = self._entries[key.strip()]
            text = form.format(authors=_authors(entry), year=entry.fields.get("year", "n.d."))
            parts.append(f"[{text}]({url})")
        return joiner.join(parts)

    def _link(self, link: re.Match[str], before: list[str], line: int) -> str:
        """A link or an image: what points into the book points at the site or the repository."""
        target, rest = link[1], link[2]
        if re.match(r"[a-z]+:", target):
            return link[0]
        opening = "".join(before)[::-1].partition("[")
        empty, image = opening[0] == "", opening[2].startswith("!")
        path, _, anchor = target.partition("#")
        if image:
            return f"]({self.index.raw_url(self._path(path))}{rest})"
        label = self.index.labels.get(anchor) if not path else None
        page = label.docname if label else self.index.resolve(path, self.docname)
        if page is None:
            self._fail(line, f"the link {target!r} leads to nothing in the book")
        title = (self.inline(label.title) if label else self._title(page)) if empty else ""
        url = self.index.page_url(page, label.anchor if label else anchor)
        return f"{title}]({url}{rest})"

    # Helpers that need the page

    def _path(self, target: str) -> str:
        """The path in the repository of a file that the chapter names."""
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self.docname), target))
        path = target.lstrip("/") if target.startswith("/") else path
        if not (self.index.root / path).is_file():
            raise ValueError(f"there is no file {path}")
        return path

    def _html(self, text: str) -> str:
        """Inline Markdown as HTML, for a place where Markdown is not read; maths stays as it is."""
        formulas = re.findall(r"\$[^$]+\$", text)
        for number, formula in enumerate(formulas):
            text = text.replace(formula, f"\ue000{number}\ue001", 1)
        rendered = MarkdownIt("commonmark").renderInline(text)
        for number, formula in enumerate(formulas):
            rendered = rendered.replace(f"\ue000{number}\ue001", html.escape(formula, quote=False))
        return rendered

    def _fail(self, line: int, message: str) -> Any:
        raise MystError(f"{self.file}:{line}: {message}")


def raw_myst(markdown: str) -> list[str]:
    """What is left of MyST in plain Markdown, outside code and maths.

    Example:
        >>> raw_myst("see {doc}`x`, but `{doc}` is code")
        ["a role: 'see {doc}`x`, but  is code'"]
    """
    text = _without_code(markdown)
    found = []
    for pattern, what in RAW_MYST:
        for match in pattern.finditer(text):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            found.append(f"{what}: {text[start : end if end >= 0 else None].strip()!r}")
    return found


def inline_pieces(text: str) -> Iterator[str]:
    """Split a paragraph into code spans, formulas, escaped characters and single characters."""
    place = 0
    while place < len(text):
        end = _skip(text, place)
        yield text[place:end]
        place = end


def _without_code(markdown: str) -> str:
    """The text without fenced code, code spans and maths."""
    lines = markdown.splitlines()
    for token in MarkdownIt("commonmark").parse(markdown):
        is_directive = token.type == "fence" and token.info.strip().startswith("{")
        if token.type in ("fence", "code_block") and token.map and not is_directive:
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    text = re.sub(r"(?<![`}])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", "\n".join(lines), flags=re.S)
    text = re.sub(r"\$\$.+?\$\$(?!\s*\()", "", text, flags=re.S)
    return re.sub(r"(?<![\\$])\$(?!\$)[^$\n]+\$", "", text)


def _bibliography(index: BookIndex) -> dict[str, Entry]:
    """The entries of the book's bibliography file, read once for each book."""
    path = index.root / "book" / "references.bib"
    cached = getattr(index, "_entries", None)
    if cached is None:
        data = parse_file(str(path)) if path.exists() else BibliographyData()
        cached = dict(data.entries.items())
        index._entries = cached  # type: ignore[attr-defined]
    return cached


def _authors(entry: Entry) -> str:
    people = entry.persons.get("author") or entry.persons.get("editor") or []
    names = [" ".join([*person.prelast_names, *person.last_names]) for person in people]
    names = [re.sub(r"[{}]", "", name) for name in names]
    if len(names) > 2:
        return f"{names[0]} et al."
    return " and ".join(names)


def _abbr(content: str) -> str:
    match = re.match(r"^(.*?)\s*\((.*)\)$", content)
    if not match:
        return content
    return f'<abbr title="{html.escape(match[2])}">{html.escape(match[1])}</abbr>'


def _explicit(content: str) -> tuple[str, str]:
    """Split `title <target>`; without a title, the title is empty."""
    match = EXPLICIT.match(content)
    return (match[1], match[2]) if match else ("", content)


def _code_span(text: str, start: int) -> tuple[str, int]:
    """The content of the code span that begins at `start`, and the place behind it."""
    ticks = len(text[start:]) - len(text[start:].lstrip("`"))
    end = re.compile(rf"(?<!`)`{{{ticks}}}(?!`)").search(text, start + ticks)
    if end is None:
        raise MystError(f"a role has no closing backtick: {text[start : start + 40]!r}")
    return text[start + ticks : end.start()], end.end()


def _skip(text: str, place: int) -> int:
    """Where the next piece of ordinary text, code span, formula or escaped character ends."""
    if text[place] == "\\":
        return min(place + 2, len(text))
    if text[place] == "`":
        ticks = len(text[place:]) - len(text[place:].lstrip("`"))
        end = re.compile(rf"(?<!`)`{{{ticks}}}(?!`)").search(text, place + ticks)
        return end.end() if end else place + ticks
    if text[place] == "$":
        formula = re.compile(r"\$\$.+?\$\$|\$(?:\\.|[^$\\])+\$", re.S).match(text, place)
        return formula.end() if formula else place + 1
    return place + 1


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip("\n").splitlines())


def _details(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _caption(label: Label, caption: str) -> str:
    number = book_index.NUMBER_FORMAT[label.kind].format(label.number) if label.number else ""
    return f"**{number}:** {caption}" if number else f"*{caption}*"


def _cell(text: str) -> str:
    """Text for one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def _longest_ticks(code: str) -> int:
    return max((len(run) for run in re.findall(r"`+", code)), default=0)


def _end_without_blanks(lines: list[str], span: list[int]) -> int:
    end = min(span[1], len(lines))
    while end > span[0] + 1 and not lines[end - 1].strip():
        end -= 1
    return end


def _reindent(new: str, first: str, token: Token) -> list[str]:
    """Put a converted block where the old one stood: behind a list marker, or in a quotation."""
    if token.type in ("inline", "table_open"):
        return new.splitlines()
    marker = re.match(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*", first)
    before = marker[0] if marker else ""
    after = re.sub(r"[^>]", " ", before)
    lines = [after + line if line or ">" in after else "" for line in new.splitlines() or [""]]
    return [before + lines[0][len(before) :], *lines[1:]]


def _list_rows(body: str) -> list[list[str]]:
    """The cells of a list of lists."""
    lines = body.splitlines()
    rows: list[list[str]] = []
    for token in book_index.block_parser().parse(body):
        if token.type == "list_item_open" and token.level == 1:
            rows.append([])
        elif token.type == "list_item_open" and token.level == 3 and token.map:
            text = "\n".join(lines[token.map[0] : token.map[1]])
            rows[-1].append(re.sub(r"^(\s*[-*+])+\s+", "", text).strip())
    return rows
