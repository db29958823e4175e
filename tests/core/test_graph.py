"""What an operation records: your own primitives, and what a graph keeps alive."""

import gc
import weakref

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import Parameter, functional, primitive


def test_detached_path_carries_no_gradient():
    x = Parameter([3.0])
    (x * x.detach()).backward()
    assert x.grad.tolist() == [3.0]


def test_graph_is_freed_without_the_cycle_collector():
    gc.disable()
    try:
        x = Parameter(np.ones(10))
        y = x.exp()
        kept = weakref.ref(y.data)
        loss = (y * y).mean()
        del y
        assert kept() is not None  # the pullbacks need it
        loss.backward()
        assert kept() is None  # backward() let go of it though loss is still there
        z = x.exp()
        result = weakref.ref(z)
        del z
        assert result() is None  # and a graph that is never used goes with its last name
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x + 1.0,
        lambda x: x.sum(axis=1),
        lambda x: x.mean(),
        lambda x: x.var(),
        lambda x: x.std(),
        lambda x: x.max(),
        lambda x: x.reshape(12),
        lambda x: x.permute(1, 0),
        lambda x: x[[0, 1]],
        lambda x: functional.gelu(x),
        lambda x: functional.dropout(x, p=0.5),
        lambda x: functional.cross_entropy(x, np.zeros(4, int)),
    ],
)
def test_graph_keeps_no_operand_that_no_pullback_asks_for(operation):
    operand = Parameter(np.ones((4, 3))) * 2
    data = weakref.ref(operand.data)
    result = operation(operand) + 0  # the sum shares no memory, as a reshaped array does
    del operand
    assert data() is None
    result.backward(np.ones(result.shape))


def test_user_defined_primitive_works_like_a_built_in():
    @primitive
    def cube(x):
        return x * x * x, lambda g: g * 3 * x * x

    x = Parameter([1.0, 2.0])
    cube(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


@pytest.mark.parametrize(
    "made", [np.array([1.0, 2.0]), [1.0, 2.0], (1.0, 2.0), np.float64(3), (1.0,), None], ids=str
)
def test_primitive_that_returns_no_pullback_is_refused(made):
    def half_done(x):
        return made

    assert message(TypeError, lambda: primitive(half_done)([1.0, 2.0])) == (
        "half_done: a primitive returns a value and its pullback, a function of a gradient; "
        f"got {type(made).__name__}"
    )
