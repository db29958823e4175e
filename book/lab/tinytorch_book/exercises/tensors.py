"""Checks for the chapter "Tensors and shapes"."""

from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, alone, as_new, case, cases, predictions, raises
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import no_loop, no_numpy

__all__ = ["tensors_agreements", "tensors_broadcast_shape", "tensors_centre_rows",
           "tensors_error", "tensors_heads", "tensors_six_shapes"]  # fmt: skip


@exercise(points=1, reference=lambda people, one: people @ one, rules=[no_loop])
def tensors_agreements(answer: Any) -> Cases:
    """Check the dot products of all rows of an array with a vector."""
    mistakes = [
        (lambda people, one: people * one, "These are the products: each row of them is summed."),
        (lambda people, one: (people * one).sum(), "One sum for each row, not one for all."),
        (lambda people, one: (people * one).sum(axis=0), "Sum along the rows, not down them."),
        (ValueError, "The matrix product is @, with the rows on its left."),
    ]  # fmt: skip
    rows = "Each row of `people` meets `one`: n dot products."
    readers = np.array([[2, 1, -2, 0], [1, 2, -1, 1], [-2, 0, 2, 1]])
    yield from cases(answer, {
        "asks who agrees with Ada": (rows, readers, readers[0]),
        "asks who agrees with Cleo": (rows, readers, readers[2]),
        "asks a single person": (rows, *drawn((1, 3), 3)),
        "asks about a single thing": (rows, *drawn((4, 1), 1)),
        "asks as many people as things": (rows, *drawn((3, 3), 3)),
        "asks a crowd": (rows, *drawn((50, 7), 7)),
        "keeps tiny tastes": (rows, 1e-9 * drawn((3, 4))[0], drawn(4)[0], alone(atol=0)),
    }, mistakes)  # fmt: skip


@exercise(points=2, reference=np.broadcast_shapes, rules=[no_numpy])
def tensors_broadcast_shape(answer: Any) -> Cases:
    """Check a function that gives the shape of two broadcast shapes."""
    ones = "A length of one takes the other length, on either side."
    right = "Align the shapes at their right ends; missing lengths count as one."
    zero = "A length of zero is a length like any other: a length of 1 becomes 0, not the larger."
    error = "Two lengths that differ do not fit unless one of them is 1: raise a ValueError."
    yield from cases(answer, {
        "keeps equal shapes": (right, (2, 3), (2, 3)),
        "stretches a one on the left": (ones, (1, 3), (2, 3)),
        "stretches ones on both sides": (ones, (3, 1), (1, 4)),
        "aligns from the right": (right, (2, 3, 4), (4,)),
        "pads either operand": (right, (7, 1), (8, 1, 6)),
        "accepts a single number": (right, (), (5,)),
        "accepts two single numbers": (right, (), ()),
        "keeps a one beside a one": (ones, (1, 3), (1, 1)),
        "treats four axes like two": (ones, (5, 1, 4, 1), (3, 1, 2)),
    })  # fmt: skip
    refused = {(3,): (2,), (2, 3): (2,), (4, 2, 3): (4, 3, 3), (6,): (3,), (4, 3): (3, 3)}
    for a, b in (refused | {(0,): (2,), (2,): (0,)}).items():
        yield raises(f"refuses {a} with {b}", answer, a, b, error=ValueError, hint=error)
    rng = generator()
    for ends in (3, 6):
        long = rng.integers(2, 20, size=6)  # in a browser fewer than 2**31 numbers
        a, b = (tuple(np.where(rng.random(6) < 0.5, 1, long).tolist()) for _ in range(2))
        yield case(f"combines {6} axes with {ends}", answer, a, b[-ends:], hint=right)
    for a, b in {(1, 3): (0, 3), (2, 0): (2, 1), (0,): (0,), (0, 5): (0, 1)}.items():
        yield case(f"lets the one become a zero in {a} with {b}", answer, a, b, hint=zero)


@exercise(points=1)
def tensors_six_shapes(answer: dict[str, Any]) -> Cases:
    """Check the predicted shapes of six results."""
    yield from predictions(answer, {
        "x @ W": ((2, 3, 5), "The inner axis is summed; the axes before it stay."),
        "x @ W + b": ((2, 3, 5), "b is aligned with the last axis of x @ W."),
        "x @ v": ((2, 3), "The axis that is summed over disappears, and v has no other."),
        "x.sum(axis=1)": ((2, 4), "The summed axis disappears."),
        "x.transpose()": ((2, 4, 3), "Our transpose swaps the last two axes."),
        "y @ y.transpose()": ((2, 2, 3, 3), "The two axes in front are carried along.",
                              ((2, 2, 4, 4), "(3, 4) times (4, 3): the inner 4 is summed over.")),
    })  # fmt: skip


_ONLY = "Subtract the mean and do nothing else: the size of the numbers does not matter."
_FRACTION = "The mean of whole numbers may be a fraction: divide by /, and leave it a float."
_LENGTH = "A mean is the sum of the row divided by its length."
_UNCENTRED = [
    (lambda x: x.mean(-1, keepdims=True) - x, "Subtract the mean from x, not x from the mean."),
    (lambda x: (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True), _ONLY),
    (lambda x: x - x.mean(axis=0), "axis=0 runs down the columns; a row runs along the last axis."),
    (lambda x: x - x.mean(), "That is one mean for all: each row has its own."),
    (lambda x: x - x.mean(axis=-1), "The mean of each row must stay in its row: look at keepdims."),
    (lambda x: x - x.sum(-1, keepdims=True), _LENGTH),
    (lambda x: x - x.sum(-1, keepdims=True) // x.shape[-1], _FRACTION),
    (lambda x: x - np.median(x, -1, keepdims=True), "That is the median, not the mean."),
]


@exercise(2, _UNCENTRED, reference=lambda x: x - x.mean(-1, keepdims=True), rules=[no_loop])
def tensors_centre_rows(answer: Any) -> Cases:
    """Check a function that subtracts from every row its mean."""
    own = "From every number the mean of its own row is subtracted."
    last = "A row runs along the last axis, which is axis=-1 however many axes there are."
    yield from cases(answer, {
        "centres each row": (own, np.array([[1.0, 3.0], [10.0, 20.0]])),
        "centres each row of a cube": (last, np.arange(8.0).reshape(2, 2, 2)),
        "centres whole numbers": (_FRACTION, np.array([[1, 2], [7, 0]])),
    })  # fmt: skip
    for x in drawn((5,), (3, 4), (4, 4), (2, 3, 4), (2, 1, 3, 60), (3, 1)):
        yield case(f"centres the last axis of shape {x.shape}", answer, x, hint=last)
    for scale in (1e-30, 1e30):
        x = scale * drawn((2, 5))[0]
        yield case(f"centres numbers around {scale:g}", answer, x, hint=_ONLY, atol=0.0)
    new = "Return a new array, even if no number changes."
    yield case("returns a new array", answer, np.zeros((2, 3)), hint=new, run=as_new)


@exercise(points=2, reference=lambda predicted, targets: np.mean((predicted[:, 0] - targets) ** 2))
def tensors_error(answer: Any) -> Cases:
    """Check a mean squared error of predictions `(n, 1)` and targets `(n,)`."""
    crossed = "(n, 1) minus (n,) is (n, n): every prediction meets every target."
    pairs = "Each prediction meets its own target only: n differences, squared, and their mean."
    x = np.array([[1.0], [2.0], [6.0]])
    yield from cases(answer, {
        "is 0 for perfect predictions": (pairs, x, x[:, 0]),
        "is 0 for equal numbers": (pairs, np.ones((4, 1)), np.ones(4)),
        "is the square of a single difference": (pairs, np.array([[3.0]]), np.array([1.0])),
        "is the mean over four": (pairs, *drawn((4, 1), 4)),
        "is the mean over fifty": (pairs, *drawn((50, 1), 50)),
        "is tiny for tiny numbers": (pairs, 1e-9 * drawn((9, 1))[0], np.zeros(9), alone(atol=0)),
        "is large for large numbers": (pairs, 1e9 * drawn((9, 1))[0], np.zeros(9)),
    }, [(lambda x, y: np.mean((x - y) ** 2), crossed)])  # fmt: skip


def _split(x: np.ndarray, num_heads: int) -> np.ndarray:
    """Head `i` of `num_heads`: the `i`-th part of each vector."""
    return np.stack(np.split(x, num_heads, axis=-1), axis=1)  # (B, T, d) -> (B, h, T, d/h)


def _merge(x: np.ndarray) -> np.ndarray:
    return np.concatenate(list(x.swapaxes(0, 1)), axis=-1)  # (B, h, T, d/h) -> (B, T, d)


@exercise(points=3)
def tensors_heads(split: Any, merge: Any) -> Cases:
    """Check a split of the last axis into heads, and its inverse."""
    rows = "Row t of each head must hold numbers of token t: reshape to (B, T, h, d/h), then swap."
    part = "Head i takes the numbers from i * d/h on, d/h of them: the new axes are h, then d/h."
    undo = "Undo the steps of the split in the opposite order: swap back, then reshape."
    tokens = np.repeat(np.arange(3), 4).reshape(1, 3, 4)
    yield case("keeps each token in its row", split, tokens, 2, reference=_split, hint=rows)
    drawn_for = {4: (2, 3, 12), 2: (3, 1, 6), 1: (1, 5, 7), 5: (2, 2, 10), 3: (2, 4, 3)}
    drawn_for |= {12: (1, 3, 36)}
    given = [(np.arange(8).reshape(1, 2, 4), 2), *((drawn(drawn_for[h])[0], h) for h in drawn_for)]
    for x, h in given:
        claim = f"gives head i of {h} the i-th part of each vector"
        yield case(claim, split, x, h, reference=_split, hint=part)
    for x, h in given:
        heads = _split(x, h)
        yield case(f"merges heads {heads.shape}", merge, heads, reference=_merge, hint=undo)
