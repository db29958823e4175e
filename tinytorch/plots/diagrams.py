"""Diagrams: the shapes of arrays, and computational graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from tinytorch.plots.style import (
    ACCENT_1,
    ACCENT_2,
    HEIGHT,
    INK,
    PAPER,
    SMALL,
    axes_or_new,
    finish,
)

__all__ = ["graph", "matrix_shapes"]


def matrix_shapes(
    shapes: Mapping[str, Sequence[int]],
    between: Sequence[str] = (),
    *,
    broadcast: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw arrays as boxes of cells, side by side: what a product or a broadcast does to shapes.

    Args:
        shapes: name to shape, in order; one to three dimensions (the first of three is depth).
        between: the signs between them, such as `("+", "=")`; one fewer than the shapes.
        broadcast: stretch every array to the common shape, its repeated cells dashed.
        title: above the figure, at the left.
        ax: axes to draw on; None makes a figure.

    Raises:
        ValueError: no shape, a shape without 1 to 3 positive sizes, the wrong number of signs, or
            shapes that do not broadcast.

    Example:
        >>> shapes = {"x": (2, 3), "b": (3,), "x+b": (2, 3)}
        >>> ax = matrix_shapes(shapes, ("+", "="), broadcast=True)
        >>> [text.get_text() for text in ax.texts]
        ['x\n(2, 3)', '+', 'b\n(3,)', '=', 'x+b\n(2, 3)']
    """
    sizes = {name: tuple(int(n) for n in shape) for name, shape in shapes.items()}
    _check_shapes(sizes, between)
    common = np.broadcast_shapes(*sizes.values()) if broadcast else ()
    ax = axes_or_new(ax, 2.6)
    drawn = [common if broadcast else shape for shape in sizes.values()]
    tallest = max(_box_size(shape)[1] for shape in drawn)
    left = 0.0
    for i, (name, shape) in enumerate(sizes.items()):
        if i:
            sign = between[i - 1] if between else ""
            ax.text(left + 0.9, tallest / 2, sign, ha="center", va="center", fontsize=16)
            left += 1.8
        width, height = _box_size(drawn[i])
        _draw_box(ax, shape, drawn[i], left, (tallest - height) / 2)
        label = f"{name}\n{shape}"
        ax.text(left + width / 2, tallest + 0.35, label, ha="center", va="top", linespacing=1.4)
        left += width
    ax.set(xlim=(-0.2, left + 0.2), ylim=(tallest + 2.2, -0.3), aspect="equal")
    ax.axis("off")
    return finish(ax, title)


def _check_shapes(sizes: Mapping[str, tuple[int, ...]], between: Sequence[str]) -> None:
    if not sizes:
        raise ValueError("matrix_shapes needs at least one shape, got none")
    for name, shape in sizes.items():
        if not 1 <= len(shape) <= 3 or min(shape) < 1:
            raise ValueError(
                f"matrix_shapes draws 1 to 3 dimensions of size >= 1; {name!r} is {shape}"
            )
    if between and len(between) != len(sizes) - 1:
        raise ValueError(
            f"matrix_shapes: {len(sizes)} shapes need {len(sizes) - 1} signs, got {len(between)}"
        )


def _box_size(shape: tuple[int, ...]) -> tuple[float, float]:
    depth, rows, columns = (1, 1, *shape)[-3:]
    return columns + 0.5 * (depth - 1), rows + 0.5 * (depth - 1)


def _draw_box(
    ax: Axes, shape: tuple[int, ...], stretched: tuple[int, ...], left: float, top: float
) -> None:
    """Cells of `shape` filled; the cells it is stretched to only outlined, dashed."""
    own = (1, 1, *shape)[-3:]
    depth, rows, columns = (1, 1, *stretched)[-3:]
    for d, r, c in reversed(list(np.ndindex(depth, rows, columns))):
        real = d < own[0] and r < own[1] and c < own[2]
        ax.add_patch(
            Rectangle(
                (left + c + 0.5 * d, top + r + 0.5 * (depth - 1 - d)),
                1,
                1,
                facecolor=ACCENT_1 if real else PAPER,
                edgecolor=PAPER if real else ACCENT_2,
                linewidth=1.2,
                linestyle="solid" if real else (0, (2.5, 2)),
                zorder=2 if real else 1,
            )
        )


def graph(
    nodes: Mapping[str, tuple[float, float]],
    edges: Iterable[Sequence[str]],
    *,
    labels: Mapping[str, str] | None = None,
    backward: Iterable[Sequence[str]] = (),
    highlight: Iterable[str] = (),
    title: str | None = None,
    height: float = HEIGHT,
    ax: Axes | None = None,
) -> Axes:
    """Draw a small computational graph: boxes where you put them, arrows between them.

    Args:
        nodes: name to position `(x, y)`, x to the right and y upwards, in any unit.
        edges: `(from, to)` or `(from, to, text)`: values flowing forward.
        labels: name to the text of its box, where that is not the name.
        backward: likewise, but gradients flowing back: curved, dashed, in the second accent.
        highlight: names of the boxes drawn in the second accent.
        title: above the figure, at the left.
        height: the height of the figure, in inches.
        ax: axes to draw on; None makes a figure.

    Raises:
        ValueError: an edge, a label or a highlight names a node that is not there.

    Example:
        >>> nodes, edges = {"x": (0, 0), "y": (1, 0)}, [("x", "y", "square")]
        >>> ax = graph(nodes, edges, labels={"y": "y = x²"})
        >>> [text.get_text() for text in ax.texts if text.get_text()]
        ['x', 'y = x²', 'square']
    """
    edges, backward, marked = list(edges), list(backward), set(highlight)
    used = {name for edge in (*edges, *backward) for name in edge[:2]} | marked | set(labels or {})
    if used - set(nodes):
        raise ValueError(f"graph: no node named {sorted(used - set(nodes))}; nodes: {list(nodes)}")
    ax = axes_or_new(ax, height)
    boxes = {}
    for name, (x, y) in nodes.items():
        frame = {"boxstyle": "round,pad=0.45", "fc": PAPER, "lw": 1.6}
        frame["ec"] = ACCENT_2 if name in marked else ACCENT_1
        text = (labels or {}).get(name, name)
        boxes[name] = ax.text(x, y, text, ha="center", va="center", bbox=frame, zorder=3)
    for edge in edges:
        _connect(ax, nodes, boxes, edge, INK, "solid", 0.0)
    for edge in backward:
        _connect(ax, nodes, boxes, edge, ACCENT_2, (0, (4, 2)), 0.28)
    xs, ys = zip(*nodes.values(), strict=True)
    side, up = 0.16 * ((max(xs) - min(xs)) or 1), 0.24 * ((max(ys) - min(ys)) or 1)
    ax.set(xlim=(min(xs) - side, max(xs) + side), ylim=(min(ys) - up, max(ys) + up))
    ax.axis("off")
    return finish(ax, title)


def _connect(
    ax: Axes,
    nodes: Mapping[str, tuple[float, float]],
    boxes: Mapping[str, Any],
    edge: Sequence[str],
    colour: str,
    linestyle: Any,
    curve: float,
) -> None:
    """An arrow between two boxes, cut at their borders; drawn after them, so they are placed."""
    start, end = nodes[edge[0]], nodes[edge[1]]
    arrow = {
        "arrowstyle": "-|>",
        "color": colour,
        "lw": 1.6,
        "linestyle": linestyle,
        "connectionstyle": f"arc3,rad={curve}",
        "patchA": boxes[edge[0]].get_bbox_patch(),
        "patchB": boxes[edge[1]].get_bbox_patch(),
        "shrinkA": 3,
        "shrinkB": 3,
    }
    ax.annotate("", end, xytext=start, arrowprops=arrow, zorder=4)
    if len(edge) > 2:
        middle = np.add(start, end) / 2
        bow = curve * np.array([end[1] - start[1], start[0] - end[0]]) / 2
        ax.annotate(
            edge[2],
            (float(middle[0] + bow[0]), float(middle[1] + bow[1])),
            ha="center",
            va="center",
            color=colour,
            fontsize=SMALL,
            bbox={"fc": PAPER, "ec": "none", "pad": 1.5},
            zorder=5,
        )
