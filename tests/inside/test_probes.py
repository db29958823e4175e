"""Probes against the normal equations, and measures against what they are defined as."""

import numpy as np
import pytest

from tinytorch.inside.probes import LinearProbe, calibration_table, r_squared


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5)) * [1, 10, 0.1, 1, 1] + [0, 3, 0, -1, 2]
    y = x @ rng.normal(size=(5, 3)) + rng.normal(size=(200, 3)) + 4
    return x, y


@pytest.mark.parametrize("ridge", [0, 1e-3, 1.0])
def test_the_probe_solves_the_normal_equations_of_its_penalty(data, ridge):
    x, y = data
    design = np.column_stack([x, np.ones(200)])
    penalty = np.diag([*(ridge * 200 * x.var(axis=0)), 0.0])  # none on the bias
    both = np.linalg.solve(design.T @ design + penalty, design.T @ y)
    probe = LinearProbe(x, y, ridge)
    np.testing.assert_allclose(probe.weight, both[:-1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(probe.bias, both[-1], rtol=0, atol=1e-8)
    np.testing.assert_allclose(probe(x[None]), [design @ both], rtol=0, atol=1e-8)


def test_scaling_the_activations_does_not_change_the_probe(data):
    x, y = data
    scale = np.array([1, 100, 0.01, 5, 1])
    np.testing.assert_allclose(LinearProbe(x, y, 0.1)(x), LinearProbe(x * scale, y, 0.1)(x * scale))


def test_constant_and_repeated_columns_are_allowed(data):
    x, y = data
    wide = np.column_stack([x, np.full(200, 7.0), x[:, 0]])
    np.testing.assert_allclose(LinearProbe(wide, y, 0)(wide), LinearProbe(x, y, 0)(x), atol=1e-8)


def test_orthogonal_activations_do_not_change_the_prediction(data):
    x, y = data
    y = np.column_stack([y, y.sum(axis=1)])  # of rank 3
    probe = LinearProbe(x, y, 0.1)
    basis, change = probe.directions, np.random.default_rng(3).normal(size=x.shape)
    assert basis.shape == (5, 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    blind = change - change @ basis @ basis.T
    np.testing.assert_allclose(probe(x + blind), probe(x), atol=1e-9)
    np.testing.assert_allclose(probe(x + change - blind), probe(x + change), atol=1e-9)


def test_r_squared_is_one_minus_the_residual_share(data):
    x, y = data
    assert r_squared(y, y) == 1
    assert r_squared(y, np.broadcast_to(y.mean(axis=0), y.shape)) == 0
    assert r_squared(y, -y) < 0
    one = r_squared(y[:, :1], x[:, :1])
    by_hand = 1 - np.sum((y[:, 0] - x[:, 0]) ** 2) / np.sum((y[:, 0] - y[:, 0].mean()) ** 2)
    assert one == pytest.approx(by_hand)


def test_calibration_is_counted_bin_by_bin():
    rng = np.random.default_rng(1)
    said, truth = rng.random((50, 4)), rng.random((50, 4))
    for i, (mean, so, count) in enumerate(calibration_table(truth, said, bins=5)):
        inside = (said >= i / 5) & (said < (i + 1) / 5)
        assert count == inside.sum()
        assert mean == pytest.approx(said[inside].mean()) and so == pytest.approx(
            truth[inside].mean()
        )


def test_predictions_outside_0_and_1_count_as_certain():
    table = calibration_table([0.0, 1.0, 1.0], [-0.2, 1.3, 1.0], bins=2)
    np.testing.assert_allclose(table, [[0, 0, 1], [1, 1, 2]])


def test_mismatched_shapes_are_refused():
    with pytest.raises(
        ValueError, match=r"x must be \(n, d\) and y \(n, k\).*\(3, 2\) and \(4, 1\)"
    ):
        LinearProbe(np.ones((3, 2)), np.ones((4, 1)))
    with pytest.raises(ValueError, match="ridge must be 0 or more, got -1"):
        LinearProbe(np.ones((3, 2)), np.ones((3, 1)), ridge=-1)
    with pytest.raises(ValueError, match="truth is constant"):
        r_squared(np.ones((3, 1)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match=r"must have the same shape; got shapes \(2,\) and \(3,\)"):
        calibration_table([0, 1], [0, 1, 1])
