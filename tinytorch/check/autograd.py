"""Checks for the chapter on automatic differentiation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, NotYet, case, exercise, one_of_pair
from tinytorch.check.rules import in_numpy
from tinytorch.core.tensor import Tensor, primitive

__all__ = [
    "autograd_costs",
    "autograd_record",
    "autograd_softplus",
    "autograd_swish",
    "autograd_undo_broadcast",
]

Record = list[tuple[str, list[tuple[str, float]]]]


@primitive
def _softplus(x: np.ndarray) -> Any:
    y = np.logaddexp(0, x)
    return y, lambda g: g * np.exp(x - y)


@exercise(points=2, reference=_softplus)
def autograd_softplus(answer: Any) -> Iterator[Case]:
    """Check a primitive for `log(1 + exp(x))`: its values, its pullback, large inputs.

    Example:
        >>> from tinytorch import primitive
        >>> softplus = primitive(lambda x: (np.logaddexp(0, x), lambda g: g / (1 + np.exp(-x))))
        >>> autograd_softplus(softplus).points
        2
        >>> bool(autograd_softplus(lambda x: ...))
        False
    """
    pair = "Return the value and the pullback, and keep the @primitive line above the function."
    logistic = "The derivative is the logistic function, 1 / (1 + exp(-x))."
    coming = "The pullback takes g and returns g times the slope."
    sums = "log(1 + exp(x)) is np.logaddexp(0, x), and no threshold is needed."
    large = "np.exp(1000) is infinite; np.logaddexp never computes it."
    ratio = "exp(x) / (1 + exp(x)) is infinity over infinity there; exp(x - softplus(x)) is not."
    far, close = np.array([1000.0, -1000.0]), np.linspace(-25.0, 25.0, 101)
    yield case("is log 2 at zero", answer, [0.0], run=_value, hint=pair)
    claim = "is log(1 + exp(x)), element by element"
    yield case(claim, answer, [-1.0, 2.0], run=_value, hint="log(1 + exp(x)) of each element.")
    yield case("has slope one half at zero", answer, [0.0], run=_gradient, hint=logistic)
    claim, g = "multiplies its slope by the gradient that comes in", [10.0, -2.0]
    yield case(claim, answer, [0.0, 0.0], g, run=_gradient, hint=coming)
    claim = "does not overflow at 1000, nor lose its value at -1000"
    yield case(claim, answer, far, run=_value, hint=large)
    claim = "has a slope of 1 at 1000 and of 0 at -1000"
    yield case(claim, answer, far, run=_gradient, hint=ratio)
    claim = "is log(1 + exp(x)) everywhere between"
    yield case(claim, answer, close, run=_value, hint=sums, rtol=1e-7)
    claim = "has the slope of that everywhere between"
    yield case(claim, answer, close, run=_gradient, hint=logistic, rtol=1e-7)
    x, g = np.random.default_rng(1).normal(size=(2, 3, 4))
    yield case("is right for a table", answer, x, g, run=_gradient, hint=coming)


def _undone(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    padded = (1,) * (g.ndim - len(shape)) + shape
    return g.sum(axis=tuple(i for i, length in enumerate(padded) if length == 1)).reshape(shape)


@exercise(points=2, reference=_undone, rules=[in_numpy])
def autograd_undo_broadcast(answer: Any) -> Iterator[Case]:
    """Check `undo_broadcast(g, shape)`: sums over the axes that were added or stretched.

    Example:
        >>> bool(autograd_undo_broadcast(_undone))
        True
        >>> bool(autograd_undo_broadcast(lambda g, shape: ...))
        False
    """
    g, one = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), np.ones((2, 1))
    added = "Each number was used in both rows, and gradients of several uses add."
    stretched = "sum(axis=1, keepdims=True) leaves an axis of length 1."
    number = "The shape () has no axes: all of them were added."
    alone = "Sum over the stretched axis, keep the other: the result has the shape (1, 1)."
    both = "First the axes that were added on the left, then those of length 1."
    whole = "Where the shapes agree there is nothing to sum."
    rng = np.random.default_rng(2)
    yield case("leaves a gradient alone where nothing was broadcast", answer, g, (2, 3), hint=whole)
    yield case("sums over an axis that was added", answer, g, (3,), hint=added)
    claim = "sums over an axis that was stretched, and keeps it"
    yield case(claim, answer, g, (2, 1), hint=stretched)
    yield case("gives a number for a number", answer, g, (), hint=number)
    claim = "keeps an axis of length 1 that was not stretched"
    yield case(claim, answer, one, (1, 1), hint=alone)
    yield case("handles both at once", answer, rng.normal(size=(4, 5, 3)), (5, 1), hint=both)
    for before, shape in (
        ((2, 3, 4), (1, 3, 1)),
        ((3, 3), (3,)),
        ((2, 2, 2, 2), (2, 1, 2)),
        ((5, 4, 3, 2), (1, 1)),
        ((3, 1, 2), (1, 1, 2)),
        ((), ()),
    ):
        claim = f"undoes {shape} stretched to {before}"
        yield case(claim, answer, rng.normal(size=before) + np.zeros(before), shape, hint=both)


def _by_paths(record: Record, result: str) -> dict[str, float]:
    """The sum over all paths from the result of the product of slopes: slow, and independent."""
    parents_of = dict(record)
    found: dict[str, float] = {}

    def walk(name: str, product: float) -> None:
        found[name] = found.get(name, 0.0) + product
        for parent, slope in parents_of.get(name, []):
            walk(parent, product * slope)

    walk(result, 1.0)
    return found


@exercise(points=2, reference=_by_paths)
def autograd_record(answer: Any) -> Iterator[Case]:
    """Check `gradients(record, result)`: walks a record backwards and adds where paths meet.

    Example:
        >>> def gradients(record, result):
        ...     found = {result: 1.0}
        ...     for name, parents in reversed(record):
        ...         for parent, slope in parents if name in found else []:
        ...             found[parent] = found.get(parent, 0.0) + slope * found[name]
        ...     return found
        >>> bool(autograd_record(gradients))
        True
        >>> bool(autograd_record(lambda record, result: ...))
        False
    """
    line: Record = [("a", [("x", 2.0)]), ("y", [("a", 5.0)])]
    square: Record = [("y", [("x", 3.0), ("x", 3.0)])]
    toy: Record = [
        ("m", [("w", 3.0), ("x", 2.0)]),
        ("s", [("m", 1.0), ("b", 1.0)]),
        ("y", [("m", 2.0), ("s", 6.0)]),
    ]
    start = "Start with a gradient of 1 for the result, and read the record from its end."
    add = "Add to the gradient that is there; do not overwrite it."
    skip = "Skip a name that has no gradient when its turn comes."
    zero = "A name that the result depends on has a gradient, even if it is 0."
    one = "The result depends on itself, with a gradient of 1."
    other: Record = [*line, ("z", [("a", 7.0), ("c", 1.0)])]
    yield case("multiplies along a path", answer, line, "y", hint=start)
    yield case("adds where one operation uses a value twice", answer, square, "y", hint=add)
    yield case("adds where two operations use a value", answer, toy, "y", hint=add)
    yield case("leaves out what the result does not depend on", answer, other, "y", hint=skip)
    flat: Record = [("a", [("x", 2.0)]), ("y", [("a", 0.0), ("b", 4.0)])]
    yield case("keeps a gradient of zero", answer, flat, "y", hint=zero)
    yield case("gives 1 for a result that is an input", answer, toy, "w", hint=one)
    record = _random_record()
    yield case("is right for a tangled record", answer, record, "n9", hint=add)
    yield case("is right for a result in the middle of it", answer, record, "n6", hint=skip)


@primitive
def _swish(x: np.ndarray) -> Any:
    s = 1 / (1 + np.exp(-x))
    return x * s, lambda g: g * s * (1 + x * (1 - s))


@exercise(points=2, reference=_swish)
def autograd_swish(answer: Any) -> Iterator[Case]:
    """Check a primitive for `x * logistic(x)`: both paths to x must carry a gradient.

    Example:
        >>> from tinytorch import primitive
        >>> def swish(x):
        ...     s = 1 / (1 + np.exp(-x))
        ...     return x * s, lambda g: g * (s + x * s * (1 - s))
        >>> bool(autograd_swish(primitive(swish)))
        True
        >>> bool(autograd_swish(lambda x: ...))
        False
    """
    factor = "Follow the path through the factor x as well as the one through the logistic."
    right = "The logistic is 1 there and does not change: the path through the factor x is left."
    brackets = "g multiplies the whole slope, a sum of two terms: mind the brackets."
    between = "Between 0 and far away both paths count: add the two terms."
    mistakes = [
        ([0.75], "The path through the logistic carries the factor x, which is 0 here."),
        ([0.25], "Two paths, two terms: one with the factor x, and one with the logistic."),
    ]
    x, g = np.random.default_rng(3).normal(size=(2, 2, 5))
    value = "The value was right: x times its logistic function."
    yield case("still computes x times its logistic function", answer, x, run=_value, hint=value)
    claim = "has slope one half at zero"
    yield case(claim, answer, [0.0], run=_gradient, hint=factor, mistakes=mistakes)
    yield case("has slope 1 far to the right", answer, [30.0], run=_gradient, hint=right)
    claim, coming = "multiplies both paths by the gradient that comes in", [4.0, -3.0]
    yield case(claim, answer, [0.0, 30.0], coming, run=_gradient, hint=brackets)
    yield case("is right for a table", answer, x, g, run=_gradient, hint=between)
    wide = np.linspace(-12.0, 12.0, 49)
    yield case("is right near and far", answer, wide, run=_gradient, hint=between, rtol=1e-7)


@exercise(
    points=3,
    reference=lambda layers, batch, width: (2 * layers * width**2, 8 * layers * batch * width),
    mistakes=[
        (lambda n, b, w: (n * w * w, None), "A central difference evaluates above and below."),
        (
            lambda n, b, w: (n * w * w + 1, None),
            "A central difference evaluates above and below, not in the middle.",
        ),
        (lambda n, b, w: (8 * n * b * w, None), "First the number of runs, then the bytes."),
        (lambda n, b, w: (2 * b * n * w * w, None), "A run takes the whole batch at once."),
        (lambda n, b, w: (None, 4 * n * b * w), "The output of @ is kept, and that of tanh."),
        (lambda n, b, w: (None, 2 * n * b * w), "In bytes: a float32 has four."),
    ],
    show_expected=False,
)
def autograd_costs(answer: Any) -> Iterator[Case]:
    """Check `costs(layers, batch, width)`: runs of the model and bytes of activations.

    Example:
        >>> def costs(layers, batch, width):
        ...     return 2 * layers * width * width, 8 * layers * batch * width
        >>> bool(autograd_costs(costs))
        True
        >>> bool(autograd_costs(lambda layers, batch, width: ...))
        False
    """
    runs, kept = (
        (name, one_of_pair(i, "(runs, bytes)")) for i, name in enumerate(("runs", "bytes"))
    )
    weights = "A layer has width times width weights, each of them moved by itself."
    every = "The weights of every layer count, and the batch does not."
    arrays = "Both @ and tanh make an array, and both stay; a float32 has four bytes."
    shape = "Each of the two arrays of a layer has the shape (batch, width)."
    compute = "Compute both from layers, batch and width."
    claim = "runs a model of four weights twice for each of them"
    yield case(claim, answer, 1, 3, 2, part=runs, hint=weights)
    claim = "counts every weight of every layer, whatever the batch"
    yield case(claim, answer, 3, 7, 10, part=runs, hint=every)
    claim = "keeps two numbers, of four bytes each, for one layer of one number"
    yield case(claim, answer, 1, 1, 1, part=kept, hint=arrays)
    yield case("grows with layers, batch and width", answer, 3, 7, 10, part=kept, hint=shape)
    yield case("is right for the sizes of a small model", answer, 12, 64, 768, hint=compute)


# Helpers -------------------------------------------------------------------------------------


def _value(answer: Any, x: Any) -> Any:
    """The value of a primitive in float64; its `None` or `...` while a stub."""
    return _called(answer, Tensor(x, requires_grad=True, dtype=np.float64))


def _gradient(answer: Any, x: Any, g: Any = None) -> Any:
    """The gradient at `x`, with `g` coming in (ones unless given)."""
    tensor = Tensor(x, requires_grad=True, dtype=np.float64)
    result = _called(answer, tensor)
    if result is None or result is ...:
        return result
    coming = np.ones(result.shape) if g is None else np.array(g)
    before = coming.copy()
    result.backward(coming)
    if not np.array_equal(coming, before):
        raise NotYet("a gradient, but g is no longer what it was: compute into a new array")
    return tensor.grad


def _called(answer: Any, tensor: Tensor) -> Any:
    before, plain = tensor.data.copy(), getattr(answer, "__wrapped__", None)
    if plain is not None:
        came = plain(before.copy())
        if came is None or came is ...:
            return came
    came = answer(tensor)
    if not np.array_equal(before, tensor.data):
        raise NotYet("a result, but x is no longer what it was: compute into a new array")
    return came


def _random_record() -> Record:
    """Ten operations, each on two or three earlier values; whole slopes, so that sums are exact."""
    rng = np.random.default_rng(4)
    names, record = ["p", "q"], []
    for i in range(10):
        parents = rng.choice(names, size=int(rng.integers(2, 4)))
        record.append((f"n{i}", [(str(p), float(rng.integers(-3, 4))) for p in parents]))
        names.append(f"n{i}")
    return record
