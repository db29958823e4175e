"""The figures of the book: what they draw, read back from Matplotlib; never pictures."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

from tinytorch import plots
from tinytorch.plots import style

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def no_window_and_no_figure_left_open():
    plots.plt.switch_backend("agg")
    yield
    plots.plt.close("all")


def texts(ax):
    return [text.get_text() for text in ax.texts if text.get_text()]


def svg(ax):
    buffer = io.StringIO()
    ax.figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def luminance(colour):
    return float(style.luminance(matplotlib.colors.to_rgb(colour)))


def contrast(a, b):
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    dark, light = sorted([luminance(a), luminance(b)])
    return (light + 0.05) / (dark + 0.05)


# --------------------------------------------------------------------------- palette and style


@pytest.mark.parametrize("colour", [plots.INK, plots.MUTED, *plots.SERIES])
def test_every_text_colour_reads_on_paper(colour):
    assert contrast(colour, plots.PAPER) >= 4.5


def test_the_sequential_map_only_gets_darker():
    values = style.luminance(plots.SEQUENTIAL(np.arange(256))[:, :3])
    assert (np.diff(values) <= 1e-6).all()


def test_the_stylesheet_knows_every_colour_of_the_palette():
    sheet = (ROOT / "book/_static/tinytorch.css").read_text(encoding="utf-8").lower()
    for colour in (plots.INK, plots.PAPER, plots.MUTED, plots.GRID, *plots.SERIES):
        assert colour in sheet


def scheme_colours(name):
    """The stylesheet's colour variables in one scheme."""
    sheet = (ROOT / "book/_static/tinytorch.css").read_text(encoding="utf-8")
    block = re.search(rf'data-theme="{name}"\] {{(.*?)}}', sheet, re.DOTALL).group(1)
    return dict(re.findall(r"--tt-([\w-]+): (#[0-9a-f]{6});", block))


@pytest.mark.parametrize("name", ["light", "dark"])
@pytest.mark.parametrize("behind", ["paper", "surface", "tint-1", "tint-2"])
def test_every_colour_of_the_site_reads_in_both_schemes(name, behind):
    colours = scheme_colours(name)
    for text in ("ink", "muted", "accent-1", "accent-2", "accent-3", "accent-4"):
        assert contrast(colours[text], colours[behind]) >= 4.5, text
    assert contrast(colours["control"], colours[behind]) >= 3, "borders of controls"


def test_the_same_figure_gives_the_same_svg_with_real_text_and_no_date():
    first = svg(plots.lines([0, 1, 2], {"loss": [3, 2, 1]}, xlabel="step"))
    second = svg(plots.lines([0, 1, 2], {"loss": [3, 2, 1]}, xlabel="step"))
    assert first == second
    assert re.search(r"<text[^>]*>loss</text>", first)
    assert "<dc:date>" not in first


def halves():
    """Two small maps side by side, which is the most that a phone's width allows."""
    _, axes = plots.panels(2)
    for ax in axes:
        plots.heatmap(np.eye(4) - 0.5, list("abcd"), fmt=".1f", ax=ax)
    return axes[0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.heatmap(np.eye(6), list("abcdef"), list("abcdef"), title="t", xlabel="x"),
        halves,
        lambda: plots.lines([1e-9, 1], {"a": [1e-5, 1e7]}, logx=True, logy=True, ylabel="y"),
        lambda: plots.staircase({"a": 2.0, "b": 0.5}, floor=0.1, reference={"counting": 0.3}),
        lambda: plots.text_bars("a story", np.ones(7), np.ones(7)),
    ],
    ids=["heat map", "two heat maps", "powers of ten", "staircase", "along a text"],
)
def test_on_a_phone_no_letter_of_a_figure_is_smaller_than_eleven_and_a_half_pixels(draw):
    axes = draw()
    drawing = svg(axes[0] if isinstance(axes, list) else axes)
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: ([\d.]+)px", drawing)]
    assert min(sizes) * 390 / (plots.WIDTH * 72) >= 11.5


def test_without_matplotlib_the_error_names_the_extra():
    code = "import sys; sys.modules['matplotlib'] = None; import tinytorch.plots"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 1
    assert "pip install 'tinytorch-book[plots]'" in run.stderr


def test_under_ipython_figures_are_whole_undated_svg():
    pytest.importorskip("ipykernel")
    code = """
from IPython.core.interactiveshell import InteractiveShell
from matplotlib_inline.config import InlineBackend
shell = InteractiveShell.instance()
from tinytorch import plots
from tinytorch.plots import style
config = InlineBackend.instance(parent=shell)
assert config.figure_formats == {"svg"}, config.figure_formats
assert config.print_figure_kwargs == {"bbox_inches": None, "metadata": {"Date": None}}
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr


# --------------------------------------------------------------------------- heat maps


def test_heatmap_draws_row_zero_on_top_with_its_values():
    ax = plots.heatmap([[1, 2], [3, 4]], ["a", "b"], ["c", "d"], fmt="d")
    assert ax.collections[0].get_array().ravel().tolist() == [1, 2, 3, 4]
    assert texts(ax) == ["1", "2", "3", "4"]
    assert ax.yaxis_inverted()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["c", "d"]


def test_heatmap_with_negative_values_is_symmetric_about_zero():
    mesh = plots.heatmap([[-1.0, 3.0]]).collections[0]
    assert (mesh.norm.vmin, mesh.norm.vmax) == (-3.0, 3.0)
    assert mesh.cmap.name == "tinytorch_diverging"


def test_heatmap_leaves_masked_scores_empty():
    ax = plots.heatmap([[1.0, -np.inf], [0.5, 0.25]])
    assert texts(ax) == ["1.00", "–", "0.50", "0.25"]
    assert ax.collections[0].get_array().mask.ravel().tolist() == [False, True, False, False]


def test_large_heatmap_is_one_picture_and_a_small_one_is_vectors():
    large = plots.heatmap(np.zeros((64, 64)), annotate=False)
    assert len(large.images) == 1 and not large.texts
    small = plots.heatmap(np.zeros((4, 4)), annotate=False)
    assert len(small.collections) == 1 and not small.images


def test_heatmap_writes_minus_signs_and_no_minus_zero():
    assert texts(plots.heatmap([[-0.001, -1.5]], fmt=".1f")) == ["0.0", "−1.5"]


def test_the_column_title_does_not_overlap_its_labels():
    ax = plots.heatmap(np.eye(3), list("abc"), ["keys", "query", "value"], xlabel="keys")
    ax.figure.canvas.draw()
    labels = max(label.get_window_extent().y1 for label in ax.get_xticklabels())
    room = (ax.xaxis.label.get_window_extent().y0 - labels) * 72 / ax.figure.dpi
    assert room >= 6, "points"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([1, 2],), ValueError, r"2 dimension\(s\), got shape \(2,\)"),
        ((np.zeros((0, 3)),), ValueError, r"empty, got shape \(0, 3\)"),
        (([[1]], ["a", "b"]), ValueError, "2 labels for 1 rows"),
        (([[1]], None, ["a", "b"]), ValueError, "2 labels for 1 columns"),
        (([["a"]],), TypeError, "real numbers"),
    ],
)
def test_heatmap_errors_name_the_input(arguments, error, message):
    with pytest.raises(error, match=message):
        plots.heatmap(*arguments)


# --------------------------------------------------------------------------- shapes


def test_broadcast_draws_repeated_cells_dashed():
    ax = plots.matrix_shapes({"x": (4, 3), "b": (3,)}, broadcast=True)
    dashed = [patch for patch in ax.patches if patch.get_linestyle() != "solid"]
    drawn = [p for p in ax.patches if isinstance(p, matplotlib.patches.Rectangle)]
    assert len(drawn) == 24
    assert len([p for p in drawn if p.get_zorder() == 1]) == 9
    assert len(dashed) == 9


@pytest.mark.parametrize(
    ("shapes", "between", "message"),
    [
        ({}, (), "at least one shape"),
        ({"x": (1, 2, 3, 4)}, (), "1 to 3 dimensions"),
        ({"x": (0, 2)}, (), "size >= 1"),
        ({"x": (2,), "y": (2,)}, ("+", "="), "need 1 signs, got 2"),
    ],
)
def test_matrix_shapes_refuses_bad_input(shapes, between, message):
    with pytest.raises(ValueError, match=message):
        plots.matrix_shapes(shapes, between)


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(ValueError, match="broadcast"):
        plots.matrix_shapes({"x": (2,), "y": (3,)}, broadcast=True)


# --------------------------------------------------------------------------- curves and bars


def test_lines_are_labelled_at_their_ends_in_their_colours():
    ax = plots.lines([0, 1], {"a": [0, 1], "b": [0, 5]})
    assert [(t.get_text(), t.get_color()) for t in ax.texts] == [
        ("a", plots.ACCENT_1),
        ("b", plots.ACCENT_2),
    ]
    assert ax.get_legend() is None


def test_labels_that_would_overlap_are_pushed_apart():
    ax = plots.lines([0, 1], {"a": [0, 1.0], "b": [0, 1.001], "c": [0, 0.2]})
    a, b, c = (text.xy[1] for text in ax.texts)
    assert c < a < b
    assert b - a >= 0.04


@pytest.mark.parametrize("markers", [False, True])
def test_first_four_of_many_lines_do_not_differ_by_colour_alone(markers):
    ax = plots.lines([0, 1], {f"line {i}": [i, i + 1] for i in range(8)}, markers=markers)
    drawn = [(line.get_marker(), str(line._dash_pattern)) for line in ax.lines]
    assert len(set(drawn[:4])) == 4
    assert len({(line.get_color(), *form) for line, form in zip(ax.lines, drawn, strict=True)}) == 8


def test_more_than_four_lines_get_a_legend_and_dashes():
    ax = plots.lines([0, 1], {name: [0, 1] for name in "abcde"})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list("abcde")
    assert ax.lines[4].get_color() == ax.lines[0].get_color()
    assert ax.lines[4].get_linestyle() != ax.lines[0].get_linestyle()


@pytest.mark.parametrize(
    ("x", "series", "options", "message"),
    [
        ([0, 1], {}, {}, "at least one series"),
        ([0, 1], {"a": [1]}, {}, "'a' has 1 values for 2 points"),
        ([0, 1], {"a": [1, 0]}, {"logy": True}, "positive values; 'a' has 0"),
        ([0, 1], {"a": [1, 1]}, {"logx": True}, "positive x, got 0"),
        ([[0, 1]], {"a": [1, 1]}, {}, r"1 dimension\(s\)"),
    ],
)
def test_lines_refuses_bad_input(x, series, options, message):
    with pytest.raises(ValueError, match=message):
        plots.lines(x, series, **options)


def test_bars_show_their_values_and_the_first_is_on_top():
    ax = plots.bars(["a", "b"], [1200, 34], fmt=",d", highlight=["b"])
    assert [bar.get_width() for bar in ax.patches] == [1200, 34]
    assert texts(ax) == ["1,200", "34"]
    assert ax.yaxis_inverted()
    assert matplotlib.colors.same_color(ax.patches[1].get_facecolor(), plots.ACCENT_2)


def test_bars_need_a_label_each():
    with pytest.raises(ValueError, match="1 labels for 2 values"):
        plots.bars(["a"], [1, 2])
    with pytest.raises(ValueError, match="at least one"):
        plots.bars([], np.zeros(0))


def test_steps_descend_to_the_floor_and_the_last_one_is_highlighted():
    ax = plots.staircase({"a": 2.0, "b": 0.5}, floor=0.1, reference={"counting": 0.3})
    (dots,) = ax.collections
    assert dots.get_offsets().tolist() == [[2.0, 0.0], [0.5, 1.0]]
    assert matplotlib.colors.same_color(dots.get_facecolors(), [plots.ACCENT_1, plots.ACCENT_2])
    assert [line.get_xdata()[0] for line in ax.lines] == [0.1, 0.3]
    assert texts(ax) == ["2.000", "0.500", "floor", "counting"]
    assert ax.get_xscale() == "log" and ax.yaxis_inverted()


def test_a_step_on_the_floor_and_steps_near_it_can_be_told_apart():
    ax = plots.staircase({"far": 2.0, "near": 0.17, "lowest": 0.119}, floor=0.119)
    near, lowest = ax.transData.transform(ax.collections[0].get_offsets())[1:, 0]
    box = ax.get_window_extent()
    assert near - lowest > 0.08 * box.width
    assert lowest - box.x0 > 0.02 * box.width, "the dot is inside the axes"


def test_lines_do_not_cross_values_and_labels_do_not_overlap():
    steps = {"far": 2.0, "near": 0.203, "nearer": 0.18}
    ax = plots.staircase(steps, floor=0.119, reference={"7 letters, counted": 0.31})
    ax.figure.canvas.draw()
    right = ax.get_window_extent().x1
    values, names = ax.texts[:3], ax.texts[3:]
    assert all(value.get_window_extent().x0 > right for value in values)
    assert all(value.get_window_extent().x1 < ax.figure.bbox.x1 for value in values)
    floor, counted = (name.get_window_extent() for name in names)
    assert floor.x1 <= counted.x0 and counted.x1 <= ax.figure.bbox.x1


@pytest.mark.parametrize(
    ("steps", "floor", "message"),
    [
        ({}, 0.1, "at least one step"),
        ({"a": 1.0, "b": 0.09}, 0.1, "0 < floor <= every step, got 0.1 and 0.09"),
        ({"a": 1.0}, 0.0, "0 < floor"),
    ],
)
def test_a_staircase_has_steps_above_its_floor(steps, floor, message):
    with pytest.raises(ValueError, match=message):
        plots.staircase(steps, floor=floor)


# --------------------------------------------------------------------------- the plane


def test_scatter_words_tells_kinds_apart_by_colour_and_shape():
    ax = plots.scatter_words([[0, 0], [1, 1], [2, 0]], ["fox", "red", "owl"], ["a", "c", "a"])
    assert [c.get_offsets().tolist() for c in ax.collections] == [[[0, 0], [2, 0]], [[1, 1]]]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "c"]
    shapes = [collection.get_paths()[0].vertices.shape for collection in ax.collections]
    assert shapes[0] != shapes[1]


@pytest.mark.parametrize("limits", [None, (-40, 40), (-3, 9)])
@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
def test_words_lie_on_no_other_word_and_stay_in_the_frame(spread, limits):
    """Also of points that lie on each other, and after the limits are changed."""
    xy = spread * np.random.default_rng(0).normal(size=(20, 2))
    ax = plots.scatter_words(xy, ["mouse", "m", "a hippopotamus", "owl"] * 5, ["a", "b"] * 10)
    if limits:
        ax.set_xlim(*limits)
    ax.figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in ax.texts]
    assert [b.count_overlaps(boxes) for b in boxes] == [1] * 20  # itself
    frame = ax.get_window_extent()
    inside = [frame.x0 <= b.x0 and b.x1 <= frame.x1 and frame.y0 <= b.y0 for b in boxes]
    assert all(inside) and max(b.y1 for b in boxes) <= frame.y1


@pytest.mark.parametrize(
    ("xy", "words", "kinds", "message"),
    [
        ([[0, 0, 0]], ["a"], None, r"\(n, 2\)"),
        ([[0, 0]], ["a", "b"], None, "2 labels for 1 points"),
        ([[0, 0]], ["a"], ["k", "l"], "2 labels for 1 points"),
    ],
)
def test_scatter_words_refuses_bad_input(xy, words, kinds, message):
    with pytest.raises(ValueError, match=message):
        plots.scatter_words(xy, words, kinds)


def test_graph_places_boxes_and_connects_them():
    ax = plots.graph({"x": (0, 0), "y": (1, 0)}, [("x", "y")], backward=[("y", "x", "2")])
    assert texts(ax) == ["x", "y", "2"]
    arrows = [text for text in ax.texts if getattr(text, "arrow_patch", None) is not None]
    assert [(a.xyann, a.xy) for a in arrows] == [((0, 0), (1, 0)), ((1, 0), (0, 0))]
    colours = [a.arrow_patch.get_edgecolor() for a in arrows]
    assert matplotlib.colors.same_color(colours[0], plots.INK)
    assert matplotlib.colors.same_color(colours[1], plots.ACCENT_2)


def test_graph_refuses_an_edge_to_nowhere():
    with pytest.raises(ValueError, match=r"no node named \['z'\]"):
        plots.graph({"x": (0, 0)}, [("x", "z")])


# --------------------------------------------------------------------------- panels


def test_panels_are_in_reading_order_and_helpers_draw_on_them():
    figure, axes = plots.panels(2, 2, height=2.0)
    assert len(axes) == 4
    assert tuple(figure.get_size_inches()) == (plots.WIDTH, 4.0)
    assert plots.bars(["a"], [1], ax=axes[3]) is axes[3]


def test_panels_need_at_least_one():
    with pytest.raises(ValueError, match="got 0 and 1"):
        plots.panels(0)
