"""The drawings of the first chapter."""

import random
import textwrap
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from math import log
from typing import Any

from drawings.parts import (
    Panel,
    arrow,
    box,
    bracket,
    cells,
    drawing,
    line,
    moving_data,
    note,
    panel,
    text,
    vector,
)

TEXT = "the tiny cat sat on the tall hat"
LENGTHS = range(1, 9)  # letters that are remembered
BEST = 7
LINES, LETTERS = 4, 41  # of what a program writes
Strokes = dict[str, Counter[str]]


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


@moving_data("letters-remembered")
@cache
def letters_remembered_data() -> dict[str, Any]:
    """Give the floor, and of each number of letters what the chapter's program does with it.

    `text` is what it writes from the beginning, `loss` its mean surprise at new stories, in nats a
    letter, and `never` the share of places there whose letters before were never read together.
    """
    from tinytorch_book.stories import StoryGrammar

    grammar = StoryGrammar()
    stories, unseen = grammar.generate(500, seed=1), grammar.generate(100, seed=2)
    programs, letters = [], len(set(stories))
    for length in LENGTHS:
        followers = count_followers(stories, length)
        places = [(unseen[i - length : i], unseen[i]) for i in range(length, len(unseen))]
        chances = [belief(followers, before, letter, letters) for before, letter in places]
        programs.append(
            {
                "text": written(followers, "Once upon a ", length),
                "loss": -sum(map(log, chances)) / len(places),
                "never": sum(before not in followers for before, _ in places) / len(places),
            }
        )
    return {"floor": grammar.entropy.nats_per_character, "programs": programs, "best": BEST}


def count_followers(stories: str, length: int) -> Strokes:
    """Count what follows each run of `length` letters."""
    followers: Strokes = defaultdict(Counter)
    for i in range(length, len(stories)):
        followers[stories[i - length : i]][stories[i]] += 1
    return followers


def belief(followers: Strokes, before: str, letter: str, letters: int) -> float:
    """Give the chance of a letter, when each of `letters` has a thousandth of a stroke for free."""
    strokes = followers.get(before, Counter())
    return (strokes[letter] + 0.001) / (strokes.total() + 0.001 * letters)


def written(followers: Strokes, beginning: str, length: int) -> list[str]:
    """Write 150 letters, drawn with the seed `length`; give the first lines."""
    rng, words = random.Random(length), beginning
    for _ in range(150):
        strokes = followers[words[-length:]]
        words += rng.choices(list(strokes), list(strokes.values()))[0]
    lines = [line for story in words.splitlines() for line in textwrap.wrap(story, LETTERS)]
    return lines[:LINES]


@drawing
def letters_remembered() -> list[Panel]:
    """What three programs write from Once upon a, and how surprised programs are by new stories.

    The program that remembers one letter writes few words, all of them short. With three letters
    most of what it writes is words, and with seven it writes whole phrases. Below, a column for
    each number of letters from one to eight shows the mean surprise: the columns fall, from about
    two nats a letter at one, and are lowest at seven; the column at eight is a little higher again.
    A dashed line, the floor, runs below all their tops. Under each column stands the share of
    places in new stories that come after letters never read together: none at one letter and at
    two, more and more from three on.
    """
    data = letters_remembered_data()
    return [
        panel(
            340,
            126,
            [
                text(0, 44 + 22 * i, words, "ink", size=13, anchor="start", face="mono")
                for i, words in enumerate(data["programs"][length - 1]["text"])
            ],
            title=f"Remembers {length} letter{'s' * (length > 1)}",
        )
        for length in (1, 3, BEST)
    ] + [surprises(data)]


def surprises(data: dict[str, Any]) -> Panel:
    """Draw the mean surprise as columns, over the floor, and the share that was never read."""
    pieces, base, unit = [], 160, 58
    for i, program in enumerate(data["programs"]):
        x, height = 6 + 42 * i, unit * program["loss"]
        role = "query" if i + 1 == data["best"] else "token"
        pieces += [
            box(
                x,
                base - height,
                34,
                height,
                role,
                kind="full" if role == "query" else "box",
                radius=2,
            ),
            note(x + 17, base - height - 10, f"{program['loss']:.2f}", role),
            text(x + 17, base + 14, str(i + 1), role, face="bold"),
            note(x + 17, base + 58, f"{100 * program['never']:.2f}", role),
        ]
    floor = base - unit * data["floor"]
    return panel(
        340,
        228,
        pieces,
        line(f"M0 {floor:.2f}H340", "ink", "dashed"),
        note(6, base + 38, "never read, % of the places in new stories", anchor="start"),
        title="Surprise at new stories, nats a letter",
    )
