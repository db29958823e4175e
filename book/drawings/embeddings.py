"""The drawings of the part Embeddings."""

import json
from collections.abc import Iterator
from math import cos, degrees, pi, sin
from pathlib import Path
from typing import Any

from drawings.parts import (
    Panel,
    Point,
    arrow,
    bracket,
    cells,
    circle,
    curve,
    drawing,
    join,
    line,
    moving_data,
    note,
    panel,
    text,
    vector,
)

TABLE = [
    [0.2, 0.7, 0.4, 0.9],
    [0.8, 0.1, 0.6, 0.3],
    [0.5, 0.5, 0.1, 0.7],
    [0.1, 0.9, 0.8, 0.2],
    [0.9, 0.3, 0.7, 0.6],
    [0.4, 0.6, 0.2, 0.1],
]
IDS = (4, 0, 4)
GRADIENTS = [[0.5, 0.2, 0.6, 0.3], [0.3, 0.7, 0.4, 0.2], [0.3, 0.5, 0.1, 0.6]]  # of their vectors
PLACES = (62, 122, 182)  # of the vectors
ROWS = [58 + 24 * token + 4 * i for i, token in enumerate(IDS)]  # where they come from


@drawing
def token_embeddings() -> list[Panel]:
    """Two pictures of one table with six rows of four cells.

    Looking up: the ids 4, 0 and 4 stand at the right side of the table's rows; each fetches a
    copy of its row, so that the first and the last of the three vectors are the same. Adding
    back: the gradients of the three vectors run the same way back. In the table of gradients
    row 0 receives one of them and row 4 the sum of two; the other four rows are empty.
    """
    return [look_up(), add_back()]


def look_up() -> Panel:
    """Draw the rows on their way out of the table."""
    ways = [
        curve((126, row), (165, row), (202, y), "token")
        for row, y in zip(ROWS, PLACES, strict=True)
    ]
    vectors = [vector(226, y - 12, TABLE[i], "token", 24) for i, y in zip(IDS, PLACES, strict=True)]
    return panel(
        340,
        226,
        row_numbers(),
        cells(28, 50, TABLE, "token", 24),
        ways,
        vectors,
        [
            text(213, y, str(i), "token", face="mono", size=15)
            for i, y in zip(IDS, PLACES, strict=True)
        ],
        text(76, 212, "table", size=13),
        text(274, 212, "three vectors", size=13),
        title="1  Look up: each id fetches its row",
    )


def add_back() -> Panel:
    """Draw the gradients on their way back, and what the table's gradient becomes."""
    added: list[list[float | None]] = [[None] * 4 for _ in TABLE]
    for token, row in zip(IDS, GRADIENTS, strict=True):
        added[token] = [(a or 0) + b for a, b in zip(added[token], row, strict=True)]
    ways = [
        curve((206, y), (170, row), (127, row), "gradient", "dotted")
        for row, y in zip(ROWS, PLACES, strict=True)
    ]
    return panel(
        340,
        226,
        row_numbers(),
        cells(28, 50, added, "gradient", 24),
        ways,
        [vector(226, y - 12, g, "gradient", 24) for g, y in zip(GRADIENTS, PLACES, strict=True)],
        [
            text(215, y, str(i), "gradient", face="mono", size=15)
            for i, y in zip(IDS, PLACES, strict=True)
        ],
        text(76, 212, "its gradient", size=13),
        text(274, 212, "their gradients", size=13),
        title="2  Add back: row 4 gets the sum of two",
    )


def row_numbers() -> list[str]:
    """Number the rows of the table."""
    return [text(16, 63 + 24 * i, str(i), "muted", face="mono") for i in range(len(TABLE))]


TRAINED = Path(__file__).with_name("word_vectors.json")  # written by word_vectors.py
COLOURS = {  # of the kinds of words
    "names": "token",
    "animals": "query",
    "foods": "value",
    "colours": "loss",
    "sizes": "key",
    "movements": "position",
}
SIDES = ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))  # of a dot
LETTER = 7.2  # pixels that a letter of a word is wide
PLACE = {"x": 150, "y": 168, "wide": 176, "high": 168}  # of the middle; pixels a unit


@drawing
def word_vectors() -> list[Panel]:
    """Twenty-four words in the plane, twice; each of six kinds of words has a colour.

    Before training the names, animals, foods, colours, sizes and movements lie mixed up in one
    cloud. After 2,000 steps of training the four words of a kind lie close together: names and
    animals side by side at the left, foods below them, colours and sizes at the right, movements
    above. Only the movement ran stands a little apart from walked, hopped and skipped, towards the
    sizes.
    """
    trained, labels = known(), labelled()
    return [
        plane(trained, trained["points"][0], labels[0], "1  Before training"),
        plane(trained, trained["points"][-1], labels[-1], "2  After 2,000 steps"),
    ]


@moving_data("word-vectors")
def words_in_training() -> dict[str, Any]:
    """Give where the words and their labels are at every step that was kept."""
    trained = known()
    roles = [COLOURS[kind] for kind in trained.pop("kinds")]
    return {**trained, "roles": roles, "labels": labelled(), "place": PLACE}


def known() -> dict[str, Any]:
    """Read what the training gave."""
    found: dict[str, Any] = json.loads(TRAINED.read_text(encoding="utf-8"))
    return found


def plane(trained: dict[str, Any], points: list[Point], labels: list[Point], title: str) -> Panel:
    """Draw every word: a dot where it stands, and the word beside it."""
    roles = [COLOURS[kind] for kind in trained["kinds"]]
    return panel(
        340,
        318,
        [circle(*dot(p), 2.5, role, "full") for p, role in zip(points, roles, strict=True)],
        [
            text(*label, word, role, size=12, face="mono")
            for label, word, role in zip(labels, trained["words"], roles, strict=True)
        ],
        title=title,
    )


def dot(point: Point) -> Point:
    """Give the place in the picture of a word with these two numbers."""
    return PLACE["x"] + PLACE["wide"] * point[0], PLACE["y"] - PLACE["high"] * point[1]


def labelled() -> list[list[Point]]:
    """Find the middle of each word's label, so that none lies on another, for every step.

    Where there is room, a label stays at the side of its dot where it was before.
    """
    trained, labels = known(), []
    sides = {word: (1, 0) for word in trained["words"]}
    for points in trained["points"]:
        dots = [dot(point) for point in points]
        taken = [(x - 2, y - 2, x + 2, y + 2) for x, y in dots]
        placed = []
        for word, (x, y) in zip(trained["words"], dots, strict=True):
            half = LETTER * len(word) / 2
            for side, dx, dy in around(half, sides[word]):
                middle = (round(x + dx), round(y + dy))
                label = (middle[0] - half, middle[1] - 6.5, middle[0] + half, middle[1] + 6.5)
                if inside(label) and not any(overlap(label, other) for other in taken):
                    sides[word] = side
                    break
            taken.append(label)
            placed.append(middle)
        labels.append(placed)
    return labels


def around(half: float, first: tuple[int, int]) -> Iterator[tuple[tuple[int, int], float, float]]:
    """Give sides of a dot, and the ways from it to a label's middle there, short ones first."""
    for away in range(0, 80, 3):
        for side in (first, *SIDES):
            yield side, side[0] * (half + 5 + away), side[1] * (10 + away)


def inside(label: tuple[float, ...]) -> bool:
    """Say whether a rectangle lies in the picture, below its title."""
    return label[0] >= 0 and label[2] <= 340 and label[1] >= 24 and label[3] <= 314


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Say whether two rectangles have a piece in common."""
    return all(one[i] < other[i + 2] and other[i] < one[i + 2] for i in (0, 1))


SPEEDS = (1.25, 0.35)  # of the clocks' hands, from one position to the next


def numbers(t: float) -> list[float]:
    """Give the two numbers of each hand, as shades: how far it points right, and how far up."""
    return [(1 + f(speed * t)) / 2 for speed in SPEEDS for f in (sin, cos)]


@drawing
def positional_encodings() -> list[Panel]:
    """Two pictures.

    In the first, every position from 0 to 4 has a column of two clocks with one hand each. The
    hand of the upper clock turns far from one position to the next, the lower one only a
    little. Each hand gives two numbers, so that under every column stands a row of four cells:
    the vector of the position. In the second, the words dog, bites and man each have a row of
    four cells for the token; the row of their position, 0, 1 or 2, is added, and the sums,
    which know both, go on.
    """
    return [clocks(), sums()]


def clocks() -> Panel:
    """Draw a column of clocks for every position, and the numbers of their hands."""
    drawn = []
    for i, speed in enumerate(SPEEDS):
        for t in range(5):
            x, y, angle = 106 + 50 * t, 76 + 48 * i, speed * t
            tip = (x + 15 * sin(angle), y - 15 * cos(angle))
            drawn += [
                circle(x, y, 18, "position"),
                arrow((x, y), tip, role="position", head=False),
                circle(x, y, 1.5, "position", "full"),
            ]
    rows = (("fast", 76), ("slow", 124), ("vector", 188))
    return panel(
        340,
        218,
        [text(106 + 50 * t, 44, str(t), "position", face="mono") for t in range(5)],
        text(66, 43, "position", size=13, anchor="end"),
        [text(66, y, name, "muted", size=13, anchor="end") for name, y in rows],
        drawn,
        note(206, 160, "each hand: two numbers"),
        [vector(86 + 50 * t, 178, numbers(t), "position", (10, 20)) for t in range(5)],
        title="1  A position is a set of clocks",
    )


def sums() -> Panel:
    """Draw three words, their positions, and the sums."""
    words = ("dog", "bites", "man")
    tokens = [[0.9, 0.1, 0.2, 0.5], [0.2, 0.8, 0.6, 0.1], [0.7, 0.3, 0.7, 0.3]]
    added = []
    for t, (word, row) in enumerate(zip(words, tokens, strict=True)):
        y = 66 + 46 * t
        place = numbers(t)
        total = [(a + b) / 2 for a, b in zip(row, place, strict=True)]
        added += [
            text(42, y + 10, word, "token", anchor="end", face="italic"),
            vector(50, y, row, "token"),
            text(142, y + 10, "+", size=17),
            vector(154, y, place, "position"),
            text(246, y + 10, "=", size=17),
            vector(258, y, total, "muted"),
        ]
    return panel(
        340,
        218,
        added,
        note(90, 48, "what", "token"),
        note(194, 48, "where", "position"),
        note(298, 48, "both"),
        note(194, 206, "the same word elsewhere gives another sum"),
        title="2  It is added to the token",
    )


WIDTH = 16  # columns of the table; the first four of its eight hands are drawn
HANDS = [10000 ** (-2 * i / WIDTH) for i in range(4)]  # how far each rotates from one to the next
START, SHIFT = 4, 3


@drawing
def shift_rotates() -> list[Panel]:
    """Four dials in a row, twice: at positions 4 and 7, and at positions 20 and 23.

    Each dial has a pale hand at the first position, a strong one three positions further, and the
    angle between them, filled. The four angles are 172, 54, 17 and 5 degrees. At 20 and 23 all
    eight hands point elsewhere, and the four angles are the same. Under each dial stand the two
    numbers of each hand.
    """
    return [shifted(START, SHIFT), shifted(START + 16, SHIFT)]


@moving_data("shift-rotates")
def shifts() -> dict[str, int]:
    """Give the width of the table, and where the first picture begins and how far it goes."""
    return {"width": WIDTH, "position": START, "shift": SHIFT}


def shifted(at: int, by: int) -> Panel:
    """Draw four hands at a position and again some positions further, and their numbers."""
    pieces = []
    for i, speed in enumerate(HANDS):
        x, y = 42.5 + 85 * i, 84
        before, after = speed * at, speed * (at + by)
        ends = [(x + 30 * sin(a), y - 30 * cos(a)) for a in (before, after)]
        (a, b), (c, d) = [(f"{u:.1f}", f"{v:.1f}") for u, v in ends]
        large = int(speed * by > pi)
        pieces += [
            circle(x, y, 34, "muted", "frame"),
            line(f"M{x} {y}L{a} {b}A30 30 0 {large} 1 {c} {d}z", "position", "plain"),
            arrow((x, y), ends[0]),
            arrow((x, y), ends[1], role="position"),
            note(x, 36, f"ω = {speed:.2g}"),
            note(x, 132, f"{degrees(speed * by):.0f}°", "position"),
        ]
        for row, (angle, role) in enumerate(((before, "muted"), (after, "position"))):
            pair = [f"{f(angle):.2f}".replace("-", "−") for f in (sin, cos)]
            for j, told in enumerate(pair):
                left, top = x - 40 + 40 * j, 162 + 42 * row
                pieces += [
                    cells(left, top, [[""]], role, (40, 22)),
                    text(left + 20, top + 11, told, role, size=11.5, face="mono"),
                ]
    return panel(
        340,
        230,
        pieces,
        note(0, 152, f"row {at}", anchor="start"),
        note(0, 194, f"row {at + by}: each pair rotated", "position", "start"),
        title=f"Position {at}, and {by} further",
    )


@drawing
def embedding_layer() -> list[Panel]:
    """Three tokens, the ids 7, 2 and 7, go from left to right.

    Each id fetches its row of the token table; rows one and three are the same. Each row is
    multiplied by the square root of d, or by one; then the row of its position, 0, 1 or 2, is
    added to it. The three sums are all different: they are what the transformer receives, a matrix
    with one row for each token and d columns.
    """
    ids = (7, 2, 7)
    table = {7: [0.8, 0.2, 0.6, 0.4], 2: [0.3, 0.9, 0.1, 0.7]}
    lines = []
    for t, token in enumerate(ids):
        y = 78 + 64 * t
        place = [(1 + f(s * (t + 0.4))) / 2 for s in (1.5, 0.6) for f in (sin, cos)]
        total = [(a + b) / 2 for a, b in zip(table[token], place, strict=True)]
        lines += [
            cells(0, y - 2, [[str(token)]], "token", 22),
            arrow((23, y + 9), (38, y + 9)),
            vector(40, y, table[token], "token", 18),
            arrow((114, y + 9), (124, y + 9), head=False),
            join(132, y + 9, "×", radius=8),
            note(140, y + 30, "times √d, or 1", anchor="end"),
            arrow((140, y + 9), (179, y + 9)),
            text(229, y - 27, str(t), "position", face="mono", size=13, anchor="start"),
            vector(152, y - 36, place, "position", 18),
            arrow((188, y - 16), (188, y)),
            join(188, y + 9),
            arrow((197, y + 9), (262, y + 9)),
            vector(266, y, total, "muted", 18),
        ]
    return [
        panel(
            340,
            260,
            lines,
            text(11, 20, "ids", "token", size=13),
            text(76, 20, "token rows", "token", size=13),
            text(188, 20, "position rows", "position", size=13),
            text(302, 20, "their sums", size=13),
            bracket(266, 228, 72, "(T, d)"),
        )
    ]
