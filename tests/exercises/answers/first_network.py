"""Answers to the exercises of the chapter on a first network."""

from functools import cached_property

import numpy as np

from tinytorch import Linear, Sequential, Tensor
from tinytorch_book.exercises.first_network import _counts


def trained_with_none(weight, loss_of, lr, steps):
    for _ in range(steps):
        loss_of(weight).backward()
        weight.data = weight.data - lr * weight.grad
        weight.grad = None
    return weight.data


def trained_in_place(weight, loss_of, lr, steps):
    for _ in range(steps):
        weight.zero_grad()
        loss_of(weight).backward()
        weight.data -= lr * weight.grad
    return weight.data.tolist()


def train_piled(weight, loss_of, lr, steps):
    for _ in range(steps):
        loss_of(weight).backward()
        weight.data = weight.data - lr * weight.grad
    return weight.data


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
    "net_softmax": [
        lambda scores: 1 / np.exp(scores[None] - scores[:, None]).sum(axis=1),
        lambda scores: np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum(),
    ],
    "net_predict": [
        {
            "chance, 100 added to all": 0.26,
            "gradient, right letter": 0.26 - 1,
            "gradient, wrong letter": 0.7,
            "sum of the gradients": 0.26 - 1 + 0.7 + 0.04,
            "loss, four equal scores": np.log(4),
            "parameters": 38 * 16 + 16 + 16 * 38 + 38,
        },
        {
            "chance, 100 added to all": 0.26,
            "gradient, right letter": -0.74,
            "gradient, wrong letter": 0.7,
            "sum of the gradients": 0,
            "loss, four equal scores": 1.386,
            "parameters": 1270,
        },
    ],
    "net_train": [trained_with_none, trained_in_place],
    "net_fold": [fold_by_stacking, lambda W1, b1, W2, b2: [W1.dot(W2), W2.T @ b1 + b2]],
    "net_pairs": [Trained(9), Trained(8)],
}

WRONG = {
    "net_softmax": {
        "… First the powers": lambda scores: scores / scores.sum(),
        "… not by the largest": lambda scores: np.exp(scores) / np.exp(scores).max(),
        "of the base two": lambda scores: 2**scores / (2**scores).sum(),
    },
    "net_predict": {
        "… of a quarter": RIGHT["net_predict"][1] | {"loss, four equal scores": 2.0},
        "… its chance minus 1": RIGHT["net_predict"][1] | {"gradient, right letter": 0.26},
        "… a bias as well": RIGHT["net_predict"][1] | {"parameters": 1216},
    },
    "net_train": {
        "… backward() adds": train_piled,
        "… weight.data": lambda *given: trained_in_place(*given) and None,
        "… numbers of the weight": lambda *given: trained_in_place(*given) and given[0],
    },
    "net_fold": {"… goes through the second": lambda W1, b1, W2, b2: (W1 @ W2, b2)},
    "net_pairs": {
        "… How narrow": Sequential(Linear(38, 16, rng=0), Linear(16, 38, rng=0)),
        "… has to be in": Peeking(),
        "… What it knows has": Switched(lambda number: number),
        "… what parameters() finds": Switched(lambda number: float(abs(number) > 0.5)),
        "… More steps": Sequential(Linear(38, 8, rng=0), Linear(8, 38, rng=0)),
    },
}
