"""Answers to the exercises of "Tensors and shapes"."""

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


def the_larger(a, b):
    broadcast_by_chapter(a, b)
    return tuple(map(max, *padded(a, b)))


SHAPES = {
    "x @ W": (2, 3, 5),
    "x @ W + b": (2, 3, 5),
    "x @ v": (2, 3),
    "x.sum(axis=1)": (2, 4),
    "x.transpose()": (2, 4, 3),
    "y @ y.transpose()": (2, 2, 3, 3),
}


def merge(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def split_by_loop(x, h):
    width = x.shape[-1] // h
    return np.stack([x[..., i * width : (i + 1) * width] for i in range(h)], axis=1)


def merge_by_loop(x):
    return np.concatenate([x[:, i] for i in range(x.shape[1])], axis=-1)


RIGHT = {
    "tensors_agreements": [
        lambda people, one: people @ one,
        lambda people, one: (people * one).sum(axis=1),
    ],
    "tensors_distances": [
        lambda x, y: ((x[:, None, :] - y[None]) ** 2).sum(2),
        lambda x, y: (x * x).sum(1)[:, None] - 2 * x @ y.T + (y * y).sum(1),
    ],
    "tensors_broadcast_shape": [broadcast_from_the_end, broadcast_by_sets],
    "tensors_six_shapes": [SHAPES, {name: list(shape) for name, shape in SHAPES.items()}],
    "tensors_centre_rows": [
        lambda x: x - x.mean(axis=x.ndim - 1)[..., None],
        lambda x: x - np.expand_dims(x.sum(-1) / x.shape[-1], -1),
    ],
    "tensors_error": [
        lambda x, y: np.square(x.squeeze(axis=1) - y).sum() / len(y),
        lambda x, y: float(np.mean((x - y[:, None]) ** 2)),
    ],
    "tensors_heads": [
        (split_by_loop, merge_by_loop),
        (
            lambda x, h: np.moveaxis(x.reshape(*x.shape[:2], h, -1), 2, 1),
            lambda x: np.einsum("bhtd->bthd", x).reshape(len(x), x.shape[2], -1),
        ),
    ],
}

WRONG = {
    "tensors_agreements": {
        "… each row of them is summed": lambda people, one: people * one,
        "… One sum for each row": lambda people, one: np.vdot(people, people * 0 + one),
        "cosines": lambda people, one: (
            people @ one / (1e-12 + np.linalg.norm(people, axis=1) * np.linalg.norm(one))
        ),
    },
    "tensors_distances": {
        "… leave the root out": lambda x, y: np.sqrt(((x[:, None] - y) ** 2).sum(axis=-1))
    },
    "tensors_broadcast_shape": {
        "… at their right ends": lambda a, b: broadcast_by_chapter(
            tuple(a) + (1,) * (len(b) - len(a)), tuple(b) + (1,) * (len(a) - len(b))
        ),
        "… a length of 1 becomes 0": the_larger,
        "… Without NumPy": np.broadcast_shapes,
    },
    "tensors_six_shapes": {
        "… The summed axis disappears": SHAPES | {"x.sum(axis=1)": (2, 1, 4)},
        "… the inner 4 is summed over": SHAPES | {"y @ y.transpose()": (2, 2, 4, 4)},
    },
    "tensors_centre_rows": {"… look at keepdims": lambda x: x - x.mean(axis=-1)},
    "tensors_error": {
        "rounded": (lambda x, y: round(float(((x[:, 0] - y) ** 2).mean()), 9)),
        "… every prediction meets every": lambda x, y: ((x - y) ** 2).mean(),
    },
    "tensors_heads": {
        "every h-th number": (
            (lambda x, h: x.reshape(*x.shape[:2], -1, h).transpose(0, 3, 1, 2), merge)
        ),
        "… Row t of each head": (lambda x, h: x.reshape(len(x), h, x.shape[1], -1), merge),
    },
}
