"""HTML elements as nodes: what the book's own directives are built of."""

from collections.abc import Callable, Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


class element(nodes.General, nodes.TextElement):
    """An HTML element named by `tag`, with attributes in `html`; other formats show its content."""


def build(
    tag: str, *children: nodes.Node, classes: str = "", text: str = "", **html: str
) -> element:
    """Make an element with its children, or with plain text."""
    return element("", text, *children, tag=tag, html=html, classes=classes.split())


def has_class(name: str) -> Callable[[nodes.Element], bool]:
    """Make a function that recognises the elements of a class."""
    return lambda node: name in node["classes"]


def with_class(node: nodes.Element, name: str) -> Iterator[nodes.Element]:
    """Find the elements of a class."""
    return (e for e in node.findall(nodes.Element) if name in e.get("classes", ()))


def visit_html(translator: Any, node: element) -> None:
    """Open an element's tag."""
    translator.body.append(translator.starttag(node, node["tag"], "", **node["html"]))


def depart_html(translator: Any, node: element) -> None:
    """Close an element's tag."""
    translator.body.append(f"</{node['tag']}>\n" if node["tag"] not in ("span",) else "</span>")


def pass_through(translator: Any, node: element) -> None:
    """Show only the content, in formats other than HTML."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    quiet = (pass_through, pass_through)
    app.add_node(
        element, html=(visit_html, depart_html), latex=quiet, text=quiet, man=quiet, texinfo=quiet
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
