"""The drawings of the part "Inside"."""

import json
from pathlib import Path
from typing import Any

from drawings.parts import (
    Panel,
    box,
    circle,
    drawing,
    element,
    line,
    moving_data,
    note,
    number,
    panel,
    text,
)

LOOKS = Path(__file__).with_name("story_looks.json")  # written by story_looks.py
JOBS = {"0.3": (25, 36, 45, 59), "1.0": (13, 28, 41, 64)}  # by head, the tokens that ask
ACROSS, LETTER, LINE, TOP = 40, 7.6, 47, 52  # letters a line; pixels a letter, a line, the first
EDGE = 3  # pixels left of a line, for the frame around its first word

WORDS = ["walked", "to", "the", "pond", ".", "There", "she", "met", "a", "little"]
BEFORE = [("fox", 0.085), ("bear", 0.084), ("owl", 0.059), ("rabbit", 0.128), ("cat", 0.108)]
BEFORE += [("mouse", 0.075), ("hen", 0.068), ("cow", 0.092), ("goat", 0.06), ("duck", 0.095)]
BEFORE += [("frog", 0.057), ("dog", 0.088)]  # exact, as AT_THE_POND is; FORECAST is measured
AT_THE_POND = [("duck", 0.5), ("frog", 0.4), ("goat", 0.1)]
FORECAST = [("duck", 0.541), ("frog", 0.345), ("goat", 0.109)]  # by the story GPT
ROW, WIDE = 24, 220


@drawing
def what_it_looks_at() -> list[Panel]:
    """The same story twice, and in it what one head looks at.

    It reads: Once upon a time there was a boy named Ben. One day he walked to the meadow. A fluffy
    cow ran after him and asked for some corn. Ben gave it some corn, and it ate and ate and ate.
    The cow was happy, and Ben was happy too. On the left, head 0.3, the animal head: from the end
    of fluffy, right before cow, an arc with 99 % leads to meadow; from some, right before corn,
    arcs with 98 and 93 % to the first cow; from The, before the cow comes again, one with 60 %
    likewise. On the right, head 1.0, the hero head: from day, right before he, an arc with 84 %
    leads to the first Ben; from after, before him, one with 77 %; and from the full stop and the
    and before Ben comes again, arcs with 99 and 97 %.
    """
    titles = {"0.3": "The animal head, 0.3", "1.0": "The hero head, 1.0"}
    return [looking(head, titles[head]) for head in JOBS]


def read_story() -> dict[str, Any]:
    """Read what the model looks at."""
    found: dict[str, Any] = json.loads(LOOKS.read_text(encoding="utf-8"))
    return found


def places_of(tokens: list[str]) -> list[tuple[float, float, float]]:
    """Give where each token stands, in lines of whole words: left edge, height, width."""
    placed: list[tuple[float, float, float]] = [(EDGE, TOP, LETTER)]  # the newline before the story
    words = [i for i, token in enumerate(tokens) if i and (i == 1 or token.startswith(" "))]
    column, row = 2, 0
    for start, end in zip(words, [*words[1:], len(tokens)], strict=True):
        if column + len("".join(tokens[start:end])) > ACROSS:
            column, row = -1, row + 1  # the space is not seen at the start of a line
        for token in tokens[start:end]:
            space = len(token) - len(token.lstrip())
            width = len(token) - space
            placed.append((EDGE + (column + space) * LETTER, TOP + LINE * row, width * LETTER))
            column += len(token)
    return placed


@moving_data("what-it-looks-at")
def one_story() -> dict[str, Any]:
    """Give the story, where its tokens stand, and what each head looks at."""
    found = read_story()
    places = [[round(v, 1) for v in place] for place in places_of(found["tokens"])]
    return {**found, "places": places, "asks": JOBS["0.3"][0]}


def looking(head: str, title: str) -> Panel:
    """Draw the story, and the arcs of a head from the tokens that ask."""
    found = read_story()
    tokens, places = found["tokens"], places_of(found["tokens"])
    arcs, marks, labels, sought = [], [], [], set()
    for query in JOBS[head]:
        (key, share), (x, y, wide) = found["heads"][head][query][0], places[query]
        sought.add(key)
        arcs.append(arc(places[query], places[key], share))
        marks.append(box(x - 2, y - 10, wide + 4, 20, "query", radius=3))
        left = places[key][0] > x > 20  # where the arc does not go
        aside, anchor = (x - 4, "end") if left else (x + wide + 4, "start")
        labels.append(note(aside, y - 17, f"{100 * share:.0f} %", "query", anchor=anchor))
    marks += [box(places[k][0] - 2, places[k][1] - 10, places[k][2] + 4, 20, "key", radius=3)
              for k in sought]  # fmt: skip
    due = {i for query in JOBS[head] for i in rest_of_word(tokens, query + 1)}
    words = []
    for i in range(1, len(tokens)):
        role = "query" if i in JOBS[head] else "key" if i in sought else "ink"
        role = "value" if i in due - sought else role
        x, y, _ = places[i]
        words.append(text(x, y, tokens[i].strip(), role, size=12.5, anchor="start", face="mono"))
    start = circle(places[0][0] + 5, places[0][1], 3, "muted", "frame")
    height = places[-1][1] + 20
    return panel(340, height, arcs, marks, start, words, labels, title=title)


def rest_of_word(tokens: list[str], start: int) -> list[int]:
    """Give the tokens of the word that begins at one."""
    end = start + 1
    while end < len(tokens) and tokens[end].isalpha():
        end += 1
    return [*range(start, end)]


def arc(query: tuple[float, float, float], key: tuple[float, float, float], share: float) -> str:
    """Draw the way from what asks to what is looked at, as thick as its share."""
    (x, y, wide), (to, at, width) = query, key
    x, to = x + wide / 2, to + width / 2
    if y == at:
        high = 18 + min(14, abs(x - to) / 12)
        path = f"M{number(x)} {y - 10}C{number(x)} {number(y - 10 - high)} {number(to)} "
        path += f"{number(at - 10 - high)} {number(to)} {at - 10}"
    else:
        path = f"M{number(x)} {y - 10}C{number(x)} {y - 34} {number(to)} {at + 36} "
        path += f"{number(to)} {at + 10}"
    style = f"stroke-width: {number(1 + 5 * share)}px; stroke-opacity: 0.55"
    return element("path", "d-query d-line", d=path, style=style, close=True)


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
