"""The drawing of the chapter "Fine-tuning"."""

from drawings.parts import Panel, arrow, box, cells, drawing, join, line, note, panel, text

CELL = 14
SHADES = [[0.7, 0.2, 0.5, 0.9, 0.1, 0.4], [0.3, 0.8, 0.1, 0.4, 0.6, 0.2]]
SHADES += [[0.5, 0.1, 0.9, 0.2, 0.3, 0.7], [0.2, 0.6, 0.4, 0.1, 0.8, 0.5]]
SHADES += [[0.9, 0.4, 0.2, 0.6, 0.1, 0.3], [0.1, 0.5, 0.7, 0.3, 0.4, 0.8]]
DOWN = [[0.8, 0.3], [0.4, 0.9], [0.6, 0.2], [0.2, 0.7], [0.9, 0.5], [0.3, 0.6]]
UP = [[0.4, 0.8, 0.3, 0.6, 0.9, 0.2], [0.7, 0.2, 0.9, 0.4, 0.3, 0.6]]


@drawing
def lora() -> list[Panel]:
    """One weight with its LoRA, the same weight after the merge, and where in a block they stand.

    On the left the weight W, a square of six rows and six columns, grey: it is frozen. Added to
    it is the product of two thin matrices in colour: A with six rows and two columns, and B with
    two rows and six columns. They alone learn. Then, after the merge, there is one square of six
    by six again, of mixed numbers. In the last picture the residual stream runs through a block;
    the boxes q, k, v and out of the attention, and the two boxes of the MLP, each have their thin
    pair beside them, and the stream itself stays as it was.
    """
    return [beside(), merged(), in_the_stream()]


def beside() -> Panel:
    """Draw a weight and the two thin matrices, with their shapes."""
    top = 56
    return panel(
        300,
        190,
        cells(0, top, SHADES, "muted", CELL),
        join(104, top + 42),
        cells(124, top, DOWN, "key", CELL),
        cells(162, top + 28, UP, "value", CELL),
        text(42, top - 14, "W", face="bold"),
        text(138, top - 14, "A", "key", face="bold"),
        text(204, top + 14, "B", "value", face="bold"),
        note(42, top + 100, "(in, out)"),
        note(138, top + 100, "(in, r)", "key"),
        note(204, top + 72, "(r, out)", "value"),
        note(42, top + 120, "frozen"),
        note(168, top + 120, "these learn", "ink"),
        title="While it learns",
    )


def merged() -> Panel:
    """Draw the sum as one weight."""
    top, mixed = 56, [[(a + b) / 2 for a, b in zip(*rows, strict=True)] for rows in mixing()]
    return panel(
        110,
        190,
        cells(0, top, mixed, "query", CELL),
        text(42, top - 14, "W + s A B", face="bold"),
        note(42, top + 100, "(in, out)"),
        note(42, top + 120, "a plain weight"),
        title="After the merge",
    )


def mixing() -> list[tuple[list[float], list[float]]]:
    """Pair the rows of W with those of the product."""
    columns = list(zip(*UP, strict=True))
    rows = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in columns] for x in DOWN]
    return list(zip(SHADES, rows, strict=True))


def in_the_stream() -> Panel:
    """Draw a block on its stream, and a thin pair at each of its six Linears."""
    stream, middle = 164, 84
    names = [("q", 40, 46), ("k", 40, 74), ("v", 40, 102), ("out", 96, 74)]
    names += [("1", 206, 74), ("2", 256, 74)]
    pieces = [linear(x, y, name) for name, x, y in names]
    mixes = [arrow((76, y + 10), (94, middle), head=y == 74) for y in (46, 74, 102)]
    return panel(
        340,
        196,
        line(f"M0 {stream}H332", "ink", "thick"),
        arrow((320, stream), (338, stream), role="ink"),
        [arrow((16, stream), (16, y + 10), (38, y + 10)) for y in (46, 74, 102)],
        mixes,
        arrow((132, middle), (158, middle), (158, stream - 10)),
        arrow((184, stream), (184, middle), (204, middle)),
        arrow((242, middle), (254, middle)),
        arrow((292, middle), (312, middle), (312, stream - 10)),
        pieces,
        join(158, stream, role="ink"),
        join(312, stream, role="ink"),
        note(86, 136, "attention"),
        note(249, 112, "MLP"),
        note(166, 186, "the stream"),
        title="In a block",
    )


def linear(x: float, y: float, name: str) -> str:
    """Draw a frozen Linear with its thin pair at the right edge."""
    return (
        box(x, y, 30, 20, "muted", name, radius=3)
        + box(x + 31, y, 3, 20, "key", kind="full", radius=1)
        + box(x + 35, y, 3, 20, "value", kind="full", radius=1)
    )
