"""The drawings of the part Attention."""

from math import cos, pi, sin

from drawings.parts import (
    Panel,
    arrow,
    box,
    bracket,
    cells,
    circle,
    column,
    curve,
    drawing,
    line,
    note,
    panel,
    softmax,
    text,
    vector,
)

TOKENS = ("dog", "barked", "because", "it")
SCORES = (2.0, 1.0, 0.0, 1.0)  # of the query of "it" with each key
VALUES = ((0.9, 0.2, 0.6), (0.1, 0.8, 0.3), (0.3, 0.3, 0.1), (0.5, 0.1, 0.9))
KEYS = ((0.8, 0.2, 0.7), (0.3, 0.5, 0.6), (0.1, 0.7, 0.2), (0.5, 0.3, 0.5))
QUERY = (0.9, 0.1, 0.8)
PLACES = (48, 130, 212, 294)  # of the tokens, from left to right


def tokens(y: float) -> list[str]:
    """Write the four tokens in a line."""
    return [box(x - 36, y, 72, 26, "token", name) for x, name in zip(PLACES, TOKENS, strict=True)]


@drawing
def scaled_dot_product() -> list[Panel]:
    """Four steps, each above the four tokens: dog, barked, because, it.

    One: every token has a key and a value, small columns of cells; the last, it, also sends out
    a query. Two: the query of it meets the key of each token, and at each an arrow brings a
    score: made up, 2, 1, 0 and 1. Three: a softmax makes weights of the scores, drawn as bars:
    53, 20, 7 and 20 percent, which sum to one. Four: each value is taken with its weight, a thick
    arrow from dog and thin ones from the others, and their sum is the new vector of it.
    """
    weights = softmax(SCORES)
    return [keys_and_values(), meeting(), weighing(weights), taking(weights)]


def keys_and_values() -> Panel:
    """Draw what every token offers, and the query of the last."""
    offers = [
        column(x - 24, 80, k, "key", 18) + column(x + 6, 80, v, "value", 18)
        for x, k, v in zip(PLACES, KEYS, VALUES, strict=True)
    ]
    names = [
        text(x - 15, 66, "k", "key", face="italic") + text(x + 15, 66, "v", "value", face="italic")
        for x in PLACES
    ]
    return panel(
        340,
        190,
        tokens(160),
        [arrow((x, 160), (x, 138)) for x in PLACES],
        offers,
        names,
        question(34),
        note(214, 43, "only “it” asks here", anchor="end"),
        title="1  Keys, values and a query",
    )


def question(y: float) -> str:
    """Draw the query of the last token."""
    x = PLACES[-1]
    return vector(x - 27, y, QUERY, "query", 18) + text(x - 36, y + 8, "q", "query", face="italic")


def meeting() -> Panel:
    """Draw the query on its way to every key, and the scores."""
    *others, own = PLACES
    ways = [curve((own, 50), (own - 10, 78), (x + 4, 100), "query") for x in others]
    scores = [
        text(x, 140, f"{s:g}", "query", face="mono", size=16)
        for x, s in zip(PLACES, SCORES, strict=True)
    ]
    return panel(
        340,
        190,
        tokens(160),
        question(30),
        ways,
        arrow((own, 50), (own, 100), role="query"),
        [vector(x - 27, 104, k, "key", 18) for x, k in zip(PLACES, KEYS, strict=True)],
        scores,
        title="2  The query meets every key",
    )


def weighing(weights: list[float]) -> Panel:
    """Draw the weights as bars."""
    bars = [
        box(x - 18, 132 - 150 * w, 36, 150 * w, "query", kind="full", radius=2)
        + text(x, 145, f"{100 * w:.0f} %", "query", size=13)
        for x, w in zip(PLACES, weights, strict=True)
    ]
    return panel(
        340,
        190,
        tokens(160),
        bars,
        arrow((8, 132.5), (334, 132.5), head=False),
        note(340, 52, "together 100 %", anchor="end"),
        title="3  Softmax makes weights",
    )


def taking(weights: list[float]) -> Panel:
    """Draw the values on their way, and their sum."""
    total = [sum(w * v[i] for w, v in zip(weights, VALUES, strict=True)) for i in range(3)]
    return panel(
        340,
        190,
        tokens(160),
        [vector(x - 27, 132, v, "value", 18) for x, v in zip(PLACES, VALUES, strict=True)],
        [weighted(x, w) for x, w in zip(PLACES, weights, strict=True)],
        vector(PLACES[3] - 27, 34, total, "value", 18),
        note(PLACES[3] - 40, 43, "the new vector of “it”", anchor="end"),
        title="4  The values come, each by its weight",
    )


def weighted(x: float, weight: float) -> str:
    """Draw the way of a value, as thick as its weight."""
    path = f"M{x} 128C{x} 84 {PLACES[3]} 104 {PLACES[3]} 56"
    return line(path, "value", width=1 + 11 * weight)


HEADS = ("token", "position")


@drawing
def multi_head() -> list[Panel]:
    """Four vectors of eight cells each are cut in the middle.

    The left four cells of all of them go to head 1, the right four to head 2. Each head has a
    triangle of weights of its own, for no token looks ahead: head 1 looks mostly at the token
    before, head 2 mostly at the first. Their results are laid side by side again, eight cells to a
    token, and a last matrix mixes what the heads have found.
    """
    halves = [
        [[0.2, 0.7, 0.4, 0.9], [0.8, 0.1, 0.6, 0.3], [0.5, 0.5, 0.1, 0.7], [0.1, 0.9, 0.8, 0.2]],
        [[0.9, 0.3, 0.7, 0.6], [0.4, 0.6, 0.2, 0.1], [0.3, 0.8, 0.5, 0.4], [0.7, 0.2, 0.9, 0.5]],
    ]
    patterns = [
        [[1.0], [0.9, 0.1], [0.1, 0.8, 0.1], [0.0, 0.1, 0.8, 0.1]],
        [[1.0], [0.8, 0.2], [0.7, 0.1, 0.2], [0.7, 0.1, 0.1, 0.1]],
    ]
    left, right = 62, 206  # of the heads
    pieces: list[str] = []
    for h, (role, x) in enumerate(zip(HEADS, (left, right), strict=True)):
        pattern, whole = patterns[h], 98 + 72 * h
        mixed = [
            [sum(w * r[c] for w, r in zip(row, halves[h], strict=False)) for c in range(4)]
            for row in pattern
        ]
        pieces += [
            cells(whole, 26, halves[h], role, 18),
            arrow((whole + 36, 98), (whole + 36, 110), (x + 36, 110), (x + 36, 146), role=role),
            text(
                x + (-8 if h == 0 else 80),
                132,
                f"head {h + 1}",
                role,
                face="bold",
                anchor="end" if h == 0 else "start",
            ),
            cells(x, 150, [[*row, *[None] * (4 - len(row))] for row in pattern], role, 18),
            arrow((x + 36, 224), (x + 36, 244), (whole + 36, 244), (whole + 36, 260), role=role),
            cells(whole, 262, mixed, role, 18),
        ]
    pieces += [
        bracket(98, 24, 144, side="above"),
        text(170, 9, "d = 8", size=13),
        note(90, 60, "four tokens", anchor="end"),
        note(170, 178, "who looks"),
        note(170, 194, "at whom"),
        note(250, 60, "cut", anchor="start"),
        note(250, 298, "side by side", anchor="start"),
        arrow((170, 338), (170, 356)),
        box(110, 356, 120, 28, "norm", "mix the heads"),
    ]
    return [panel(340, 386, pieces)]


@drawing
def positions_in_attention() -> list[Panel]:
    """Two dials, and a triangle of numbers.

    On the first dial a query stands at position 5 and a key at position 3. Position p turns by the
    angle pω: the query by five steps, the key by three, and the angle between the two is 2ω. On the
    second both have moved four positions on, to 9 and 7: both hands point elsewhere, and the angle
    between them is still 2ω. In the triangle, ALiBi, each row is a query and each column a key: on
    the diagonal stands 0, beside it −1, then −2, and so on to −5. Times a slope, these numbers are
    added to the scores: what is farther away gets less. Above the diagonal stands nothing, for
    later keys are hidden.
    """
    far = [[str(k - q).replace("-", "−") for k in range(q + 1)] for q in range(6)]
    alibi = panel(
        218,
        254,
        cells(45, 62, far, "position", 27),
        line("M73 63H206V223", "position", "dashed", 0.75),
        note(164, 84, "later keys"),
        note(164, 100, "are hidden"),
        text(126, 48, "keys", "key", size=13),
        text(39, 76, "query", "query", size=13, anchor="end"),
        note(109, 242, "added to the scores, times a slope"),
        title="ALiBi: farther is less",
    )
    return [
        dial(5, 3, "Query at 5, key at 3", "position p turns by the angle pω"),
        dial(9, 7, "Both four positions later", "the angle between stays 2ω"),
        alibi,
    ]


def dial(query: int, key: int, title: str, remark: str, step: float = 22.5) -> Panel:
    """Draw a query and a key, rotated by their positions."""
    x, y, radius = 109, 138, 74

    def hand(degrees: float, length: float) -> tuple[float, float]:
        angle = pi * degrees / 180
        return x + length * cos(angle), y - length * sin(angle)

    steps = [
        arrow(hand(step * i, radius - 4), hand(step * i, radius + 1), head=False) for i in range(16)
    ]
    pieces = []
    for position, role, name in ((query, "query", "q"), (key, "key", "k")):
        tip, where = hand(step * position, radius - 8), hand(step * position, radius + 17)
        pieces += [
            arrow((x, y), tip, role=role, kind="line"),
            text(*where, f"{name}_{position}", role, face="italic", size=16),
        ]
    (ax, ay), (bx, by) = hand(step * key, 34), hand(step * query, 34)
    between = f"M{x} {y}L{ax:.2f} {ay:.2f}A34 34 0 0 0 {bx:.2f} {by:.2f}z"
    word = hand(step * (query + key) / 2, 54)
    return panel(
        218,
        254,
        circle(x, y, radius, "muted", "frame"),
        steps,
        line(between, "position", "plain"),
        pieces,
        circle(x, y, 3, "ink", "full"),
        text(*word, "2ω", "position", size=15),
        note(x, 234, remark),
        title=title,
    )
