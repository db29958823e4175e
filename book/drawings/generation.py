"""The drawings of the part Generation."""

from typing import Any

from drawings.parts import (
    Panel,
    arrow,
    box,
    drawing,
    line,
    moving_data,
    note,
    panel,
    softmax,
    text,
    vector,
)

NEXT = ("hat", "dog", "boat", "red", "and", "of")
LOGITS = (2.2, 1.6, 1.1, 0.4, 0.0, -0.6)
NUMBER = 0.71


@moving_data("sampling")
def sampling_data() -> dict[str, Any]:
    """Give the tokens, their logits and the number that is drawn first."""
    return {"tokens": NEXT, "logits": LOGITS, "number": NUMBER}


def cut(probs: list[float], keep: int) -> list[float]:
    """Keep the first few and share their sum."""
    return [p / sum(probs[:keep]) if i < keep else 0.0 for i, p in enumerate(probs)]


@drawing
def sampling() -> list[Panel]:
    """One distribution over six tokens, hat, dog, boat, red, and, of, as bars, four times.

    As the model gives it, the bars fall gently from hat to of. The three others show a dashed
    outline where a bar was longer before. With a temperature of one half, hat has grown and the
    tail has shrunk. Top-k with k of 3 keeps the first three bars and shares everything among
    them. Top-p with p of 0.9 keeps as many bars as make up nine tenths, here four. Below, the
    four bars that top-p left lie end to end on a line from 0 to 1; one random number, 0.71,
    falls into the part of dog, and dog is written.
    """
    plain = softmax(LOGITS)
    together, keep = 0.0, 0
    while together < 0.9:
        together, keep = together + plain[keep], keep + 1
    left = cut(plain, keep)
    return [
        distribution("As the model says", plain, plain),
        distribution("Temperature ½", softmax([2 * z for z in LOGITS]), plain),
        distribution("Top-k, k = 3", cut(plain, 3), plain),
        distribution("Top-p, p = 0.9", left, plain),
        draw_one(left, NUMBER),
    ]


def distribution(title: str, probs: list[float], before: list[float]) -> Panel:
    """Draw six probabilities as bars, and outlines where they were longer before."""
    pieces = []
    for i, (p, old, name) in enumerate(zip(probs, before, NEXT, strict=True)):
        y = 32 + 21 * i
        pieces += [
            text(36, y + 8, name, "token" if p else "muted", anchor="end", size=13),
            box(42, y, 150 * p, 16, "query", kind="full", radius=2) if p else "",
            lost(42 + 150 * p, y, 150 * (old - p), 16) if old - p > 0.001 else "",
        ]
    return panel(158, 164, pieces, title=title)


def lost(x: float, y: float, width: float, height: float) -> str:
    """Draw the outline of what a bar has lost; it is open where the bar ends."""
    path = f"M{x:.2f} {y}h{width:.2f}v{height}h{-width:.2f}"
    return line(path + "z" if x == 42 else path, "muted", "dashed")


def draw_one(probs: list[float], number: float) -> Panel:
    """Lay the probabilities end to end, and let a number fall among them."""
    pieces, start = [], 0.0
    for p, name in zip(probs, NEXT, strict=True):
        if p:
            x = 6 + 328 * start
            struck = start <= number < start + p
            kind, role = ("full", "query") if struck else ("box", "muted")
            pieces.append(box(x, 66, 328 * p, 30, role, name, kind=kind, radius=3))
        start += p
    x = 6 + 328 * number
    return panel(
        340,
        130,
        pieces,
        text(x, 36, f"{number}", "query", face="mono"),
        arrow((x, 45), (x, 64), role="query"),
        note(6, 110, "0", anchor="start"),
        note(334, 110, "1", anchor="end"),
        title="The draw, after top-p: one random number",
    )


WRITTEN = ("the", "boy", "had", "a", "hat", "on", "his", "head")
KEYS = [[0.8, 0.2, 0.7], [0.3, 0.5, 0.6], [0.1, 0.7, 0.2], [0.5, 0.3, 0.9], [0.6, 0.9, 0.3]]
KEYS += [[0.2, 0.4, 0.8], [0.9, 0.6, 0.1], [0.4, 0.1, 0.5]]
VALUES = [[0.4, 0.9, 0.2], [0.7, 0.1, 0.5], [0.2, 0.6, 0.8], [0.9, 0.4, 0.3], [0.1, 0.5, 0.7]]
VALUES += [[0.6, 0.3, 0.9], [0.3, 0.8, 0.4], [0.8, 0.2, 0.6]]


@moving_data("kv-cache")
def kv_cache_data() -> dict[str, Any]:
    """Give the text, how much of it is the prompt, and a key and a value for each token."""
    return {"words": WRITTEN, "prompt": 3, "keys": KEYS, "values": VALUES}


@drawing
def kv_cache() -> list[Panel]:
    """Three moments of one text, each with the rows of keys and values that the model has kept.

    First the prompt of three tokens, the, boy and had, is read at once and three rows are
    computed. Then a is written: one new row is computed, and the first three are kept. Then hat
    is written: again one new row, and four are kept. Each moment has one row more than the last.
    """
    return [
        moment("1  The prompt", 3, 3),
        moment("2  One more", 4, 1),
        moment("3  And again", 5, 1),
    ]


def moment(title: str, count: int, new: int) -> Panel:
    """Draw the cache after `count` tokens, of which the last `new` are computed now."""
    pieces = []
    for i, word in enumerate(WRITTEN[:5]):
        y, fresh = 46 + 28 * i, count - new <= i
        if i >= count:
            empty = [None] * 3
            pieces += [
                vector(62, y + 4, empty, "muted", 16),
                vector(118, y + 4, empty, "muted", 16),
            ]
            continue
        role = "token" if fresh else "muted"
        pieces += [
            box(0, y, 50, 24, role, word),
            note(172, y + 12, "new" if fresh else "kept", role, "start"),
            vector(62, y + 4, KEYS[i], "key", 16),
            vector(118, y + 4, VALUES[i], "value", 16),
        ]
    heads = [text(86, 37, "keys", "key", size=13), text(142, 37, "values", "value", size=13)]
    return panel(204, 190, heads, pieces, title=title)
