"""The primitives of ops.py where there is a choice to make: ties, edges, indices, bad shapes."""

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import Tensor, ops


def grad(f, *values):
    """The gradients of the sum of f, one for each value, as nested lists."""
    tensors = [Tensor(value, requires_grad=True) for value in values]
    result = f(*tensors)
    result.backward(np.ones(result.shape))
    lists = [t.grad.tolist() for t in tensors]
    return lists[0] if len(lists) == 1 else lists


# Values and gradients that can be checked by hand ------------------------------------------------


def test_product_rule():
    assert grad(lambda x, y: x * y, [2.0, 3.0], [5.0, 7.0]) == [[5.0, 7.0], [2.0, 3.0]]


def test_matrix_product_gradient_is_a_product_with_the_other_transposed():
    x, y = [[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]
    assert grad(lambda x, y: x @ y, x, y) == [[[7.0, 11.0]], [[1.0, 1.0], [2.0, 2.0]]]


def test_variance_divides_by_n_and_its_gradient_is_twice_the_deviation_over_n():
    assert ops.var([1.0, 2.0, 6.0]).item() == pytest.approx(14 / 3)
    assert grad(ops.var, [1.0, 2.0, 6.0]) == pytest.approx([-4 / 3, -2 / 3, 2.0])


def test_tied_maxima_share_the_gradient():
    assert grad(ops.max, [1.0, 5.0, 5.0]) == [0.0, 0.5, 0.5]
    assert grad(lambda x: ops.max(x, axis=0), [[1.0, 5.0], [3.0, 5.0]]) == [[0.0, 0.5], [1.0, 0.5]]


def test_a_nan_is_the_maximum_and_has_the_gradient():
    assert np.isnan(ops.max([1.0, np.nan]).item())
    assert grad(ops.max, [1.0, np.nan]) == [0.0, 1.0]


def test_tied_minima_share_the_gradient():
    assert grad(ops.min, [1.0, 1.0, 1.0, 5.0]) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.0])


def test_equal_operands_of_maximum_get_half_each():
    assert grad(ops.maximum, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]) == [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]


def test_gradient_of_abs_at_zero_is_zero():
    assert grad(ops.abs, [-2.0, 0.0, 3.0]) == [-1.0, 0.0, 1.0]


def test_gradient_of_clip_is_one_inside_and_at_the_bounds_and_zero_outside():
    assert grad(lambda x: x.clip(0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0]) == [0.0, 1.0, 1.0, 1.0, 0.0]


def test_gradient_of_the_standard_deviation_is_the_deviation_over_n_times_it():
    assert grad(ops.std, [1.0, 5.0]) == [-0.5, 0.5]
    assert grad(ops.std, [3.0, 3.0]) == [0.0, 0.0]  # where it has a corner


def test_power_zero_has_gradient_zero_even_at_zero():
    assert grad(lambda x: x**0, [0.0, 2.0]) == [0.0, 0.0]


def test_where_accepts_a_comparison_as_its_condition():
    x = Tensor([-1.0, 2.0])
    assert ops.where(x, 0.0, condition=x > 0).data.tolist() == [0.0, 2.0]


# Indexing ----------------------------------------------------------------------------------------


def test_element_indexed_three_times_sums_three_gradients():
    assert grad(lambda x: x[[2, 0, 2, 2]], [1.0, 2.0, 3.0]) == [1.0, 0.0, 3.0]


def test_boolean_index_passes_the_gradient_to_selected_elements():
    assert grad(lambda x: x[x > 1.5], [1.0, 2.0, 3.0]) == [0.0, 1.0, 1.0]


def test_integer_tensor_is_an_index():
    x = Tensor([10.0, 20.0, 30.0])
    assert x[Tensor([2, 0])].data.tolist() == [30.0, 10.0]
    assert Tensor([[1.0, 2.0], [3.0, 4.0]])[Tensor([1, 0]), [0, 0]].data.tolist() == [3.0, 1.0]


def test_empty_list_of_indices_takes_nothing():
    assert Tensor([1.0, 2.0])[[]].shape == (0,)
    assert grad(lambda x: x[[]], [1.0, 2.0]) == [0.0, 0.0]


def test_iteration_yields_rows():
    rows = list(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert [row.data.tolist() for row in rows] == [[1.0, 2.0], [3.0, 4.0]]


# Bad input ---------------------------------------------------------------------------------------

X, ROWS = np.ones((2, 3)), Tensor(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (ValueError, lambda: ops.matmul(X, np.ones((4, 5))), "(2, 3) @ (4, 5): inner sizes 3 and"),
        (ValueError, lambda: ops.matmul(X[0], X[0, :2]), "matmul: (3,) @ (2,): inner sizes 3 and"),
        (ValueError, lambda: ROWS @ 2.0, "matmul: (2, 3) @ (): use * to multiply by a single numb"),
        (ValueError, lambda: ops.add(X, X[:, 0]), "add: shapes (2, 3) and (2,) do not broadcast"),
        (ValueError, lambda: ops.maximum(X, X[:, 0]), "maximum: shapes (2, 3) and (2,) do not bro"),
        (TypeError, lambda: ROWS ** Tensor([3.0]), "power: the exponent must be a number, got Ten"),
        (ValueError, lambda: ROWS[0].T, "transpose: shape (3,) has fewer than two axes to swap"),
        (ValueError, lambda: ROWS.sum(axis=2), "sum: operands of shape (2, 3): axis 2 is out of b"),
        (ValueError, lambda: ROWS.reshape(4), "reshape: operands of shape (2, 3): cannot reshape"),
        (ValueError, lambda: ops.stack(ROWS, ROWS[0]), "stack: operands of shape (2, 3) and (3,)"),
        (TypeError, lambda: ops.stack([Tensor(X, True)]), "gradients would be lost; pass them one"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)


@pytest.mark.parametrize("average", [ops.mean, ops.var])
def test_mean_of_nothing_is_an_error(average):
    message = "has no elements to average over axis None"
    with pytest.raises(ValueError, match=rf"shape \(0, 3\) {message}"):
        average(np.zeros((0, 3)))
    assert average(np.zeros((0, 3)), axis=1).shape == (0,)  # no mean is taken here
