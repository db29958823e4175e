"""Matplotlib's backend in the page: figures are drawn as anywhere, and `show` shows them.

Matplotlib imports this when the first figure is made (see `Runner.install` in cell_runner.py).
"""

import cell_runner
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]


def show(*args: object, **kwargs: object) -> None:
    """Show the open figures under the running cell."""
    if cell_runner.page is not None:
        cell_runner.page.show_figures()
