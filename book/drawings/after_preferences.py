"""The drawing of the chapter "Preferences"."""

from functools import cache
from typing import Any

from drawings.parts import Panel, arrow, box, circle, drawing, line, note, number, panel, text

REWARDS = (-1, 0, 1, 2)  # the two below are hardly ever written
BETAS = (1.0, 0.25)
BEST_OF = (2, 4, 16)
LEFT, BOTTOM, NAT, POINT = 40, 176, 140, 72  # pixels: the corner of the axes, a nat, a point


@drawing
def preferences() -> list[Panel]:
    """How often each reward occurs before and after tilting, and the frontier of reward and cost.

    On the left, four groups of three bars, for the rewards -1, 0, 1 and 2. As they are written,
    24, 32, 28 and 15 % of the stories have them; tilted with β 1, it is 4, 14, 33 and 49 %. With
    β 0.25, 97 % of the stories have the reward 2. On the right, reward against divergence in nats:
    a curve begins at a mean reward of 0.32 with no divergence, rises steeply, bends, and ends level
    at 2, from 1.9 nats on. Above it stands "out of reach". Points on the curve are marked β 1 and
    β 0.25; rings just below it are best of 2, of 4 and of 16.
    """
    return [shares(), reach()]


@cache
def world() -> dict[str, Any]:
    """Give the shares of the rewards, the curve, and what is marked beside it."""
    import numpy as np

    from tinytorch.training.preferences import (
        best_of_n_policy,
        frontier,
        kl_divergence,
        optimal_policy,
    )
    from tinytorch_book.experiments.preferences import tiny_world

    _, probs, rewards = tiny_world()
    policies = [probs, *(optimal_policy(probs, rewards, beta) for beta in BETAS)]
    chosen = [best_of_n_policy(probs, rewards, n) for n in BEST_OF]
    return {
        "shares": [[float(q[rewards == reward].sum()) for q in policies] for reward in REWARDS],
        "curve": frontier(probs, rewards, np.geomspace(100, 0.05, 60)).tolist(),
        "betas": frontier(probs, rewards, BETAS).tolist(),
        "best of": [[kl_divergence(q, probs), float(q @ rewards)] for q in chosen],
    }


def shares() -> Panel:
    """Draw the bars of each reward."""
    pieces, roles = [], ("muted", "token", "query")
    for i, (reward, row) in enumerate(zip(REWARDS, world()["shares"], strict=True)):
        x = 14 + 80 * i
        for j, (share, role) in enumerate(zip(row, roles, strict=True)):
            high = max(1.0, 120 * share)
            pieces.append(box(x + 22 * j, BOTTOM - high, 20, high, role, radius=2))
            label = f"{100 * share:.0f}"
            pieces.append(note(x + 22 * j + 10, BOTTOM - high - 9, label, role))
        pieces.append(text(x + 32, BOTTOM + 15, f"{reward}".replace("-", "−")))
    names = (("as written", "muted", 62), ("β 1", "token", 150), ("β 0.25", "query", 214))
    legend = [
        box(x - 44 + 8 * i, 34, 12, 12, role, radius=2) for i, (_, role, x) in enumerate(names)
    ]
    legend += [
        note(x - 28 + 8 * i, 40, name, role, "start") for i, (name, role, x) in enumerate(names)
    ]
    floor = line(f"M8 {BOTTOM}H332", "muted")
    under = note(170, BOTTOM + 36, "reward of a story; shares in %")
    return panel(340, BOTTOM + 48, legend, floor, pieces, under, title="How often each is written")


def place(found: list[float]) -> tuple[float, float]:
    """Where a divergence and a reward lie."""
    return LEFT + NAT * found[0], BOTTOM - 8 - POINT * (found[1] - 0.2)


def reach() -> Panel:
    """Draw the frontier and what lies on and below it."""
    known = world()
    points = [place(found) for found in [*known["curve"], [2.05, 2.0]]]
    path = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
    dots, words = [], []
    for beta, found in zip(BETAS, known["betas"], strict=True):
        x, y = place(found)
        dots.append(circle(x, y, 5, "token" if beta == 1 else "query", "full"))
        words.append(text(x - 8, y - 12, f"β {beta:g}", "token" if beta == 1 else "query",
                          anchor="end", size=12.5))  # fmt: skip
    for n, found in zip(BEST_OF, known["best of"], strict=True):
        x, y = place(found)
        dots.append(circle(x, y + 1, 5, "key"))
        words.append(note(x + 9, y + 15, f"best of {n}", "key", "start" if n < 16 else "middle"))
    axes = [arrow((LEFT, BOTTOM), (LEFT, 30)), arrow((LEFT, BOTTOM), (336, BOTTOM))]
    marks = [note(LEFT - 8, place([0, r])[1], str(r), anchor="end") for r in (1, 2)]
    marks += [note(place([k, 0])[0], BOTTOM + 14, str(k)) for k in (0, 1, 2)]
    told = [note(110, 46, "out of reach", "loss"), note(190, BOTTOM + 36, "divergence, nats")]
    return panel(340, BOTTOM + 48, axes, marks, line(path, "ink", "thick"), dots, words, told,
                 title="What can be reached: mean reward")  # fmt: skip
