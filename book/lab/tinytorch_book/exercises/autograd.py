"""Checks for the chapter on automatic differentiation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinytorch.core.primitive import primitive
from tinytorch.core.tensor import Tensor
from tinytorch_book.exercises.cases import Cases, NotYet, case, cases, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, seed_of
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import by_hand, in_numpy, package_only
from tinytorch_book.exercises.values import show

__all__ = ["autograd_predict", "autograd_record", "autograd_softplus", "autograd_subtract",
           "autograd_swish", "autograd_undo_broadcast"]  # fmt: skip

Record = list[tuple[str, list[tuple[str, float]]]]


@dataclass(eq=False)
class _Number:
    """The chapter's number: a value, and pairs of a parent and a local derivative."""

    value: float
    made_of: Any = ()


def _derivatives(subtract: Any, a: float, b: float) -> Any:
    """How a difference depends on both numbers, as the answer says; `...` while it is a stub."""
    x, y = _Number(a), _Number(b)
    result = subtract(x, y)
    if result is None or result is ...:
        return result
    try:
        pairs = [(parent, slope) for parent, slope in result.made_of]
    except (AttributeError, TypeError, ValueError):
        raise NotYet(f"{show(result)}, which is not a Number made of two others") from None
    if ... in [slope for _, slope in pairs]:
        return ...
    if any(parent is not x and parent is not y for parent, _ in pairs):
        raise NotYet("a Number made of something else than `self` and `other`")
    return [result.value, *(sum(s for p, s in pairs if p is number) for number in (x, y))]


def _difference(x: _Number, y: _Number) -> _Number:
    return _Number(x.value - y.value, [(x, 1.0), (y, -1.0)])


@exercise(points=1, reference=_difference, show_expected=False)
def autograd_subtract(answer: Any) -> Cases:
    """Check the difference of two of the chapter's numbers: its value, its local derivatives."""
    each = "How far does the difference move when one of the two moves by a little?"
    sign = "When `other` grows, the difference shrinks: the derivative is negative."
    size = "By as much as the number itself moves, whatever its value is."
    known = [
        (lambda x, y: _Number(x.value - y.value, [(x, 1.0), (y, 1.0)]), sign),
        (lambda x, y: _Number(x.value - y.value, [(x, y.value), (y, -x.value)]), size),
        (lambda x, y: _Number(x.value - y.value, [(x, y.value), (y, x.value)]), size),
    ]
    yield from cases(answer, {
        "gives 5 - 3, and how it responds to the 5 and the 3": (each, 5.0, 3.0),
        "gives 2 - 7, likewise": (each, 2.0, 7.0),
        "takes a negative number away": (size, 0.5, -4.0),
        "takes 0 away": (size, 3.0, 0.0),
    }, known, run=_derivatives, part=("value and derivatives", list))  # fmt: skip


@exercise(points=1)
def autograd_predict(answer: Any) -> Cases:
    """Check what was predicted about the gradients of `m = a * b`, `s = m + a`, `y = s * s`."""
    yield from predictions(answer, {
        "s": (16, "s is used twice in y, and each use brings the other factor, 8."),
        "m": (16, "A sum passes its gradient on to both of its terms as it is."),
        "b": (32, "Nudge b, and m moves by a times as much. What is the gradient of m?"),
        "a": (64, "a is used in m and in s: add up what both of them bring."),
    })  # fmt: skip


@primitive
def _softplus(x: np.ndarray) -> Any:
    y = np.logaddexp(0, x)
    return y, lambda g: g * np.exp(x - y)


@exercise(points=2, reference=_softplus)
def autograd_softplus(answer: Any) -> Cases:
    """Check a primitive for `log(1 + exp(x))`: its values, its pullback, large inputs."""
    logistic = "The derivative is the logistic function, 1 / (1 + exp(-x))."
    coming = "The pullback takes g and returns g times the slope."
    pair = "Return the value and the pullback, and keep the @primitive line above the function."
    far, close = np.array([1000.0, -1000.0]), np.linspace(-25.0, 25.0, 101)
    overflow = "np.exp(1000) is infinite; np.logaddexp never computes it."
    ratio = "exp(x) / (1 + exp(x)) is infinity over infinity there; exp(x - softplus(x)) is not."
    yield from cases(answer, {
        "is log 2 at zero": (pair, [0.0]),
        "is log(1 + exp(x)), element by element": ("log(1 + exp(x)) of each.", [-1.0, 2.0]),
        "does not overflow at 1000, nor lose its value at -1000": (overflow, far),
        "is log(1 + exp(x)) everywhere between": ("No threshold is needed.", close),
    }, run=value_at, rtol=1e-7)  # fmt: skip
    yield from cases(answer, {
        "has slope one half at zero": (logistic, [0.0]),
        "multiplies its slope by the gradient that comes in": (coming, [0.0, 0.0], [10.0, -2.0]),
        "has a slope of 1 at 1000 and of 0 at -1000": (ratio, far),
        "has the slope of that everywhere between": (logistic, close),
        "is right for a table": (coming, *drawn((3, 4), (3, 4))),
    }, run=gradient_at, rtol=1e-7)  # fmt: skip


def _undone(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    padded = (1,) * (g.ndim - len(shape)) + shape
    return g.sum(axis=tuple(i for i, length in enumerate(padded) if length == 1)).reshape(shape)


@exercise(points=2, reference=_undone, rules=[in_numpy])
def autograd_undo_broadcast(answer: Any) -> Cases:
    """Check `undo_broadcast(g, shape)`: sums over the axes that were added or stretched."""
    g, stretched = np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), np.ones((2, 1))
    both = "First the axes that were added on the left, then those of length 1."
    uses = "Each number was used in both rows, and gradients of several uses add."
    axis = "sum(axis=1, keepdims=True) leaves an axis of length 1."
    shapes = {(5, 1): (4, 5, 3), (1, 3, 1): (2, 3, 4), (1, 1, 1): (2, 3, 4), (3,): (3, 3), (): (),
              (1, 1): (5, 4, 3, 2), (1, 1, 2): (3, 1, 2), (2, 1, 2): (2, 2, 2, 2)}  # fmt: skip
    yield from cases(answer, {
        "leaves a gradient alone where nothing was broadcast": ("Nothing to sum.", g, (2, 3)),
        "sums over an axis that was added": (uses, g, (3,)),
        "sums over an axis that was stretched, and keeps it": (axis, g, (2, 1)),
        "gives a number for a number": ("The shape () has no axes: all were added.", g, ()),
        "keeps an axis of length 1 that was not stretched":
            ("Sum over the stretched axis, keep the other.", stretched, (1, 1)),
        **{f"undoes {shape} stretched to {long}": (both, np.asarray(drawn(long)[0]), shape)
           for shape, long in shapes.items()},
    })  # fmt: skip


def _gradients(record: Record, result: str) -> dict[str, float]:
    found = {result: 1.0}
    for name, parents in reversed(record):
        for parent, slope in parents if name in found else []:
            found[parent] = found.get(parent, 0.0) + slope * found[name]
    return found


@exercise(points=2, reference=_gradients)
def autograd_record(answer: Any) -> Cases:
    """Check `gradients(record, result)`: walks a record backwards and adds where paths meet."""
    line: Record = [("a", [("x", 2.0)]), ("y", [("a", 5.0)])]
    square = [("y", [("x", 3.0), ("x", 3.0)])]
    flat = [("a", [("x", 2.0)]), ("y", [("a", 0.0), ("b", 4.0)])]
    toy = [("m", [("w", 3.0), ("x", 2.0)]), ("s", [("m", 1.0), ("b", 1.0)]),
           ("y", [("m", 2.0), ("s", 6.0)])]  # fmt: skip
    start = "Start with a gradient of 1 for the result, and read the record from its end."
    add = "Add to the gradient that is there; do not overwrite it."
    skip = "Skip a name that has no gradient when its turn comes."
    zero = "A name that the result depends on has a gradient, even if it is 0."
    unused = ("z", [("a", 7.0), ("c", 1.0)])
    yield from cases(answer, {
        "multiplies along a path": (start, line, "y"),
        "adds where one operation uses a value twice": (add, square, "y"),
        "adds where two operations use a value": (add, toy, "y"),
        "leaves out what the result does not depend on": (skip, [*line, unused], "y"),
        "keeps a gradient of zero": (zero, flat, "y"),
        "gives 1 for a result that is an input": ("The result depends on itself.", toy, "w"),
        "is right for a tangled record": (add, _random_record(), "n9"),
        "is right for a result in the middle of it": (skip, _random_record(), "n6"),
    })  # fmt: skip


@primitive
def _swish(x: np.ndarray) -> Any:
    s = 1 / (1 + np.exp(-x))
    return x * s, lambda g: g * s * (1 + x * (1 - s))


_OWN_PULLBACK = package_only(
    "Repair the pullback yourself: of tensors the package makes one.",
    "tinytorch.core.graph",
    "tinytorch.core.primitive",
)


@exercise(points=2, reference=_swish, rules=[by_hand(), _OWN_PULLBACK])
def autograd_swish(answer: Any) -> Cases:
    """Check a primitive for `x * logistic(x)`: both paths to x must carry a gradient."""
    factor = "Follow the path through the factor x as well as the one through the logistic."
    right = "The logistic is 1 there and does not change: the path through the factor x is left."
    brackets = "g multiplies the whole slope, a sum: mind the brackets."
    between = "Between 0 and far away both paths count: add the two terms."
    mistakes = [
        ([0.75], "The path through the logistic carries the factor x, which is 0 here."),
        ([0.25], "Two paths, two terms: one with the factor x, and one with the logistic."),
    ]
    x, g = drawn((2, 5), (2, 5), seed=3)
    value = "The value was right: x times its logistic function."
    yield case("still computes x times its logistic function", answer, x, run=value_at, hint=value)
    yield from cases(answer, {
        "has slope one half at zero": (factor, [0.0]),
        "has slope 1 far to the right": (right, [30.0]),
        "is right near and far": (between, np.linspace(-12.0, 12.0, 49)),
        "multiplies both paths by the gradient that comes in": (brackets, [1.0, -2.0], [4.0, -3.0]),
        "is right for a table": (between, x, g),
    }, mistakes, run=gradient_at, rtol=1e-7)  # fmt: skip


# Helpers -------------------------------------------------------------------------------------


def value_at(answer: Any, x: Any, *eps: float) -> Any:
    """The value of a reader's primitive in float64; its `None` or `...` while a stub."""
    return _called(answer, x, *eps)[1]


def gradient_at(answer: Any, x: Any, g: Any = 1.0, *eps: float) -> Any:
    """The gradient at the input of a reader's primitive or layer, from that at its output."""
    tensor, result = _called(answer, x, *eps)
    if not isinstance(result, Tensor):
        raise NotYet(f"{show(result)} as the result: forward must return a Tensor")
    if not result.requires_grad:
        raise NotYet("a result without a gradient: somewhere a .data or NumPy cut it off")
    result.backward(g if isinstance(g, np.ndarray) else g * np.ones(result.shape))
    return tensor.grad


def _called(answer: Any, x: Any, *eps: float) -> tuple[Tensor, Any]:
    """The tensor that the answer is given, and what it returns; a primitive may be a stub."""
    tensor = Tensor(x, requires_grad=True, dtype=np.float64)
    before = tensor.data.copy()
    came = getattr(answer, "__wrapped__", np.shape)(before.copy())
    if came is not None and came is not ...:
        came = answer(tensor, **({"eps": eps[0]} if eps else {}))
    if not np.array_equal(before, tensor.data):
        raise NotYet("a result, but `x` is no longer what it was: compute into a new array")
    return tensor, came


def _random_record() -> Record:
    """Ten operations, each on two or three earlier values; quarters, so that sums are exact."""
    rng, record = np.random.default_rng(seed_of(4)), []
    for i in range(10):
        parents = rng.choice(["p", "q", *(f"n{j}" for j in range(i))], size=rng.integers(2, 4))
        record.append((f"n{i}", [(str(p), float(rng.integers(-6, 7) / 4)) for p in parents]))
    return record
