"""The drawing of "Which is better?" says what its numbers say."""

import math

import numpy as np
from drawings.after_which_is_better import WAYS, differences

from tinytorch.training.comparison import texts_needed
from tinytorch_book.experiments.compared_models import compared_models


def test_the_counts_are_those_of_the_stored_models():
    nats, _ = compared_models()
    own, same, expected = differences()
    true, apart = same.mean(), math.hypot(nats["story GPT"].std(), nats["five bits"].std())
    assert WAYS[0][2] == f"{texts_needed(true, apart):,} stories each"
    assert WAYS[1][2] == f"{texts_needed(true, same.std())} stories"
    assert texts_needed(true, expected.std()) <= 10
    assert abs(own.std() / apart - 1) < 0.03


def test_each_panel_holds_nearly_all_and_is_ten_times_as_close():
    reaches = [reach for _, reach, _ in WAYS]
    assert np.allclose(np.divide(reaches[:-1], reaches[1:]), 10)
    for values, reach in zip(differences(), reaches, strict=True):
        assert (np.abs(values) < reach).mean() > 0.95
