"""Checks for the exercises of the chapter on positional encodings."""

from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, case, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import as_array

__all__ = ["positions_add", "positions_apart", "positions_predict", "positions_sinusoids"]


def _sinusoids(max_seq_len: int, embed_dim: int, first: int = 0) -> np.ndarray:
    """Sines and cosines as the parts of a complex wave: not the way that the chapter does it."""
    frequencies = 10000.0 ** (-np.arange(0, embed_dim, 2) / embed_dim)
    waves = np.exp(1j * np.arange(first, first + max_seq_len)[:, None] * frequencies)
    return np.stack([waves.imag, waves.real], axis=-1).reshape(max_seq_len, embed_dim)


_TABLES = [
    (ValueError, "Write the base as 10000.0: NumPy raises no integer to a negative integer power."),
    (lambda T, d: _sinusoids(T, d, 1), "Positions count from 0, and so does np.arange."),
]


@exercise(points=1, reference=_sinusoids, mistakes=_TABLES, rules=[in_numpy, no_loop])
def positions_sinusoids(answer: Any) -> Cases:
    """`answer(max_seq_len, embed_dim)` is a table of sines and cosines, `embed_dim` being even."""
    columns = "Sines go into the even columns, cosines into the odd ones."
    pairs = "Both columns of pair i have the frequency 10000 to the power of -2i/d."
    angle = "The angle is the position times the frequency of the pair."
    row = ("row 1", lambda table: np.round(as_array(table)[1], 2))
    yield case("position 0 has sines 0 and cosines 1", answer, 1, 4, hint=columns)
    yield case("position 1 of eight columns, as printed", answer, 2, 8, part=row, hint=pairs)
    rows, half = generator().integers(60, 90, size=2).tolist()
    for T, d in ((50, 6), (300, 32), (7, 2), (40, 130), (rows, 2 * half)):
        yield case(f"the whole table for {T} positions and {d} columns", answer, T, d, hint=angle)


@exercise(points=1)
def positions_predict(answer: dict[str, Any]) -> Cases:
    """Check five predictions about `PositionalEncoding(10, 4)` and 3 sequences of 7 tokens."""
    each = "Every sequence that adds a row sends a 1 back to each of its numbers; fill in one."
    count = "Every position has a vector, and all its numbers are trained."
    sequences = "Three sequences stand in the batch, and each adds row 0."
    yield from predictions(answer, {
        "gradient in row 0": (3, each, (1, sequences), (7, "Seven tokens add seven rows.")),
        "gradient in row 9": (0, "Which rows did sequences of seven tokens add?"),
        "parameters": (40, count, (28, "The rows that are not read are parameters too.")),
        "parameters of sinusoids of that shape": (0, "An optimiser would find nothing to change."),
        "longest sequence it takes": (10, "How many rows has the table?"),
    })  # fmt: skip


@exercise(points=2, reference=lambda x, table: x + table[: x.shape[1]])
def positions_add(answer: Any) -> Cases:
    """`answer(x, table)` adds positions along the sequence to `x` of shape `(batch, seq, d)`."""
    middle = "The axis of x that runs along the sequence is the middle one."
    first = "Every sequence of the batch starts at position 0."
    x, table = np.zeros((1, 2, 1)), np.array([[1.0], [2.0], [3.0]])
    yield case("a sequence of two tokens gets the first two rows", answer, x, table, hint=middle)
    small = (3, 3, 5), (4, 2, 5), (2, 6, 5), (5, 1, 3), (1, 4, 6)
    for shape in (*small, (6, 6, 6), (2, 0, 3), (3, 60, 8)):
        claim = "{} sequences of {} tokens, each from the first row on".format(*shape)
        yield case(claim, answer, *drawn(shape, (max(6, shape[1]), shape[2])), hint=first)


@exercise(points=1, reference=lambda n: np.arange(n)[:, None] - np.arange(n), rules=[no_loop])
def positions_apart(answer: Any) -> Cases:
    """Check the matrix of the distances of all positions."""
    column = "Entry (i, j) is i - j: i runs down, j to the right."
    for n in (3, 1, 2, 8, 0, 300, int(generator().integers(20, 100))):
        yield case(f"is right for {n} positions", answer, n, hint=column)
