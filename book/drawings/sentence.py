"""One sentence on its way through the model: each page draws one stage more."""

from collections.abc import Sequence
from math import pi

import numpy as np

from drawings.parts import Panel, box, cells, circle, drawing, line, note, panel, text
from tinytorch_book.experiments.six_tokens import FEATURES, IDS, VOCABULARY, WORDS, journey

LEFT, WIDE = 58, 47  # pixels left of the tokens, and of a token
WAY = journey()
PLACES = [LEFT + WIDE * i + WIDE / 2 for i in range(len(WORDS))]
READABLE = 4  # of a vector's numbers; the other two are its position
SEEN = 0.1  # a smaller weight is not drawn
STAGES = {"ids": 40, "lookup": 68, "positions": 44, "attention": 66, "heads": 66}
STAGES |= {"block": 146, "logits": 64}  # and their heights


@drawing
def sentence_ids() -> list[Panel]:
    """Six words, each in a box above its id: Anna, feeds, dogs, because, they and bark.

    Under Anna is 0, under feeds 4, under dogs 3, under because 2, under they 5 and under bark 1:
    their places in the vocabulary, the same six words in alphabetical order.
    """
    return stages("ids")


@drawing
def sentence_lookup() -> list[Panel]:
    """Six words with their ids; under each id the vector that it looks up, a column of four cells.

    The rows are thing, plural, action and link. Filled are: Anna at thing, feeds at action, dogs at
    thing and plural, because at link, they at plural, and bark at plural and action.
    """
    return stages("lookup")


@drawing
def sentence_positions() -> list[Panel]:
    """Six words, their ids and vectors; under each a clock with one hand.

    At Anna it points up, and from token to token it turns clockwise by a sixth: up and to the right
    at feeds, down and to the right at dogs, straight down at because, and then on through the left
    half.
    """
    return stages("positions")


@drawing
def sentence_attention() -> list[Panel]:
    """Under the clocks, arcs lead from each word back to those that it looks at.

    The thickest lead to dogs, from they and from bark; from both a thin one goes on to Anna. Feeds
    looks mostly at Anna, dogs at itself, and because at feeds. Above the arcs stand, paler, the
    words, their ids, vectors and clocks.
    """
    return stages("attention")


@drawing
def sentence_heads() -> list[Panel]:
    """Arcs of two heads: the first's lead to what a word is about, the second's one word back.

    In the first the thickest lead to dogs, from they and from bark; the first word sees itself. In
    the second the first word sees itself, too, and from each other word a thick arc, nearly the
    same for all, leads to its neighbour at the left.
    """
    return stages("heads")


@drawing
def sentence_block() -> list[Panel]:
    """Under the second head's arcs, what attention adds to each vector, and what the MLP adds.

    Attention adds thing to Anna and feeds, thing and plural to dogs, they and bark, and action to
    dogs and because. The MLP adds action after Anna and they, thing and plural after feeds, link
    after dogs and bark, and plural after because. Cells with a minus are what it takes away.
    """
    return stages("block")


@drawing
def sentence_logits() -> list[Panel]:
    """At the end, under each word, the two likeliest next words with bars.

    The first is the word that follows: feeds after Anna, dogs after feeds, because after dogs, they
    after because, and bark after they, with a bar nearly three times as long as that of feeds.
    After bark comes because.
    """
    return stages("logits")


def stages(last: str) -> list[Panel]:
    """Draw the way up to a stage, in two panels from the second head on."""
    names = list(STAGES)
    shown = names[: names.index(last) + 1]
    return [column_of(part, last) for part in (shown[:4], shown[4:]) if part]


def column_of(names: Sequence[str], last: str) -> Panel:
    """Draw stages under one another; words stand on top."""
    y, pieces = 34, [words(0)]
    for name in names:
        pieces.append(DRAWN[name](y, "ink" if name == last else "muted"))
        y += STAGES[name]
    return panel(340, y, pieces)


def words(y: float) -> list[str]:
    """Write the six words in their boxes."""
    return [
        box(x - WIDE / 2 + 1, y, WIDE - 2, 24, "token") + text(x, y + 12, word, size=11.5)
        for x, word in zip(PLACES, WORDS, strict=True)
    ]


def label(y: float, said: str, role: str) -> str:
    """Write at the left what a stage is."""
    return text(0, y, said, role, size=12, anchor="start")


def ids(y: float, role: str) -> list[str]:
    """Write the ids."""
    return [label(y + 10, "id", role)] + [
        text(x, y + 10, str(i), role, face="mono", size=15)
        for x, i in zip(PLACES, IDS, strict=True)
    ]


def vectors(y: float, role: str, numbers: np.ndarray, most: float = 1) -> list[str]:
    """Draw the readable part of each vector as a column; below zero with a −."""
    pieces = [label(y + 14 * row + 8, FEATURES[row], role) for row in range(READABLE)]
    for x, column in zip(PLACES, numbers, strict=True):
        for row, value in enumerate(column[:READABLE]):
            colour = "value" if value >= 0 else "loss"
            size = (WIDE - 10, 14)
            shade = None if abs(value) < 0.04 * most else min(abs(value) / most, 1)
            pieces.append(cells(x - WIDE / 2 + 5, y + 14 * row, [[shade]], colour, size))
            if value < 0 and shade is not None:
                pieces.append(text(x, y + 14 * row + 7, "−", "ink", size=12))
    return pieces


def lookup(y: float, role: str) -> list[str]:
    """Draw what the ids look up."""
    return vectors(y, role, WAY["looked up"])


def clocks(y: float, role: str) -> list[str]:
    """Draw each position as the hand of a clock."""
    pieces = [label(y + 16, "position", role)]
    for i, x in enumerate(PLACES):
        turn = 2 * pi * i / len(WORDS)
        hand = f"M{x} {y + 16}l{14 * np.sin(turn):.1f} {-14 * np.cos(turn):.1f}"
        pieces += [circle(x, y + 16, 15, "position"), line(hand, "position", "thick")]
    return pieces


def arcs(y: float, role: str, head: int) -> list[str]:
    """Draw from where to where a head looks; a thicker arc is a larger weight."""
    base = y + 44
    said = "looks at" if head == 0 and role == "ink" else f"head {head + 1}"
    pieces = [label(y + 12, said, role)]
    pieces.append(note(0, y + 28, ("things", "one back")[head], anchor="start"))
    for i, row in enumerate(WAY["weights"][head]):
        for j, weight in enumerate(row[: i + 1]):
            if weight < SEEN:
                continue
            start, end = PLACES[i], PLACES[j]
            rise = 14 + 9 * (i - j)
            path = f"M{start} {base}C{start} {base - rise} {end} {base - rise} {end} {base}"
            if i == j:
                path = f"M{start} {base}c-11 -20 11 -20 0 0"
            widest = 2.5 if i == j else 5
            pieces.append(line(path, "query", "line", max(1.0, widest * weight)))
    return [*pieces, [circle(x, base + 3, 3, "token") for x in PLACES]]


def block(y: float, role: str) -> list[str]:
    """Draw what attention and the MLP add."""
    return [
        note(0, y + 4, "attention adds", role, "start"),
        vectors(y + 12, role, WAY["attention"]),
        note(0, y + 78, "the MLP adds (−: takes away)", role, "start"),
        vectors(y + 86, role, WAY["mlp"], 6),
    ]


def logits(y: float, role: str) -> list[str]:
    """Write the two likeliest next words under each token."""
    pieces = [label(y + 10, "next?", role)]
    for x, row in zip(PLACES, WAY["forecast"], strict=True):
        for place, i in enumerate(np.argsort(-row)[:2]):
            top = y + 30 * place
            pieces.append(text(x, top + 8, VOCABULARY[i], role, size=11.5))
            bar = f"M{x - 20} {top + 19}h{max(40 * row[i], 1):.1f}"
            pieces.append(line(bar, "loss", "line", 5))
    return pieces


DRAWN = {
    "ids": ids,
    "lookup": lookup,
    "positions": clocks,
    "attention": lambda y, role: arcs(y, role, 0),
    "heads": lambda y, role: arcs(y, role, 1),
    "block": block,
    "logits": logits,
}
