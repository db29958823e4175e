"""The palette, the look of every figure, and what all helpers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import colors as mcolors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

__all__ = ["panels", "use_style"]

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


# ----------------------------------------------------------------------------- colour


def luminance(rgb: ArrayLike) -> NDArray[np.float64]:
    """Relative luminance of sRGB colours `(..., 3)` (WCAG 2.2)."""
    c = np.asarray(rgb, dtype=np.float64)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))


def contrast(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Contrast ratio of two luminances, 1 to 21 (WCAG 2.2)."""
    return (np.maximum(a, b) + 0.05) / (np.minimum(a, b) + 0.05)


def _colormap(name: str, stops: Sequence[str]) -> mcolors.ListedColormap:
    """Interpolate `stops`; no colour of the map leaves a number on it below 4.5 : 1.

    Between the colours that take dark text and those that take white there is a narrow band that
    suits neither. The few entries inside it are moved to its nearer edge, which the eye misses.
    """
    smooth = mcolors.LinearSegmentedColormap.from_list(name, list(stops), N=256)
    rgb = smooth(np.arange(256))[:, :3]
    dark, light = (luminance(mcolors.to_rgb(c)) for c in (ON_LIGHT, ON_DARK))
    low = (light + 0.05) / 4.55 - 0.05  # darkest that must take dark text, with a little to spare
    high = 4.55 * (dark + 0.05) - 0.05
    for i, level in enumerate(luminance(rgb)):
        if low < level < high:
            goal = low if level - low < high - level else high
            rgb[i] = _with_luminance(rgb[i], float(goal))
    return mcolors.ListedColormap([tuple(c) for c in rgb], name=name)


def _with_luminance(rgb: NDArray[np.float64], goal: float) -> NDArray[np.float64]:
    """The colour between black, `rgb` and white whose luminance is `goal`, by bisection."""
    end = np.zeros(3) if luminance(rgb) > goal else np.ones(3)
    near, far = 0.0, 1.0
    for _ in range(30):
        middle = (near + far) / 2
        mixed = rgb + middle * (end - rgb)
        beyond = (luminance(mixed) > goal) == bool(end[0])
        near, far = (near, middle) if beyond else (middle, far)
    return np.asarray(rgb + far * (end - rgb))


SEQUENTIAL = _colormap("tinytorch", ["#e9f1ee", "#a5cfca", "#4f9c98", ACCENT_1, "#083f42"])
DIVERGING = _colormap(
    "tinytorch_diverging",
    ["#6f2c06", ACCENT_2, "#d68e63", "#f6f2ea", "#74b3ae", ACCENT_1, "#083f42"],
)


def text_on(rgba: ArrayLike) -> str:
    """Whichever of the two fixed text colours reads better on `rgba`."""
    fill = luminance(np.asarray(rgba)[..., :3])
    ratios = {c: contrast(luminance(mcolors.to_rgb(c)), fill) for c in (ON_LIGHT, ON_DARK)}
    return max(ratios, key=lambda c: float(ratios[c]))


# ----------------------------------------------------------------------------- style


def use_style() -> None:
    """Set the book's figure style; runs when `tinytorch.plots` is imported.

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
        >>> left.figure is right.figure is figure
        True
    """
    if columns < 1 or rows < 1:
        raise ValueError(f"panels needs columns and rows >= 1, got {columns} and {rows}")
    figure, grid = plt.subplots(rows, columns, figsize=(WIDTH, height * rows), squeeze=False)
    return figure, list(grid.ravel())


def axes_or_new(ax: Axes | None, height: float = HEIGHT) -> Axes:
    return ax if ax is not None else plt.subplots(figsize=(WIDTH, height))[1]


def finish(
    ax: Axes, title: str | None, xlabel: str | None = None, ylabel: str | None = None
) -> Axes:
    ax.set(title=title or "", xlabel=xlabel or "", ylabel=ylabel or "")
    return ax


def as_numbers(values: Any, ndim: int, where: str) -> NDArray[Any]:
    """`values` (a Tensor, array or nested list) as an array of `ndim` dimensions."""
    array = np.asarray(values.numpy() if hasattr(values, "numpy") else values)
    if array.ndim != ndim:
        raise ValueError(f"{where} must have {ndim} dimension(s), got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{where} must hold real numbers, got dtype {array.dtype}")
    return array


def check_labels(expected: int, labels: Sequence[Any] | None, where: str, what: str) -> None:
    if labels is not None and len(labels) != expected:
        raise ValueError(f"{where}: {len(labels)} labels for {expected} {what}; give one each")
