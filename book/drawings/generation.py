"""The drawings of the part Generation."""

import json
from pathlib import Path
from typing import Any

from drawings.parts import (
    Panel,
    arrow,
    box,
    cells,
    drawing,
    line,
    moving_data,
    note,
    panel,
    softmax,
    text,
    vector,
)

FORECAST = json.loads(Path(__file__).with_name("forecast.json").read_text(encoding="utf-8"))
TRUTH = FORECAST["truth"]  # of the first tokens; no story has the others
NAMED = (*FORECAST["tokens"][: len(TRUTH)], "others")
NUMBER = 0.71


@moving_data("sampling")
def sampling_data() -> dict[str, Any]:
    """Give the tokens, their logits, the truth, and the number that is drawn first."""
    return {**FORECAST, "number": NUMBER}


def tempered(temperature: float) -> list[float]:
    """Give the probabilities of all tokens at a temperature."""
    return softmax([z / temperature for z in FORECAST["logits"]])


def cut(probs: list[float], keep: set[int]) -> list[float]:
    """Keep some and share their sum."""
    total = sum(probs[i] for i in keep)
    return [p / total if i in keep else 0.0 for i, p in enumerate(probs)]


def nucleus(probs: list[float], share: float) -> set[int]:
    """Take the likeliest tokens until they hold enough."""
    kept: set[int] = set()
    for i in sorted(range(len(probs)), key=lambda i: -probs[i]):
        if sum(probs[j] for j in kept) >= share:
            break
        kept.add(i)
    return kept


@drawing
def sampling() -> list[Panel]:
    """One forecast, made by the story GPT, in six small charts, and one draw from it.

    Each chart has a bar for cow, goat, rabbit and mouse, and one for the 508 other tokens
    together, which no story has here. A mark on each bar is the truth: 0.45, 0.27, 0.18, 0.09
    and 0. As the model says it the bars end near the marks and others get 0.00. At
    temperature one half cow is far beyond its mark, 0.74, and mouse has shrunk to 0.01. At
    temperature 2 the animals fall short of their marks and others get 0.24. Top-k with k of 3 and
    top-p with p of 0.9 leave cow, rabbit and goat, with nothing for the mouse. At
    temperature 2, top-p leaves others 0.15. Below, the three bars that top-p left lie end to end on
    a line from 0 to 1; one random number, 0.71, falls into the part of goat, and goat is written.
    """
    plain, hot = tempered(1), tempered(2)
    left = cut(plain, nucleus(plain, 0.9))
    best = sorted(range(len(plain)), key=lambda i: -plain[i])[:3]
    return [
        distribution("As the model says", plain),
        distribution("Temperature ½", tempered(0.5)),
        distribution("Temperature 2", hot),
        distribution("Top-k, k = 3", cut(plain, set(best))),
        distribution("Top-p, p = 0.9", left),
        distribution("T = 2, p = 0.9", cut(hot, nucleus(hot, 0.9))),
        draw_one(left, NUMBER),
    ]


def distribution(title: str, probs: list[float]) -> Panel:
    """Draw five bars with their numbers, and a mark for the truth on each."""
    named = [*probs[: len(TRUTH)], sum(probs[len(TRUTH) :])]
    pieces = []
    for i, (p, true, name) in enumerate(zip(named, [*TRUTH, 0], NAMED, strict=True)):
        y, role = 32 + 21 * i, "loss" if name == "others" else "query"
        at = 52 + 92 * true
        written = f"{p:.2f}" if p > 1e-9 else "–"
        pieces += [
            text(46, y + 8, name, "loss" if name == "others" else "token", anchor="end", size=13),
            box(52, y, 92 * p, 16, role, kind="full", radius=1) if p > 0.004 else "",
            line(f"M{at:.2f} {y - 2}v20", "ink", "thick"),
            text(max(52 + 92 * p, at) + 4, y + 8, written, anchor="start", size=12, face="mono"),
        ]
    return panel(164, 140, pieces, title=title)


def draw_one(probs: list[float], number: float) -> Panel:
    """Lay the probabilities end to end, and let a number fall among them."""
    pieces, start = [], 0.0
    for p, name in zip(probs, NAMED, strict=False):
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
        note(170, 110, "laid end to end"),
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


PASSES = ("the", "cat", "saw", "the", "dog")


@drawing
def cache_passes() -> list[Panel]:
    """Two pictures of five passes over the words the, cat, saw, the, dog.

    Each pass is a row of keys with the attention weights under it. Without a cache the first pass
    makes one key and one weight, the next two keys and a triangle of three weights, and so on, up
    to five keys and a triangle of fifteen: 15 keys and 35 weights in all. With a cache each
    pass makes one new key, the others are pale because they were kept, and of the triangle only the
    last row; where the rows above were there is nothing: 5 keys and 15 weights in all.
    """
    return [passes("Without a cache", False), passes("With a cache", True)]


def passes(title: str, cached: bool) -> Panel:
    """Draw what each pass computes."""
    size, x, pieces = 14, 58, []
    for now, word in enumerate(PASSES):
        first = now if cached else 0
        keys = [0.75 if i >= first else 0.0 for i in range(now + 1)]
        rows = [[0.75 if i >= first else None] * (i + 1) for i in range(now + 1)]
        count = sum(len(row) for row in rows[first:])
        middle = x + size * (now + 1) / 2
        pieces += [
            text(middle, 42, word, "token", face="bold", size=13),
            cells(x, 54, [keys], "key", size),
            cells(x, 76, rows[first:], "query", size)
            if not cached
            else cells(x, 76 + size * now, [rows[now]], "query", size),
            [cells(x, 76 + size * i, [row], "muted", size) for i, row in enumerate(rows[:first])],
            note(middle, 160, str(count), "query"),
        ]
        x += size * (now + 1) + 17
    made = (5, 15) if cached else (15, 35)
    return panel(
        340,
        190,
        text(50, 61, "keys", "key", anchor="end", size=13),
        text(50, 83, "weights", "query", anchor="end", size=13),
        pieces,
        text(0, 180, f"{made[0]} keys and {made[1]} weights made in all", anchor="start", size=13),
        title=title,
    )
