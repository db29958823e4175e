"""What is left of MyST in a text that should be plain Markdown."""

import re

from markdown_it import MarkdownIt

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


def raw_myst(markdown: str) -> list[str]:
    """What is left of MyST in plain Markdown, outside code and maths.

    Example:
        >>> raw_myst("see {doc}`x`") + raw_myst("`{doc}` is code")
        ["a role: 'see {doc}`x`'"]
    """
    text = without_code(markdown)
    found = []
    for pattern, what in RAW_MYST:
        for match in pattern.finditer(text):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.end())
            found.append(f"{what}: {text[start : end if end >= 0 else None].strip()!r}")
    return found


def without_code(markdown: str) -> str:
    """The text without fenced code, code spans and maths."""
    lines = markdown.splitlines()
    for token in MarkdownIt("commonmark").parse(markdown):
        is_directive = token.type == "fence" and token.info.strip().startswith("{")
        if token.type in ("fence", "code_block") and token.map and not is_directive:
            lines[token.map[0] : token.map[1]] = [""] * (token.map[1] - token.map[0])
    text = re.sub(r"(?<![`}])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", "\n".join(lines), flags=re.S)
    text = re.sub(r"\$\$.+?\$\$(?!\s*\()", "", text, flags=re.S)
    return re.sub(r"(?<![\\$])\$(?!\$)[^$\n]+\$", "", text)
