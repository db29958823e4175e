"""The drawings of where trained heads look, from what `looks.py` has stored."""

import json
from pathlib import Path
from typing import Any

from drawings.parts import (
    Panel,
    Point,
    arrow,
    box,
    circle,
    drawing,
    line,
    moving_data,
    note,
    number,
    panel,
    text,
)

STORED = Path(__file__).with_name("looks.json")  # written by looks.py
COLUMNS = {1: 1, 2: 2, 4: 2, 8: 4, 16: 4}  # of small pictures, by the number of heads
SHARP = 80  # percent on one token
BACK = 3  # positions, in the contest of encodings
TRAINED = 16  # of them
STEP = 5.2  # pixels a position there
STRIP = 70  # pixels from one model to the next


def known(what: str) -> list[dict[str, Any]]:
    """Read what the chapters' models look at."""
    found: list[dict[str, Any]] = json.loads(STORED.read_text(encoding="utf-8"))[what]
    return found


def arc(start: Point, end: Point, high: float, role: str, width: float) -> str:
    """Draw an arc over a line of tokens, as thick as a weight."""
    (x, y), (to, _) = start, end
    way = f"M{number(x)} {number(y)}Q{number((x + to) / 2)} {number(y - 2 * high)} {number(to)} "
    return line(f"{way}{number(y)}", role, width=width)


# Many heads -----------------------------------------------------------------------------------


@drawing
def where_heads_look() -> list[Panel]:
    """Where the last of six tokens looks in four trained models, as arcs as thick as the weights.

    Each head has a small picture. One head spreads its weight over the four tokens before; 34
    percent of the answers are right. Of two heads one spreads its weight over the tokens one and
    two back, the other over those three and four back: 56 percent. Of four heads each has one thick
    arc, to the token one, two, three or four back, and all answers are right. Of sixteen heads six
    have one thick arc, ten spread their weight again, and 89 percent are right.
    """
    return [looking(one) for one in known("heads") if one["heads"] != 8]


@moving_data("where-heads-look")
def heads() -> dict[str, Any]:
    """Give the models, and how their heads are laid out."""
    return {"models": known("heads"), "columns": COLUMNS, "sharp": SHARP}


def looking(model: dict[str, Any]) -> Panel:
    """Draw the heads of one model."""
    count = model["heads"]
    columns = COLUMNS[count]
    wide = 340 / columns
    step = (wide - 24) / 5
    tall = 2 * step + 42
    pieces = [
        head(weights, wide * (i % columns) + 12, 30 + tall * (i // columns), step)
        for i, weights in enumerate(model["weights"])
    ]
    title = f"{count} head{'s' * (count > 1)}: {model['right']} % right"
    return panel(340, 34 + tall * -(-count // columns), pieces, title=title)


def head(weights: list[float], x: float, y: float, step: float) -> list[str]:
    """Draw where the last token looks with one head; the arcs are 2 steps high."""
    base, last = y + 2 * step + 8, len(weights) - 1
    most = max(range(last), key=lambda i: weights[i])
    role = "query" if weights[most] >= SHARP else "muted"
    said = f"{last - most} back" if weights[most] >= SHARP else "spread"
    ends = [(x + step * i, base) for i in range(last + 1)]
    arcs = [
        arc(ends[last], ends[i], 0.4 * step * (last - i), role, 0.6 + 0.07 * weights[i])
        for i in range(last)
        if weights[i] >= 3
    ]
    dots = [circle(*end, 2.5, "token", "full") for end in ends[:last]]
    return [*arcs, *dots, circle(*ends[last], 3.5, "query", "full"),
            note(x + 2.5 * step, base + 17, said, role)]  # fmt: skip


# Four encodings -------------------------------------------------------------------------------


@drawing
def three_back() -> list[Panel]:
    """A line of 64 positions for each of four models, and arcs from one query to what it looks at.

    The models were trained on the first 16 positions, to name the symbol three back. The query at
    12, inside, looks three back with a learned table, with a sinusoidal one and with rotary
    positions; with ALiBi at all that is near. The query at 24, outside, still looks three back with
    rotary positions. With the two tables its arcs go mostly to other places, and with ALiBi to all
    that is near, as before.
    """
    return [strips(12, "Query at 12: as in training"), strips(24, "Query at 24: further out")]


@moving_data("three-back")
def schemes() -> dict[str, Any]:
    """Give where the four models look, from every position."""
    return {"schemes": known("schemes"), "back": BACK, "trained": TRAINED, "step": STEP}


def strips(query: int, title: str) -> Panel:
    """Draw where a query looks, in all models."""
    models = known("schemes")
    rows = [strip(model, query, 30 + STRIP * i) for i, model in enumerate(models)]
    low = 30 + STRIP * len(models)
    return panel(
        340,
        low + 16,
        rows,
        note(0, low + 6, "0", anchor="start"),
        note(place(TRAINED), low + 6, "16: never trained", anchor="start"),
        note(340, low + 6, "63", anchor="end"),
        title=title,
    )


def place(position: float) -> float:
    """Give the pixel of a position."""
    return 6 + STEP * position


def strip(model: dict[str, Any], query: int, y: float) -> list[str]:
    """Draw where a query looks, in one model."""
    base, right = y + 60, model["right"][query - BACK]
    arcs = [
        arc((place(query), base), (place(key), base), min(30, 5 + 1.7 * (query - key)), "query",
            0.6 + 0.07 * weight)
        for key, weight in model["looks"][query]
        if key != query
    ]  # fmt: skip
    return [
        box(0, y + 18, place(TRAINED - 0.5), 48, "muted", kind="plain", radius=0),
        text(0, y + 8, model["name"], face="bold", anchor="start", size=13),
        note(340, y + 8, f"{right} % right", anchor="end"),
        arrow((0, base + 0.5), (340, base + 0.5), head=False),
        arcs,
        circle(place(query - BACK), base, 4.5, "value", "join"),
        circle(place(query), base, 3.5, "query", "full"),
    ]
