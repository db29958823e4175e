"""Checks for the exercises of the chapter on token embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise, raises

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
        table.copy(),
        np.array([3, -1]),
        error=IndexError,
        hint="NumPy counts negative indices from the end; here they are mistakes.",
    )
    yield raises("refuses an id past the end", lookup, table, np.array([7]), error=IndexError)


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
            "`table[ids] += g` writes each row once: of a repeated id only the last g remains.",
        ),
    ):
        g = np.array([[1.0, 1.0], [2.0, 2.0], [5.0, 5.0]])[: len(few)]
        expected = _scattered(few, g, 4)
        yield case(claim, gradient, np.array(few), g.copy(), 4, expected=expected, hint=hint)
    rng = np.random.default_rng(0)
    for shape, vocab_size in (((2, 3), 5), ((40,), 6), ((3, 2, 4), 9)):
        ids, g = rng.integers(0, vocab_size, size=shape), rng.normal(size=(*shape, 3))
        yield case(
            f"handles ids of shape {shape}",
            gradient,
            ids,
            g.copy(),
            vocab_size,
            expected=_scattered(ids, g, vocab_size),
            hint="Flatten first: ids.reshape(-1) and g.reshape(-1, g.shape[-1]).",
        )
    yield case(
        "leaves the gradient it was given alone",
        _what_is_left(gradient, 1),
        ids,
        g,
        vocab_size,
        expected=g.copy(),
        hint="Add into a new array; g belongs to someone else.",
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
        expected = table - lr * _scattered(few, g[: len(few)], 3)
        given = (table.copy(), np.array(few), g[: len(few)].copy(), lr)
        yield case(claim, step, *given, expected=expected, hint=hint)
    rng = np.random.default_rng(1)
    table, ids, g = rng.normal(size=(6, 3)), rng.integers(0, 6, size=30), rng.normal(size=(30, 3))
    expected = table - 0.1 * _scattered(ids, g, 6)
    yield case(
        "holds for many ids", step, table.copy(), ids, g.copy(), 0.1, expected=expected, atol=1e-4
    )
    yield case(
        "returns a new table and leaves the old one alone",
        _what_is_left(step, 0),
        table,
        ids,
        g,
        0.1,
        expected=table.copy(),
        hint="Copy the table before you change it.",
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
    shapes = [
        ("a small tied model", (10, 4, 60, True), "One table of vocab_size * embed_dim numbers."),
        (
            "the same model untied",
            (10, 4, 60, False),
            "Two tables, and they are part of the total as well.",
        ),
        ("GPT-2 small, tied", (50257, 768, 85_842_432, True), ""),
        ("GPT-2 small, untied", (50257, 768, 85_842_432, False), ""),
    ]
    rng = np.random.default_rng(3)
    for tied in (True, False):
        vocab_size, embed_dim, rest = (int(n) for n in rng.integers(100, 10_000, size=3))
        shapes.append((f"a table of {vocab_size} rows", (vocab_size, embed_dim, rest, tied), ""))
    for claim, (vocab_size, embed_dim, rest, tied), hint in shapes:
        tables = vocab_size * embed_dim * (1 if tied else 2)
        yield case(
            claim,
            cost,
            vocab_size,
            embed_dim,
            rest,
            tied,
            expected=(tables / (tables + rest), 16 * tables),
            hint=hint or "AdamW holds four float32 arrays of the shape of each table.",
        )


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


def _what_is_left(answer: Callable[..., Any], which: int) -> Callable[..., Any]:
    """A function that calls `answer` and returns its argument number `which` afterwards."""

    def argument_after_the_call(*given: Any) -> Any:
        given = tuple(np.array(g) if isinstance(g, np.ndarray) else g for g in given)
        answer(*given)
        return given[which]

    return argument_after_the_call
