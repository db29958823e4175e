"""Checks for the chapter "Fine-tuning"."""

from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from tinytorch.core.grad_mode import is_recording, no_grad
from tinytorch.core.hooks import hooks
from tinytorch.models.lora import add_lora
from tinytorch.models.new_tokens import add_tokens
from tinytorch.models.transformer import GPT
from tinytorch_book.exercises.cases import (
    Cases,
    NotYet,
    alone,
    case,
    cases,
    measured,
    one_of,
    predictions,
)
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.gpt import lively
from tinytorch_book.exercises.rules import no_loop
from tinytorch_book.exercises.values import as_array, same, show
from tinytorch_book.experiments.fine_tuning import excess
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_batches
from tinytorch_book.stories import story_dialect

__all__ = ["lora_by_hand", "lora_merged", "lora_names", "lora_predict", "lora_tokens"]


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


# New tokens beside LoRA ----------------------------------------------------------------------


def _adapted_to(sizes: Any, n: int, seed: int = 0, rows: bool = True) -> GPT:
    """A model with LoRA and new tokens, whose rows have learned, or are still the mean."""
    model = add_tokens(lively(GPT(*sizes)), n)
    add_lora(model, rank=2, rng=0)
    for i, p in enumerate(model.trainable_parameters()):
        p.data = drawn(p.shape, seed=seed + i)[0]
    if rows:
        table = model.token_embedding.weight
        table.data = np.vstack([table.data[:-n], *drawn((n, sizes[1]), seed=seed + 90)])
    return model


def _logits(model: Any, sizes: Any, n: int) -> Any:
    """What a model says after known and, if there are any, new tokens."""
    ids = [1, 0, *range(sizes[0], sizes[0] + n)][-sizes[4] :]
    with no_grad():
        return np.asarray(model(np.array([ids])).data)


def _saved(save: Any, sizes: Any, n: int, seed: int = 0) -> dict[str, Any]:
    saved = save(_adapted_to(sizes, n, seed), n)
    if not isinstance(saved, dict) or not all(isinstance(a, np.ndarray) for a in saved.values()):
        raise NotYet(f"{show(saved)}, which is not a dictionary of arrays")
    return saved


def _again(save: Any, sizes: Any, n: int, load: Any, known: bool = False, after: int = 0) -> Any:
    """The logits of a model that was saved, and others `after` it, and loaded into a plain one."""
    saved, *_ = [_saved(save, sizes, n, seed) for seed in range(after + 1)]
    before = {name: array.copy() for name, array in saved.items()}
    model = load(lively(GPT(*sizes)), saved, n)
    if not same(saved, before, 0.0):
        raise NotYet("`saved` is no longer what it was", "Work on a copy: it is to be used again.")
    return _logits(model, sizes, 0)[..., : sizes[0]] if known else _logits(model, sizes, n)


def _spare(save: Any, sizes: Any, n: int) -> bool:
    """Whether no more is saved than A, B and the new rows, and a few numbers as alpha."""
    needed = sum(p.size for p in _adapted_to(sizes, n).trainable_parameters()) + n * sizes[1]
    if (found := sum(a.size for a in _saved(save, sizes, n).values())) > needed + 9:
        raise NotYet(f"{found} numbers, where {needed} do")
    return True


@exercise(points=2)
def lora_tokens(save: Any, load: Any) -> Cases:
    """Check that new tokens tuned with LoRA are the same after saving and loading."""
    mean = "The new rows came back as the mean of the others: save what they have learned."
    gone = "A and B have not come back."
    few = "The plain model has the rows of the known tokens: save the last n alone."
    rows = "First grow the table by n tokens and add LoRA, then put in what was saved."
    own = "All that my_load needs stands in the dictionary that it gets."
    for sizes, n in (((7, 8, 2, 2, 6), 3), ((9, 4, 1, 1, 5), 1)):
        tuned, told = _adapted_to(sizes, n), f"{n} new beside {sizes[0]}"
        as_mean, plain = _logits(_adapted_to(sizes, n, rows=False), sizes, n), lively(GPT(*sizes))
        yield case(
            f"{told}: what the model says after known tokens", save, sizes, n,
            run=partial(_again, load=load, known=True), hint=rows,
            expected=_logits(tuned, sizes, 0)[..., : sizes[0]],
            mistakes=[(_logits(plain, sizes, 0), gone)])  # fmt: skip
        yield case(
            f"{told}: what it says after new ones", save, sizes, n,
            run=partial(_again, load=load), hint=rows, expected=_logits(tuned, sizes, n),
            mistakes=[(as_mean, mean)])  # fmt: skip
        yield case(f"{told}: how much is saved", save, sizes, n, run=_spare, hint=few,
                   expected=True)  # fmt: skip
    first = partial(_again, load=load, after=1)
    yield case("the first of two that were saved", save, sizes, n, run=first, hint=own,
               expected=_logits(tuned, sizes, n))  # fmt: skip


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
