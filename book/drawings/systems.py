"""The drawings of the part Systems."""

from typing import Any

from drawings.parts import Panel, arrow, box, cells, drawing, line, note, panel, text

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


LOSSES = (  # what each run is, what it lacks in size, what it lacks in reading
    (("small", "short"), 54, 42),
    (("large", "short"), 14, 42),
    (("small", "long"), 54, 10),
    (("large", "long"), 14, 10),
)


@drawing
def scaling() -> list[Panel]:
    """Two pictures.

    In the first, four columns stand for the loss of four runs: a small model and a large one,
    trained briefly and for long. Each is made of three pieces. The lowest, E, is equally high in
    all, up to a dashed line, the floor. The piece on it is what the model lacks in size, high for
    the small models; the topmost is what it lacks in reading, high for the short runs. In the
    second, three rectangles of equal area, the computation, have the parameters for their height
    and the tokens for their width: one is tall and narrow, too large a model; one is low and wide,
    too small a model; between them stands the best one.
    """
    return [three_terms(), three_ways()]


def three_terms() -> Panel:
    """Draw the losses of four runs, each in three pieces."""
    bottom, floor = 178, 44
    columns = []
    for i, (names, size, reading) in enumerate(LOSSES):
        x, tops = 70 + 66 * i, (bottom - floor, bottom - floor - size)
        columns += [
            box(x, tops[0], 44, floor, "muted", radius=1),
            box(x, tops[1], 44, size, "key", radius=1),
            box(x, tops[1] - reading, 44, reading, "value", radius=1),
            [note(x + 22, bottom + 12 + 15 * n, name) for n, name in enumerate(names)],
        ]
    return panel(
        340,
        220,
        columns,
        line(f"M62 {bottom - floor}H332", "ink", "dashed"),
        line(f"M62 {bottom}H332"),
        text(56, 60, "reading", "value", anchor="end", size=13),
        text(56, 108, "size", "key", anchor="end", size=13),
        text(56, 156, "E", "ink", anchor="end", face="bold"),
        title="1  What a loss is made of",
    )


def three_ways() -> Panel:
    """Draw three rectangles of one area."""
    bottom, area, x, pieces = 178, 5200, 36, []
    for width, role, words in (
        (42, "muted", "too large"),
        (80, "query", "best"),
        (142, "muted", "too small"),
    ):
        height = area / width
        pieces += [
            box(x, bottom - height, width, height, role, radius=2),
            note(x + width / 2, bottom - height - 10, words, role),
        ]
        x += width + 12
    return panel(
        340,
        212,
        pieces,
        arrow((20, bottom), (336, bottom)),
        arrow((20, bottom), (20, 34)),
        text(12, 106, "N", "key", face="bold"),
        text(178, 196, "D, the tokens", "value", size=13),
        title="2  The same computation, three ways",
    )


RANKS = ("query", "key", "value", "norm")


@drawing
def more_than_one_machine() -> list[Panel]:
    """Data over several machines, in two pictures.

    On the left a batch of eight rows in four colours, two rows of each. An arrow leads from each
    pair of rows to a machine, rank 0 to rank 3. Each machine holds the whole model, and gives its
    own gradient. On the right the four machines stand in a ring. Each sends one of four pieces of
    its gradient to the next, all at the same time, until every machine has the sum of each piece.
    """
    return [shares(), in_a_ring()]


def shares() -> Panel:
    """Draw the rows of a batch, and who reads them."""
    pieces: list[Any] = [note(42, 44, "a batch"), note(181, 44, "a model each")]
    for rank, role in enumerate(RANKS):
        y = 58 + 42 * rank
        pieces += [
            cells(0, y, [[0.4, 0.7, 0.2, 0.9, 0.5], [0.8, 0.3, 0.6, 0.4, 0.7]], role, 16),
            arrow((88, y + 16), (132, y + 16)),
            box(136, y, 90, 32, role, f"rank {rank}"),
            arrow((230, y + 16), (262, y + 16), role="gradient"),
            cells(268, y + 8, [[0.6, 0.3, 0.8, 0.5]], role, 16),
        ]
    return panel(340, 232, pieces, note(300, 44, "gradient", "gradient"), title="Each its rows")


def in_a_ring() -> Panel:
    """Draw the ring, and what each sends in the first step."""
    corners = [(20, 56), (220, 56), (220, 172), (20, 172)]
    pieces: list[Any] = []
    for rank, (role, (x, y)) in enumerate(zip(RANKS, corners, strict=True)):
        pieces.append(box(x, y, 90, 32, role, f"rank {rank}"))
    for rank, (start, end, spot) in enumerate(
        [
            ((112, 72), (218, 72), (157, 50)),
            ((265, 90), (265, 170), (275, 122)),
            ((218, 188), (112, 188), (157, 196)),
            ((65, 170), (65, 90), (39, 122)),
        ]
    ):
        pieces += [arrow(start, end, role="gradient"), cells(*spot, [[0.6]], RANKS[rank], 16)]
    return panel(
        330, 232, pieces, note(165, 130, "all at once,"), note(165, 148, "a piece at a time"),
        title="A ring for the sum",
    )  # fmt: skip
