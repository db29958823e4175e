"""The figures of the book, in one style.

Every helper draws one kind of picture and returns its Matplotlib `Axes`, so you can read back what
was drawn, add to it, or save it. Matplotlib is imported in this file and nowhere else in the
package; importing this module sets the style once (`use_style`).

Under IPython the figures come out as SVG with real text, fixed identifiers and no date: the same
data gives the same bytes. The colours are the book's palette; on a page of the book they follow
the light and the dark scheme, in a notebook they stand on their own paper.

In a notebook, keep the result (`ax = plots.bars(...)`), or its `repr` is printed under the figure.

Example:
    >>> from tinytorch import plots
    >>> ax = plots.bars(["cat", "dog"], [3, 5], xlabel="times seen")
    >>> [float(bar.get_width()) for bar in ax.patches]
    [3.0, 5.0]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    import matplotlib as mpl
    import matplotlib.pyplot as plt
    from matplotlib import colors as mcolors
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
except ImportError as error:  # pragma: no cover - exercised in a subprocess
    raise ImportError(
        "tinytorch.plots needs Matplotlib; install it with: pip install 'tinytorch-book[plots]'"
    ) from error

__all__ = [
    "ACCENT_1",
    "ACCENT_2",
    "ACCENT_3",
    "ACCENT_4",
    "DIVERGING",
    "GRID",
    "INK",
    "MUTED",
    "ON_DARK",
    "ON_LIGHT",
    "PAPER",
    "SEQUENTIAL",
    "SERIES",
    "arrows",
    "bars",
    "graph",
    "heatmap",
    "lines",
    "matrix_shapes",
    "panels",
    "scatter_words",
    "text_bars",
    "use_style",
]

# The palette. The stylesheet of the book maps exactly these hex values to its variables, so a
# colour that should follow the dark scheme must be one of them.
INK = "#1c2733"
PAPER = "#fffdf9"
MUTED = "#5b6672"
GRID = "#d9dee3"
ACCENT_1 = "#0f6b6b"  # teal
ACCENT_2 = "#a8480f"  # rust
ACCENT_3 = "#6d4b8d"  # plum
ACCENT_4 = "#4f6f1f"  # moss
SERIES = (ACCENT_1, ACCENT_2, ACCENT_3, ACCENT_4)

# Text on a filled cell keeps its colour in both schemes, because the fill does.
ON_LIGHT = "#10151c"
ON_DARK = "#ffffff"

WIDTH, HEIGHT = 6.4, 3.6  # inches
FONT_SIZE = 12.5  # points; a phone shows the figure at about six tenths of its size
SMALL = 11.5
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_MARKERS = "osD^vP"
_MOST_CELLS_AS_VECTORS = 1200


# ----------------------------------------------------------------------------- colour


def _luminance(rgb: ArrayLike) -> NDArray[np.float64]:
    """Relative luminance of sRGB colours `(..., 3)` (WCAG 2.2)."""
    c = np.asarray(rgb, dtype=np.float64)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))


def _contrast(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Contrast ratio of two luminances, 1 to 21 (WCAG 2.2)."""
    return (np.maximum(a, b) + 0.05) / (np.minimum(a, b) + 0.05)


def _colormap(name: str, stops: Sequence[str]) -> mcolors.ListedColormap:
    """Interpolate `stops`; no colour of the map leaves a number on it below 4.5 : 1.

    Between the colours that take dark text and those that take white there is a narrow band that
    suits neither. The few entries inside it are moved to its nearer edge, which the eye misses.
    """
    smooth = mcolors.LinearSegmentedColormap.from_list(name, list(stops), N=256)
    rgb = smooth(np.arange(256))[:, :3]
    dark, light = (_luminance(mcolors.to_rgb(c)) for c in (ON_LIGHT, ON_DARK))
    low = (light + 0.05) / 4.55 - 0.05  # darkest that must take dark text, with a little to spare
    high = 4.55 * (dark + 0.05) - 0.05
    for i, luminance in enumerate(_luminance(rgb)):
        if low < luminance < high:
            goal = low if luminance - low < high - luminance else high
            rgb[i] = _with_luminance(rgb[i], float(goal))
    return mcolors.ListedColormap([tuple(c) for c in rgb], name=name)


def _with_luminance(rgb: NDArray[np.float64], goal: float) -> NDArray[np.float64]:
    """The colour between black, `rgb` and white whose luminance is `goal`, by bisection."""
    end = np.zeros(3) if _luminance(rgb) > goal else np.ones(3)
    near, far = 0.0, 1.0
    for _ in range(30):
        middle = (near + far) / 2
        mixed = rgb + middle * (end - rgb)
        beyond = (_luminance(mixed) > goal) == bool(end[0])
        near, far = (near, middle) if beyond else (middle, far)
    return np.asarray(rgb + far * (end - rgb))


SEQUENTIAL = _colormap("tinytorch", ["#e9f1ee", "#a5cfca", "#4f9c98", ACCENT_1, "#083f42"])
DIVERGING = _colormap(
    "tinytorch_diverging",
    ["#6f2c06", ACCENT_2, "#d68e63", "#f6f2ea", "#74b3ae", ACCENT_1, "#083f42"],
)


def _text_on(rgba: ArrayLike) -> str:
    """Whichever of the two fixed text colours reads better on `rgba`."""
    fill = _luminance(np.asarray(rgba)[..., :3])
    ratios = {c: _contrast(_luminance(mcolors.to_rgb(c)), fill) for c in (ON_LIGHT, ON_DARK)}
    return max(ratios, key=lambda c: float(ratios[c]))


# ----------------------------------------------------------------------------- style


def use_style() -> None:
    """Set the book's figure style; runs when this module is imported.

    Call it again to come back to the style after changing `matplotlib.rcParams`. Under IPython it
    also asks for SVG figures; without IPython it changes Matplotlib's settings and nothing else.

    Example:
        >>> use_style()
        >>> mpl.rcParams["svg.fonttype"]
        'none'
    """
    mpl.rcParams.update(
        {
            "figure.figsize": (WIDTH, HEIGHT),
            "figure.facecolor": PAPER,
            "figure.constrained_layout.use": True,
            "figure.constrained_layout.w_pad": 0.09,
            "figure.constrained_layout.h_pad": 0.07,
            "savefig.facecolor": PAPER,
            "axes.facecolor": PAPER,
            "axes.edgecolor": MUTED,
            "axes.labelcolor": INK,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": FONT_SIZE,
            "axes.titlepad": 10,
            "axes.labelsize": FONT_SIZE,
            "axes.linewidth": 0.8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.grid": True,
            "axes.prop_cycle": mpl.cycler(color=SERIES),  # type: ignore[attr-defined]
            "grid.color": GRID,
            "grid.linewidth": 0.8,
            "text.color": INK,
            "xtick.color": MUTED,
            "ytick.color": MUTED,
            "xtick.labelsize": SMALL,
            "ytick.labelsize": SMALL,
            "font.family": "sans-serif",
            "font.size": FONT_SIZE,
            "lines.linewidth": 2.0,
            "legend.frameon": False,
            "legend.fontsize": SMALL,
            "svg.fonttype": "none",
            "svg.hashsalt": "tinytorch",
        }
    )
    _svg_under_ipython()


def _svg_under_ipython() -> None:
    """Ask a running IPython for SVG without a date and without cropping; do nothing elsewhere."""
    try:
        from IPython import get_ipython  # type: ignore[attr-defined,unused-ignore]
        from matplotlib_inline.config import InlineBackend
    except ImportError:
        return
    shell = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
    if shell is None:
        return
    config = InlineBackend.instance(parent=shell)
    whole_and_undated: dict[str, Any] = {"bbox_inches": None, "metadata": {"Date": None}}
    config.print_figure_kwargs = whole_and_undated
    config.figure_formats = {"svg"}


def panels(columns: int = 2, rows: int = 1, *, height: float = HEIGHT) -> tuple[Figure, list[Axes]]:
    """An empty figure with `rows * columns` axes, as wide as the book's page.

    Args:
        columns: panels side by side; two is the most that a phone shows readably.
        rows: panels above each other.
        height: inches of each row.

    Returns:
        The figure and its axes in reading order; pass one to any helper as `ax=`.

    Example:
        >>> figure, (left, right) = panels(2)
        >>> ax = bars(["a", "b"], [1, 2], ax=left)
        >>> ax is left
        True
    """
    if columns < 1 or rows < 1:
        raise ValueError(f"panels needs columns and rows >= 1, got {columns} and {rows}")
    figure, grid = plt.subplots(rows, columns, figsize=(WIDTH, height * rows), squeeze=False)
    return figure, list(grid.ravel())


def _axes(ax: Axes | None, height: float = HEIGHT) -> Axes:
    return ax if ax is not None else plt.subplots(figsize=(WIDTH, height))[1]


def _finish(
    ax: Axes, title: str | None, xlabel: str | None = None, ylabel: str | None = None
) -> Axes:
    ax.set(title=title or "", xlabel=xlabel or "", ylabel=ylabel or "")
    return ax


def _numbers(values: Any, ndim: int, where: str) -> NDArray[Any]:
    """`values` (a Tensor, array or nested list) as an array of `ndim` dimensions."""
    array = np.asarray(values.numpy() if hasattr(values, "numpy") else values)
    if array.ndim != ndim:
        raise ValueError(f"{where} must have {ndim} dimension(s), got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{where} must hold real numbers, got dtype {array.dtype}")
    return array


def _same_length(expected: int, labels: Sequence[Any] | None, where: str, what: str) -> None:
    if labels is not None and len(labels) != expected:
        raise ValueError(f"{where}: {len(labels)} labels for {expected} {what}; give one each")


# ----------------------------------------------------------------------------- matrices


def heatmap(
    matrix: Any,
    row_labels: Sequence[Any] | None = None,
    col_labels: Sequence[Any] | None = None,
    *,
    annotate: bool = True,
    fmt: str = ".2f",
    diverging: bool | None = None,
    vmin: float | None = None,
    vmax: float | None = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix as coloured cells, row 0 on top, with its numbers in the cells.

    Values that are not finite (a masked score is minus infinity) stay empty, with a dash.

    Args:
        matrix: `(rows, columns)`, a Tensor, an array or nested lists.
        row_labels: one a row, or None for the row numbers.
        col_labels: one a column, or None for the column numbers.
        annotate: write each value in its cell; False draws a colour bar instead.
        fmt: format specification of those values, such as `".2f"` or `"d"`.
        diverging: colours about zero, rust below and teal above; None means "if any is negative".
        vmin: value of the first colour; None takes the smallest (or minus the largest magnitude).
        vmax: value of the last colour, likewise.
        title: above the figure, at the left.
        xlabel: what the columns are.
        ylabel: what the rows are.
        ax: axes to draw on; None makes a figure whose height suits the number of rows.

    Raises:
        ValueError: `matrix` is not 2-D, is empty, or the labels do not fit it.

    Example:
        >>> ax = heatmap([[1.0, 0.0], [0.5, 0.5]], ["I", "am"], ["I", "am"])
        >>> [text.get_text() for text in ax.texts]
        ['1.00', '0.00', '0.50', '0.50']
    """
    values = _numbers(matrix, 2, "heatmap: matrix")
    if values.size == 0:
        raise ValueError(f"heatmap: matrix is empty, got shape {values.shape}")
    rows, columns = values.shape
    _same_length(rows, row_labels, "heatmap", "rows")
    _same_length(columns, col_labels, "heatmap", "columns")
    ax = _axes(ax, float(np.clip(0.42 * rows + 0.9, 1.5, 5.4)))
    mesh = _cells(ax, values, *_colour_range(values, diverging, vmin, vmax))
    _label_cells(ax, rows, columns, row_labels, col_labels)
    if annotate:
        _write_values(ax, values, mesh, fmt)
    else:
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
        bar.outline.set_visible(False)
    return _finish(ax, title, xlabel, ylabel)


def _colour_range(
    values: NDArray[Any], diverging: bool | None, vmin: float | None, vmax: float | None
) -> tuple[mcolors.Colormap, float, float]:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if diverging or (diverging is None and low < 0):
        reach = max(abs(low), abs(high)) or 1.0
        return DIVERGING, -reach if vmin is None else vmin, reach if vmax is None else vmax
    low, high = low if vmin is None else vmin, high if vmax is None else vmax
    return SEQUENTIAL, low, high if high > low else low + 1.0


def _cells(ax: Axes, values: NDArray[Any], cmap: mcolors.Colormap, low: float, high: float) -> Any:
    """Vector cells for a small matrix; one embedded picture for a large one."""
    shown = np.ma.masked_invalid(values.astype(np.float64))
    rows, columns = values.shape
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    if values.size > _MOST_CELLS_AS_VECTORS:
        return ax.imshow(shown, cmap=cmap, vmin=low, vmax=high, aspect="auto", interpolation="none")
    edges_x, edges_y = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    mesh = ax.pcolormesh(
        edges_x, edges_y, shown, cmap=cmap, vmin=low, vmax=high, edgecolor=PAPER, linewidth=1.5
    )
    ax.invert_yaxis()
    return mesh


def _label_cells(
    ax: Axes,
    rows: int,
    columns: int,
    row_labels: Sequence[Any] | None,
    col_labels: Sequence[Any] | None,
) -> None:
    """Column labels above, row labels at the left; without labels, a readable few numbers."""
    ax.xaxis.set_ticks_position("top")
    ax.xaxis.set_label_position("top")
    ax.tick_params(length=0)
    for axis, count, labels in ((ax.xaxis, columns, col_labels), (ax.yaxis, rows, row_labels)):
        step = 1 if labels is not None else max(1, int(2 ** np.ceil(np.log2(count / 12))))
        ticks = list(range(0, count, step))
        axis.set_ticks(ticks, [str(labels[i] if labels is not None else i) for i in ticks])
        if labels is not None:
            axis.set_tick_params(labelcolor=INK)
    longest = max((len(str(label)) for label in col_labels or [""]), default=0)
    if col_labels is not None and longest * columns > 56:
        for label in ax.get_xticklabels():
            label.set(rotation=45, ha="left", rotation_mode="anchor")


def _write_values(ax: Axes, values: NDArray[Any], mesh: Any, fmt: str) -> None:
    columns = values.shape[1]
    room = WIDTH * 72 * 0.82 / columns  # points across one cell
    longest = max(len(_number(v, fmt)) for v in values.ravel())
    size = float(np.clip(room / (0.68 * longest), 6.0, SMALL))
    for (row, column), value in np.ndenumerate(values):
        finite = bool(np.isfinite(value))
        colour = _text_on(mesh.cmap(mesh.norm(float(value)))) if finite else MUTED
        text = _number(value, fmt)
        ax.text(column, row, text, ha="center", va="center", color=colour, fontsize=size)


def _number(value: Any, fmt: str) -> str:
    """`value` with a true minus sign and no minus zero; a dash for what is not finite."""
    if not np.isfinite(value):
        return "–"
    text = format(int(value) if fmt.endswith("d") else float(value), fmt)
    if text.startswith("-") and not any(digit in text for digit in "123456789"):
        text = text[1:]
    return text.replace("-", "−")


def matrix_shapes(
    shapes: Mapping[str, Sequence[int]],
    between: Sequence[str] = (),
    *,
    broadcast: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw arrays as boxes of cells, side by side: what a product or a broadcast does to shapes.

    Args:
        shapes: name to shape, in order; one to three dimensions (the first of three is depth).
        between: the signs between them, such as `("+", "=")`; one fewer than the shapes.
        broadcast: stretch every array to the common shape, its repeated cells dashed.
        title: above the figure, at the left.
        ax: axes to draw on; None makes a figure.

    Raises:
        ValueError: no shape, a shape without 1 to 3 positive sizes, the wrong number of signs, or
            shapes that do not broadcast.

    Example:
        >>> ax = matrix_shapes({"x": (2, 3), "b": (3,), "x+b": (2, 3)}, ("+", "="), broadcast=True)
        >>> [text.get_text() for text in ax.texts]
        ['x\n(2, 3)', '+', 'b\n(3,)', '=', 'x+b\n(2, 3)']
    """
    sizes = {name: tuple(int(n) for n in shape) for name, shape in shapes.items()}
    _check_shapes(sizes, between)
    common = np.broadcast_shapes(*sizes.values()) if broadcast else ()
    ax = _axes(ax, 2.6)
    drawn = [common if broadcast else shape for shape in sizes.values()]
    tallest = max(_box_size(shape)[1] for shape in drawn)
    left = 0.0
    for i, (name, shape) in enumerate(sizes.items()):
        if i:
            sign = between[i - 1] if between else ""
            ax.text(left + 0.9, tallest / 2, sign, ha="center", va="center", fontsize=16)
            left += 1.8
        width, height = _box_size(drawn[i])
        _draw_box(ax, shape, drawn[i], left, (tallest - height) / 2)
        label = f"{name}\n{shape}"
        ax.text(left + width / 2, tallest + 0.35, label, ha="center", va="top", linespacing=1.4)
        left += width
    ax.set(xlim=(-0.2, left + 0.2), ylim=(tallest + 2.2, -0.3), aspect="equal")
    ax.axis("off")
    return _finish(ax, title)


def _check_shapes(sizes: Mapping[str, tuple[int, ...]], between: Sequence[str]) -> None:
    if not sizes:
        raise ValueError("matrix_shapes needs at least one shape, got none")
    for name, shape in sizes.items():
        if not 1 <= len(shape) <= 3 or min(shape) < 1:
            raise ValueError(
                f"matrix_shapes draws 1 to 3 dimensions of size >= 1; {name!r} is {shape}"
            )
    if between and len(between) != len(sizes) - 1:
        raise ValueError(
            f"matrix_shapes: {len(sizes)} shapes need {len(sizes) - 1} signs, got {len(between)}"
        )


def _box_size(shape: tuple[int, ...]) -> tuple[float, float]:
    depth, rows, columns = (1, 1, *shape)[-3:]
    return columns + 0.5 * (depth - 1), rows + 0.5 * (depth - 1)


def _draw_box(
    ax: Axes, shape: tuple[int, ...], stretched: tuple[int, ...], left: float, top: float
) -> None:
    """Cells of `shape` filled; the cells it is stretched to only outlined, dashed."""
    own = (1, 1, *shape)[-3:]
    depth, rows, columns = (1, 1, *stretched)[-3:]
    for d, r, c in reversed(list(np.ndindex(depth, rows, columns))):
        real = d < own[0] and r < own[1] and c < own[2]
        ax.add_patch(
            Rectangle(
                (left + c + 0.5 * d, top + r + 0.5 * (depth - 1 - d)),
                1,
                1,
                facecolor=ACCENT_1 if real else PAPER,
                edgecolor=PAPER if real else ACCENT_2,
                linewidth=1.2,
                linestyle="solid" if real else (0, (2.5, 2)),
                zorder=2 if real else 1,
            )
        )


# ----------------------------------------------------------------------------- curves and bars


def lines(
    x: Any,
    series: Mapping[str, Any],
    *,
    xlabel: str | None = None,
    ylabel: str | None = None,
    title: str | None = None,
    logx: bool = False,
    logy: bool = False,
    markers: bool = False,
    reference: Mapping[str, float] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw curves over one `x`, each labelled at its right end (a legend beyond four).

    Args:
        x: `(n,)`, shared by all the curves.
        series: name to values `(n,)`, drawn in this order.
        xlabel: name and unit of `x`.
        ylabel: name and unit of the values.
        title: above the figure, at the left.
        logx: logarithmic `x`.
        logy: logarithmic values.
        markers: mark each point; for few, measured points.
        reference: name to a level drawn as a dashed line across, such as a known best loss.
        ax: axes to draw on; None makes a figure.

    Raises:
        ValueError: no series, a series whose length is not that of `x`, or a value that is not
            positive on a logarithmic axis.

    Example:
        >>> ax = lines([0, 1, 2], {"loss": [3.0, 2.0, 1.5]}, reference={"floor": 1.2})
        >>> [[float(y) for y in line.get_ydata()] for line in ax.lines]
        [[3.0, 2.0, 1.5], [1.2, 1.2]]
        >>> [text.get_text() for text in ax.texts]
        ['loss', 'floor']
    """
    points = _numbers(x, 1, "lines: x")
    curves = _curves(points, series, logx, logy)
    ax = _axes(ax)
    ax.set(xscale="log" if logx else "linear", yscale="log" if logy else "linear")
    for i, (name, values) in enumerate(curves.items()):
        style = {"color": SERIES[i % 4], "linestyle": _DASHES[i // 4 % 4]}
        ax.plot(points, values, label=name, marker="o" if markers else None, **style)
    for name, level in (reference or {}).items():
        ax.axhline(level, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.5, label=name)
    if len(ax.lines) <= 4 + len(reference or {}):
        _label_ends(ax)
    else:
        ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return _finish(ax, title, xlabel, ylabel)


def _curves(
    points: NDArray[Any], series: Mapping[str, Any], logx: bool, logy: bool
) -> dict[str, NDArray[Any]]:
    if not series:
        raise ValueError("lines needs at least one series, got none")
    curves = {name: _numbers(y, 1, f"lines: series {name!r}") for name, y in series.items()}
    for name, values in curves.items():
        if len(values) != len(points):
            raise ValueError(
                f"lines: series {name!r} has {len(values)} values for {len(points)} points of x"
            )
        if logy and (values <= 0).any():
            raise ValueError(f"lines: logy needs positive values; {name!r} has {values.min()}")
    if logx and (points <= 0).any():
        raise ValueError(f"lines: logx needs positive x, got {points.min()}")
    return curves


def _label_ends(ax: Axes) -> None:
    """Write each line's name beside its last point, pushing names apart that would overlap."""
    to_fraction = ax.transData + ax.transAxes.inverted()
    ax.autoscale_view()
    ends = []
    for line in ax.lines:
        y = np.asarray(line.get_ydata(), dtype=float)
        x = ax.get_xlim()[1]
        ends.append(float(to_fraction.transform((x, y[np.isfinite(y)][-1]))[1]))
    gap = 1.35 * SMALL / (ax.get_window_extent().height * 72 / ax.figure.dpi)
    for line, height in zip(ax.lines, _apart(ends, gap), strict=True):
        ax.annotate(
            str(line.get_label()),
            (1, height),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=line.get_color(),
            fontsize=SMALL,
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights moved as little as needed for neighbours to be at least `gap` apart.

    Example:
        >>> _apart([0.5, 0.9, 0.5], 0.2)
        [0.4, 0.9, 0.6]
    """
    order = np.argsort(heights, kind="stable")
    moved = np.asarray(heights, dtype=float)[order]
    for _ in range(100):
        short = gap - np.diff(moved)
        if (short <= 1e-9).all():
            break
        push = np.where(short > 1e-9, short / 2, 0.0)
        moved[:-1] -= push
        moved[1:] += push
    result = np.empty_like(moved)
    result[order] = moved
    return [round(float(h), 6) for h in result]


def bars(
    labels: Sequence[Any],
    values: Any,
    *,
    fmt: str = "",
    highlight: Iterable[Any] = (),
    xlabel: str | None = None,
    title: str | None = None,
    logx: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw horizontal bars, the first on top, with the value at the end of each.

    Args:
        labels: one a bar.
        values: `(n,)`.
        fmt: format specification of the written values, such as `".1%"` or `",d"`; "" is plain.
        highlight: labels of the bars drawn in the second accent.
        xlabel: name and unit of the values.
        title: above the figure, at the left.
        logx: logarithmic values.
        ax: axes to draw on; None makes a figure whose height suits the number of bars.

    Raises:
        ValueError: labels and values differ in number, or there are none.

    Example:
        >>> ax = bars(["GPT-2", "GPT-3"], [0.31, 0.0035], fmt=".2%")
        >>> [text.get_text() for text in ax.texts]
        ['31.00%', '0.35%']
    """
    lengths = _numbers(values, 1, "bars: values")
    _same_length(len(lengths), labels, "bars", "values")
    if not len(lengths):
        raise ValueError("bars needs at least one value, got none")
    ax = _axes(ax, float(np.clip(0.42 * len(lengths) + 0.9, 1.5, 6.0)))
    marked = set(highlight)
    colours = [ACCENT_2 if label in marked else ACCENT_1 for label in labels]
    rows = np.arange(len(lengths))
    drawn = ax.barh(rows, lengths, color=colours, height=0.66, log=logx)
    written = [_number(v, fmt) if fmt else f"{v:g}".replace("-", "−") for v in lengths.tolist()]
    ax.bar_label(drawn, written, padding=5, fontsize=SMALL, color=INK)
    ax.set_yticks(rows, [str(label) for label in labels])
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.margins(x=0.16)
    return _finish(ax, title, xlabel)


# ----------------------------------------------------------------------------- the plane


def scatter_words(
    xy: Any,
    words: Sequence[str],
    kinds: Sequence[str] | None = None,
    *,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Place words in the plane: a point and its word, kinds told apart by colour and by shape.

    Args:
        xy: `(n, 2)` coordinates.
        words: one a point.
        kinds: the kind of each word, named above the figure; None draws them all alike.
        title: above the figure, at the left.
        xlabel: what the first coordinate is.
        ylabel: what the second coordinate is.
        ax: axes to draw on; None makes a figure, taller than the others.

    Raises:
        ValueError: `xy` is not `(n, 2)`, or words or kinds are not `n`.

    Example:
        >>> ax = scatter_words([[0, 0], [1, 1]], ["fox", "red"], ["animal", "colour"])
        >>> [text.get_text() for text in ax.texts]
        ['fox', 'red']
        >>> [points.get_label() for points in ax.collections]
        ['animal', 'colour']
    """
    places = _numbers(xy, 2, "scatter_words: xy").astype(np.float64)
    if places.shape[1] != 2 or not len(places):
        raise ValueError(f"scatter_words: xy must be (n, 2) with n >= 1, got {places.shape}")
    _same_length(len(places), words, "scatter_words: words", "points")
    _same_length(len(places), kinds, "scatter_words: kinds", "points")
    ax = _axes(ax, 4.8)
    names = list(dict.fromkeys(kinds)) if kinds is not None else [""]
    of_kind = np.array([names.index(kind) for kind in kinds or [""] * len(places)])
    for i, name in enumerate(names):
        chosen = places[of_kind == i]
        style: dict[str, Any] = {"color": SERIES[i % 4], "marker": _MARKERS[i % len(_MARKERS)]}
        ax.scatter(chosen[:, 0], chosen[:, 1], s=34, linewidth=0, label=name, **style)
    if kinds is not None:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 1.0),
            ncols=min(len(names), 4),
            handletextpad=0.2,
            columnspacing=1.2,
            borderaxespad=0.2,
        )
    ax.margins(0.1)
    _place_words(ax, places, words, [SERIES[i % 4] for i in of_kind])
    return _finish(ax, title, xlabel, ylabel)


def _place_words(
    ax: Axes, places: NDArray[np.float64], words: Sequence[str], colours: Sequence[str]
) -> None:
    """Write each word on the side of its point where it covers least of what is there already."""
    ax.autoscale_view()
    in_points = ax.transData.transform(places) * 72 / ax.figure.dpi
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in in_points]
    sides = [(7, 0, "left"), (-7, 0, "right"), (0, 11, "center"), (0, -11, "center")]
    sides += [(6, 9, "left"), (6, -9, "left"), (-6, 9, "right"), (-6, -9, "right")]
    for (x, y), place, word, colour in zip(in_points, places, words, colours, strict=True):
        width = 0.6 * SMALL * len(word)
        boxes = []
        for dx, dy, align in sides:
            left = x + dx - {"left": 0.0, "right": width, "center": width / 2}[align]
            boxes.append((left, y + dy - 6, left + width, y + dy + 6))
        covered = [sum(_overlap(box, other) for other in taken) for box in boxes]
        best = int(np.argmin(covered))
        taken.append(boxes[best])
        dx, dy, align = sides[best]
        ax.annotate(
            word,
            (float(place[0]), float(place[1])),
            xytext=(dx, dy),
            textcoords="offset points",
            ha=align,
            va="center",
            color=colour,
            fontsize=SMALL,
        )


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Common area of two boxes `(left, bottom, right, top)`."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


def arrows(
    vectors: Any,
    labels: Sequence[str] | None = None,
    *,
    starts: Any = None,
    colours: Sequence[str] | None = None,
    title: str | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw vectors of the plane as arrows, on axes of equal scale.

    Args:
        vectors: `(n, 2)`.
        labels: one an arrow, written at its tip.
        starts: `(n, 2)` where the arrows begin; None is the origin for all.
        colours: one an arrow, from the palette; None takes the accents in turn.
        title: above the figure, at the left.
        xlabel: what the first component is.
        ylabel: what the second component is.
        ax: axes to draw on; None makes a figure.

    Raises:
        ValueError: `vectors` or `starts` is not `(n, 2)`, or labels or colours are not `n`.

    Example:
        >>> ax = arrows([[1, 0], [0, 1]], ["q", "k"])
        >>> [(text.get_text(), text.xy) for text in ax.texts if text.get_text()]
        [('q', (1.0, 0.0)), ('k', (0.0, 1.0))]
    """
    steps = _numbers(vectors, 2, "arrows: vectors").astype(np.float64)
    origins = np.zeros_like(steps) if starts is None else _numbers(starts, 2, "arrows: starts")
    if steps.shape[1] != 2 or origins.shape != steps.shape:
        raise ValueError(
            f"arrows: vectors and starts must be (n, 2), got {steps.shape} and {origins.shape}"
        )
    _same_length(len(steps), labels, "arrows", "vectors")
    _same_length(len(steps), colours, "arrows: colours", "vectors")
    ax = _axes(ax, 4.2)
    tips = origins + steps
    for i, (start, tip) in enumerate(zip(origins.tolist(), tips.tolist(), strict=True)):
        colour = colours[i] if colours is not None else SERIES[i % 4]
        shaft = {"arrowstyle": "-|>", "color": colour, "lw": 2, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", tuple(tip), xytext=tuple(start), arrowprops=shaft)
        if labels is not None:
            _write_at_tip(ax, labels[i], start, tip, colour)
    everything = np.concatenate([origins, tips, [[0.0, 0.0]]])
    ax.update_datalim(everything)
    ax.margins(0.18)
    ax.set_aspect("equal", adjustable="datalim")
    ax.axhline(0, color=GRID, linewidth=1.2, zorder=0.5)
    ax.axvline(0, color=GRID, linewidth=1.2, zorder=0.5)
    ax.autoscale_view()
    return _finish(ax, title, xlabel, ylabel)


def _write_at_tip(
    ax: Axes, label: str, start: Sequence[float], tip: Sequence[float], colour: str
) -> None:
    way = np.subtract(tip, start)
    ahead = 9 * way / (np.hypot(*way) or 1.0)
    align = "left" if ahead[0] > 3 else "right" if ahead[0] < -3 else "center"
    ax.annotate(
        label,
        (float(tip[0]), float(tip[1])),
        xytext=(float(ahead[0]), float(ahead[1])),
        textcoords="offset points",
        ha=align,
        va="center",
        color=colour,
    )


# ----------------------------------------------------------------------------- graphs


def graph(
    nodes: Mapping[str, tuple[float, float]],
    edges: Iterable[Sequence[str]],
    *,
    labels: Mapping[str, str] | None = None,
    backward: Iterable[Sequence[str]] = (),
    highlight: Iterable[str] = (),
    title: str | None = None,
    height: float = HEIGHT,
    ax: Axes | None = None,
) -> Axes:
    """Draw a small computational graph: boxes where you put them, arrows between them.

    Args:
        nodes: name to position `(x, y)`, x to the right and y upwards, in any unit.
        edges: `(from, to)` or `(from, to, text)`: values flowing forward.
        labels: name to what its box says, where that is more than the name.
        backward: likewise, but gradients flowing back: curved, dashed, in the second accent.
        highlight: names of the boxes drawn in the second accent.
        title: above the figure, at the left.
        height: of the figure, in inches.
        ax: axes to draw on; None makes a figure.

    Raises:
        ValueError: an edge, a label or a highlight names a node that is not there.

    Example:
        >>> ax = graph({"x": (0, 0), "y": (1, 0)}, [("x", "y", "square")], labels={"y": "y = x²"})
        >>> [text.get_text() for text in ax.texts if text.get_text()]
        ['x', 'y = x²', 'square']
    """
    edges, backward, marked = list(edges), list(backward), set(highlight)
    used = {name for edge in (*edges, *backward) for name in edge[:2]} | marked | set(labels or {})
    if used - set(nodes):
        raise ValueError(f"graph: no node named {sorted(used - set(nodes))}; nodes: {list(nodes)}")
    ax = _axes(ax, height)
    boxes = {}
    for name, (x, y) in nodes.items():
        frame = {"boxstyle": "round,pad=0.45", "fc": PAPER, "lw": 1.6}
        frame["ec"] = ACCENT_2 if name in marked else ACCENT_1
        text = (labels or {}).get(name, name)
        boxes[name] = ax.text(x, y, text, ha="center", va="center", bbox=frame, zorder=3)
    for edge in edges:
        _connect(ax, nodes, boxes, edge, INK, "solid", 0.0)
    for edge in backward:
        _connect(ax, nodes, boxes, edge, ACCENT_2, (0, (4, 2)), 0.28)
    xs, ys = zip(*nodes.values(), strict=True)
    side, up = 0.16 * ((max(xs) - min(xs)) or 1), 0.24 * ((max(ys) - min(ys)) or 1)
    ax.set(xlim=(min(xs) - side, max(xs) + side), ylim=(min(ys) - up, max(ys) + up))
    ax.axis("off")
    return _finish(ax, title)


def _connect(
    ax: Axes,
    nodes: Mapping[str, tuple[float, float]],
    boxes: Mapping[str, Any],
    edge: Sequence[str],
    colour: str,
    linestyle: Any,
    curve: float,
) -> None:
    """An arrow between two boxes, cut at their borders; drawn after them, so they are placed."""
    start, end = nodes[edge[0]], nodes[edge[1]]
    arrow = {
        "arrowstyle": "-|>",
        "color": colour,
        "lw": 1.6,
        "linestyle": linestyle,
        "connectionstyle": f"arc3,rad={curve}",
        "patchA": boxes[edge[0]].get_bbox_patch(),
        "patchB": boxes[edge[1]].get_bbox_patch(),
        "shrinkA": 3,
        "shrinkB": 3,
    }
    ax.annotate("", end, xytext=start, arrowprops=arrow, zorder=4)
    if len(edge) > 2:
        middle = np.add(start, end) / 2
        bow = curve * np.array([end[1] - start[1], start[0] - end[0]]) / 2
        ax.annotate(
            edge[2],
            (float(middle[0] + bow[0]), float(middle[1] + bow[1])),
            ha="center",
            va="center",
            color=colour,
            fontsize=SMALL,
            bbox={"fc": PAPER, "ec": "none", "pad": 1.5},
            zorder=5,
        )


# ----------------------------------------------------------------------------- along a text


def text_bars(
    text: str,
    values: Any,
    marks: Any = None,
    *,
    names: Sequence[str] = ("values", "marks"),
    per_row: int = 36,
    ylabel: str | None = None,
) -> list[Axes]:
    r"""Draw a bar above every character of a text, in rows that are broken at spaces.

    Args:
        text: what is written under the bars; a newline is shown as an arrow.
        values: `(len(text),)`, one bar a character, not negative.
        marks: `(len(text),)`, a short line across each bar for a second value; None for none.
        names: what the bars and the lines are, for the legend.
        per_row: the most characters of a row.
        ylabel: name and unit of the values.

    Returns:
        The axes, one a row.

    Raises:
        ValueError: the text is empty, or values or marks are not one for each character.

    Example:
        >>> first, second = text_bars("a cat\n", [1, 0, 2, 0, 0, 1], per_row=4)
        >>> [label.get_text() for label in second.get_xticklabels()]
        ['c', 'a', 't', '↵']
        >>> [float(bar.get_height()) for bar in second.patches]
        [2.0, 0.0, 0.0, 1.0]
    """
    series = [_numbers(v, 1, "text_bars: values") for v in (values, marks) if v is not None]
    for numbers in series:
        _same_length(len(text), numbers.tolist(), "text_bars", "characters")
    rows = _rows_of_text(text, per_row)
    figure, axes = panels(1, len(rows), height=1.05)
    highest = max(float(numbers.max()) for numbers in series) or 1.0
    for ax, row in zip(axes, rows, strict=True):
        at = np.arange(row.stop - row.start)
        ax.bar(at, series[0][row], width=0.8, color=ACCENT_1, label=names[0])
        for level in series[1:]:
            style: dict[str, Any] = {"colors": ACCENT_2, "linewidth": 2.2, "label": names[1]}
            ax.hlines(level[row], at - 0.5, at + 0.5, **style)
        ax.set_xticks(at, [_visible(c) for c in text[row]])
        ax.tick_params(axis="x", length=0, labelcolor=INK, pad=2)
        ax.set(xlim=(-0.8, per_row - 0.2), ylim=(0, 1.08 * highest))
        ax.grid(False, axis="x")
    axes[0].legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 0.95), borderaxespad=0)
    figure.supylabel(ylabel or "", fontsize=FONT_SIZE)
    return axes


def _rows_of_text(text: str, per_row: int) -> list[slice]:
    """Slices of at most `per_row` characters, ending after a space where there is one."""
    if not text or per_row < 1:
        raise ValueError(f"text_bars needs a text and per_row >= 1, got {text!r} and {per_row}")
    rows, start = [], 0
    while len(text) - start > per_row:
        stop = text.rfind(" ", start, start + per_row) + 1 or start + per_row
        rows.append(slice(start, stop))
        start = stop
    return [*rows, slice(start, len(text))]


def _visible(char: str) -> str:
    return "↵" if char == "\n" else char


use_style()
