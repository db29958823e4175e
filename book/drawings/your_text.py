"""The drawing of the page about the reader's own text."""

from drawings.parts import Panel, arrow, box, drawing, line, note, panel, text


@drawing
def your_text() -> list[Panel]:
    """Two pictures.

    In the first a text is a long strip, cut once near its end. From the long part on the left
    arrows lead down to four readers who learn from it: the tokeniser, the model, gzip and xz.
    The short part on the right is held out, and an arrow leads from it to a box named test. In
    the second the test has been held: each reader has a bar, its bits for a byte of the short
    part. Those of gzip and xz are fixed, and each is carried on as a dashed line. The model has
    three bars, after no step, after some and after many. The first is far longer than the two
    lines, and the last ends a little before them.
    """
    return [cut_once(), who_foresees()]


def cut_once() -> Panel:
    """Draw the text, its two parts, and who reads which."""
    readers = (("tokeniser", 8, 84), ("model", 98, 62), ("gzip", 166, 46), ("xz", 218, 36))
    return panel(
        340,
        206,
        box(8, 40, 246, 34, "token", "learn from this", radius=3),
        box(260, 40, 72, 34, "query", "held out", radius=3),
        [arrow((x + width / 2, 78), (x + width / 2, 116)) for _, x, width in readers],
        [box(x, 120, width, 32, "muted", name) for name, x, width in readers],
        arrow((296, 78), (296, 116), role="query"),
        box(266, 120, 60, 32, "loss", "test"),
        note(131, 176, "nobody here has seen the end"),
        note(296, 176, "once"),
        title="1  One text, cut once",
    )


def who_foresees() -> Panel:
    """Draw the bits a byte of the compressors and of the model as it learns."""
    rows = (
        ("gzip", 112, "muted"),
        ("xz", 96, "muted"),
        ("model, no step", 220, "query"),
        ("some steps", 138, "query"),
        ("many steps", 88, "query"),
    )
    bars = []
    for i, (name, width, role) in enumerate(rows):
        y = 34 + 29 * i
        bars += [
            text(106, y + 10, name, role if role == "query" else "ink", anchor="end", size=13),
            box(112, y, width, 20, role, kind="full", radius=2),
        ]
    return panel(
        340,
        206,
        bars,
        line("M224 34V176", "muted", "dashed"),
        line("M208 63V176", "muted", "dashed"),
        note(226, 194, "bits for a byte of what was held out"),
        title="2  Who foresees the end best?",
    )
