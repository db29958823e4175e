"""Notebooks are committed without pictures, so strict validation compares everything but these."""

import os

os.environ["TINYTORCH_PARTS"] = ""  # what the book solves is no reader's


def pytest_collectstart(collector):
    """Leave pictures out of what nbval compares; it leaves out PNG and JPEG by itself."""
    if collector.path and collector.path.suffix == ".ipynb":
        collector.skip_compare += ("image/svg+xml",)


def pytest_itemcollected(item):
    """Let a slow machine take more than nbval's five seconds to hand over what a cell shows."""
    if hasattr(item, "output_timeout"):
        item.output_timeout = 600
