"""Checks for the chapter "The embedding layer"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise, raises

__all__ = [
    "layer_embed",
    "layer_embed_from",
    "layer_position_gradient",
    "layer_scaled_embed",
    "layer_training_bytes",
]

_TOKENS = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])  # (V, d)
_PLACES = np.array([[0.0, 0.1], [0.2, 0.3], [0.4, 0.5], [0.6, 0.7]])  # (T_max, d)


def _random_tables(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids `(2, 3)`, a token table `(7, 4)` and a position table `(5, 4)`."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 7, (2, 3)), rng.normal(size=(7, 4)), rng.normal(size=(5, 4))


@exercise(points=2)
def layer_embed(answer: Callable[[Any, Any, Any], Any]) -> Iterator[Case]:
    """Check token vectors plus positions for ids `(T,)` and `(B, T)`.

    Example:
        >>> bool(layer_embed(lambda ids, E, P: E[ids] + P[: ids.shape[-1]]))
        True
        >>> bool(layer_embed(lambda ids, E, P: E[ids]))
        False
    """
    one = np.array([2, 0])
    hint = "Look up the ids, then add the first rows of position_table, one a token."
    expected = np.array([[3.0, 3.1], [1.2, 1.3]])
    yield case("one sequence", answer, one, _TOKENS, _PLACES, expected=expected, hint=hint)
    hint = "Positions run along the last axis of the ids, whatever the batch."
    yield case(
        "a batch of one", answer, one[None], _TOKENS, _PLACES, expected=expected[None], hint=hint
    )
    two = np.array([[0, 1], [2, 0]])  # as many sequences as positions
    expected = np.array([[[1.0, 1.1], [2.2, 2.3]], [[3.0, 3.1], [1.2, 1.3]]])
    yield case("a batch of two", answer, two, _TOKENS, _PLACES, expected=expected, hint=hint)
    ids, tokens, places = _random_tables(0)
    expected = np.stack([tokens[row] + places[:3] for row in ids])
    yield case("a longer batch", answer, ids, tokens, places, expected=expected, hint=hint)


@exercise(points=2)
def layer_position_gradient(answer: Callable[[Any, int], Any]) -> Iterator[Case]:
    """Check the gradient of the whole position table.

    Example:
        >>> right = lambda g, n: np.pad(g.sum(0), ((0, n - g.shape[1]), (0, 0)))
        >>> bool(layer_position_gradient(right))
        True
        >>> bool(layer_position_gradient(lambda g, n: g.sum(0)))
        False
    """
    g = np.array([[[1.0, 2.0], [3.0, 4.0]], [[10.0, 20.0], [30.0, 40.0]]])  # (2, 2, 2)
    hint = "Sum over the sequences of the batch: each of them read the same rows."
    yield case(
        "sums over the batch", answer, g, 2, expected=[[11.0, 22.0], [33.0, 44.0]], hint=hint
    )
    expected = np.array([[11.0, 22.0], [33.0, 44.0], [0.0, 0.0]])
    hint = "The gradient has the shape of the table; rows that were not read have gradient zero."
    yield case("leaves unread positions at zero", answer, g, 3, expected=expected, hint=hint)
    g = np.random.default_rng(1).normal(size=(3, 4, 5))
    expected = np.concatenate([g[0] + g[1] + g[2], np.zeros((2, 5))])
    yield case("a larger batch", answer, g, 6, expected=expected, hint=hint)


@exercise(points=2)
def layer_scaled_embed(answer: Callable[[Any, Any, Any], Any]) -> Iterator[Case]:
    """Check that the token vectors alone are scaled by the root of their length.

    Example:
        >>> bool(layer_scaled_embed(lambda ids, E, P: 2 * E[ids] + P[: ids.shape[-1]]))
        False
        >>> right = lambda ids, E, P: E[ids] * E.shape[1] ** 0.5 + P[: ids.shape[-1]]
        >>> bool(layer_scaled_embed(right))
        True
    """
    nothing = np.zeros((3, 4))
    places = np.arange(8.0).reshape(2, 4)
    ids = np.array([0, 1])
    hint = "Only the token vectors are multiplied; the positions are added as they are."
    yield case(
        "positions stay as they are", answer, ids, nothing, places, expected=places, hint=hint
    )
    hint = "The factor is the square root of the vector length, here 2."
    yield case(
        "tokens are scaled",
        answer,
        ids,
        np.ones((3, 4)),
        0 * places,
        expected=np.full((2, 4), 2.0),
        hint=hint,
    )
    for d in (3, 9):
        rng = np.random.default_rng(d)
        tokens, places = rng.normal(size=(5, d)), rng.normal(size=(6, d))
        ids = np.array([[4, 1], [0, 1]])
        expected = np.stack([d**0.5 * tokens[row] + places[:2] for row in ids])
        yield case(
            f"a batch with d = {d}", answer, ids, tokens, places, expected=expected, hint=hint
        )


@exercise(points=1)
def layer_training_bytes(answer: Callable[[int, int, int, Any], Any]) -> Iterator[Case]:
    """Check the bytes of the parameters in training with AdamW.

    Example:
        >>> bool(layer_training_bytes(lambda V, d, T, p: 16 * d * (V + T * (p == "learned"))))
        True
        >>> bool(layer_training_bytes(lambda V, d, T, p: 4 * d * V))
        False
    """
    hint = "Weight, gradient and two running means: four numbers of four bytes a parameter."
    yield case("no positions", answer, 10, 2, 5, None, expected=320, hint=hint)
    hint = "A learned table is trained like the other one."
    yield case("learned positions", answer, 10, 2, 5, "learned", expected=480, hint=hint)
    hint = "A constant table has no gradient and no running means."
    yield case("sinusoidal positions", answer, 10, 2, 5, "sinusoidal", expected=320, hint=hint)
    expected = 16 * 768 * (50257 + 1024)
    hint = "Compute it from V, d and T."
    yield case("GPT-2 small", answer, 50257, 768, 1024, "learned", expected=expected, hint=hint)


@exercise(points=2)
def layer_embed_from(answer: Callable[[Any, Any, Any, int], Any]) -> Iterator[Case]:
    """Check that positions go on from a given place.

    Example:
        >>> bool(layer_embed_from(lambda ids, E, P, start: E[ids] + P[start : start + 2]))
        False
    """
    ids = np.array([[0, 1]])
    expected = np.array([[[1.0, 1.1], [2.2, 2.3]]])
    hint = "Look up the ids, and add the rows of the positions from `start` on."
    yield case(
        "begins at position 0", answer, ids, _TOKENS, _PLACES, 0, expected=expected, hint=hint
    )
    expected = np.array([[[1.4, 1.5], [2.6, 2.7]]])
    hint = "The first column stands at `start`, the next one a position further."
    yield case("begins further on", answer, ids, _TOKENS, _PLACES, 2, expected=expected, hint=hint)
    ids, tokens, places = _random_tables(3)
    expected = tokens[ids] + places[1:4]
    yield case("a batch", answer, ids, tokens, places, 1, expected=expected, hint=hint)
    hint = "A slice that ends behind the table is silently shorter: compare its end with len()."
    ids = np.array([[0, 1, 2], [2, 0, 1]])
    for start in (3, 2):
        yield raises(
            f"refuses positions behind the table from {start}",
            answer,
            ids,
            _TOKENS,
            _PLACES,
            start,
            error=ValueError,
            hint=hint,
        )
