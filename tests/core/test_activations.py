"""Activations as layers: the functional ones, and nothing to learn."""

import math

import numpy as np
import pytest

from tinytorch import GELU, ReLU, Sigmoid, Softmax, Tanh, Tensor, check_gradients, functional

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


def exact(x):
    """`x Phi(x)`, number by number."""
    return np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


def test_exact_gelu_uses_the_error_function():
    x = np.concatenate([np.linspace(-14, 14, 20_001), [0.0, 1e-6, -1e-6, 40.0, -40.0]])
    single = GELU("none")(Tensor(x)).data
    assert single.dtype == np.float32
    expected = exact(x.astype(np.float32).astype(np.float64))
    assert np.abs(single - expected).max() < 1e-6
    tail = slice(0, 6500)  # down to -5 and beyond, where nearly nothing is left
    big = np.abs(expected[tail]) > 1e-35
    np.testing.assert_allclose(single[tail][big], expected[tail][big], rtol=1e-4)
    double = GELU("none")(Tensor(x, dtype=np.float64)).data
    np.testing.assert_allclose(double, exact(x), rtol=1e-13, atol=1e-300)


def test_gradient_of_the_exact_gelu():
    x = np.array([-6.0, -1.5, -1e-3, 0.0, 1e-3, 0.7, 1.5, 6.0])
    assert check_gradients(GELU("none"), x, tol=1e-8)
    single = Tensor(x, requires_grad=True)
    GELU("none")(single).sum().backward()
    double = Tensor(x, requires_grad=True, dtype=np.float64)
    GELU("none")(double).sum().backward()
    assert np.abs(single.grad - double.grad).max() < 1e-6


@pytest.mark.parametrize("form", ["erf", None, True])
def test_unknown_form_of_gelu_is_refused(form):
    with pytest.raises(ValueError, match="GELU: approximate must be 'tanh' or 'none'"):
        GELU(form)
    with pytest.raises(ValueError, match="gelu: approximate must be 'tanh' or 'none'"):
        functional.gelu([1.0], approximate=form)
