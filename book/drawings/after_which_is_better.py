"""The drawing of the chapter "Which is better?": one difference, looked for in three ways."""

from functools import cache

import numpy as np

from drawings.parts import Panel, box, drawing, line, note, number, panel, text
from tinytorch_book.experiments.compared_models import compared_models

WIDE, GROUND, HIGH = 218, 134, 84  # of a panel; where its axis lies; the highest column
BINS = 41
WAYS = (  # title, how far a panel reaches on either side, stories needed, as on the page
    ("1  Stories of their own", 12.0, "33,602 stories each"),
    ("2  The same stories", 1.2, "203 stories"),
    ("3  All that could come", 0.12, "about ten stories"),
)


@drawing
def which_is_better() -> list[Panel]:
    """Three histograms, each on an axis a tenth as long as the one before.

    In the first, of differences between two models that read different stories, the columns reach
    from about minus 12 to 12 nats, and the dashed line of the true difference cannot be told from
    that of 0; it needs 33,602 stories each. In the second, of differences on the same stories, they
    reach from about minus 1 to 1, and the dashed line stands a little right of 0; it needs 203. In
    the third, of all that could have come, they make a narrow hill around the dashed line at 0.066,
    well to the right of 0; it needs about ten. A bar under the first two axes shows how much of
    them the next panel has.
    """
    return [histogram(values, *way) for values, way in zip(differences(), WAYS, strict=True)]


@cache
def differences() -> list[np.ndarray]:
    """Give what each way measures at one story, or at two."""
    nats, _ = compared_models()
    a, b = nats["story GPT"], nats["five bits"]
    expected = nats["five bits, expected"] - nats["story GPT, expected"]
    return [b[np.random.default_rng(0).permutation(len(a))] - a, b - a, expected]


def histogram(values: np.ndarray, title: str, reach: float, needed: str) -> Panel:
    """Draw how often each difference comes, the true one, and 0."""
    true = float(differences()[1].mean())
    counts, _ = np.histogram(values, BINS, (-reach, reach))
    column = WIDE / BINS
    path = f"M0 {GROUND}"
    for i, height in enumerate(HIGH * counts / counts.max()):
        y = number(GROUND - height)
        path += f"V{y}H{number(column * (i + 1))}"
    zero, at = WIDE / 2, WIDE / 2 * (1 + true / reach)
    seen = box(zero - WIDE / 20, GROUND + 1, WIDE / 10, 5, "muted", kind="full", radius=0)
    labels = [note(3, GROUND + 16, f"−{reach:g}", anchor="start"), note(zero, GROUND + 16, "0"),
              note(WIDE - 3, GROUND + 16, f"{reach:g} nats", anchor="end")]  # fmt: skip
    return panel(
        WIDE,
        182,
        line(f"{path}V{GROUND}z", "token", "tint"),
        line(f"M0 {GROUND}H{WIDE}", "muted"),
        seen if reach > 1 else "",
        line(f"M{number(zero)} {GROUND}V40", "ink", width=1),
        line(f"M{number(at)} {GROUND}V32", "query", "dashed"),
        note(at + 5, 38, f"{true:.3f}", "query", anchor="start"),
        labels,
        text(WIDE / 2, 172, needed, "query", face="bold"),
        title=title,
    )
