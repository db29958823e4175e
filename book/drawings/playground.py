"""The drawing that stands where the playground is, for those who see the page without it."""

from math import floor

from drawings.parts import Panel, arrow, box, drawing, element, note, panel, text

TOKENS = ["One", " sunny", " morning"]
# what the story GPT expects after them, and what the grammar says; tests/ext compares them
EXPECTED = {
    " Mia": (0.162, 0.167),
    " Tom": (0.160, 0.156),
    " Anna": (0.144, 0.133),
    " Ben": (0.110, 0.125),
    " Lily": (0.110, 0.100),
    " Max": (0.093, 0.094),
}
WIDEST_BAR, ROW = 170, 30
ROLES = ["token", "query", "position"]


@drawing
def playground() -> list[Panel]:
    """The words One sunny morning, cut into three tokens, stand at the left.

    At the right is a table of the tokens that may come next, one row each, with two bars: how
    likely the model thinks the token is, and how likely it truly is. Mia has 16 %, in truth 17 %,
    Tom 16 % and 16 %, Anna 14 % and 13 %, Ben 11 % and 13 %, Lily 11 % and 10 %, Max 9.3 % and
    9.4 %. The bars of every pair are almost equally long.
    """
    widths = [48, 66, 86]
    chips = [
        box(sum(widths[:i]) + 6 * i, 44, width, 32, role, token.strip())
        for i, (token, width, role) in enumerate(zip(TOKENS, widths, ROLES, strict=True))
    ]
    first = panel(
        340,
        130,
        chips,
        arrow((222, 60), (258, 60)),
        text(278, 60, "?", size=20),
        note(0, 104, "Three tokens, and the model says which", anchor="start"),
        note(0, 121, "may come next, and how likely each is.", anchor="start"),
        title="A beginning",
    )
    rows = [row(44 + ROW * i, token, *both) for i, (token, both) in enumerate(EXPECTED.items())]
    second = panel(
        340,
        44 + ROW * len(rows),
        note(285, 11, "model", "token", "end"),
        note(330, 11, "truth", "query", "end"),
        rows,
        title="What comes next?",
    )
    return [first, second]


def row(y: float, token: str, model: float, truth: float) -> list[str]:
    """One token with its two bars and their numbers."""
    widest = max(max(both) for both in EXPECTED.values())
    sizes = {"height": 8, "rx": 2, "close": True}
    return [
        text(56, y + 9, token.strip(), anchor="end"),
        element("rect", "d-token d-shade", x=66, y=y, width=WIDEST_BAR * model / widest, **sizes),
        element(
            "rect", "d-query d-shade", x=66, y=y + 10, width=WIDEST_BAR * truth / widest, **sizes
        ),
        note(285, y + 9, percent(model), "token", "end"),
        note(330, y + 9, percent(truth), "query", "end"),
    ]


def percent(p: float) -> str:
    """Round a probability as the playground does, a half up: 12.5 % is 13 %."""
    return f"{100 * p:.1f} %" if p < 0.0995 else f"{floor(100 * p + 0.5)} %"
