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
    line,
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


LINE = ["0", "1", "2", "3", "4", "5"]


@drawing
def view_in_memory() -> list[Panel]:
    """The same six numbers on a line in memory, 0 to 5, read twice.

    In the first picture a table of two rows and three columns reads them: one step down the table
    is three steps on the line, one step to the right is one. In the second a table of three rows
    and two columns reads the same line: a step down is one step, a step to the right is three, so
    it holds the transpose, 0 and 3, then 1 and 4, then 2 and 5. The line has not changed.
    """
    return [
        reading(2, 3, (3, 1), "token", "x: strides 3 and 1"),
        reading(3, 2, (1, 3), "key", "its transpose: strides 1 and 3"),
    ]


def reading(rows: int, columns: int, strides: tuple[int, int], role: str, title: str) -> Panel:
    """Draw the line of six numbers, the steps from the first, and the table that reads it."""
    down, right = strides
    size, top, x0 = 34, 68, 4

    steps = []
    for step, words, role_of, edge, bend in (
        (right, "right", "query", top, top - 26),
        (down, "down", "value", top + size, top + size + 26),
    ):
        here, there = x0 + size / 2, x0 + size * (step + 0.5)
        path = ((here, edge), (here, bend), (there, bend), (there, edge))
        steps.append(arrow(*path, role=role_of))
        steps.append(note(there + 8, bend, f"{words} {step}", role_of, anchor="start"))
    table = [[LINE[down * i + right * j] for j in range(columns)] for i in range(rows)]
    left, cell = 252, 26
    return panel(
        340,
        148,
        vector(x0, top, LINE, "muted", size),
        steps,
        cells(left, 85 - rows * cell / 2, table, role, (cell, cell)),
        title=title,
    )


READERS = {"Ada": (2, 1, -2, 0), "Ben": (1, 2, -1, 1), "Cleo": (-2, 0, 2, 1)}
THINGS = ("adventures", "jokes", "ghosts", "romance")


@drawing
def tastes() -> list[Panel]:
    """Two pictures of bars: Ada's tastes against Ben's, and Ada's against Cleo's.

    Each of the four things, adventures, jokes, ghosts and romance, has a bar for either reader, to
    the right for what is liked and to the left for what is not, and their product beside it. Ada's
    and Ben's bars go the same way: 2, 2, 2 and 0 make a dot product of 6. Ada's and Cleo's
    bars for adventures and ghosts go opposite ways: minus 4, 0, minus 4 and 0 make minus 8.
    """
    return [agreeing("Ada", "Ben"), agreeing("Ada", "Cleo")]


def agreeing(one: str, other: str) -> Panel:
    """Draw two readers' tastes as bars, their products, and the sum of these."""
    zero, unit, top = 164, 32, 62
    products = [a * b for a, b in zip(READERS[one], READERS[other], strict=True)]

    def bar(value: int, y: float, role: str) -> str:
        left, width = zero + min(value, 0) * unit, abs(value) * unit
        if not value:
            return circle(zero, y + 5.5, 2.5, role, "full")
        return box(left, y, width, 11, role, kind="full", radius=2)

    def sign(value: int) -> str:
        return str(value).replace("-", "−")

    rows = []
    for i, (thing, found) in enumerate(zip(THINGS, products, strict=True)):
        y = top + 34 * i
        role = "value" if found > 0 else "loss" if found else "muted"
        rows += [
            note(88, y + 12, thing, "ink", anchor="end"),
            bar(READERS[one][i], y, "token"),
            bar(READERS[other][i], y + 13, "query"),
            text(308, y + 12, sign(found), role, face="mono", size=15, anchor="end"),
        ]
    end = top + 34 * len(THINGS)
    total = sum(products)
    return panel(
        340,
        end + 28,
        note(zero - 8, 42, one, "token", anchor="end"),
        note(zero + 8, 42, other, "query", anchor="start"),
        note(322, 42, "product", anchor="end"),
        line(f"M{zero} {top - 6}V{end - 4}"),
        rows,
        line(f"M268 {end - 2}H316", "ink"),
        text(308, end + 14, sign(total), "value" if total > 0 else "loss",
             face="bold", size=16, anchor="end"),
        note(260, end + 14, f"{one} · {other}", "ink", anchor="end"),
        title=f"{one} and {other}",
    )  # fmt: skip


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


BEFORE_LAST, LAST, LETTERS_OUT = "flh", "aio", "tnsdu"  # some of the 38; f and a are read
ON = (True, False, True, False)  # which of the four in the middle are above zero
LEARNED = (0.971, 0.0, 0.0, 0.0, 0.0)  # after fa, by the page's network with a kink


@drawing
def first_network() -> list[Panel]:
    """Two pictures of a network: letters at the left, four circles, five letters at the right.

    Forward: at the left stand two groups of three letters, for the letter before last and for the
    last one; f is lit in the one, a in the other. Lines run from both to four circles in the
    middle, each marked with a bent line, flat at first and then rising. Two of the circles are
    above zero and lit: lines go on from them to t, n, s, d and u, which all get about the same
    small probability, 0.03. The other two are grey, and nothing goes on from them. The letter that
    came is t, and the surprise is about 3.6. Back: dotted lines run the other way, through the two
    lit circles only. They carry the forecast minus what came, -0.97 from t, by far the most, and
    0.03 from each of the others, and every weight on the way takes a step against it. After
    training a long bar stands beside t, 0.97, and none beside the others.
    """
    return [
        network([1 / 38] * 5, True, "1  Forward: f and a are read, t came"),
        network(list(LEARNED), False, "2  Back: what was missing"),
    ]


def network(forecast: list[float], forward: bool, title: str) -> Panel:
    """Draw the network with f and a lit, its values going forward or its gradients going back."""
    came = LETTERS_OUT.index("t")
    left = [(36, y) for y in (64, 92, 120, 164, 192, 220)]
    middle = [(110, 88 + 36 * i) for i in range(len(ON))]
    right = [(184, 70 + 36 * i) for i in range(5)]
    read = [(*BEFORE_LAST, *LAST).index(c) for c in "fa"]
    open_to = [m for m, on in zip(middle, ON, strict=True) if on]
    role, kind = ("token", "line") if forward else ("gradient", "dotted")

    def wire(start: tuple[float, float], end: tuple[float, float], strong: bool) -> str:
        ends = ((start[0] + 12, start[1]), (end[0] - 14, end[1]))
        ink = role if forward or strong else "muted"
        return arrow(*(ends if forward else ends[::-1]), role=ink, kind=kind, head=strong)

    wires = [wire(m, r, False) for m in open_to for r in (right if forward else right[1:])]
    wires += [wire(left[i], m, True) for i in read for m in (middle if forward else open_to)]
    wires += [] if forward else [wire(m, right[came], True) for m in open_to]
    circles = [circle(*at, 9, "token", "full" if i in read else "box") for i, at in enumerate(left)]
    for (x, y), on in zip(middle, ON, strict=True):
        colour = "token" if on else "muted"
        circles += [circle(x, y, 12, colour), line(f"M{x - 7} {y + 3}h7l6 -8", colour, "line", 2)]
    circles += [
        circle(*at, 9, "loss" if i == came else "token", "box") for i, at in enumerate(right)
    ]
    letters = [
        text(12, y, c, "token", face="mono", size=15)
        for c, (_, y) in zip((*BEFORE_LAST, *LAST), left, strict=True)
    ]
    told = []
    for i, (c, p, (_, y)) in enumerate(zip(LETTERS_OUT, forecast, right, strict=True)):
        colour = "loss" if i == came else "token"
        told.append(text(208, y, c, colour, face="mono", size=15))
        if forward:
            told.append(line(f"M224 {y}h{round(84 * p, 1)}", colour, "line", 9))
            told.append(note(238, y, f"{p:.2f}", colour, anchor="start"))
        else:
            push = 1 / 38 - (i == came)
            told.append(note(224, y, f"{push:+.2f}".replace("-", "−"), "gradient", anchor="start"))
            told.append(line(f"M268 {y}h{round(60 * p, 1)}", colour, "line", 9))
    heads = ["forecast"] if forward else ["gradient", "learned"]
    places = [(240, heads[0])] if forward else [(244, heads[0]), (298, heads[1])]
    foot = "surprise at t: about 3.6" if forward else "each weight: one step against its gradient"
    return panel(
        340,
        276,
        wires,
        circles,
        letters,
        told,
        [note(x, 44, words) for x, words in places],
        text(170, 258, foot, "loss" if forward else "gradient", size=13),
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
