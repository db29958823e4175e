"""The drawings: what each is, the directive that puts it into a page, and its file."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pydata_sphinx_theme
import pytest
from _ext.directives import chapter_card, drawing
from drawings import DRAWINGS, model
from drawings.parts import MOVING_DATA, PAGE, ROLES, SMALLEST, WIDEST, panel
from small_site import build

BOOK = Path(__file__).resolve().parents[2] / "book"
STATIC = BOOK / "_static"
ALL = [(name, "") for name in DRAWINGS] + [("model", part) for part in model.PARTS]
USED = re.compile(r"^ *[`:]{3,}\{drawing\} *(\S+)", re.M)
MOVES = re.compile(r"^:moves: *(\S+)", re.M)
MAP = {
    "Tokenization": "foundations/tokenization",
    "GPT": "transformer/gpt",
    "Embedding layer": "embeddings/embedding-layer",
    "Embeddings": "embeddings/token-embeddings",
    "Positions": "embeddings/positional-encodings",
    "Transformer block": "transformer/block",
    "Multi-head attention": "attention/multi-head",
    "Attention": "attention/scaled-dot-product",
    "Norm and MLP": "transformer/normalisation-and-mlp",
    "Sampling": "generation/sampling",
    "Training": "training/data-and-loss",
    "Tensors": "foundations/tensors",
    "Autograd": "foundations/autograd",
}
KIB = 1024
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")


# Each drawing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "lit"), ALL)
def test_a_drawing_is_well_formed_and_says_in_words_what_one_would_see(name, lit):
    root = ET.fromstring(drawing.as_file(name, lit))
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None and len(title.text.split()) >= 40
    assert "  " not in title.text


@pytest.mark.parametrize("name", DRAWINGS)
def test_no_panel_is_wider_than_a_phone_and_no_letter_smaller_than_it_can_be_read(name):
    for one in DRAWINGS[name].draw():
        assert one.width <= WIDEST
        assert all(
            float(size) >= SMALLEST for size in re.findall(r'font-size="([\d.]+)"', one.body)
        )


@pytest.mark.parametrize("name", DRAWINGS)
def test_every_class_of_a_drawing_has_a_rule(name):
    style = (STATIC / "drawings.css").read_text(encoding="utf-8")
    written = "".join(one.body for one in DRAWINGS[name].draw())
    classes = {c for group in re.findall(r'class="([^"]+)"', written) for c in group.split()}
    assert classes <= set(re.findall(r"\.([\w-]+)", style))


def test_no_rule_of_the_theme_is_about_a_part_of_a_drawing():
    theme = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static/styles"
    theirs = "".join(path.read_text(encoding="utf-8") for path in theme.glob("*.css"))
    ours = (STATIC / "drawings.css").read_text(encoding="utf-8")
    names = set(re.findall(r"\.(d-[\w-]+)", ours))
    assert names and names & set(re.findall(r"\.(d-[\w-]+)", theirs)) == set()


def test_the_card_of_every_chapter_lights_a_part_of_the_model():
    with_card = {
        p.stem for p in BOOK.glob("*/*.md") if "\n```{chapter-card}" in p.read_text("utf-8")
    }
    assert with_card <= set(chapter_card.LIT)
    assert set(chapter_card.LIT.values()) <= set(model.PARTS)


def test_a_panel_too_wide_for_a_phone_is_an_error():
    with pytest.raises(ValueError, match="at most 340 pixels wide, got 500"):
        panel(500, 10)


def test_every_drawing_stands_on_a_page():
    pages = [path.read_text(encoding="utf-8") for path in BOOK.rglob("*.md")]
    used = {name for page in pages for name in USED.findall(page)} | {"model"}  # in each card
    assert used == set(DRAWINGS)


def test_every_link_of_a_drawing_leads_to_a_page():
    drawn = "".join(one.body for found in DRAWINGS.values() for one in found.draw())
    pages = re.findall(rf'href="{PAGE}([^"]+)"', drawn)
    assert len(pages) == drawn.count("<a ") > 10
    assert [page for page in pages if not (BOOK / f"{page}.md").exists()] == []


def test_every_part_of_the_map_leads_to_its_chapter():
    drawn = "".join(one.body for one in DRAWINGS["map-of-the-book"].draw())
    found = re.findall(rf'<a class="d-link" href="{PAGE}([^"]+)" aria-label="([^":]+): ', drawn)
    assert {name: page for page, name in found} == MAP
    assert len(found) == drawn.count("<a ")


def test_a_drawing_is_the_same_at_every_build():
    program = (
        "import hashlib; from _ext.directives import drawing; from drawings import DRAWINGS;"
        "print(hashlib.sha256(''.join(map(drawing.as_file, DRAWINGS)).encode()).hexdigest())"
    )
    here = hashlib.sha256("".join(map(drawing.as_file, DRAWINGS)).encode()).hexdigest()
    settings = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(BOOK)}
    there = subprocess.run(
        [sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == here


# Figures that move ----------------------------------------------------------------------------


def test_what_moves_a_figure_is_small():
    files = sorted((STATIC / "moving").glob("*.*"))
    assert {"moving.js", "moving.css", "tools.js"} <= {path.name for path in files}
    assert {p.name: p.stat().st_size for p in files if p.stat().st_size > 15 * KIB} == {}


def test_every_script_moves_a_figure_and_every_number_is_for_one():
    pages = [path.read_text(encoding="utf-8") for path in BOOK.rglob("*.md")]
    named = [name for page in pages for name in MOVES.findall(page)]
    scripts = {path.stem for path in (STATIC / "moving").glob("*.js")} - {"moving", "tools"}
    assert sorted(named) == sorted(scripts)
    assert set(MOVING_DATA) <= scripts


# Colours --------------------------------------------------------------------------------------


def variables(name, *selectors):
    """The custom properties that a style sheet gives to these selectors."""
    style = re.sub(r"/\*.*?\*/", "", (STATIC / name).read_text(encoding="utf-8"), flags=re.S)
    blocks = [block for head, block in RULE.findall(style) if head.strip() in selectors]
    return dict(re.findall(r"(--[\w-]+):\s*([^;]+);", "".join(blocks)))


def palette(scheme):
    """Every variable of a scheme, as a colour."""
    light = 'html,\nhtml[data-theme="light"]'
    dark = 'html[data-theme="dark"]'
    found = variables("tinytorch.css", light) | variables("drawings.css", "html")
    if scheme == "dark":
        found |= variables("tinytorch.css", dark) | variables("drawings.css", dark)
    for name, value in found.items():
        if reference := re.match(r"var\((--[\w-]+)", value):
            found[name] = found[reference[1]]
    return found


def brightness(colour):
    """The relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """How many times brighter one colour is than another."""
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("role", [role for role in ROLES if role not in ("paper", "gradient")])
def test_words_can_be_read_on_paper_on_a_card_and_on_the_tint_of_their_role(role, scheme):
    colours = palette(scheme)
    tint = colours.get(f"--d-{role}-tint", colours["--d-muted-tint"])
    grounds = [colours["--tt-paper"], colours["--tt-surface"], tint, colours["--d-muted-tint"]]
    assert min(contrast(colours[f"--d-{role}"], ground) for ground in grounds) >= 4.5
    assert contrast(colours["--d-ink"], tint) >= 4.5


def test_the_colours_of_a_file_are_those_of_the_light_scheme():
    style = (STATIC / "drawings.css").read_text(encoding="utf-8")
    light = variables("tinytorch.css", 'html,\nhtml[data-theme="light"]')
    pairs = re.findall(r"var\((--tt-[\w-]+), (#\w+)\)", style)
    assert len(pairs) == style.count("var(--tt-")
    assert dict(pairs).items() <= light.items()


# The directive --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
def test_a_page_has_the_drawing_its_words_and_its_caption_and_the_site_its_file(tmp_path):
    page = "# A\n\n```{drawing} block\n:caption: Two *orders*.\n```\n"
    folder, warnings = build(tmp_path, index=page)
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert warnings == ""
    assert 'role="img" aria-label="A block in its two orders.' in html
    assert html.count('viewBox="0 0 340 330"') == 2
    assert "<figcaption>Two <em>orders</em>.</figcaption>" in html
    assert (folder.parent / "_static/drawings/block.svg").read_text().startswith("<svg xmlns=")
    assert "Lit: attention" in (folder.parent / "_static/drawings/model-attention.svg").read_text()


@pytest.mark.filterwarnings("default")
def test_a_page_is_made_again_when_a_drawing_has_changed(tmp_path):
    build(tmp_path, index="# A\n\n```{drawing} block\n```\n")
    assert "drawings/transformer.py" in (tmp_path / "read").read_text()


@pytest.mark.filterwarnings("default")
def test_the_parts_of_the_map_are_links_on_a_page_and_not_in_a_file(tmp_path):
    folder, warnings = build(tmp_path, index="# A\n\n```{drawing} map-of-the-book\n```\n")
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert warnings == ""
    assert '<a class="d-link" href="foundations/tensors.html" aria-label="Tensors: ' in html
    assert 'role="group" aria-label="A map of GPT' in html
    assert "<a " not in (folder.parent / "_static/drawings/map-of-the-book.svg").read_text()


@pytest.mark.filterwarnings("default")
def test_a_drawing_that_moves_names_its_script_and_brings_its_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "BOOK", tmp_path)
    monkeypatch.setattr(drawing, "MOVING", tmp_path)
    monkeypatch.setitem(MOVING_DATA, "dice", lambda: {"faces": 6, "word": "</script>"})
    (tmp_path / "dice.js").touch()
    folder, warnings = build(tmp_path, index="# A\n\n```{drawing} block\n:moves: dice\n```\n")
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert warnings == ""
    assert '<figure class="tt-drawing" data-moves="dice">' in html
    assert html.count('viewBox="0 0 340 330"') == 2  # what is printed
    told = re.search(r'json" class="tt-moving__data">(.*?)</script>', html)
    assert json.loads(told[1]) == {"faces": 6, "word": "</script>"}
    assert len(re.findall(r'<script type="module" src="[./]*_static/moving/moving.js', html)) == 1


@pytest.mark.filterwarnings("default")
def test_a_page_whose_drawings_stand_still_loads_nothing_that_moves_them(tmp_path):
    folder, _ = build(tmp_path, index="# A\n\n```{drawing} block\n```\n")
    html = (folder / "index.html").read_text(encoding="utf-8")
    assert "moving" not in html and "data-moves" not in html


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("directive", "message"),
    [
        ("{drawing} blok", "there is no drawing 'blok'; there are a-model-that-answers, "),
        ("{drawing} model\n:lit: heart", "the model has no part 'heart'; it has text, tokens"),
        ("{drawing} block\n:lit: mlp", "only the drawing 'model' has parts to light, not 'block'"),
        ("{drawing} block\n:moves: blok", "there is no script 'blok' in _static/moving"),
    ],
    ids=["no drawing", "no part", "no parts", "no script"],
)
def test_a_drawing_that_does_not_exist_is_an_error_that_lists_those_that_do(
    tmp_path, directive, message
):
    _, warnings = build(tmp_path, index=f"# A\n\n```{directive}\n```\n")
    assert message in warnings
