"""What the reports of the chapter on token embeddings say."""

import numpy as np

from tinytorch_book import check


def test_a_single_cost_is_reported_as_not_a_pair():
    report = check.token_cost(lambda *sizes: 0.4)
    assert report.cases[-1].got == "0.4, which is not (share, bytes)"


def test_numpy_numbers_are_shown_as_plain_numbers():
    assert check.token_neighbours(lambda *_: list(np.array([3, 2]))).cases[-1].got == "[3, 2]"
