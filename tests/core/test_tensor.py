"""Tensors: what they hold, and how they compute."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import RowSparse, Tensor, functional, ops, primitive
from tinytorch.core.layers import Parameter


def leaf(data, dtype=None):
    return Tensor(data, requires_grad=True, dtype=dtype)


# What it holds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [1.5, [1.0, 2.0], np.ones(2), np.ones(2, np.float16), np.ones(0)])
def test_floats_become_float32(data):
    assert Tensor(data).dtype == np.float32


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_integers_and_booleans_keep_their_dtype(dtype):
    assert Tensor(np.ones(2, dtype)).dtype == dtype


def test_data_are_copied():
    array = np.array([1.0, 2.0], dtype=np.float32)
    tensor = Tensor(array)
    array[0] = 9.0
    assert tensor.data.tolist() == [1.0, 2.0]


def test_numpy_is_the_array_itself_and_detach_shares_it():
    x = leaf([1.0, 2.0])
    assert x.numpy() is x.data
    assert x.detach().data is x.data
    assert not x.detach().requires_grad


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


COPIES = [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))]


@pytest.mark.parametrize("duplicate", COPIES)
@pytest.mark.parametrize("kind", [leaf, Parameter, Tensor])
def test_copy_owns_its_data_and_keeps_requires_grad(duplicate, kind):
    x = kind([1.0, 2.0])
    x.grad = [3.0, 4.0]
    x.data -= 0.5  # a change is no part of what is copied
    twin = duplicate(x)
    assert type(twin) is type(x) and twin.requires_grad == x.requires_grad
    assert twin.data.tolist() == [0.5, 1.5] and twin.grad.tolist() == [3.0, 4.0]
    assert not np.shares_memory(twin.data, x.data) and not np.shares_memory(twin.grad, x.grad)
    twin.requires_grad = True
    twin.zero_grad()
    (twin * twin).sum().backward()  # a change of the original is no change of the copy
    assert twin.grad.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("duplicate", COPIES)
def test_tensor_with_a_graph_is_not_copied(duplicate):
    y = leaf([1.0, 2.0]) * 2
    assert message(TypeError, lambda: duplicate(y)) == (
        "a tensor computed from others cannot be copied or pickled: its graph would be lost; use "
        "detach() for the numbers alone"
    )
    assert duplicate(y.detach()).data.tolist() == [2.0, 4.0]


# One element as a number -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_single_element_is_a_number(shape):
    x = leaf(np.full(shape, 2.75))
    assert float(x) == 2.75 and type(float(x)) is float
    assert int(x) == 2 and int(Tensor(np.full(shape, 7))) == 7
    assert (round(x), round(x, 1)) == (3, 2.8) and type(round(x)) is int
    assert f"{x:.1f}|{x:8.3e}" == "2.8|2.750e+00"


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (float, "float()"),
        (int, "int()"),
        (round, "round()"),
        (lambda x: f"{x:.3f}", "the format '.3f'"),
        (lambda x: x.item(), "item()"),
    ],
)
def test_several_elements_are_not_a_number(ask, what):
    for shape in [(2,), (0,)]:
        expected = (
            f"{what} needs one element, this tensor has shape {shape}; reduce it to one value"
        )
        assert message(ValueError, lambda shape=shape: ask(Tensor(np.zeros(shape)))) == expected


# Setting data, grad and requires_grad ------------------------------------------------------------


def test_data_may_be_replaced_by_numbers_of_any_kind():
    x = Tensor([1.0, 2.0])
    for data in ([3, 4], np.array([3.0, 4.0]), Tensor([3.0, 4.0])):
        x.data = data
        assert type(x.data) is np.ndarray and x.data.tolist() == [3, 4]
    number = Tensor(2.0)
    number.data = number.data * 2  # NumPy makes a bare number of it
    assert type(number.data) is np.ndarray


@pytest.mark.parametrize(
    ("x", "data", "shown"),
    [
        (Tensor([1.0]), ["a"], "this tensor holds real numbers, got data of <U1"),
        (Tensor([1.0]), [1j], "this tensor holds real numbers, got data of complex128"),
        (
            leaf([1.0]),
            [1],
            "this tensor holds floating-point numbers, got data of int64",
        ),
    ],
)
def test_data_of_the_wrong_kind_are_refused(x, data, shown):
    def put():
        x.data = data

    assert message(TypeError, put) == shown
    assert x.data.tolist() == [1.0]


@pytest.mark.parametrize(
    ("gradient", "error", "shown"),
    [
        (
            np.ones(1),
            ValueError,
            "the gradient of a tensor of shape (2, 3) has its shape, got (1,)",
        ),
        (2.0, ValueError, "the gradient of a tensor of shape (2, 3) has its shape, got ()"),
        (
            RowSparse(np.array([0]), np.ones((1, 3)), (4, 3)),
            ValueError,
            "the gradient of a tensor of shape (2, 3) has its shape, got (4, 3)",
        ),
        (np.full((2, 3), 1j), TypeError, "a gradient must hold real numbers, got complex128"),
        ("steep", TypeError, "a gradient must hold real numbers, got <U5"),
    ],
)
def test_gradient_that_does_not_fit_is_refused_when_it_is_set(gradient, error, shown):
    x = leaf(np.zeros((2, 3)))

    def put():
        x.grad = gradient

    assert message(error, put) == shown
    assert x.grad is None


def test_gradient_takes_the_dtype_of_its_tensor():
    x = leaf(np.zeros(3))
    x.grad = np.ones(3)
    assert x.grad.dtype == np.float32


def test_gradient_that_has_a_graph_of_its_own_is_refused():
    x = leaf([1.0])

    def put():
        x.grad = leaf([2.0]) * 2

    assert "would lose the gradient" in message(TypeError, put)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_integers_cannot_be_made_to_require_a_gradient_afterwards(dtype):
    x = Tensor(np.ones(2, dtype))

    def ask():
        x.requires_grad = True

    assert message(TypeError, ask).startswith(f"a tensor of {x.dtype} cannot require a gradient")
    assert not x.requires_grad
    x.requires_grad = False


# Conveniences ------------------------------------------------------------------------------------


def test_axes_are_merged_dropped_and_added():
    x = Tensor(np.arange(24.0).reshape(2, 3, 4))
    assert x.flatten().data.tolist() == x.ravel().data.tolist() == list(range(24))
    assert x.flatten(1).shape == x.flatten(1, -1).shape == (2, 12)
    assert x.flatten(0, 1).shape == x.flatten(-3, -2).shape == (6, 4)
    assert x.flatten(1, 1).shape == (2, 3, 4)
    assert Tensor(np.zeros((0, 3))).flatten(0, 1).shape == (0,)
    assert Tensor(5.0).flatten().data.tolist() == [5.0]
    assert x.unsqueeze(0).shape == (1, 2, 3, 4) and x.unsqueeze(-1).shape == (2, 3, 4, 1)
    once = Tensor(np.zeros((1, 3, 1)))
    assert once.squeeze().shape == (3,)
    assert once.squeeze(0).shape == (3, 1) and once.squeeze((0, -1)).shape == (3,)


@pytest.mark.parametrize(
    ("f", "shown"),
    [
        (lambda x: x.flatten(1, 0), "flatten: axis 1 comes after axis 0 of shape (2, 3)"),
        (lambda x: x.flatten(2), "axis 2 is out of bounds for array of dimension 2"),
        (lambda x: x.squeeze(0), "cannot select an axis to squeeze out which has size not equal"),
        (lambda x: x.unsqueeze(4), "axis 4 is out of bounds for array of dimension 3"),
        (lambda x: x.clip(), "clip: needs min, max or both"),
        (lambda x: x.clip(2, 1), "clip: min 2 is above max 1"),
    ],
)
def test_invalid_arguments_of_methods_are_refused(f, shown):
    assert message(ValueError, lambda: f(Tensor(np.zeros((2, 3))))).startswith(shown)


def test_absolute_value_bounds_and_deviation():
    x = Tensor([-3.0, 1.0, 2.0])
    assert x.abs().data.tolist() == abs(x).data.tolist() == [3.0, 1.0, 2.0]
    assert x.clip(-1, 1).data.tolist() == [-1.0, 1.0, 1.0]
    assert x.clip(min=0).data.tolist() == [0.0, 1.0, 2.0]
    assert x.clip(max=0).data.tolist() == [-3.0, 0.0, 0.0]
    assert Tensor([1.0, 5.0]).std().item() == 2.0
    assert Tensor([[1.0, 5.0], [2.0, 2.0]]).std(axis=1, keepdims=True).data.tolist() == [[2], [0]]


def test_conversion_between_floats_passes_the_gradient():
    x = leaf([1.5, 2.5])
    y = x.astype(np.float64)
    assert y.dtype == np.float64
    (y * y).sum().backward()
    assert x.grad.dtype == np.float32 and x.grad.tolist() == [3.0, 5.0]
    half = x.astype(np.float16)
    assert half.dtype == np.float16 and half.requires_grad


def test_conversion_to_integers_or_booleans_ends_the_graph():
    x = leaf([1.5, 0.0])
    assert x.astype(int).data.tolist() == [1, 0] and not x.astype(int).requires_grad
    assert x.astype(bool).data.tolist() == [True, False]
    assert "cannot hold complex128" in message(TypeError, lambda: x.astype(complex))


# Operators ---------------------------------------------------------------------------------------


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


def test_equality_is_elementwise_and_tensors_are_hashable():
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


@pytest.mark.parametrize("order", [">", "<"])
@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "u2"])
def test_foreign_byte_order_is_converted(order, kind):
    array = np.array([1, 2], dtype=order + kind)
    for tensor in (Tensor(array, dtype=array.dtype), ops.getitem(array, index=...)):
        assert tensor.dtype.isnative and tensor.data.tolist() == [1, 2]
    assert Tensor(array, dtype=array.dtype).dtype == np.dtype(kind)
    x = Tensor([0.0])
    x.data = array
    assert x.dtype.isnative and x.data.tolist() == [1, 2]


def test_constant_of_higher_precision_does_not_widen_a_result():
    for array in (np.ones(1), np.ones(1, np.longdouble), np.ones(1, ">f8")):
        assert (Tensor([1.0]) * array).dtype == np.float32
    half = Tensor([1.0], dtype=np.float16)
    assert (Tensor([1.0], dtype=np.float64) * np.ones(1, np.longdouble)).dtype == np.float64
    assert (half * np.ones(1, np.float32)).dtype == np.float32


def test_integers_stay_integers_until_they_meet_a_float():
    n = Tensor([1, 2])
    assert (n + n).dtype == np.int64 and (n * 2).dtype == np.int64
    assert (n + 0.5).dtype == (n / 2).dtype == n.mean().dtype == np.float32


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (
            TypeError,
            lambda: Tensor([1, 2], requires_grad=True),
            "of int64 cannot require a gradient",
        ),
        (TypeError, lambda: Tensor("text"), "cannot hold <U4 data; give real numbers"),
        (TypeError, lambda: Tensor(None), "cannot hold object data"),
        (TypeError, lambda: Tensor([1j]), "cannot hold complex128 data"),
        (ValueError, lambda: Tensor([[1.0, 2.0], [3.0]]), "all rows must have the same length"),
        (TypeError, lambda: Tensor([1.0]) * 1j, "; tensors hold real numbers"),
        (TypeError, lambda: np.array([1j]) + Tensor([1.0]), "; tensors hold real numbers"),
        (
            TypeError,
            lambda: ops.mul(x=Tensor([1.0]), y=2.0),
            "mul: pass the operand x by position, not by name",
        ),
        (
            TypeError,
            partial(primitive(lambda x: (x, None, abs)), 1.0),
            ": a primitive returns a value and its pullback",
        ),
        (TypeError, lambda: len(Tensor(1.0)), "a tensor without axes has no length"),
        (ValueError, lambda: bool(Tensor([1.0, 2.0]) > 0), "bool() needs one element, this tensor"),
        (ValueError, (leaf(np.ones((2, 3))) * 2).backward, "backward() on shape (2, 3) needs an"),
        (RuntimeError, (Tensor([1.0]) * 2).backward, "does not depend on anything that requires a"),
        (TypeError, lambda: leaf([1.0]).backward(1j), "must hold real numbers, got complex128"),
        (TypeError, lambda: leaf([1.0]).backward("steep"), "must hold real numbers, got <U5"),
        (TypeError, lambda: leaf([1.0]).backward([None]), "must hold real numbers, got object"),
        (
            RuntimeError,
            lambda: setattr(leaf([1.0]) * 2, "requires_grad", False),
            "computed from others that require a gradient, which would be lost; use detach()",
        ),
    ],
)
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)


def test_masked_array_is_refused():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for take in (
        Tensor,
        lambda m: Tensor([1.0, 2.0]) * m,
        ops.sum,
        functional.softmax,
        lambda m: setattr(Tensor([1.0, 2.0]), "data", m),
    ):
        said = message(TypeError, lambda take=take: take(masked))
        assert said.endswith("a masked array would lose its mask; pass its filled(0)")


def test_python_floats_take_the_dtype_of_their_tensor():
    for dtype, data, wanted in (
        (np.float32, [1.0, 2.0], np.float32),
        (np.float64, [1.0, 2.0], np.float64),
        (np.int64, [1.0, 2.0], np.float32),
        (np.float32, np.zeros(2), np.float64),  # it says so itself
        (np.float32, 0.5, np.float32),
    ):
        x = Tensor([0, 0], dtype=dtype)
        x.data = data
        assert x.dtype == wanted and x.data.tolist() == np.asarray(data).tolist()
