"""The drawings of the part Foundations."""

from collections import Counter
from itertools import pairwise
from typing import Any

from drawings.parts import (
    Panel,
    arrow,
    box,
    cells,
    circle,
    drawing,
    join,
    moving_data,
    note,
    panel,
    text,
    vector,
)


@drawing
def tensors() -> list[Panel]:
    """Two pictures.

    In the first a matrix of two rows and three columns and a single row of three are added: the
    row is used for both rows of the matrix, its second copy drawn with dashes, for it is not
    stored. In the second A, a matrix of two by three, times B, one of three by four, is A @ B,
    which has two rows and four columns. The second row of A and the third column of B are marked,
    three cells each; in the second row and third column of A @ B lies the one number that is made
    of them.
    """
    return [broadcasting(), product()]


def broadcasting() -> Panel:
    """Draw a sum of a matrix and a row."""
    matrix = [[0.2, 0.5, 0.3], [0.6, 0.1, 0.4]]
    row = [0.8, 0.3, 0.6]
    total = [[(a + b) / 1.4 for a, b in zip(r, row, strict=True)] for r in matrix]
    return panel(
        340,
        186,
        cells(6, 62, matrix, "token", 28),
        text(48, 134, "(2, 3)", "token", face="mono"),
        text(107, 90, "+", size=20),
        vector(126, 62, row, "query", 28),
        vector(126, 90, [None] * 3, "query", 28),
        text(168, 134, "(3,)", "query", face="mono"),
        note(168, 46, "used for both rows"),
        text(226, 90, "=", size=20),
        cells(246, 62, total, "value", 28),
        text(288, 134, "(2, 3)", "value", face="mono"),
        note(170, 166, "a size that is missing, or 1, is repeated"),
        title="Broadcasting",
    )


def product() -> Panel:
    """Draw two factors and their product, a row and a column marked, and what they make."""
    left = [[0.15, 0.15, 0.15], [0.7, 0.7, 0.7]]
    right = [[0.15, 0.15, 0.7, 0.15]] * 3
    result = [[0.08] * 4, [0.08, 0.08, 1, 0.08]]
    return panel(
        340,
        190,
        cells(2, 72, left, "query", 24),
        text(92, 96, "×", size=20),
        cells(110, 60, right, "key", 24),
        text(224, 96, "=", size=20),
        cells(242, 72, result, "value", 24),
        [
            text(x, 45, name, role, face="mono", size=15) + text(x, 150, size, role, face="mono")
            for x, name, size, role in (
                (38, "A", "(2, 3)", "query"),
                (158, "B", "(3, 4)", "key"),
                (290, "A @ B", "(2, 4)", "value"),
            )
        ],
        note(170, 177, "a row meets a column: one number"),
        title="A product",
    )


@drawing
def autograd() -> list[Panel]:
    """A graph of three steps, drawn twice.

    Forward: a weight of 2 times an input of 3 is 6; the target 5 is taken away, 1 is left; its
    square is the loss, 1. Backward, along the same arrows turned round: the loss begins with a
    gradient of 1; the square multiplies it by twice what went in and hands on 2; the difference
    hands 2 to the product and minus 2 to the target; the product hands each factor 2 times the
    other one, so 6 to the weight and 4 to the input.
    """
    w, x, y = 2, 3, 5
    p = w * x
    e = p - y
    de = 2 * e
    values = {"w": w, "x": x, "y": y, "p": p, "e": e, "loss": e * e}
    gradients = {"w": de * x, "x": de * w, "y": -de, "p": de, "e": de, "loss": 1}
    return [
        graph({k: str(v) for k, v in values.items()}, "token", True, "1  Forward: values"),
        graph(
            {k: str(v).replace("-", "−") for k, v in gradients.items()},
            "gradient",
            False,
            "2  Back: gradients",
        ),
    ]


def graph(said: dict[str, str], role: str, forward: bool, title: str) -> Panel:
    """Draw loss = (w·x − y)² once, with a number at each wire."""
    wires = {
        "w": ((48, 72), (94, 104)),
        "x": ((48, 160), (94, 128)),
        "y": ((188, 182), (188, 132)),
        "p": ((118, 116), (172, 116)),
        "e": ((204, 116), (244, 116)),
        "loss": ((276, 116), (314, 116)),
    }
    places = {
        "w": (82, 76),
        "x": (82, 156),
        "y": (204, 160),
        "p": (145, 98),
        "e": (224, 98),
        "loss": (295, 98),
    }
    kind = "line" if forward else "dotted"
    drawn = [
        arrow(*(ends if forward else ends[::-1]), role=role if not forward else "muted", kind=kind)
        for ends in wires.values()
    ]
    numbers = [text(*places[name], said[name], role, face="mono", size=15) for name in wires]
    ink = "token" if forward else "muted"
    return panel(
        340,
        214,
        drawn,
        numbers,
        box(14, 46, 34, 30, ink, "w"),
        box(14, 156, 34, 30, ink, "x"),
        box(171, 182, 34, 30, ink, "y"),
        join(105, 116, "×", radius=14),
        join(188, 116, "−", radius=14),
        circle(260, 116, 14, kind="join"),
        text(260, 117, "( )²", size=13),
        text(326, 116, "L", "loss", face="italic", size=17),
        title=title,
    )


WORDS, MERGES = "the then the then hen", 3


@moving_data("tokenization")
def tokenization_data() -> dict[str, Any]:
    """Give the text, and how many merges are made."""
    return {"text": WORDS, "merges": MERGES}


@drawing
def tokenization() -> list[Panel]:
    """A tree that grows downwards, made from the text: the then the then hen.

    At the top stand the letters t, h, e and n. First h and e, the pair seen most often, become
    the token he. Then t and he become the, and last the and n become then, a single token for
    the whole word. Beside each merge stands its number and how often the pair was counted.
    """
    merges = learned(WORDS, MERGES)
    rows = [f"{count} times" for _, count in merges]
    level = {name: 118 + 60 * i for i, name in enumerate(("he", "the", "then"))}
    x = {"t": 40, "h": 100, "e": 160, "n": 220, "he": 130, "the": 85, "then": 150}

    def token(name: str, y: float) -> list[str]:
        width = 22 + 9 * len(name)
        left = x[name] - width / 2
        return [
            box(left, y - 15, width, 30, "token"),
            text(x[name], y, name, "token", face="mono", size=15),
        ]

    def branch(child: str, parent: str, top: float) -> str:
        bottom = level[parent] - 15
        return (
            arrow(
                (x[child], top + 15),
                (x[child], bottom - 12),
                (x[parent], bottom - 12),
                (x[parent], bottom),
                head=False,
            )
            if x[child] != x[parent]
            else ""
        )

    tree = [
        branch("h", "he", 64),
        branch("e", "he", 64),
        branch("t", "the", 64),
        branch("he", "the", level["he"]),
        branch("the", "then", level["the"]),
        branch("n", "then", 64),
    ]
    chips = [token(c, 64) for c in "then"]
    chips += [token(name, level[name]) for name in level]
    told = [
        note(250, level[name] - 8, f"merge {i + 1}", "token", anchor="start")
        + note(250, level[name] + 9, f"seen {rows[i]}", anchor="start")
        for i, name in enumerate(level)
    ]
    read = text(0, 14, WORDS, "muted", face="mono", anchor="start")
    letters = note(250, 64, "letters", anchor="start")
    return [panel(340, 256, read, tree, chips, told, letters)]


def learned(words: str, count: int) -> list[tuple[tuple[str, str], int]]:
    """Merge the most frequent pair inside the words, `count` times; give pairs and counts."""
    texts, found = [list(word) for word in words.split()], []
    for _ in range(count):
        (pair, seen) = Counter(pair for word in texts for pair in pairwise(word)).most_common(1)[0]
        found.append((pair, seen))
        for word in texts:
            for i in reversed(range(len(word) - 1)):
                if (word[i], word[i + 1]) == pair:
                    word[i : i + 2] = ["".join(pair)]
    return found
