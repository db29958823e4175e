"""The drawings of the part Transformer."""

from drawings.parts import (
    Panel,
    arrow,
    box,
    bracket,
    cells,
    column,
    drawing,
    join,
    line,
    note,
    panel,
    text,
)

RAW = (1.0, 3.0, 3.0, 9.0)  # a token's vector


@drawing
def normalisation_and_mlp() -> list[Panel]:
    """Two pictures.

    The norm takes one vector, drawn as four bars of 1, 3, 3 and 9. First the mean, 4, is taken
    away, so that the bars stand below and above zero; then they are divided by their deviation, 3,
    and are small: −1, −0.3, −0.3 and 1.7. The MLP takes four cells, makes sixteen of them,
    bends each by GELU, and makes four again: narrow, wide, narrow.
    """
    return [norm(), mlp()]


def norm() -> Panel:
    """Draw the two steps of the norm."""
    mean = sum(RAW) / 4
    spread = (sum((v - mean) ** 2 for v in RAW) / 4) ** 0.5
    return panel(
        340,
        214,
        bars(0, 19, RAW, "a vector"),
        arrow((81, 112), (102, 112)),
        bars(107, 19, tuple(v - mean for v in RAW), "minus its mean"),
        arrow((188, 112), (209, 112)),
        bars(215, 31, tuple((v - mean) / spread for v in RAW), "over its deviation"),
        title="The norm: one vector, its own size",
    )


def mlp() -> Panel:
    """Draw the MLP."""
    wide = [0.3, 0.9, 0.1, 0.6, 0.8, 0.2, 0.5, 0.05, 0.7, 0.4, 0.95, 0.15, 0.35, 0.75, 0.1, 0.55]
    bent = [max(0.0, v - 0.45) * 1.7 for v in wide]
    return panel(
        340,
        214,
        widen(54, 118),
        widen(286, 222),
        column(36, 86, [0.8, 0.3, 0.6, 0.1], "token", 18),
        column(118, 34, wide, "value", (28, 11)),
        arrow((150, 122), (190, 122)),
        text(170, 108, "GELU", "value", size=13),
        column(194, 34, bent, "value", (28, 11)),
        column(286, 86, [0.2, 0.7, 0.4, 0.9], "token", 18),
        text(45, 72, "d", face="italic"),
        text(295, 72, "d", face="italic"),
        note(45, 176, "in"),
        note(295, 176, "out"),
        title="The MLP: wide, bent, narrow",
    )


def bars(x: float, pitch: float, values: tuple[float, ...], name: str) -> list[str]:
    """Draw a vector as bars on a line at zero, `pitch` pixels from one to the next."""
    zero, unit = 132, 9.0
    drawn = [arrow((x, zero), (x + 4 * pitch, zero), head=False)]
    for i, value in enumerate(values):
        middle, top = x + pitch * (i + 0.5), zero - unit * max(value, 0)
        drawn.append(box(middle - 8, top, 16, unit * abs(value), "norm", kind="full", radius=1))
        y = zero + (12 if value >= 0 else -10)
        drawn.append(text(middle, y, f"{round(value, 1):g}".replace("-", "−"), "norm", size=12.5))
    return [*drawn, text(x + 2 * pitch, 200, name, size=13)]


def widen(x: float, to: float) -> str:
    """Draw the matrix between a column of four cells and one of sixteen."""
    path = f"M{x} 86L{to} 34V210L{x} 158z"
    return line(path, "value", "plain")


@drawing
def block() -> list[Panel]:
    """A block in its two orders.

    Pre-norm: the stream runs straight from top to bottom. To its right, a norm and attention
    read from it, and what they make is added to it; then a norm and the MLP do the same.
    Nothing stands in the stream but the two additions. Post-norm: the same parts, but each norm
    stands in the stream itself, after the addition, so that everything that passes goes through
    it.
    """
    return [
        panel(
            340,
            330,
            stream_line(328),
            branch(44, "attention", "query", True),
            branch(184, "MLP", "value", True),
            title="Pre-norm: the stream runs free",
        ),
        panel(
            340,
            330,
            stream_line(328),
            branch(38, "attention", "query", False),
            branch(178, "MLP", "value", False),
            title="Post-norm: every norm in the way",
        ),
    ]


def stream_line(bottom: float) -> list[str]:
    """Draw the residual stream."""
    return [
        arrow((70, 30), (70, bottom), role="token", kind="thick"),
        note(58, 38, "x", "token", anchor="end"),
    ]


def branch(y: float, name: str, role: str, first: bool) -> list[str]:
    """Draw one branch: what reads the stream and adds to it, its norm first or last."""
    if first:
        return [
            arrow((70, y + 12), (130, y + 12), role="token"),
            box(130, y, 84, 26, "norm", "norm"),
            arrow((214, y + 12), (258, y + 12), (258, y + 46), role="norm"),
            box(206, y + 46, 104, 34, role, name),
            arrow((258, y + 80), (258, y + 106), (81, y + 106), role=role),
            join(70, y + 106, role=role, radius=10),
        ]
    return [
        arrow((70, y + 12), (258, y + 12), (258, y + 30), role="token"),
        box(206, y + 30, 104, 34, role, name),
        arrow((258, y + 64), (258, y + 84), (81, y + 84), role=role),
        join(70, y + 84, role=role, radius=10),
        box(28, y + 104, 84, 26, "norm", "norm"),
    ]


IN = {"feed": {2: "1"}, "the": {0: "1"}, "cat": {1: "1"}, "fish": {1: "1"}}
FOUND, MADE = {"the": {3: ".1"}, "cat": {3: ".9"}}, {"cat": {4: ".9"}}


@drawing
def block_adds() -> list[Panel]:
    """Four small tables with a row for each token of "feed the cat fish".

    What comes in marks "the" as an article, "cat" and "fish" as nouns and "feed" as a verb, in the
    colour of the tokens; the columns "after" and "def" are empty. Attention adds two numbers, both
    in the column "after": 0.9 for "cat" and 0.1 for "the". The MLP adds a single one: 0.9 for
    "cat", in the column "def". What leaves is all of them, each in the colour of who wrote it, and
    the rows of "cat" and "fish" now differ.
    """
    writers = [(IN, "token"), (FOUND, "query"), (MADE, "value")]
    return [
        panel(
            340,
            158,
            written_table(36, [writers[0]], "comes in", labels=True),
            written_table(194, [writers[1]], "attention adds"),
        ),
        panel(
            340,
            158,
            written_table(36, [writers[2]], "the MLP adds", labels=True),
            written_table(194, writers, "leaves"),
        ),
    ]


Written = dict[str, dict[int, str]]


def written_table(
    x: float, writers: list[tuple[Written, str]], name: str, labels: bool = False
) -> list[str]:
    """Draw four rows of five cells, empty but for what somebody wrote, in the writer's colour."""
    wide, tall, top = 29, 25, 50
    drawn = [text(x, 11, name, face="bold", anchor="start")]
    heads = ("art", "n", "v", "after", "def")
    drawn += [note(x + wide * (j + 0.5), 36, head) for j, head in enumerate(heads)]
    for i, word in enumerate(IN):
        y = top + tall * i
        drawn += [text(x - 4, y + tall / 2, word, anchor="end", size=13)] if labels else []
        drawn.append(cells(x, y, [[None] * 5], "muted", (wide, tall)))
        for numbers, role in writers:
            for j, value in numbers.get(word, {}).items():
                drawn.append(cells(x + wide * j, y, [[value]], role, (wide, tall)))
    return drawn


WRITERS = (
    ("token", "token"),
    ("position", "position"),
    ("attention 1", "query"),
    ("MLP 1", "value"),
    ("attention 2", "key"),
    ("MLP 2", "norm"),
)


@drawing
def stream() -> list[Panel]:
    """The residual stream as a band that runs from top to bottom and grows wider.

    The token writes the first strand, its position the second; then attention 1, MLP 1,
    attention 2 and MLP 2 each read what has come so far and add a strand of their own in their
    own colour. No strand ends: at the bottom the output reads all six of them.
    """
    strands, names = [], []
    left, width, gap = 24, 17, 46
    for i, (name, role) in enumerate(WRITERS):
        x, y = left + width * i, 8 + gap * i
        middle = x + width / 2
        path = f"M{220} {y + 13}H{middle + 14}Q{middle} {y + 13} {middle} {y + 27}V292"
        strands.append(line(path, role, width=width - 3))
        names.append(box(220, y, 116, 26, role, name))
    reads = [
        arrow((left + width * i + 2, 8 + gap * i - 9), (278, 8 + gap * i - 9), (278, 8 + gap * i))
        for i in range(2, 6)
    ]
    return [
        panel(
            340,
            346,
            strands,
            reads,
            names,
            note(200, 83, "reads"),
            bracket(left, 294, width * 6, side="below"),
            arrow((left + width * 3, 300), (left + width * 3, 312)),
            box(left + 5, 314, width * 6 - 10, 28, "ink", "output"),
            note(142, 328, "reads the sum of all", anchor="start"),
        )
    ]


@drawing
def gpt() -> list[Panel]:
    """The whole model from top to bottom, with the shape of what flows beside each step.

    Ids, of shape B by T, become vectors of shape B by T by d in the embedding, to which
    positions are added. They pass through N blocks, each with attention and then an MLP, as
    drawn before, and a last norm, and keep that shape. The output compares each with the V rows of
    the token table, the same table as at the top, and gives logits of shape B by T by V: one
    score for every token, at every position.
    """

    def shape(y: float, words: str, begins: float = 141) -> str:
        leader = line(f"M{begins} {y}H250", width=0.75)
        return leader + text(254, y, words, "muted", size=13.5, face="mono", anchor="start")

    tied = arrow((40, 80), (14, 80), (14, 404), (40, 404), role="token", kind="dotted", head=False)
    return [
        panel(
            340,
            452,
            text(136, 12, "ids", "token", face="italic", size=16),
            shape(12, "(B, T)", 156),
            arrow((136, 24), (136, 62)),
            tied,
            box(40, 62, 192, 36, "token", "token embedding"),
            arrow((136, 98), (136, 120)),
            box(56, 120, 160, 28, "position", "+ position"),
            shape(162, "(B, T, d)"),
            [box(52 - 6 * i, 190 - 6 * i, 192, 110, "muted", kind="box") for i in (0, 1, 2)],
            arrow((136, 148), (136, 196)),
            box(56, 196, 160, 28, "query", "attention"),
            arrow((136, 224), (136, 246)),
            box(56, 246, 160, 28, "value", "MLP"),
            arrow((136, 274), (136, 326)),
            note(254, 212, "a block,", anchor="start"),
            note(254, 228, "as before", anchor="start"),
            text(254, 252, "× N", anchor="start"),
            shape(312, "(B, T, d)"),
            box(40, 326, 192, 28, "norm", "norm"),
            arrow((136, 354), (136, 382)),
            shape(367, "(B, T, d)"),
            box(40, 382, 192, 44, "token", "output", "the same table again"),
            arrow((136, 426), (136, 450)),
            shape(440, "(B, T, V)"),
            text(126, 440, "logits", "token", face="italic", size=16, anchor="end"),
        )
    ]
