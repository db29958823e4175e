"""Checks for the exercises of the chapter on positional encodings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise
from tinytorch.core.tensor import Tensor
from tinytorch.text.embeddings import create_alibi_bias, create_sinusoidal_embeddings

__all__ = [
    "positions_add",
    "positions_alibi",
    "positions_count",
    "positions_sinusoids",
    "positions_turn",
]


@exercise(points=2)
def positions_sinusoids(answer: Any) -> Iterator[Case]:
    """Check a table of sinusoidal positions.

    Args:
        answer: `answer(max_seq_len, embed_dim)`, for an even `embed_dim`.

    Example:
        >>> bool(positions_sinusoids(lambda T, d: create_sinusoidal_embeddings(T, d)))
        True
        >>> positions_sinusoids(lambda T, d: np.zeros((T, d)))
        positions_sinusoids: not yet
          [ ] position 0 has sines 0 and cosines 1
              given     1, 4
              expected  [[0., 1., 0., 1.]], shape (1, 4)
              came      [[0., 0., 0., 0.]], shape (1, 4)
              hint      Sines go into the even columns, cosines into the odd ones.
        >>> bool(positions_sinusoids(lambda T, d: ...))
        False
    """
    from_zero = "Positions count from 0, and so does np.arange."
    float_base = "Write the base as 10000.0: NumPy raises no integer to a negative integer power."
    yield case(
        "position 0 has sines 0 and cosines 1",
        answer,
        1,
        4,
        expected=np.array([[0.0, 1.0, 0.0, 1.0]]),
        hint="Sines go into the even columns, cosines into the odd ones.",
        mistakes=[
            (np.array([[np.sin(1), np.cos(1), np.sin(0.01), np.cos(0.01)]]), from_zero),
            (ValueError, float_base),
        ],
    )
    yield case(
        "position 1 of eight columns is the row of the chapter",
        answer,
        2,
        8,
        expected=np.array([0.84, 0.54, 0.10, 1.00, 0.01, 1.00, 0.00, 1.00]),
        part=("row 1", lambda table: np.round(_array(table)[1], 2)),
        hint="Both columns of pair i have the frequency 10000 to the power of -2i/d.",
        mistakes=[(ValueError, float_base)],
    )
    for length, dim in ((50, 6), (300, 32)):
        yield case(
            f"the whole table for {length} positions and {dim} columns",
            answer,
            length,
            dim,
            expected=create_sinusoidal_embeddings(length, dim),
            hint="The angle is the position times the frequency of the pair.",
        )


@exercise(points=1)
def positions_count(answer: Any) -> Iterator[Case]:
    """Check the number of trainable position parameters.

    Args:
        answer: `answer(scheme, max_seq_len, embed_dim)`, a number.

    Example:
        >>> bool(positions_count(lambda scheme, T, d: T * d if scheme == "learned" else 0))
        True
        >>> positions_count(lambda scheme, T, d: T * d)
        positions_count: not yet
          [x] a learned table has a vector for each position
          [ ] sinusoidal positions are fixed
              given     'sinusoidal', 5, 4
              came      20
              hint      An optimiser would find nothing to change.
        >>> bool(positions_count(lambda scheme, T, d: ...))
        False
    """
    yield case(
        "a learned table has a vector for each position",
        answer,
        "learned",
        5,
        4,
        expected=20,
        hint="Every position has a vector, and all its numbers are trained.",
        show_expected=False,
    )
    for scheme, claim in (
        ("sinusoidal", "sinusoidal positions are fixed"),
        ("rotary", "a rotation has nothing to learn"),
        ("alibi", "the slopes of ALiBi are fixed"),
        (None, "no positions, no parameters"),
    ):
        yield case(
            claim,
            answer,
            scheme,
            5,
            4,
            expected=0,
            hint="An optimiser would find nothing to change.",
            show_expected=False,
        )
    for length, width in ((2048, 1024), (1024, 768)):
        yield case(
            f"a learned table of {length:,} positions, {width:,} wide",
            answer,
            "learned",
            length,
            width,
            expected=length * width,
            hint="Compute it from max_seq_len and embed_dim.",
            show_expected=False,
        )


@exercise(points=2)
def positions_alibi(answer: Any) -> Iterator[Case]:
    """Check an ALiBi bias that also hides the future.

    Args:
        answer: `answer(num_heads, seq_len)`, for a power of two of heads.

    Example:
        >>> def causal(heads, T):
        ...     future = np.triu(np.ones((T, T), bool), 1)
        ...     return np.where(future, -np.inf, create_alibi_bias(heads, T))
        >>> bool(positions_alibi(causal))
        True
        >>> bool(positions_alibi(create_alibi_bias)), bool(positions_alibi(lambda heads, T: ...))
        (False, False)
    """
    slopes = np.array([-1 / 16, -1 / 256])
    rows = "Row i is the token that looks, column j the one that it looks at, i - j places back."
    yield case(
        "one token looks at itself at no cost, in every head",
        answer,
        2,
        1,
        expected=np.zeros((2, 1, 1)),
        hint="The shape is (heads, seq, seq), and the distance to oneself is 0.",
    )
    yield case(
        "two heads have the slopes 1/16 and 1/256",
        answer,
        2,
        2,
        expected=slopes,
        part=("[:, 1, 0], which looks one token back", lambda bias: _array(bias)[:, 1, 0]),
        hint="Head h of n, counted from 1, has the slope 2 to the power of -8h/n.",
        mistakes=[
            (-slopes, "The bias lowers the score of what is far away: it is negative."),
            (np.full(2, -np.inf), rows),
            (np.zeros(2), rows),
        ],
    )
    yield case(
        "the past costs by its distance, the future is minus infinity",
        answer,
        4,
        3,
        expected=np.array([[0, -np.inf, -np.inf], [-0.25, 0, -np.inf], [-0.5, -0.25, 0]]),
        part=("head 0", lambda bias: _array(bias)[0]),
        hint="Rows are the tokens that look; np.where puts -np.inf where j > i.",
    )
    for heads, length in ((8, 6), (16, 40)):
        future = np.triu(np.ones((length, length), dtype=bool), 1)
        yield case(
            f"{heads} heads and {length} tokens",
            answer,
            heads,
            length,
            expected=np.where(future, -np.inf, create_alibi_bias(heads, length)),
            hint="Slopes of shape (heads, 1, 1) times distances of shape (seq, seq).",
        )


@exercise(points=2)
def positions_add(answer: Any) -> Iterator[Case]:
    """Check that positions are added along the sequence, not along the batch.

    Args:
        answer: `answer(x, table)` for `x` of shape `(batch, seq, d)`.

    Example:
        >>> bool(positions_add(lambda x, table: x + table[: x.shape[1]]))
        True
        >>> positions_add(lambda x, table: x + table[: len(x)][:, None])
        positions_add: not yet
          [ ] a sequence of two tokens gets the first two rows
              given     [[[0.], [0.]]], shape (1, 2, 1)
                        [[1.], [2.], [3.]], shape (3, 1)
              expected  [[[1.], [2.]]], shape (1, 2, 1)
              came      [[[1.], [1.]]], shape (1, 2, 1)
              hint      The axis of x that runs along the sequence is the middle
                        one.
        >>> bool(positions_add(lambda x, table: ...))
        False
    """
    rng = np.random.default_rng(11)
    yield case(
        "a sequence of two tokens gets the first two rows",
        answer,
        np.zeros((1, 2, 1)),
        np.array([[1.0], [2.0], [3.0]]),
        expected=np.array([[[1.0], [2.0]]]),
        hint="The axis of x that runs along the sequence is the middle one.",
    )
    for batch, length in ((3, 3), (4, 2)):
        x, table = rng.normal(size=(batch, length, 5)), rng.normal(size=(6, 5))
        yield case(
            f"{batch} sequences of {length} tokens, each from the first row on",
            answer,
            x,
            table,
            expected=x + table[:length],
            hint="Every sequence of the batch starts at position 0.",
        )


@exercise(points=3)
def positions_turn(answer: Any) -> Iterator[Case]:
    """Check a rotation of rows at given positions.

    Args:
        answer: `answer(x, positions)` for `x` of shape `(seq, head_dim)` and integers `(seq,)`.

    Example:
        >>> bool(positions_turn(_turned))
        True
        >>> positions_turn(lambda x, positions: x)
        positions_turn: not yet
          [x] position 0 is not turned
          [ ] position 1 turns (1, 0) by one radian, anticlockwise
              given     [[1., 0.]], shape (1, 2)
                        [1]
              expected  [[0.5403, 0.8415]], shape (1, 2)
              came      [[1., 0.]], shape (1, 2)
              hint      Not turned: the angle of a row comes from `positions`, not
                        from its place in x.
        >>> bool(positions_turn(lambda x, positions: ...))
        False
    """
    rng = np.random.default_rng(12)
    unused = "Not turned: the angle of a row comes from `positions`, not from its place in x."
    yield case(
        "position 0 is not turned",
        answer,
        np.array([[1.0, 2.0, 3.0, 4.0]]),
        np.array([0]),
        expected=np.array([[1.0, 2.0, 3.0, 4.0]]),
        hint="All its angles are 0, with cosine 1 and sine 0; the result has the shape of x.",
    )
    yield case(
        "position 1 turns (1, 0) by one radian, anticlockwise",
        answer,
        np.array([[1.0, 0.0]]),
        np.array([1]),
        expected=np.array([[np.cos(1.0), np.sin(1.0)]]),
        hint="(a, b) becomes (a cos - b sin, a sin + b cos).",
        mistakes=[(np.array([[1.0, 0.0]]), unused)],
    )
    yield case(
        "pairs are neighbours, and the second turns more slowly",
        answer,
        np.array([[1.0, 0.0, 1.0, 0.0]]),
        np.array([10]),
        expected=np.array([[np.cos(10.0), np.sin(10.0), np.cos(0.1), np.sin(0.1)]]),
        hint="Pair i is columns 2i and 2i + 1, with the frequency 10000 to the power of -2i/d.",
    )
    x, positions = np.array([[1.0, 0.0]] * 3), np.array([7, 7, 2])
    yield case(
        "each row is turned by its own position, whatever the order",
        answer,
        x,
        positions,
        expected=_turned(x, positions),
        hint="Use the positions that are given, not 0, 1, 2.",
    )
    yield case(
        "a negative position turns clockwise",
        answer,
        x[:1],
        np.array([-1]),
        expected=np.array([[np.cos(1.0), -np.sin(1.0)]]),
        hint="A position is any integer: compute its angle, rather than look it up in a table.",
    )
    for dim in (6, 16):
        x, positions = rng.normal(size=(5, dim)), rng.integers(-500, 2000, size=5)
        yield case(
            f"five rows of {dim} numbers at random positions",
            answer,
            x,
            positions,
            expected=_turned(x, positions),
            hint="Keep the old values until both results of a pair are written.",
        )


def _turned(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The rotation as a product of complex numbers: not the way that the chapter does it."""
    dim = x.shape[1]
    angles = np.asarray(positions)[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)
    product = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)
    return np.stack([product.real, product.imag], axis=-1).reshape(x.shape)


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.data if isinstance(value, Tensor) else value)
