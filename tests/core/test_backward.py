"""How a gradient finds its way back: sums, deep graphs, and what is refused."""

import threading

import numpy as np
import pytest
from exact_numbers import message
from hypothesis import given
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tinytorch import SGD, AdamW, Module, Parameter, primitive

# Sums --------------------------------------------------------------------------------------------


def test_gradient_is_summed_where_a_tensor_is_used_twice():
    x = Parameter([3.0])
    (x * x + x).backward()
    assert x.grad.tolist() == [7.0]


def test_gradients_add_up_over_calls_until_zero_grad():
    x = Parameter([1.0])
    for _ in range(2):
        (x * 5).backward()
    assert x.grad.tolist() == [10.0]
    x.zero_grad()
    assert x.grad is None


@given(shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=3, min_side=0))
def test_broadcasting_is_undone_by_summing(shapes):
    (first, second), together = shapes
    x, y = Parameter(np.ones(first)), Parameter(np.ones(second))
    (x + y).backward(np.ones(together))
    for tensor in (x, y):
        copies = int(np.prod(together)) // max(1, tensor.size)
        assert tensor.grad.tolist() == np.full(tensor.shape, copies).tolist()


def test_interior_gradients_are_not_kept():
    x = Parameter([1.0])
    y = x * 2
    (y * 3).backward()
    assert y.grad is None and x.grad.tolist() == [6.0]


def test_graph_fifty_thousand_deep():
    x = Parameter([1.0])
    y = x
    for _ in range(50_000):
        y = y + x
    y.backward()
    assert x.grad.tolist() == [50_001.0]


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
def test_operand_changed_before_backward_is_detected(change):
    w = Parameter([1.0, 2.0])
    loss = (w * w).sum()
    change(w)
    w.zero_grad()
    assert message(RuntimeError, loss.backward) == STALE
    assert w.grad is None
    (w * w).sum().backward()  # computed again, it is right again
    assert w.grad.tolist() == (2 * w.data).tolist()


def test_assigning_to_a_detached_tensor_does_not_change_the_original():
    w = Parameter([3.0])
    y, twin = w * w, w.detach()
    twin.data = [5.0]
    twin.data -= 1.0
    y.backward()
    assert w.grad.tolist() == [6.0]


def test_result_changed_before_backward_is_detected():
    y = Parameter([1.0]).exp()
    y.data *= 2
    assert "through exp: its result of shape (1,) was changed" in message(RuntimeError, y.backward)


def test_failed_backward_changes_no_gradient():
    a, b = Parameter([1.0]), Parameter([2.0])
    total = a * 3 + b * b
    b.data += 1
    message(RuntimeError, total.backward)
    assert a.grad is None and b.grad is None


def test_failed_pullback_changes_no_gradient():
    @primitive
    def broken(x):
        return x * 2, lambda g: 1 / 0

    a, b = Parameter([1.0]), Parameter([2.0])
    for total in (broken(b) + a * 3, a * 3 + broken(b)):
        assert "division by zero" in message(RuntimeError, total.backward)
    assert a.grad is None and b.grad is None


def test_changes_in_another_thread_are_not_reported():
    def churn():
        other = Parameter([1.0])
        for _ in range(3000):
            other.data += 1

    threads = [threading.Thread(target=churn) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        w = Parameter([1.0])
        w.data += 1
        (w * w).backward()
    for thread in threads:
        thread.join()


# Pullbacks ---------------------------------------------------------------------------------------


def test_none_from_a_pullback_counts_as_zero():
    @primitive
    def first(x, y):
        return x + 0 * y, lambda g: (g, None)

    x, y = Parameter([1.0]), Parameter([2.0])
    first(x, y).backward()
    assert x.grad.tolist() == [1.0] and y.grad.tolist() == [0.0]


def test_gradient_that_is_a_function_is_called_once_and_only_if_it_is_needed():
    called = []

    def part(name, gradient):
        return lambda: called.append(name) or gradient

    @primitive
    def product(x, y):
        return x * y, lambda g: (part("x", g * y), part("y", g * x))

    for frozen, expected in (("", "xy"), ("x", "y"), ("y", "x")):
        x, y = Parameter([2.0, 3.0]), Parameter(10.0)
        result = product(x, y).sum() + x.sum() + y
        x.requires_grad, y.requires_grad = frozen != "x", frozen != "y"  # since it was recorded
        called.clear()
        result.backward()
        assert sorted(called) == sorted(expected)
        assert x.grad is None if frozen == "x" else x.grad.tolist() == [11, 11]
        assert y.grad is None if frozen == "y" else y.grad.tolist() == 6


def test_pullback_with_too_few_gradients_is_refused():
    @primitive
    def product(x, y):
        return x * y, lambda g: (g * y,)

    assert message(ValueError, product(Parameter([1.0]), Parameter([2.0])).backward) == (
        "backward() through product: the pullback returned 1 gradients for 2 operands; "
        "it must return one each, None where there is none"
    )


def test_pullback_of_the_wrong_shape_is_refused():
    @primitive
    def wrong(x):
        return x * 2, lambda g: np.ones((3, 2))

    assert message(ValueError, wrong(Parameter([1.0, 2.0, 3.0])).sum().backward) == (
        "backward() through wrong: a gradient of shape (3, 2) does not fit an operand of shape (3,)"
    )


@pytest.mark.parametrize(
    ("pullback", "error", "shown"),
    [
        (lambda g: 1 / 0, RuntimeError, "backward() through risky: division by zero"),
        (lambda g: lambda: 1 / 0, RuntimeError, "backward() through risky: division by zero"),
        (lambda g: np.ones(2) + np.ones(3), ValueError, "backward() through risky: operands could"),
    ],
)
def test_failing_pullback_is_named(pullback, error, shown):
    @primitive
    def risky(x):
        return x * 2, pullback

    assert message(error, risky(Parameter([1.0])).backward).startswith(shown)


def test_second_backward_through_a_freed_graph_is_refused():
    shared = Parameter([1.0]) * 2
    (shared * 3).backward()
    for again in (shared, shared * 4):
        assert "already used and freed; compute the result again" in message(
            RuntimeError, again.backward
        )
