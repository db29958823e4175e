"""Charts: a matrix, curves, bars, a staircase, words in the plane, and bars along a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib import colors as mcolors
from matplotlib.axes import Axes
from matplotlib.text import Text
from numpy.typing import NDArray

from tinytorch.core.types import TensorLike
from tinytorch.plots.style import (
    ACCENT_1,
    ACCENT_2,
    ACCENT_3,
    DIVERGING,
    FONT_SIZE,
    INK,
    MUTED,
    PAPER,
    SEQUENTIAL,
    SERIES,
    SMALL,
    as_numbers,
    axes_or_new,
    check_labels,
    finish,
    panels,
    text_on,
)

__all__ = ["bars", "heatmap", "lines", "scatter_words", "staircase", "text_bars"]

_DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_MARKERS = "osD^vP"
_MOST_CELLS_AS_VECTORS = 1200


# ----------------------------------------------------------------------------- matrices


def heatmap(
    matrix: TensorLike,
    row_labels: Sequence[object] | None = None,
    col_labels: Sequence[object] | None = None,
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
    values = as_numbers(matrix, 2, "heatmap: matrix")
    if values.size == 0:
        raise ValueError(f"heatmap: matrix is empty, got shape {values.shape}")
    rows, columns = values.shape
    check_labels(rows, row_labels, "heatmap", "rows")
    check_labels(columns, col_labels, "heatmap", "columns")
    ax = axes_or_new(ax, float(np.clip(0.42 * rows + 0.9, 1.5, 5.4)))
    mesh = _cells(ax, values, *_colour_range(values, diverging, vmin, vmax))
    _label_cells(ax, rows, columns, row_labels, col_labels)
    if annotate:
        _write_values(ax, values, mesh, fmt)
    else:
        bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02)
        bar.outline.set_visible(False)
    return finish(ax, title, xlabel, ylabel)


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
    row_labels: Sequence[object] | None,
    col_labels: Sequence[object] | None,
) -> None:
    """Column labels above, row labels at the left; without labels, a readable few numbers."""
    ax.xaxis.set_ticks_position("top")
    ax.xaxis.set_label_position("top")
    ax.xaxis.labelpad = 10
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
    room = ax.get_window_extent().width * 72 / ax.figure.dpi / values.shape[1]  # points a cell
    longest = max(len(_number(v, fmt)) for v in values.ravel())
    size = float(np.clip(room / (0.62 * longest), 6.0, SMALL))
    for (row, column), value in np.ndenumerate(values):
        finite = bool(np.isfinite(value))
        colour = text_on(mesh.cmap(mesh.norm(float(value)))) if finite else MUTED
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


# ----------------------------------------------------------------------------- curves and bars


def lines(
    x: TensorLike,
    series: Mapping[str, TensorLike],
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
    points = as_numbers(x, 1, "lines: x")
    curves = _curves(points, series, logx, logy)
    ax = axes_or_new(ax)
    for axis, scale in ((ax.xaxis, logx), (ax.yaxis, logy)):
        if scale:
            getattr(ax, f"set_{axis.axis_name}scale")("log")
            axis.set_major_formatter(_power)
    many = len(curves) > 4  # a legend names them then, and colour alone must not tell them apart
    for i, (name, values) in enumerate(curves.items()):
        dash = i + i // 4 if many and not markers else i // 4
        marker = _MARKERS[i % len(_MARKERS) if many else 0] if markers else None
        style: dict[str, Any] = {"color": SERIES[i % 4], "linestyle": _DASHES[dash % 4]}
        ax.plot(points, values, label=name, marker=marker, **style)
    for name, level in (reference or {}).items():
        ax.axhline(level, color=MUTED, linestyle=(0, (4, 3)), linewidth=1.5, label=name)
    if len(ax.lines) <= 4 + len(reference or {}):
        _label_ends(ax)
    else:
        ax.legend(ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    return finish(ax, title, xlabel, ylabel)


def _power(value: float, _: float = 0) -> str:
    """A label of a logarithmic axis; Matplotlib's has an exponent too small for a phone.

    Example:
        >>> _power(1000), _power(1e-5), _power(0.2)
        ('1,000', '10⁻⁵', '0.2')
    """
    exponent = np.log10(value)
    if 1 <= value < 1e6 or abs(exponent - round(exponent)) > 1e-9:
        return f"{value:,g}"
    return "10" + f"{exponent:.0f}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _curves(
    points: NDArray[Any], series: Mapping[str, TensorLike], logx: bool, logy: bool
) -> dict[str, NDArray[Any]]:
    if not series:
        raise ValueError("lines needs at least one series, got none")
    curves = {name: as_numbers(y, 1, f"lines: series {name!r}") for name, y in series.items()}
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
    labels: Sequence[object],
    values: TensorLike,
    *,
    fmt: str = "",
    highlight: Iterable[object] = (),
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
    lengths = as_numbers(values, 1, "bars: values")
    check_labels(len(lengths), labels, "bars", "values")
    if not len(lengths):
        raise ValueError("bars needs at least one value, got none")
    ax = axes_or_new(ax, float(np.clip(0.42 * len(lengths) + 0.9, 1.5, 6.0)))
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
    return finish(ax, title, xlabel)


def staircase(
    steps: Mapping[str, float],
    *,
    floor: float,
    reference: Mapping[str, float] | None = None,
    xlabel: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw losses as steps down to a floor: a dot each, its value in a column at the right.

    The axis is logarithmic, so that the last steps, which are near the floor, can be told apart.
    The last step is drawn in the second accent: it is the one just taken.

    Args:
        steps: name to loss, the first on top.
        floor: the lowest loss possible, drawn as a dashed line.
        reference: name to a level to compare with, drawn as a dotted line.
        xlabel: name and unit of the losses.
        title: above the figure, at the left.
        ax: axes to draw on; None makes a figure whose height suits the number of steps.

    Raises:
        ValueError: there are no steps, the floor is not positive, or a step lies below it.

    Example:
        >>> ax = staircase({"counted": 2.1, "trained": 0.12}, floor=0.119)
        >>> [text.get_text() for text in ax.texts]
        ['2.100', '0.120', 'floor']
    """
    losses = as_numbers(list(steps.values()), 1, "staircase: steps")
    if not len(losses):
        raise ValueError("staircase needs at least one step, got none")
    if not 0 < floor <= losses.min():
        raise ValueError(f"staircase: 0 < floor <= every step, got {floor} and {losses.min()}")
    ax = axes_or_new(ax, float(np.clip(0.3 * len(losses) + 1.2, 1.8, 6.0)))
    rows = np.arange(len(losses))
    colours = [ACCENT_1] * (len(losses) - 1) + [ACCENT_2]
    ax.scatter(losses, rows, s=64, color=colours, linewidth=0, zorder=3)
    at_right: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center"}
    for row, loss in enumerate(losses):  # outside the axes, where no line can run through it
        ax.text(1.03, row, f"{loss:.3f}", fontsize=SMALL, color=INK, **at_right)
    _level(ax, "floor", floor, INK, "dashed", "right")
    for name, level in (reference or {}).items():
        _level(ax, name, level, ACCENT_3, "dotted", "left")
    highest = max([*losses, *(reference or {}).values()])
    ax.set(xscale="log", xlim=(floor * 0.9, highest * 1.15), ylim=(len(losses) - 0.5, -0.5))
    ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10) if floor <= t <= highest * 1.1]
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_yticks(rows, list(steps))
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return finish(ax, title, xlabel)


def _level(ax: Axes, name: str, level: float, colour: str, style: str, side: str) -> None:
    """A vertical line over the whole height, with its name above it."""
    ax.axvline(level, color=colour, linestyle=style, linewidth=2)
    place: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "ha": side}
    ax.text(level, 1.03, name, color=colour, fontsize=SMALL, **place)


# ----------------------------------------------------------------------------- the plane


def scatter_words(
    xy: TensorLike,
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
    places = as_numbers(xy, 2, "scatter_words: xy").astype(np.float64)
    if places.shape[1] != 2 or not len(places):
        raise ValueError(f"scatter_words: xy must be (n, 2) with n >= 1, got {places.shape}")
    check_labels(len(places), words, "scatter_words: words", "points")
    check_labels(len(places), kinds, "scatter_words: kinds", "points")
    ax = axes_or_new(ax, 4.8)
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
            ncols=min(len(names), 3),
            handletextpad=0.2,
            columnspacing=1.2,
            borderaxespad=0.2,
        )
    ax.margins(0.16, 0.1)
    finish(ax, title, xlabel, ylabel)
    _place_words(ax, places, words, [SERIES[i % 4] for i in of_kind])
    return ax


def _place_words(
    ax: Axes, places: NDArray[np.float64], words: Sequence[str], colours: Sequence[str]
) -> None:
    """Write each word beside its point where nothing is yet; again when the limits change.

    Where there is no room there, it stands further off, and a thin line leads to its point.
    """
    labels = [
        ax.annotate(
            word,
            (float(place[0]), float(place[1])),
            xytext=(0, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=SMALL,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.8, "shrinkA": 0},
            in_layout=False,
        )
        for word, place, colour in zip(words, places, colours, strict=True)
    ]

    def arrange(_: object = None) -> None:
        figure: Any = ax.figure.figure  # also that of a subfigure
        figure.draw_without_rendering()
        scale = 72 / figure.dpi
        in_points = ax.transData.transform(places) * scale
        frame = tuple(ax.get_window_extent().extents * scale)
        taken: list[_Box] = [(x - 4, y - 4, x + 4, y + 4) for x, y in in_points]
        for label, (x, y) in zip(labels, in_points, strict=True):
            extent = Text.get_window_extent(label)  # without its line
            free = _beside(x, y, extent.width * scale + 4, extent.height * scale, frame, taken)
            taken.append(free)
            label.set(position=(free[0] + 2 - x, (free[1] + free[3]) / 2 - y), ha="left")
            line: Any = label.arrow_patch
            line.set_visible(_overlap(free, (x - 16, y - 16, x + 16, y + 16)) == 0)

    arrange()
    for changed in ("xlim_changed", "ylim_changed"):
        ax.callbacks.connect(changed, arrange)


_Box = tuple[float, ...]  # left, bottom, right, top


def _beside(
    x: float, y: float, width: float, height: float, frame: _Box, taken: Sequence[_Box]
) -> _Box:
    """The box nearest to a point that lies in the frame and covers least of what is taken."""
    sides = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 0.8), (1, -0.8), (-1, 0.8), (-1, -0.8)]
    best, least = frame, np.inf
    for far, (dx, dy) in product(range(1, 12), sides):
        left = x + dx * (2 + 5 * far) + {1: 0.0, 0: -width / 2, -1: -width}[dx]
        bottom = y + dy * (height / 2 + 5) * far - height / 2
        box = (left, bottom, left + width, bottom + height)
        outside = width * height - _overlap(box, frame)
        covered = round(outside + sum(_overlap(box, other) for other in taken), 6)
        if covered < least:
            best, least = box, covered
        if least == 0:
            break
    return best


def _overlap(a: _Box, b: _Box) -> float:
    """Common area of two boxes."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return max(width, 0.0) * max(height, 0.0)


# ----------------------------------------------------------------------------- along a text


def text_bars(
    text: str,
    values: TensorLike,
    marks: TensorLike | None = None,
    *,
    names: Sequence[str] = ("values", "marks"),
    per_row: int = 36,
    ylabel: str | None = None,
) -> list[Axes]:
    r"""Draw a bar above every character of a text, in rows broken at spaces.

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
    series = [as_numbers(v, 1, "text_bars: values") for v in (values, marks) if v is not None]
    for numbers in series:
        check_labels(len(text), numbers.tolist(), "text_bars", "characters")
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
