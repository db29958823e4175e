"""The proof of the proofs: `check_gradients` accepts right gradients and catches wrong ones."""

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import (
    Dropout,
    Linear,
    Module,
    Parameter,
    Tensor,
    check_gradients,
    functional,
    primitive,
)

# Planted: one plausible mistake each --------------------------------------------------------------


@primitive
def square_without_the_two(x):
    return x * x, lambda g: g * x


@primitive
def negative_with_the_wrong_sign(x):
    return -x, lambda g: g


@primitive
def product_with_the_operands_the_wrong_way_round(x, y):
    return x * y, lambda g: (g * x, g * y)


@primitive
def softmax_as_if_elementwise(x):
    y = functional.softmax(Tensor(x, dtype=np.float64)).data
    return y, lambda g: g * y * (1 - y)


def _normalised(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse_std = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
    return centred * inverse_std, inverse_std


@primitive
def layer_norm_with_a_constant_deviation(x):
    y, inverse_std = _normalised(x)
    return y, lambda g: inverse_std * (g - g.mean(axis=-1, keepdims=True))


@primitive
def lookup_that_overwrites_repeated_ids(weight):
    ids = np.array([0, 2, 0])

    def pullback(g):
        grad = np.zeros_like(weight)
        grad[ids] = g
        return grad

    return weight[ids], pullback


@primitive
def exponential_wrong_in_one_element(x):
    y = np.exp(x)

    def pullback(g):
        grad = g * y
        grad.flat[-1] *= 1.001
        return grad

    return y, pullback


@primitive
def sum_that_forgets_to_pass_it_on(x, y):
    return x + y, lambda g: (g, None)


def product_with_a_detached_half(x):
    return x * x.detach()


MATRIX = np.array([[0.3, -1.2, 2.0], [1.1, 0.4, -0.6], [0.9, -0.7, 1.5]])
PLANTED = [
    (square_without_the_two, MATRIX),
    (negative_with_the_wrong_sign, MATRIX),
    (product_with_the_operands_the_wrong_way_round, MATRIX, MATRIX + 1),
    (softmax_as_if_elementwise, MATRIX),
    (layer_norm_with_a_constant_deviation, MATRIX),
    (lookup_that_overwrites_repeated_ids, MATRIX),
    (exponential_wrong_in_one_element, MATRIX),
    (sum_that_forgets_to_pass_it_on, MATRIX, MATRIX),
    (product_with_a_detached_half, MATRIX),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted[0].__name__)
def test_wrong_gradient_is_caught(planted):
    found = check_gradients(*planted)
    assert not found
    assert repr(found).startswith("WRONG: input ")
    assert found.error > 1e-4 > found.tol


# What it says -------------------------------------------------------------------------------------


def test_report_of_success_counts_the_derivatives():
    found = check_gradients(lambda x, y: x @ y, np.ones((2, 3)), np.ones((3, 4)))
    assert found.ok and bool(found) and found.count == 18
    assert repr(found) == "ok: 18 derivatives agree with finite differences within 1e-05"


def test_report_of_a_mistake_names_the_worst_derivative_and_both_values():
    @primitive
    def wrong(x):
        return x * x, lambda g: g * np.array([2.0, 1.0]) * x

    found = check_gradients(lambda x: wrong(x).sum(), [1.0, 3.0])
    weight = found.numeric / 6.0  # the fixed random weight of the one result
    assert found.worst == "input 0 at (1,)"
    assert found.analytic == pytest.approx(3.0 * weight)
    assert found.error == pytest.approx(abs(3.0 * weight) / max(1.0, abs(6.0 * weight)))
    assert repr(found) == (
        f"WRONG: input 0 at (1,): backward() gives {3.0 * weight:.4g}, "
        f"finite differences give {6.0 * weight:.4g}"
    )


def test_mistake_in_a_parameter_is_named_by_its_path():
    class Wrong(Module):
        def __init__(self):
            self.inner = Linear(2, 2)
            self.scale = Parameter([1.0, 2.0])

        def forward(self, x):
            return self.inner(x) * self.scale.detach()

    found = check_gradients(Wrong(), np.ones((1, 2)))
    assert not found and found.worst.startswith("scale at (")


def test_parameters_of_a_module_are_checked_and_put_back():
    layer = Linear(3, 2, rng=0)
    weight = layer.weight.data.copy()
    layer.weight.grad = kept = np.ones((3, 2), dtype=np.float32)
    found = check_gradients(layer, np.ones((4, 3)))
    assert found and found.count == 12 + 6 + 2
    assert layer.weight.dtype == np.float32 and layer.bias.grad is None
    assert layer.weight.grad is kept
    np.testing.assert_array_equal(layer.weight.data, weight)


def test_integer_inputs_are_passed_through():
    found = check_gradients(functional.embedding, np.ones((3, 2)), np.array([0, 2, 0]))
    assert found and found.count == 6


def test_nan_is_not_agreement():
    @primitive
    def undefined(x):
        return x * 1.0, lambda g: g * np.nan

    assert not check_gradients(undefined, [1.0])


def test_nothing_to_check_is_an_error():
    assert message(ValueError, lambda: check_gradients(lambda x: x, [1, 2])) == (
        "check_gradients: no floating-point input and no parameter to check"
    )


def test_active_dropout_is_refused_by_name():
    assert message(ValueError, lambda: check_gradients(Dropout(0.5), np.ones(20))) == (
        "check_gradients: two calls of f gave different results; "
        "switch dropout off with .eval() or fix the seed inside f"
    )


@pytest.mark.parametrize(("f", "came"), [(lambda x: x.data, "ndarray"), (lambda x: 1.0, "float")])
def test_function_that_returns_no_tensor_is_refused(f, came):
    assert message(TypeError, lambda: check_gradients(f, [1.0])) == (
        f"check_gradients: f must return a Tensor, got {came}"
    )
