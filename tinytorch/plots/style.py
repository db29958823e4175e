"""The palette, the style of every figure, and shared helpers."""

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

from tinytorch.core.types import TensorLike

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

# Text on a filled cell. In the dark scheme a pale fill is dark and a full one light, so the first
# and the last change there; on a medium fill black is readable in both.
ON_LIGHT = "#10151c"
ON_MIDDLE = "#000000"
ON_DARK = PAPER

WIDTH, HEIGHT = 5.2, 3.4  # inches; a phone 390 pixels wide shows a point as 1.04 of them
FONT_SIZE = 12.5  # points
SMALL = 11.5  # the smallest size readable on a phone


# ----------------------------------------------------------------------------- colour


def luminance(rgb: ArrayLike) -> NDArray[np.float64]:
    """Relative luminance of sRGB colours `(..., 3)` (WCAG 2.2)."""
    c = np.asarray(rgb, dtype=np.float64)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return np.asarray(linear @ np.array([0.2126, 0.7152, 0.0722]))


def _mixtures(name: str, *stops: str) -> mcolors.Colormap:
    """A map that only mixes colours of the palette: a page mixes those of its scheme likewise."""
    return mcolors.LinearSegmentedColormap.from_list(name, stops, N=256)


SEQUENTIAL = _mixtures("tinytorch", "#f3f6f2", ACCENT_1)  # from one twentieth of the accent
DIVERGING = _mixtures("tinytorch_diverging", ACCENT_2, PAPER, ACCENT_1)


def text_on(rgba: ArrayLike) -> str:
    """The text colour that is readable on a colour of the maps in both schemes."""
    fill = float(luminance(np.asarray(rgba)[..., :3]))
    return ON_LIGHT if fill > 0.338 else ON_MIDDLE if fill > 0.178 else ON_DARK


# ----------------------------------------------------------------------------- style


def use_style() -> None:
    """Set the book's figure style; runs when `tinytorch.plots` is imported.

    Call it again to restore the style after changing `matplotlib.rcParams`. Under IPython it
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
        columns: panels side by side; at most two are readable on a phone.
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


def as_numbers(values: TensorLike, ndim: int, where: str) -> NDArray[Any]:
    """`values` (a Tensor, array or nested list) as an array of `ndim` dimensions."""
    array = np.asarray(values.numpy() if hasattr(values, "numpy") else values)
    if array.ndim != ndim:
        raise ValueError(f"{where} must have {ndim} dimension(s), got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{where} must hold real numbers, got dtype {array.dtype}")
    return array


def check_labels(expected: int, labels: Sequence[object] | None, where: str, what: str) -> None:
    if labels is not None and len(labels) != expected:
        raise ValueError(f"{where}: {len(labels)} labels for {expected} {what}; give one each")
