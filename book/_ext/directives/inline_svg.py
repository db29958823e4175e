"""An SVG drawn by matplotlib, made part of a page: it follows light and dark, and has words.

The chapters draw with matplotlib as SVG in a fixed palette on opaque paper, which any notebook
shows as it is. Here the palette becomes CSS variables that the style sheet redefines for the dark
scheme, the ids are made unique, and the alternative text is added. Nothing but the standard
library is needed: the same file runs in the reader's browser, for the figures drawn there.
"""

import re
from operator import mul, sub
from xml.etree import ElementTree as ET

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

# The light colours of the palette, in which figures are drawn, and the variable each follows.
PALETTE = {
    "#1c2733": "--tt-ink",
    "#fffdf9": "--tt-paper",
    "#5b6672": "--tt-muted",
    "#d9dee3": "--tt-grid",
    "#0f6b6b": "--tt-accent-1",
    "#a8480f": "--tt-accent-2",
    "#6d4b8d": "--tt-accent-3",
    "#4f6f1f": "--tt-accent-4",
    "#10151c": "--tt-on-light",
}
# A heat map is paper mixed with an accent; the page mixes those of its scheme in the same shares.
PAPER, MIXED = "#fffdf9", ("#0f6b6b", "#a8480f")
COLOUR = re.compile(r"#[0-9a-f]{6}\b", re.IGNORECASE)
THOUSANDTHS = re.compile(r"(\d\.\d\d)\d+")
PLACES = re.compile(
    r' (?:d|x|y|transform|points)="[^"]*"'
)  # a number that is written stays as it is
FAMILIES = re.compile(r"(font(?:-family)?:[^;\"']*?) '[^;\"]*sans-serif")
UNSEEN = re.compile(r"\n *(?:<g />)?(?=\n *<)|(?<=>)\n *(?=<)")  # empty groups, indentation
NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*\)"')
ID, REFERENCE = re.compile(r'(?<=<g) id="([^"]+)"'), re.compile(r"#([\w-]+)")
POINT = 4 / 3  # CSS pixels in a point


def inline_svg(source: str, alt: str, prefix: str) -> str:
    """Turn an SVG file into an element for an HTML page.

    Args:
        source: the text of the file.
        alt: what one would see, for a reader who does not.
        prefix: put before every id, so that two figures on a page never share one.

    Returns:
        The `<svg>` element: role `img`, the palette as CSS variables, as wide as drawn but never
        wider than the page.

    Raises:
        ValueError: if the file is not an SVG, or has neither a size nor a `viewBox`.
    """
    try:
        root = ET.fromstring(source)
    except ET.ParseError as error:
        raise ValueError(f"not an SVG: {error}") from error
    if root.tag != f"{{{SVG}}}svg":
        raise ValueError(f"not an SVG: the root element is {root.tag}")
    fit_to_page(root)
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    for element in root.iter():
        if element.tag == f"{{{SVG}}}image":
            element.attrib.pop("id", None)  # equal pictures have equal ids
        rename(element, prefix)
    root.set("id", prefix)
    root.set("role", "img")
    root.set("aria-label", " ".join(alt.split()))
    root.set("class", "tt-figure")
    ET.register_namespace("", SVG)
    ET.register_namespace("xlink", XLINK)  # embedded pictures: browsers know no other prefix
    return follow_scheme(lighter(ET.tostring(root, encoding="unicode")))


def fit_to_page(root: ET.Element) -> None:
    """Keep the drawn width as a wish and the proportions as a rule."""
    width, height = root.attrib.pop("width", ""), root.attrib.pop("height", "")
    if "viewBox" not in root.attrib:
        if not (width and height):
            raise ValueError("the SVG has neither a viewBox nor a width and a height")
        root.set("viewBox", f"0 0 {pixels(width):g} {pixels(height):g}")
    wish = pixels(width) if width else float(root.attrib["viewBox"].split()[2])
    root.set("style", f"width: {wish:.0f}px; max-width: 100%; height: auto")


def pixels(length: str) -> float:
    """Read a length in points or pixels."""
    number = float(re.sub(r"[a-z]+$", "", length.strip()))
    return number * POINT if length.strip().endswith("pt") else number


def rename(element: ET.Element, prefix: str) -> None:
    """Make an element's id, and its references to other elements, this figure's own."""
    for name, value in list(element.attrib.items()):
        if name == "id":
            element.set(name, f"{prefix}-{value}")
        elif name in ("href", f"{{{XLINK}}}href") and value.startswith("#"):
            del element.attrib[name]
            element.set("href", f"#{prefix}-{value[1:]}")
        elif "url(#" in value:
            element.set(name, value.replace("url(#", f"url(#{prefix}-"))
    if element.tag == f"{{{SVG}}}style" and element.text:
        # matplotlib writes one rule for every element; it must not reach the rest of the page
        element.text = re.sub(r"(^|\})\s*\*\s*\{", rf"\1#{prefix} * {{", element.text)


def lighter(svg: str) -> str:
    """Leave out what no eye sees.

    Thousandths of a pixel go, fonts that the page's own replace, turns by no angle, ids that
    nothing refers to, and then empty groups and indentation.
    """
    named = set(REFERENCE.findall(svg))
    svg = ID.sub(lambda match: match[0] if match[1] in named else "", NO_TURN.sub("", svg))
    svg = PLACES.sub(lambda match: THOUSANDTHS.sub(r"\1", match[0]), svg)
    return UNSEEN.sub("", FAMILIES.sub(r"\1 sans-serif", svg))


def follow_scheme(svg: str) -> str:
    """Replace each colour of the palette by its variable, and mixtures by mixtures of these."""
    return COLOUR.sub(lambda match: in_scheme(match[0].lower()), svg)


def in_scheme(colour: str) -> str:
    """A colour as CSS; the palette's follow the scheme, with the colour drawn as the fallback."""
    if colour in PALETTE:
        return f"var({PALETTE[colour]}, {colour})"
    paper = rgb(PAPER)
    gone = list(map(sub, rgb(colour), paper))
    for accent in MIXED:
        way = list(map(sub, rgb(accent), paper))
        share = sum(map(mul, gone, way)) / sum(map(mul, way, way))
        if 0 < share < 1 and all(abs(g - share * w) <= 1 for g, w in zip(gone, way, strict=True)):
            return f"color-mix(in srgb, {in_scheme(accent)} {share:.1%}, {in_scheme(PAPER)})"
    return colour


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a hexadecimal colour."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:], 16)
