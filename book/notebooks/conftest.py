"""Notebooks are committed without pictures, so strict validation compares everything but these."""

import os
import sys
from pathlib import Path

from nbformat import NotebookNode

sys.path.append(str(Path(__file__).parents[1]))
from _ext.notebooks.tolerance import agree

os.environ["TINYTORCH_PARTS"] = ""  # what the book solves is no reader's


def pytest_collectstart(collector):
    """Leave pictures out of what nbval compares; it leaves out PNG and JPEG by itself."""
    if collector.path and collector.path.suffix == ".ipynb":
        collector.skip_compare += ("image/svg+xml",)


def pytest_itemcollected(item):
    """Let a slow machine take more than nbval's five seconds to hand over what a cell shows."""
    if hasattr(item, "output_timeout"):
        item.output_timeout = 600
        option = item.cell.metadata.get("compare")
        if option is not None:
            item.compare_outputs = with_tolerance(item.compare_outputs, option)


def with_tolerance(compare, option):
    """Let nbval compare, in place of each text that agrees with the stored one, that one."""

    def compared(came, stored, *more):
        if len(came) == len(stored):
            came = [taken(*pair, option) for pair in zip(came, stored)]
        return compare(came, stored, *more)

    return compared


def taken(came, stored, option):
    """One output, with the stored text where its own agrees."""
    if came.output_type != stored.output_type:
        return came
    if "text" in stored and agree(came.text, stored.text, option):
        return NotebookNode(came, text=stored.text)
    texts = stored.get("data", {}).items()
    agreed = {k: v for k, v in texts if k in came.data and agree(came.data[k], v, option)}
    return NotebookNode(came, data={**came.data, **agreed}) if agreed else came
