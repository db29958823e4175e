"""Checks for the chapter "GPT"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, NotYet, case, exercise
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.layers import LayerNorm
from tinytorch.core.tensor import Tensor, no_grad
from tinytorch.models.transformer import GPT

__all__ = ["gpt_assembled", "gpt_is_causal", "gpt_num_parameters", "gpt_tied_gradient"]


# The gradient of a tied table ----------------------------------------------------------------


@exercise(points=2)
def gpt_tied_gradient(answer: Callable[[Any, Any, Any, Any], Any]) -> Iterator[Case]:
    """Check the gradient of a table that is both the lookup and the output.

    Example:
        >>> def right(ids, g_in, x, g_logits):
        ...     return g_logits.T @ x + np.eye(g_logits.shape[1])[ids].T @ g_in
        >>> bool(gpt_tied_gradient(right))
        True
        >>> bool(gpt_tied_gradient(lambda ids, g_in, x, g_logits: g_logits.T @ x))
        False
    """
    ids = np.array([2, 0])
    g_in, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    g_logits = np.array([[1.0, 0.0, -1.0], [0.0, 2.0, -2.0]])
    nothing, given = np.zeros((2, 3)), (ids, g_in, x)
    lookup = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]])
    hint = "Row ids[t] of the table was read at t: it receives g_in[t]."
    yield case("the lookup alone", answer, *given, nothing, expected=lookup, hint=hint)
    output = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -2.0]])
    hint = "logits = x @ table.T, so the table's part is g_logits.T @ x."
    yield case("the output alone", answer, ids, 0 * g_in, x, g_logits, expected=output, hint=hint)
    yield case(
        "both uses",
        answer,
        *given,
        g_logits,
        expected=lookup + output,
        hint="The table is used twice; its gradient is the sum of both parts.",
        mistakes=[(lookup, "The output is a use as well."), (output, "So is the lookup.")],
    )
    rng = np.random.default_rng(0)
    ids = np.array([1, 3, 1, 1])  # read more than once
    g_in, x, g_logits = (rng.normal(size=size) for size in ((4, 3), (4, 3), (4, 5)))
    expected = g_logits.T @ x + np.eye(5)[ids].T @ g_in
    hint = "table[ids] += g adds once for a row that is named several times; np.add.at adds all."
    yield case("a token read again", answer, ids, g_in, x, g_logits, expected=expected, hint=hint)


# Counting ------------------------------------------------------------------------------------


@exercise(points=2)
def gpt_num_parameters(answer: Callable[[int, int, int, int, int, bool], Any]) -> Iterator[Case]:
    """Check the number of parameters of a GPT.

    Example:
        >>> def right(V, d, L, T, r, tied):
        ...     block = (4 + 2 * r) * d * d + (9 + r) * d
        ...     return V * d * (2 - tied) + T * d + L * block + 2 * d
        >>> bool(gpt_num_parameters(right))
        True
        >>> bool(gpt_num_parameters(lambda V, d, L, T, r, tied: 12 * L * d * d + V * d))
        False
    """
    hint = "With d = 1: 20 in the tables, 8 in attention, 13 in the MLP, 4 in its norms, 2 at last."
    yield case("d = 1, one block", answer, 15, 1, 1, 5, 4, True, expected=47, hint=hint)
    for size in ((65, 64, 2, 32, 4), (7, 8, 3, 5, 2)):
        expected = _count(*size, True)
        mistakes = [
            (_count(*size[:4], 4, True), "The MLP is mlp_ratio times as wide inside, not 4 times."),
            (expected - 2 * size[1], "The last norm, after the blocks, has parameters as well."),
            (expected + 2 * size[1], "Each block has two norms, and one more comes at the end."),
            (expected - size[1] * size[3], "The positions are learned: a table of T rows."),
        ]
        hint = "Count a block by its matrices and its vectors: four, two, and two norms."
        yield case(
            f"V, d, L, T, ratio = {', '.join(map(str, size))}",
            answer,
            *size,
            True,
            expected=expected,
            hint=hint,
            mistakes=mistakes,
        )
    untied = _count(7, 8, 3, 5, 2, False)
    yield case(
        "an untied output",
        answer,
        *(7, 8, 3, 5, 2, False),
        expected=untied,
        hint="Untied, the output is a matrix of its own, (d, V), without a bias.",
        mistakes=[
            (untied - 56, "Untied, the output is a matrix of its own, (d, V)."),
            (untied + 7, "The output has no bias."),
        ],
    )
    hint = "Compute it from the arguments."
    small = (50257, 768, 12, 1024, 4, True)
    yield case("GPT-2 small", answer, *small, expected=124_439_808, hint=hint)


def _count(V: int, d: int, L: int, T: int, ratio: int, tied: bool) -> int:
    attention = 4 * d * d + 4 * d
    mlp = 2 * ratio * d * d + ratio * d + d
    return V * d * (1 if tied else 2) + T * d + L * (attention + mlp + 4 * d) + 2 * d


# A test for causality ------------------------------------------------------------------------


@exercise(points=3)
def gpt_is_causal(answer: Callable[[Callable[[Any], Any], Any], Any]) -> Iterator[Case]:
    """Check a test for causality on models that look ahead and on some that do not.

    Example:
        >>> def right(model, ids):
        ...     seen = lambda t: np.where(np.arange(len(ids)) < t, ids, (ids + 1) % 5)
        ...     rows = range(len(ids))
        ...     return all(np.allclose(model(seen(t + 1))[t], model(ids)[t]) for t in rows)
        >>> bool(gpt_is_causal(right))
        True
        >>> bool(gpt_is_causal(lambda model, ids: True))
        False
    """
    ids = np.array([0, 3, 1, 4])
    hint = "A token may move its own logits and later ones: compare only the rows before it."
    yield case("clears an honest model", answer, reads_the_past, ids, expected=True, hint=hint)
    hint = "Change token t and look at the logits of all positions before t."
    yield case("finds a full leak", answer, reads_everything, ids, expected=False, hint=hint)
    hint = "Here position t sees t + 1 and no more. Look at row t - 1 as well when you change t."
    yield case("finds one step ahead", answer, reads_the_next, ids, expected=False, hint=hint)
    hint = "Here only position 0 looks ahead, at the last token. Compare all earlier rows."
    yield case("finds a far look", answer, first_reads_the_last, ids, expected=False, hint=hint)
    hint = "Here only position 1 looks ahead, at token 2. Change every token in its turn."
    with_zero = np.array([1, 3, 0, 4])
    yield case("finds a single leak", answer, one_leaks, with_zero, expected=False, hint=hint)
    hint = "Compare with np.allclose: floating-point sums may differ in the last digits."
    yield case("forgives rounding", answer, reads_and_rounds, ids, expected=True, hint=hint)
    ids = np.array([0, 0, 2, 5, 1])
    hint = "Another token must be in the vocabulary, whose size is logits.shape[1]."
    yield case("a real GPT", answer, _real(MultiHeadAttention), ids, expected=True, hint=hint)
    hint = "This GPT drops its mask in attention."
    yield case("a leaking GPT", answer, _real(_Unmasked), ids, expected=False, hint=hint)


def _features(ids: Any) -> np.ndarray:
    """A vector `(T, 5)` for each token and its position."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.min() < 0 or ids.max() > 4:
        raise IndexError(f"ids must be one sequence of numbers in 0..4, got {ids.tolist()}")
    return np.eye(5)[ids] * (1 + np.arange(len(ids))[:, None])


def reads_the_past(ids: Any) -> np.ndarray:
    """A toy model: logits are sums of what has been read."""
    return _features(ids).cumsum(axis=0)


def reads_everything(ids: Any) -> np.ndarray:
    """The same, over the whole sequence."""
    return reads_the_past(ids) + _features(ids).sum(axis=0)


def reads_the_next(ids: Any) -> np.ndarray:
    """The past, and the token after it."""
    return reads_the_past(ids) + np.roll(_features(ids), -1, axis=0) * _not_last(ids)


def first_reads_the_last(ids: Any) -> np.ndarray:
    """The past, but position 0 sees the last token."""
    logits = reads_the_past(ids)
    logits[0] += _features(ids)[-1]
    return logits


def one_leaks(ids: Any) -> np.ndarray:
    """The past, but position 1 sees token 2."""
    logits = reads_the_past(ids)
    if len(ids) > 2:
        logits[1] += _features(ids)[2]
    return logits


def reads_and_rounds(ids: Any) -> np.ndarray:
    """The past, with an error in the last digits that depends on everything."""
    return reads_the_past(ids) + 1e-12 * _features(ids).sum(axis=0)


def _not_last(ids: Any) -> np.ndarray:
    return (np.arange(len(ids)) < len(ids) - 1)[:, None]


class _Unmasked(MultiHeadAttention):
    def forward(
        self, query: Any, key: Any = None, value: Any = None, mask: Any = None, cache: Any = None
    ) -> Tensor:
        return super().forward(query, key, value, cache=cache)


def _real(attention: Any) -> Callable[[Any], np.ndarray]:
    model = _lively(GPT(6, 8, 2, 2, 5, attention=attention))

    def gpt(ids: Any) -> np.ndarray:
        with no_grad():
            return np.array(model(ids).data)

    return gpt


def _lively(model: GPT) -> GPT:
    """Weights so large that every connection shows."""
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        parameter.data[...] = rng.normal(0.0, 0.5, size=parameter.shape)
    return model


# A model of the reader's own -----------------------------------------------------------------


@exercise(points=3)
def gpt_assembled(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check a GPT assembled by the reader against ours, with the same weights.

    The answer is called as `answer(V, d, layers, heads, T)`, and with `norm=` and `attention=`.

    Example:
        >>> bool(gpt_assembled(GPT))
        True
        >>> bool(gpt_assembled(lambda *sizes, **parts: GPT(*sizes)))
        False
    """
    sizes = (7, 8, 2, 2, 6)
    total = GPT(*sizes).num_parameters()["total"]
    block = GPT(7, 8, 1, 2, 6)
    yield case(
        "two blocks have the parameters of two",
        answer,
        *sizes,
        expected=total,
        part=("number of parameters", lambda model: sum(p.size for p in model.parameters())),
        hint="Two tables, the blocks, and a norm at the end.",
        mistakes=[
            (block.num_parameters()["total"], "[block] * 2 is the same block twice: make two."),
        ],
    )
    yield _same_logits("one block gives our logits", answer, (7, 8, 1, 2, 6), {})
    yield _same_logits("so do two", answer, sizes, {})
    yield _same_logits("the norm is the one passed", answer, sizes, {"norm": DoubledNorm})
    yield _same_logits(
        "the attention is the one passed", answer, sizes, {"attention": HalvedAttention}
    )


_IDS = np.array([[3, 1, 4, 1, 5], [0, 2, 6, 5, 3]])


class DoubledNorm(LayerNorm):
    """A norm that shows whether it is used."""

    def forward(self, x: Any) -> Tensor:
        """Twice the usual."""
        return super().forward(x) * 2


class HalvedAttention(MultiHeadAttention):
    """An attention that shows whether it is used."""

    def forward(
        self, query: Any, key: Any = None, value: Any = None, mask: Any = None, cache: Any = None
    ) -> Tensor:
        """Half the usual."""
        return super().forward(query, key, value, mask=mask, cache=cache) * 0.5


class _PassOn(LayerNorm):
    def forward(self, x: Any) -> Tensor:
        return x


def _same_logits(claim: str, answer: Any, sizes: tuple[int, ...], parts: dict[str, Any]) -> Case:
    """Load our weights into the reader's model and compare what both compute."""
    state = _lively(GPT(*sizes, **parts)).state_dict()

    def logits(model: Any) -> np.ndarray:
        try:
            model.load_state_dict(state)
            return np.asarray(model(_IDS).data)
        except Exception as error:
            raise NotYet(f"{type(error).__name__}: {error}") from None

    blind = {**parts, "attention": _Unmasked}
    mask_hint = "Every block needs mask=causal_mask(T); without it, tokens see the future."
    return case(
        claim,
        lambda *given: answer(*given[:5], **dict(zip(parts, given[5:], strict=True))),
        *sizes,
        *parts.values(),
        expected=_logits(state, sizes, parts),
        rtol=1e-4,
        part=("logits", logits),
        hint="Compare yours with MyGPT, line by line, names included.",
        mistakes=[
            (_logits(state, sizes, blind), mask_hint),
            (_logits(state, sizes, blind, last=_PassOn), mask_hint),
            (_logits(state, sizes, parts, last=_PassOn), "The output reads ln_f(x), not x."),
            (_logits(state, sizes, {}), f"Pass it on to the blocks: {', '.join(parts)}=."),
            (_logits(state, sizes, parts, last=LayerNorm), "ln_f is a norm too: norm(d)."),
            (_logits(state, sizes, {}, last=DoubledNorm), "The blocks have norms as well."),
        ],
    )


def _logits(
    state: dict[str, Any], sizes: tuple[int, ...], parts: dict[str, Any], last: Any = None
) -> np.ndarray:
    """What a GPT with these weights computes, with another last norm if one is given."""
    model = GPT(*sizes, **parts)
    if last is not None:
        model.ln_f = last(sizes[1])
    model.load_state_dict(state)
    return np.array(model(_IDS).data)
