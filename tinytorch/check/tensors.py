"""Checks for the chapter "Tensors and shapes"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise, raises

__all__ = [
    "tensors_broadcast_shape",
    "tensors_centre_rows",
    "tensors_heads",
    "tensors_six_shapes",
]


@exercise(points=2)
def tensors_broadcast_shape(answer: Callable[[Any, Any], Any]) -> Iterator[Case]:
    """Check a function that gives the shape of two broadcast shapes.

    Example:
        >>> bool(tensors_broadcast_shape(lambda a, b: np.broadcast_shapes(a, b)))
        True
        >>> bool(tensors_broadcast_shape(lambda a, b: ...))
        False
    """
    ones = "A length of one takes the other length, on either side."
    yield case("keeps equal shapes", answer, (2, 3), (2, 3), expected=(2, 3))
    yield case("stretches a one on the left", answer, (1, 3), (2, 3), expected=(2, 3), hint=ones)
    yield case("stretches ones on both sides", answer, (3, 1), (1, 4), expected=(3, 4), hint=ones)
    right = "Align the shapes at their right ends; missing lengths count as one."
    yield case("aligns from the right", answer, (2, 3, 4), (4,), expected=(2, 3, 4), hint=right)
    yield case("pads either operand", answer, (7, 1), (8, 1, 6), expected=(8, 7, 6), hint=right)
    yield case("accepts a single number", answer, (), (5,), expected=(5,), hint=right)
    error = "Two lengths that differ do not fit unless one of them is 1: raise a ValueError."
    for a, b in [((3,), (2,)), ((2, 3), (2,)), ((4, 2, 3), (4, 3, 3))]:
        yield raises(f"refuses {a} with {b}", answer, a, b, error=ValueError, hint=error)
    zero = "A length of zero is a length like any other: a length of 1 becomes 0, not the larger."
    yield case("lets a one become a zero", answer, (1, 3), (0, 3), expected=(0, 3), hint=zero)
    yield raises("refuses (0,) with (2,)", answer, (0,), (2,), error=ValueError, hint=error)


@exercise(points=1)
def tensors_six_shapes(answer: dict[str, Any]) -> Iterator[Case]:
    """Check the predicted shapes of six results.

    Example:
        >>> tensors_six_shapes({"x @ W": ...})
        tensors_six_shapes: not yet
          [ ] x @ W
              came      nothing yet: replace the ...
              hint      The inner axis is summed; the axes before it stay.
    """
    x, W, b, v = np.zeros((2, 3, 4)), np.zeros((4, 5)), np.zeros(5), np.zeros(4)
    y = np.zeros((2, 2, 3, 4))
    results = {
        "x @ W": (x @ W, "The inner axis is summed; the axes before it stay."),
        "x @ W + b": (x @ W + b, "b is aligned with the last axis of x @ W."),
        "x @ v": (x @ v, "The axis that is summed over disappears, and v has no other."),
        "x.sum(axis=1)": (x.sum(axis=1), "The summed axis disappears."),
        "x.transpose()": (x.swapaxes(-1, -2), "Our transpose swaps the last two axes."),
        "y @ y.transpose()": (y @ y.swapaxes(-1, -2), "The two axes in front are carried along."),
    }
    for name, (result, hint) in results.items():
        predicted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(name, predicted, expected=result.shape, hint=hint, show_expected=False)


@exercise(points=2)
def tensors_centre_rows(answer: Callable[[Any], Any]) -> Iterator[Case]:
    """Check a function that subtracts from every row its mean.

    Example:
        >>> bool(tensors_centre_rows(lambda x: x - x.mean(-1, keepdims=True)))
        True
        >>> bool(tensors_centre_rows(lambda x: x - x.mean()))
        False
    """
    hint = "The mean of each row must stay in its row: look at keepdims."
    square = np.array([[1.0, 3.0], [10.0, 20.0]])
    yield case("centres each row", answer, square, expected=[[-1.0, 1.0], [-5.0, 5.0]], hint=hint)
    hint = "A row runs along the last axis, which is axis=-1 however many axes there are."
    cube = np.arange(8.0).reshape(2, 2, 2)
    expected = np.array([[[-0.5, 0.5]] * 2] * 2)
    yield case("centres each row of a cube", answer, cube, expected=expected, hint=hint)
    for shape in [(5,), (3, 4), (2, 3, 4)]:
        x = np.random.default_rng(1).normal(size=shape)
        expected = x - np.expand_dims(x.sum(axis=-1) / shape[-1], -1)
        yield case(
            f"centres the last axis of shape {shape}", answer, x, expected=expected, hint=hint
        )


@exercise(points=3)
def tensors_heads(split: Callable[[Any, int], Any], merge: Callable[[Any], Any]) -> Iterator[Case]:
    """Check a split of the last axis into heads, and its inverse.

    Example:
        >>> split = lambda x, h: x.reshape(*x.shape[:2], h, -1).swapaxes(1, 2)
        >>> merge = lambda x: x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)
        >>> bool(tensors_heads(split, merge))
        True
        >>> bool(tensors_heads(lambda x, h: x.reshape(x.shape[0], h, x.shape[1], -1), merge))
        False
    """
    tokens = np.repeat(np.arange(3), 4).reshape(1, 3, 4)
    expected = np.array([[[[0, 0], [1, 1], [2, 2]]] * 2])
    hint = "Row t of each head must hold numbers of token t: reshape to (B, T, h, d/h), then swap."
    yield case("keeps each token in its row", split, tokens, 2, expected=expected, hint=hint)
    few = np.arange(8).reshape(1, 2, 4)
    few_heads = np.array([[[[0, 1], [4, 5]], [[2, 3], [6, 7]]]])
    part = "Head i takes the numbers from i * d/h on, d/h of them: the new axes are h, then d/h."
    claim = "gives head i the i-th part of each vector"
    yield case(claim, split, few, 2, expected=few_heads, hint=part)
    x = np.random.default_rng(2).normal(size=(2, 3, 12))
    heads = np.stack([x[:, :, 3 * i : 3 * i + 3] for i in range(4)], axis=1)
    yield case("splits two sequences into four heads", split, x, 4, expected=heads, hint=part)
    undo = "Undo the steps of the split in the opposite order: swap back, then reshape."
    yield case("merges what was split", merge, few_heads, expected=few, hint=undo)
    yield case("merges four heads of two sequences", merge, heads, expected=x, hint=undo)
