"""The drawing of the chapter "Your GPT"."""

from drawings.parts import Panel, arrow, box, drawing, note, panel, text

PARTS = ("norm", "heads", "mlp", "loss", "step")
AT_FAULT = 2  # the row whose part differs


@drawing
def your_gpt() -> list[Panel]:
    """Two pictures.

    In the first, four models stand below each other, each a row of five parts: norm, heads, mlp,
    loss and step. All parts are grey, ours, but for one in colour, the reader's: in the first row
    the norm, in the next the heads, then the mlp, then the loss. An arrow leads from each row to
    its result. Three rows agree with ours; the one with the reader's mlp differs, and so the mlp
    is at fault. In the second, the file is a sheet of strips, coloured and grey ones mixed: the
    reader's parts and ours. Arrows lead from stories into it, and from it to a new story.
    """
    return [one_at_a_time(), one_file()]


def one_at_a_time() -> Panel:
    """Draw four models with one part exchanged, and what the comparison says of each."""
    rows = []
    for i in range(4):
        y = 34 + 38 * i
        for j, name in enumerate(PARTS):
            rows.append(box(50 * j, y, 46, 26, "query" if i == j else "muted", name, radius=3))
        wrong = i == AT_FAULT
        role = "loss" if wrong else "muted"
        rows += [
            arrow((248, y + 13), (266, y + 13), role=role),
            text(270, y + 13, "differs" if wrong else "agrees", role if wrong else "ink",
                 anchor="start", face="bold" if wrong else ""),
        ]  # fmt: skip
    return panel(
        340,
        206,
        rows,
        note(121, 196, "one part yours, all others ours"),
        title="One at a time",
    )


def one_file() -> Panel:
    """Draw the file as a sheet of parts, what it reads and what it writes."""
    yours = (True, False, True, True, False, True, False)
    strips = [
        box(122, 44 + 18 * i, 96, 13, "query" if own else "muted", radius=2)
        for i, own in enumerate(yours)
    ]
    return panel(
        340,
        206,
        box(112, 34, 116, 142, "ink", kind="frame", radius=4),
        strips,
        box(0, 88, 84, 34, "token", "stories", radius=4),
        arrow((86, 105), (109, 105)),
        arrow((231, 105), (254, 105)),
        box(256, 88, 84, 34, "value", "a story", radius=4),
        note(170, 196, "your file"),
        title="One file of yours and ours",
    )
