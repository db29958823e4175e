"""The drawing of the first chapter."""

from collections import Counter
from itertools import pairwise

from drawings.parts import Panel, arrow, box, bracket, cells, drawing, note, panel, text, vector

TEXT = "the tiny cat sat on the tall hat"


@drawing
def counting_letters() -> list[Panel]:
    """A text, the tiny cat sat on the tall hat, stands over a table.

    The table has a row for each letter and counts how often each other letter follows it. The
    row of the letter t is marked: after t came one a, two h, one i and two spaces. Beside it,
    these six lie side by side as the six faces of a die. The die shows an h, so the text goes
    on with h, and the row of h is the next one.
    """
    followers: dict[str, Counter[str]] = {letter: Counter() for letter in TEXT}
    for letter, follower in pairwise(TEXT):
        followers[letter][follower] += 1
    columns = " aehilt"
    table = [[str(followers[row][c] or "") for c in columns] for row in "aht"]
    written = [
        text(
            10.6 * i + 5.3, 44, letter, "query" if letter == "t" else "token", size=15, face="mono"
        )
        for i, letter in enumerate(TEXT)
    ]
    shown = ["␣" if c == " " else c for c in columns]
    first = panel(
        340,
        218,
        written,
        note(60, 78, "the next letter", anchor="start"),
        [text(75 + 34 * i, 100, c, "muted", size=13, face="mono") for i, c in enumerate(shown)],
        [
            text(36, 127 + 30 * i, c, "query" if c == "t" else "token", size=15, face="mono")
            for i, c in enumerate("aht")
        ],
        cells(58, 112, table[:2], "token", (34, 30)),
        cells(58, 172, table[2:], "query", (34, 30)),
        arrow((4, 187), (26, 187), role="query"),
        title="1  Count what follows each letter",
    )
    faces = [shown[columns.index(c)] for c in sorted(followers["t"].elements())]
    second = panel(
        340,
        218,
        text(22, 64, "t", "query", size=18, face="mono"),
        arrow((34, 64), (58, 64), role="query"),
        cells(66, 44, [faces], "query", (40, 40)),
        box(186, 44, 40, 40, "query", kind="frame", radius=4),
        bracket(66, 92, 240, "counted six times, so six faces"),
        arrow((206, 128), (206, 160), role="token"),
        note(196, 142, "one turns up", anchor="end"),
        vector(154, 164, ["t", "h"], "token", (36, 36)),
        arrow((230, 182), (262, 182), role="token"),
        note(268, 173, "next, the", anchor="start"),
        note(268, 190, "row of h", anchor="start"),
        title="2  Throw a die with these faces",
    )
    return [first, second]
