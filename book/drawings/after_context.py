"""The drawing of "Learning from the context": a belief about dialects, and what follows from it."""

from drawings.parts import Panel, box, cells, drawing, note, panel, text

PAIRS = [("autumn", "fall"), ("lift", "elevator"), ("lorry", "truck"), ("biscuit", "cookie")]
DIALECTS = [(0, 0, 0, 0), (0, 0, 1, 1), (1, 0, 0, 1), (1, 1, 1, 1)]
HEARD = 1, 2, 3  # of these things the speaker used the first name
WIDE, HIGH, TOP, BAR = 62, 26, 64, 60


def beliefs() -> list[float]:
    """Give the belief in each dialect: nine times as much for each word that is its own."""
    weights = [9 ** sum(1 - dialect[i] for i in HEARD) for dialect in DIALECTS]
    return [weight / sum(weights) for weight in weights]


@drawing
def learning_from_context() -> list[Panel]:
    """A list of four dialects, the belief in each after lift, lorry and biscuit, and the next word.

    On the left, under the words that were heard, a table with a row for each dialect and a column
    for each of four things. The first dialect says autumn, lift, lorry, biscuit; the second autumn,
    lift, truck, cookie; the third fall, lift, lorry, cookie; the fourth fall, elevator, truck,
    cookie. Words that were heard are marked. Bars at the right give the belief: 89 % for the first,
    10 % for the third, 1 % for the second, 0 % for the fourth. On the right are two pairs of bars
    for the next name of the season. A reader that knows these four expects autumn at 82 % and fall
    at 18 %; one to which any dialect is possible expects both at 50 %.
    """
    return [known(), expected()]


def known() -> Panel:
    """Draw the dialects and the belief in each."""
    pieces = [note(WIDE * (i + 0.5), 46, "“" + PAIRS[i][0] + "”", "query") for i in HEARD]
    pieces.append(note(0, 46, "heard:", anchor="start"))
    pieces.append(note(4 * WIDE + 8, 46, "belief", anchor="start"))
    for row, (dialect, belief) in enumerate(zip(DIALECTS, beliefs(), strict=True)):
        y = TOP + HIGH * row
        for i, bit in enumerate(dialect):
            role = "query" if i in HEARD and not bit else "muted"
            pieces.append(cells(WIDE * i, y, [[""]], role, (WIDE, HIGH)))
            shown = role if role == "query" else "ink"
            pieces.append(text(WIDE * (i + 0.5), y + HIGH / 2, PAIRS[i][bit], shown, size=12.5))
        pieces.append(bar(4 * WIDE + 8, y, belief, "value", 34))
    return panel(340, TOP + HIGH * 4 + 6, pieces, title="Which dialect is it?")


def bar(x: float, y: float, share: float, role: str, most: float) -> list[str]:
    """Draw a share as a bar, with its percentage."""
    width = max(1.5, share * most)
    return [
        box(x, y + 4, width, HIGH - 8, role, kind="full", radius=2),
        note(x + width + 5, y + HIGH / 2, f"{share:.0%}".replace("%", " %"), "ink", "start"),
    ]


def expected() -> Panel:
    """Draw the next word, as both readers expect it."""
    autumn = sum(
        belief * (0.1 if dialect[0] else 0.9)
        for dialect, belief in zip(DIALECTS, beliefs(), strict=True)
    )
    readers = [("if it is one of the four", autumn, "value"), ("if it may be any", 0.5, "key")]
    pieces = []
    for i, (name, first, role) in enumerate(readers):
        y = 32 + 80 * i
        pieces.append(note(0, y + 6, name, anchor="start"))
        for j, (word, share) in enumerate((("autumn", first), ("fall", 1 - first))):
            at = y + 14 + HIGH * j
            pieces.append(text(52, at + HIGH / 2, word, anchor="end", size=13))
            pieces.append(bar(BAR, at, share, role, 120))
    return panel(250, 182, pieces, title="The season after summer?")
