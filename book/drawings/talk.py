"""The drawing of the chapter "Talk to a published model"."""

from drawings.parts import Panel, arrow, box, bracket, cells, drawing, note, panel, text

# of the first block of blk.0.attn_q.weight, whose first byte holds a 5 and a 4
SCALE, SMALLEST = 0.12683, -0.73047
LOW, HIGH = 5, 4


@drawing
def four_bits() -> list[Panel]:
    """A group of twenty bytes, and one of its bytes, which holds two of its 32 numbers.

    On the left a row of twenty cells: two are marked as the scale, 0.12683, two as the smallest
    number, −0.73047, and sixteen as two integers each. On the right the first of these sixteen
    bytes as eight bits, 0100 and 0101. The low half is 5 and becomes number 0, 0.12683 times 5
    minus 0.73047, which is −0.0963; the high half is 4 and becomes number 16, −0.2231.
    """
    return [block(), byte()]


def block() -> Panel:
    """Draw the bytes of a block."""
    wide = 17
    pieces = [
        cells(0, 66, [[""] * 2], "query", (wide, 30)),
        cells(2 * wide, 66, [[""] * 2], "norm", (wide, 30)),
        cells(4 * wide, 66, [[""] * 16], "value", (wide, 30)),
        bracket(0, 102, 2 * wide),
        bracket(2 * wide, 102, 2 * wide),
        bracket(4 * wide, 102, 16 * wide, "16 bytes: 32 integers of four bits"),
        text(0, 46, f"scale {SCALE}", "query", size=12.5, anchor="start"),
        arrow((wide, 53), (wide, 65), role="query"),
        text(0, 132, f"smallest {minus(SMALLEST, 5)}", "norm", size=12.5, anchor="start"),
        arrow((3 * wide, 124), (3 * wide, 106), role="norm"),
    ]
    return panel(340, 148, pieces, title="A group: 20 bytes for 32 numbers")


def byte() -> Panel:
    """Draw one byte, and the two numbers that it becomes."""
    pieces = []
    for x, half, which in ((20, HIGH, 16), (180, LOW, 0)):
        number = SCALE * half + SMALLEST
        pieces += [
            cells(x, 40, [list(f"{half:04b}")], "value", (34, 30)),
            arrow((x + 68, 72), (x + 68, 92), role="value"),
            text(x + 68, 102, f"q = {half}", "value", face="bold"),
            note(x + 68, 126, f"{SCALE} · {half} − {-SMALLEST}"),
            box(x + 8, 140, 120, 28, "token", f"{minus(number, 4)}", radius=5),
            note(x + 68, 182, f"number {which}", "token"),
        ]
    return panel(340, 194, pieces, title="One byte: two numbers")


def minus(number: float, digits: int) -> str:
    """Write a number with a true minus sign."""
    return f"{number:.{digits}f}".replace("-", "−")
