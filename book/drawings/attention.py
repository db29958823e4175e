"""The drawings of the part Attention."""

from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any

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
    moving_data,
    note,
    panel,
    softmax,
    text,
    vector,
)
from tinytorch_book.experiments.six_tokens import FEATURES, HEADS, IDS, TABLE, WORDS

Matrix = Sequence[Sequence[float]]

TOKENS = ("Anna", "dogs", "because", "they")
QUERIES = ((2, 0, 0, 2), (1, 1, 0, 0), (0, 2, 2, 0), (2, 0, 1, 1))
KEYS = ((0, 2, 1, 1), (1, 0, 1, 1), (0, 1, 0, 0), (0.5, 0, 0, 1))
VALUES = ((0.2, 1.6, 0.6, 1.4), (1.8, 0.4, 1.2, 0.8), (0.6, 0.6, 0.2, 0.4), (1, 0.2, 1.8, 1.2))
LARGEST = 2  # of all these numbers; drawn as the darkest shade
PLACES = (48, 130, 212, 294)  # of the tokens, from left to right


def tokens(y: float) -> list[str]:
    """Write the four tokens in a line."""
    return [box(x - 36, y, 72, 26, "token", name) for x, name in zip(PLACES, TOKENS, strict=True)]


@drawing
def scaled_dot_product() -> list[Panel]:
    """Four steps, each above the four tokens: Anna, dogs, because, they.

    One: every token has a key and a value, small columns of cells; the last, they, also sends out
    a query. Two: the query of they meets the key of each token, and at each an arrow brings a
    score: made up, 1, 2, 0 and 1. Three: a softmax makes weights of the scores, drawn as bars:
    20, 53, 7 and 20 percent, which sum to one. Four: each value is taken with its weight, a thick
    arrow from dogs and thin ones from the others, and their sum is the new vector of they.
    """
    scores = [sum(q * k for q, k in zip(QUERIES[-1], key, strict=True)) / 2 for key in KEYS]
    weights = softmax(scores)
    return [keys_and_values(), meeting(scores), weighing(weights), taking(weights)]


def shades(values: Sequence[float]) -> list[float]:
    """Give the numbers of a query, key or value as shades."""
    return [value / LARGEST for value in values]


@moving_data("query-over-keys")
def all_that_is_offered() -> dict[str, Any]:
    """Give the drawing's vectors."""
    vectors = {"queries": QUERIES, "keys": KEYS, "values": VALUES}
    return {"tokens": TOKENS, **vectors, "largest": LARGEST}


def keys_and_values() -> Panel:
    """Draw what every token offers, and the query of the last."""
    offers = [
        column(x - 22, 80, shades(k), "key", 14) + column(x + 8, 80, shades(v), "value", 14)
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
        note(214, 43, "only “they” asks here", anchor="end"),
        title="1  Keys, values and a query",
    )


def question(y: float) -> str:
    """Draw the query of the last token."""
    x = PLACES[-1]
    return row_of(x, y, QUERIES[-1], "query") + text(x - 36, y + 8, "q", "query", face="italic")


def row_of(x: float, y: float, values: Sequence[float], role: str) -> str:
    """Draw a vector of four numbers; `x` is its middle."""
    return vector(x - 28, y, shades(values), role, (14, 18))


def meeting(scores: Sequence[float]) -> Panel:
    """Draw the query on its way to every key, and the scores."""
    *others, own = PLACES
    ways = [curve((own, 50), (own - 10, 78), (x + 4, 100), "query") for x in others]
    written = [
        text(x, 140, f"{s:g}", "query", face="mono", size=16)
        for x, s in zip(PLACES, scores, strict=True)
    ]
    return panel(
        340,
        190,
        tokens(160),
        question(30),
        ways,
        arrow((own, 50), (own, 100), role="query"),
        [row_of(x, 104, k, "key") for x, k in zip(PLACES, KEYS, strict=True)],
        written,
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
    total = [sum(w * v[i] for w, v in zip(weights, VALUES, strict=True)) for i in range(4)]
    return panel(
        340,
        190,
        tokens(160),
        [row_of(x, 132, v, "value") for x, v in zip(PLACES, VALUES, strict=True)],
        [weighted(x, w) for x, w in zip(PLACES, weights, strict=True)],
        row_of(PLACES[3], 34, total, "value"),
        note(PLACES[3] - 40, 43, "the new vector of “they”", anchor="end"),
        title="4  The values come, each by its weight",
    )


def weighted(x: float, weight: float) -> str:
    """Draw the way of a value, as thick as its weight."""
    path = f"M{x} 128C{x} 84 {PLACES[3]} 104 {PLACES[3]} 56"
    return line(path, "value", width=1 + 11 * weight)


# the six words that travel, without their positions
KINDS = FEATURES[:4]
X = TABLE[IDS, :4].tolist()
W_Q, W_K = (matrix[:4].tolist() for matrix in HEADS[0][:2])
ASKING = 1  # "feeds", in the page's example
REFERRING = 4  # "they"


def projected(rows: Matrix, matrix: Matrix) -> list[list[float]]:
    """Multiply rows by a matrix."""
    columns = list(zip(*matrix, strict=True))
    return [[sum(a * b for a, b in zip(row, c, strict=True)) for c in columns] for row in rows]


WANTED, FOUND = projected(X, W_Q), projected(X, W_K)


@drawing
def who_looks_at_whom() -> list[Panel]:
    """The matrix W_q of the page's six words, and arcs from one word to those it looks at.

    Four rows say what a thing, a plural, an action and a link look for. Under the matrix stand the
    query that they make for one word, they, and the words Anna feeds dogs because they bark. A
    thick arc leads to dogs, with 69 percent, a thin one to Anna, with 9. Then one number has been
    changed, what a plural looks for in plurals, from 4 to 0: two arcs of 39 percent each now lead
    to Anna and to dogs.
    """
    changed = [list(row) for row in W_Q]
    changed[1][1] = 0
    return [
        asked("“they” asks", W_Q, None),
        asked("One number less, and “they” asks again", changed, (1, 1)),
    ]


@moving_data("who-looks-at-whom")
def six_readable_words() -> dict[str, Any]:
    """Give the words, what each is, and the matrices."""
    readable = {"words": WORDS, "kinds": KINDS, "x": X}
    return readable | {"toQuery": W_Q, "toKey": W_K, "asks": REFERRING}


def asked(title: str, matrix: Matrix, changed: tuple[int, int] | None) -> Panel:
    """Draw the matrix, and where “they” looks with it."""
    [query] = projected([X[REFERRING]], matrix)
    weights = softmax([sum(q * k for q, k in zip(query, key, strict=True)) / 2 for key in FOUND])
    pieces, base = [], 268
    for i, row in enumerate(matrix):
        article = "an" if KINDS[i] == "action" else "a"
        pieces.append(note(70, 71 + 24 * i, f"{article} {KINDS[i]}", anchor="end"))
        for j, value in enumerate(row):
            loud = (i, j) == changed
            pieces.append(cells(78 + 64 * j, 60 + 24 * i, [[f"{value:g}"]], "query", (60, 22)))
            if loud:
                pieces.append(box(78 + 64 * j, 60 + 24 * i, 60, 22, "loss", kind="frame", radius=3))
    pieces.append(note(70, 177, f"so “{WORDS[REFERRING]}”", "query", anchor="end"))
    shown = [f"{value:g}".replace("-", "−") for value in query]
    pieces += [
        text(108 + 64 * j, 177, value, "query", face="mono") for j, value in enumerate(shown)
    ]
    pieces.append(arrow((78, 160.5), (330, 160.5), head=False))
    own = 27 + 57 * REFERRING
    for i, (word, weight) in enumerate(zip(WORDS, weights, strict=True)):
        x = 27 + 57 * i
        if i != REFERRING:
            high = 12 + 0.22 * abs(x - own)
            way = f"M{own} {base}Q{(own + x) / 2} {base - 2 * high} {x} {base}"
            pieces.append(line(way, "query", width=0.6 + 9 * weight))
        pieces.append(text(x, base + 14, word, "query" if i == REFERRING else "token", size=13))
        pieces.append(note(x, base + 33, f"{100 * weight:.0f} %", "query"))
    return panel(
        340,
        314,
        [note(108 + 64 * j, 48, kind) for j, kind in enumerate(KINDS)],
        note(70, 48, "looks for a", anchor="end"),
        pieces,
        box(own - 27, base + 3, 54, 22, "query", kind="frame"),
        title=title,
    )


@drawing
def hidden_future() -> list[Panel]:
    """The attention of one query, feeds, over the six words of Anna feeds dogs because they bark.

    Both times each word has a score and, above it, a bar for its weight. Without a mask the scores
    are 2, 0, 2, 0, 0 and 0; Anna gets 39 percent, and so does dogs, the next word. A bracket under
    the four later words says that 55 percent leak from there. With the causal mask the scores of
    the four later words are minus infinity and their weights nothing; Anna now gets 88 percent, and
    feeds 12.
    """
    products = [sum(q * k for q, k in zip(WANTED[ASKING], key, strict=True)) for key in FOUND]
    scores = [product / 2 for product in products]
    seen = softmax(scores[: ASKING + 1])
    later = len(scores) - len(seen)
    hidden = scores[: ASKING + 1] + [float("-inf")] * later
    weights = softmax(scores)
    return [
        looking("Without a mask", scores, weights, f"{100 * sum(weights[-later:]):.0f} % leak"),
        looking("With the causal mask", hidden, [*seen, *[0.0] * later], "blocked"),
    ]


@moving_data("causal-mask")
def six_words() -> dict[str, Any]:
    """Give the queries and keys of the page's example."""
    return {"words": WORDS, "asks": ASKING, "queries": WANTED, "keys": FOUND}


def looking(title: str, scores: list[float], weights: list[float], remark: str) -> Panel:
    """Draw what one query sees of all words; `remark` is about those that come later."""
    pieces = []
    for i, (word, score, weight) in enumerate(zip(WORDS, scores, weights, strict=True)):
        x, high, role = 27 + 57 * i, 76 * weight, "loss" if i > ASKING else "query"
        blocked = score == float("-inf")
        if not blocked:
            pieces.append(box(x - 16, 138 - high, 32, high, role, kind="full", radius=2))
            pieces.append(note(x, 128 - high, f"{100 * weight:.0f} %", role))
        written = "−∞" if blocked else f"{score:g}"
        pieces.append(text(x, 154, written, role, face="mono", size=13))
        pieces.append(text(x, 180, word, "token", size=13, face="bold" if i == ASKING else ""))
    own = 27 + 57 * ASKING
    return panel(
        340,
        222,
        note(0, 34, "weights of six keys; below, their scores", anchor="start"),
        box(own - 27, 168, 54, 24, "query", kind="frame"),
        pieces,
        arrow((0, 138.5), (340, 138.5), head=False),
        bracket(own + 31, 202, 57 * (len(WORDS) - 1 - ASKING) - 6, remark),
        title=title,
    )


SIZES = (0.53, -0.96, 0.17, 1.66, -0.17, -1.66, 0.96, -0.53)  # mean 0, mean square 1
WIDTH = 64  # d


@drawing
def root_d() -> list[Panel]:
    """The same eight dot products of vectors of 64 numbers, twice turned into weights by a softmax.

    Not divided they reach from −13.3 to 13.3; their typical size is the root of 64, which is 8.
    The largest gets all the weight that one can see, 100 percent when rounded, and below, the
    slopes w (1 − w), which say how much a weight still moves with its own score, are all next to
    nothing. Divided by 8 the scores lie between −1.66 and 1.66: the largest gets 41 percent, the
    others between 1 and 20, and every slope can be seen.
    """
    wide = [WIDTH**0.5 * size for size in SIZES]
    return [
        peak(f"d = {WIDTH}: not divided", wide, 1),
        peak(f"d = {WIDTH}: divided by √d = {WIDTH**0.5:g}", SIZES, 2),
    ]


@moving_data("root-d")
def dot_products() -> dict[str, Any]:
    """Give the dot products for d = 1, and the width to begin with."""
    return {"sizes": SIZES, "width": WIDTH}


def peak(title: str, scores: Sequence[float], digits: int) -> Panel:
    """Draw scores, their weights, and how much each weight moves with its score."""
    pieces = []
    for i, (score, weight) in enumerate(zip(scores, softmax(scores), strict=True)):
        x, slope = 22 + 42 * i, weight * (1 - weight)
        high, steep = 74 * weight, 200 * slope
        pieces += [
            box(x - 13, 138 - high, 26, high, "query", kind="full", radius=2),
            note(x, 128 - high, f"{100 * weight:.0f} %", "query"),
            text(x, 154, f"{score:.{digits}f}".replace("-", "−"), "query", face="mono", size=11.5),
            box(x - 13, 266 - steep, 26, steep, "gradient", kind="full", radius=2),
            note(x, 256 - steep, f"{slope:.2f}", "gradient"),
        ]
    return panel(
        340,
        268,
        pieces,
        [arrow((0, y), (340, y), head=False) for y in (138.5, 266.5)],
        note(0, 34, "weights of eight keys; below, their scores", anchor="start"),
        note(0, 184, "slopes: how much a weight moves with its score", anchor="start"),
        title=title,
    )


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


TURN = 16  # steps ω in a full turn
ASKED_AT, KEY_AT = 5, 3


@drawing
def positions_in_attention() -> list[Panel]:
    """Two dials.

    On the first dial a query stands at position 5 and a key at position 3. At position p a vector
    is rotated by the angle pω: the query by five steps, the key by three, and the angle between the
    two is 2ω. On the second both have moved four positions on, to 9 and 7: both hands point
    elsewhere, and the angle between them is still 2ω.
    """
    return [
        dial(ASKED_AT, KEY_AT, "Query at 5, key at 3", "rotated by pω at position p"),
        dial(ASKED_AT + 4, KEY_AT + 4, "Both four positions later", "the angle between stays 2ω"),
    ]


@moving_data("rotary-angle")
def places() -> dict[str, int]:
    """Give the steps of a full turn, and the positions of the first dial."""
    return {"turn": TURN, "query": ASKED_AT, "key": KEY_AT}


@drawing
def distance_bias() -> list[Panel]:
    """ALiBi is a triangle of numbers: each row is a query and each column a key.

    On the diagonal stands 0, beside it −1, then −2, and so on to −5. Times a slope, these numbers
    are added to the scores: what is farther away gets less. Above the diagonal stands nothing, for
    later keys are hidden.
    """
    far = [[str(k - q).replace("-", "−") for k in range(q + 1)] for q in range(6)]
    triangle = panel(
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
    return [triangle]


def dial(query: int, key: int, title: str, remark: str) -> Panel:
    """Draw a query and a key, rotated by their positions."""
    x, y, radius, step = 109, 138, 74, 360 / TURN

    def hand(degrees: float, length: float) -> tuple[float, float]:
        angle = pi * degrees / 180
        return x + length * cos(angle), y - length * sin(angle)

    ways = [step * i for i in range(TURN)]
    steps = [arrow(hand(way, radius - 4), hand(way, radius + 1), head=False) for way in ways]
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
