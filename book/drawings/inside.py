"""The drawing of the part "Inside"."""

from drawings.parts import Panel, box, circle, drawing, line, note, panel, text

WORDS = ["walked", "to", "the", "pond", ".", "There", "she", "met", "a", "little"]
BEFORE = [("fox", 0.085), ("bear", 0.084), ("owl", 0.059), ("rabbit", 0.128), ("cat", 0.108)]
BEFORE += [("mouse", 0.075), ("hen", 0.068), ("cow", 0.092), ("goat", 0.06), ("duck", 0.095)]
BEFORE += [("frog", 0.057), ("dog", 0.088)]  # exact, as AT_THE_POND is; FORECAST is measured
AT_THE_POND = [("duck", 0.5), ("frog", 0.4), ("goat", 0.1)]
FORECAST = [("duck", 0.541), ("frog", 0.345), ("goat", 0.109)]  # by the story GPT
ROW, WIDE = 24, 220


@drawing
def what_is_known() -> list[Panel]:
    """What a reader can know of a story token by token, and where in the model it could stand.

    On the left the tokens of "walked to the pond. There she met a little", one below the other,
    and beside each a bar, divided among the animals that may come. Up to "the" it is in twelve
    narrow parts; from "pond" on it is half duck, four tenths frog and one tenth goat, and stays so
    to the last token. On the right the same tokens, with three circles each, the stages 0, 1 and 2
    of the model's stream, joined by a line and each with a question mark. At the bottom are two
    bars for the next word, nearly alike: the oracle's, and the model's forecast, which is 54 %
    duck, 35 % frog and 11 % goat.
    """
    return [known(), places(), forecast()]


def bar(x: float, y: float, width: float, parts: list[tuple[str, float]]) -> list[str]:
    """Draw a bar that is divided among animals; wide parts have their names."""
    pieces, start = [], x
    for i, (name, share) in enumerate(parts):
        role = ("query", "key", "value")[i % 3] if len(parts) < 4 else "muted"
        label = name if share * width > 35 and len(parts) < 4 else ""
        pieces.append(box(start, y, share * width, 18, role, kind="box", radius=2))
        pieces.append(text(start + share * width / 2, y + 9, label, size=12.5) if label else "")
        start += share * width
    return pieces


def known() -> Panel:
    """Draw the oracle's belief after each token."""
    pieces = []
    for i, word in enumerate(WORDS):
        y = 32 + ROW * i
        pieces.append(text(62, y + 9, word, anchor="end"))
        pieces += bar(70, y, WIDE, AT_THE_POND if i >= WORDS.index("pond") else BEFORE)
    return panel(300, 40 + ROW * len(WORDS), pieces, title="What a reader can believe")


def places() -> Panel:
    """Draw the stages at each token, and a question mark in each."""
    pieces = []
    for i, word in enumerate(WORDS):
        y = 41 + ROW * i
        pieces.append(text(62, y, word, anchor="end"))
        pieces.append(line(f"M80 {y}H240", "muted"))
        for stage in range(3):
            pieces.append(circle(90 + 70 * stage, y, 9, "norm"))
            pieces.append(text(90 + 70 * stage, y, "?", size=12.5))
    notes = [note(90 + 70 * s, 50 + ROW * len(WORDS), f"stage {s}") for s in range(3)]
    return panel(270, 62 + ROW * len(WORDS), pieces, notes, title="Where could it stand?")


def forecast() -> Panel:
    """Draw the next word as the oracle and as the model have it."""
    return panel(
        300,
        90,
        text(62, 41, "oracle", anchor="end"),
        bar(70, 32, WIDE, AT_THE_POND),
        text(62, 67, "model", anchor="end"),
        bar(70, 58, WIDE, FORECAST),
        title="The next word",
    )
