"""Checks for the chapter on automatic differentiation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, NotYet, case, exercise, one_of_pair
from tinytorch.core.tensor import Tensor

__all__ = [
    "autograd_costs",
    "autograd_record",
    "autograd_softplus",
    "autograd_swish",
    "autograd_undo_broadcast",
]


@exercise(points=2)
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
    value, slope = _value_of(answer), _gradient_of(answer)
    yield case(
        "is log 2 at zero",
        value,
        [0.0],
        expected=[0.693147],
        hint="Return the value and the pullback, and keep the @primitive line above the function.",
    )
    yield case(
        "is log(1 + exp(x)), element by element",
        value,
        [-1.0, 2.0],
        expected=np.logaddexp(0, [-1.0, 2.0]),
    )
    yield case(
        "has slope one half at zero",
        slope,
        [0.0],
        expected=[0.5],
        hint="The derivative is the logistic function, 1 / (1 + exp(-x)).",
    )
    yield case(
        "multiplies its slope by the gradient that comes in",
        slope,
        [0.0, 0.0],
        [10.0, -2.0],
        expected=[5.0, -1.0],
        hint="The pullback takes g and returns g times the slope.",
    )
    yield case(
        "does not overflow at 1000, nor lose its value at -1000",
        value,
        [1000.0, -1000.0],
        expected=[1000.0, 0.0],
        hint="np.exp(1000) is infinite; np.logaddexp never computes it.",
    )
    yield case(
        "has a slope of 1 at 1000 and of 0 at -1000",
        slope,
        [1000.0, -1000.0],
        expected=[1.0, 0.0],
        hint="exp(x) / (1 + exp(x)) is infinity over infinity there; exp(x - softplus(x)) is not.",
    )
    x, g = np.random.default_rng(1).normal(size=(2, 3, 4))
    yield case("is right for a table", slope, x, g, expected=g / (1 + np.exp(-x)))


@exercise(points=2)
def autograd_undo_broadcast(answer: Any) -> Iterator[Case]:
    """Check `undo_broadcast(g, shape)`: sums over the axes that were added or stretched.

    Example:
        >>> from tinytorch.core.broadcasting import undo_broadcast
        >>> bool(autograd_undo_broadcast(undo_broadcast))
        True
        >>> bool(autograd_undo_broadcast(lambda g, shape: ...))
        False
    """
    g = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]])
    yield case("leaves a gradient alone where nothing was broadcast", answer, g, (2, 3), expected=g)
    yield case(
        "sums over an axis that was added",
        answer,
        g,
        (3,),
        expected=[11.0, 22.0, 33.0],
        hint="Each number was used in both rows, and gradients of several uses add.",
    )
    yield case(
        "sums over an axis that was stretched, and keeps it",
        answer,
        g,
        (2, 1),
        expected=[[6.0], [60.0]],
        hint="sum(axis=1, keepdims=True) leaves an axis of length 1.",
    )
    yield case(
        "gives a number for a number",
        answer,
        g,
        (),
        expected=66.0,
        hint="The shape () has no axes: all of them were added.",
    )
    yield case(
        "keeps an axis of length 1 that was not stretched",
        answer,
        np.ones((2, 1)),
        (1, 1),
        expected=[[2.0]],
        hint="Sum over the stretched axis, keep the other: the result has the shape (1, 1).",
    )
    h = np.random.default_rng(2).normal(size=(4, 5, 3))
    yield case(
        "handles both at once",
        answer,
        h,
        (5, 1),
        expected=h.sum(axis=0).sum(axis=1, keepdims=True),
        hint="First the axes that were added on the left, then those of length 1.",
    )


@exercise(points=2)
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
    line = [("a", [("x", 2.0)]), ("y", [("a", 5.0)])]
    yield case(
        "multiplies along a path",
        answer,
        line,
        "y",
        expected={"y": 1.0, "a": 5.0, "x": 10.0},
        hint="Start with a gradient of 1 for the result, and read the record from its end.",
    )
    square = [("y", [("x", 3.0), ("x", 3.0)])]
    yield case(
        "adds where one operation uses a value twice",
        answer,
        square,
        "y",
        expected={"y": 1.0, "x": 6.0},
        hint="Add to the gradient that is there; do not overwrite it.",
    )
    toy = [
        ("m", [("w", 3.0), ("x", 2.0)]),
        ("s", [("m", 1.0), ("b", 1.0)]),
        ("y", [("m", 2.0), ("s", 6.0)]),
    ]
    yield case(
        "adds where two operations use a value",
        answer,
        toy,
        "y",
        expected={"y": 1.0, "s": 6.0, "m": 8.0, "b": 6.0, "w": 24.0, "x": 16.0},
    )
    yield case(
        "leaves out what the result does not depend on",
        answer,
        [*line, ("z", [("a", 7.0), ("c", 1.0)])],
        "y",
        expected={"y": 1.0, "a": 5.0, "x": 10.0},
        hint="Skip a name that has no gradient when its turn comes.",
    )
    record = _random_record()
    expected = _gradients_by_paths(record, "n9")
    yield case("is right for a tangled record", answer, record, "n9", expected=expected)


@exercise(points=2)
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
    value, slope = _value_of(answer), _gradient_of(answer)
    x, g = np.random.default_rng(3).normal(size=(2, 2, 5))
    s = 1 / (1 + np.exp(-x))
    yield case("still computes x times its logistic function", value, x, expected=x * s)
    yield case(
        "has slope one half at zero",
        slope,
        [0.0],
        expected=[0.5],
        hint="Follow the path through the factor x as well as the one through the logistic.",
        mistakes=[
            ([0.75], "The path through the logistic carries the factor x, which is 0 here."),
            ([0.25], "Two paths, two terms: one with the factor x, and one with the logistic."),
        ],
    )
    yield case(
        "has slope 1 far to the right",
        slope,
        [30.0],
        expected=[1.0],
        hint="The logistic is 1 there and does not change: the path through the factor x is left.",
    )
    yield case(
        "multiplies both paths by the gradient that comes in",
        slope,
        [0.0, 30.0],
        [4.0, -3.0],
        expected=[2.0, -3.0],
        hint="g multiplies the whole slope, a sum of two terms: mind the brackets.",
    )
    yield case(
        "is right for a table",
        slope,
        x,
        g,
        expected=g * s * (1 + x * (1 - s)),
        hint="Between 0 and far away both paths count: add the two terms.",
    )


@exercise(points=3)
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
    yield case(
        "runs a model of four weights twice for each of them",
        answer,
        1,
        3,
        2,
        expected=8,
        part=runs,
        hint="A layer has width times width weights, each of them moved by itself.",
        mistakes=[
            (4, "A central difference evaluates above and below."),
            (5, "A central difference evaluates above and below, not in the middle."),
            (48, "First the number of runs, then the bytes."),
            (24, "A run takes the whole batch at once."),
        ],
        show_expected=False,
    )
    yield case(
        "counts every weight of every layer, whatever the batch",
        answer,
        3,
        7,
        10,
        expected=600,
        part=runs,
        hint="The weights of every layer count, and the batch does not.",
        show_expected=False,
    )
    yield case(
        "keeps two numbers, of four bytes each, for one layer of one number",
        answer,
        1,
        1,
        1,
        expected=8,
        part=kept,
        hint="Both @ and tanh make an array, and both stay; a float32 has four bytes.",
        show_expected=False,
    )
    yield case(
        "grows with layers, batch and width",
        answer,
        3,
        7,
        10,
        expected=1680,
        part=kept,
        hint="Each of the two arrays of a layer has the shape (batch, width).",
        show_expected=False,
    )
    yield case(
        "is right for the sizes of a small model",
        answer,
        12,
        64,
        768,
        expected=(14_155_776, 4_718_592),
        hint="Compute both from layers, batch and width.",
        show_expected=False,
    )


# Helpers -------------------------------------------------------------------------------------


def _value_of(answer: Any) -> Callable[..., Any]:
    """The primitive as a function of arrays, in float64; its `None` or `...` while a stub."""

    def value(*arrays: Any) -> Any:
        tensors = [Tensor(array, requires_grad=True, dtype=np.float64) for array in arrays]
        return _run(answer, *tensors)

    return value


def _gradient_of(answer: Any) -> Callable[..., Any]:
    """The gradient at `x`, with `g` coming in (ones unless given)."""

    def gradient(x: Any, g: Any = None) -> Any:
        tensor = Tensor(x, requires_grad=True, dtype=np.float64)
        result = _run(answer, tensor)
        if result is None or result is ...:
            return result
        with np.errstate(all="ignore"):
            result.backward(np.ones(result.shape) if g is None else g)
        return tensor.grad

    return gradient


def _run(answer: Any, *tensors: Tensor) -> Any:
    before = [tensor.data.copy() for tensor in tensors]
    with np.errstate(all="ignore"):  # an overflow shows in the value, which is what the case tests
        plain = getattr(answer, "__wrapped__", None)
        if plain is not None:
            came = plain(*(array.copy() for array in before))
            if came is None or came is ...:
                return came
        came = answer(*tensors)
    if any(not np.array_equal(b, t.data) for b, t in zip(before, tensors, strict=True)):
        raise NotYet("a result, but x is no longer what it was: compute into a new array")
    return came


def _random_record() -> list[tuple[str, list[tuple[str, float]]]]:
    """Ten operations, each on two or three earlier values; whole slopes, so that sums are exact."""
    rng = np.random.default_rng(4)
    names, record = ["p", "q"], []
    for i in range(10):
        parents = rng.choice(names, size=int(rng.integers(2, 4)))
        record.append((f"n{i}", [(str(p), float(rng.integers(-3, 4))) for p in parents]))
        names.append(f"n{i}")
    return record


def _gradients_by_paths(
    record: list[tuple[str, list[tuple[str, float]]]], result: str
) -> dict[str, float]:
    """The sum over all paths from the result of the product of slopes: slow, and independent."""
    parents_of = dict(record)
    found: dict[str, float] = {}

    def walk(name: str, product: float) -> None:
        found[name] = found.get(name, 0.0) + product
        for parent, slope in parents_of.get(name, []):
            walk(parent, product * slope)

    walk(result, 1.0)
    return found
