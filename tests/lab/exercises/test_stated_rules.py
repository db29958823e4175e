"""The rules that statements name: what breaks one is refused, and nothing else is."""

import functools
import sys

import numpy as np
import pytest

from tinytorch import Tensor, functional, no_grad, primitive
from tinytorch.core.layers import Linear, Module, Parameter
from tinytorch_book.exercises.cases import case
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import (
    breach_of,
    in_numpy,
    no_loop,
    no_numpy,
    package_only,
    tensor_operations,
    without,
)
from tinytorch_book.stories import hidden_values

X = np.array([[1.0, 2.0], [3.0, 5.0]])


def judged(rule, answer, *given, expected=None):
    """The report of an exercise with one rule, on an answer that is right."""

    @exercise(rules=[rule])
    def obeys(answer):
        yield case("is right", answer, *given, expected=expected)

    return obeys(answer)


# Loops -------------------------------------------------------------------------------------------


def for_loop(x):
    total = 0
    for row in x:
        total = total + row
    return total


def while_loop(x):
    total, i = 0, 0
    while i < len(x):
        total, i = total + x[i], i + 1
    return total


def endless_loop(x):
    total, i = 0, 0
    while True:
        if i == len(x):
            return total
        total, i = total + x[i], i + 1


def by_a_helper(x):
    return for_loop(x)


def in_a_closure(x):
    def inner():
        return sum([row for row in x])

    return inner()


class Loops:
    def __call__(self, x):
        return self.total(x)

    def total(self, x):
        return sum(row for row in x)


LOOPS = {
    "for": for_loop,
    "while": while_loop,
    "while True": endless_loop,
    "a list comprehension": lambda x: sum([row for row in x]),
    "a generator expression": lambda x: sum(row for row in x),
    "a dictionary comprehension": lambda x: sum({i: x[i] for i in range(len(x))}.values()),
    "a helper": by_a_helper,
    "a closure": in_a_closure,
    "an object": Loops(),
    "a method": Loops().total,
    "a partial function": functools.partial(for_loop),
    "map": lambda x: sum(map(np.asarray, x)),
    "reduce": lambda x: functools.reduce(np.add, x),
    "np.vectorize": lambda x: np.vectorize(lambda i: x[:, i].sum())(np.arange(2)),
    "apply_along_axis": lambda x: np.apply_along_axis(np.sum, 0, x),
}


@pytest.mark.parametrize("answer", LOOPS.values(), ids=LOOPS)
def test_a_loop_is_refused(answer):
    report = judged(no_loop, answer, X, expected=[4.0, 7.0])
    assert "loop" in report.cases[-1].got and "comprehension" in report.cases[-1].hint


def caught(x):
    try:
        raise ValueError
    except ValueError:
        total = x
    finally:
        x = x + 0
    with np.errstate(all="ignore"):
        total = total.sum(axis=0)
    if len(x) > 1 and (x[0, 0] or x[0, 1]):
        total = total * 1
    return total


def handled(x):
    """Python 3.12 and later put the handler last, and jump back from it."""
    try:
        axis = int("0")
    except ValueError:
        axis = 1
    total = x.sum(axis=axis)
    return total if len(x) else x


def split(x):
    """A name that the answer below uses as a method only."""
    return [row for row in x]


NO_LOOPS = {
    "a sum": lambda x: x.sum(axis=0),
    "np.add.reduce": lambda x: np.add.reduce(x),
    "errors and contexts": caught,
    "a handler": handled,
    "a method named like a helper": lambda x: x.sum(axis=0) if "a b".split() else x,
    "starred arguments": lambda *a: np.sum(*a, axis=0),
    "a partial function": functools.partial(np.sum, axis=0),
    "the package's own loops": lambda x: Tensor(x).sum(axis=0),
}


@pytest.mark.parametrize("answer", NO_LOOPS.values(), ids=NO_LOOPS)
def test_an_answer_without_a_loop_is_accepted(answer):
    assert judged(no_loop, answer, X, expected=[4.0, 7.0])


# The package, NumPy ------------------------------------------------------------------------------

SOFTMAX = np.exp(X) / np.exp(X).sum(axis=-1, keepdims=True)
softmax = functional.softmax


def plain_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def imported(x):
    from tinytorch.core.functional import softmax as other_name

    return other_name(x).data


PACKAGED = {
    "the function itself": functional.softmax,
    "its partial": functools.partial(functional.softmax, axis=-1),
    "a call": lambda x: functional.softmax(x),
    "another name": lambda x: softmax(x).data,
    "an import inside": imported,
    "by an attribute": lambda x: getattr(functional, "soft" + "max")(x).data,
    "tensors": lambda x: Tensor(x).exp() / Tensor(x).exp().sum(axis=-1, keepdims=True),
}


@pytest.mark.parametrize("answer", PACKAGED.values(), ids=PACKAGED)
def test_the_package_is_refused_where_numpy_is_required(answer):
    report = judged(in_numpy, answer, X, expected=SOFTMAX)
    assert "the package's" in report.cases[-1].got


def test_numpy_and_isinstance_are_accepted():
    assert judged(in_numpy, plain_softmax, X, expected=SOFTMAX)
    looking = lambda x: plain_softmax(np.zeros(2) if isinstance(x, Tensor) else x)  # noqa: E731
    assert judged(in_numpy, looking, X, expected=SOFTMAX)


def test_a_wrong_result_is_reported_before_a_broken_rule():
    found = judged(in_numpy, lambda x: functional.softmax(2 * x), X, expected=SOFTMAX).cases[-1]
    assert found.expected and "package" not in found.got


def composed(x):
    e = (x - x.data.max()).exp()
    return e / e.sum(axis=-1, keepdims=True)


def by_numpy(x):
    with no_grad():
        e = np.exp(x - x.data.max())
    return e / e.sum(axis=-1, keepdims=True)


def test_tensor_operations_are_accepted_and_fused_ones_refused():
    assert judged(tensor_operations, composed, Tensor(X), expected=SOFTMAX)
    assert judged(tensor_operations, by_numpy, Tensor(X), expected=SOFTMAX)
    for fused in (lambda x: softmax(x), softmax, lambda x: Linear(2, 2) and composed(x)):
        report = judged(tensor_operations, fused, Tensor(X), expected=SOFTMAX)
        assert "the package's" in report.cases[-1].got


def test_functions_passed_by_the_check_may_be_called():
    assert judged(in_numpy, lambda f, x: f(x), no_loop.of_answer, len, expected="")


def test_a_running_pullback_does_not_count_as_a_call():
    def slope(x):
        t = Tensor(x, requires_grad=True)
        composed(t).sum().backward()
        return t.grad

    assert judged(tensor_operations, slope, X, expected=np.zeros((2, 2)))


def test_one_function_is_refused_under_any_name():
    rule = without("Write it yourself.", np.broadcast_shapes, len)
    alias = np.broadcast_shapes
    for answer in (alias, lambda a, b: alias(a, b), lambda a, b: (2,) * len(a) and (2, 3)):
        assert (
            "the right result, but"
            in judged(rule, answer, (2, 3), (3,), expected=(2, 3)).cases[-1].got
        )
    assert judged(rule, lambda a, b: max(a, b, key=sum), (2, 3), (3,), expected=(2, 3))


def test_numpy_is_refused_where_plain_python_is_required():
    def inside(a):
        import numpy

        return int(numpy.sum(a))

    for answer in (lambda a: int(np.sum(a)), inside, np.sum, lambda a: int(X.sum() * 0) + sum(a)):
        assert "NumPy" in judged(no_numpy, answer, (1, 2), expected=3).cases[-1].got
    assert judged(no_numpy, sum, (1, 2), expected=3)
    assert judged(no_numpy, lambda a: sum(a), (1, 2), expected=3)


@pytest.mark.parametrize(
    "answer", [functional.gelu, hidden_values], ids=["the library", "the laboratory"]
)
def test_what_the_package_has_is_no_answer_where_one_is_to_be_written(answer):
    rules = [package_only("Write it yourself.")]
    assert breach_of(rules, answer)[0] == f"it is the package's {answer.__name__}"
    assert breach_of(rules, plain_softmax) == ("", "")


def test_rules_apply_to_primitives_of_the_reader():
    @primitive
    def double(x):
        return 2 * x, lambda g: 2 * g

    assert judged(no_loop, double, X, expected=2 * X)
    assert judged(tensor_operations, double, X, expected=2 * X)


def test_a_running_profiler_is_restored():
    def profiler(frame, event, called):
        return None

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        judged(in_numpy, plain_softmax, X, expected=SOFTMAX)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)


def test_inheriting_the_solution_is_refused_and_inheriting_module_is_not():
    class Inherits(Linear):
        pass

    class Writes(Module):
        def forward(self, x):
            return x

    assert breach_of([tensor_operations], Inherits)[0] == "it is the package's Linear"
    assert breach_of([tensor_operations], Writes) == ("", "")


def test_a_layer_may_hold_the_readers_own_parts():
    class Scale(Module):
        def __init__(self, factor):
            self.factor = Parameter([factor])

        def forward(self, x):
            return x * self.factor

    class Both(Module):
        def __init__(self):
            self.scale = Scale(2.0)

        def forward(self, x):
            return self.scale(x) + 1.0

    def answer(x):
        return Both()(Tensor(x))

    assert judged(tensor_operations, answer, X, expected=2 * X + 1)
