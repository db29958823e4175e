"""Whatever kind of numbers a function is given, its result is that of the same numbers in float64.

Or it refuses them in one sentence. Every public name of the modules below is tried.
"""

import inspect
import re
from functools import partial

import numpy as np
import pytest
from exact_numbers import message, normal

from tinytorch import Tensor, functional
from tinytorch.core import activations, attention, losses, masks, softmax

MODULES = (functional, losses, activations, softmax, attention)
WHOLE = np.array([[0, 1, 3, 100], [-100, 2, 7, -90], [90, 0, -1, 5]])  # products wrap in 8 bits
SQUARE, VECTOR = WHOLE[:, :3], WHOLE[0]
IDS = np.array([2, 0, 1])
KINDS = {
    "list of ints": lambda whole: whole.tolist(),
    **{
        dtype: lambda whole, dtype=dtype: (abs(whole) if "u" in dtype else whole).astype(dtype)
        for dtype in "bool uint8 int8 uint16 int16 int32 uint64 float16 float32 float64".split()
    },
}
SHAPES = {"matrices": lambda x: x, "0-d": lambda x: x.flat[0], "empty": lambda x: x[:0]}


def with_weights(module):
    """A module whose weights are the same at every call."""
    for n, parameter in enumerate(module.parameters()):
        parameter.data = normal(*parameter.shape, seed=n).astype(np.float32)
    return module


# what is called with `n`, which makes numbers of the kind that is tried
CALLS = {
    functional.attention: lambda n: functional.attention(n(WHOLE), n(WHOLE[::-1]), n(SQUARE)),
    functional.dropout: lambda n: functional.dropout(n(WHOLE), p=0.5, rng=0),
    functional.embedding: lambda n: functional.embedding(n(WHOLE), IDS),
    functional.layer_norm: lambda n: functional.layer_norm(n(WHOLE), n(VECTOR), n(VECTOR[::-1])),
    functional.linear: lambda n: functional.linear(n(WHOLE), n(WHOLE.T), n(VECTOR[:3])),
    functional.merge_heads: lambda n: functional.merge_heads(n(WHOLE.reshape(1, 2, 3, 2))),
    functional.split_heads: lambda n: functional.split_heads(n(WHOLE[None]), num_heads=2),
    losses.cross_entropy: lambda n: losses.cross_entropy(n(WHOLE), IDS),
    losses.CrossEntropyLoss: lambda n: losses.CrossEntropyLoss(n(VECTOR))(n(WHOLE), IDS),
    losses.mse: lambda n: losses.mse(n(WHOLE), n(WHOLE[::-1])),
    losses.MSELoss: lambda n: losses.MSELoss()(n(WHOLE), n(WHOLE[::-1])),
    activations.gelu: lambda n: activations.gelu(n(WHOLE)),
    activations.gelu_array: lambda n: activations.gelu_array(n(WHOLE)),
    softmax.log_softmax_array: lambda n: softmax.log_softmax_array(n(WHOLE), -1),
    softmax.softmax_array: lambda n: softmax.softmax_array(n(WHOLE), -1),
    attention.scaled_dot_product_attention: lambda n: attention.scaled_dot_product_attention(
        n(WHOLE), n(WHOLE[::-1]), n(SQUARE)
    )[0],
    attention.MultiHeadAttention: lambda n: with_weights(attention.MultiHeadAttention(4, 2))(
        n(WHOLE[None] // 8), mask=masks.causal_mask(3)
    ),
    **{
        f: lambda n, f=f: f(n(WHOLE))
        for f in (activations.relu, activations.sigmoid, softmax.softmax)
    },
    activations.log_sigmoid: lambda n: activations.log_sigmoid(n(WHOLE)),
    softmax.log_softmax: lambda n: softmax.log_softmax(n(WHOLE)),
    **{
        layer: lambda n, layer=layer: layer()(n(WHOLE))
        for layer in (
            activations.ReLU,
            activations.GELU,
            activations.Tanh,
            activations.Sigmoid,
            activations.Softmax,
        )
    },
}
OF_NO_NUMBERS = {attention.causal_mask}  # a length


def values(result):
    return result.data if isinstance(result, Tensor) else np.asarray(result)


def test_every_public_function_is_tried():
    public = {
        value
        for module in MODULES
        for name, value in inspect.getmembers(module, callable)
        if not name.startswith("_")
        and value.__module__ == module.__name__
        and name in getattr(module, "__all__", [name])
    }
    assert public - OF_NO_NUMBERS == set(CALLS)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_narrow_dtypes_agree_with_float64(function, kind, shape):
    def number(whole, *, exact):
        whole = np.array(KINDS[kind](np.array(SHAPES[shape](whole))))  # what the kind can hold
        return Tensor(whole, dtype=np.float64) if exact else KINDS[kind](whole)

    def result(exact, wrapped=lambda x: x):
        return values(CALLS[function](lambda whole: wrapped(number(whole, exact=exact))))

    try:
        expected = result(exact=True)
    except (TypeError, ValueError, IndexError):
        expected = None
    for wrapped in (lambda x: x, Tensor):
        if expected is None:
            said = message((TypeError, ValueError, IndexError), lambda w=wrapped: result(False, w))
            assert re.match(r"(token id|\w+:) ", said) and "\n" not in said, said
            assert "operands of shape" not in said, "an error of NumPy or Python"
            continue
        found = result(False, wrapped)
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("choose", [partial(functional.embedding, WHOLE), losses.cross_entropy])
def test_ids_may_be_of_any_integer_dtype_or_empty(choose):
    logits = normal(3, 4)
    choose = partial(choose, logits) if choose is losses.cross_entropy else choose
    expected = choose(IDS).data
    for kind in KINDS:
        if kind == "bool" or "float" in kind:
            said = message(TypeError, lambda kind=kind: choose(IDS.astype(kind)))
            assert re.match(r"(token id|target)s must be integers, got ", said)
        else:
            np.testing.assert_array_equal(choose(KINDS[kind](IDS)).data, expected)
    assert functional.embedding(WHOLE, []).shape == (0, 4)
    assert losses.cross_entropy(np.zeros((0, 4)), [], reduction="none").shape == (0,)


def test_gradients_of_lookups_with_different_integer_dtypes_add_up():
    weight = Tensor(np.zeros((4, 1)), requires_grad=True)
    for dtype in (np.uint64, np.int8):  # together NumPy would make floats of them
        functional.embedding(weight, IDS.astype(dtype), sparse=True).sum().backward()
    assert weight.grad.to_dense().tolist() == [[2], [2], [2], [0]]


def test_sums_of_half_precision_do_not_overflow():
    many = np.zeros(70_000, np.float16)  # the largest number is 65,504
    np.testing.assert_allclose(functional.softmax(many).data, 1 / 70_000, rtol=1e-6)
    np.testing.assert_allclose(functional.log_softmax(many).data, -np.log(70_000), rtol=1e-6)
    q, v = many[:1, None], np.ones((70_000, 1), np.float16)
    np.testing.assert_allclose(functional.attention(q, many[:, None], v).data, 1, rtol=1e-4)
    largest = Tensor(many, requires_grad=True, dtype=np.float16)
    largest.max().backward()
    assert largest.grad.astype(float).sum() == pytest.approx(1, rel=0.01)
    x = Tensor([300, -300], dtype=np.float16)
    assert (x.std().item(), x.var().item()) == (300, 90_000)


def test_half_precision_gets_the_gradient_of_float64_in_its_own_dtype():
    numbers = normal(3, 4).astype(np.float16)
    for f in (functional.softmax, functional.sigmoid, functional.gelu, functional.relu):
        half, double = (Tensor(numbers, True, dtype) for dtype in (np.float16, np.float64))
        for x in (half, double):
            (f(x) * normal(3, 4)).sum().backward()
        assert half.grad.dtype == np.float16
        np.testing.assert_allclose(half.grad, double.grad, atol=1e-3)
