"""The primitives of ops.py where there is a choice to make: ties, edges, indices, bad shapes."""

import numpy as np
import pytest

from tinytorch import Tensor, ops


def grad(f, *values):
    """The gradients of the sum of f, one for each value, as nested lists."""
    tensors = [Tensor(value, requires_grad=True) for value in values]
    result = f(*tensors)
    result.backward(np.ones(result.shape))
    lists = [t.grad.tolist() for t in tensors]
    return lists[0] if len(lists) == 1 else lists


def message(error, f):
    with pytest.raises(error) as caught:
        f()
    return str(caught.value)


# Values and gradients that can be checked by hand ------------------------------------------------


def test_product_rule():
    assert grad(lambda x, y: x * y, [2.0, 3.0], [5.0, 7.0]) == [[5.0, 7.0], [2.0, 3.0]]


def test_quotient_rule():
    assert grad(lambda x, y: x / y, [6.0], [2.0]) == [[0.5], [-1.5]]


def test_matrix_product_gradient_is_a_product_with_the_other_transposed():
    x, y = [[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]
    assert grad(lambda x, y: x @ y, x, y) == [[[7.0, 11.0]], [[1.0, 1.0], [2.0, 2.0]]]


def test_dot_product_of_two_vectors_is_a_number():
    product = Tensor([1.0, 2.0]) @ Tensor([3.0, 4.0])
    assert product.shape == () and product.item() == 11.0


def test_variance_divides_by_n_and_its_gradient_is_twice_the_deviation_over_n():
    assert ops.var([1.0, 2.0, 6.0]).item() == pytest.approx(14 / 3)
    assert grad(ops.var, [1.0, 2.0, 6.0]) == pytest.approx([-4 / 3, -2 / 3, 2.0])


def test_mean_over_two_axes_divides_by_both_lengths():
    assert grad(lambda x: ops.mean(x, axis=(0, 1)), [[1.0, 2.0], [3.0, 4.0]]) == [[0.25] * 2] * 2


def test_elements_that_tie_for_the_maximum_share_the_gradient():
    assert grad(ops.max, [1.0, 5.0, 5.0]) == [0.0, 0.5, 0.5]
    assert grad(lambda x: ops.max(x, axis=0), [[1.0, 5.0], [3.0, 5.0]]) == [[0.0, 0.5], [1.0, 0.5]]


def test_elements_that_tie_for_the_minimum_share_the_gradient():
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


def test_square_and_cube():
    assert grad(lambda x: x**2, [3.0]) == [6.0]
    assert grad(lambda x: x**3, [-2.0]) == [12.0]


def test_where_sends_the_gradient_to_the_chosen_operand():
    choose = [True, False]
    assert grad(lambda x, y: ops.where(x, y, condition=choose), [1.0, 2.0], [3.0, 4.0]) == [
        [1.0, 0.0],
        [0.0, 1.0],
    ]


def test_where_accepts_a_comparison_as_its_condition():
    x = Tensor([-1.0, 2.0])
    assert ops.where(x, 0.0, condition=x > 0).data.tolist() == [0.0, 2.0]


def test_concatenated_parts_get_their_own_pieces_of_the_gradient():
    a, b = Tensor([1.0], requires_grad=True), Tensor([2.0, 3.0], requires_grad=True)
    ops.concatenate(a, b).backward([10.0, 20.0, 30.0])
    assert a.grad.tolist() == [10.0] and b.grad.tolist() == [20.0, 30.0]


def test_stacked_parts_get_their_own_rows_of_the_gradient():
    a, b = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0], requires_grad=True)
    ops.stack(a, b).backward([[1.0, 2.0], [3.0, 4.0]])
    assert a.grad.tolist() == [1.0, 2.0] and b.grad.tolist() == [3.0, 4.0]


# Indexing ----------------------------------------------------------------------------------------


def test_element_taken_three_times_collects_three_gradients():
    assert grad(lambda x: x[[2, 0, 2, 2]], [1.0, 2.0, 3.0]) == [1.0, 0.0, 3.0]


def test_pair_of_index_arrays_sums_repeated_elements():
    picked = grad(lambda x: x[np.array([0, 0, 1]), np.array([1, 1, 0])], [[1.0, 2.0], [3.0, 4.0]])
    assert picked == [[0.0, 2.0], [1.0, 0.0]]


def test_mask_sends_the_gradient_to_the_chosen_elements():
    assert grad(lambda x: x[x > 1.5], [1.0, 2.0, 3.0]) == [0.0, 1.0, 1.0]


def test_integer_tensor_is_an_index():
    x = Tensor([10.0, 20.0, 30.0])
    assert x[Tensor([2, 0])].data.tolist() == [30.0, 10.0]
    assert Tensor([[1.0, 2.0], [3.0, 4.0]])[Tensor([1, 0]), [0, 0]].data.tolist() == [3.0, 1.0]


def test_slice_with_a_step_and_a_negative_step():
    assert grad(lambda x: x[::2], [1.0, 2.0, 3.0]) == [1.0, 0.0, 1.0]
    assert Tensor([1.0, 2.0, 3.0])[::-1].data.tolist() == [3.0, 2.0, 1.0]


def test_ellipsis_and_new_axis():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x[..., 0].data.tolist() == [1.0, 3.0]
    assert x[:, None].data.tolist() == [[[1.0, 2.0]], [[3.0, 4.0]]]


def test_empty_list_of_indices_takes_nothing():
    assert Tensor([1.0, 2.0])[[]].shape == (0,)
    assert grad(lambda x: x[[]], [1.0, 2.0]) == [0.0, 0.0]


def test_row_by_row_iteration():
    rows = list(Tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert [row.data.tolist() for row in rows] == [[1.0, 2.0], [3.0, 4.0]]


# Bad input ---------------------------------------------------------------------------------------


def test_matmul_names_both_shapes_and_the_inner_sizes():
    x, y = np.ones((2, 3)), np.ones((4, 5))
    assert message(ValueError, lambda: ops.matmul(x, y)) == (
        "matmul: (2, 3) @ (4, 5): inner sizes 3 and 4 differ"
    )


def test_matmul_of_a_vector_names_its_length():
    assert message(ValueError, lambda: ops.matmul(np.ones(2), np.ones(3))) == (
        "matmul: (2,) @ (3,): inner sizes 2 and 3 differ"
    )


def test_matmul_with_a_single_number_says_to_multiply():
    assert message(ValueError, lambda: Tensor([[1.0, 2.0]]) @ 2.0) == (
        "matmul: (1, 2) @ (): use * to multiply by a single number"
    )


@pytest.mark.parametrize("operation", [ops.add, ops.sub, ops.mul, ops.div, ops.maximum])
def test_shapes_that_do_not_broadcast_are_named_with_the_rule(operation):
    x, y = np.ones((2, 3)), np.ones((2,))
    assert message(ValueError, lambda: operation(x, y)) == (
        f"{operation.__name__}: shapes (2, 3) and (2,) do not broadcast; aligned from the right, "
        "two lengths must be equal or one of them 1"
    )


def test_power_of_a_tensor_exponent_is_refused():
    assert message(TypeError, lambda: Tensor([2.0]) ** Tensor([3.0])) == (
        "power: the exponent must be a number, got Tensor"
    )


def test_transpose_of_a_vector_is_refused():
    assert message(ValueError, lambda: Tensor([1.0, 2.0]).T) == (
        "transpose: shape (2,) has fewer than two axes to swap"
    )


@pytest.mark.parametrize(
    ("operation", "start"),
    [
        (lambda x: x.sum(axis=2), "sum: operands of shape (2, 3): axis 2 is out of bounds"),
        (lambda x: x.mean(axis=2), "mean: operands of shape (2, 3): axis 2 is out of bounds"),
        (lambda x: x.reshape(4), "reshape: operands of shape (2, 3): cannot reshape"),
        (lambda x: x.permute(0), "permute: operands of shape (2, 3): axes don't match"),
        (
            lambda x: ops.concatenate(x, x, axis=2),
            "concatenate: operands of shape (2, 3) and (2, 3): axis 2 is out of bounds",
        ),
        (
            lambda x: ops.stack(x, x[0]),
            "stack: operands of shape (2, 3) and (3,): all input arrays must have the same shape",
        ),
    ],
)
def test_error_of_numpy_is_told_with_operation_and_shapes(operation, start):
    assert message(ValueError, lambda: operation(Tensor(np.ones((2, 3))))).startswith(start)


@pytest.mark.parametrize("operation", [ops.stack, ops.concatenate])
def test_list_of_tensors_is_refused_because_its_gradients_would_be_lost(operation):
    parts = [Tensor([1.0], requires_grad=True), Tensor([2.0], requires_grad=True)]
    assert message(TypeError, lambda: operation(parts)) == (
        "a list of tensors is not an operand, their gradients would be lost; "
        "pass them one by one, or join them with ops.stack(*tensors)"
    )


@pytest.mark.parametrize("average", [ops.mean, ops.var])
def test_mean_of_nothing_is_an_error(average):
    message = "has no elements to average over axis None"
    with pytest.raises(ValueError, match=rf"shape \(0, 3\) {message}"):
        average(np.zeros((0, 3)))
    assert average(np.zeros((0, 3)), axis=1).shape == (0,)  # no mean is taken here
