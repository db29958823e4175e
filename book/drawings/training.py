"""The drawings of the part Training."""

from math import exp, log, sin

from drawings.parts import Panel, arrow, box, cells, curve, drawing, line, note, panel, text

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
