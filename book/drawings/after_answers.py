"""The drawing of the chapter "A model that answers"."""

from drawings.parts import Panel, box, drawing, line, note, panel, text

AT_THE_POND = [("duck", 0.5), ("frog", 0.4), ("goat", 0.1)]
BELIEVED = [("duck", 0.468), ("frog", 0.423), ("goat", 0.084)]  # by the answering GPT
WIDE, LEFT = 232, 100


@drawing
def a_model_that_answers() -> list[Panel]:
    """A story, a question and an answer in one row of tokens; an answer beside what can be known.

    On the left the row, in four lines. Story: Tom walked to the pond. There he met a. Then
    the special token user and the question: Which animal? Then the special token assistant and, in
    the colour of the loss, the answer: duck, and the special token end. A bracket says that these
    two alone count. On the right three bars for the animal that will come. What can be known: duck
    a half, frog four tenths, goat one tenth. What the model believes: nearly the same. What it
    says: duck, over the whole width, and beside it: wrong half of the time.
    """
    return [the_row(), the_answer()]


def the_row() -> Panel:
    """Draw the tokens, and which of them the loss counts."""
    special = [(8, 76, 76, "<|user|>"), (8, 114, 112, "<|assistant|>")]
    return panel(
        320,
        176,
        box(8, 36, 300, 26, "muted", kind="box", radius=3),
        text(158, 49, "… walked to the pond. There he met a", size=13),
        [box(x, y, w, 26, "position", kind="box", radius=3) for x, y, w, _ in special],
        [
            text(x + w / 2, y + 13, name, "position", size=13, face="mono")
            for x, y, w, name in special
        ],
        box(90, 76, 118, 26, "muted", kind="box", radius=3),
        text(149, 89, "Which animal?", size=13),
        box(126, 114, 56, 26, "loss", kind="box", radius=3),
        text(154, 127, "duck", "loss", size=13),
        box(188, 114, 68, 26, "loss", kind="box", radius=3),
        text(222, 127, "<|end|>", "loss", size=13, face="mono"),
        line("M126 146v5h130v-5", "loss"),
        note(191, 164, "the loss counts these alone", "loss"),
        title="One row of tokens",
    )


def the_answer() -> Panel:
    """Draw what can be known of the animal, what is believed, and what is said."""
    return panel(
        340,
        176,
        bar(46, "can be known", AT_THE_POND),
        bar(80, "is believed", BELIEVED),
        bar(114, "is said", [("duck", 1.0)]),
        note(LEFT + WIDE / 2, 152, "wrong half of the time", "loss"),
        title="Which animal comes?",
    )


def bar(y: float, name: str, parts: list[tuple[str, float]]) -> list[str]:
    """Draw a bar that is divided among animals."""
    pieces, x = [text(LEFT - 8, y + 11, name, anchor="end", size=13)], float(LEFT)
    for role, (animal, share) in zip(("query", "key", "value"), parts, strict=False):
        pieces.append(box(x, y, share * WIDE, 22, role, kind="box", radius=2))
        if share > 0.2:
            pieces.append(text(x + share * WIDE / 2, y + 11, animal, size=12.5))
        x += share * WIDE
    return pieces
