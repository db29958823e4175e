"""Matplotlib's backend in the page: figures are drawn as anywhere, and `show` shows them.

Matplotlib imports this when the first figure is made (see `Runner.install` in live_runner.py).
"""

import live_runner
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]


def show(*args: object, **kwargs: object) -> None:
    """Show the open figures under the running cell."""
    if live_runner.page is not None:
        live_runner.page.show_figures()
