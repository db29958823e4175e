"""Comparisons of two models, against the tests and the regression of SciPy."""

import numpy as np
import pytest
from scipy import stats

from tinytorch.training.comparison import Estimate, estimate, texts_needed, unpaired


@pytest.fixture
def two():
    rng = np.random.default_rng(0)
    luck = rng.normal(24, 3, 300)
    return luck + rng.normal(0, 0.3, 300), luck + rng.normal(0.05, 0.4, 300)


def test_paired_difference(two):
    a, b = two
    found, theirs = estimate(b - a), stats.ttest_rel(b, a)
    assert found.mean / found.error == pytest.approx(theirs.statistic)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(abs(theirs.statistic)))


def test_unpaired_difference(two):
    a, b = two
    found, theirs = unpaired(b[:170], a[170:]), stats.ttest_ind(b[:170], a[170:], equal_var=False)
    assert found.mean / found.error == pytest.approx(theirs.statistic)


def test_a_normal_p_value_is_that_of_students_t_for_many_texts(two):
    a, b = two
    many = np.tile(b - a, 30)
    assert estimate(many).p_value == pytest.approx(stats.ttest_1samp(many, 0).pvalue, rel=0.02)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_interval(level):
    assert Estimate(2.0, 0.5).interval(level) == pytest.approx(stats.norm.interval(level, 2.0, 0.5))


def test_control_variate(two):
    values, known = two
    found, line = estimate(values, known, 24.0), stats.linregress(known - 24.0, values)
    assert found.mean == pytest.approx(line.intercept)
    away = (known.mean() - 24.0) ** 2 / known.var()  # the regression's error has this as well
    assert found.error * np.sqrt(1 + away) == pytest.approx(line.intercept_stderr)


@pytest.mark.parametrize(("difference", "level", "power"), [(0.1, 0.05, 0.8), (0.3, 0.01, 0.95)])
def test_texts_needed(difference, level, power):
    n = texts_needed(difference, 1.0, level, power)
    limit = stats.norm.isf(level / 2)
    for count, enough in ((n, True), (n - 1, False)):
        assert (stats.norm.sf(limit - difference * np.sqrt(count)) >= power) == enough
