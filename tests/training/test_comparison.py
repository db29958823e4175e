"""Means with errors, control variates, sample sizes and Holm's method."""

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from tinytorch.training.comparison import Estimate, estimate, texts_needed, unpaired


def test_the_error_is_that_of_all_possible_draws():
    """Of all draws of 3 from 4 numbers, with replacement, the mean square error is var / 3."""
    numbers = np.array([1.0, 2.0, 5.0, 11.0])
    draws = np.array(list(itertools.product(numbers, repeat=3)))
    squared = np.mean([estimate(draw).error ** 2 for draw in draws])
    assert squared == pytest.approx(draws.mean(axis=1).var())
    assert squared == pytest.approx(numbers.var() / 3)


def test_unpaired_adds_the_squares_of_both_errors():
    a, b = [1.0, 2.0, 4.0], [1.0, 5.0]
    mean, error = unpaired(a, b)
    assert mean == pytest.approx(7 / 3 - 3)
    assert error**2 == pytest.approx(np.var(a, ddof=1) / 3 + np.var(b, ddof=1) / 2)


def test_a_control_variate_is_the_intercept_of_a_regression():
    rng = np.random.default_rng(1)
    known = rng.normal(24, 3, 40)
    values = 0.8 * known + rng.normal(0, 0.5, 40)
    columns = np.stack([np.ones(40), known - 24], axis=1)
    weights, (squares,), *_ = np.linalg.lstsq(columns, values)
    found = estimate(values, known, 24.0)
    assert found.mean == pytest.approx(weights[0])
    assert found.error == pytest.approx(math.sqrt(squares / 38 / 40))


def test_the_error_of_a_controlled_mean_is_that_of_many_draws():
    rng = np.random.default_rng(3)
    known = rng.normal(10, 2, (4000, 50))
    values = 1.5 * known + rng.normal(0, 1, (4000, 50))
    found = np.array([estimate(v, k, 10.0) for v, k in zip(values, known, strict=True)])
    assert found[:, 0].mean() == pytest.approx(15, abs=0.01)
    assert found[:, 0].std() == pytest.approx(found[:, 1].mean(), rel=0.05)


# Tests and sample sizes ----------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.95, 0.999, 1 - 2**-53])
def test_an_interval_ends_where_the_p_value_is_what_is_left(level):
    low, high = Estimate(1.0, 0.3).interval(level)
    assert low + high == pytest.approx(2)
    assert Estimate(high - 1, 0.3).p_value == pytest.approx(1 - level)


def test_a_p_value_without_any_error():
    assert Estimate(0.0, 0.0).p_value == 1
    assert Estimate(0.1, 0.0).p_value == 0


def test_the_number_of_texts_has_the_power_that_was_asked_for():
    n = texts_needed(0.1, 1.3, level=0.01, power=0.9)
    for count, enough in ((n, True), (n - 1, False)):
        error = 1.3 / math.sqrt(count)
        beyond = NormalDist().cdf(0.1 / error - NormalDist().inv_cdf(0.995))
        assert (beyond >= 0.9) == enough


def test_half_the_difference_needs_four_times_the_texts():
    assert texts_needed(-0.05, 3.06) == pytest.approx(4 * texts_needed(0.1, 3.06), abs=4)


# What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan")])
def test_shares_are_between_0_and_1(share):
    with pytest.raises(ValueError, match="level must be between 0 and 1, got"):
        Estimate(0.0, 1.0).interval(share)
    with pytest.raises(ValueError, match="power must be between 0 and 1, got"):
        texts_needed(0.1, 1.0, power=share)
