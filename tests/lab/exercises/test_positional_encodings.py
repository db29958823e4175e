"""What the reports of the chapter on positions say."""

import numpy as np

from tinytorch_book import check


def test_predicted_counts_are_hidden():
    assert "expected" not in repr(check.positions_count(lambda scheme, T, d: 3))
    report = check.positions_count(lambda scheme, T, d: 20 if scheme == "learned" else 0)
    assert "expected" not in repr(report) and str(2048 * 1024) not in repr(report)


def test_the_report_names_the_part_of_the_table_it_shows():
    found = check.positions_sinusoids(
        lambda T, d: np.arange(T)[:, None] + np.tile([0.0, 1.0], d // 2)
    ).cases[-1]
    assert found.expected.startswith("row 1: ") and found.got.startswith("row 1: ")


def test_a_single_row_is_not_accepted_as_the_table():
    def hard_coded(T, d):
        table = np.tile([0.0, 1.0], (T, d // 2))
        if d == 8:
            table[1] = [0.84, 0.54, 0.10, 1.00, 0.01, 1.00, 0.00, 1.00]
        return table

    assert "whole table" in check.positions_sinusoids(hard_coded).cases[-1].claim
