"""Formulas as MathML, which browsers and screen readers know: a page needs no script for them.

Temml (`book/_runtime/temml`, version 0.13.5) turns TeX into MathML when a page is written. It is
JavaScript; QuickJS, from the package index, runs it. Notebooks keep the TeX: Jupyter has MathJax.
"""

import html
import json
from functools import cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import quickjs
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from ..addresses import ROOT

logger = logging.getLogger(__name__)

TEMML = ROOT / "book" / "_runtime" / "temml" / "temml.min.js"
# as JSON: QuickJS cannot hand over a string that was put together from pieces
RENDER = """(tex, display) => JSON.stringify(
    temml.renderToString(tex, {displayMode: display, throwOnError: true}))"""
SCRIPTS = {"msub", "msup", "msubsup", "munder", "mover", "munderover"}  # base first, scripts after
COUNTED = SCRIPTS | {"mfrac", "mroot"}  # have so many parts and no more
ACCENT = "math-depth"  # in the style that Temml gives an accent
OVERLINE, MACRON, APPLY = "\u203e", "\u00af", "\u2061"
TIGHT, SIGNS, BARS = ("\u2026", APPLY), ("\u2212", "+", "\u00b1"), ("\u2016", "|")
OPENING = ("(", "[", "{", "\u27e8")
THIN, KERN = "0.1667em", "margin-left:-0.1667em;"


class WrongFormula(ValueError):
    """TeX that Temml does not understand."""


@cache
def temml() -> Any:
    """Load Temml, once."""
    context = quickjs.Context()
    context.eval(TEMML.read_text(encoding="utf-8"))
    return context.eval(RENDER)


@cache
def mathml(tex: str, display: bool = False) -> str:
    r"""Typeset a formula.

    Args:
        tex: TeX, as between dollar signs.
        display: whether it stands on lines of its own.

    Returns:
        A `<math>` element.

    Raises:
        WrongFormula: Temml does not understand it; the message says why and where.

    >>> mathml(r"\sqrt{d}")
    '<math><msqrt><mi>d</mi></msqrt></math>'
    """
    try:
        markup = json.loads(temml()(tex, display))
    except quickjs.JSException as error:
        raise WrongFormula(str(error).partition("\n")[0]) from None
    root = ET.fromstring(markup)
    space(root)
    return ET.tostring(root, encoding="unicode", short_empty_elements=False)


def space(element: ET.Element, in_script: bool = False) -> None:
    """Space a formula as TeX does where browsers and Temml do otherwise."""
    for before, child in zip([None, *element], list(element), strict=False):
        if child.tag == "mo":
            space_operator(child, before, in_script)
        elif child.tag == "mover" and child[1].text == OVERLINE:
            child[1].text = MACRON  # as narrow as the letter
        if element.tag not in COUNTED and follows_closely(child, before):
            element.insert(list(element).index(child), ET.Element("mspace", width=THIN))
    for place, child in enumerate(element):
        space(child, in_script or (element.tag in SCRIPTS and place > 0))
    drop_kerns(element)


def space_operator(operator: ET.Element, before: ET.Element | None, in_script: bool) -> None:
    """Space one operator: not at all in a script, after a bracket or where it is only written."""
    if ACCENT in operator.get("style", ""):
        return
    is_sign = operator.text in SIGNS and before is not None and before.text in OPENING
    if in_script or is_sign or operator.text in TIGHT:
        operator.set("lspace", "0")
        operator.set("rspace", "0")
    if operator.text in BARS and "stretchy" not in operator.attrib:
        operator.set("stretchy", "false")


def follows_closely(element: ET.Element, before: ET.Element | None) -> bool:
    """Find a function's name that TeX would keep apart from what comes before it."""
    return names_function(element) and before is not None and before.tag not in ("mo", "mspace")


def names_function(element: ET.Element) -> bool:
    """Recognise `ln` and its like, which Temml lets an invisible operator follow."""
    return element.tag == "mrow" and len(element) > 1 and element[1].text == APPLY


def drop_kerns(row: ET.Element) -> None:
    r"""Drop a `\!` before a bracket: it takes back a space that only TeX puts there."""
    for kern, after in pairwise(list(row)):
        if kern.get("style") == KERN and len(after) and after[0].get("fence"):
            row.remove(kern)


# A page's formulas ----------------------------------------------------------------------------


def write_inline(writer: Any, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(writer.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    writer.body.append(typeset(node, display=False) + "</span>")
    raise nodes.SkipNode


def write_display(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, with its number if it has one."""
    writer.body.append(writer.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        writer.body.append(f'<span class="eqno">({get_node_equation_number(writer, node)})')
        writer.add_permalink_ref(node, "Link to this equation")
        writer.body.append("</span>")
    writer.body.append(f'<div class="tt-formula">{typeset(node, display=True)}</div></div>\n')
    raise nodes.SkipNode


def typeset(node: nodes.Element, display: bool) -> str:
    """Return a node's formula as MathML; an invalid one is a warning, and stays TeX."""
    tex = node.astext().strip()
    try:
        described = f'<math alttext="{html.escape(" ".join(tex.split()))}"'
        return mathml(tex, display).replace("<math", described, 1)
    except WrongFormula as error:
        logger.warning("cannot typeset %r: %s", node.astext(), error, location=node)
        return html.escape(node.astext(), quote=False)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
