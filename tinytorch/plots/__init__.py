"""The figures of the book, in one style.

Every helper draws one kind of picture and returns its Matplotlib `Axes`, so you can read back what
was drawn, add to it, or save it. Charts draw data (`charts`), diagrams draw ideas (`diagrams`), and
both share a palette (`style`). Matplotlib is imported here and nowhere else in the package;
importing this package sets the style once (`use_style`).

Under IPython the figures come out as SVG with real text, fixed identifiers and no date: the same
data gives the same bytes. The colours are the book's palette; on a page of the book they follow
the light and the dark scheme, in a notebook the figure has its own background.

In a notebook, assign the result (`ax = plots.bars(...)`); else its `repr` is printed as well.

Example:
    >>> from tinytorch import plots
    >>> ax = plots.bars(["cat", "dog"], [3, 5], xlabel="times seen")
    >>> [float(bar.get_width()) for bar in ax.patches]
    [3.0, 5.0]
"""

try:
    import matplotlib as mpl
    import matplotlib.pyplot as plt
except ImportError as error:  # pragma: no cover - exercised in a subprocess
    raise ImportError(
        "tinytorch.plots needs Matplotlib; install it with: pip install 'tinytorch-book[plots]'"
    ) from error

from tinytorch.plots.charts import bars, heatmap, lines, scatter_words, staircase, text_bars
from tinytorch.plots.diagrams import graph, matrix_shapes
from tinytorch.plots.style import (
    ACCENT_1,
    ACCENT_2,
    ACCENT_3,
    ACCENT_4,
    DIVERGING,
    FONT_SIZE,
    GRID,
    HEIGHT,
    INK,
    MUTED,
    ON_DARK,
    ON_LIGHT,
    ON_MIDDLE,
    PAPER,
    SEQUENTIAL,
    SERIES,
    SMALL,
    WIDTH,
    panels,
    use_style,
)

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
    "ON_MIDDLE",
    "PAPER",
    "SEQUENTIAL",
    "SERIES",
    "bars",
    "graph",
    "heatmap",
    "lines",
    "matrix_shapes",
    "panels",
    "scatter_words",
    "staircase",
    "text_bars",
    "use_style",
]

use_style()
