"""The drawings of the part Training."""

from math import cos, exp, log, pi, sin
from typing import Any

from drawings.parts import (
    Panel,
    arrow,
    box,
    cells,
    circle,
    curve,
    drawing,
    line,
    moving_data,
    note,
    panel,
    text,
)

STORY = "a boy had a hat."
START = 2  # of the window
GIVEN = (0.5, 0.9, 0.25, 0.8, 0.6, 0.95)  # the probability of each target


@drawing
def data_and_loss() -> list[Panel]:
    """Two pictures.

    In the first a frame of six letters lies over the text a boy had a hat. The letters in the
    frame are the inputs; the targets below them are the same text moved on by one, and from
    each input an arrow leads to its target: the letter that comes next. In the second each
    target has two bars: up, the probability that the model gave it, 0.5, 0.9, 0.25, 0.8, 0.6
    and 0.95; down, its surprise, long where the probability was small. A dashed line marks
    their mean, 0.50: the loss.
    """
    inputs = ["␣" if c == " " else c for c in STORY[START : START + 6]]
    targets = ["␣" if c == " " else c for c in STORY[START + 1 : START + 7]]
    return [windows(inputs, targets), surprise_of(targets)]


def windows(inputs: list[str], targets: list[str]) -> Panel:
    """Draw a window over the text, and what belongs to each letter."""
    left, size = 100, 30
    strip = [
        text(
            10.5 + 21 * i + 4 * (i >= START + 6) - 4 * (i < START),
            50,
            c,
            "token" if START <= i < START + 6 else "muted",
            size=15,
            face="mono",
        )
        for i, c in enumerate(STORY)
    ]
    return panel(
        340,
        214,
        strip,
        box(21 * START - 2, 36, 21 * 6 + 4, 28, "token", kind="frame", radius=4),
        cells(left, 104, [inputs], "token", size),
        cells(left, 168, [targets], "query", size),
        [arrow((left + size * (i + 0.5), 137), (left + size * (i + 0.5), 165)) for i in range(6)],
        text(left - 10, 119, "inputs", "token", anchor="end"),
        text(left - 10, 183, "targets", "query", anchor="end"),
        arrow((21 * START + 63, 64), (21 * START + 63, 84), (190, 84), (190, 102)),
        title="1  A window, and the same moved by one",
    )


def surprise_of(targets: list[str]) -> Panel:
    """Draw the probability of each target above it, its surprise below, and the mean."""
    surprise = [-log(p) for p in GIVEN]
    mean = sum(surprise) / len(surprise)
    bars = []
    for i, (p, s, target) in enumerate(zip(GIVEN, surprise, targets, strict=True)):
        x = 86 + 38 * i
        bars += [
            box(x + 7, 102 - 62 * p, 24, 62 * p, "query", kind="full", radius=1),
            text(x + 19, 116, target, "query", face="mono", size=15),
            box(x + 7, 130, 24, 48 * s, "loss", kind="full", radius=1),
        ]
    level = 130 + 48 * mean
    return panel(
        340,
        214,
        bars,
        text(78, 68, "probability", "query", anchor="end", size=13),
        text(78, 84, "it gave", "query", anchor="end", size=13),
        text(78, 138, "surprise", "loss", anchor="end", size=13),
        line(f"M84 {level:.2f}H314", "ink", "dashed"),
        text(78, level + 4, f"mean {mean:.2f}", anchor="end", face="bold", size=13),
        title="2  The loss is the mean surprise",
    )


@drawing
def optimisation() -> list[Panel]:
    """Two pictures.

    The training loop is a ring of five stations with arrows from each to the next: a batch of
    windows; forward, which gives logits; the loss; backward, which gives a gradient for every
    weight; and the step of the optimiser, after which the next batch comes. Beside it the loss
    falls as the steps go on, steeply at first and then slower, towards a dashed line that it
    does not cross: the floor, the surprise that the text itself has.
    """
    return [one_step(), many_steps()]


def one_step() -> Panel:
    """Draw the loop."""
    stations = (
        (170, 46, "batch", "token"),
        (276, 100, "forward", "value"),
        (246, 188, "loss", "loss"),
        (94, 188, "backward", "gradient"),
        (64, 100, "step", "query"),
    )
    ring = [
        curve((215, 48), (252, 56), (268, 82)),
        curve((286, 119), (286, 146), (262, 170)),
        curve((200, 191), (170, 197), (140, 191)),
        curve((78, 170), (54, 146), (54, 119)),
        curve((72, 82), (88, 56), (125, 48)),
    ]
    return panel(
        340,
        220,
        ring,
        [box(x - 41, y - 15, 82, 30, role, name) for x, y, name, role in stations],
        text(170, 124, "again and again", "muted", face="italic"),
        title="1  One step",
    )


def many_steps() -> Panel:
    """Draw the loss as it falls."""
    points = [
        (52 + 2.76 * t, 52 + 108 * (1 - exp(-t / 17)) + 3 * sin(t * 1.9) * exp(-t / 50))
        for t in range(101)
    ]
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    return panel(
        340,
        220,
        arrow((44, 192), (336, 192)),
        arrow((44, 192), (44, 34)),
        line("M44 172H330", "value", "dashed"),
        line(path, "loss"),
        text(34, 50, "loss", "loss", anchor="end", size=13),
        note(190, 208, "steps"),
        text(328, 182, "the floor", "value", anchor="end", size=13),
        title="2  Many steps",
    )


CURVATURE, START_IN_BOWL = (1.0, 40.0), (-4.0, 1.0)  # the chapter's bowl
LEVELS = (2.0, 4.5, 8.0, 15.0, 28.0)  # of its loss
ACROSS, UP = 4.5, 1.4  # how far from the bottom one sees
CENTRE = (170, 118)  # of the picture, and there pixels a unit
UNITS = (36.0, 60.0)


@drawing
def bowl() -> list[Panel]:
    """Two pictures of one bowl, seen from above.

    Level lines, long and narrow, lie about the bottom in the middle; both paths begin at the left,
    a little above the middle. At a rate of 0.045 the path jumps from side to side across the
    valley, less and less far, and creeps along it; after 40 steps it has come most of the way to
    the bottom. At a rate of 0.051 every jump across is longer than the one before,
    until the path leaves the picture.
    """
    return [
        descent(0.045, "1  A rate of 0.045: it settles"),
        descent(0.051, "2  A rate of 0.051: it is thrown out"),
    ]


@moving_data("bowl")
def shape_of_the_bowl() -> dict[str, Any]:
    """Give the bowl, and what one sees of it."""
    return {
        "curvature": CURVATURE,
        "start": START_IN_BOWL,
        "levels": [level(height) for height in LEVELS],
        "centre": CENTRE,
        "units": UNITS,
    }


def descent(rate: float, title: str) -> Panel:
    """Draw the bowl, and on it a path of gradient descent as far as one sees it."""
    x, y = START_IN_BOWL
    path = [(x, y)]
    for _ in range(40):
        x, y = x - rate * CURVATURE[0] * x, y - rate * CURVATURE[1] * y
        if abs(y) > UP:
            break
        path.append((x, y))
    dots = [(CENTRE[0] + UNITS[0] * x, CENTRE[1] - UNITS[1] * y) for x, y in path]
    return panel(
        340,
        214,
        box(8, 34, 324, 168, "muted", kind="frame", radius=4),
        [line(level(height), width=0.75) for height in LEVELS],
        circle(*CENTRE, 3, "value", "full"),
        note(CENTRE[0], CENTRE[1] + 10, "bottom", "value"),
        line("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in dots), "query"),
        [circle(a, b, 2, "query", "full") for a, b in dots],
        note(dots[0][0] - 2, dots[0][1] - 14, "start", "query"),
        title=title,
    )


def level(height: float) -> str:
    """Give a level line of the bowl, or what one sees of it."""
    wide, high = ((2 * height / c) ** 0.5 for c in CURVATURE)
    seen = min(wide, ACROSS)
    end = high * (1 - (seen / wide) ** 2) ** 0.5
    left, right = (CENTRE[0] + UNITS[0] * side * seen for side in (-1, 1))
    arc = f"A{UNITS[0] * wide:.1f} {UNITS[1] * high:.1f} 0 0"
    return "".join(
        f"M{left:.1f} {CENTRE[1] - UNITS[1] * side * end:.1f}{arc} {(1 + side) // 2} {right:.1f}"
        f" {CENTRE[1] - UNITS[1] * side * end:.1f}"
        for side in (-1, 1)
    )


@drawing
def warm_up() -> list[Panel]:
    """Two pictures of the learning rate over 120 steps.

    With a warm-up of 40 steps the rate climbs in a straight line from almost nothing to 0.02. From
    there it follows half a cosine down: slowly at first, then faster, and slowly again until it
    is 0 at step 120. Without a warm-up the first step already has the whole rate of 0.02, and the
    half cosine takes all 120 steps.
    """
    return [
        schedule(40, "1  A warm-up of 40 steps"),
        schedule(0, "2  None"),
    ]


def schedule(warmup: int, title: str, total: int = 120) -> Panel:
    """Draw the learning rate of each step."""
    rates = [
        (step + 1) / warmup
        if step < warmup
        else (1 + cos(pi * (step - warmup) / (total - warmup))) / 2
        for step in range(total + 1)
    ]
    points = [(44 + 1.65 * step, 166 - 116 * rate) for step, rate in enumerate(rates)]
    top, end = points[warmup][0], points[-1][0]
    return panel(
        340,
        214,
        line("M44 50H326", "muted", "dashed"),
        [line(f"M{top:g} 50V172", "muted", "dashed")] if warmup else [],
        line(f"M{end:g} 166V172"),
        arrow((38, 166), (336, 166)),
        arrow((44, 172), (44, 34)),
        line("M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points), "query", "thick"),
        text(36, 50, "0.02", "query", anchor="end", size=13),
        text(36, 158, "0", "query", anchor="end", size=13),
        [note(top, 182, f"warm-up {warmup}")] if warmup else [],
        note(end, 200, f"{total} steps"),
        title=title,
    )
