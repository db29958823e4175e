"""Activations as layers: the functional ones, and nothing to learn."""

import numpy as np
import pytest

from tinytorch import GELU, ReLU, Sigmoid, Softmax, Tanh, Tensor, check_gradients

KNOWN = [
    (ReLU(), [0.0, 0.0, 1.0]),
    (GELU(), [-0.158808, 0.0, 0.841192]),
    (Tanh(), [-0.761594, 0.0, 0.761594]),
    (Sigmoid(), [0.268941, 0.5, 0.731059]),
    (Softmax(), [0.090031, 0.244728, 0.665241]),
]
each_activation = pytest.mark.parametrize(
    ("layer", "expected"), KNOWN, ids=[type(layer).__name__ for layer, _ in KNOWN]
)


@each_activation
def test_values_at_minus_one_zero_and_one(layer, expected):
    np.testing.assert_allclose(layer(Tensor([-1.0, 0.0, 1.0])).data, expected, atol=1e-6)


@each_activation
def test_gradient_matches_finite_differences(layer, expected):
    assert check_gradients(layer, np.array([[-1.3, 0.4], [2.1, -0.2]]), tol=1e-8)
