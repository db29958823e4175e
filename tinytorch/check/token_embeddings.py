"""Checks for the exercises of the chapter on token embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise, one_of_pair, raises

__all__ = [
    "token_cost",
    "token_lookup",
    "token_neighbours",
    "token_row_step",
    "token_scatter_add",
]


@exercise(points=1)
def token_lookup(lookup: Callable[..., Any]) -> Iterator[Case]:
    """`lookup(table, ids)` returns the rows of `table` that `ids` name, for ids of any shape.

    An id below zero or past the last row is an IndexError.

    Example:
        >>> def lookup(table, ids):
        ...     if ids.min() < 0:
        ...         raise IndexError("ids begin at 0")
        ...     return table[ids]
        >>> bool(token_lookup(lookup)), bool(token_lookup(lambda table, ids: ...))
        (True, False)
    """
    table = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    hint = "Each id names one row of the table; collect the rows in the order of the ids."
    for claim, few in (("gives one row for each id", [2, 0]), ("repeats a row", [1, 1, 0])):
        expected = np.stack([table[i] for i in few])
        yield case(claim, lookup, table.copy(), np.array(few), expected=expected, hint=hint)
    batch = np.array([[2, 0], [1, 1]])
    yield case(
        "gives a table of rows for a table of ids",
        lookup,
        table,
        batch,
        expected=np.array([[[3.0, 30.0], [1.0, 10.0]], [[2.0, 20.0], [2.0, 20.0]]]),
        hint="The result has the shape of the ids, and one more axis for the vector.",
    )
    small = table
    for shape in ((2, 3), (2, 1, 4)):
        rng = np.random.default_rng(len(shape))
        table, ids = rng.normal(size=(7, 3)), rng.integers(0, 7, size=shape)
        expected = np.stack([table[i] for i in ids.reshape(-1)]).reshape(*shape, 3)
        yield case(
            f"keeps ids of shape {shape} in place",
            lookup,
            table.copy(),
            ids.copy(),
            expected=expected,
            hint="The result has the shape of the ids, and one more axis for the vector.",
        )
    yield raises(
        "refuses an id below zero",
        lookup,
        small,
        np.array([1, -1]),
        error=IndexError,
        hint="NumPy counts negative indices from the end; here they are mistakes.",
    )
    yield raises(
        "refuses an id past the end",
        lookup,
        small,
        np.array([3]),
        error=IndexError,
        hint="Three rows have the ids 0, 1 and 2; NumPy's indexing refuses the others by itself.",
    )


@exercise(points=3)
def token_scatter_add(gradient: Callable[..., Any]) -> Iterator[Case]:
    """`gradient(ids, g, vocab_size)` returns the gradient of the table, `(vocab_size, d)`.

    `g` has the shape of the ids and one more axis: the gradient of every vector looked up.

    Example:
        >>> def gradient(ids, g, vocab_size):
        ...     table = np.zeros((vocab_size, g.shape[-1]))
        ...     np.add.at(table, ids, g)
        ...     return table
        >>> bool(token_scatter_add(gradient)), bool(token_scatter_add(lambda ids, g, v: ...))
        (True, False)
    """
    for claim, few, hint in (
        (
            "puts each gradient into the row of its id",
            [2, 0],
            "Begin with zeros of shape (vocab_size, d); only the rows in ids change.",
        ),
        (
            "sums the gradients of a repeated id",
            [2, 0, 2],
            "An indexed assignment writes each row once: of a repeated id only the last g remains.",
        ),
    ):
        g = np.array([[1.0, 1.0], [2.0, 2.0], [5.0, 5.0]])[: len(few)]
        expected = _scattered(few, g, 4)
        mean = expected / np.maximum(np.bincount(few, minlength=4), 1)[:, None]
        told = [(mean, "A sum, not a mean: each time the row was used counts in full.")]
        yield case(
            claim, gradient, np.array(few), g, 4, expected=expected, hint=hint, mistakes=told
        )
    ids, g = np.array([[0, 1], [1, 1]]), np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    hint = "Flatten first: ids.reshape(-1) and g.reshape(-1, g.shape[-1])."
    claim = "handles a batch of two sentences"
    expected = np.array([[1.0], [9.0], [0.0]])
    yield case(claim, gradient, ids, g, 3, expected=expected, hint=hint)
    rng = np.random.default_rng(0)
    for shape, vocab_size in (((2, 3), 5), ((40,), 6), ((3, 2, 4), 9)):
        ids, g = rng.integers(0, vocab_size, size=shape), rng.normal(size=(*shape, 3))
        yield case(
            f"handles ids of shape {shape}",
            gradient,
            ids,
            g,
            vocab_size,
            expected=_scattered(ids, g, vocab_size),
            hint=hint,
        )


@exercise(points=2)
def token_row_step(step: Callable[..., Any]) -> Iterator[Case]:
    """`step(table, ids, g, lr)` returns a table whose looked-up rows took a step of SGD.

    Example:
        >>> def step(table, ids, g, lr):
        ...     table = table.copy()
        ...     np.subtract.at(table, ids, lr * g)
        ...     return table
        >>> bool(token_row_step(step)), bool(token_row_step(lambda table, ids, g, lr: ...))
        (True, False)
    """
    table, lr = np.ones((3, 2)), 0.5
    g = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    for claim, few, hint in (
        ("moves one row", [1], "A step is -lr times the gradient, added to the row."),
        ("moves different rows", [1, 2], "Every id has its own gradient."),
        (
            "moves a row that occurs twice by the sum of both gradients",
            [1, 2, 1],
            "The indexed assignment reads and writes each row once, whatever ids repeats.",
        ),
    ):
        whole = _scattered(few, g[: len(few)], 3)
        mean = whole / np.maximum(np.bincount(few, minlength=3), 1)[:, None]
        told = [
            (table - lr * mean, "A sum, not a mean: each time the row was used counts in full."),
            (table + lr * whole, "Down, not up: the step is subtracted."),
        ]
        given = (table, np.array(few), g[: len(few)], lr)
        yield case(claim, step, *given, expected=table - lr * whole, hint=hint, mistakes=told)
    rng = np.random.default_rng(1)
    table, ids, g = rng.normal(size=(6, 3)), rng.integers(0, 6, size=30), rng.normal(size=(30, 3))
    expected = table - 0.1 * _scattered(ids, g, 6)
    hint = "Every occurrence of an id moves its row once more."
    yield case(
        "holds for many ids", step, table, ids, g, 0.1, expected=expected, hint=hint, rtol=1e-4
    )


@exercise(points=2)
def token_neighbours(neighbours: Callable[..., Any]) -> Iterator[Case]:
    """`neighbours(table, i, k)` returns the `k` rows most like row `i` by cosine, nearest first.

    Example:
        >>> def neighbours(table, i, k):
        ...     unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        ...     cosine = unit @ unit[i]
        ...     cosine[i] = -2.0
        ...     return np.argsort(-cosine)[:k]
        >>> bool(token_neighbours(neighbours)), bool(token_neighbours(lambda table, i, k: ...))
        (True, False)
    """
    table = np.array([[1.0, 0.0], [0.9, 0.1], [5.0, 5.0], [-1.0, 0.0]])
    yield case(
        "finds the nearest direction, not the longest vector",
        neighbours,
        table,
        0,
        2,
        expected=[1, 2],
        hint="Divide every row by its length before you multiply; leave row i itself out.",
        mistakes=[
            ([0, 1], "Row 0 is most like itself: leave it out."),
            ([3, 2], "Nearest first: np.argsort sorts upwards, so sort the negated cosines."),
        ],
    )
    yield case(
        "leaves out row i even when another row has its direction",
        neighbours,
        np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]),
        2,
        1,
        expected=[0],
        hint="Give row i a similarity below -1 instead of skipping the first of the sorted rows.",
    )
    rng = np.random.default_rng(2)
    for rows, k in ((12, 3), (50, 7)):
        table, i = rng.normal(size=(rows, 4)) * rng.uniform(0.1, 9, size=(rows, 1)), rows // 3
        expected = _by_cosine(table, i)[:k]
        yield case(
            f"ranks {rows} rows of different lengths", neighbours, table, i, k, expected=expected
        )


@exercise(points=2)
def token_cost(cost: Callable[..., Any]) -> Iterator[Case]:
    """`cost(vocab_size, embed_dim, rest, tied)` returns the tables' share and training memory.

    The share is that of the token tables among all parameters, `rest` being the others; there is
    one table if the output is tied to the input, two if not. The memory is what the tables take in
    training with AdamW in float32: weight, dense gradient and the two running means, in bytes.

    Example:
        >>> def cost(vocab_size, embed_dim, rest, tied):
        ...     tables = vocab_size * embed_dim * (1 if tied else 2)
        ...     return tables / (tables + rest), 4 * 4 * tables
        >>> bool(token_cost(cost)), bool(token_cost(lambda v, d, rest, tied: ...))
        (True, False)
    """
    share, size = (
        (name, one_of_pair(i, "(share, bytes)")) for i, name in enumerate(("share", "bytes"))
    )
    numbers = "Weight, gradient and two running means are four numbers, of four bytes each."
    small, untied = (10, 4, 60, True), (10, 4, 60, False)
    yield case(
        "the share of a small tied model",
        cost,
        *small,
        expected=0.4,
        part=share,
        hint="One table of vocab_size * embed_dim numbers, divided by all parameters.",
        mistakes=[
            (40, "A fraction, not per cent: between 0 and 1."),
            (640, "First the share, then the bytes."),
            (40 / 60, "The tables are part of the total as well."),
        ],
    )
    yield case(
        "the bytes of a small tied model", cost, *small, expected=640, part=size, hint=numbers
    )
    two = "Two tables, and they are part of the total as well."
    yield case("the share of the untied model", cost, *untied, expected=4 / 7, part=share, hint=two)
    two = "Two tables, each with its gradient and running means."
    yield case("the bytes of the untied model", cost, *untied, expected=1280, part=size, hint=two)
    gpt = (50257, 768, 85_842_432)
    shapes = [("GPT-2 small, tied", (*gpt, True)), ("GPT-2 small, untied", (*gpt, False))]
    rng = np.random.default_rng(3)
    for tied in (True, False):
        vocab_size, embed_dim, rest = (int(n) for n in rng.integers(100, 10_000, size=3))
        shapes.append((f"a table of {vocab_size} rows", (vocab_size, embed_dim, rest, tied)))
    for claim, (vocab_size, embed_dim, rest, tied) in shapes:
        tables = vocab_size * embed_dim * (1 if tied else 2)
        expected = (tables / (tables + rest), 16 * tables)
        given = (vocab_size, embed_dim, rest, tied)
        yield case(claim, cost, *given, expected=expected, hint=numbers)


# Helpers -------------------------------------------------------------------------------------


def _scattered(ids: Any, g: np.ndarray, vocab_size: int) -> np.ndarray:
    """The scatter-add, one id at a time."""
    table = np.zeros((vocab_size, g.shape[-1]))
    for i, row in zip(np.reshape(ids, -1), g.reshape(-1, g.shape[-1]), strict=True):
        table[i] += row
    return table


def _by_cosine(table: np.ndarray, i: int) -> list[int]:
    """Every row but `i`, the one most like it first."""
    lengths = np.linalg.norm(table, axis=1)
    cosine = table @ table[i] / (lengths * lengths[i])
    return [int(j) for j in np.argsort(-cosine) if j != i]
