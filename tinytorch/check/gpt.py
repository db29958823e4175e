"""Checks for the chapter "GPT"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise
from tinytorch.check.rules import in_numpy
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.layers import LayerNorm
from tinytorch.core.tensor import Tensor, no_grad
from tinytorch.models.transformer import GPT

__all__ = ["gpt_assembled", "gpt_is_causal", "gpt_num_parameters", "gpt_tied_gradient"]


# The gradient of a tied table ----------------------------------------------------------------


def _tied_gradient(ids: Any, g_in: Any, x: Any, g_logits: Any) -> Any:
    return g_logits.T @ x + np.eye(g_logits.shape[1])[ids].T @ g_in


_ONE_USE = [
    (lambda ids, g_in, x, g: _tied_gradient(ids, g_in, x, 0 * g), "The output is a use as well."),
    (lambda ids, g_in, x, g: g.T @ x, "The lookup is a use as well."),
]


@exercise(points=2, reference=_tied_gradient, mistakes=_ONE_USE, rules=[in_numpy])
def gpt_tied_gradient(answer: Callable[[Any, Any, Any, Any], Any]) -> Iterator[Case]:
    """Check the gradient of a table that is both the lookup and the output.

    Example:
        >>> bool(gpt_tied_gradient(_tied_gradient))
        True
        >>> bool(gpt_tied_gradient(lambda ids, g_in, x, g_logits: g_logits.T @ x))
        False
    """
    ids = np.array([2, 0])
    g_in, x = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    g_logits = np.array([[1.0, 0.0, -1.0], [0.0, 2.0, -2.0]])
    hint = "Row ids[t] of the table was read at t: it receives g_in[t]."
    yield case("the lookup alone", answer, ids, g_in, x, np.zeros((2, 3)), hint=hint)
    hint = "logits = x @ table.T, so the table's part is g_logits.T @ x."
    yield case("the output alone", answer, ids, 0 * g_in, x, g_logits, hint=hint)
    hint = "The table is used twice; its gradient is the sum of both parts."
    yield case("both uses", answer, ids, g_in, x, g_logits, hint=hint)
    rng = np.random.default_rng(0)
    for claim, read, V, d in (
        ("a token read again", [1, 3, 1, 1], 5, 3),
        ("more positions than tokens", [0, 1, 1, 0, 0, 1], 2, 4),
    ):
        g_in, x = rng.normal(size=(2, len(read), d))
        g_logits = rng.normal(size=(len(read), V))
        hint = "table[ids] += g adds once for a row named several times; np.add.at adds all."
        yield case(claim, answer, np.array(read), g_in, x, g_logits, hint=hint)


# Counting ------------------------------------------------------------------------------------


def _count(
    V: int, d: int, L: int, T: int, ratio: int, tied: bool,
    norms: int = 1, positions: int = 1, untied: int = 1, bias: int = 0,
) -> int:  # fmt: skip
    block = 4 * d * d + 4 * d + 2 * ratio * d * d + ratio * d + d + 4 * d
    output = 0 if tied else V * d * untied + V * bias
    return V * d + output + T * d * positions + L * block + 2 * d * norms


_MISCOUNTED = [
    (lambda V, d, L, T, ratio, tied: _count(V, d, L, T, 4, tied),
        "The MLP is mlp_ratio times as wide inside, not 4 times."),
    (partial(_count, norms=0), "The last norm, after the blocks, has parameters as well."),
    (partial(_count, norms=2), "Each block has two norms, and one more comes at the end."),
    (partial(_count, positions=0), "The positions are learned: a table of T rows."),
    (partial(_count, untied=0), "Untied, the output is a matrix of its own, (d, V)."),
    (partial(_count, bias=1), "The output has no bias."),
]  # fmt: skip


@exercise(points=2, reference=_count, mistakes=_MISCOUNTED)
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
    block = "Count a block by its matrices and its vectors: four, two, and two norms."
    for claim, size, tied, hint in (
        ("d = 1, one block", (15, 1, 1, 5, 4), True,
            "With d = 1: 20 in the tables, 8 in attention, 13 in the MLP, 4 in its norms, 2 at "
            "last."),
        ("V, d, L, T, ratio = 65, 64, 2, 32, 4", (65, 64, 2, 32, 4), True, block),
        ("V, d, L, T, ratio = 7, 8, 3, 5, 2", (7, 8, 3, 5, 2), True, block),
        ("an untied output", (7, 8, 3, 5, 2), False,
            "Untied, the output is a matrix of its own, (d, V), without a bias."),
        ("GPT-2 small", (50257, 768, 12, 1024, 4), True, "Compute it from the arguments."),
    ):  # fmt: skip
        yield case(claim, answer, *size, tied, hint=hint)


# A test for causality ------------------------------------------------------------------------

_OWN_ROWS = "A token may move its own logits and later ones: compare only the rows before it."
_IN_VOCABULARY = "Another token must be in the vocabulary, whose size is logits.shape[1]."


@exercise(points=3)
def gpt_is_causal(answer: Callable[[Callable[[Any], Any], Any], Any]) -> Iterator[Case]:
    """Check a test for causality on models that look ahead and on some that do not.

    Example:
        >>> def right(model, ids):
        ...     V = model(ids).shape[1]
        ...     seen = lambda t: np.where(np.arange(len(ids)) < t, ids, (ids + 1) % V)
        ...     rows = range(len(ids))
        ...     return all(np.allclose(model(seen(t + 1))[t], model(ids)[t]) for t in rows)
        >>> bool(gpt_is_causal(right))
        True
        >>> bool(gpt_is_causal(lambda model, ids: True))
        False
    """
    ids, with_zero = np.array([0, 3, 1, 4]), np.array([1, 3, 0, 4])
    for claim, model, read, causal, hint in (
        ("clears an honest model", reads_the_past, ids, True, _OWN_ROWS),
        ("finds a full leak", reads_everything, ids, False,
            "Change token t and look at the logits of all positions before t."),
        ("finds one step ahead", reads_the_next, ids, False,
            "Here position t sees t + 1 and no more. Look at row t - 1 as well when you change t."),
        ("finds a far look", first_reads_the_last, ids, False,
            "Here only position 0 looks ahead, at the last token. Compare all earlier rows."),
        ("finds a single leak", one_leaks, with_zero, False,
            "Here only position 1 looks ahead, at token 2. Change every token in its turn."),
        ("forgives rounding", reads_and_rounds, ids, True,
            "Compare with np.allclose: floating-point sums may differ in the last digits."),
        ("clears a single token", reads_the_past, ids[1:2], True, _OWN_ROWS),
    ):  # fmt: skip
        yield case(claim, answer, model, read, expected=causal, hint=hint)
    hint = "In each model one row reads one later token: change that token, compare that row."
    for V, strength, claim in (
        (2, 1.0, "finds each of 28 leaks, two tokens to choose from"),
        (9, 1e-3, "and in a larger vocabulary, though each is faint"),
    ):
        text = np.random.default_rng(V).integers(V, size=8)
        yield case(
            claim, answer, text, V, strength, expected=[False] * 28, run=_verdicts,
            hint=hint, mistakes=[(IndexError, _IN_VOCABULARY)],
        )  # fmt: skip
    ids = np.array([0, 0, 2, 5, 1])
    honest, leaking = _real(MultiHeadAttention), _real(_Unmasked)
    yield case("a real GPT", answer, honest, ids, expected=True, hint=_IN_VOCABULARY)
    hint = "This GPT drops its mask in attention."
    yield case("a leaking GPT", answer, leaking, ids, expected=False, hint=hint)


def _features(ids: Any, V: int = 5) -> np.ndarray:
    """A vector `(T, V)` for each token and its position."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.min() < 0 or ids.max() >= V:
        raise IndexError(f"ids must be one sequence of numbers in 0..{V - 1}, got {ids.tolist()}")
    return np.eye(V)[ids] * (1 + np.arange(len(ids))[:, None])


def reads_the_past(ids: Any) -> np.ndarray:
    """A toy model: logits are sums of what has been read."""
    return _features(ids).cumsum(axis=0)


def reads_everything(ids: Any) -> np.ndarray:
    """The same, over the whole sequence."""
    return reads_the_past(ids) + _features(ids).sum(axis=0)


def reads_the_next(ids: Any) -> np.ndarray:
    """The past, and the token after it."""
    return reads_the_past(ids) + np.vstack([_features(ids)[1:], np.zeros((1, 5))])


def first_reads_the_last(ids: Any) -> np.ndarray:
    """The past, but position 0 sees the last token."""
    return reads_the_past(ids) + np.eye(len(ids))[:, :1] * _features(ids)[-1]


def one_leaks(ids: Any) -> np.ndarray:
    """The past, but position 1 sees token 2."""
    return reads_the_past(ids) + np.eye(len(ids))[:, 1:2] * _features(ids)[2]


def reads_and_rounds(ids: Any) -> np.ndarray:
    """The past, with an error in the last digits that depends on everything."""
    return reads_the_past(ids) + 1e-10 * _features(ids).sum(axis=0)


def _verdicts(answer: Any, ids: Any, V: int, strength: float) -> Any:
    """What the answer says of each model in which one row reads one later token."""

    def one_row_reads_ahead(ids: Any, row: int, token: int) -> np.ndarray:
        logits = _features(ids, V).cumsum(axis=0)
        logits[row] += strength * _features(ids, V)[token]
        return logits

    leaks = [{"row": row, "token": token} for token in range(len(ids)) for row in range(token)]
    return [answer(partial(one_row_reads_ahead, **leak), ids.copy()) for leak in leaks]


class _Unmasked(MultiHeadAttention):
    def forward(self, query: Any, *others: Any, mask: Any = None, **options: Any) -> Tensor:
        return super().forward(query, *others, **options)


def _real(attention: Any) -> Callable[[Any], np.ndarray]:
    model = lively_gpt(6, 8, 2, 2, 5, attention=attention)

    def gpt(ids: Any) -> np.ndarray:
        with no_grad():
            return np.array(model(ids).data)

    return gpt


def lively(model: Any) -> Any:
    """Give a model of ours weights so large that every connection shows."""
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        parameter.data = rng.normal(0.0, 0.5, size=parameter.shape)
    return model


def lively_gpt(*sizes: int, **parts: Any) -> GPT:
    """A GPT with a part of the reader's, and lively weights that do not depend on it."""
    model = GPT(*sizes, **parts)
    model.load_state_dict(lively(GPT(*sizes)).state_dict())
    return model


# A model of the reader's own -----------------------------------------------------------------


class DoubledNorm(LayerNorm):
    """A norm that shows whether it is used."""

    def forward(self, x: Any) -> Tensor:
        """Twice the usual."""
        return super().forward(x) * 2


class HalvedAttention(MultiHeadAttention):
    """An attention that shows whether it is used."""

    def forward(self, *inputs: Any, **options: Any) -> Tensor:
        """Half the usual."""
        return super().forward(*inputs, **options) * 0.5


class _PassOn(LayerNorm):
    def forward(self, x: Any) -> Tensor:
        return x


def _logits(answer: Any, V: int, d: int, layers: int, heads: int, T: int, parts: Any) -> Any:
    """What the reader's model computes with our weights."""
    sizes = V, d, layers, heads, T
    own = answer(*sizes, **parts)
    if own is None or own is ...:
        return own
    own.load_state_dict(lively(GPT(*sizes, **parts)).state_dict())
    return np.asarray(own(np.random.default_rng(1).integers(V, size=(2, T - 1))).data)


def _built(last: Any = None, masked: bool = True, **used: bool) -> Callable[..., GPT]:
    """Our model with one of the mistakes: parts that are not used, no mask, another last norm."""

    def build(*sizes: int, **parts: Any) -> GPT:
        own = {name: part for name, part in parts.items() if used.get(name, True)}
        model = GPT(*sizes, **(own if masked else {**own, "attention": _Unmasked}))
        model.ln_f = last(sizes[1]) if last else parts.get("norm", LayerNorm)(sizes[1])
        return model

    return build


_MASK = "Every block needs mask=causal_mask(T); without it, tokens see the future."
_WRONG_MODELS = [
    (_built(masked=False), _MASK),
    (_built(masked=False, last=_PassOn), _MASK),
    (_built(last=_PassOn), "The output reads ln_f(x), not x."),
    (_built(LayerNorm, norm=False, attention=False), "Pass norm= and attention= on to the blocks."),
    (_built(last=LayerNorm), "ln_f is a norm too: norm(d)."),
    (_built(norm=False), "The blocks have norms as well."),
    (_built(attention=False), "Pass attention= on to the blocks."),
]


@exercise(points=3, reference=GPT, mistakes=_WRONG_MODELS, run=_logits)
def gpt_assembled(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check a GPT assembled by the reader against ours, with the same weights.

    The answer is called as `answer(V, d, layers, heads, T)`, and with `norm=` and `attention=`.

    Example:
        >>> bool(gpt_assembled(GPT))
        True
        >>> bool(gpt_assembled(lambda *sizes, **parts: GPT(*sizes)))
        False
    """
    hint = "Two tables, the blocks, and a norm at the end."
    yield case(
        "two blocks have the parameters of two", answer, 7, 8, 2, 2, 6, hint=hint,
        run=lambda build, *sizes: build(*sizes),
        part=("number of parameters", lambda model: sum(p.size for p in model.parameters())),
        mistakes=[(lambda V, d, layers, *rest: GPT(V, d, 1, *rest),
            "[block] * 2 is the same block twice: make two.")],
    )  # fmt: skip
    hint = "Compare yours with MyGPT, line by line, names included."
    for claim, sizes, parts in (
        ("one block gives our logits", (7, 8, 1, 2, 6), {}),
        ("so do two", (7, 8, 2, 2, 6), {}),
        ("and three, in other sizes", (11, 12, 3, 4, 9), {}),
        ("the norm is the one passed", (7, 8, 2, 2, 6), {"norm": DoubledNorm}),
        ("the attention is the one passed", (7, 8, 2, 2, 6), {"attention": HalvedAttention}),
    ):
        yield case(claim, answer, *sizes, parts, hint=hint, rtol=1e-4)
