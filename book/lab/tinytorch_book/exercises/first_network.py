"""Checks for the exercises of the chapter on a first network."""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch_book.exercises.cases import Cases, NotYet, case, cases, measured, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import as_array
from tinytorch_book.stories import StoryGrammar

__all__ = ["net_fold", "net_pairs", "net_predict", "net_softmax", "net_train"]

# A softmax -----------------------------------------------------------------------------------


_SHARES = [
    (lambda s: np.exp(s), "Divide by the sum of the powers."),
    (lambda s: s / s.sum(), "First the powers: np.exp(scores)."),
    (lambda s: np.exp(s) / np.exp(s).max(), "Divide by the sum, not by the largest."),
    (lambda s: np.exp(s) / s.sum(), "Divide by the sum of the powers."),
    (lambda s: np.exp(s) / np.exp(s.sum()), "Sum the powers, not the scores."),
]


@exercise(1, _SHARES, reference=lambda s: np.exp(s) / np.exp(s).sum(), rules=[in_numpy])
def net_softmax(answer: Any) -> Cases:
    """Check a softmax of one row of scores."""
    share = "Each power divided by the sum of all of them."
    yield from cases(answer, {
        "turns 2, 1 and 0 into probabilities": (share, np.array([2.0, 1.0, 0.0])),
        "gives equal scores equal probabilities": (share, np.zeros(4)),
        "gives a single score the probability 1": (share, np.array([3.0])),
        "takes scores below zero": (share, np.array([-5.0, -1.0, -3.0])),
        "takes 38 scores": (share, *drawn(38)),
    })  # fmt: skip


# Five numbers --------------------------------------------------------------------------------


@exercise(points=1)
def net_predict(answer: Any) -> Cases:
    """Check what was predicted about scores, probabilities and parameters."""
    moved = "What the right letter lacks pulls it up: its probability minus 1."
    yield from predictions(answer, {
        "probability, 100 added to all":
            (0.26, "Every power is multiplied by e to the 100; what then?"),
        "gradient, right letter": (-0.74, moved, (0.74, "The loss falls when this score rises."),
                                   (0.26, moved)),
        "gradient, wrong letter": (0.7, "The probability of a wrong letter pushes its score down.",
                                   (-0.7, "The loss rises when this score rises.")),
        "sum of the gradients": (0.0, "The probabilities sum to one, and so does what came."),
        "loss, four equal scores": (math.log(4), "The surprise of a probability of a quarter.",
                                    (0.25, "That is the probability; what is its surprise?")),
        "parameters": (1270, "38 x 16 and 16 x 38 weights; and each layer has a bias.",
                       (1216, "Each layer has a bias as well.")),
    }, atol=0.006)  # fmt: skip


# A loop that trains --------------------------------------------------------------------------


def _trained(weight: Any, loss_of: Any, lr: float, steps: int, uphill: int = 1) -> Any:
    for _ in range(steps):
        weight.grad = None
        loss_of(weight).backward()
        weight.data = weight.data - uphill * lr * weight.grad
    return weight.data


def _piled(weight: Any, loss_of: Any, lr: float, steps: int) -> Any:
    for _ in range(steps):
        loss_of(weight).backward()
        weight.data = weight.data - lr * weight.grad
    return weight.data


def _run(answer: Any, start: np.ndarray, aim: np.ndarray, lr: float, steps: int) -> Any:
    """Train a new tensor towards `aim`, where the loss is least."""
    weight = Tensor(start.copy(), requires_grad=True, dtype=np.float64)
    found = answer(weight, lambda w: ((w - aim) ** 2).sum(), lr, steps)
    if found is None or isinstance(found, Tensor):
        told = "None" if found is None else "a Tensor"
        raise NotYet(told, "Return the numbers of the weight: weight.data.")
    return found if found is ... else np.array(found, dtype=np.float64)


_ADDS = "backward() adds to weight.grad, and nobody has cleared it."


@exercise(
    points=2,
    reference=_trained,
    mistakes=[
        (_piled, _ADDS),
        (partial(_trained, uphill=-1), "Against the gradient: subtract."),
        (lambda w, loss_of, _, steps: _trained(w, loss_of, 1.0, steps), "The step is lr times it."),
        (lambda w, loss_of, lr, steps: _trained(w, loss_of, lr, 1), "All the steps, not one."),
    ],
)  # fmt: skip
def net_train(answer: Any) -> Cases:
    """Check a loop of plain gradient descent: `answer(weight, loss_of, lr, steps)`."""
    few, (many, away) = np.array([1.0]), drawn((3, 2), (3, 2))
    one = "One step down the gradient of this step alone."
    yield from cases(answer, {
        "takes one step": (one, few, 0 * few, 0.1, 1),
        "takes two": (_ADDS, few, 0 * few, 0.1, 2),
        "comes to rest at the least loss": (_ADDS, few, 0 * few, 0.1, 60),
        "trains six numbers": (_ADDS, many, away, 0.2, 5),
        "stays where the loss is least": (one, away, away, 0.3, 4),
        "takes no step": ("With no steps the weight stays as it is.", many, away, 0.1, 0),
    }, run=_run)  # fmt: skip


# Two layers in one ---------------------------------------------------------------------------


_THROUGH = "The first bias goes through the second layer as well."
_FOLDS = [
    (lambda W1, b1, W2, b2: (W1 @ W2, b1 + b2), _THROUGH),
    (lambda W1, b1, W2, b2: (W1 @ W2, b2), _THROUGH),
    (lambda W1, b1, W2, b2: W1 @ W2, "Return two things: the weight and the bias."),
]


@exercise(1, _FOLDS, reference=lambda W1, b1, W2, b2: (W1 @ W2, b1 @ W2 + b2), rules=[no_loop])
def net_fold(answer: Any) -> Cases:
    """Check the one linear layer that does what two do: its weight and its bias."""
    hint = "Write (x @ W1 + b1) @ W2 + b2, and multiply it out."
    small = np.array([[1.0, 2.0]]), np.array([3.0, 4.0]), np.eye(2), np.array([5.0, 6.0])
    yield from cases(answer, {
        "a second layer that multiplies by one": (hint, *small),
        "from three numbers to two, through two": (hint, *drawn((3, 2), 2, (2, 2), 2, seed=3)),
        "from two numbers to three, through four": (hint, *drawn((2, 4), 4, (4, 3), 3)),
        "from 38 to 38, through 16": (hint, *drawn((38, 16), 16, (16, 38), 38, seed=1)),
        "through a single number": (hint, *drawn((5, 1), 1, (1, 2), 2, seed=2)),
    })  # fmt: skip


# Half the numbers ----------------------------------------------------------------------------

MOST, AIM = 722, 0.02  # parameters, half of 38 x 38; nats above the counted table


@cache
def _counts() -> np.ndarray:
    """How often each letter follows each, in the chapter's five hundred stories."""
    stories = StoryGrammar().generate(500, seed=1)
    ids = np.unique(list(stories), return_inverse=True)[1]
    counts = np.zeros((ids.max() + 1, ids.max() + 1))
    np.add.at(counts, (ids[:-1], ids[1:]), 1)
    return counts


def _scores(model: Any) -> np.ndarray:
    letters = len(_counts())
    found = model(np.eye(letters))
    found = found if isinstance(found, np.ndarray) else getattr(found, "data", found)
    scores = np.asarray(as_array(found), dtype=np.float64)
    if scores.shape != (letters, letters) or not np.isfinite(scores).all():
        raise NotYet(f"scores of shape {scores.shape}, or not finite")
    return scores


def _size(model: Any) -> int:
    return sum(int(np.size(each.data)) for each in model.parameters())


def _above(model: Any) -> float:
    """How far the model's loss on all the pairs lies above that of the counted table."""
    scores = _scores(model)
    return _worse(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))


def _worse(log_chances: np.ndarray) -> float:
    """How many nats a letter these forecasts cost more than the counted table's."""
    counts = _counts()
    shares = counts / counts.sum(axis=1, keepdims=True)
    best = np.log(shares, where=counts > 0, out=np.zeros_like(shares))
    return float((counts * (best - log_chances)).sum() / counts.sum())


def _forgets(model: Any) -> bool:
    """Whether the model knows nothing with other parameters: with zeros, and with random ones.

    With zeros it says the same after every letter; with random ones it does not get near to what
    the frequency of each letter alone would give.
    """
    counts, rng, losses = _counts(), np.random.default_rng(0), []
    blind = _worse(np.log(counts.sum(axis=0) / counts.sum()))
    kept = [(each, each.data) for each in model.parameters()]
    try:
        for draw in range(9):
            for each, data in kept:
                each.data = (draw > 0) * rng.normal(size=np.shape(data))
            if draw == 0 and np.ptp(_scores(model), axis=0).max() >= 1e-6:
                return False
            losses.append(_above(model))
    finally:
        for each, data in kept:
            each.data = data
    return min(losses) > blind - 0.05


@exercise(points=4, show_expected=False)
def net_pairs(answer: Any) -> Cases:
    """Check a network of at most 722 numbers, within 0.02 nats of the counted table."""
    half = (
        f"38 x 38 = 1,444 numbers are in the table; use at most {MOST}. How narrow is the middle?"
    )
    inside = "What it knows has to be in what parameters() finds: that is what training changes."
    near = (
        "More steps, a rate that falls, and the pairs' counts instead of drawn pairs: then every "
        "step has the exact gradient."
    )
    yield from measured(f"at most {MOST} parameters", answer, run=_size, aim=MOST,
                        told="{:,} parameters", hint=half)  # fmt: skip
    yield case("all that it knows is in its parameters", answer, run=_forgets, expected=True,
               hint=inside)  # fmt: skip
    yield from measured(f"within {AIM} nats of the counted table", answer, run=_above, aim=AIM,
                        told="{:.3f} nats a letter above it", hint=near)  # fmt: skip
