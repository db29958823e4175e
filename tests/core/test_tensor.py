"""Tensors: what they hold, how they compute, and how a gradient finds its way back."""

import copy
import gc
import inspect
import pickle
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tinytorch import SGD, AdamW, Tensor, no_grad, ops, primitive
from tinytorch.core.layers import Module, Parameter


def leaf(data, dtype=None):
    return Tensor(data, requires_grad=True, dtype=dtype)


def message(error, f):
    with pytest.raises(error) as caught:
        f()
    return str(caught.value)


# What it holds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [1.5, [1.0, 2.0], np.ones(2), np.ones(2, np.float16), np.ones(0)])
def test_floats_become_float32(data):
    assert Tensor(data).dtype == np.float32


def test_float64_stays_where_it_is_asked_for():
    assert Tensor([0.1], dtype=np.float64).data[0] == 0.1
    assert Tensor(Tensor([0.1], dtype=np.float64)).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_integers_and_booleans_stay_what_they_are(dtype):
    assert Tensor(np.ones(2, dtype)).dtype == dtype


def test_data_are_copied():
    array = np.array([1.0, 2.0], dtype=np.float32)
    tensor = Tensor(array)
    array[0] = 9.0
    assert tensor.data.tolist() == [1.0, 2.0]


def test_tensor_knows_its_shape_size_and_number_of_axes():
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (x.shape, x.size, x.ndim, len(x)) == ((2, 3), 6, 2, 2)


def test_item_is_a_python_number():
    assert type(Tensor([[2.5]]).item()) is float
    assert type(Tensor(3).item()) is int


def test_numpy_is_the_array_itself_and_detach_shares_it():
    x = leaf([1.0, 2.0])
    assert x.numpy() is x.data
    assert x.detach().data is x.data
    assert not x.detach().requires_grad


def test_numpy_functions_read_a_tensor_as_an_array():
    assert np.asarray(Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(Tensor([1, 2]), [1, 2])


@pytest.mark.parametrize(
    ("tensor", "shown"),
    [
        (Tensor([1.0, 2.5]), "Tensor([1. , 2.5])"),
        (Tensor([1, 2]), "Tensor([1, 2], dtype=int64)"),
        (Tensor(2.0, requires_grad=True), "Tensor(2., requires_grad=True)"),
        (Tensor([1.0], dtype=np.float64), "Tensor([1.], dtype=float64)"),
    ],
)
def test_repr_shows_values_and_whatever_is_not_the_default(tensor, shown):
    assert repr(tensor) == shown


def test_deep_copy_and_pickle_keep_the_data_and_the_wish_for_a_gradient():
    x = leaf([1.0, 2.0])
    for twin in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert twin.data.tolist() == [1.0, 2.0] and twin.requires_grad
        assert not np.shares_memory(twin.data, x.data)


# Operators ---------------------------------------------------------------------------------------


OPERATORS = {
    "+": (lambda x, y: x + y, [5.0, 5.0]),
    "-": (lambda x, y: x - y, [-1.0, 3.0]),
    "*": (lambda x, y: x * y, [6.0, 4.0]),
    "/": (lambda x, y: x / y, [2 / 3, 4.0]),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", [Tensor, np.array, list, lambda v: np.array(v, np.float32)])
def test_operand_may_be_a_tensor_an_array_or_a_list_on_either_side(name, kind):
    operate, expected = OPERATORS[name]
    x, y = [2.0, 4.0], [3.0, 1.0]
    for result in (operate(Tensor(x), kind(y)), operate(kind(x), Tensor(y))):
        assert isinstance(result, Tensor) and result.dtype == np.float32
        np.testing.assert_allclose(result.data, expected, rtol=1e-6)


@pytest.mark.parametrize("two", [2, 2.0, np.float32(2), np.float64(2), np.int64(2)])
def test_operand_may_be_a_number_on_either_side(two):
    x = Tensor([1.0, 4.0])
    for result, expected in [
        (x + two, [3.0, 6.0]),
        (two + x, [3.0, 6.0]),
        (x - two, [-1.0, 2.0]),
        (two - x, [1.0, -2.0]),
        (x * two, [2.0, 8.0]),
        (two * x, [2.0, 8.0]),
        (x / two, [0.5, 2.0]),
        (two / x, [2.0, 0.5]),
        (x**two, [1.0, 16.0]),
    ]:
        assert result.data.tolist() == expected and result.dtype == np.float32


def test_matrix_product_takes_an_array_on_either_side():
    a, b = np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])
    assert (Tensor(a) @ b).data.tolist() == [[11.0]]
    assert (a @ Tensor(b)).data.tolist() == [[11.0]]


def test_comparisons_give_booleans_elementwise_and_carry_no_gradient():
    x = leaf([1.0, 2.0, 3.0])
    for result, expected in [
        (x > 2, [False, False, True]),
        (x >= 2, [False, True, True]),
        (x < Tensor([2.0, 2.0, 2.0]), [True, False, False]),
        (x <= [2.0, 2.0, 2.0], [True, True, False]),
        (x == np.array([1.0, 0.0, 3.0]), [True, False, True]),
        (x != 3.0, [True, True, False]),
        (2 < x, [False, False, True]),
    ]:
        assert result.data.tolist() == expected
        assert result.dtype == bool and not result.requires_grad


def test_equality_is_elementwise_and_yet_a_tensor_is_a_dictionary_key():
    x, y = Tensor([1.0]), Tensor([1.0])
    assert {x: "x", y: "y"}[y] == "y"


def test_methods_are_the_primitives():
    x = Tensor([[1.0, 4.0], [9.0, 16.0]])
    assert x.sum(axis=0).data.tolist() == [10.0, 20.0]
    assert x.mean(axis=1, keepdims=True).data.tolist() == [[2.5], [12.5]]
    assert x.var().item() == 32.25
    assert (x.max().item(), x.min(axis=0).data.tolist()) == (16.0, [1.0, 4.0])
    assert (x.argmax().item(), x.argmax(axis=0).data.tolist()) == (3, [1, 1])
    assert x.sqrt().data.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    np.testing.assert_allclose(x.log().exp().data, x.data, rtol=1e-6)
    assert Tensor([0.0]).tanh().data.tolist() == [0.0]
    assert (-x)[0].data.tolist() == [-1.0, -4.0]


def test_shapes_are_given_as_numbers_or_as_a_tuple():
    x = Tensor(np.arange(6.0))
    assert (
        x.reshape(2, 3).data.tolist() == x.reshape((2, -1)).data.tolist() == [[0, 1, 2], [3, 4, 5]]
    )
    cube = Tensor(np.arange(24.0).reshape(2, 3, 4))
    assert cube.permute(2, 0, 1).shape == cube.permute((2, 0, 1)).shape == (4, 2, 3)
    assert cube.T.data.tolist() == cube.transpose(1, 2).data.tolist()
    assert cube.T[1, 3, 2].item() == cube[1, 2, 3].item() == 23.0


# Dtypes ------------------------------------------------------------------------------------------


def test_result_is_float64_only_if_a_tensor_operand_is():
    single, double = Tensor([1.0]), Tensor([1.0], dtype=np.float64)
    assert (single * np.array([0.1])).dtype == np.float32
    assert (single * 0.1).dtype == np.float32
    assert (single * double).dtype == np.float64
    assert (0.1 * double).dtype == np.float64


def test_integers_stay_integers_until_they_meet_a_float():
    n = Tensor([1, 2])
    assert (n + n).dtype == np.int64 and (n * 2).dtype == np.int64
    assert (n + 0.5).dtype == (n / 2).dtype == n.mean().dtype == np.float32


def test_gradient_has_the_dtype_of_its_tensor():
    single, double = leaf([2.0]), leaf([3.0], dtype=np.float64)
    (single * double).backward()
    assert single.grad.dtype == np.float32 and double.grad.dtype == np.float64


def test_gradient_of_a_single_number_is_an_array_too():
    x = leaf(3.0)
    (x * x).backward()
    (x * 2).backward()
    assert isinstance(x.grad, np.ndarray)
    assert x.grad.shape == () and x.grad == 8.0


# Backward ----------------------------------------------------------------------------------------


def test_gradient_is_summed_where_a_tensor_is_used_twice():
    x = leaf([3.0])
    (x * x + x).backward()
    assert x.grad.tolist() == [7.0]


def test_gradient_goes_through_a_diamond_once():
    x = leaf([2.0])
    y = x * 3
    (y * y + y).backward()  # 9x^2 + 3x
    assert x.grad.tolist() == [39.0]


def test_gradients_add_up_over_calls_until_zero_grad():
    x = leaf([1.0])
    for _ in range(2):
        (x * 5).backward()
    assert x.grad.tolist() == [10.0]
    x.zero_grad()
    assert x.grad is None


def test_accumulating_leaves_an_earlier_gradient_array_as_it_was():
    x = leaf([1.0])
    (x * 5).backward()
    kept = x.grad
    (x * 5).backward()
    assert kept.tolist() == [5.0]


@given(shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0))
def test_broadcasting_is_undone_by_summing(shapes):
    (first, second), together = shapes
    x, y = leaf(np.ones(first)), leaf(np.ones(second))
    (x + y).backward(np.ones(together))
    for tensor in (x, y):
        copies = int(np.prod(together)) // max(1, tensor.size)
        assert tensor.grad.tolist() == np.full(tensor.shape, copies).tolist()


def test_bias_gradient_is_summed_over_the_batch():
    bias = leaf([1.0, 2.0])
    (Tensor(np.zeros((3, 2))) + bias).backward([[1, 10], [2, 20], [3, 30]])
    assert bias.grad.tolist() == [6.0, 60.0]


def test_explicit_gradient_weighs_the_elements():
    x = leaf([1.0, 2.0])
    (x * x).backward([10.0, 100.0])
    assert x.grad.tolist() == [20.0, 400.0]


def test_backward_on_a_leaf_is_the_gradient_itself():
    x = leaf([1.0, 2.0])
    x.backward([3.0, 4.0])
    assert x.grad.tolist() == [3.0, 4.0]


def test_leaf_that_asks_for_none_gets_no_gradient():
    x, constant = leaf([1.0]), Tensor([2.0])
    (x * constant).backward()
    assert constant.grad is None


def test_interior_gradients_are_not_kept():
    x = leaf([1.0])
    y = x * 2
    (y * 3).backward()
    assert y.grad is None and x.grad.tolist() == [6.0]


def test_detached_path_carries_no_gradient():
    x = leaf([3.0])
    (x * x.detach()).backward()
    assert x.grad.tolist() == [3.0]


def test_graph_fifty_thousand_deep():
    x = leaf([1.0])
    y = x
    for _ in range(50_000):
        y = y + x
    y.backward()
    assert x.grad.tolist() == [50_001.0]


def test_graph_fifty_thousand_deep_can_be_dropped_unused():
    y = leaf([1.0])
    for _ in range(50_000):
        y = y * 1.0
    del y


def test_second_backward_on_a_freed_graph_says_so():
    y = (leaf([1.0]) * 2).sum()
    y.backward()
    assert message(RuntimeError, y.backward) == (
        "backward() through a graph that was already used and freed; "
        "compute the result again before calling backward() a second time"
    )


def test_second_backward_through_a_shared_part_says_so_too():
    shared = leaf([1.0]) * 2
    (shared * 3).backward()
    assert "already used and freed" in message(RuntimeError, (shared * 4).backward)


def test_graph_is_freed_without_the_cycle_collector():
    gc.disable()
    try:
        x = leaf(np.ones(10))
        y = x.exp()
        interior = weakref.ref(y)
        loss = (y * y).mean()
        loss.backward()
        del y
        assert interior() is None  # backward() let go of it though loss is still there
        z = x.exp()
        result = weakref.ref(z)
        del z
        assert result() is None  # and a graph that is never used goes with its last name
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "combine",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a + b + a,
        lambda a, b: a.reshape(2, 1) + b.reshape(2, 1),
        lambda a, b: a.reshape(1, 2).T + b[:, None],
        lambda a, b: ops.stack(a, b),
        lambda a, b: ops.concatenate(a, b),
        lambda a, b: ops.where(a, b, condition=[True, False]),
    ],
)
def test_gradients_of_two_leaves_never_share_memory(combine):
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    result = combine(a, b)
    upstream = np.ones(result.shape, dtype=np.float32)
    result.backward(upstream)
    before = b.grad.copy()
    a.grad += 100.0
    assert b.grad.tolist() == before.tolist()
    assert (upstream == 1).all()


def test_same_leaf_as_both_operands_of_a_sum():
    a = leaf([1.0, 2.0])
    (a + a).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]


# Data changed between forward and backward ------------------------------------------------------

STALE = (
    "backward() through mul: its operand 0 of shape (2,) was changed after the operation had used "
    "it, so the gradient would be wrong; compute the result again after an update, or update after "
    "backward()"
)


def assign(w):
    w.data = np.array([5.0, 6.0])


def subtract(w):
    w.data -= 1.0


def write_and_say_so(w):
    w.data[0] = 7.0
    w.mark_changed()


def change_a_detached_twin(w):
    w.detach().data -= 1.0


def step(optimizer):
    def update(w):
        w.grad = np.ones(2)
        optimizer([w], lr=0.1).step()

    return update


def load(w):
    holder = Module()
    holder.w = w
    holder.load_state_dict({"w": np.zeros(2)})


CHANGES = [
    assign,
    subtract,
    write_and_say_so,
    change_a_detached_twin,
    load,
    step(SGD),
    step(AdamW),
]


@pytest.mark.parametrize("change", CHANGES)
def test_operand_changed_between_forward_and_backward_is_noticed(change):
    w = Parameter([1.0, 2.0])
    loss = (w * w).sum()
    change(w)
    w.zero_grad()
    assert message(RuntimeError, loss.backward) == STALE
    assert w.grad is None
    (w * w).sum().backward()  # computed again, it is right again
    assert w.grad.tolist() == (2 * w.data).tolist()


@pytest.mark.parametrize("change", CHANGES)
def test_data_changed_after_backward_are_no_matter(change):
    w = Parameter([1.0, 2.0])
    (w * w).sum().backward()
    change(w)
    w.zero_grad()
    (w * w).sum().backward()


def test_constant_operand_that_changes_is_noticed_too():
    w, x = leaf([1.0]), Tensor([2.0])
    y = w * x
    x.data *= 3
    assert "operand 1 of shape (1,) was changed" in message(RuntimeError, y.backward)


def test_result_that_changes_is_noticed_for_its_pullback_may_use_it():
    y = leaf([1.0]).exp()
    y.data *= 2
    assert "through exp: its result of shape (1,) was changed" in message(RuntimeError, y.backward)


def test_no_gradient_is_touched_when_one_operation_is_stale():
    a, b = leaf([1.0]), leaf([2.0])
    total = a * 3 + b * b
    b.data += 1
    message(RuntimeError, total.backward)
    assert a.grad is None and b.grad is None


def test_no_gradient_is_touched_when_one_part_is_freed():
    a, b = leaf([1.0]), leaf([2.0])
    shared = b * b
    (shared * 2).backward()
    message(RuntimeError, (a * 3 + shared).backward)
    assert a.grad is None and b.grad.tolist() == [8.0]


def test_changes_in_another_thread_are_no_false_alarm():
    def churn():
        other = leaf([1.0])
        for _ in range(3000):
            other.data += 1

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        w = leaf([1.0])
        w.data += 1
        (w * w).backward()
    for thread in threads:
        thread.join()


# No recording ------------------------------------------------------------------------------------


def test_nothing_is_recorded_inside_no_grad():
    x = leaf([1.0])
    with no_grad():
        y = x * 2
    assert not y.requires_grad and (x * 2).requires_grad


def test_no_grad_decorates_a_function():
    @no_grad()
    def double(x):
        """Twice."""
        return x * 2

    x = leaf([1.0])
    assert not double(x).requires_grad and (x * 2).requires_grad
    assert (double.__name__, double.__doc__) == ("double", "Twice.")


def test_no_grad_nests():
    x = leaf([1.0])
    with no_grad():
        with no_grad():
            pass
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


def test_one_no_grad_object_nests_in_itself():
    x, quiet = leaf([1.0]), no_grad()
    with quiet, quiet:
        pass
    assert (x * 2).requires_grad


def test_recording_resumes_after_an_error():
    with pytest.raises(ZeroDivisionError), no_grad():
        raise ZeroDivisionError
    assert (leaf([1.0]) * 2).requires_grad


def test_no_grad_holds_for_its_own_thread_alone():
    recorded = []
    with no_grad():
        thread = threading.Thread(target=lambda: recorded.append((leaf([1.0]) * 2).requires_grad))
        thread.start()
        thread.join()
    assert recorded == [True]


# Your own primitive ------------------------------------------------------------------------------


def test_own_primitive_works_like_any_other():
    @primitive
    def cube(x):
        return x * x * x, lambda g: g * 3 * x * x

    x = leaf([1.0, 2.0])
    cube(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_operand_without_a_gradient_gets_zeros_for_none():
    @primitive
    def first(x, y):
        return x + 0 * y, lambda g: (g, None)

    x, y = leaf([1.0]), leaf([2.0])
    first(x, y).backward()
    assert x.grad.tolist() == [1.0] and y.grad.tolist() == [0.0]


def test_pullback_that_forgets_an_operand_is_told_so():
    @primitive
    def product(x, y):
        return x * y, lambda g: (g * y,)

    assert message(ValueError, product(leaf([1.0]), leaf([2.0])).backward) == (
        "backward() through product: the pullback returned 1 gradients for 2 operands; "
        "it must return one each, None where there is none"
    )


def test_pullback_of_the_wrong_shape_is_told_so():
    @primitive
    def wrong(x):
        return x * 2, lambda g: np.ones((3, 2))

    assert message(ValueError, wrong(leaf([1.0, 2.0, 3.0])).sum().backward) == (
        "backward() through wrong: a gradient of shape (3, 2) does not fit an operand of shape (3,)"
    )


# Bad input ---------------------------------------------------------------------------------------


def test_integers_cannot_require_a_gradient():
    assert message(TypeError, lambda: Tensor([1, 2], requires_grad=True)) == (
        "a tensor of int64 cannot require a gradient; only floating-point "
        "numbers vary continuously: pass dtype=numpy.float32"
    )


@pytest.mark.parametrize(
    ("data", "kind"), [("text", "<U4"), (None, "object"), ([1j], "complex128"), ([{}], "object")]
)
def test_data_that_are_not_numbers_are_refused(data, kind):
    assert message(TypeError, lambda: Tensor(data)) == (
        f"Tensor: cannot hold {kind} data; numbers, lists of numbers and numeric arrays are allowed"
    )


def test_rows_of_unequal_length_are_refused():
    told = message(ValueError, lambda: Tensor([[1.0, 2.0], [3.0]]))
    assert told.startswith("Tensor: ") and told.endswith("; all rows must have the same length")


def test_backward_on_many_elements_asks_for_a_gradient():
    assert message(ValueError, (leaf(np.ones((2, 3))) * 2).backward) == (
        "backward() on shape (2, 3) needs an explicit gradient; reduce with .sum()"
    )


def test_backward_refuses_a_gradient_of_another_shape():
    assert message(ValueError, lambda: (leaf([1.0, 2.0]) * 2).backward([1.0])) == (
        "backward() on shape (2,) got a gradient of shape (1,); the two must be equal"
    )


def test_backward_with_nothing_to_differentiate_says_so():
    assert message(RuntimeError, (Tensor([1.0]) * 2).backward) == (
        "backward() on a tensor that does not depend on anything that requires a gradient; "
        "create an input with requires_grad=True, outside no_grad()"
    )


def test_item_of_several_elements_is_refused():
    assert message(ValueError, Tensor([1.0, 2.0]).item) == (
        "item() needs one element, this tensor has shape (2,)"
    )


def test_truth_of_several_elements_is_refused():
    assert message(ValueError, lambda: bool(Tensor([1.0, 2.0]) > 0)) == (
        "the truth of a tensor of shape (2,) is ambiguous; reduce it to one value"
    )
    assert bool(Tensor([3.0]) > 2)


def test_single_number_has_no_length():
    assert message(TypeError, lambda: len(Tensor(1.0))) == "a tensor without axes has no length"


def test_numpy_function_of_a_tensor_is_refused_rather_than_cutting_the_graph():
    with pytest.raises(TypeError, match="does not support ufuncs"):
        np.exp(leaf([1.0]))


def test_help_says_that_an_operation_returns_a_tensor():
    assert inspect.signature(ops.add).return_annotation == "Tensor"
    assert list(inspect.signature(ops.sum).parameters) == ["x", "axis", "keepdims"]


def test_gradient_of_a_single_number_is_an_array():
    x = Tensor(2.0, requires_grad=True)
    (x * Tensor([1.0, 2.0])).sum().backward()
    assert isinstance(x.grad, np.ndarray) and x.grad == 3
