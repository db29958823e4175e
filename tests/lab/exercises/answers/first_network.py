"""Answers to the exercises of the chapter on a first network."""

from functools import cached_property
from types import SimpleNamespace

import numpy as np

from tinytorch import Linear, Sequential, Tensor
from tinytorch_book.exercises.first_network import _counts


def trained_in_place(weight, loss_of, lr, steps):
    for _ in range(steps):
        weight.zero_grad()
        loss_of(weight).backward()
        weight.data -= lr * weight.grad
    return weight.data.tolist()


def fold_by_stacking(W1, b1, W2, b2):
    both = np.vstack([W1, b1]) @ W2
    return both[:-1], both[-1] + b2


class Trained:
    """Two tables and a bias, trained on the counts by descent with momentum when first used."""

    def __init__(self, middle, steps=2000):
        self.middle, self.steps = middle, steps

    @cached_property
    def parts(self):
        rng, counts = np.random.default_rng(0), _counts() / _counts().sum()
        shapes = (38, self.middle), (self.middle, 38), (38,)
        parts = [Tensor(rng.normal(size=shape) / 4, requires_grad=True) for shape in shapes]
        kept = [0.0] * 3
        for step in range(self.steps):
            scores = np.eye(38) @ parts[0] @ parts[1] + parts[2]
            of_rows = np.log(np.exp(scores).sum(axis=1)) * counts.sum(axis=1)
            (of_rows.sum() - (scores * counts).sum()).backward()
            for i, part in enumerate(parts):
                kept[i] = 0.9 * kept[i] + part.grad
                part.data = part.data - (1 - step / self.steps) * kept[i]
                part.grad = None
        return parts

    def __call__(self, x):
        return x @ self.parts[0] @ self.parts[1] + self.parts[2]

    def parameters(self):
        return self.parts


class InNumbers(Trained):
    """The same; its scores are no tensor, but hold their array as the chapter's `Numbers` do."""

    def __call__(self, x):
        return SimpleNamespace(data=super().__call__(x).data)


class Peeking:
    """A model that has the counts beside its parameters."""

    def __call__(self, x):
        return x @ np.log(_counts() + 1e-9)

    def parameters(self):
        return [Tensor([0.0], requires_grad=True)]


class Switched:
    """A model that has the counts beside its one parameter, which turns them on or up."""

    def __init__(self, turned):
        self.turned, self.part = turned, Tensor([1.0], requires_grad=True)

    def __call__(self, x):
        return self.turned(float(self.part.data[0])) * (x @ np.log(_counts() + 1e-9))

    def parameters(self):
        return [self.part]


RIGHT = {
    "net_softmax": [lambda scores: 1 / np.exp(scores[None] - scores[:, None]).sum(axis=1)],
    "net_train": [trained_in_place],
    "net_fold": [fold_by_stacking],
    "net_pairs": [Trained(9), InNumbers(9)],
}

WRONG = {
    "net_softmax": {
        "… Divide by the sum of the powers": (" / np.exp(scores).sum()", ""),
        "… by the sum of the powers": ("np.exp(scores).sum()", "scores.sum()"),
        "… First the powers": ("np.exp(scores)", "scores"),
        "… not by the largest": (".sum()", ".max()"),
        "… not the scores": ("np.exp(scores).sum()", "np.exp(scores.sum())"),
        "of the base two": ("np.exp(scores)", "2**scores"),
    },
    "net_predict": {
        "… of a quarter": {"loss, four equal scores": 2.0},
        "… what is its surprise": {"loss, four equal scores": 0.25},
        "… its probability minus 1": {"gradient, right letter": 0.26},
        "… The loss falls when this score": {"gradient, right letter": 0.74},
        "… The loss rises when this score": {"gradient, wrong letter": -0.7},
        "… a bias as well": {"parameters": 1216},
    },
    "net_train": {
        "… backward() adds": ("weight.grad = None", "pass"),
        "… Against the gradient": ("weight.data - lr", "weight.data + lr"),
        "… The step is lr times it": ("lr * weight.grad", "weight.grad"),
        "… All the steps": ("range(steps)", "range(1)"),
        "… weight.data": ("return weight.data", "return None"),
        "… numbers of the weight": ("return weight.data", "return weight"),
    },
    "net_fold": {
        "… The first bias goes through": ("b1 @ W2", "b1"),
        "… goes through the second": ("b1 @ W2 + b2", "b2"),
        "… Return two things": ("W1 @ W2, b1 @ W2 + b2", "W1 @ W2"),
    },
    "net_pairs": {
        "… How narrow": Sequential(Linear(38, 16, rng=0), Linear(16, 38, rng=0)),
        "… has to be in": Peeking(),
        "… What it knows has": Switched(lambda number: number),
        "… what parameters() finds": Switched(lambda number: float(abs(number) > 0.5)),
        "… More steps": Sequential(Linear(38, 8, rng=0), Linear(8, 38, rng=0)),
    },
}
