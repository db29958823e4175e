"""Checks for the chapter "What it looks at"."""

from typing import Any

import numpy as np

from tinytorch.inside.heads import head_scores
from tinytorch_book.exercises.cases import Cases, as_new, case, cases, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise

__all__ = ["inside_ablation", "inside_head", "inside_mean"]


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def inside_ablation(answer: Any) -> Cases:
    """Check what changes when head 0.3 of the story GPT always adds its mean."""
    yield from predictions(answer, {
        "the stream changes at stage 0": (
            False, "Stage 0 is what enters the first block; the head reads it."),
        "the stream changes at stage 1": (
            True, "Stage 1 is stage 0 and all that the first block adds, this head included."),
        "attention of head 0.0 changes": (
            False, "The heads of a block stand beside each other: all read the same stage."),
        "attention of head 1.0 changes": (
            True, "Its queries and keys are made from stage 1."),
        "the forecast after the first token changes": (
            True, "There the head adds the value of the first token; its mean is something else."),
        "the loss rises most before": (
            "animals", "What does this head look at, and when? It is one of animals, foods, names, "
            "places, pronouns or things.",
            ("foods", "It costs much there too, but more before another kind."),
            ("names", "That is the hero head, 1.0."),
            ("things", "Those are fetched by 1.2 and 1.3.")),
    })  # fmt: skip


# The head ------------------------------------------------------------------------------------


def _head(weights: Any, asked: Any, sought: Any) -> Any:
    return _largest(head_scores(weights, _targets(asked, sought)))


def _targets(asked: Any, sought: Any) -> Any:
    return asked[:, :, None] & sought[:, None, :] & np.tri(asked.shape[-1], dtype=bool)


def _largest(scores: Any) -> tuple[int, int]:
    block, head = np.unravel_index(scores.argmax(), scores.shape)
    return int(block), int(head)


@exercise(points=2, reference=_head, mistakes=[
    (lambda weights, *given: _head(weights, *given)[::-1], "The block comes first, then the head."),
    (lambda weights, asked, sought: _largest(weights.sum(axis=(1, 3, 4))),
        "Count only the attention from what is asked to what is sought."),
    (lambda weights, asked, sought: _largest(
        (weights * (asked[:, :, None] & sought[:, None])[:, None]).max(axis=(1, 3, 4))),
        "Add the attention to all that is sought; its largest weight says less."),
    (lambda weights, asked, sought: _head(weights, np.ones_like(asked), sought),
        "Ask only at the queries in `asked`."),
    (lambda weights, asked, sought: _head(weights, sought, asked),
        "`asked` belongs to the queries, `sought` to the keys."),
])  # fmt: skip
def inside_head(answer: Any) -> Cases:
    """Check a search for the head that looks from some tokens to others."""
    hint = "The share of attention from the queries in `asked` to the keys in `sought`."
    toy = np.zeros((2, 1, 2, 3, 3))
    toy[:, :, :, np.arange(3), np.arange(3)] = 1  # every head looks at itself
    toy[1, 0, 0, 2] = [0.9, 0.1, 0]
    toy[0, 0, 0, 1] = [1.0, 0, 0]
    last, start = np.array([[False, False, True]]), np.array([[True, False, False]])
    shared = np.tile(np.eye(4), (2, 1, 3, 1, 1))
    shared[1, 0, 0, 1:] = np.array([[7, 1, 0, 0], [0, 4, 4, 0], [4, 0, 3, 1]]) / 8  # the head
    shared[1, 0, 1, 1:] = np.array([[3, 1, 0, 0], [4, 0, 0, 0], [2, 0, 1, 1]]) / 4  # in all rows
    shared[1, 0, 2, 1] = [1, 0, 0, 0]  # the largest weight
    shared[0, 0, 2, 2] = [0, 1, 0, 0]  # from what is sought to what is asked
    odd = np.array([[False, True, False, True]])
    itself = np.zeros((1, 1, 2, 3, 3))
    itself[0, 0, :, 2] = [[0.7, 0.1, 0.2], [0.1, 0, 0.9]]
    yield case("two queries, two keys sought", answer, shared, odd, ~odd, hint=hint)
    yield case("three tokens, one query", answer, toy, last, start, hint=hint)
    yield case("another query", answer, toy, last[:, [0, 2, 1]], start, hint=hint)
    own = "A query may look at its own token as well: np.tri has ones on its diagonal."
    yield case("the query's own token sought", answer, itself, last, last | start, hint=own)
    uneven, of_two = np.zeros((1, 2, 2, 4, 4)), np.array([[0, 0, 0, 1], [0, 1, 1, 1]], dtype=bool)
    uneven[0, 0, 0, 3, 0] = 1  # one head all of it, at the only query of the first text
    uneven[0, 1, 1, 1:, 0] = 0.6  # the other most of it, at three of the second
    first = np.broadcast_to(np.arange(4) == 0, of_two.shape)
    every = "Each query counts the same, in whichever text: add up all texts before you divide."
    yield case("a text with one query, a text with three", answer, uneven, of_two, first,
               hint=every, mistakes=[((0, 0), every)])  # fmt: skip
    rng = generator()
    for blocks, batch, heads, seq in ((2, 3, 4, 9), (3, 1, 2, 30), (1, 5, 12, 6), (12, 2, 3, 5)):
        scores = 3 * rng.normal(size=(blocks, batch, heads, seq, seq))
        weights = np.exp(scores) * np.tri(seq)
        weights /= weights.sum(axis=-1, keepdims=True)
        asked, sought = rng.random((2, batch, seq)) < 0.5
        asked[:, -1] = sought[:, 0] = True
        claim = f"heads: {heads}, blocks: {blocks}, texts: {batch}"
        yield case(claim, answer, weights, asked, sought, hint=hint)


# A fair removal ------------------------------------------------------------------------------


def _removed(x: Any, head: int, is_read: Any) -> Any:
    mine = slice(16 * head, 16 * head + 16)
    result = x.copy()
    result[..., mine] = x[is_read][:, mine].mean(axis=0)
    return result


def _removed_with(mean: Any) -> Any:
    """The same with another number in the head's place."""

    def wrong(x: Any, head: int, is_read: Any) -> Any:
        result, mine = x.copy(), slice(16 * head, 16 * head + 16)
        result[..., mine] = mean(x[..., mine], is_read)
        return result

    return wrong


_EACH = "Each of the 16 numbers has a mean of its own: axis=0."
_PADDING = "Take the mean over the tokens that are read; the others only fill the rows."
_ROWS = "One mean for all rows together: every token that is read counts the same."
_REMOVED = "x[is_read] has a row for each token that is read; take the mean of the head's columns."


@exercise(points=2, reference=_removed, mistakes=[
    (_removed_with(lambda x, is_read: x[is_read].mean()), _EACH),
    (_removed_with(lambda x, is_read: x.mean(axis=(0, 1))), _PADDING),
    (_removed_with(lambda x, is_read: 0.0), "That is zeros; put the mean of its output there."),
    (_removed_with(lambda x, is_read: (x * is_read[..., None]).mean(axis=(0, 1))),
        "Divide by the number of tokens that are read."),
    (_removed_with(lambda x, is_read: np.stack(
        [row[here].mean(axis=0) for row, here in zip(x, is_read, strict=True)])[:, None]), _ROWS),
    (lambda x, head, is_read: np.broadcast_to(x[is_read].mean(axis=0), x.shape),
        "Only the 16 numbers of this head are replaced."),
])  # fmt: skip
def inside_mean(answer: Any) -> Cases:
    """Check a repaired removal of a head, with the mean of each of its numbers in their place."""
    one, two, many = drawn((1, 3, 64), (2, 5, 64), (7, 9, 64))
    ends = np.arange(9) < np.array([9, 1, 4, 7, 2, 8, 3])[:, None]
    yield from cases(answer, {
        "one text, all of it read": (_REMOVED, one, 1, np.ones((1, 3), dtype=bool)),
        "the first head": (_REMOVED, two, 0, np.ones((2, 5), dtype=bool)),
        "the last head": (_REMOVED, two + 3, 3, np.ones((2, 5), dtype=bool)),
        "two texts, one shorter": (_PADDING, two + 3, 2, ends[[0, 2], :5]),
        "seven texts of all lengths": (_ROWS, many + 3, 1, ends),
    }, run=as_new)  # fmt: skip
