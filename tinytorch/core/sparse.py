"""Gradients that touch only some rows of a table.

The gradient of an embedding lookup is zero in every row that was not looked up. `RowSparse` keeps
the touched rows alone: for a vocabulary of V words of which a batch uses B, that is B rows instead
of V. `Embedding(..., sparse=True)` produces it and the optimisers apply it row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.arguments import check_ids
from tinytorch.core.types import DType


class RowSparse:
    """A matrix stored as some of its rows; all others are zero.

    Args:
        rows: integer array `(n,)`, the row numbers; a row may be listed several times, and then
            its values add up.
        values: array `(n, d)`, one row of values for each entry of `rows`.
        shape: `(num_rows, d)`, the shape of the full matrix.

    Raises:
        ValueError: `rows`, `values` and `shape` do not fit together.
        IndexError: a row is negative or too large; rows count from 0.

    Example:
        >>> g = RowSparse(
        ...     np.array([3, 1, 3]), np.array([[1.0, 1.0], [2.0, 2.0], [5.0, 5.0]]), (5, 2)
        ... )
        >>> g.to_dense()[3]
        array([6., 6.])
        >>> g.coalesce().rows
        array([1, 3])
    """

    __array_ufunc__ = None  # so that array + RowSparse calls our __radd__

    def __init__(self, rows: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> None:
        rows, values = np.asarray(rows), np.asarray(values)
        if len(shape) != 2 or rows.ndim != 1 or values.shape != (rows.size, shape[1]):
            parts = f"rows {rows.shape} and values {values.shape}"
            wanted = f"rows must be (n,) and values (n, {shape[-1]})"
            raise ValueError(f"RowSparse: {parts} do not describe a matrix {shape}; {wanted}")
        rows = check_ids(rows, shape[0], "RowSparse: row", "count the rows from 0")
        self.rows, self.values, self.shape = rows, values, tuple(shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        return self.values.dtype

    def coalesce(self) -> RowSparse:
        """The same matrix with every row listed once, in increasing order."""
        if self.rows.size == 0:
            return self
        order = np.argsort(self.rows, kind="stable")
        ordered = self.rows[order]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        return RowSparse(ordered[starts], sum_groups(self.values, order, starts), self.shape)

    def to_dense(self) -> np.ndarray:
        """The full matrix, zeros included."""
        once = self.coalesce()
        dense = np.zeros(self.shape, dtype=self.values.dtype)
        dense[once.rows] = once.values
        return dense

    def astype(self, dtype: DType) -> RowSparse:
        """A copy of the same rows, the values converted."""
        return RowSparse(self.rows.copy(), self.values.astype(dtype), self.shape)

    def __add__(self, other: RowSparse | np.ndarray) -> RowSparse | np.ndarray:
        if isinstance(other, RowSparse):
            if other.shape != self.shape:
                raise ValueError(f"cannot add RowSparse of shapes {self.shape} and {other.shape}")
            rows = np.concatenate([self.rows, other.rows])
            return RowSparse(rows, np.concatenate([self.values, other.values]), self.shape)
        return self.to_dense() + other

    __radd__ = __add__

    def __mul__(self, factor: float) -> RowSparse:
        return RowSparse(self.rows, self.values * factor, self.shape)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"RowSparse({self.rows.size} rows of {self.shape})"


MANY = 8  # rows: a larger group is summed by `reduceat`, which is then the faster way


def sum_groups(values: np.ndarray, order: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sum groups of rows, as `np.add.reduceat(values[order], starts, axis=0)` does.

    That is slow where most groups have few rows: a lookup uses most tokens once or twice. So the
    second rows of all such groups are added in one step, then the third ones, and so on.

    Args:
        values: `(n, d)`.
        order: `(n,)`, the numbers of the rows, group by group.
        starts: `(groups,)`, where in `order` each group begins.
    """
    sizes = np.diff(starts, append=order.size)
    sums = values.take(order[starts], axis=0)
    few = np.flatnonzero(sizes <= MANY)
    for nth in range(1, MANY):
        few = few[sizes[few] > nth]
        if few.size:
            sums[few] += values.take(order[starts[few] + nth], axis=0)
    many = sizes > MANY
    if many.any():
        rest = values[order[np.repeat(many, sizes)]]
        sums[many] = np.add.reduceat(rest, np.cumsum(sizes[many]) - sizes[many], axis=0)
    return sums
