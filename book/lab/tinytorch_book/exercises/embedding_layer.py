"""Checks for the chapter "The embedding layer"."""

from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, NotYet, alone, case, cases, measured
from tinytorch_book.exercises.drawn_numbers import drawn, generator, seed_of
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import as_array, is_numeric, show

__all__ = ["layer_embed", "layer_embed_from", "layer_position_gradient", "layer_room",
           "layer_scaled_embed", "layer_training_bytes"]  # fmt: skip

_TOKENS = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])  # (V, d)
_POSITIONS = np.array([[0.0, 0.1], [0.2, 0.3], [0.4, 0.5], [0.6, 0.7]])  # (T_max, d)


def _drawn(seed: int, *shape: int, width: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ids of a shape, a token table `(7, width)` and a position table `(5, width)`."""
    tokens, positions = drawn((7, width), (5, width), seed=seed)
    return np.random.default_rng(seed_of(seed)).integers(0, 7, shape), tokens, positions


def _embedded(ids: Any, tokens: Any, positions: Any, start: int = 0) -> Any:
    return tokens[ids] + positions[start : start + ids.shape[-1]]


@exercise(points=2, reference=_embedded, rules=[in_numpy, no_loop])
def layer_embed(answer: Any) -> Cases:
    """Check token vectors plus positions for ids `(T,)` and `(B, T)`."""
    one, two = np.array([2, 0]), np.array([[0, 1], [2, 0]])  # as many sequences as positions
    look = "Look up the ids, then add the first rows of position_table, one a token."
    last = "Positions run along the last axis of the ids, whatever the batch."
    yield from cases(answer, {
        "one sequence": (look, one, _TOKENS, _POSITIONS),
        "a batch of one": (last, one[None], _TOKENS, _POSITIONS),
        "a batch of two": (last, two, _TOKENS, _POSITIONS),
        "a longer batch": (last, *_drawn(0, 2, 3)),
        "a long text": (last, generator().integers(300, size=(2, 60)), *drawn((300, 5), (70, 5))),
    })  # fmt: skip
    for seed, shape in enumerate([(4, 1), (1,), (3, 5), (5, 5), (5,)], start=1):
        claim = f"ids of shape {shape}"
        yield case(claim, answer, *_drawn(seed, *shape, width=seed + 2), hint=last)


@exercise(points=2, reference=lambda g, n: np.pad(g.sum(0), ((0, n - g.shape[1]), (0, 0))))
def layer_position_gradient(answer: Any) -> Cases:
    """Check the gradient of the whole position table."""
    g = np.array([[[1.0, 2.0], [3.0, 4.0]], [[10.0, 20.0], [30.0, 40.0]]])  # (2, 2, 2)
    every = "Sum over the sequences of the batch: each of them read the same rows."
    zeros = "The gradient has the shape of the table; rows that were not read have gradient zero."
    yield from cases(answer, {
        "sums over the batch": (every, g, 2),
        "leaves unread positions at zero": (zeros, g, 3),
        "a larger batch": (zeros, *drawn((3, 4, 5)), 6),
    })  # fmt: skip
    for g, length in zip(drawn((5, 1, 3), (1, 4, 2), (2, 3, 1)), (4, 4, 30), strict=True):
        claim = f"tiny gradients of shape {g.shape}"
        yield case(claim, answer, 1e-30 * g, length, hint=every, atol=0.0)


@exercise(points=2, reference=lambda ids, E, P: E[ids] * E.shape[1] ** 0.5 + P[: ids.shape[-1]])
def layer_scaled_embed(answer: Any) -> Cases:
    """Check that the token vectors alone are scaled by the root of their length."""
    ids, nothing, positions = np.array([0, 1]), np.zeros((3, 4)), np.arange(8.0).reshape(2, 4)
    plain = "Only the token vectors are multiplied; the positions are added as they are."
    every = "The factor is the square root of the vector length, whatever it is."
    yield case("positions stay as they are", answer, ids, nothing, positions, hint=plain)
    yield case("tokens are scaled", answer, ids, np.ones((3, 4)), 0 * positions, hint=every)
    for d, shape in {3: (3, 2), 9: (3, 2), 1: (3, 2), 50: (3, 2), 7: (3,)}.items():
        yield case(f"d = {d}", answer, *_drawn(d, *shape, width=d), hint=every)


@exercise(points=1, reference=lambda V, d, T, p: 16 * d * (V + T * (p == "learned")))
def layer_training_bytes(answer: Any) -> Cases:
    """Check the bytes of the parameters in training with AdamW."""
    four = "Weight, gradient and two running means: four numbers of four bytes a parameter."
    table = "A learned table is trained like the other one."
    constant = "A constant table has no gradient and no running means."
    always = [(lambda V, d, T, p: 16 * d * (V + T), "Without positions there is one table.")]
    yield from cases(answer, {
        "no positions": (four, 10, 2, 5, None, alone(mistakes=always)),
        "learned positions": (table, 10, 2, 5, "learned"),
        "sinusoidal positions": (constant, 10, 2, 5, "sinusoidal"),
        "GPT-2 small": (table, 50257, 768, 1024, "learned"),
        "GPT-2 small with fixed positions": (constant, 50257, 768, 1024, "sinusoidal"),
        "a table of one token": (table, 1, 7, 3, "learned"),
    })  # fmt: skip


@exercise(points=2, reference=_embedded)
def layer_embed_from(answer: Any) -> Cases:
    """Check that positions continue from a given one."""
    rows = "Look up the ids, and add the rows of the positions from `start` on."
    further = "The first column is at position `start`, the next one at `start + 1`."
    past = "A slice that runs past the table is silently shorter: compare its end with len()."
    yield from cases(answer, {
        "begins at position 0": (rows, np.array([[0, 1]]), _TOKENS, _POSITIONS, 0),
        "begins further on": (further, np.array([[0, 1]]), _TOKENS, _POSITIONS, 2),
    })  # fmt: skip
    for shape, start in {(2, 3): 1, (4, 1): 4, (1, 5): 0, (3, 3): 2, (1, 1): 0}.items():
        claim = f"ids of shape {shape} from position {start} of 5"
        yield case(claim, answer, *_drawn(4, *shape, width=sum(shape)), start, hint=further)
    for length, start in ((3, 3), (3, 2), (1, 4), (1, 9), (2, 3), (5, 0)):
        given = np.arange(2 * length).reshape(2, length) % 3, _TOKENS, _POSITIONS, start
        claim = f"refuses {length} positions from {start} on, the table having 4"
        yield case(claim, answer, *given, error=ValueError, hint=past)


# Room for two messages -----------------------------------------------------------------------

V, T, MOST, AIM = 40, 24, 8, 0.99


def _tables(pair: Any) -> tuple[np.ndarray, np.ndarray]:
    """The reader's tables, if they are as the statement wants them."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(map(is_numeric, pair)):
        raise NotYet(f"{show(pair)}, which is not a pair of tables")
    tokens, positions = (as_array(table).astype(float) for table in pair)
    d = tokens.shape[-1] if tokens.ndim else 0
    if tokens.shape != (V, d) or positions.shape != (T, d) or not 0 < d <= MOST:
        raise NotYet(f"tables of shape {tokens.shape} and {positions.shape}")
    if not np.abs(np.vstack([tokens, positions])).max() <= 1 + 1e-6:
        raise NotYet("a number that is not between -1 and 1")
    return tokens, positions


def _unread(pair: Any, noise: float) -> tuple[float, float, float]:
    """How well a linear map, fitted without noise, reads tokens and positions out of noisy sums.

    The share of errors of the worse of the two, and the shares of tokens and positions read right.
    """
    tokens, positions = _tables(pair)
    token, position = np.divmod(np.arange(V * T), T)
    sums = tokens[token] + positions[position]  # (V*T, d)
    wanted, one = np.c_[np.eye(V)[token], np.eye(T)[position]], np.ones(V * T)
    weights = np.linalg.lstsq(np.c_[sums, one], wanted, rcond=None)[0]
    right, rng = np.zeros(2), np.random.default_rng(4)
    for _ in range(10):
        scores = np.c_[sums + noise * rng.normal(size=sums.shape), one] @ weights
        found = scores[:, :V].argmax(axis=1) == token, scores[:, V:].argmax(axis=1) == position
        right += np.mean(found, axis=1) / 10
    return 1 - right.min(), right[0], right[1]


@exercise(points=4, show_expected=False)
def layer_room(answer: Any) -> Cases:
    """`answer` is a token table `(40, d)` and a position table `(24, d)`, d at most 8."""
    shape = "Two tables, (40, d) and (24, d), d at most 8, of numbers from -1 to 1."
    outside = "Which numbers of a sum come from the token alone, and which from the position?"
    apart = "Noise moves a vector a little: how close are the nearest two tokens, or positions?"
    yield case(f"at most {MOST} numbers a vector, from -1 to 1", answer, expected=True, hint=shape,
               part=("tables", lambda pair: bool(_tables(pair))))  # fmt: skip
    for under, noise, hint in (("", 0.0, outside), (" under noise", 0.1, apart)):
        yield from measured(f"{AIM:.0%} of both are read{under}", lambda: answer, aim=1 - AIM,
                            run=lambda pair, noise=noise: _unread(pair(), noise), hint=hint,
                            told="{1:.1%} of the tokens, {2:.1%} of the positions")  # fmt: skip
