"""Figures on a page: what an SVG becomes when it is put inline."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from _ext.directives.inline_svg import PALETTE, in_scheme, inline_svg

from tinytorch import plots
from tinytorch.plots import style

SHEET = Path(__file__).resolve().parents[2] / "book" / "_static" / "tinytorch.css"

SVG = """<?xml version="1.0" encoding="utf-8"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
     width="300pt" height="150pt" viewBox="0 0 300 150">
 <metadata>made by a program</metadata>
 <defs><style type="text/css">*{stroke-linejoin: round}</style><path id="tick" d="M0 0v3"/></defs>
 <g clip-path="url(#box)"><use xlink:href="#tick" style="stroke: #1C2733"/></g>
 <clipPath id="box"><rect width="9" height="9"/></clipPath>
 <text fill="#0f6b6b" style="font: 9px sans">loss</text><text fill="#ffffff">0.5</text>
</svg>"""


def test_palette_colours_become_variables_and_other_colours_stay():
    svg = inline_svg(SVG, "a figure", "f")
    assert 'style="stroke: var(--tt-ink, #1c2733)"' in svg
    assert 'fill="var(--tt-accent-1, #0f6b6b)"' in svg
    assert 'fill="#ffffff"' in svg


def shown(colour, scheme):
    """A colour as a page shows it in one scheme, as numbers from 0 to 1."""
    css = in_scheme(matplotlib.colors.to_hex(colour))
    block = re.search(rf'data-theme="{scheme}"\] {{(.*?)}}', SHEET.read_text(), re.DOTALL)[1]
    used = re.findall(r"var\((--[\w-]+)", css)
    parts = [matplotlib.colors.to_rgb(re.search(rf"{name}: (#\w+)", block)[1]) for name in used]
    if len(parts) < 2:
        return np.array(parts[0] if parts else matplotlib.colors.to_rgb(css))
    share = float(re.search(r"([\d.]+)%", css)[1]) / 100
    return share * np.array(parts[0]) + (1 - share) * np.array(parts[1])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colormap", [plots.SEQUENTIAL, plots.DIVERGING], ids=lambda m: m.name)
def test_a_heat_map_goes_from_the_colour_of_the_page_to_the_accent(colormap, scheme):
    paper, accent = shown(plots.PAPER, scheme), shown(plots.ACCENT_1, scheme)
    nothing = colormap(0.0 if colormap is plots.SEQUENTIAL else 0.5)
    assert np.abs(shown(nothing, scheme) - paper).max() < 0.06
    assert np.allclose(shown(colormap(1.0), scheme), accent)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colormap", [plots.SEQUENTIAL, plots.DIVERGING], ids=lambda m: m.name)
def test_a_number_reads_on_every_colour_of_a_heat_map(colormap, scheme):
    for fill in colormap(np.arange(256)):
        levels = [shown(colour, scheme) for colour in (fill[:3], style.text_on(fill))]
        low, high = sorted(float(style.luminance(level)) for level in levels)
        assert (high + 0.05) / (low + 0.05) >= 4.5, matplotlib.colors.to_hex(fill)


def test_a_mixture_of_two_colours_of_the_palette_is_mixed_by_the_page():
    svg = inline_svg(SVG.replace("#1C2733", "#87b4b2"), "a", "f")  # half paper, half teal
    mixed = "color-mix(in srgb, var(--tt-accent-1, #0f6b6b) 50.0%, var(--tt-paper, #fffdf9))"
    assert f'style="stroke: {mixed}"' in svg


def test_the_alternative_text_is_the_name_of_an_image():
    svg = inline_svg(SVG, 'falls  "fast"\nthen <slowly>', "f")
    assert 'role="img"' in svg
    assert 'aria-label="falls &quot;fast&quot; then &lt;slowly&gt;"' in svg


def test_two_figures_on_a_page_share_no_id():
    first, second = (
        set(re.findall(r'\bid="([^"]+)"', inline_svg(SVG, "a", name))) for name in ("f-1", "f-2")
    )
    assert first == {"f-1", "f-1-tick", "f-1-box"}
    assert not first & second


def test_references_inside_a_figure_follow_its_ids():
    svg = inline_svg(SVG, "a", "f")
    assert 'clip-path="url(#f-box)"' in svg
    assert 'href="#f-tick"' in svg
    assert "xlink" not in svg


def test_a_rule_for_every_element_reaches_only_the_figure():
    assert "#f * {stroke-linejoin: round}" in inline_svg(SVG, "a", "f")


def test_a_figure_is_as_wide_as_drawn_and_never_wider_than_the_page():
    svg = inline_svg(SVG, "a", "f")
    assert "width: 400px; max-width: 100%; height: auto" in svg  # 300 pt
    assert 'viewBox="0 0 300 150"' in svg
    assert "metadata" not in svg


def test_a_missing_viewbox_is_made_from_the_size():
    svg = inline_svg('<svg xmlns="http://www.w3.org/2000/svg" width="8px" height="6"/>', "a", "f")
    assert 'viewBox="0 0 8 6"' in svg


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("<svg", "not an SVG"),
        ("<html/>", "the root element is html"),
        ('<svg xmlns="http://www.w3.org/2000/svg"/>', "neither a viewBox nor a width"),
    ],
)
def test_anything_but_a_figure_is_refused(source, message):
    with pytest.raises(ValueError, match=message):
        inline_svg(source, "a", "f")


def test_the_palette_is_the_one_that_plots_draws_in():
    drawn = {value for value in vars(plots).values() if re.fullmatch("#[0-9a-f]{6}", str(value))}
    assert set(PALETTE) <= drawn


@pytest.mark.parametrize("font", ["font: 11px", "font-size: 11.5px; font-family:"])
def test_an_inline_figure_leaves_the_fonts_to_the_page(font):
    style = f"{font} 'DejaVu Sans', 'Arial', sans-serif; text-anchor: middle"
    svg = inline_svg(SVG.replace("font: 9px sans", style), "a", "f")
    assert f"{font} sans-serif; text-anchor: middle" in svg


def test_an_inline_figure_omits_invisible_details():
    source = SVG.replace("M0 0v3", "M0.123456 0v3").replace(
        "<g clip", '<g id="text_1" transform="rotate(-0 1 2)"><g id="kept"/></g><g clip'
    )
    source = source.replace("#tick", "#kept").replace(">0.5<", ">3.6376<")
    svg = inline_svg(source, "a", "f")
    assert "M0.12 0v3" in svg and ">3.6376<" in svg
    assert "text_1" not in svg and "rotate" not in svg
    assert 'id="f-kept"' in svg and "#f-kept" in svg
