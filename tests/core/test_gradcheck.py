"""The proof of the proofs: `check_gradients` accepts right gradients and catches wrong ones."""

import numpy as np
import pytest

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


def message(error, f):
    with pytest.raises(error) as caught:
        f()
    return str(caught.value)


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
def variance_that_divides_by_n_minus_one(x):
    centred = x - x.mean()
    return (centred * centred).mean(), lambda g: g * 2 * centred / (x.size - 1)


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
def layer_norm_with_a_constant_mean(x):
    y, inverse_std = _normalised(x)
    return y, lambda g: inverse_std * (g - y * (g * y).mean(axis=-1, keepdims=True))


@primitive
def lookup_that_overwrites_repeated_ids(weight):
    ids = np.array([0, 2, 0])

    def pullback(g):
        grad = np.zeros_like(weight)
        grad[ids] = g
        return grad

    return weight[ids], pullback


@primitive
def bias_whose_gradient_is_averaged(bias):
    return np.ones((4, bias.size)) + bias, lambda g: g.mean(axis=0)


@primitive
def bias_whose_gradient_is_that_of_the_first_row(bias):
    return np.ones((4, bias.size)) + bias, lambda g: g[0]


@primitive
def exponential_wrong_in_one_element(x):
    y = np.exp(x)

    def pullback(g):
        grad = g * y
        grad.flat[-1] *= 1.001
        return grad

    return y, pullback


@primitive
def matrix_product_without_the_transpose(x):
    m = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.5], [0.0, 1.0, 1.0]])
    return x @ m, lambda g: g @ m


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
    (variance_that_divides_by_n_minus_one, MATRIX),
    (softmax_as_if_elementwise, MATRIX),
    (layer_norm_with_a_constant_deviation, MATRIX),
    (layer_norm_with_a_constant_mean, MATRIX),
    (lookup_that_overwrites_repeated_ids, MATRIX),
    (bias_whose_gradient_is_averaged, MATRIX[0]),
    (bias_whose_gradient_is_that_of_the_first_row, MATRIX[0]),
    (exponential_wrong_in_one_element, MATRIX),
    (matrix_product_without_the_transpose, MATRIX),
    (sum_that_forgets_to_pass_it_on, MATRIX, MATRIX),
    (product_with_a_detached_half, MATRIX),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted[0].__name__)
def test_planted_mistake_is_caught(planted):
    found = check_gradients(*planted)
    assert not found
    assert repr(found).startswith("WRONG: input ")
    assert found.error > 1e-4 > found.tol


# What it says -------------------------------------------------------------------------------------


def test_report_of_agreement_counts_the_derivatives():
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


def test_inputs_are_left_as_they_were():
    x, array = Tensor([1.0, 2.0], requires_grad=True), np.array([3.0, 4.0])
    assert check_gradients(lambda a, b: a * b, x, array)
    assert x.grad is None and x.data.tolist() == [1.0, 2.0] and array.tolist() == [3.0, 4.0]


def test_integer_inputs_are_passed_through():
    found = check_gradients(functional.embedding, np.ones((3, 2)), np.array([0, 2, 0]))
    assert found and found.count == 6


def test_function_that_ignores_its_input_has_gradient_zero():
    assert check_gradients(lambda x: Tensor([1.0]) * 2, [1.0, 2.0])


def test_nan_is_not_agreement():
    @primitive
    def undefined(x):
        return x * 1.0, lambda g: g * np.nan

    assert not check_gradients(undefined, [1.0])


def test_gradient_of_a_kink_is_not_agreed_on():
    assert not check_gradients(functional.relu, [0.0])


def test_nothing_to_check_is_an_error():
    assert message(ValueError, lambda: check_gradients(lambda x: x, [1, 2])) == (
        "check_gradients: no floating-point input and no parameter to check"
    )


def test_dropout_left_on_is_an_error_that_says_so():
    assert message(ValueError, lambda: check_gradients(Dropout(0.5), np.ones(20))) == (
        "check_gradients: two calls of f gave different results; "
        "switch dropout off with .eval() or fix the seed inside f"
    )


@pytest.mark.parametrize(("f", "came"), [(lambda x: x.data, "ndarray"), (lambda x: 1.0, "float")])
def test_function_that_returns_no_tensor_is_refused(f, came):
    assert message(TypeError, lambda: check_gradients(f, [1.0])) == (
        f"check_gradients: f must return a Tensor, got {came}"
    )
