"""Answers to the exercises of "Tensors and shapes"."""

import functools
from itertools import zip_longest

import numpy as np


def padded(a, b):
    axes = max(len(a), len(b))
    return (1,) * (axes - len(a)) + tuple(a), (1,) * (axes - len(b)) + tuple(b)


def broadcast_by_chapter(a, b):
    a, b = padded(a, b)
    if any(m != n and 1 not in (m, n) for m, n in zip(a, b, strict=True)):
        raise ValueError(f"{a} and {b} do not broadcast")
    return tuple(n if m == 1 else m for m, n in zip(a, b, strict=True))


def broadcast_from_the_end(a, b):
    shape = []
    for m, n in zip_longest(a[::-1], b[::-1], fillvalue=1):
        if m == 1:
            shape.append(n)
        elif n in (1, m):
            shape.append(m)
        else:
            raise ValueError("no")
    return tuple(reversed(shape))


def broadcast_by_sets(a, b):
    a, b = padded(a, b)
    found = []
    for pair in zip(a, b, strict=True):
        lengths = set(pair) - {1}
        if len(lengths) > 1:
            raise ValueError(pair)
        found += lengths or [1]
    return tuple(found)


def broadcast_with(length):
    """The rule with another way to choose the length of a pair."""

    def answer(a, b):
        a, b = padded(a, b)
        return tuple(length(m, n) for m, n in zip(a, b, strict=True))

    return answer


def checked_larger(m, n):
    if m != n and 1 not in (m, n):
        raise ValueError
    return max(m, n)


def a_zero_is_false(m, n):
    if m and n and m != n and 1 not in (m, n):
        raise ValueError
    return n if m == 1 else m


def two_ones_give_nothing(m, n):
    checked_larger(m, n)
    return max({m, n} - {1}, default=0)


def multiples_fit(m, n):
    if max(m, n) % min(m, n):
        raise ValueError
    return n if m == 1 else m


def only_the_first_gives_way(m, n):
    if m not in (1, n):
        raise ValueError
    return n


def broadcast_from_the_left(a, b):
    return broadcast_by_chapter(
        tuple(a) + (1,) * (len(b) - len(a)), tuple(b) + (1,) * (len(a) - len(b))
    )


def broadcast_two_axes(a, b):
    return broadcast_by_chapter(a, b)[-3:]


def broadcast_refusing_with_a_type_error(a, b):
    try:
        return broadcast_by_chapter(a, b)
    except ValueError:
        raise TypeError from None


def broadcast_of_equal_axes(a, b):
    if len(a) == len(b):
        return broadcast_by_chapter(a, b)
    return a if len(a) > len(b) else b


SHAPES = {
    "x @ W": (2, 3, 5),
    "x @ W + b": (2, 3, 5),
    "x @ v": (2, 3),
    "x.sum(axis=1)": (2, 4),
    "x.transpose()": (2, 4, 3),
    "y @ y.transpose()": (2, 2, 3, 3),
}


def centred(x):
    return x - x.mean(axis=-1, keepdims=True)


def in_place(x):
    x -= x.mean(-1, keepdims=True)
    return x


def by_loop(x):
    rows = x.reshape(-1, x.shape[-1])
    return np.array([row - row.mean() for row in rows]).reshape(x.shape)


def into_a_like_array(x):
    result = np.empty_like(x)
    result[...] = x - x.mean(axis=-1, keepdims=True)
    return result


def split(x, h):
    return x.reshape(*x.shape[:2], h, x.shape[-1] // h).swapaxes(1, 2)


def merge(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def split_by_loop(x, h):
    width = x.shape[-1] // h
    return np.stack([x[..., i * width : (i + 1) * width] for i in range(h)], axis=1)


def merge_by_loop(x):
    return np.concatenate([x[:, i] for i in range(x.shape[1])], axis=-1)


RIGHT = {
    "tensors_distances": [
        lambda x, y: ((x[:, None] - y) ** 2).sum(axis=-1),
        lambda x, y: ((x[:, None, :] - y[None]) ** 2).sum(2),
        lambda x, y: (x * x).sum(1)[:, None] - 2 * x @ y.T + (y * y).sum(1),
        lambda x, y: np.square(np.subtract(np.expand_dims(x, 1), y)).sum(axis=-1),
    ],
    "tensors_broadcast_shape": [
        broadcast_by_chapter,
        broadcast_from_the_end,
        broadcast_by_sets,
        lambda a, b: list(broadcast_by_chapter(a, b)),
    ],
    "tensors_six_shapes": [
        SHAPES,
        {name: list(shape) for name, shape in SHAPES.items()},
        {name: np.array(shape) for name, shape in SHAPES.items()},
    ],
    "tensors_centre_rows": [
        lambda x: x - x.mean(axis=-1, keepdims=True),
        lambda x: x - x.mean(axis=x.ndim - 1)[..., None],
        lambda x: x - np.expand_dims(x.sum(-1) / x.shape[-1], -1),
        lambda x: x @ (np.eye(x.shape[-1]) - 1 / x.shape[-1]),
        lambda x: np.subtract(x, np.average(x, axis=-1, keepdims=True)),
    ],
    "tensors_error": [
        lambda x, y: ((x[:, 0] - y) ** 2).mean(),
        lambda x, y: np.square(x.squeeze(axis=1) - y).sum() / len(y),
        lambda x, y: float(np.mean((x - y[:, None]) ** 2)),
        lambda x, y: (d := x.ravel() - y) @ d / d.size,
        lambda x, y: sum((a - b) ** 2 for (a,), b in zip(x, y, strict=True)) / len(y),
    ],
    "tensors_heads": [
        (split, merge),
        (split_by_loop, merge_by_loop),
        (
            lambda x, h: np.moveaxis(x.reshape(*x.shape[:2], h, -1), 2, 1),
            lambda x: np.einsum("bhtd->bthd", x).reshape(len(x), x.shape[2], -1),
        ),
        (
            lambda x, h: np.array(np.split(x, h, axis=2)).transpose(1, 0, 2, 3),
            lambda x: np.concatenate(list(x.transpose(1, 0, 2, 3)), axis=2),
        ),
    ],
}

WRONG = {
    "tensors_distances": {
        "the root": lambda x, y: np.sqrt(((x[:, None] - y) ** 2).sum(axis=-1)),
        "turned round": lambda x, y: ((y[:, None] - x) ** 2).sum(axis=-1),
        "the mean": lambda x, y: ((x[:, None] - y) ** 2).mean(axis=-1),
        "row by row": lambda x, y: ((x - y) ** 2).sum(axis=-1),
        "absolute": lambda x, y: np.abs(x[:, None] - y).sum(axis=-1),
        "products": lambda x, y: x @ y.T,
        "in a loop": lambda x, y: np.array([((row - y) ** 2).sum(axis=1) for row in x]),
        "not summed": lambda x, y: (x[:, None] - y) ** 2,
    },
    "tensors_broadcast_shape": {
        "aligned from the left": broadcast_from_the_left,
        "never refuses, takes the larger": broadcast_with(max),
        "never refuses": broadcast_with(lambda m, n: n if m == 1 else m),
        "the larger length, so a one is no zero": broadcast_with(checked_larger),
        "takes a zero for no length": broadcast_with(a_zero_is_false),
        "multiples fit": broadcast_with(multiples_fit),
        "two ones give a zero": broadcast_with(two_ones_give_nothing),
        "only ones of the first shape": broadcast_with(only_the_first_gives_way),
        "at most three axes": broadcast_two_axes,
        "raises another error": broadcast_refusing_with_a_type_error,
        "the longer shape as it is": broadcast_of_equal_axes,
        "pads the second only": lambda a, b: broadcast_by_chapter(a, b[-len(a) :]),
        "NumPy's own": np.broadcast_shapes,
        "NumPy's own under another name": lambda a, b: np.broadcast_shapes(a, b),
        "NumPy's own result": lambda a, b: np.broadcast(np.empty(a), np.empty(b)).shape,
    },
    "tensors_six_shapes": {
        "a product keeps the inner axis": SHAPES | {"x @ W": (2, 3, 4, 5)},
        "a bias adds an axis": SHAPES | {"x @ W + b": (2, 3, 5, 5)},
        "a product with a vector keeps an axis": SHAPES | {"x @ v": (2, 3, 1)},
        "a product with a vector sums the rows": SHAPES | {"x @ v": (2, 4)},
        "a sum keeps its axis": SHAPES | {"x.sum(axis=1)": (2, 1, 4)},
        "a sum over the wrong axis": SHAPES | {"x.sum(axis=1)": (2, 3)},
        "a transpose turns all axes": SHAPES | {"x.transpose()": (4, 3, 2)},
        "a product of all axes": SHAPES | {"y @ y.transpose()": (2, 2, 3, 4)},
        "a product keeps all four axes": SHAPES | {"y @ y.transpose()": (2, 2, 4, 4)},
        "one is missing": {name: SHAPES[name] for name in list(SHAPES)[:-1]},
        "sizes": {name: int(np.prod(shape)) for name, shape in SHAPES.items()},
    },
    "tensors_centre_rows": {
        "the mean of everything": lambda x: x - x.mean(),
        "the mean of columns": lambda x: x - x.mean(axis=0),
        "the second axis": lambda x: x - x.mean(axis=1, keepdims=True),
        "the second axis or the only one": lambda x: (
            x - x.mean(axis=min(1, x.ndim - 1))[:, None] if x.ndim > 1 else x - x.mean()
        ),
        "no keepdims": lambda x: x - x.mean(axis=-1),
        "the sum": lambda x: x - x.sum(axis=-1, keepdims=True),
        "the median": lambda x: x - np.median(x, axis=-1, keepdims=True),
        "the middle of the range": lambda x: (
            x - (x.max(axis=-1, keepdims=True) + x.min(axis=-1, keepdims=True)) / 2
        ),
        "divided by the deviation": lambda x: (
            (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-8)
        ),
        "in place": in_place,
        "in a loop": by_loop,
        "with reduce": lambda x: functools.reduce(lambda so_far, _: so_far, x, centred(x)),
        "only short rows": lambda x: centred(x) if x.shape[-1] < 50 else x - 0.0,
        "whole numbers stay whole": into_a_like_array,
        "rounded": lambda x: np.round(x - x.mean(axis=-1, keepdims=True), 6),
    },
    "tensors_error": {
        "every prediction meets every target": lambda x, y: ((x - y) ** 2).mean(),
        "their rows added up": lambda x, y: ((x - y) ** 2).sum(axis=1).mean(),
        "the sum": lambda x, y: ((x[:, 0] - y) ** 2).sum(),
        "the root": lambda x, y: np.sqrt(((x[:, 0] - y) ** 2).mean()),
        "absolute differences": lambda x, y: np.abs(x[:, 0] - y).mean(),
        "the square of the mean": lambda x, y: (x[:, 0] - y).mean() ** 2,
        "half of it": lambda x, y: ((x[:, 0] - y) ** 2).mean() / 2,
        "one less": lambda x, y: ((x[:, 0] - y) ** 2).sum() / max(1, len(y) - 1),
        "sorted": lambda x, y: ((np.sort(x[:, 0]) - np.sort(y)) ** 2).mean(),
        "one number each": lambda x, y: (x[:, 0] - y) ** 2,
        "the first target": lambda x, y: ((x[:, 0] - y[0]) ** 2).mean(),
    },
    "tensors_heads": {
        "a reshape alone splits": (lambda x, h: x.reshape(len(x), h, x.shape[1], -1), merge),
        "every h-th number": (
            lambda x, h: x.reshape(*x.shape[:2], -1, h).transpose(0, 3, 1, 2),
            merge,
        ),
        "no axis is moved": (lambda x, h: x.reshape(*x.shape[:2], h, -1), merge),
        "two heads whatever h": (lambda x, h: split(x, 2), merge),
        "always of width two": (lambda x, h: split(x, x.shape[-1] // 2), merge),
        "batch and heads exchanged": (lambda x, h: split(x, h).swapaxes(0, 1), merge),
        "a reshape alone merges": (split, lambda x: x.reshape(len(x), x.shape[2], -1)),
        "heads become rows": (split, lambda x: x.reshape(len(x), -1, x.shape[-1])),
        "numbers of heads interleaved": (
            split,
            lambda x: x.transpose(0, 2, 3, 1).reshape(len(x), x.shape[2], -1),
        ),
        "the merge is the split": (split, lambda x: split(x, x.shape[1])),
        "only the first sequence": (split, lambda x: merge(x[:1])),
    },
}

HINTS = {
    "tensors_broadcast_shape": {
        "aligned from the left": "at their right ends",
        "never refuses": "raise a ValueError",
        "the larger length, so a one is no zero": "a length of 1 becomes 0",
        "NumPy's own": "Without NumPy",
    },
    "tensors_six_shapes": {
        "a sum keeps its axis": "The summed axis disappears",
        "a product keeps all four axes": "the inner 4 is summed over",
    },
    "tensors_distances": {
        "the root": "leave the root out",
        "absolute": "Square each difference",
        "turned round": "Rows of x go down",
    },
    "tensors_centre_rows": {
        "no keepdims": "look at keepdims",
        "the second axis": "axis=-1",
        "in place": "Work on a copy",
        "in a loop": "A comprehension is a loop too",
    },
    "tensors_error": {"every prediction meets every target": "every prediction meets every"},
    "tensors_heads": {
        "a reshape alone splits": "Row t of each head",
        "every h-th number": "i * d/h",
        "a reshape alone merges": "opposite order",
    },
}
