"""Row-sparse matrices."""

import numpy as np
import pytest

from tinytorch import RowSparse
from tinytorch.core.sparse import MANY


def example():
    values = np.array([[1.0, 10.0], [2.0, 20.0], [5.0, 50.0]])
    return RowSparse(np.array([3, 1, 3]), values, (4, 2))


DENSE = [[0.0, 0.0], [2.0, 20.0], [0.0, 0.0], [6.0, 60.0]]


def test_dense_form_sums_repeated_rows():
    assert example().to_dense().tolist() == DENSE


def test_coalesced_rows_are_unique_and_sorted():
    once = example().coalesce()
    assert once.rows.tolist() == [1, 3]
    assert once.values.tolist() == [[2.0, 20.0], [6.0, 60.0]]
    assert once.to_dense().tolist() == DENSE


def test_rows_listed_once_or_often_are_summed_alike():
    rng = np.random.default_rng(0)
    counts = [0, 1, 2, 3, MANY - 1, MANY, MANY + 1, 40]  # of the rows 0, 1, ...
    rows = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    values = rng.integers(-9, 10, (rows.size, 5)).astype(float)
    expected = np.zeros((len(counts), 5))
    np.add.at(expected, rows, values)
    assert np.array_equal(RowSparse(rows, values, expected.shape).to_dense(), expected)


def test_sum_of_two_stays_sparse():
    total = example() + RowSparse(np.array([0]), np.array([[7.0, 7.0]]), (4, 2))
    assert isinstance(total, RowSparse)
    assert total.to_dense().tolist() == [[7.0, 7.0], *DENSE[1:]]


def test_sum_with_an_array_on_either_side_is_an_array():
    ones = np.ones((4, 2))
    for total in (example() + ones, ones + example()):
        assert isinstance(total, np.ndarray)
        assert total.tolist() == [[v + 1 for v in row] for row in DENSE]


def test_product_with_a_number_on_either_side_scales_every_row():
    for scaled in (example() * 0.5, 0.5 * example()):
        assert isinstance(scaled, RowSparse)
        assert scaled.to_dense().tolist() == [[v / 2 for v in row] for row in DENSE]


def test_repr_gives_row_count_and_shape():
    assert repr(example()) == "RowSparse(3 rows of (4, 2))"


def test_sum_of_two_shapes_is_refused():
    with pytest.raises(ValueError) as caught:
        example() + RowSparse(np.array([0]), np.ones((1, 2)), (5, 2))
    assert str(caught.value) == "cannot add RowSparse of shapes (4, 2) and (5, 2)"
