"""A scaling law is found from models that follow one, and its error is told when they hardly do."""

import numpy as np
import pytest

from tinytorch_book.experiments import scaling
from tinytorch_book.experiments.scaling import ScalingLaw, bootstrap, fit_scaling_law

TRUTH = ScalingLaw(0.1144, 20.0, 0.5, 300.0, 0.6)
CHINCHILLA = ScalingLaw(
    np.exp(0.5267228), np.exp(6.0073404), 0.33917084, np.exp(6.0179186), 0.2849083
)


def models(law=TRUTH, noise=0.0, seed=0):
    """Sizes, tokens and losses on a grid of thirteen by seven."""
    sizes, tokens = np.meshgrid(np.geomspace(5e3, 7e5, 13), np.geomspace(6e4, 4e6, 7))
    luck = np.exp(noise * np.random.default_rng(seed).normal(size=sizes.shape))
    return sizes.ravel(), tokens.ravel(), (law(sizes, tokens) * luck).ravel()


@pytest.mark.parametrize("law", [TRUTH, CHINCHILLA, ScalingLaw(2.0, 5.0, 0.2, 4e4, 1.1)])
def test_a_fit_to_noiseless_losses_recovers_the_law(law):
    assert fit_scaling_law(*models(law)) == pytest.approx(law, rel=1e-4)


def test_a_few_outliers_hardly_change_the_fit():
    sizes, tokens, losses = models(noise=0.002)
    losses[::15] *= 3
    found = fit_scaling_law(sizes, tokens, losses)
    squares = fit_scaling_law(sizes, tokens, losses, delta=1e9)
    assert found == pytest.approx(TRUTH, rel=0.1)
    assert squares.floor != pytest.approx(TRUTH.floor, rel=0.1)


def test_a_fit_with_a_known_floor_recovers_the_other_constants():
    found = fit_scaling_law(*models(noise=0.01), floor=0.1144)
    assert found.floor == pytest.approx(0.1144, rel=1e-14)
    assert found == pytest.approx(TRUTH, rel=0.2)


@pytest.mark.parametrize("delta", [1e-3, 0.1, 1e9])
def test_the_gradient_matches_the_complex_step(delta):
    logs, rng = scaling._logs(*models(noise=0.05)), np.random.default_rng(1)
    theta = np.array([[-2.0, 3.0, 0.4, 5.0, 0.5], [-3.0, 1.0, 0.2, 6.0, 0.7]])
    counts = rng.integers(0, 3, size=(2, 91)).astype(float)
    gradient, _ = scaling._gradient(theta, logs, counts, delta)
    for i in range(5):
        step = theta.astype(complex)
        step[:, i] += 1e-30j
        expected = scaling._objective(step, logs, counts, delta).imag / 1e-30
        np.testing.assert_allclose(gradient[:, i], expected, rtol=1e-10)


def test_the_fit_needs_no_nearby_start_and_returns_the_best_end():
    data = models(noise=0.02)
    logs = scaling._logs(*data)
    found, value = scaling._search(
        scaling._starts(logs), logs, np.ones((1, 91)), scaling.DELTA, 1e-9, None
    )
    best = fit_scaling_law(*data)
    assert np.exp(found[value.argmin(), 0]) == pytest.approx(best.floor, rel=1e-9)
    at_the_best = value <= value.min() * (1 + 1e-6)
    assert at_the_best.mean() > 0.5  # most starts end there


def test_a_floor_of_zero_is_fitted_as_nearly_zero():
    data = models(ScalingLaw(1e-30, 20.0, 0.5, 300.0, 0.6))
    assert 0 < fit_scaling_law(*data).floor < 1e-6 * data[2].min()
    assert all(0 < law.floor < 1e-6 for law in bootstrap(*data, samples=5))


def test_bootstrap_samples_are_drawn_with_replacement_and_fitted():
    data = models(noise=0.03)
    laws = bootstrap(*data, samples=40, rng=3)
    floors = np.array([law.floor for law in laws])
    assert len(laws) == 40 and np.unique(floors).size == 40
    assert np.quantile(floors, 0.01) < TRUTH.floor < np.quantile(floors, 0.99)
    assert laws[0] == bootstrap(*data, samples=40, rng=3)[0]


def test_a_sample_counts_a_model_as_often_as_it_was_drawn():
    sizes, tokens, losses = models(noise=0.03)
    counts = np.random.default_rng(3).multinomial(91, np.full(91, 1 / 91), size=1)[0]
    again = (np.repeat(array, counts) for array in (sizes, tokens, losses))
    law = bootstrap(sizes, tokens, losses, samples=1, rng=3)[0]
    assert law == pytest.approx(fit_scaling_law(*again), rel=1e-3)


def test_the_best_split_is_the_lowest_point_of_its_line():
    for compute in (1e9, 1e12):
        parameters, tokens = TRUTH.best_split(compute)
        assert 6 * parameters * tokens == pytest.approx(compute)
        for factor in (0.9, 1.1):
            assert TRUTH(parameters * factor, tokens / factor) > TRUTH(parameters, tokens)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda n, d, losses: (n[1:], d, losses), "three arrays of equal length"),
        (lambda n, d, losses: (n[:4], d[:4], losses[:4]), "at least 5 models, got 4"),
        (lambda n, d, losses: (n, d, losses * 0), "losses must be positive"),
        (lambda n, d, losses: (n, d * np.nan, losses), "tokens must be positive and finite"),
    ],
)
def test_data_that_cannot_be_fitted_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        fit_scaling_law(*change(*models()))
