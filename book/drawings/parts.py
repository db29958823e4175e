"""What every drawing is made of: boxes, cells, arrows, words, panels.

Each part is a function that gives a piece of SVG as text. Lengths are pixels of a phone's screen,
y grows downwards, and a `role` names a colour of `drawings.css` by what it stands for.

Example:
    >>> box(0, 0, 60, 24, "query", "q")[:64]
    '<rect class="d-query d-box" x="0" y="0" width="60" height="24" r'
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import exp, hypot
from typing import Any

ROLES = ["ink", "muted", "paper", "token", "position", "query", "key", "value", "norm", "loss"]
ROLES += ["gradient"]
WIDEST = 340  # what a phone shows without making it smaller
SMALLEST = 11.5  # pixels of a letter: more than 11 where a panel is a little smaller
PAGE = "page:"  # begins the address of a link until the page it stands on is known
Point = tuple[float, float]


# What a drawing is ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Panel:
    """One picture of a drawing.

    Args:
        width: in pixels, at most 340.
        height: in pixels.
        body: its SVG.
    """

    width: float
    height: float
    body: str


@dataclass(frozen=True)
class Drawing:
    """A drawing that pages name.

    Args:
        alt: what one would see.
        draw: makes its panels.
    """

    alt: str
    draw: Callable[..., list[Panel]]


DRAWINGS: dict[str, Drawing] = {}


def drawing(draw: Callable[..., list[Panel]]) -> Callable[..., list[Panel]]:
    """Enter a function among the drawings, under its name with hyphens.

    Its docstring says what one would see: it is the alternative text.
    """
    alt = " ".join((draw.__doc__ or "").split())
    DRAWINGS[draw.__name__.replace("_", "-")] = Drawing(alt, draw)
    return draw


Numbers = Callable[[], dict[str, Any]]
MOVING_DATA: dict[str, Numbers] = {}


def moving_data(name: str) -> Callable[[Numbers], Numbers]:
    """Enter a function that gives a figure that moves its numbers, as JSON can write them.

    Args:
        name: of the script in `_static/moving`, which finds them as `figure.data`.
    """

    def enter(give: Numbers) -> Numbers:
        MOVING_DATA[name] = give
        return give

    return enter


def panel(width: float, height: float, *pieces: Any, title: str = "") -> Panel:
    """Put pieces together, in the order in which they cover each other.

    Args:
        width: at most 340.
        height: of the whole, the title's 30 pixels included.
        pieces: SVG, or lists of it.
        title: written at the top, at the left.
    """
    if width > WIDEST:
        raise ValueError(f"a panel is at most {WIDEST} pixels wide, got {width}")
    head = [text(0, 11, title, face="bold", anchor="start")] if title else []
    return Panel(width, height, "".join(flat([*head, *pieces])))


def flat(pieces: Iterable[Any]) -> Iterable[str]:
    """Give the strings of nested lists."""
    for piece in pieces:
        yield from [piece] if isinstance(piece, str) else flat(piece)


def softmax(scores: Sequence[float]) -> list[float]:
    """Turn scores into the probabilities that a drawing shows."""
    powers = [exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


# Words ----------------------------------------------------------------------------------------

RAISED = re.compile(r"([_^])(?:\{([^}]*)\}|(\w))")


def text(
    x: float,
    y: float,
    words: str,
    role: str = "ink",
    *,
    size: float = 14,
    anchor: str = "middle",
    face: str = "",
) -> str:
    """Write words in the page's font, their middle at height `y`.

    Args:
        x: where they begin, end or have their middle, as `anchor` says.
        y: the middle of the small letters.
        words: `_2` and `^{-1}` are set lower and higher.
        role: their colour.
        size: of a letter.
        anchor: start, middle or end.
        face: "", bold, italic or mono.
    """
    start = element(
        "text",
        f"d-{role}" + (f" d-{face}" if face else ""),
        x=x,
        y=y + 0.32 * size,
        text_anchor="" if anchor == "start" else anchor,
        font_size="" if size == 14 else number(size),
    )
    return f"{start}{shifted(escape(words, quote=False), size)}</text>"


def shifted(words: str, size: float) -> str:
    """Set `_2` lower and `^2` higher."""
    small = number(max(SMALLEST, 0.75 * size))

    def span(match: re.Match[str]) -> str:
        way, back = (3, -3) if match[1] == "_" else (-5, 5)
        inner = f'<tspan dy="{way}" font-size="{small}">{match[2] or match[3]}</tspan>'
        return f'{inner}<tspan dy="{back}">\u200b</tspan>'

    return RAISED.sub(span, words)


def note(x: float, y: float, words: str, role: str = "muted", anchor: str = "middle") -> str:
    """Write a remark: smaller, and quiet unless it has a role."""
    return text(x, y, words, role, size=12.5, anchor=anchor)


# Shapes ---------------------------------------------------------------------------------------


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    role: str,
    name: str = "",
    remark: str = "",
    *,
    kind: str = "box",
    radius: float = 6,
) -> str:
    """Draw a box with its name, and a remark under the name.

    Args:
        x: its left edge.
        y: its upper edge.
        width: of the box.
        height: of the box.
        role: its colour.
        name: in the middle.
        remark: under the name.
        kind: box (tinted), frame (empty), dashed, or full (in the strong colour).
        radius: of its corners.
    """
    shape = element(
        "rect", f"d-{role} d-{kind}", x=x, y=y, width=width, height=height, rx=radius, close=True
    )
    middle, centre = x + width / 2, y + height / 2
    inside = "paper" if kind == "full" else "ink" if role in ("muted", "paper") else role
    words = [text(middle, centre - 8 * bool(remark), name, inside, face="bold")] if name else []
    words += [note(middle, centre + 9, remark)] if remark else []
    return shape + " ".join(words)  # two words to who listens, not one


def cells(
    x: float,
    y: float,
    rows: Sequence[Sequence[Any]],
    role: str,
    size: float | Point = 20,
    *,
    face: str = "mono",
) -> str:
    """Draw a matrix: a number from 0 to 1 is a shade, a text is written, None is an empty cell.

    Args:
        x: its left edge.
        y: its upper edge.
        rows: what each cell holds.
        role: its colour.
        size: of a cell, or its width and height.
        face: of the texts.
    """
    width, height = size if isinstance(size, tuple) else (size, size)
    pieces = []
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            left, top = x + j * width, y + i * height
            pieces.append(cell(left, top, width, height, value, role))
            if isinstance(value, str) and value:
                centre = top + height / 2
                pieces.append(text(left + width / 2, centre, value, role, size=13, face=face))
    return "".join(pieces)


def cell(x: float, y: float, width: float, height: float, value: Any, role: str) -> str:
    """Draw one cell."""
    kind = "d-empty" if value is None else "d-tint" if isinstance(value, str) else "d-shade"
    place = {"x": x + 0.75, "y": y + 0.75, "width": width - 1.5, "height": height - 1.5, "rx": 2}
    if kind == "d-shade":
        place["fill-opacity"] = round(0.14 + 0.8 * min(max(value, 0), 1), 2)
    return element("rect", f"d-{role} {kind}", **place, close=True)


def vector(x: float, y: float, values: Sequence[Any], role: str, size: float | Point = 20) -> str:
    """Draw a row of cells."""
    return cells(x, y, [values], role, size)


def column(x: float, y: float, values: Sequence[Any], role: str, size: float | Point = 20) -> str:
    """Draw a column of cells."""
    return cells(x, y, [[value] for value in values], role, size)


def circle(x: float, y: float, radius: float, role: str = "muted", kind: str = "box") -> str:
    """Draw a circle."""
    return element("circle", f"d-{role} d-{kind}", cx=x, cy=y, r=radius, close=True)


def join(x: float, y: float, sign: str = "+", role: str = "muted", radius: float = 9) -> str:
    """Draw the small circle in which two things are added or multiplied."""
    arm = radius * (0.55 if sign == "+" else 0.4)
    left, top, across = number(x - arm), number(y - arm), number(2 * arm)
    strokes = {
        "+": f"M{left} {number(y)}h{across}M{number(x)} {top}v{across}",
        "×": f"M{left} {top}l{across} {across}m0 -{across}l-{across} {across}",
        "−": f"M{left} {number(y)}h{across}",
    }
    return circle(x, y, radius, role, "join") + line(strokes[sign], role)


def bracket(x: float, y: float, length: float, words: str = "", side: str = "below") -> str:
    """Draw a bracket along a row of things, and say what they are.

    Args:
        x: where it begins.
        y: where the things end.
        length: of the row.
        words: beside the bracket.
        side: below, above, left or right of the things.
    """
    tick = {"below": -5, "above": 5, "left": 5, "right": -5}[side]
    if side in ("below", "above"):
        path = f"M{number(x)} {number(y + tick)}v{-tick}h{number(length)}v{tick}"
        where = text(x + length / 2, y - 2.2 * tick, words, size=12.5) if words else ""
    else:
        path = f"M{number(x + tick)} {number(y)}h{-tick}v{number(length)}h{tick}"
        anchor = "end" if side == "left" else "start"
        where = text(x - 1.4 * tick, y + length / 2, words, size=12.5, anchor=anchor)
    return line(path) + (where if words else "")


# Arrows ---------------------------------------------------------------------------------------


def arrow(*points: Point, role: str = "muted", kind: str = "line", head: bool = True) -> str:
    """Draw an arrow through points; its corners are round.

    Args:
        points: at least two.
        role: its colour.
        kind: line, thick or dotted (what flows back).
        head: whether it has one.
    """
    end = short_of(points[-2], points[-1], 6) if head else points[-1]
    way = [*points[:-1], end]
    path = f"M{at(way[0])}"
    for before, corner, after in zip(way, way[1:], way[2:], strict=False):
        near, far = short_of(before, corner, 7), short_of(after, corner, 7)
        path += f"L{at(near)}Q{at(corner)} {at(far)}"
    shaft = line(f"{path}L{at(end)}", role, kind)
    return shaft + (arrow_head(points[-2], points[-1], role) if head else "")


def curve(
    start: Point,
    bend: Point,
    end: Point,
    role: str = "muted",
    kind: str = "line",
    head: bool = True,
) -> str:
    """Draw a bent arrow; `bend` is the point that pulls it aside."""
    tip = short_of(bend, end, 6) if head else end
    shaft = line(f"M{at(start)}Q{at(bend)} {at(tip)}", role, kind)
    return shaft + (arrow_head(bend, end, role) if head else "")


def line(path: str, role: str = "muted", kind: str = "line", width: float = 0) -> str:
    """Draw any line, or with the kind `plain` any patch.

    Args:
        path: as SVG writes it.
        role: its colour.
        kind: line, thick, dotted, dashed, plain or head.
        width: of the line, where it is not the usual one.
    """
    style = f"stroke-width: {number(width)}px; stroke-linecap: butt" if width else ""
    return element("path", f"d-{role} d-{kind}", d=path, style=style, close=True)


def arrow_head(start: Point, tip: Point, role: str) -> str:
    """Draw the one arrow head, at `tip`, coming from `start`."""
    x, y = unit(start, tip)
    back = (tip[0] - 8 * x, tip[1] - 8 * y)
    wings = [(back[0] - 4 * y, back[1] + 4 * x), (back[0] + 4 * y, back[1] - 4 * x)]
    return line(f"M{at(tip)}L{at(wings[0])}L{at(wings[1])}z", role, "head")


def short_of(start: Point, end: Point, length: float) -> Point:
    """Give the point that lies `length` before the end of a line, or half the line."""
    x, y = unit(start, end)
    length = min(length, hypot(end[0] - start[0], end[1] - start[1]) / 2)
    return end[0] - length * x, end[1] - length * y


def unit(start: Point, end: Point) -> Point:
    """Give the direction from one point to another."""
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    return (end[0] - start[0]) / length, (end[1] - start[1]) / length


# Links ----------------------------------------------------------------------------------------


def link(page: str, words: str, *pieces: Any) -> str:
    """Make a link to a page of the book out of pieces of a drawing.

    Args:
        page: the document's name below `book`, `foundations/tensors`.
        words: what a screen reader says of it.
        pieces: SVG, or lists of it.
    """
    return (
        f'<a class="d-link" href="{PAGE}{page}" aria-label="{escape(words)}">'
        f"{''.join(flat(pieces))}</a>"
    )


# SVG ------------------------------------------------------------------------------------------


def element(tag: str, kind: str, *, close: bool = False, **attributes: Any) -> str:
    """Write a tag; attributes without a value are left out."""
    written = "".join(
        f' {name.replace("_", "-")}="{value if isinstance(value, str) else number(value)}"'
        for name, value in attributes.items()
        if value != ""
    )
    return f'<{tag} class="{kind}"{written}{"/" * close}>'


def number(value: float) -> str:
    """Write a length with at most two decimals.

    >>> number(3.0), number(2.345678)
    ('3', '2.35')
    """
    return f"{round(value, 2) + 0:g}" if abs(value) < 1000 else f"{value:.0f}"


def at(point: Point) -> str:
    """Write a point."""
    return f"{number(point[0])} {number(point[1])}"
