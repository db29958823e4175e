"""Answers to the exercises of the chapter on automatic differentiation."""

import numpy as np

from tinytorch import Tensor, primitive
from tinytorch.core.broadcasting import undo_broadcast


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


def above(threshold):
    return lambda x: np.where(x > threshold, x, np.log1p(np.exp(x)))


@primitive
def in_place(x):
    y = np.logaddexp(0, x)
    x -= y
    return y, lambda g: g * np.exp(x)


@primitive
def g_in_place(x):
    slope = logistic(x)

    def pullback(g):
        g *= slope
        return g

    return np.logaddexp(0, x), pullback


@primitive
def without_g(x):
    return stable(x), lambda g: logistic(x)


@primitive
def only_signs_of_g(x):
    return stable(x), lambda g: np.sign(g) * logistic(x)


@primitive
def summed(x):
    return stable(x).sum(), lambda g: g * logistic(x)


# ---------------------------------------------------------------------------------------------


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


def undo_where_longer(g, shape):
    g = g.sum(axis=tuple(range(g.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1 and g.shape[i] > 1)
    return g.sum(axis=stretched, keepdims=True) if stretched else g


def undo_by_adding(g, shape):
    result = np.zeros(shape)
    for index in np.ndindex(*g.shape):
        inner = index[g.ndim - len(shape) :]
        result[tuple(0 if n == 1 else i for i, n in zip(inner, shape, strict=True))] += g[index]
    return result


def undo_lengths_not_in_shape(g, shape):
    axes = tuple(i for i, n in enumerate(g.shape) if n not in shape)
    return g.sum(axis=axes).reshape(shape)


def undo_first_one_only(g, shape):
    g = undo_outer_only(g, shape)
    return g.sum(axis=shape.index(1), keepdims=True) if 1 in shape else g


def undo_outer_only(g, shape):
    return g.sum(axis=tuple(range(g.ndim - len(shape))))


def undo_inner_only(g, shape):
    axes = tuple(i for i, n in enumerate(shape) if n == 1)
    return g.sum(axis=axes, keepdims=True) if g.ndim == len(shape) else g


def undo_means(g, shape):
    return undo_by_chapter(g, shape) * np.prod(shape) / max(g.size, 1)


def undo_drops_axes(g, shape):
    g = undo_outer_only(g, shape)
    return g.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))


def undo_one_added_axis(g, shape):
    if g.ndim > len(shape):
        g = g.sum(axis=0)
    return undo_by_chapter(g, shape) if g.ndim == len(shape) else g


def undo_on_the_right(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=-1)
    return undo_by_chapter(g, shape)


def undo_two_stretched(g, shape):
    g = undo_outer_only(g, shape)
    stretched = [i for i, n in enumerate(shape) if n == 1][:2]
    return g.sum(axis=tuple(stretched), keepdims=True) if stretched else g


def undo_by_the_package(g, shape):
    x = Tensor(np.zeros(shape), requires_grad=True, dtype=np.float64)
    (x + np.zeros(g.shape)).backward(g)
    return x.grad


def undo_by_taking(g, shape):
    return g[(0,) * (g.ndim - len(shape))][tuple(slice(0, n) for n in shape)]


# ---------------------------------------------------------------------------------------------


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


def record_by_index(record, result):
    found = {result: 1}
    for i in range(len(record) - 1, -1, -1):
        name, parents = record[i]
        if name not in found:
            continue
        for parent, slope in parents:
            found.setdefault(parent, 0.0)
            found[parent] += slope * found[name]
    return found


def record_with(combine, keep=lambda name, found: name in found):
    def answer(record, result):
        found = {result: 1.0}
        for name, parents in reversed(record):
            for parent, slope in parents if keep(name, found) else []:
                found[parent] = combine(found.get(parent, 0.0), slope, found[name])
        return found

    return answer


def record_with_zeros(record, result):
    names = {name for name, _ in record} | {p for _, parents in record for p, _ in parents}
    return dict.fromkeys(names, 0.0) | record_by_chapter(record, result)


def record_of_inputs(record, result):
    made = {name for name, _ in record}
    return {n: g for n, g in record_by_chapter(record, result).items() if n not in made}


def record_without_result(record, result):
    return {n: g for n, g in record_by_chapter(record, result).items() if n != result}


def record_of_the_last(record, result):
    return record_by_chapter(record, record[-1][0])


def record_twice_in_one(record, result):
    found = {result: 1.0}
    for name, parents in reversed(record):
        for parent, slope in dict(parents).items() if name in found else []:
            found[parent] = found.get(parent, 0.0) + slope * found[name]
    return found


def record_changed(record, result):
    record.reverse()
    return record_by_chapter(record[::-1], result)


def record_without_zeros(record, result):
    return {n: g for n, g in record_by_chapter(record, result).items() if g}


# ---------------------------------------------------------------------------------------------


def weights_by_the_package(x, k):
    W = Tensor(np.zeros((x.shape[1], k)), requires_grad=True, dtype=np.float64)
    (x @ W).sum().backward()
    return W.grad


def swish(slope, value=lambda x: x * logistic(x)):
    return softplus(value, slope)


def swish_slope(x):
    s = logistic(x)
    return s + x * s * (1 - s)


@primitive
def swish_misplaced_brackets(x):
    s = logistic(x)
    return x * s, lambda g: s + g * x * s * (1 - s)


@primitive
def swish_brackets_right(x):
    s = logistic(x)
    return x * s, lambda g: g * s + x * s * (1 - s)


def swish_composed(x):
    return x / (1 + (-x).exp())


def costs(runs, kept):
    return lambda n, b, w: (runs(n, b, w), kept(n, b, w))


def runs(n, b, w):
    return 2 * n * w * w


def kept(n, b, w):
    return 4 * n * b * w


RIGHT = {
    "autograd_weights": [
        lambda x, k: x.T @ np.ones((len(x), k)),
        lambda x, k: np.repeat(x.sum(axis=0)[:, None], k, axis=1),
        lambda x, k: np.tile(x.sum(axis=0), (k, 1)).T,
        lambda x, k: np.broadcast_to(x.sum(0)[:, None], (x.shape[1], k)),
    ],
    "autograd_softplus": [
        softplus(stable, lambda x: np.exp(x - stable(x))),
        softplus(lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), logistic),
        softplus(lambda x: x + np.logaddexp(0, -x), lambda x: (1 + np.tanh(x / 2)) / 2),
        softplus(above(30), lambda x: 1 - 1 / (1 + np.exp(x))),
    ],
    "autograd_undo_broadcast": [
        undo_by_chapter,
        undo_at_once,
        undo_where_longer,
        undo_by_adding,
    ],
    "autograd_record": [record_by_chapter, record_by_recursion, record_by_index],
    "autograd_swish": [
        swish(swish_slope),
        swish(lambda x: logistic(x) * (1 + x * logistic(-x))),
        swish(lambda x: logistic(x) + x * np.exp(-x) / (1 + np.exp(-x)) ** 2),
        swish_composed,
    ],
    "autograd_costs": [
        costs(runs, kept),
        lambda layers, batch, width: [layers * width**2 * 2, layers * batch * width * 4],
        lambda n, b, w: (np.int64(runs(n, b, w)), np.float64(kept(n, b, w))),
    ],
}

WRONG = {
    "autograd_weights": {
        "turned round": lambda x, k: np.tile(x.sum(axis=0), (k, 1)),
        "the mean": lambda x, k: np.repeat(x.mean(axis=0)[:, None], k, axis=1),
        "ones": lambda x, k: np.ones((x.shape[1], k)),
        "x itself": lambda x, k: x.T,
        "one column": lambda x, k: x.sum(axis=0),
        "the sum of the rows": lambda x, k: np.repeat(x.sum(axis=1)[:, None], k, axis=1),
        "in a loop": lambda x, k: np.stack([x.sum(axis=0) for _ in range(k)], axis=1),
        "through the package": weights_by_the_package,
    },
    "autograd_softplus": {
        "the naive value": softplus(lambda x: np.log(1 + np.exp(x)), logistic),
        "the naive slope": softplus(stable, lambda x: np.exp(x) / (1 + np.exp(x))),
        "a threshold of 2.5": softplus(above(2.5), logistic),
        "a threshold of 10": softplus(above(10), logistic),
        "a slope with a threshold": softplus(stable, lambda x: np.where(x > 8, 1, logistic(x))),
        "clipped": softplus(lambda x: np.log1p(np.exp(np.clip(x, -50, 50))), logistic),
        "a linear piece": softplus(lambda x: np.maximum(x, np.log(2) + x / 2), logistic),
        "the slope is the value": softplus(stable, stable),
        "the slope of a relu": softplus(stable, lambda x: (x > 0) * 1.0),
        "the slope is 1 - logistic": softplus(stable, lambda x: logistic(-x)),
        "a base of 2": softplus(lambda x: np.logaddexp2(0, x), logistic),
        "forgets the gradient that comes in": without_g,
        "takes only the sign of it": only_signs_of_g,
        "changes x": in_place,
        "changes g": g_in_place,
        "sums": summed,
        "no primitive": in_place.__wrapped__,
        "no pullback": primitive(stable),
    },
    "autograd_undo_broadcast": {
        "axes whose length is not in shape": undo_lengths_not_in_shape,
        "only the first axis of length 1": undo_first_one_only,
        "only the outer axes": undo_outer_only,
        "only the inner axes": undo_inner_only,
        "means": undo_means,
        "at most two stretched axes": undo_two_stretched,
        "drops the stretched axes": undo_drops_axes,
        "at most one added axis": undo_one_added_axis,
        "added axes on the right": undo_on_the_right,
        "takes the first": undo_by_taking,
        "a reshape": lambda g, shape: np.resize(g, shape),
        "broadcasts": lambda g, shape: np.broadcast_to(g, np.broadcast_shapes(g.shape, shape)),
        "the package's": undo_broadcast,
        "through the package": undo_by_the_package,
    },
    "autograd_record": {
        "overwrites": record_with(lambda old, slope, g: slope * g),
        "adds the slopes": record_with(lambda old, slope, g: old + slope + g),
        "forgets the slope": record_with(lambda old, slope, g: old + g),
        "forgets the gradient": record_with(lambda old, slope, g: old + slope),
        "once an operation": record_twice_in_one,
        "forwards": lambda record, result: record_by_chapter(record[::-1], result),
        "unrelated names too": record_with_zeros,
        "inputs only": record_of_inputs,
        "without the result": record_without_result,
        "of the last operation": record_of_the_last,
        "skips what has a gradient of zero": record_with(
            lambda old, slope, g: old + slope * g, lambda name, found: found.get(name)
        ),
        "leaves out zeros": record_without_zeros,
        "in whole numbers": lambda record, result: {
            name: int(g) for name, g in record_by_chapter(record, result).items()
        },
        "changes the record": record_changed,
    },
    "autograd_swish": {
        "as it stands": swish(lambda x: x * logistic(x) * logistic(-x)),
        "only through the factor": swish(logistic),
        "the logistic's own slope": swish(lambda x: logistic(x) * logistic(-x)),
        "without the factor": swish(lambda x: logistic(x) + logistic(x) * logistic(-x)),
        "a product of both": swish(lambda x: logistic(x) * x * logistic(x) * logistic(-x)),
        "a wrong sign": swish(lambda x: logistic(x) - x * logistic(x) * logistic(-x)),
        "one half": swish(lambda x: np.full(x.shape, 0.5)),
        "a step": swish(lambda x: (x > 0) + (x == 0) * 0.5),
        "s squared": swish(lambda x: logistic(x) + x * logistic(x) ** 2),
        "brackets": swish_misplaced_brackets,
        "the other brackets": swish_brackets_right,
        "another value": swish(swish_slope, lambda x: x * np.tanh(x)),
        "a value without x": swish(swish_slope, logistic),
    },
    "autograd_costs": {
        "one run a weight": costs(lambda n, b, w: n * w * w, kept),
        "and one in the middle": costs(lambda n, b, w: n * w * w + 1, kept),
        "two and one in the middle": costs(lambda n, b, w: 2 * n * w * w + 1, kept),
        "one run a sequence": costs(lambda n, b, w: 2 * n * b * w * w, kept),
        "one layer": costs(lambda n, b, w: 2 * w * w, kept),
        "with biases": costs(lambda n, b, w: 2 * n * (w * w + w), kept),
        "two arrays a layer": costs(runs, lambda n, b, w: 8 * n * b * w),
        "numbers for bytes": costs(runs, lambda n, b, w: n * b * w),
        "half precision": costs(runs, lambda n, b, w: 2 * n * b * w),
        "with the weights": costs(runs, lambda n, b, w: 4 * n * b * w + 4 * n * w * w),
        "with the first h": costs(runs, lambda n, b, w: 4 * n * b * w + 4 * b * w),
        "exchanged": lambda n, b, w: (kept(n, b, w), runs(n, b, w)),
        "off by a hundred": costs(lambda n, b, w: runs(n, b, w) + 100 * (w > 500), kept),
        "rounded to thousands": costs(lambda n, b, w: runs(n, b, w) // 1000 * 1000 or 8, kept),
    },
}

HINTS = {
    "autograd_softplus": {
        "the naive value": "np.logaddexp never computes it",
        "the naive slope": "infinity over infinity",
        "the slope is the value": "logistic function",
        "forgets the gradient that comes in": "g times the slope",
        "no primitive": "@primitive",
    },
    "autograd_undo_broadcast": {
        "drops the stretched axes": "keepdims",
        "only the outer axes": "keepdims",
        "the package's": "In NumPy alone",
    },
    "autograd_record": {
        "overwrites": "do not overwrite",
        "forwards": "from its end",
        "unrelated names too": "Skip a name",
        "leaves out zeros": "even if it is 0",
    },
    "autograd_swish": {
        "as it stands": "as well as the one through the logistic",
        "without the factor": "carries the factor x",
        "the logistic's own slope": "two terms",
        "brackets": "mind the brackets",
        "the other brackets": "mind the brackets",
        "a wrong sign": "add the two terms",
    },
    "autograd_weights": {"through the package": "In NumPy alone"},
    "autograd_costs": {
        "and one in the middle": "not in the middle",
        "one run a weight": "above and below",
        "exchanged": "First the number of runs",
        "one run a sequence": "the whole batch at once",
        "numbers for bytes": "In bytes",
        "two arrays a layer": "No pullback asks",
    },
}
