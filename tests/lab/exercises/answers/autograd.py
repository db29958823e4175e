"""Answers to the exercises of the chapter on automatic differentiation."""

import numpy as np

from tinytorch import functional, primitive


@primitive
def softplus_by_parts(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), lambda g: g / (1 + np.exp(-x))


def undo_at_once(g, shape):
    extra = g.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1)
    return g.sum(axis=axes, keepdims=True).reshape(shape)


def record_by_recursion(record, result):
    parents_of, found = dict(record), {}

    def visit(name, g):
        found[name] = found.get(name, 0.0) + g
        for parent, slope in parents_of.get(name, ()):
            visit(parent, slope * g)

    visit(result, 1.0)
    return found


@primitive
def swish_by_the_other_tail(x):
    s = 1 / (1 + np.exp(-x))
    return x * s, lambda g: g * s * (1 + x / (1 + np.exp(x)))


class Number:
    """As the chapter has it."""

    def __init__(self, value, made_of=()):
        self.value, self.made_of, self.grad = value, made_of, 0.0


RIGHT = {
    "autograd_subtract": [lambda x, y: Number(x.value + -1 * y.value, ((y, -1), (x, 1)))],
    "autograd_softplus": [softplus_by_parts],
    "autograd_undo_broadcast": [undo_at_once],
    "autograd_record": [record_by_recursion],
    "autograd_swish": [swish_by_the_other_tail],
}

WRONG = {
    "autograd_subtract": {
        "… the difference shrinks": ("-1.0", "1.0"),
        "… as the number itself moves": ("1.0), (other, -1.0", "other.value), (other, self.value"),
        "… whatever its value": ("1.0), (other, -1.0", "other.value), (other, -self.value"),
        "… when one of the two": ("1.0), (other, -1.0", "...), (other, ..."),
        "a plain float": lambda x, y: x.value - y.value,
        "made of floats": ("[(self, 1.0), (other,", "[(self.value, 1.0), (other.value,"),
    },
    "autograd_predict": {
        "one path to a": {"a": 48},
        "one use of s": {"s": 8},
    },
    "autograd_softplus": {
        "… np.logaddexp never computes it": ("np.logaddexp(0, x)", "np.log(1 + np.exp(x))"),
        "… infinity over infinity": ("np.exp(x - y)", "np.exp(x) / (1 + np.exp(x))"),
    },
    "autograd_undo_broadcast": {"… keepdims": (", keepdims=True", "")},
    "autograd_record": {
        "… Skip a name": (
            " if name in gradients else []",
            "",
            "gradients[name]",
            "gradients.get(name, 0)",
        )
    },
    "autograd_swish": {
        "… as well as the one through the logistic": ("(s + x", "(x"),
        "… carries the factor x": ("x * s * (1 - s)", "s * (1 - s)"),
        "… Two paths, two terms": ("s + x * s * (1 - s)", "s * (1 - s)"),
        "… the package does the same": lambda x: x * functional.sigmoid(x),
        "… of tensors the package makes": lambda x: x / (1 + (-x).exp()),
    },
}
