"""Printed numbers compared within what a cell allows: `compare: {within: 5%}` or `{decimals: 2}`.

A loss after training differs in its last digits on another processor. A cell that prints such
numbers names how far they may differ; its words must stay the same. Spaces may differ, since a
number can take more or fewer characters.
"""

from __future__ import annotations

import math
import re
from typing import Any

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


class Tolerance:
    """How far the numbers of a cell may differ.

    Args:
        option: what the cell says, `{"within": "5%"}` of the stored number or `{"decimals": 2}`:
            by one in the second place after the point.

    Raises:
        ValueError: it says something else.

    Example:
        >>> Tolerance({"within": "5%"}).agree("loss 3.10", "loss 3.00")
        True
        >>> Tolerance({"decimals": 2}).agree("loss 3.10", "loss 3.00")
        False
    """

    def __init__(self, option: Any) -> None:
        match option:
            case {"within": str(share)} if found := PERCENT.fullmatch(share):
                self.relative, self.absolute = float(found[1]) / 100, 0.0
            case {"decimals": int(places)} if places >= 0:
                self.relative, self.absolute = 0.0, 10.0**-places
            case _:
                raise ValueError(f"compare: {{within: 5%}} or {{decimals: 2}}, got {option!r}")
        if len(option) != 1:
            raise ValueError(f"compare: one of within and decimals, got {option!r}")

    def agree(self, came: str, stored: str) -> bool:
        """Whether both texts have the same words and, within the tolerance, the same numbers."""
        if words(came) != words(stored):
            return False
        pairs = zip(numbers(came), numbers(stored), strict=True)
        return all(
            math.isclose(a, b, rel_tol=0, abs_tol=self.relative * abs(b) + self.absolute * 1.001)
            for a, b in pairs
        )


def agree(came: str, stored: str, option: Any) -> bool:
    """Whether two texts are equal or, with a cell's option, agree."""
    return came == stored or (option is not None and Tolerance(option).agree(came, stored))


def words(text: str) -> list[str]:
    """All of a text but its numbers and the amount of space."""
    return NUMBER.sub(" # ", text).split()


def numbers(text: str) -> list[float]:
    """The numbers of a text."""
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]
