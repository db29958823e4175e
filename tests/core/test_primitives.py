"""Every primitive: its value, its gradient, and that it changes nothing it was given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primitive_examples import EXAMPLES, all_primitives

from tinytorch import RowSparse, Tensor, check_gradients, functional, ops, primitive

NAMES = sorted(EXAMPLES)
each_primitive = pytest.mark.parametrize("name", NAMES)


def is_float(array):
    return array.dtype.kind == "f"


def as_tensors(operands):
    return [Tensor(a, requires_grad=is_float(a), dtype=a.dtype) for a in operands]


def dense(gradient):
    gradient = gradient() if callable(gradient) else gradient
    return gradient.to_dense() if isinstance(gradient, RowSparse) else gradient


def weights_for(shape):
    return np.random.default_rng(1).normal(size=shape)


def complex_step(example, operands, settings, k):
    """The derivative of the weighted sum of the result by every element of operand k.

    Lyness and Moler, 1967: f(x + ih) = f(x) + ih f'(x) + O(h^2), and with h = 1e-30 nothing cancels
    and nothing is left of the error.
    """
    h, slopes = 1e-30, np.empty(operands[k].shape)
    for at in np.ndindex(slopes.shape):
        moved = [a.astype(complex) if is_float(a) else a for a in operands]
        moved[k][at] += 1j * h
        value, _ = example.operation.__wrapped__(*moved, **settings)
        slopes[at] = (np.imag(value) / h * weights_for(np.shape(value))).sum()
    return slopes


def test_every_primitive_has_an_example():
    found = all_primitives()
    assert set(functional.__all__) <= set(found) and ops.add in found.values()
    assert set(EXAMPLES) == set(found)
    assert all(EXAMPLES[name].operation is found[name] for name in found)


@each_primitive
@given(data=st.data())
def test_value_matches_numpy(name, data):
    example = EXAMPLES[name]
    operands, settings = data.draw(example.inputs)
    result = example.operation(*as_tensors(operands), **settings)
    expected = example.value(*operands, **settings)
    assert result.shape == np.shape(expected)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result.data, expected, rtol=example.rtol, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if EXAMPLES[name].analytic])
@given(data=st.data())
def test_gradient_matches_the_complex_step(name, data):
    example = EXAMPLES[name]
    operands, settings = data.draw(example.inputs)
    tensors = as_tensors(operands)
    result = example.operation(*tensors, **settings)
    result.backward(weights_for(result.shape))
    for k in example.learned(operands):
        assert tensors[k].grad.shape == operands[k].shape
        expected = complex_step(example, operands, settings, k)
        np.testing.assert_allclose(dense(tensors[k].grad), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in NAMES if not EXAMPLES[name].analytic])
@given(data=st.data())
def test_gradient_matches_the_central_difference(name, data):
    example = EXAMPLES[name]
    operands, settings = data.draw(example.inputs)
    found = check_gradients(lambda *xs: example.operation(*xs, **settings), *operands, tol=1e-8)
    assert found, found


@each_primitive
@given(data=st.data())
def test_neither_operands_nor_upstream_gradient_are_changed(name, data):
    example = EXAMPLES[name]
    operands, settings = data.draw(example.inputs)
    before = [a.copy() for a in operands]
    value, pullback = example.operation.__wrapped__(*operands, **settings)
    value_before, g, results = np.array(value), weights_for(np.shape(value)), []
    for _ in range(2):
        parts = pullback(g)
        results.append([np.array(dense(p)) for p in (parts if type(parts) is tuple else (parts,))])
        np.testing.assert_array_equal(g, weights_for(np.shape(value)))
    np.testing.assert_array_equal(value, value_before)
    for operand, copy in zip(operands, before, strict=True):
        np.testing.assert_array_equal(operand, copy)
    for once, again in zip(*results, strict=True):  # a pullback keeps nothing between calls
        np.testing.assert_array_equal(once, again)


def arrays_in(settings):
    """The arrays among settings, and in a tuple of them."""
    parts = [*settings.values(), *(p for s in settings.values() if type(s) is tuple for p in s)]
    return [part for part in parts if isinstance(part, np.ndarray) and part.ndim]


@each_primitive
@given(data=st.data())
def test_ids_masks_and_indices_may_be_replaced_before_the_backward_pass(name, data):
    operands, settings = data.draw(EXAMPLES[name].inputs)
    whole = [a if is_float(a) else a.copy() for a in operands]  # floats as tensors, others as such
    found = []
    for replaced in (False, True):
        tensors = [Tensor(a, True, a.dtype) if is_float(a) else a for a in whole]
        result = EXAMPLES[name].operation(*tensors, **settings)
        if replaced:
            for array in [a for a in whole if not is_float(a)] + arrays_in(settings):
                array[...] = 0
        result.backward(weights_for(result.shape))
        found.append([dense(t.grad) for t in tensors if isinstance(t, Tensor)])
    for before, after in zip(*found, strict=True):
        np.testing.assert_array_equal(before, after)


def test_integer_factor_may_be_replaced_before_the_backward_pass():
    for factor in (np.array([2, 3]), np.array([True, False])):
        x, before = Tensor([1.0, 1.0], requires_grad=True), factor.tolist()
        y = x * factor
        factor[...] = 0
        y.sum().backward()
        assert x.grad.tolist() == before


@each_primitive
@given(data=st.data())
def test_float32_inputs_give_float32_outputs_and_gradients(name, data):
    example = EXAMPLES[name]
    operands, settings = data.draw(example.inputs)
    tensors = [Tensor(a, requires_grad=is_float(a)) for a in operands]
    result = example.operation(*tensors, **settings)
    assert result.dtype == np.float32
    result.backward(np.ones(result.shape))
    for tensor in tensors:
        if tensor.requires_grad:
            assert tensor.grad.dtype == np.float32


@each_primitive
@given(data=st.data())
def test_no_leaf_gradient_shares_memory_with_anything(name, data):
    example = EXAMPLES[name]
    operands, settings = data.draw(example.inputs)
    tensors = as_tensors(operands)
    result = example.operation(*tensors, **settings)
    upstream = weights_for(result.shape)
    result.backward(upstream)
    held = [t.grad for t in tensors if t.requires_grad]
    arrays = [a for g in held for a in ((g.rows, g.values) if isinstance(g, RowSparse) else (g,))]
    others = [upstream, result.data, *(t.data for t in tensors)]
    for i, array in enumerate(arrays):
        for other in [*others, *arrays[:i]]:
            assert not np.shares_memory(array, other)


def test_a_leaf_keeps_a_copy_of_the_gradient_it_is_given():
    x, given = Tensor([1.0, 2.0], requires_grad=True), np.ones(2, np.float32)
    x.backward(given)
    x.backward(given)
    assert given.tolist() == [1, 1] and x.grad.tolist() == [2, 2]


def test_two_leaves_share_no_memory_when_a_pullback_returns_one_array_for_both():
    """Otherwise clipping both would scale each of them twice."""

    @primitive
    def add(a, b):
        return a + b, lambda g: (lambda both: (both, both))(2 * g)

    @primitive
    def add_lazily(a, b):
        return a + b, lambda g: (lambda both: (lambda: both, lambda: both))(2 * g)

    for operation in (add, add_lazily):
        x, y = (Tensor([1.0], requires_grad=True) for _ in range(2))
        operation(x, y).sum().backward()
        x.grad *= 10
        assert (x.grad, y.grad) == (20, 2)
