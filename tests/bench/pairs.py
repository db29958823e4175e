"""Timing two programs side by side, so that a busy machine slows both."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Pair:
    """Seconds of ours and theirs, and the median of the ratios of neighbouring runs."""

    ours: float
    theirs: float
    ratio: float
    spread: tuple[float, float]


def paired(
    ours: Callable[[], Any], theirs: Callable[[], Any], *, seconds: float = 4.0, least: int = 5
) -> Pair:
    """Run the two in turn for about so many seconds, at least so many times, after a warm-up."""
    for function in (ours, theirs) * 2:
        function()
    times: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        first, second = (ours, theirs) if len(times) % 2 else (theirs, ours)
        a, b = _seconds(first), _seconds(second)
        times.append((a, b) if first is ours else (b, a))
    table = np.array(times)
    ratios = table[:, 0] / table[:, 1]
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return Pair(
        *(float(x) for x in np.median(table, axis=0)), float(middle), (float(low), float(high))
    )


def _seconds(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began
