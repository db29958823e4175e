"""Checks for the chapter "The transformer block"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.layers import LayerNorm
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import MLP

__all__ = ["block_forward", "block_parameters", "block_stack", "block_stream"]

_MLP_READS = "The MLP reads the stream after attention has added to it, not what came in."
_KEEP = "Each branch's result is added to the stream; here the stream itself got lost."


# Branches and norms small enough to follow by hand, and with a name that a report can show.


def _double(x: Any) -> Any:
    return x * 2.0


def _square(x: Any) -> Any:
    return x * x


def _halve(x: Any) -> Any:
    return x / 2.0


def _minus_one(x: Any) -> Any:
    return x - 1.0


def _nothing(x: Any) -> Any:
    return x * 0.0


def _mean_so_far(x: Any) -> Any:
    """The mean of each row and those above it: attention with equal weights."""
    return np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None]


for _function in (_double, _square, _halve, _minus_one, _nothing, _mean_so_far):
    _function.__name__ = _function.__name__.lstrip("_")


@exercise(points=1)
def block_stream(answer: Callable[[Any, Any], Any]) -> Iterator[Case]:
    """Check the list of the stream before and after each branch.

    Example:
        >>> def stream(x, branches):
        ...     return [x] + (stream(x + branches[0](x), branches[1:]) if branches else [])
        >>> bool(block_stream(stream))
        True
        >>> bool(block_stream(lambda x, branches: [x] + [branch(x) for branch in branches]))
        False
    """
    x = np.array([1.0, 2.0])
    hint = "Add what the branch returns to the stream; the list holds x and that sum."
    mistakes: list[tuple[Any, str]] = [
        ([[1.0, 2.0], [2.0, 4.0]], _KEEP),
        ([[3.0, 6.0]], "The list begins with x itself."),
        ([3.0, 6.0], "Return the whole list, beginning with x."),
        ([[3.0, 6.0], [3.0, 6.0]], "`+=` writes into the array that is already in the list."),
    ]
    yield case(
        "one branch",
        answer,
        x,
        [_double],
        expected=[np.array([1.0, 2.0]), np.array([3.0, 6.0])],
        mistakes=mistakes,
        hint=hint,
    )
    hint = "The second branch reads the stream that the first has added to."
    yield case(
        "two branches",
        answer,
        x,
        [_double, _square],
        expected=[np.array([1.0, 2.0]), np.array([3.0, 6.0]), np.array([12.0, 42.0])],
        hint=hint,
    )
    yield case("no branch", answer, x, [], expected=[x], hint="Then the list holds x alone.")
    x = np.random.default_rng(0).normal(size=(2, 3))
    branches = [_square, _minus_one, _halve]
    expected = [x]
    for branch in branches:
        expected.append(expected[-1] + branch(expected[-1]))
    yield case("three branches", answer, x, branches, expected=expected, hint=hint)


@exercise(points=2)
def block_parameters(answer: Callable[[int, int], Any]) -> Iterator[Case]:
    """Check the number of parameters of a block.

    Example:
        >>> bool(block_parameters(lambda d, ratio: d * d * (4 + 2 * ratio) + d * (9 + ratio)))
        True
        >>> bool(block_parameters(lambda d, ratio: 12 * d * d))
        False
    """
    hint = "Four matrices d x d, one d x (ratio d), one back, six biases and two norms."
    mistakes = [
        (32, "Each of the six matrices has a bias, as long as what it returns."),
        (36, "The two norms are parameters too: a scale and a shift each."),
        (40, "There are two norms, and each has a scale and a shift."),
        (24, "The matrices are right. Add six biases and two norms."),
    ]
    yield case("d = 2, ratio 1", answer, 2, 1, expected=44, mistakes=mistakes, hint=hint)
    hint = "The hidden layer has ratio * d elements, and so has the first bias of the MLP."
    yield case("d = 2, ratio 4", answer, 2, 4, expected=74, hint=hint)
    for d, ratio in ((64, 4), (48, 3), (768, 4)):
        expected = d * d * (4 + 2 * ratio) + d * (9 + ratio)
        yield case(f"d = {d}, ratio {ratio}", answer, d, ratio, expected=expected, hint=hint)


@exercise(points=2)
def block_stack(answer: Callable[[Any, Any, Any], Any]) -> Iterator[Case]:
    """Check a pre-norm stack of branches with a norm at the end.

    Example:
        >>> def stack(x, branches, norm):
        ...     for branch in branches:
        ...         x = x + branch(norm(x))
        ...     return norm(x)
        >>> bool(block_stack(stack))
        True
        >>> bool(block_stack(lambda x, branches, norm: norm(x)))
        False
    """
    x = np.array([4.0, 8.0])
    last = "The norm at the end is still needed: nothing else normalises the stream."
    mistakes = [
        (x / 4, "The branch added nothing, and yet the stream is not what it was before it."),
        (x, last),
    ]
    hint = "Only the last norm acts on the stream itself."
    expected = np.array([2.0, 4.0])
    yield case(
        "a branch that adds nothing",
        answer,
        x,
        [_nothing],
        _halve,
        expected=expected,
        mistakes=mistakes,
        hint=hint,
    )
    mistakes = [
        (np.array([10.0, 36.0]), "The branch reads the normalised stream, norm(x)."),
        (np.array([8.0, 24.0]), last),
        (np.array([2.0, 8.0]), _KEEP),
    ]
    hint = "Add branch(norm(x)) to the stream as it is."
    expected = np.array([4.0, 12.0])
    yield case(
        "a branch that squares",
        answer,
        x,
        [_square],
        _halve,
        expected=expected,
        mistakes=mistakes,
        hint=hint,
    )
    x = np.random.default_rng(1).normal(size=(2, 3))
    branches = [_square, _double, _square]
    stream = x
    for branch in branches:
        stream = stream + branch(stream - 1)
    yield case("three branches", answer, x, branches, _minus_one, expected=stream - 1, hint=hint)


def _block(parts: tuple[Any, ...], pre_norm: bool) -> Any:
    x, norm1, attention, norm2, mlp = parts
    if pre_norm:
        x = x + attention(norm1(x))
        return x + mlp(norm2(x))
    x = norm1(x + attention(x))
    return norm2(x + mlp(x))


def _mistaken_blocks(parts: tuple[Any, ...], pre_norm: bool) -> list[tuple[Any, str]]:
    """What comes of the usual wrong turns, with a hint for each."""
    x, norm1, attention, norm2, mlp = parts
    between = x + attention(norm1(x))
    normed = norm1(x)
    on_stream = norm2(normed + attention(normed))
    other = "pre-norm order, norms inside the branches" if not pre_norm else "post-norm order"
    return [
        (_block(parts, not pre_norm), f"That is {other}; look at `pre_norm`."),
        (x + attention(norm1(x)) + mlp(norm2(x)), _MLP_READS),
        (on_stream + mlp(on_stream), "The norm belongs to the branch: x itself is added as it is."),
        (mlp(norm2(attention(norm1(x)))), _KEEP),
        (norm2(mlp(norm1(attention(x)))), _KEEP),
        (x + attention(x) + mlp(x + attention(x)), "The norms are missing."),
        (between + mlp(between), "The second branch has a norm too."),
    ]


@exercise(points=3)
def block_forward(answer: Callable[[Any, Any, Any, Any, Any, bool], Any]) -> Iterator[Case]:
    """Check a block in both orders, made of given parts.

    Example:
        >>> def block(x, norm1, attention, norm2, mlp, pre_norm):
        ...     if pre_norm:
        ...         x = x + attention(norm1(x))
        ...         return x + mlp(norm2(x))
        ...     x = norm1(x + attention(x))
        ...     return norm2(x + mlp(x))
        >>> bool(block_forward(block))
        True
        >>> bool(block_forward(lambda x, norm1, attention, norm2, mlp, pre_norm: x))
        False
    """
    hint = "Two additions: attention to x, then the MLP to that sum. Where do the norms go?"
    small = np.array([[2.0, 4.0], [6.0, 8.0]]), _halve, _mean_so_far, _halve, _square
    x = np.random.default_rng(2).normal(size=(3, 4))
    larger = x, _halve, _mean_so_far, _minus_one, _square
    for parts, what in ((small, "numbers to follow by hand"), (larger, "two different norms")):
        for pre_norm in (True, False):
            yield case(
                f"{'pre' if pre_norm else 'post'}-norm, {what}",
                answer,
                *parts,
                pre_norm,
                expected=_block(parts, pre_norm),
                mistakes=_mistaken_blocks(parts, pre_norm),
                hint=hint,
            )
    real = Tensor(np.random.default_rng(3).normal(size=(2, 5, 8))), *_layers()
    for pre_norm in (True, False):
        yield case(
            f"{'pre' if pre_norm else 'post'}-norm, the parts of the package",
            answer,
            *real,
            pre_norm,
            expected=_block(real, pre_norm),
            hint="Use the parts as they are given, and + between tensors.",
        )


def _layers() -> tuple[LayerNorm, MultiHeadAttention, LayerNorm, MLP]:
    """The four parts of a block of width 8, the norms with a scale of their own."""
    norms = LayerNorm(8), LayerNorm(8)
    for norm, scale in zip(norms, (0.5, 2.0), strict=True):
        norm.gamma.data *= scale
    attention = MultiHeadAttention(8, 2, rng=np.random.default_rng(4))
    return norms[0], attention, norms[1], MLP(8, 32, 0.0, rng=np.random.default_rng(5))
