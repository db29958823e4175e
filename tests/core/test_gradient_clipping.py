"""How long a step is at most: the norm of all gradients, and what a larger one becomes."""

import math

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import Parameter, RowSparse, Tensor, clip_grad_norm


def with_gradient(gradient, dtype=np.float64):
    p = Parameter(np.zeros(np.shape(gradient)), dtype=dtype)
    p.grad = np.array(gradient, dtype=dtype)
    return p


def test_gradients_are_scaled_together_to_the_maximum_norm():
    one, other = with_gradient([[3.0, 0.0]]), with_gradient([4.0])
    assert clip_grad_norm([one, other], max_norm=2.5) == 5.0  # 3, 4, 5
    assert one.grad.tolist() == [[1.5, 0.0]] and other.grad.tolist() == [2.0]


def test_gradients_below_the_limit_are_unchanged():
    gradient = np.random.default_rng(0).normal(size=100).astype(np.float32)
    p = with_gradient(gradient, np.float32)
    before = p.grad
    norm = clip_grad_norm([p], max_norm=100.0)
    assert p.grad is before and before.tobytes() == gradient.tobytes()
    assert clip_grad_norm([p], max_norm=norm) == norm  # exactly at the limit is not above it
    assert p.grad is before


def test_infinite_limit_only_measures():
    p = with_gradient([6.0, 8.0])
    assert clip_grad_norm([p], max_norm=math.inf) == 10.0
    assert p.grad.tolist() == [6.0, 8.0]


def test_parameter_listed_twice_counts_once():
    p = with_gradient([6.0, 8.0])
    assert clip_grad_norm([p, p], max_norm=5.0) == 10.0
    assert p.grad.tolist() == [3.0, 4.0]


def test_norm_of_a_row_sparse_gradient_is_that_of_its_summed_rows():
    table = Parameter(np.zeros((4, 1)))
    table.grad = RowSparse(np.array([2, 0, 2]), np.array([[1.0], [4.0], [2.0]]), (4, 1))
    assert clip_grad_norm([table], max_norm=2.5) == 5.0  # rows 0 and 2 have 4 and 3
    assert isinstance(table.grad, RowSparse)
    assert table.grad.to_dense().ravel().tolist() == [2.0, 0.0, 1.5, 0.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_non_finite_norm_is_an_error_and_changes_nothing(bad, sparse):
    good = with_gradient([30.0, 40.0])
    ill = with_gradient([[0.0, bad], [1.0, 2.0]])
    if sparse:
        ill.grad = RowSparse(np.array([0, 1]), ill.grad, (2, 2))
    told = message(FloatingPointError, lambda: clip_grad_norm([good, ill], max_norm=1.0))
    assert told == (
        f"the norm of the gradients is {abs(bad)}: a loss or a weight has overflowed; lower the "
        "learning rate, or lengthen the warm-up"
    )
    assert good.grad.tolist() == [30.0, 40.0]
    left = ill.grad.to_dense() if sparse else ill.grad
    np.testing.assert_array_equal(left, [[0.0, bad], [1.0, 2.0]])


@pytest.mark.parametrize("limit", [0, -1.0, math.nan])
def test_limit_must_be_positive(limit):
    told = message(ValueError, lambda: clip_grad_norm([with_gradient([1.0])], limit))
    assert told == f"max_norm must be > 0, got {limit}"


def test_one_tensor_instead_of_a_list_is_refused():
    told = message(TypeError, lambda: clip_grad_norm(Tensor([1.0, 2.0]), max_norm=1.0))
    assert told == "clip_grad_norm takes a list of parameters, got one tensor; write [w]"
