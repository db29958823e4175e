"""The drawings of the chapter on GPT-2's published weights."""

import re
import textwrap
from typing import Any

from drawings.parts import Panel, arrow, box, cells, drawing, note, panel, text
from tinytorch.models.gpt2 import KNOWN

GIVEN = 2  # tokens of "The dog"
# by test_lm_generate_gpt2 of huggingface/transformers, as in tinytorch/models/gpt2/verifying.py
THE_DOG = (464, 3290, 373, 1043, 287, 257, 2214, 1474, 262, 16246,
           286, 2688, 290, 2688, 27262, 13, 198, 198, 464, 3290)  # fmt: skip

PLAIN = str.maketrans({"_": "_\u200b"})  # no letter is set lower after it
IN_A_BLOCK = [
    ("ln_1", ["ln1"], "norm"),
    ("attn.c_attn", ["q", "k", "v"], "query"),
    ("attn.c_proj", ["out_\u200bproj"], "query"),
    ("ln_2", ["ln2"], "norm"),
    ("mlp.c_fc", ["linear1"], "value"),
    ("mlp.c_proj", ["linear2"], "value"),
]


@drawing
def gpt2_file() -> list[Panel]:
    """A list of names at the left, the file, and the model at the right, with an arrow for each.

    wte goes to the token table, from which a second, dotted arrow leads to the logits, and wpe to
    the positions. In a frame that stands for each of the twelve blocks, ln_1 goes to the first
    norm; c_attn to three boxes, q, k and v; attn.c_proj to the output of attention; ln_2 to the
    second norm; mlp.c_fc and mlp.c_proj to the two layers of the MLP. The mask, attn.bias, goes
    nowhere. At the bottom ln_f goes to the last norm.
    """
    left, right, wide = 6, 188, 126
    pieces = [
        note(left + wide / 2, 38, "in the file"),
        note(right + wide / 2, 38, "in our GPT"),
        box(0, 120, 322, 246, "muted", kind="dashed", radius=8),
        note(161, 133, "h.0 to h.11: the blocks"),
    ]

    def row(y: float, there: str, here: list[str], role: str) -> list[Any]:
        return [
            box(left, y, wide, 26, role, radius=5),
            text(left + wide / 2, y + 13, there.translate(PLAIN), role, size=12.5, face="mono"),
            arrow((left + wide, y + 13), (right - 2, y + 13), role=role),
            [
                box(right + n * wide / len(here), y, wide / len(here) - 2, 26, role, radius=5)
                + text(right + (n + 0.5) * wide / len(here), y + 13, name, role, size=12.5)
                for n, name in enumerate(here)
            ],
        ]

    pieces += [
        row(50, "wte", ["token table"], "token"),
        row(84, "wpe", ["positions"], "position"),
    ]
    for i, (there, here, role) in enumerate(IN_A_BLOCK):
        pieces.append(row(150 + 30 * i, there, here, role))
    pieces += [
        box(left, 332, wide, 26, "muted", kind="dashed", radius=5),
        text(left + wide / 2, 345, "attn.bias", "muted", size=12.5, face="mono"),
        note(right - 44, 345, "a mask, not a weight", anchor="start"),
        row(376, "ln_f", ["last norm"], "norm"),
        box(right, 412, wide, 26, "token", radius=5),
        text(right + wide / 2, 425, "logits", "token", size=12.5),
        arrow((314, 63), (334, 63), (334, 425), (316, 425), role="token", kind="dotted"),
    ]
    return [panel(340, 442, pieces, title="Where each array goes")]


ROW = (0.60, -1.27, 0.02, 0.33)


@drawing
def quantised_row() -> list[Panel]:
    """A row of four numbers, 0.60, −1.27, 0.02 and 0.33, becomes four integers and a scale.

    The number furthest from 0, −1.27, is marked; divided by 127 it gives the scale 0.01. Every
    number divided by the scale and rounded is an integer of one byte: 60, −127, 2 and 33. Below,
    the row takes 16 bytes before and 8 after, 4 of them for the scale.
    """
    scale = max(map(abs, ROW)) / 127

    def written(number: float, digits: int) -> str:
        return f"{number:.{digits}f}".replace("-", "−")

    floats = [written(number, 2) for number in ROW]
    whole = [written(round(number / scale), 0) for number in ROW]
    largest = max(range(len(ROW)), key=lambda i: abs(ROW[i]))
    before = panel(
        340,
        92,
        note(0, 50, "float32", anchor="start"),
        cells(72, 36, [floats], "muted", (64, 28)),
        box(72 + 64 * largest, 36, 64, 28, "query", kind="frame", radius=3),
        text(72 + 64 * largest + 32, 80, "÷ 127", "query", size=13),
        title="One row of a matrix",
    )
    after = panel(
        340,
        122,
        note(0, 50, "int8", anchor="start"),
        cells(72, 36, [whole], "value", (64, 28)),
        note(0, 90, "scale", anchor="start"),
        cells(72, 76, [[written(scale, 2)]], "query", (64, 28)),
        note(148, 90, "one a row, in float32", anchor="start"),
        note(0, 114, "16 bytes before, 8 after; of 768 numbers, 3,072 and 772", anchor="start"),
        title="The same row in 8 bits",
    )
    return [before, after]


@drawing
def gpt2_writes() -> list[Panel]:
    """The twenty tokens of a text of GPT-2 small, four in a row, with the id of each under it.

    The first two, "The" and "dog", are given and stand in another colour. The other eighteen are
    written, each the likeliest: was found in a field near the intersection of West and West
    Streets, a full stop, two line ends, and again "The" and "dog". Below, the beginnings "Hello,
    my dog is a little", "Today, I" and "The flying machine" with their continuations.
    """
    words = re.findall(r" ?\w+|[.\n]", KNOWN[0][0] + KNOWN[0][1])
    pieces: list[Any] = []
    for i, (word, token) in enumerate(zip(words, THE_DOG, strict=True)):
        x, y, role = 86 * (i % 4), 38 + 50 * (i // 4), "query" if i < GIVEN else "value"
        pieces += [
            box(x, y, 80, 28, role, radius=5),
            text(x + 40, y + 14, word.strip() or "↵", role, size=12.5 if len(word) > 9 else 14),
            note(x + 40, y + 39, str(token)),
        ]
    pieces += [note(0, 298, "given", "query", anchor="start")]
    pieces += [note(46, 298, "then 18 times the likeliest token", "value", anchor="start")]
    wide = panel(340, 308, pieces, title="Each token, and its number of 50,257")
    lines: list[Any] = []
    y = 46
    for beginning, goes_on, _ in KNOWN[1:]:
        lines.append(text(0, y, beginning, "query", size=13, anchor="start", face="bold"))
        for row in textwrap.wrap("…" + goes_on.strip(), 46):
            y += 19
            lines.append(text(0, y, row, "value", size=13, anchor="start"))
        y += 32
    return [wide, panel(340, 258, lines, title="Three more")]
