"""Checks for the chapter "The embedding layer"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, cases, exercise, raises
from tinytorch.check.rules import in_numpy, no_loop

__all__ = ["layer_embed", "layer_embed_from", "layer_position_gradient", "layer_scaled_embed",
           "layer_training_bytes"]  # fmt: skip

_TOKENS = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])  # (V, d)
_PLACES = np.array([[0.0, 0.1], [0.2, 0.3], [0.4, 0.5], [0.6, 0.7]])  # (T_max, d)


def _drawn(seed: int, *shape: int, width: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids of a shape, a token table `(7, width)` and a position table `(5, width)`."""
    rng = np.random.default_rng(seed)
    tokens, places = rng.normal(size=(7, width)), rng.normal(size=(5, width))
    return rng.integers(0, 7, shape), tokens, places


def _embedded(ids: Any, tokens: Any, places: Any, start: int = 0, scale: float = 1.0) -> Any:
    return scale * tokens[ids] + places[start : start + ids.shape[-1]]


def _scaled(ids: Any, tokens: Any, places: Any) -> Any:
    return _embedded(ids, tokens, places, scale=tokens.shape[1] ** 0.5)


@exercise(points=2, reference=_embedded, rules=[in_numpy, no_loop])
def layer_embed(answer: Callable[[Any, Any, Any], Any]) -> Iterator[Case]:
    """Check token vectors plus positions for ids `(T,)` and `(B, T)`.

    Example:
        >>> bool(layer_embed(lambda ids, E, P: E[ids] + P[: ids.shape[-1]]))
        True
        >>> bool(layer_embed(lambda ids, E, P: E[ids]))
        False
    """
    one, two = np.array([2, 0]), np.array([[0, 1], [2, 0]])  # as many sequences as positions
    look = "Look up the ids, then add the first rows of position_table, one a token."
    last = "Positions run along the last axis of the ids, whatever the batch."
    yield from cases(answer, {
        "one sequence": (look, one, _TOKENS, _PLACES),
        "a batch of one": (last, one[None], _TOKENS, _PLACES),
        "a batch of two": (last, two, _TOKENS, _PLACES),
        "a longer batch": (last, *_drawn(0, 2, 3)),
    })  # fmt: skip
    for seed, shape in enumerate([(4, 1), (1,), (3, 5), (5, 5), (5,)], start=1):
        claim = f"ids of shape {shape}"
        yield case(claim, answer, *_drawn(seed, *shape, width=seed + 2), hint=last)


def _summed(g: np.ndarray, max_seq_len: int) -> np.ndarray:
    rows = g.sum(axis=0)
    return np.concatenate([rows, np.zeros((max_seq_len - len(rows), g.shape[2]))])


@exercise(points=2, reference=_summed)
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
    every = "Sum over the sequences of the batch: each of them read the same rows."
    zeros = "The gradient has the shape of the table; rows that were not read have gradient zero."
    yield case("sums over the batch", answer, g, 2, hint=every)
    yield case("leaves unread positions at zero", answer, g, 3, hint=zeros)
    rng = np.random.default_rng(1)
    yield case("a larger batch", answer, rng.normal(size=(3, 4, 5)), 6, hint=zeros)
    for shape, length in (((5, 1, 3), 4), ((1, 4, 2), 4), ((2, 3, 1), 30)):
        g = 1e-30 * rng.normal(size=shape)
        yield case(f"tiny gradients of shape {shape}", answer, g, length, hint=every, atol=0.0)


@exercise(points=2, reference=_scaled)
def layer_scaled_embed(answer: Callable[[Any, Any, Any], Any]) -> Iterator[Case]:
    """Check that the token vectors alone are scaled by the root of their length.

    Example:
        >>> bool(layer_scaled_embed(lambda ids, E, P: 2 * E[ids] + P[: ids.shape[-1]]))
        False
        >>> right = lambda ids, E, P: E[ids] * E.shape[1] ** 0.5 + P[: ids.shape[-1]]
        >>> bool(layer_scaled_embed(right))
        True
    """
    ids, nothing, places = np.array([0, 1]), np.zeros((3, 4)), np.arange(8.0).reshape(2, 4)
    alone = "Only the token vectors are multiplied; the positions are added as they are."
    root = "The factor is the square root of the vector length, here 2."
    every = "The factor is the square root of the vector length, whatever it is."
    yield case("positions stay as they are", answer, ids, nothing, places, hint=alone)
    yield case("tokens are scaled", answer, ids, np.ones((3, 4)), 0 * places, hint=root)
    for width in (3, 9, 1, 50):
        given = _drawn(width, 3, 2, width=width)
        yield case(f"a batch with d = {width}", answer, *given, hint=every)
    yield case("one sequence", answer, *_drawn(2, 3, width=7), hint=every)


def _bytes(V: int, d: int, T: int, pos_encoding: str | None) -> int:
    return 16 * d * (V + (T if pos_encoding == "learned" else 0))


@exercise(points=1, reference=_bytes)
def layer_training_bytes(answer: Callable[[int, int, int, Any], Any]) -> Iterator[Case]:
    """Check the bytes of the parameters in training with AdamW.

    Example:
        >>> bool(layer_training_bytes(lambda V, d, T, p: 16 * d * (V + T * (p == "learned"))))
        True
        >>> bool(layer_training_bytes(lambda V, d, T, p: 4 * d * V))
        False
    """
    four = "Weight, gradient and two running means: four numbers of four bytes a parameter."
    table = "A learned table is trained like the other one."
    constant = "A constant table has no gradient and no running means."
    compute = "Compute it from V, d and T."
    yield from cases(answer, {
        "no positions": (four, 10, 2, 5, None),
        "learned positions": (table, 10, 2, 5, "learned"),
        "sinusoidal positions": (constant, 10, 2, 5, "sinusoidal"),
        "GPT-2 small": (compute, 50257, 768, 1024, "learned"),
        "GPT-2 small with fixed positions": (constant, 50257, 768, 1024, "sinusoidal"),
        "a table of one token": (compute, 1, 7, 3, "learned"),
    })  # fmt: skip


@exercise(points=2, reference=_embedded)
def layer_embed_from(answer: Callable[[Any, Any, Any, int], Any]) -> Iterator[Case]:
    """Check that positions go on from a given place.

    Example:
        >>> bool(layer_embed_from(lambda ids, E, P, start: E[ids] + P[start : start + 2]))
        False
    """
    ids = np.array([[0, 1]])
    rows = "Look up the ids, and add the rows of the positions from `start` on."
    further = "The first column stands at `start`, the next one a position further."
    past = "A slice that ends behind the table is silently shorter: compare its end with len()."
    yield case("begins at position 0", answer, ids, _TOKENS, _PLACES, 0, hint=rows)
    yield case("begins further on", answer, ids, _TOKENS, _PLACES, 2, hint=further)
    yield case("a batch", answer, *_drawn(3, 2, 3), 1, hint=further)
    for seed, shape, start in ((4, (4, 1), 4), (5, (1, 5), 0), (6, (3, 3), 2), (7, (1, 1), 0)):
        claim = f"ids of shape {shape} from position {start} of 5"
        yield case(claim, answer, *_drawn(seed, *shape, width=seed), start, hint=further)
    beyond = [((2, 3), 3), ((2, 3), 2), ((2, 1), 4), ((2, 1), 9), ((1, 2), 3), ((1, 5), 0)]
    for shape, start in beyond:
        claim = f"refuses positions behind the table from {start}"
        given = (np.arange(shape[0] * shape[1]).reshape(shape) % 3, _TOKENS, _PLACES, start)
        yield raises(claim, answer, *given, error=ValueError, hint=past)
