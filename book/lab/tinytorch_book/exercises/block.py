"""Checks for the chapter "The transformer block"."""

from functools import partial
from typing import Any

import numpy as np

from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.layers import LayerNorm
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import MLP
from tinytorch_book.exercises.cases import Cases, case, cases
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import no_loop

__all__ = ["block_cosines", "block_forward", "block_parameters", "block_stack", "block_stream"]

_KEEP = "Each branch's result is added to the stream; here the stream itself was lost."


# Branches and norms small enough to follow by hand, and with a name that a report can show.


def _named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


_double, _square = _named("double", lambda x: x * 2.0), _named("square", lambda x: x * x)
_halve, _minus_one = _named("halve", lambda x: x / 2.0), _named("minus_one", lambda x: x - 1.0)
_same, _nothing = _named("same", lambda x: x), _named("nothing", lambda x: x * 0.0)
_mean = _named("mean_so_far", lambda x: x.cumsum(axis=0) / np.arange(1, len(x) + 1)[:, None])


# The stream ----------------------------------------------------------------------------------


def _stream(x: Any, branches: Any, kept: float = 1.0) -> list[Any]:
    stream = [x]
    for branch in branches:
        stream.append(kept * stream[-1] + branch(stream[-1]))
    return stream


_WRONG_STREAMS = [
    (partial(_stream, kept=0.0), _KEEP),
    (lambda x, branches: [_stream(x, branches)[-1]] * (len(branches) + 1),
        "`+=` writes into the array that is already in the list."),
]  # fmt: skip


@exercise(points=1, reference=_stream, mistakes=_WRONG_STREAMS)
def block_stream(answer: Any) -> Cases:
    """Check the list of the stream before and after each branch."""
    x, (wide,) = np.array([1.0, 2.0]), drawn((2, 3))
    both = "Add what the branch returns to the stream; the list holds x and that sum."
    second = "The second branch reads the stream that the first has added to."
    yield from cases(answer, {
        "one branch": (both, x, [_double]),
        "two branches": (second, x, [_double, _square]),
        "no branch": ("Then the list holds x alone.", x, []),
        "three branches": (second, wide, [_square, _minus_one, _halve]),
        "seven branches": (second, wide, [_minus_one, _halve, _square, _halve] + [_minus_one] * 3),
    })  # fmt: skip


# Parameters ----------------------------------------------------------------------------------


def _parameters(d: int, ratio: int, bias: int = 1, norms: int = 2) -> int:
    return d * d * (4 + 2 * ratio) + d * (5 + ratio) * bias + 2 * d * norms


_MISCOUNTED = [
    (partial(_parameters, bias=0), "Each of six matrices has a bias, as long as what it returns."),
    (partial(_parameters, norms=0), "The two norms are parameters too: a scale and a shift each."),
    (partial(_parameters, norms=1), "There are two norms, and each has a scale and a shift."),
    (lambda d, ratio: _parameters(d, ratio) + (ratio - 1) * d,
        "The second bias of the MLP is d long, as what its matrix returns."),
]  # fmt: skip


@exercise(points=2, reference=_parameters, mistakes=_MISCOUNTED)
def block_parameters(answer: Any) -> Cases:
    """Check the number of parameters of a block."""
    hint = "Four matrices d x d, one d x (ratio d), one back, six biases and two norms."
    yield case("d = 2, ratio 1", answer, 2, 1, hint=hint)
    hint = "The hidden layer has ratio * d elements, and so has the first bias of the MLP."
    for d, ratio in ((2, 4), (64, 4), (48, 3), (768, 4), (1, 8)):
        yield case(f"d = {d}, ratio {ratio}", answer, d, ratio, hint=hint)


# The stack -----------------------------------------------------------------------------------


def _stack(x: Any, branches: Any, norm: Any, last: bool = True, stream: Any = np.positive) -> Any:
    """The stack; `stream` is what happens to the stream itself before a branch adds to it."""
    for branch in branches:
        x = stream(x) + branch(norm(x))
    return norm(x) if last else x


_LAST = "The norm at the end is still needed: nothing else normalises the stream."
_WRONG_STACKS = [
    (partial(_stack, last=False), _LAST),
    (lambda x, branches, norm: _stack(x, branches, norm, stream=norm),
        "The branch added nothing, and yet the stream is not what it was before it."),
    (lambda x, branches, norm: norm(_stream(x, branches)[-1]),
        "The branch reads the normalised stream, norm(x). In post-norm order it would not."),
    (partial(_stack, stream=np.zeros_like), _KEEP),
    (lambda x, bs, norm: norm(x + sum(b(norm(x)) for b in bs)), "Norm again before each branch."),
]  # fmt: skip


@exercise(points=2, reference=_stack, mistakes=_WRONG_STACKS)
def block_stack(answer: Any) -> Cases:
    """Check a pre-norm stack of branches with a norm at the end."""
    x, (wide,) = np.array([4.0, 8.0]), drawn((2, 3), seed=1)
    add = "Add branch(norm(x)) to the stream as it is."
    yield from cases(answer, {
        "a branch that adds nothing": ("The last norm acts on the stream.", x, [_nothing], _halve),
        "a branch that squares": (add, x, [_square], _halve),
        "three branches": (add, wide, [_square, _double, _square], _minus_one),
        "no branch": (_LAST, wide, [], _minus_one),
        "seven branches": (add, wide, [_halve, _minus_one, _double] + [_halve] * 4, _minus_one),
    })  # fmt: skip


# The block -----------------------------------------------------------------------------------


def _block(x: Any, norm1: Any, attention: Any, norm2: Any, mlp: Any, pre_norm: bool) -> Any:
    if pre_norm:
        x = x + attention(norm1(x))
        return x + mlp(norm2(x))
    x = norm1(x + attention(x))
    return norm2(x + mlp(x))


def _normed_stream(x: Any, norm1: Any, attention: Any, norm2: Any, mlp: Any, pre: bool) -> Any:
    stream = norm2(norm1(x) + attention(norm1(x)))
    return stream + mlp(stream)


_PRE = "That is pre-norm order, norms inside the branches; look at `pre_norm`."
_POST = "That is post-norm order; look at `pre_norm`."
_WRONG_BLOCKS = [
    (lambda x, n1, a, n2, m, pre: _block(x, n1, a, n2, m, True), _PRE),
    (lambda x, n1, a, n2, m, pre: _block(x, n1, a, n2, m, False), _POST),
    (lambda x, n1, a, n2, m, pre: x + a(n1(x)) + m(n2(x)),
        "The MLP reads the stream after attention has added to it, not its input."),
    (_normed_stream, "The norm belongs to the branch: x itself is added as it is."),
    (lambda x, n1, a, n2, m, pre: m(n2(a(n1(x)))), _KEEP),
    (lambda x, n1, a, n2, m, pre: n2(m(n1(a(x)))), _KEEP),
    (lambda x, n1, a, n2, m, pre: _block(x, _same, a, _same, m, pre), "The norms are missing."),
    (lambda x, n1, a, n2, m, pre: _block(x, n1, a, _same, m, pre), "The MLP has a norm too."),
    (lambda x, n1, a, n2, m, pre: _block(x, n2, a, n1, m, pre), "norm1 goes with attention."),
]  # fmt: skip


@exercise(points=3, reference=_block, mistakes=_WRONG_BLOCKS)
def block_forward(answer: Any) -> Cases:
    """Check a block in both orders, made of given parts."""
    (larger,), (real,) = drawn((3, 4), seed=2), drawn((2, 5, 8), seed=3)
    hint = "Two additions: attention to x, then the MLP to that sum. Where do the norms go?"
    given = "Use the parts as they are given, and the + of tensors."
    for what, (advice, *parts) in {
        "numbers to follow by hand":
            (hint, np.array([[2.0, 4.0], [6.0, 8.0]]), _halve, _mean, _halve, _square),
        "two different norms": (hint, larger, _halve, _mean, _minus_one, _square),
        "the parts of the package": (given, Tensor(real), *_layers()),
    }.items():  # fmt: skip
        yield case(f"pre-norm, {what}", answer, *parts, True, hint=advice)
        yield case(f"post-norm, {what}", answer, *parts, False, hint=advice)


def _layers() -> tuple[Any, ...]:
    """The four parts of a block of width 8, the norms with a scale of their own."""
    norm1, norm2, rng = LayerNorm(8), LayerNorm(8), np.random.default_rng(4)
    norm1.gamma.data, norm2.gamma.data = 0.5 * norm1.gamma.data, 2.0 * norm2.gamma.data
    return norm1, MultiHeadAttention(8, 2, rng=rng), norm2, MLP(8, 32, 0.0, rng=rng)


# Cosines -------------------------------------------------------------------------------------


def _cosines(x: Any, y: Any) -> Any:
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


@exercise(points=1, reference=_cosines, rules=[no_loop])
def block_cosines(answer: Any) -> Cases:
    """Check the cosines between the tokens of two streams."""
    both = "Divide the scalar product of each pair of tokens by both of their lengths."
    for shape in ((3, 4), (5,), (2, 1, 4), (4, 1), (2, 2, 30, 50)):
        yield case(f"compares tokens of shape {shape}", answer, *drawn(shape, shape), hint=both)
    x = drawn((2, 3))[0]
    yield case("is 1 for a stream that is only longer", answer, x, 10 * x, hint=both)
    bare = "Nothing is added to a length: beside that of a tiny token it would count."
    yield case("compares tiny tokens", answer, 1e-6 * x, 1e-6 * drawn((2, 3), seed=1)[0], hint=bare)
