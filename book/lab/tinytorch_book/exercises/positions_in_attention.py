"""Checks for the exercises of the chapter on positions inside attention."""

from functools import partial
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.attention import MultiHeadAttention, causal_mask
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.layers import Linear
from tinytorch.core.module import Module
from tinytorch.core.positions import create_alibi_bias
from tinytorch.core.tensor import Tensor
from tinytorch.text.embeddings import Embedding
from tinytorch_book.exercises.cases import Cases, NotYet, alone, as_new, case, cases, measured
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import by_hand, without
from tinytorch_book.exercises.training import train
from tinytorch_book.exercises.values import as_array, show

__all__ = ["positions_alibi", "positions_any_length", "positions_count", "positions_rotate",
           "positions_scores"]  # fmt: skip


def _turned(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """The pairs as complex numbers, rotated by a product: not the way that the chapter does it."""
    angles = np.asarray(positions)[:, None] * 10000.0 ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
    return (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angles)


def _rotated(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    product = _turned(x, positions)
    return np.stack([product.real, product.imag], axis=-1).reshape(x.shape)


@exercise(reference=lambda kind, T, d: T * d * (kind == "learned"), show_expected=False)
def positions_count(answer: Any) -> Cases:
    """`answer(scheme, max_seq_len, embed_dim)` is the number of trainable position parameters."""
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
    """`answer(num_heads, seq_len)` is an ALiBi bias that also hides the future."""
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
    for heads, length in ((8, 6), (16, 40), (1, 5), (2, 300), (64, 1)):
        yield case(f"heads: {heads}, tokens: {length}", answer, heads, length, hint=product)


def _kind(result: Any) -> str:
    return as_array(result).dtype.kind


def _misrotated(x: Any, positions: Any, signs: Any = (-1, 1), first: str = "") -> np.ndarray:
    """The rotation with other signs, or with the even or odd columns overwritten `first`."""
    turn = _turned(np.tile([1.0, 0.0], (len(x), x.shape[1] // 2)), positions)
    (even, odd), cos, sin = (x[:, 0::2], x[:, 1::2]), turn.real, turn.imag
    a = even * cos + signs[0] * odd * sin
    b = signs[1] * (a if first == "even" else even) * sin + odd * cos
    a = even * cos - b * sin if first == "odd" else a
    return np.stack([a, b], axis=-1).reshape(x.shape)


_FORMULA = "(a, b) becomes (a cos - b sin, a sin + b cos)."
_KEEP = "Keep the old values until both results of a pair are written."
_ROTATIONS = [
    (lambda x, positions: x,
        "Not rotated: the angle of a row comes from `positions`, not from its index in x."),
    (partial(_misrotated, first="even"), _KEEP),
    (partial(_misrotated, first="odd"), _KEEP),
    *((partial(_misrotated, signs=signs), _FORMULA) for signs in ((1, 1), (1, -1), (-1, -1))),
    (lambda x, positions: _rotated(x, positions).reshape(len(x), -1, 2)[..., ::-1].reshape(x.shape),
        "Each pair is exchanged: a is the even column and b the odd one, in x and in the result."),
]  # fmt: skip


@exercise(points=3, reference=_rotated, mistakes=_ROTATIONS, rules=[by_hand()])
def positions_rotate(answer: Any) -> Cases:
    """`answer(x, positions)` rotates rows `(seq, head_dim)` at positions `(seq,)`."""
    angles = "All its angles are 0, with cosine 1 and sine 0; the result has the shape of x."
    second = "Pair i is columns 2i and 2i + 1, with the frequency 10000 to the power of -2i/d."
    given = "Use the positions that are given, not 0, 1, 2."
    any_number = "A position is any number: compute its angle; do not look it up or round it."
    floats = "np.zeros_like of whole numbers holds whole numbers: give the result's shape alone."
    one, four = np.array([[1.0, 0.0]]), np.array([[1.0, 2.0, 3.0, 4.0]])
    yield from cases(answer, {
        "position 0 is not rotated": (angles, four, np.array([0])),
        "position 1 rotates (1, 0) by one radian, anticlockwise": (_FORMULA, one, np.array([1])),
        "pairs are neighbours, and the second rotates more slowly":
            (second, np.tile(one, (1, 2)), np.array([10])),
        "each row is rotated by its own position, whatever the order":
            (given, np.tile(one, (3, 1)), np.array([7, 7, 2])),
        "a negative position rotates clockwise": (any_number, one, np.array([-1])),
        "half of a position is half of its angle": (any_number, one, np.array([0.5])),
        "rotates whole numbers": (floats, np.array([[1, 0]]), np.array([1])),
        "whole numbers become floats where nothing is rotated": (
            floats, np.array([[3, 4]]), np.array([0]), alone(part=("dtype", _kind))),
        "a new array where nothing is rotated": (
            "Return a new array, not x.", four, np.array([0]), alone(run=as_new)),
    })  # fmt: skip
    for rows, dim in ((5, 6), (5, 16), (1, 130), (6, 2)):
        claim = f"rows at random positions: {rows}, numbers each: {dim}"
        positions, (x,) = generator(12).integers(-500, 2000, size=rows), drawn((rows, dim))
        angle = 4 * np.finfo(np.float32).eps * abs(positions).max()  # its error in float32
        atol = float(1e-5 + angle * abs(x).max())
        yield case(claim, answer, x, positions, hint=_FORMULA, atol=atol)


def _product(q: np.ndarray, k: np.ndarray, way: int = 1) -> np.ndarray:
    """Complex scores; the keys are rotated the wrong way if `way` is -1."""
    positions = np.arange(len(q))
    return _turned(q, positions) @ _turned(k, way * positions).conj().T


def _scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    return _product(q, k).real


def _added(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """The scores if both angles are added: without the conjugate."""
    return _product(q, k * np.tile([1, -1], k.shape[1] // 2), -1).real


_SCORES = [
    (_added, "Angles of complex numbers add when they are multiplied: look at position 0 first."),
    (lambda q, k: _scores(k, q), "Rows are queries, columns are keys."),
    (lambda q, k: q @ k.T, "These are the scores without any rotation."),
    (_product, "Scores are real numbers: take `.real`."),
    (lambda q, k: _scores(q, k) / q.shape[1] ** 0.5, "The score itself: leave out the root of d."),
    (lambda q, k: np.abs(_product(q, k)), "A score can be negative: take `.real`, not the size."),
    (lambda q, k: _product(q, k, -1).real, "The key's angle is added: rotate, then conjugate."),
]


@exercise(points=2, reference=_scores, mistakes=_SCORES)
def positions_scores(answer: Any) -> Cases:
    """`answer(q, k)` is the scores of rows `(seq, head_dim)`, row t rotated by position t."""
    zero = "At position 0 all angles are 0, and a score is a real number."
    diagonal = "Equal distances, equal scores: rotate both by their own positions."
    whole = "Every query with every key; pair i of d numbers has the frequency 10000 ** (-2i / d)."
    one, ones = np.array([[1.0, 2.0]]), np.ones((4, 2))
    same = "the same query and key everywhere: one score for each distance"
    yield from cases(answer, {
        "at position 0 nothing is rotated, and the score is q . k": (zero, one, one + 2),
        same: (diagonal, ones, np.tile([[1.0, -1.0]], (4, 1))),
    })  # fmt: skip
    for rows, dim in ((3, 4), (7, 6), (40, 16), (150, 2)):
        yield case(f"{rows} tokens, {dim} numbers each", answer, *drawn((rows, dim), (rows, dim)),
            hint=whole)  # fmt: skip


# A rule for every length ---------------------------------------------------------------------

SYMBOLS, WIDTH, HEADS, TRAINED, FAR, AIM = 16, 32, 2, 16, 256, 0.95


class _Reader(Module):
    """The chapter's reader, with two heads and a scheme of the reader's own."""

    def __init__(self, scheme: Any) -> None:
        parts = scheme(FAR, WIDTH // HEADS)
        if not isinstance(parts, (tuple, list)) or len(parts) != 2:
            raise NotYet(f"{show(parts)}, which is not (rotate, bias)")
        rotate, bias = parts
        rng = np.random.default_rng(0)
        self.embed = Embedding(SYMBOLS, WIDTH, rng=rng)
        self.attend = MultiHeadAttention(WIDTH, HEADS, rotate=rotate, bias=bias, rng=rng)
        self.answer = Linear(WIDTH, SYMBOLS, rng=rng)

    def forward(self, ids: Any) -> Tensor:
        x = self.embed(ids)  # (B, T, d)
        return self.answer(x + self.attend(x, mask=causal_mask(ids.shape[1])))


def _wrong_far(scheme: Any, back: int, steps: int = 200) -> tuple[float, ...]:
    """Train on short texts; how often the symbol `back` positions ago is misnamed in long ones.

    The share of errors beyond the length of the short texts, and what is right there and before.
    """
    model, rng = _Reader(scheme), np.random.default_rng(1)

    def loss() -> Tensor:
        ids = rng.integers(SYMBOLS, size=(32, TRAINED))
        return functional.cross_entropy(model(ids)[:, back:], ids[:, :-back])

    train(model, loss, (0.02 * (1 - np.arange(steps) / steps)).tolist(), weight_decay=0.0)
    ids = rng.integers(SYMBOLS, size=(10, FAR))
    with no_grad():
        named = np.asarray(model(ids).data).argmax(axis=-1)[:, back:] == ids[:, :-back]
    before, far = named[:, : TRAINED - back].mean(), named[:, TRAINED - back :].mean()
    return 1 - far, far, before


@exercise(points=4, show_expected=False)
def positions_any_length(answer: Any) -> Cases:
    """`answer(T, head_dim)` is a pair `(rotate, bias)` for two heads."""
    hint = """Wrong before position 16 as well: the scheme cannot point to a distance.
Wrong only beyond: which distances has training never shown to a query?"""
    for back in (2, 4, 7):
        claim = f"names what stood {back} back, at {AIM:.0%} of the positions 16 to {FAR - 1}"
        yield from measured(claim, answer, run=partial(_wrong_far, back=back), aim=1 - AIM,
                            told="{1:.0%} right there, {2:.0%} before", hint=hint)  # fmt: skip
