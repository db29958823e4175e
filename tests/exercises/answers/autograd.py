"""Answers to the exercises of the chapter on automatic differentiation."""

import numpy as np

from tinytorch import primitive


def softplus(value, slope):
    """A primitive of a value and a slope, both functions of x."""

    @primitive
    def operation(x):
        return value(x), lambda g: g * slope(x)

    return operation


def logistic(x):
    return 1 / (1 + np.exp(-x))


def stable(x):
    return np.logaddexp(0, x)


def undo_by_chapter(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for axis, length in enumerate(shape):
        if length == 1:
            g = g.sum(axis=axis, keepdims=True)
    return g


def undo_at_once(g, shape):
    extra = g.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1)
    return g.sum(axis=axes, keepdims=True).reshape(shape)


def undo_outer_only(g, shape):
    return g.sum(axis=tuple(range(g.ndim - len(shape))))


def undo_drops_axes(g, shape):
    g = undo_outer_only(g, shape)
    return g.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))


def record_by_chapter(record, result):
    found = {result: 1.0}
    for name, parents in reversed(record):
        for parent, slope in parents if name in found else []:
            found[parent] = found.get(parent, 0.0) + slope * found[name]
    return found


def record_by_recursion(record, result):
    parents_of, found = dict(record), {}

    def visit(name, g):
        found[name] = found.get(name, 0.0) + g
        for parent, slope in parents_of.get(name, ()):
            visit(parent, slope * g)

    visit(result, 1.0)
    return found


def record_with_zeros(record, result):
    names = {name for name, _ in record} | {p for _, parents in record for p, _ in parents}
    return dict.fromkeys(names, 0.0) | record_by_chapter(record, result)


def swish(slope):
    return softplus(lambda x: x * logistic(x), slope)


def swish_slope(x):
    s = logistic(x)
    return s + x * s * (1 - s)


def costs(runs, kept):
    return lambda n, b, w: (runs(n, b, w), kept(n, b, w))


def runs(n, b, w):
    return 2 * n * w * w


def kept(n, b, w):
    return 4 * n * b * w


class Number:
    """As the chapter has it."""

    def __init__(self, value, made_of=()):
        self.value, self.made_of, self.grad = value, made_of, 0.0


def subtract(slope_of_self, slope_of_other, value=lambda a, b: a - b):
    return lambda x, y: Number(
        value(x.value, y.value),
        [(x, slope_of_self(x.value, y.value)), (y, slope_of_other(x.value, y.value))],
    )


RIGHT = {
    "autograd_subtract": [
        subtract(lambda a, b: 1.0, lambda a, b: -1.0),
        lambda x, y: Number(x.value + -1 * y.value, ((y, -1), (x, 1))),
    ],
    "autograd_weights": [
        lambda x, k: x.T @ np.ones((len(x), k)),
        lambda x, k: np.repeat(x.sum(axis=0)[:, None], k, axis=1),
    ],
    "autograd_softplus": [
        softplus(stable, lambda x: np.exp(x - stable(x))),
        softplus(lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), logistic),
    ],
    "autograd_undo_broadcast": [undo_by_chapter, undo_at_once],
    "autograd_record": [record_by_chapter, record_by_recursion],
    "autograd_swish": [swish(swish_slope), swish(lambda x: logistic(x) * (1 + x * logistic(-x)))],
    "autograd_costs": [
        costs(runs, kept),
        lambda layers, batch, width: [layers * width**2 * 2, layers * batch * width * 4],
    ],
}

WRONG = {
    "autograd_subtract": {
        "… the difference shrinks": subtract(lambda a, b: 1.0, lambda a, b: 1.0),
        "… whatever its value": subtract(lambda a, b: b, lambda a, b: a),
        "… when one of the two": subtract(lambda a, b: ..., lambda a, b: ...),
        "a sum": subtract(lambda a, b: 1.0, lambda a, b: -1.0, lambda a, b: a + b),
        "a plain float": lambda x, y: x.value - y.value,
        "made of floats": lambda x, y: Number(x.value - y.value, [(x.value, 1.0), (y.value, -1)]),
    },
    "autograd_weights": {"turned round": lambda x, k: np.tile(x.sum(axis=0), (k, 1))},
    "autograd_softplus": {
        "… np.logaddexp never computes it": softplus(lambda x: np.log(1 + np.exp(x)), logistic),
        "… infinity over infinity": softplus(stable, lambda x: np.exp(x) / (1 + np.exp(x))),
    },
    "autograd_undo_broadcast": {"… keepdims": undo_drops_axes},
    "autograd_record": {"… Skip a name": record_with_zeros},
    "autograd_swish": {
        "… as well as the one through the logistic": swish(
            lambda x: x * logistic(x) * logistic(-x)
        ),
        "… carries the factor x": swish(lambda x: logistic(x) + logistic(x) * logistic(-x)),
    },
    "autograd_costs": {
        "… not in the middle": costs(lambda n, b, w: n * w * w + 1, kept),
        "… First the number of runs": lambda n, b, w: (kept(n, b, w), runs(n, b, w)),
    },
}
