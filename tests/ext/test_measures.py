"""What a page asks of its reader, as counted when it is read."""

import pytest
from bs4 import BeautifulSoup
from small_site import build
from test_folds import article

CARD = """# One two

```{chapter-card}
:question: Not counted?
:build: not this
:needs: nothing
:difficulty: 1
- nor this
```
"""
ADDED = {
    "words": ("Three *four* five - `six` and $x$.", {"words": 6}),
    "a heading": ("## A heading\n", {"words": 2}),
    "a list": ("- three\n- four five", {"words": 3}),
    "a formula": ("$$\nx + y\n$$", {"formulas": 1}),
    "code": ("```python\na = 1\n\nb = 2\n```", {"code": 2}),
    "a drawing's caption": ("```{drawing} block\n:caption: A caption.\n```", {}),
    "a figure's caption": ("```{figure} x.svg\n:alt: words\nA caption.\n```", {}),
    "an exercise": ("```{exercise}\n:label: ex\nDo it now.\n```", {}),
    "all exercises": ("## Exercises\n\nWords and\n\n```python\na = 1\n```", {}),
    "a section that goes deeper": ("## Deeper: Why?\n\nFor this.", {"folded-words": 4}),
    "code in it": (
        "## Deeper: Why?\n\n```python\na = 1\n```",
        {"folded-words": 2, "folded-code": 1},
    ),
    "what stands behind choices": (
        "```{reflect}\nWhich?\n\n- [x] this\n\n  Of course.\n- [ ] that\n\n  No.\n```",
        {"words": 3, "folded-words": 6},
    ),
}


def counts(page):
    data = page.select_one(".tt-card__reading").attrs
    found = {
        name.removeprefix("data-").removeprefix("core-"): int(value)
        for name, value in data.items()
        if name.startswith("data-")
    }
    return {name: value for name, value in found.items() if value}


@pytest.mark.filterwarnings("default")
def test_words_symbols_and_formulas_are_counted(tmp_path):
    (tmp_path / "source" / "book").mkdir(parents=True)
    (tmp_path / "source" / "book" / "x.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    page = "---\norphan: true\n---\n" + CARD
    pages = {f"page{i}": f"{page}\n{text}\n" for i, (text, _) in enumerate(ADDED.values())}
    folder, warnings = build(tmp_path, index=CARD, **pages)
    assert warnings == ""
    for name, (kind, (_, added)) in zip(pages, ADDED.items(), strict=True):
        text = (folder / f"{name}.html").read_text(encoding="utf-8")
        counted = counts(BeautifulSoup(text, "html.parser"))
        assert counted == {**added, "words": 2 + added.get("words", 0)}, kind


@pytest.mark.filterwarnings("default")
def test_the_card_gives_the_reading_time_without_and_with_folded_parts(tmp_path):
    words = "word " * 1000
    page = article(tmp_path, f"{CARD}\n{words}\n\n## Deeper: Why?\n\n{words}\n")
    assert page.select_one(".tt-card__reading").text == "about 5 min, 10 with what is folded"


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("line", "minutes"),
    [("total = total + price", 10), ("y[b, t] += x[b, t, k] * W[k, j] / d", 48)],
)
def test_a_dense_line_of_code_takes_longer_than_a_plain_one(tmp_path, line, minutes):
    code = "```python\n" + f"{line}\n" * 117 + "```"
    page = article(tmp_path, f"{CARD}\n{code}\n")
    assert page.select_one(".tt-card__reading").text == f"about {minutes} min"
