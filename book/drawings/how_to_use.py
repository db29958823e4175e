"""The drawing of the page on how to use the book."""

from drawings.parts import Panel, arrow, box, drawing, note, panel, text

# of a chapter: what stands there, how high it is drawn, its colour and shape, what it is for
PARTS = [
    ("Card", 30, "muted", "box", "the question, and what it needs"),
    ("Predict", 30, "query", "box", "choose before you see the answer"),
    ("Cells", 44, "token", "box", "run, edit, run again"),
    ("Deeper", 24, "muted", "dashed", "folded: nothing after it needs it"),
    ("Exercises", 44, "value", "box", "write, predict, find the mistake"),
    ("Reflect", 30, "query", "box", "each choice is explained"),
    ("Recap", 24, "muted", "box", "the page in five lines"),
]
GAP = 8


@drawing
def how_to_use() -> list[Panel]:
    """Two pictures.

    The first is a chapter from top to bottom, a column of seven boxes with a remark beside each.
    Card: the question, and what it needs. Predict: choose before you see the answer. Cells: run,
    edit, run again. Deeper, with a dashed frame: folded, nothing after it needs it. Exercises:
    write, predict, find the mistake. Reflect: each choice is explained. Recap: the page in five
    lines. The second is an exercise. Three dots are filled in, Check is pressed, and a report says
    what holds, with a tick, and what does not, with a cross. From the cross an arrow leads back to
    the code, past one hint after the other. From a report of ticks alone an arrow leads down: the
    part is kept, and your GPT is one part larger.
    """
    return [chapter(), exercise()]


def chapter() -> Panel:
    """Draw the parts of a chapter."""
    y, pieces = 30, []
    for name, height, role, kind, words in PARTS:
        pieces += [box(0, y, 104, height, role, name, kind=kind, radius=4)]
        pieces += [note(116, y + height / 2, words, anchor="start")]
        y += height + GAP
    return panel(340, y, pieces, title="1  A chapter")


def exercise() -> Panel:
    """Draw an exercise, from the stub to a part of the reader's GPT."""
    code = [text(12, 66, "def softmax(x):", size=12.5, anchor="start", face="mono")]
    code += [text(40, 86, "...", "value", size=12.5, anchor="start", face="mono")]
    says = [
        text(222, 58 + 22 * i, words, role, size=12.5, anchor="start")
        for i, (words, role) in enumerate([("✓ adds up to 1", "token"), ("✗ large x", "loss")])
    ]
    return panel(
        340,
        282,
        box(0, 46, 140, 56, "muted", kind="frame", radius=4),
        code,
        arrow((144, 74), (206, 74)),
        note(175, 62, "Check"),
        box(210, 40, 130, 62, "muted", kind="frame", radius=4),
        says,
        arrow((275, 106), (275, 152), (70, 152), (70, 106), role="loss"),
        note(172, 140, "a hint, and another", "loss"),
        arrow((316, 106), (316, 196), (182, 196), (182, 222), role="token"),
        note(306, 184, "all ✓: the part is kept", "token", anchor="end"),
        box(112, 226, 140, 44, "token", "your GPT", "one part larger"),
        title="2  An exercise",
    )
