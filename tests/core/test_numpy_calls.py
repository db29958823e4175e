"""NumPy's functions on tensors: the gradient is right, or the call is refused; it is never lost."""

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import Tensor, ops
from tinytorch.core.numpy_calls import ARITHMETIC, COMPARISONS, OURS

A, B = [1.0, 2.0], [3.0, 5.0]


def leaf(data):
    return Tensor(data, requires_grad=True)


LOSES = {
    "concatenate": lambda a, b: np.concatenate([a, b]),
    "stack": lambda a, b: np.stack([a, b]),
    "vstack": lambda a, b: np.vstack([a, b]),
    "hstack": lambda a, b: np.hstack((a, b)),
    "where": lambda a, b: np.where([True, False], a, b),
    "dot": lambda a, b: np.dot(a, b),
    "inner": lambda a, b: np.inner(a, b),
    "outer": lambda a, b: np.outer(a, b),
    "tensordot": lambda a, b: np.tensordot(a, b, axes=0),
    "einsum": lambda a, b: np.einsum("i,i", a, b),
    "clip": lambda a, b: np.clip(a, 0, 1),
    "reshape": lambda a, b: np.reshape(a, (2, 1)),
    "transpose": lambda a, b: np.transpose(a),
    "swapaxes": lambda a, b: np.swapaxes(a, 0, 0),
    "moveaxis": lambda a, b: np.moveaxis(a, 0, 0),
    "squeeze": lambda a, b: np.squeeze(a),
    "expand_dims": lambda a, b: np.expand_dims(a, 0),
    "ravel": lambda a, b: np.ravel(a),
    "flip": lambda a, b: np.flip(a),
    "take": lambda a, b: np.take(a, [0]),
    "split": lambda a, b: np.split(a, 2),
    "sum": lambda a, b: np.sum(a),
    "mean": lambda a, b: np.mean(a),
    "var": lambda a, b: np.var(a),
    "std": lambda a, b: np.std(a),
    "max": lambda a, b: np.max(a),
    "min": lambda a, b: np.min(a),
    "amax": lambda a, b: np.amax(a),
    "amin": lambda a, b: np.amin(a),
    "minimum": lambda a, b: np.minimum(a, b),
    "linalg.norm": lambda a, b: np.linalg.norm(a),
}


def test_every_numpy_function_is_tried_and_its_replacement_exists():
    assert set(OURS) - set(ARITHMETIC.split()) <= set(LOSES)
    assert all(hasattr(ops, ours) for ours in OURS.values())


@pytest.mark.parametrize("name", LOSES)
def test_numpy_function_that_would_lose_a_gradient_is_refused(name):
    ours = OURS.get(name, name)
    remedy = f"tinytorch.ops.{ours}" if hasattr(ops, ours) else "the operations of tinytorch.ops"
    assert message(TypeError, lambda: LOSES[name](leaf(A), leaf(B))) == (
        f"np.{name} would lose the gradient of a tensor of shape (2,); use {remedy}, or "
        "detach() for the numbers alone"
    )


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda t: np.concatenate([t, t]), "tinytorch.ops.concatenate"),
        (lambda t: np.where([True, False], t, t), "tinytorch.ops.where"),
        (lambda t: np.dot(t, t), "tinytorch.ops.matmul"),
        (lambda t: np.power(t, 2), "tinytorch.ops.power"),
        (lambda t: np.array([1.0, 2.0]) ** t, "tinytorch.ops.power"),
        (lambda t: np.sinh(t), "the operations of tinytorch.ops"),
    ],
)
def test_refusal_names_our_operation(call, remedy):
    assert f"; use {remedy}, or detach()" in message(TypeError, lambda: call(leaf(A)))


@pytest.mark.parametrize("name", LOSES)
def test_numpy_function_accepts_tensors_without_gradient(name):
    result = LOSES[name](Tensor(A), Tensor(B))
    expected = LOSES[name](np.float32(A), np.float32(B))
    np.testing.assert_array_equal(result, expected)
    assert not isinstance(result, Tensor)


MIXED = {
    "np.array of tensors": lambda a, b: np.array([a, b]),
    "np.asarray": lambda a, b: np.asarray(a),
    "Tensor of tensors": lambda a, b: Tensor([a, b]),
    "Tensor of single numbers": lambda a, b: Tensor([a.sum(), b.sum()]),
    "Tensor of nested tensors": lambda a, b: Tensor([[a, a], [b, b]]),
    "Tensor of a tensor": lambda a, b: Tensor(a),
    "np.r_": lambda a, b: np.r_[a, b],
    "np.c_": lambda a, b: np.c_[a, b],
    "assignment to an array": lambda a, b: np.zeros((2, 2)).__setitem__(0, a),
    "np.full": lambda a, b: np.full((2, 2), a),
    "np.copyto": lambda a, b: np.copyto(np.zeros(2), a),
    "out=": lambda a, b: np.add(a, b, out=np.zeros(2)),
    "np.add.reduce": lambda a, b: np.add.reduce(a),
    "np.add.at": lambda a, b: np.add.at(np.zeros(2), [0, 0], a),
    "np.add.outer": lambda a, b: np.add.outer(a, b),
    "np.cumsum": lambda a, b: np.cumsum(a),
    "np.sinh": lambda a, b: np.sinh(a),
    "dtype=": lambda a, b: np.add(a, b, dtype=np.float64),
    "one of two": lambda a, b: np.dot([1.0, 2.0], a),
    "an operand that is a list of tensors": lambda a, b: Tensor(A) * [a[0], a[1]],
    "a setting": lambda a, b: np.clip(np.zeros(2), a_min=a, a_max=None),
    "a masked array": lambda a, b: np.ma.array([1.0, 2.0], mask=[0, 1]) * a,
}


@pytest.mark.parametrize("name", MIXED)
def test_array_conversions_that_would_lose_a_gradient_are_refused(name):
    text = message(TypeError, lambda: MIXED[name](leaf(A), leaf(B)))
    assert "would lose the gradient" in text or "gradients would be lost" in text


def test_adding_a_tensor_in_place_leaves_the_array_unchanged():
    total = np.zeros(2)

    def accumulate():
        nonlocal total
        total += leaf(A)

    assert message(TypeError, accumulate) == (
        "np.add into an array would lose the gradient of a tensor of shape (2,); use a new tensor, "
        "as in a = a + t, or detach() for the numbers alone"
    )
    assert total.tolist() == [0.0, 0.0]
    total += Tensor(A)
    assert type(total) is np.ndarray and total.tolist() == A


@pytest.mark.parametrize(
    "write",
    [
        lambda t: np.copyto(t, 2.0),
        lambda t: np.fill_diagonal(t, 2.0),
        lambda t: np.put(t, [0], 2.0),
        lambda t: np.add.at(t, [0], 2.0),
        lambda t: np.exp(np.ones((2, 2)), out=t),
        lambda t: np.sum(np.ones((2, 2, 2)), axis=0, out=t),
    ],
)
def test_numpy_cannot_write_into_a_tensor(write):
    t = Tensor(np.ones((2, 2)))
    assert "would change a tensor unnoticed; write into t.data and call t.mark_changed()" in (
        message(TypeError, lambda: write(t))
    )
    assert (t.data == 1).all()


@pytest.mark.parametrize("name", ARITHMETIC.split())
def test_numpy_arithmetic_calls_our_operation_with_its_gradient(name):
    ufunc = getattr(np, name)
    x, y = np.array([[2.0, 3.0], [4.0, 5.0]]), np.array([[1.0, 5.0], [2.0, 0.5]])
    arrays = [x, y][: ufunc.nin]
    tensors = [Tensor(a, requires_grad=True, dtype=np.float64) for a in arrays]
    result = ufunc(*tensors)
    np.testing.assert_allclose(result.data, ufunc(*arrays), rtol=1e-14)
    result.backward(np.ones((2, 2)))
    assert all(t.grad.shape == (2, 2) for t in tensors)


def test_array_on_the_left_of_a_tensor_that_needs_a_gradient():
    x = leaf(A)
    (np.array([10.0, 20.0]) * x - np.array([1.0, 1.0]) / x).sum().backward()
    assert x.grad.tolist() == [10.0 + 1.0, 20.0 + 0.25]


@pytest.mark.parametrize("name", COMPARISONS.split())
def test_comparison_with_an_array_on_the_left_is_a_tensor_of_booleans(name):
    relation = getattr(np, name)
    result = relation(np.array([0.0, 2.0]), leaf(A))
    assert isinstance(result, Tensor) and result.dtype == bool
    assert result.data.tolist() == relation([0.0, 2.0], A).tolist()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda t: np.shape(t), (2,)),
        (lambda t: np.argmax(t), 1),
        (lambda t: np.isnan(t).tolist(), [False, False]),
        (lambda t: np.allclose(t, A), True),
        (lambda t: np.array_equal(t, A), True),
        (lambda t: np.zeros_like(t).tolist(), [0.0, 0.0]),
        (lambda t: np.count_nonzero(t), 2),
        (lambda t: np.argsort(t).tolist(), [0, 1]),
    ],
)
def test_function_without_a_derivative_accepts_any_tensor(call, expected):
    assert call(leaf(A)) == expected


# Masks -------------------------------------------------------------------------------------------


def test_masks_combine_with_and_or_xor_and_not():
    x = Tensor([-1.0, 0.5, 2.0])
    assert ((x > 0) & (x < 1)).data.tolist() == [False, True, False]
    assert ((x < 0) | (x > 1)).data.tolist() == [True, False, True]
    assert ((x < 1) ^ (x > 0)).data.tolist() == [True, False, True]
    assert (~(x > 0)).data.tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("combine", "shown"),
    [
        (lambda: Tensor([1, 0]) & Tensor([1, 1]), "& combines Boolean masks, got int64 and"),
        (lambda: Tensor([True]) | 1.0, "| combines Boolean masks, got bool and float64"),
        (lambda: np.array([1.0]) ^ Tensor([True]), "^ combines Boolean masks, got float64 and"),
        (lambda: ~Tensor([0, 1]), "~ combines Boolean masks, got int64;"),  # numpy: -1 and -2
    ],
)
def test_numbers_are_not_masks(combine, shown):
    text = message(TypeError, combine)
    assert text.startswith(shown) and text.endswith("compare first, as in (x > 0) & (y > 0)")
