"""Checks for the chapter "Fine-tuning"."""

from hashlib import sha256
from typing import Any, cast

import numpy as np

from tinytorch.core.hooks import hooks
from tinytorch.core.layers import Linear
from tinytorch.core.optimizers import Adam
from tinytorch.core.recording import is_recording
from tinytorch.core.tensor import Tensor
from tinytorch.models.lora import LoRALinear
from tinytorch_book.exercises.cases import (
    Cases,
    NotYet,
    alone,
    cases,
    measured,
    one_of,
    predictions,
)
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import no_loop
from tinytorch_book.exercises.values import as_array, same, show
from tinytorch_book.experiments.fine_tuning import excess
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_batches
from tinytorch_book.stories import story_dialect

__all__ = ["lora_by_hand", "lora_merged", "lora_names", "lora_predict", "lora_stuck"]


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def lora_predict(answer: Any) -> Cases:
    """Check what LoRA takes in GPT-2 small: 12 blocks, d = 768."""
    few, all_six = 12 * 2 * 8 * (768 + 768), 12 * (4 * 8 * (768 + 768) + 2 * 8 * (768 + 3072))
    pair = "A weight (in, out) gets A (in, r) and B (r, out): r (in + out) numbers."
    yield from predictions(answer, {
        "numbers that learn, rank 8, q_proj and v_proj": (few, pair,
            (few // 12, "There are 12 blocks."),
            (few // 2, f"Two weights a block, each with both matrices. {pair}"),
            (12 * 2 * 768 * 768, f"That is how many stay frozen. {pair}")),
        "the same with rank 16": (2 * few, "The count is proportional to the rank.",
            (4 * few, "The rank is one side of each thin matrix, the other stays.")),
        "numbers that learn, rank 8, all six Linears": (all_six,
            "Four weights (768, 768) and two between 768 and 3,072.",
            (all_six // 12, "There are 12 blocks."),
            (3 * few, "The two Linears of the MLP are longer on one side: 3,072.")),
        "rank at which A and B of q_proj are as large as its weight": (
            384, "r (768 + 768) = 768 * 768.",
            (768, "At 768 they are twice as large: there are two of them.")),
        "bytes of AdamW's means, rank 8, q_proj and v_proj": (
            few * 2 * 4, "Two means for each number that learns, 4 bytes each.",
            (few * 4, "AdamW keeps two means: of the gradient and of its square."),
            (few * 2, "A number in float32 takes 4 bytes.")),
        "numbers in the model after the merge": (124439808,
            "The product is added to a weight that is there already.",
            (124439808 + few, "A and B are gone after the merge.")),
    })  # fmt: skip


# Forward and back by hand --------------------------------------------------------------------


def _by_hand(x: Any, W: Any, A: Any, B: Any, alpha: float, g: Any) -> Any:
    scale = alpha / A.shape[1]
    thin = x @ A
    return x @ W + scale * thin @ B, scale * x.T @ (g @ B.T), scale * thin.T @ g


def _scaled(factor: Any) -> Any:
    """The same with another scale, computed from alpha and the rank."""

    def wrong(x: Any, W: Any, A: Any, B: Any, alpha: float, g: Any) -> Any:
        r = A.shape[1]
        return _by_hand(x, W, A, B, factor(alpha, r) * r, g)

    return wrong


def _gradients_unscaled(*given: Any) -> Any:
    y, to_a, to_b = _by_hand(*given)
    scale = given[4] / given[2].shape[1]
    return y, to_a / scale, to_b / scale


_WRONG_BY_HAND = [
    (_scaled(lambda alpha, r: alpha), "The scale is alpha / r, and r is a side of A."),
    (_scaled(lambda alpha, r: r / alpha), "The scale is alpha / r, not r / alpha."),
    (_gradients_unscaled, "The scale stands in front of x A B, so it is in both gradients."),
    (_scaled(lambda alpha, r: 1.0), "The product counts alpha / r times."),
    (_scaled(lambda alpha, r: alpha / r**0.5), "The scale is alpha / r, without a root."),
    (lambda *given: [_by_hand(*given)[i] for i in (0, 2, 1)], "Return y, then A's, then B's."),
]


@exercise(points=2, reference=_by_hand, mistakes=_WRONG_BY_HAND)
def lora_by_hand(answer: Any) -> Cases:
    """Check a LoRA layer by hand: its output, and the gradients of A and of B."""
    forward = "y = x W + alpha / r (x A) B, with r the number of columns of A."
    to_b = "B meets the input x A: its gradient is that of any weight, (x A)^T g, scaled."
    to_a = "g goes back through B first: A's gradient is x^T (g B^T), scaled."
    zero = "With B = 0 nothing comes back to A: its gradient is 0, in A's shape."
    x, W, A, B, g = drawn((4, 5), (5, 3), (5, 2), (2, 3), (4, 3))
    one = np.ones((1, 2)), np.zeros((2, 2)), np.array([[1.0], [2.0]]), np.array([[3.0, 0.0]])
    toy, start = (*one, 1.0, np.array([[1.0, 0.0]])), (x, W, A, 0 * B, 16.0, g)
    large = drawn((9, 6), (6, 8), (6, 4), (4, 8), (9, 8), seed=1)
    more = (*large[:4], 2.0, large[4])
    names = "y", "gradient of A", "gradient of B"
    y, of_a, of_b = (alone(part=one_of(name, *names)) for name in names)
    yield from cases(answer, {
        "the output, rank 1": (forward, *toy, y),
        "the output, rank 2 and alpha 16": (forward, x, W, A, B, 16.0, g, y),
        "the gradient of B": (to_b, x, W, A, B, 16.0, g, of_b),
        "the gradient of A": (to_a, x, W, A, B, 16.0, g, of_a),
        "the gradient of A at the start, where B is 0": (zero, *start, of_a),
        "the gradient of B at the start": (to_b, *start, of_b),
        "the output, rank 4 and alpha 2": (forward, *more, y),
        "the gradient of A, rank 4 and alpha 2": (to_a, *more, of_a),
    })  # fmt: skip


# A LoRA that is stuck ------------------------------------------------------------------------


def _biased(more: float) -> Any:
    """A layer that adds so many biases more."""
    forward = LoRALinear.forward
    added = {"forward": lambda self, x: forward(self, x) + more * self.linear.bias}
    return type("Biased", (LoRALinear,), added)


def _misscaled(scale: Any) -> Any:
    """A layer with another scale."""
    return lambda linear, rank, alpha: LoRALinear(linear, rank, scale(alpha, rank) * rank)


_BIASES = [
    (_biased(-1), "The layer's bias is missing: self.linear(x) has it."),
    (_biased(1), "The layer's bias is added twice: self.linear(x) has it already."),
]
_SCALES = [
    (_misscaled(lambda alpha, rank: rank / alpha), "The scale is upside down: alpha / rank."),
    (_misscaled(lambda alpha, rank: alpha), "Divide alpha by the rank."),
    (_misscaled(lambda alpha, rank: 1.0), "The product counts alpha / rank times."),
]


@exercise(points=2, reference=LoRALinear)
def lora_stuck(answer: Any) -> Cases:
    """Check a repaired LoRA layer: it starts as the layer was, learns, and has the right scale."""
    scale = "The scale is alpha / rank: alpha 6 and rank 3 count the product twice."
    sizes, other, scaled = (5, 4, 3, 6.0), (6, 8, 2, 1.0), _of(_Wrapped.output, mistakes=_SCALES)
    yield from cases(answer, {
        "has A and B of the right shapes": (
            "The layer needs `A` (in, rank) and `B` (rank, out), two Parameters.",
            *sizes, _of(_Wrapped.shapes)),
        "computes at the start what the layer did": (
            "At the start x A B must be 0, so one of A and B is 0.",
            *sizes, _of(_Wrapped.at_start, mistakes=_BIASES)),
        "the first step moves A or B": (
            "A's gradient has B as a factor, and B's has A. If both are 0, both stay 0: let only "
            "B be 0.", *sizes, _of(_Wrapped.moves, expected=True)),
        "the scale is alpha / rank": (scale, *sizes, scaled),
        "the scale, another rank": (scale, *other, scaled),
        "hands the gradient on to x": (
            "The layer below learns from the gradient of x, and x acts through W and through A "
            "and B: compute with x itself, not with its .data.", *sizes, _of(_Wrapped.gradient)),
        "learns a product of rank 3": (
            "Equal columns of A get equal rows of B, and stay equal: a product of rank 1. Begin "
            "with random numbers of ordinary size.", *sizes, _of(_Wrapped.learns, expected=True)),
        "leaves the weight and the bias as they are": (
            "Only A and B learn: W and the bias keep `requires_grad = False`.",
            *sizes, _of(_Wrapped.frozen, expected=True)),
    })  # fmt: skip


def _of(look: Any, **options: Any) -> alone:
    """The options of a case that looks at the reader's layer."""
    return alone(run=lambda answer, *sizes: look(_Wrapped(answer, *sizes)), **options)


class _Wrapped:
    """The reader's layer around a Linear."""

    def __init__(self, answer: Any, rows: int, columns: int, rank: int, alpha: float) -> None:
        self.linear = cast(Any, Linear(rows, columns, rng=0))
        self.linear.bias.data = drawn(columns, seed=3)[0].astype(np.float32)  # a new one is zero
        self.layer, self.sizes = answer(self.linear, rank, alpha), (rows, columns, rank)

    def shapes(self) -> dict[str, Any]:
        for name in "AB":
            if not hasattr(self.layer, name):
                raise NotYet(f"{show(self.layer)}, without '{name}'")
            if name not in dict(self.layer.named_parameters()):
                raise NotYet(f"{name}, which parameters() leaves out: no optimiser updates it")
        return {name: tuple(getattr(self.layer, name).shape) for name in "AB"}

    def at_start(self) -> Any:
        return np.array(self.layer(drawn((7, self.sizes[0]))[0]).data)

    def filled(self) -> tuple[Tensor, Tensor, np.ndarray]:
        """An input of three axes, the output with random matrices, and a gradient for it."""
        rows, columns, rank = self.sizes
        shapes = (2, 7, rows), (rows, rank), (rank, columns), (2, 7, columns)
        array, self.layer.A.data, self.layer.B.data, g = drawn(*shapes, seed=1)
        x = Tensor(array, requires_grad=True, dtype=np.float64)
        return x, self.layer(x), g

    def output(self) -> Any:
        return np.array(self.filled()[1].data)

    def gradient(self) -> Any:
        x, y, g = self.filled()
        (y * g).sum().backward()
        if x.grad is None:
            raise NotYet("no gradient of x")
        return x.grad

    def train(self, steps: int) -> list[float]:
        """The losses of some steps towards a weight that differs by a product of rank 3."""
        rows, columns, _ = self.sizes
        x, u, v = drawn((20, rows), (rows, 3), (3, columns), seed=2)
        wanted = x @ (self.linear.weight.data + 0.5 * u @ v) + self.linear.bias.data
        optimizer, losses = Adam(self.layer.trainable_parameters(), lr=0.05), []
        for _ in range(steps):
            optimizer.zero_grad()
            error = self.layer(x) - wanted
            loss = (error * error).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def moves(self) -> bool:
        before = self.layer.A.data.copy(), self.layer.B.data.copy()
        self.train(1)
        return bool(
            (self.layer.A.data != before[0]).any() or (self.layer.B.data != before[1]).any()
        )

    def learns(self) -> bool:
        losses = self.train(400)
        return losses[-1] < 0.01 * losses[0]

    def frozen(self) -> bool:
        before, given = self.linear.state_dict(), dict(self.layer.named_parameters())
        for name, p in {"of W": self.linear.weight, **given}.items():
            if p.requires_grad and name not in ("A", "B"):
                raise NotYet(f"the parameter {name} requires a gradient")
        self.train(3)
        return same(self.linear.state_dict(), before, 0.0)


# Several at once -----------------------------------------------------------------------------


def _merged(W: Any, A: Any, B: Any, scale: Any) -> Any:
    return W + np.einsum("k,kir,kro->io", scale, A, B)


@exercise(points=1, reference=_merged, rules=[no_loop], mistakes=[
    (lambda W, A, B, scale: W + (A @ B).sum(axis=0), "Each product has a scale of its own."),
    (lambda W, A, B, scale: W + (scale[:, None, None] * (A @ B)).mean(axis=0),
        "They are added, not averaged."),
    (lambda W, A, B, scale: _merged(W, A, B, scale / A.shape[2]),
        "scale is alpha / r already: do not divide by r once more."),
    (lambda W, A, B, scale: np.einsum("k,kir,kro->io", scale, A, B), "Add them to W."),
    (lambda W, A, B, scale: W + scale[:, None, None] * (A @ B),
        "One matrix comes out: sum over the first axis."),
    (lambda W, A, B, scale: W + scale.sum() * A.sum(axis=0) @ B.sum(axis=0),
        "Multiply each A with its own B first, then add."),
])  # fmt: skip
def lora_merged(answer: Any) -> Cases:
    """Check a merge of several LoRAs into one weight."""
    hint = "W plus the sum over k of scale[k] * A[k] @ B[k]."
    ones = np.zeros((2, 2)), np.ones((1, 2, 1)), np.ones((1, 1, 2)), np.array([3.0])
    two = drawn((4, 5), (2, 4, 3), (2, 3, 5), 2)
    yield from cases(answer, {
        "one of rank 1": (hint, *ones),
        "two of rank 3": (hint, *two),
        "two of rank 4, one column": (hint, *drawn((5, 1), (2, 5, 4), (2, 4, 1), 2)),
        "a scale of 0 leaves its product out": (hint, *two[:3], np.array([2.0, 0.0])),
        "five of rank 3": (hint, *drawn((6, 7), (5, 6, 3), (5, 3, 7), 5, seed=1)),
    })  # fmt: skip


# Other names ---------------------------------------------------------------------------------

STEPS, NUMBERS, AIM = 60, 3000, 11.0


class _Steps:
    """The weights from which a model has learned so far: a step leads from each to the next."""

    def __init__(self, model: Any, batch_size: int) -> None:
        self.model, self.rows = model, STEPS * batch_size
        self.weights: set[bytes] = set()

    def learned(self, ids: Any) -> None:
        """Rows that pass through the model, before it does anything with them."""
        if is_recording():
            learning = self.model.trainable_parameters()
            self.weights.add(sha256(b"".join(p.data.tobytes() for p in learning)).digest())
            self.rows -= len(np.atleast_2d(as_array(ids)))
        if len(self.weights) > STEPS or self.rows < 0:
            free = "Readings under no_grad() are free."
            raise NotYet(
                f"more than {STEPS} steps, of one batch each",
                f"At most {STEPS} steps, a batch each. {free}",
            )


def _adapted(answer: Any) -> tuple[float, int]:
    """The excess on the names, and how many numbers learned, if the rest is as it was."""
    grammar, model = story_dialect("names"), load_story_gpt()
    before = model.state_dict()
    batches = story_batches(num_stories=1000, grammar=grammar)
    with hooks(model, before={"": _Steps(model, batches.batch_size).learned}):
        adapted = answer(model, batches)
    if adapted is not model:
        raise NotYet(f"{show(adapted)}, which is not the model that was passed")
    named = [(n.replace(".linear.", "."), p) for n, p in adapted.named_parameters()]
    learned = sum(p.size for n, p in named if p.requires_grad or n not in before)  # frozen later
    frozen = [(n, p.data) for n, p in named if n in before and not p.requires_grad]
    moved = [n for n, array in frozen if (array != before[n]).any()]
    if moved:
        raise NotYet(f"{moved[0]} has changed, but is frozen, so it was not counted")
    if learned > NUMBERS:
        raise NotYet(f"{learned:,} numbers that learn")
    return excess(adapted, grammar), learned


@exercise(points=4)
def lora_names(answer: Any) -> Cases:
    """`answer(model, batches)` adapts the story GPT to other names, with few numbers and steps."""
    hint = (
        f"At most {NUMBERS:,} numbers may learn; each that is new in the model counts. Which "
        "Linears write what is compared with the token table, rather than read it?"
    )
    claim = f"within {AIM:.0f} nats of the floor, {NUMBERS:,} numbers, {STEPS} steps"
    told = "{0:.1f} nats a story above the floor, {1:,} numbers"
    yield from measured(claim, answer, run=_adapted, aim=AIM, told=told, hint=hint)
