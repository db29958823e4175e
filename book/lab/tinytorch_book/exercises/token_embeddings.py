"""Checks for the exercises of the chapter on token embeddings."""

from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, as_new, case, cases, one_of, raises
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import no_loop, without

__all__ = ["token_cost", "token_counts", "token_lookup", "token_neighbours", "token_row_step",
           "token_scatter_add"]  # fmt: skip

_A_SUM = "A sum, not a mean: each time the row was used counts in full."


@exercise(points=1, reference=lambda table, ids: table[ids])
def token_lookup(lookup: Any) -> Cases:
    """`lookup(table, ids)` returns the rows of `table` that `ids` name, for ids of any shape."""
    small = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    each = "Each id names one row of the table; collect the rows in the order of the ids."
    axis = "The result has the shape of the ids, and one more axis for the vector."
    below = "NumPy counts negative indices from the end; here they are mistakes."
    past = "Three rows have the ids 0, 1 and 2; NumPy's indexing refuses the others by itself."
    yield from cases(lookup, {
        "gives one row for each id": (each, small, np.array([2, 0])),
        "repeats a row": (each, small, np.array([1, 1, 0])),
        "gives a table of rows for a table of ids": (axis, small, np.array([[2, 0], [1, 1]])),
        "takes no ids": ("Without ids there is no ids.min().", small, np.zeros((2, 0), int)),
    })  # fmt: skip
    for shape, width in {(2, 3): 3, (2, 1, 4): 5, (1,): 1, (): 4, (3, 3): 3}.items():
        ids = np.asarray(generator(3).integers(0, 700, size=shape))
        claim = f"keeps ids of shape {shape} in place"
        yield case(claim, lookup, *drawn((700, width)), ids, hint=axis)
    for bad in map(np.array, ([1, -1], [3], [-4], [[0, 1], [-3, 2]], [[0, 1], [2, 7]])):
        claim, hint = f"refuses the ids {bad.tolist()}", below if bad.min() < 0 else past
        yield raises(claim, lookup, small, bad, error=IndexError, hint=hint)


def _scattered(ids: Any, g: np.ndarray, vocab_size: int) -> np.ndarray:
    table = np.zeros((vocab_size, g.shape[-1]))
    np.add.at(table, ids, g)
    return table


def _mean(ids: Any, g: np.ndarray, vocab_size: int) -> np.ndarray:
    counts = np.bincount(np.reshape(ids, -1), minlength=vocab_size)
    return _scattered(ids, g, vocab_size) / np.maximum(counts, 1)[:, None]


_NO_AT = without("You know np.add.at; find another way.", np.add.at)


@exercise(points=3, reference=_scattered, mistakes=[(_mean, _A_SUM)], rules=[_NO_AT])
def token_scatter_add(gradient: Any) -> Cases:
    """`gradient(ids, g, vocab_size)` returns the gradient of the table, `(vocab_size, d)`."""
    zeros = "Begin with zeros of shape (vocab_size, d); only the rows in ids change."
    once = "An indexed assignment writes each row once: of a repeated id only the last g remains."
    flatten = "Flatten first: ids.reshape(-1) and g.reshape(-1, g.shape[-1])."
    g, square = np.array([[1.0, 1.0], [2.0, 2.0], [5.0, 5.0]]), np.array([[0, 1], [1, 1]])
    yield from cases(gradient, {
        "puts each gradient into the row of its id": (zeros, np.array([2, 0]), g[:2], 4),
        "sums the gradients of a repeated id": (once, np.array([2, 0, 2]), g, 4),
        "handles a batch of two sentences": (flatten, square, np.ones((2, 2, 1)), 3),
    })  # fmt: skip
    for *shape, rows, width in (
        (2, 3, 5, 3), (40, 6, 3), (3, 2, 4, 9, 2), (1, 2, 1), (20, 30, 400, 2), (0, 3, 2),
    ):  # fmt: skip
        ids, (g,) = generator().integers(0, rows, size=shape), drawn((*shape, width))
        yield case(f"handles ids of shape {tuple(shape)}", gradient, ids, g, rows, hint=flatten)
    few, tiny = np.array([3, 3, 1]), 1e-30 * drawn((3, 4))[0]
    claim = "keeps tiny gradients, and rows that were never used"
    yield case(claim, gradient, few, tiny, 12, hint=zeros, atol=0.0)


def _stepped(table: Any, ids: Any, g: Any, lr: float, scatter: Any = _scattered) -> Any:
    return table - lr * scatter(ids, g, len(table))


_STEPS = [
    (lambda t, ids, g, lr: _stepped(t, ids, g, lr, _mean), _A_SUM),
    (lambda t, ids, g, lr: _stepped(t, ids, g, -lr), "Down, not up: the step is subtracted."),
    (lambda t, ids, g, lr: _stepped(t, ids, g, 1), "The step is lr times the gradient."),
]  # fmt: skip


@exercise(points=2, reference=_stepped, mistakes=_STEPS)
def token_row_step(step: Any) -> Cases:
    """`step(table, ids, g, lr)` returns a table whose looked-up rows took a step of SGD."""
    table, g = np.ones((3, 2)), np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    once = "The indexed assignment reads and writes each row once, whatever ids repeats."
    every = "Every occurrence of an id moves its row once more."
    yield from cases(step, {
        "moves one row": ("Add -lr times the gradient.", table, np.array([1]), g[:1], 0.5),
        "moves different rows": ("Each id has its gradient.", table, np.array([1, 2]), g[:2], 0.5),
        "moves a row that occurs twice by the sum of both gradients":
            (once, table, np.array([1, 2, 1]), g, 0.5),
    })  # fmt: skip
    for rows, width, tokens, lr in (
        (6, 3, 30, 0.1), (9, 5, 4, 2.0), (2, 1, 8, 1e-3), (300, 2, 900, 0.5),
    ):  # fmt: skip
        ids = generator(1).integers(0, rows, size=tokens)
        table, g = drawn((rows, width), (tokens, width))
        yield case(f"holds for {tokens} ids and lr = {lr:g}", step, table, ids, g, lr, hint=every)
    none = np.ones((3, 2)), np.zeros(0, dtype=int), np.zeros((0, 2)), 0.5
    new = "Return a new table, even if no row moves."
    yield case("returns a new table for no ids", step, *none, hint=new, run=as_new)
    tiny = 1e-30 * np.ones((3, 2)), np.array([0, 2, 0]), 1e-30 * drawn((3, 2))[0], 0.5
    yield case("moves tiny numbers", step, *tiny, hint=every, atol=0)


def _all_by_cosine(table: np.ndarray, i: int) -> np.ndarray:
    return np.argsort(-(table @ table[i]) / np.linalg.norm(table, axis=1), kind="stable")


def _by_cosine(table: np.ndarray, i: int, k: int) -> list[int]:
    return [j for j in _all_by_cosine(table, i).tolist() if j != i][:k]


_ORDERS = [
    (lambda t, i, k: _all_by_cosine(t, i)[:k], "Row i is most like itself: leave it out."),
    (lambda t, i, k: _by_cosine(t, i, len(t))[::-1][:k],
        "Nearest first: np.argsort sorts upwards, so sort the negated cosines."),
]  # fmt: skip


@exercise(points=2, reference=_by_cosine, mistakes=_ORDERS)
def token_neighbours(neighbours: Any) -> Cases:
    """`neighbours(table, i, k)` returns the `k` rows most like row `i` by cosine, nearest first."""
    length = "Divide every row by its length before you multiply; leave row i itself out."
    skip = "Give row i a similarity below -1 instead of skipping the first of the sorted rows."
    least = "A cosine may be as low as -1: give row i less than that, or remove it."
    longer = np.array([[1.0, 0.0], [0.9, 0.1], [5.0, 5.0], [-1.0, 0.0]])
    away = np.array([[1.0, 0.0], [-2.0, 0.0], [-1.0, 3.0], [-1.0, 1.0]])
    yield from cases(neighbours, {
        "finds the nearest direction, not the longest vector": (length, longer, 0, 2),
        "leaves out row i even when another row has its direction":
            (skip, np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]), 2, 1),
        "leaves out row i even when all others look away": (least, away, 0, 3),
        "leaves out row i even when the other is its opposite": (least, away[:2], 0, 1),
    })  # fmt: skip
    for rows, d, k, scale in ((12, 4, 3, 1), (2000, 3, 300, 1), (9, 6, 8, 1e-30), (5, 3, 1, 1e30)):
        table, lengths = drawn((rows, d), (rows, 1))
        given = scale * np.exp(lengths) * table, rows // 3, k
        yield case(f"ranks {rows} rows of different lengths", neighbours, *given, hint=length)


def _costs(vocab_size: int, embed_dim: int, rest: int, tied: bool) -> tuple[float, int]:
    tables = vocab_size * embed_dim * (1 if tied else 2)
    return tables / (tables + rest), 16 * tables


_SHARES: list[tuple[Any, str]] = [
    (lambda *given: (100 * _costs(*given)[0], _costs(*given)[1]), "A fraction, not a percentage."),
    (lambda *given: (_costs(*given)[1], _costs(*given)[0]), "First the share, then the bytes."),
    (
        lambda v, d, rest, tied: (v * d / rest, _costs(v, d, rest, tied)[1]),
        "The tables are part of the total as well.",
    ),
]


@exercise(points=2, reference=_costs, mistakes=_SHARES)
def token_cost(cost: Any) -> Cases:
    """`cost(vocab_size, embed_dim, rest, tied)` returns the tables' share and training memory."""
    table = "One table of vocab_size * embed_dim numbers, divided by all parameters."
    numbers = "Weight, gradient and two running means are four numbers, of four bytes each."
    total = "Two tables, and they are part of the total as well."
    each = "Two tables, each with its gradient and running means."
    models = {"a small {} model": (10, 4, 60), "GPT-2 small, {}": (50257, 768, 85_842_432),
              "a table of 777 rows, {}": (777, 9_100, 1_234)}  # fmt: skip
    for name, sizes in models.items():
        for untied, i in np.ndindex(2, 2):
            part = one_of(("share", "bytes")[i], "share", "bytes")
            claim = f"the {part[0]} of {name.format('untied' if untied else 'tied')}"
            hint = ((table, numbers), (total, each))[untied][i]
            yield case(claim, cost, *sizes, not untied, part=part, hint=hint)


@exercise(
    points=1,
    reference=lambda ids, vocab_size: np.bincount(ids.ravel(), minlength=vocab_size),
    rules=[no_loop],
)
def token_counts(answer: Any) -> Cases:
    """Check how often each row of a table is looked up."""
    rows = "A row that nobody looks up, the last ones too, has the count 0."
    yield from cases(answer, {
        "counts repeated ids": (rows, np.array([1, 3, 1, 1, 0]), 4),
        "counts rows at the end": (rows, np.array([0, 0, 1]), 6),
        "counts a batch": (rows, np.array([[2, 2, 1], [2, 0, 4]]), 5),
        "counts three axes": (rows, np.arange(12).reshape(2, 3, 2) % 5, 5),
        "counts a single id": (rows, np.array(2), 4),
        "counts no ids": (rows, np.zeros((0, 3), dtype=int), 3),
        "counts thousands": (rows, generator().integers(0, 7, size=(50, 60)), 9),
        "counts many rows": (rows, generator().integers(0, 500, size=90), 600),
    })  # fmt: skip
