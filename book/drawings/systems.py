"""The drawings of the part Systems."""

from drawings.parts import Panel, arrow, box, drawing, note, panel, text

STEPS = ("× 0.5", "tanh", "+ 1", "× 2")


@drawing
def why_it_is_fast() -> list[Panel]:
    """Two ways through the same four operations, with the memory as a long bar below them.

    One operation at a time: each of the four is a call of its own, fetches a whole array from
    memory and puts a whole array back, eight arrows in all. Fused: the four stand in one box,
    there is one call, one array comes up and one goes down. The arithmetic is the same.
    """
    chain = []
    for i, name in enumerate(STEPS):
        x = 4 + 86 * i
        chain += [
            box(x, 58, 74, 34, "value", name),
            arrow((x + 22, 142), (x + 22, 96), role="key"),
            arrow((x + 52, 92), (x + 52, 138), role="query"),
            note(x + 37, 44, "call"),
        ]
    apart = panel(
        340,
        196,
        chain,
        memory(),
        title="One at a time: four calls, eight trips",
    )
    fused = panel(
        340,
        196,
        box(4, 54, 332, 42, "value", kind="frame", radius=10),
        [text(45 + 83 * i, 75, name, "value", face="bold") for i, name in enumerate(STEPS)],
        arrow((45, 142), (45, 100), role="key"),
        arrow((295, 96), (295, 138), role="query"),
        note(170, 42, "call"),
        note(54, 120, "in", anchor="start"),
        note(286, 120, "out", anchor="end"),
        memory(),
        title="Fused: one call, two trips",
    )
    return [apart, fused]


def memory() -> str:
    """Draw the memory, under everything."""
    return box(0, 142, 340, 40, "norm", "memory")
