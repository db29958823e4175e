"""The drawing of the chapter "A smaller model, a faster one"."""

from drawings.parts import Panel, arrow, box, circle, drawing, line, note, panel, text

TOKENS = "fox", "owl", "bear"
TARGET, DRAFT = (0.5, 0.3, 0.2), (0.3, 0.3, 0.4)
FLOOR, HIGH, STEP = 176, 220, 104  # pixels: where the bars stand, of a whole, between tokens
DRAFTED = (("met", True), ("a", True), ("bear", False), ("who", None))


@drawing
def smaller_and_faster() -> list[Panel]:
    """Two forecasts and what both cover; four drafted tokens, checked in one reading.

    On the left pairs of bars for three tokens. Fox: the large model says 50 %, the draft 30 %.
    Owl: 30 % and 30 %. Bear: 20 % and 40 %. The part that both reach is filled, 30, 30 and 20 %: 80
    % of the drafts are kept. Above the filled part, fox has 20 % that only the large model covers:
    what is not kept is replaced by fox. On the right a row of four drafted tokens: met, a, bear,
    who. An arrow over all four says: one reading by the large model. Under met and a stands kept;
    under bear, in the colour of the loss, replaced by fox; who is grey: thrown away.
    """
    return [overlap(), reading()]


def overlap() -> Panel:
    """Draw both forecasts, and what they have in common."""
    pieces = []
    for i, (name, p, q) in enumerate(zip(TOKENS, TARGET, DRAFT, strict=True)):
        x, both = 24 + STEP * i, min(p, q)
        for j, (share, role) in enumerate(((p, "token"), (q, "query"))):
            left, high = x + 44 * j, HIGH * share
            pieces.append(
                box(left, FLOOR - HIGH * both, 40, HIGH * both, role, kind="full", radius=2)
            )
            if share > both:
                pieces.append(box(left, FLOOR - high, 40, HIGH * (share - both), role, radius=2))
            pieces.append(note(left + 20, FLOOR - high - 9, f"{100 * share:.0f}", role))
        pieces.append(text(x + 42, FLOOR + 15, name))
    legend = []
    for x, role, name in ((24, "token", "the large model, p"), (188, "query", "the draft, q")):
        legend += [box(x, 30, 12, 12, role, radius=2), note(x + 18, 36, name, role, "start")]
    floor = line(f"M8 {FLOOR}H332", "muted")
    under = note(170, FLOOR + 36, "filled: what both cover, 80 % – so much is kept")
    return panel(
        340, FLOOR + 48, legend, floor, pieces, under, title="Which token comes next, in %"
    )


def reading() -> Panel:
    """Draw four drafted tokens, and what becomes of each."""
    pieces, wide = [], 74
    for i, (name, kept) in enumerate(DRAFTED):
        x = 12 + (wide + 8) * i
        role = {True: "query", False: "loss", None: "muted"}[kept]
        pieces.append(box(x, 84, wide, 30, role, name))
        word = {True: "kept", False: "not kept", None: "not used"}[kept]
        pieces.append(note(x + wide / 2, 130, word, role))
    at = 12 + (wide + 8) * 2 + wide / 2
    pieces.append(arrow((at, 140), (at, 160), role="token"))
    pieces.append(box(at - wide / 2, 162, wide, 30, "token", "fox"))
    over = [
        line("M12 62h320", "token", "thick"),
        *(circle(12 + (wide + 8) * i + wide / 2, 62, 4, "token", "full") for i in range(4)),
        note(172, 44, "one reading by the large model", "token"),
    ]
    under = note(170, FLOOR + 36, "three tokens for one reading")
    return panel(340, FLOOR + 48, over, pieces, under, title="Drafted one by one, checked at once")
