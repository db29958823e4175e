"""Checks for the exercises of the chapter on positional encodings."""

from typing import Any

import numpy as np

from tinytorch.check.report import Cases, case, cases, drawn, exercise
from tinytorch.check.rules import in_numpy, no_loop, without
from tinytorch.check.values import as_array
from tinytorch.core.positions import create_alibi_bias

__all__ = ["positions_add", "positions_alibi", "positions_count", "positions_rotate",
           "positions_sinusoids"]  # fmt: skip


def _rotated(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The rotation as a product of complex numbers: not the way that the chapter does it."""
    dim = x.shape[1]
    angles = np.asarray(positions)[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)
    product = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)
    return np.stack([product.real, product.imag], axis=-1).reshape(x.shape)


def _sinusoids(max_seq_len: int, embed_dim: int, first: int = 0) -> np.ndarray:
    """Position `t` is (0, 1) of each pair, rotated clockwise by the angles of `t`."""
    start = np.tile([0.0, 1.0], (max_seq_len, embed_dim // 2))
    return _rotated(start, -np.arange(first, first + max_seq_len))


_TABLES = [
    (ValueError, "Write the base as 10000.0: NumPy raises no integer to a negative integer power."),
    (lambda T, d: _sinusoids(T, d, 1), "Positions count from 0, and so does np.arange."),
]


@exercise(points=2, reference=_sinusoids, mistakes=_TABLES, rules=[in_numpy, no_loop])
def positions_sinusoids(answer: Any) -> Cases:
    """Check a table of sinusoidal positions.

    Args:
        answer: `answer(max_seq_len, embed_dim)`, for an even `embed_dim`.

    Example:
        >>> positions_sinusoids(lambda T, d: np.zeros((T, d)))
        positions_sinusoids: not yet
          [ ] position 0 has sines 0 and cosines 1
              given     1, 4
              expected  [[0., 1., 0., 1.]], shape (1, 4)
              got       [[0., 0., 0., 0.]], shape (1, 4)
              hint      Sines go into the even columns, cosines into the odd ones.
        >>> bool(positions_sinusoids(_sinusoids)), bool(positions_sinusoids(lambda T, d: ...))
        (True, False)
    """
    columns = "Sines go into the even columns, cosines into the odd ones."
    pairs = "Both columns of pair i have the frequency 10000 to the power of -2i/d."
    angle = "The angle is the position times the frequency of the pair."
    row = ("row 1", lambda table: np.round(as_array(table)[1], 2))
    yield case("position 0 has sines 0 and cosines 1", answer, 1, 4, hint=columns)
    yield case("position 1 of eight columns, as printed", answer, 2, 8, part=row, hint=pairs)
    for T, d in ((50, 6), (300, 32), (7, 2), (40, 130)):
        yield case(f"the whole table for {T} positions and {d} columns", answer, T, d, hint=angle)


@exercise(reference=lambda kind, T, d: T * d * (kind == "learned"), show_expected=False)
def positions_count(answer: Any) -> Cases:
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
              got       20
              hint      An optimiser would find nothing to change.
        >>> bool(positions_count(lambda scheme, T, d: ...))
        False
    """
    every = "Every position has a vector, and all its numbers are trained."
    nothing = "An optimiser would find nothing to change."
    compute = "Compute it from max_seq_len and embed_dim."
    yield from cases(answer, {
        "a learned table has a vector for each position": (every, "learned", 5, 4),
        "sinusoidal positions are fixed": (nothing, "sinusoidal", 5, 4),
        "a rotation has nothing to learn": (nothing, "rotary", 5, 4),
        "the slopes of ALiBi are fixed": (nothing, "alibi", 5, 4),
        "no positions, no parameters": (nothing, None, 5, 4),
        "a learned table of 2,048 positions, 1,024 wide": (compute, "learned", 2048, 1024),
        "a learned table of 1,024 positions, 768 wide": (compute, "learned", 1024, 768),
        "a larger model without a table has no more": (nothing, "rotary", 2048, 1024),
    })  # fmt: skip


def _alibi(num_heads: int, seq_len: int) -> np.ndarray:
    future = np.triu(np.full((seq_len, seq_len), -np.inf), k=1)
    return future + create_alibi_bias(num_heads, seq_len)


_BY_HAND = without("Write it with np.arange and np.where.", create_alibi_bias)


@exercise(points=2, reference=_alibi, rules=[_BY_HAND])
def positions_alibi(answer: Any) -> Cases:
    """Check an ALiBi bias that also hides the future.

    Args:
        answer: `answer(num_heads, seq_len)`, for a power of two of heads.

    Example:
        >>> bool(positions_alibi(_alibi))
        True
        >>> bool(positions_alibi(create_alibi_bias)), bool(positions_alibi(lambda heads, T: ...))
        (False, False)
    """
    slopes = np.array([-1 / 16, -1 / 256])
    rows = "Row i is the token that looks, column j the one that it looks at, i - j positions back."
    negative = "The bias lowers the score of what is far away: it is negative."
    mistakes = [(-slopes, negative), (np.full(2, -np.inf), rows), (np.zeros(2), rows)]
    shape = "The shape is (heads, seq, seq), and the distance to oneself is 0."
    slope = "Head h of n, counted from 1, has the slope 2 to the power of -8h/n."
    future = "Rows are the tokens that look; np.where puts -np.inf where j > i."
    product = "Slopes of shape (heads, 1, 1) times distances of shape (seq, seq)."
    back = ("[:, 1, 0], which looks one token back", lambda bias: as_array(bias)[:, 1, 0])
    head = ("head 0", lambda bias: as_array(bias)[0])
    yield case("one token looks at itself at no cost, in every head", answer, 2, 1, hint=shape)
    two = {"two heads have the slopes 1/16 and 1/256": (slope, 2, 2)}
    yield from cases(answer, two, mistakes, part=back)
    past = "the past costs by its distance, the future is minus infinity"
    yield case(past, answer, 4, 3, part=head, hint=future)
    for heads, length in ((8, 6), (16, 40), (1, 5)):
        yield case(f"{heads} heads and {length} tokens", answer, heads, length, hint=product)


@exercise(points=2, reference=lambda x, table: x + table[: x.shape[1]])
def positions_add(answer: Any) -> Cases:
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
              got       [[[1.], [1.]]], shape (1, 2, 1)
              hint      The axis of x that runs along the sequence is the middle
                        one.
        >>> bool(positions_add(lambda x, table: ...))
        False
    """
    middle = "The axis of x that runs along the sequence is the middle one."
    first = "Every sequence of the batch starts at position 0."
    x, table = np.zeros((1, 2, 1)), np.array([[1.0], [2.0], [3.0]])
    yield case("a sequence of two tokens gets the first two rows", answer, x, table, hint=middle)
    for shape in ((3, 3, 5), (4, 2, 5), (2, 6, 5), (5, 1, 3), (1, 4, 6), (6, 6, 6)):
        claim = "{} sequences of {} tokens, each from the first row on".format(*shape)
        yield case(claim, answer, *drawn(shape, (6, shape[2])), hint=first)


@exercise(points=3, reference=_rotated)
def positions_rotate(answer: Any) -> Cases:
    """Check a rotation of rows at given positions.

    Args:
        answer: `answer(x, positions)` for `x` of shape `(seq, head_dim)` and integers `(seq,)`.

    Example:
        >>> bool(positions_rotate(_rotated))
        True
        >>> positions_rotate(lambda x, positions: x)
        positions_rotate: not yet
          [x] position 0 is not rotated
          [ ] position 1 rotates (1, 0) by one radian, anticlockwise
              given     [[1., 0.]], shape (1, 2)
                        [1]
              expected  [[0.5403, 0.8415]], shape (1, 2)
              got       [[1., 0.]], shape (1, 2)
              hint      Not rotated: the angle of a row comes from `positions`, not
                        from its index in x.
        >>> bool(positions_rotate(lambda x, positions: ...))
        False
    """
    not_rotated = "Not rotated: the angle of a row comes from `positions`, not from its index in x."
    angles = "All its angles are 0, with cosine 1 and sine 0; the result has the shape of x."
    pair = "(a, b) becomes (a cos - b sin, a sin + b cos)."
    second = "Pair i is columns 2i and 2i + 1, with the frequency 10000 to the power of -2i/d."
    given = "Use the positions that are given, not 0, 1, 2."
    any_integer = "A position is any integer: compute its angle; do not look it up in a table."
    keep = "Keep the old values until both results of a pair are written."
    one, four = np.array([[1.0, 0.0]]), np.array([[1.0, 2.0, 3.0, 4.0]])
    yield from cases(answer, {
        "position 0 is not rotated": (angles, four, np.array([0])),
        "position 1 rotates (1, 0) by one radian, anticlockwise": (pair, one, np.array([1])),
        "pairs are neighbours, and the second rotates more slowly":
            (second, np.tile(one, (1, 2)), np.array([10])),
        "each row is rotated by its own position, whatever the order":
            (given, np.tile(one, (3, 1)), np.array([7, 7, 2])),
        "a negative position rotates clockwise": (any_integer, one, np.array([-1])),
    }, [(lambda x, positions: x, not_rotated)])  # fmt: skip
    for rows, dim in ((5, 6), (5, 16), (1, 130), (6, 2)):
        claim = f"{rows} rows of {dim} numbers at random positions"
        positions = np.random.default_rng(12).integers(-500, 2000, size=rows)
        yield case(claim, answer, *drawn((rows, dim)), positions, hint=keep)
