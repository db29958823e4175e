"""Pieces that fit the cache: together they are the whole, each is as large as allowed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytorch.core.chunks import CHUNK, chunks


def pieces(length, row_size=1, limit=CHUNK):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tinytorch.core.chunks.CHUNK", limit)
        return list(chunks(length, row_size))


@given(length=st.integers(0, 300), row_size=st.integers(0, 50), limit=st.integers(1, 100))
def test_pieces_cover_every_row_once_and_in_order(length, row_size, limit):
    rows = np.arange(length)
    covered = [rows[at] for at in pieces(length, row_size, limit)]
    assert [int(row) for part in covered for row in part] == rows.tolist()
    assert all(part.size for part in covered)


@given(length=st.integers(0, 300), row_size=st.integers(1, 50), limit=st.integers(1, 100))
def test_piece_holds_as_many_rows_as_the_limit_allows_and_at_least_one(length, row_size, limit):
    sizes = [len(range(length)[at]) for at in pieces(length, row_size, limit)]
    assert all(size * row_size <= limit or size == 1 for size in sizes)
    assert all((size + 1) * row_size > limit for size in sizes[:-1])  # only the last is shorter


@pytest.mark.parametrize(
    ("length", "expected"),
    [(0, []), (1, [1]), (CHUNK - 1, [CHUNK - 1]), (CHUNK, [CHUNK]), (CHUNK + 1, [CHUNK, 1])],
)
def test_default_limit_is_exact_to_the_element(length, expected):
    assert [len(range(length)[at]) for at in chunks(length)] == expected
