"""Checks for the exercises of the chapter on multi-head attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, NotYet, case, exercise
from tinytorch.core import functional
from tinytorch.core.attention import MultiHeadAttention, causal_mask
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import GPT

__all__ = [
    "heads_attention",
    "heads_output_without",
    "heads_predict",
    "heads_side_by_side",
]

_PAIR = np.array([[1.0, 0.0], [0.0, 1.0]])  # two tokens, d = 2


@exercise(points=1)
def heads_predict(answer: dict[str, Any]) -> Iterator[Case]:
    """Check six predictions about `MultiHeadAttention(64, 4)` with 10 queries and 7 keys.

    Args:
        answer: the predictions by name.

    Example:
        >>> heads_predict({"queries, split": (2, 10, 4, 16)})
        heads_predict: not yet
          [ ] queries, split
              came      (2, 10, 4, 16)
              hint      The axis of the heads moves in front of the positions.
        >>> bool(heads_predict({}))
        False
    """
    count = 4 * (64 * 64 + 64)
    order = "The axis of the heads moves in front of the positions."
    weights = "Every query of every head has a weight for each key."
    biases = "Four matrices of (d, d), and each has a bias."
    divided = "More heads divide the same matrices."
    results: dict[str, tuple[Any, str, list[tuple[Any, str]]]] = {
        "queries, split": (
            (2, 4, 10, 16),
            "Batch, heads, queries, d / h.",
            [((2, 10, 4, 16), order)],
        ),
        "values, split": (
            (2, 4, 7, 16),
            "There is one value for each key.",
            [((2, 7, 4, 16), order), ((2, 4, 10, 16), "Values come from the other sequence.")],
        ),
        "weights": ((2, 4, 10, 7), weights, [((2, 4, 7, 10), "Rows are queries, columns keys.")]),
        "output": ((2, 10, 64), "Each query gets one vector, the heads merged.", []),
        "parameters": (count, "Four projections: count all.", [(4 * 64 * 64, biases)]),
        "parameters with 8 heads": (count, divided, []),
    }  # fmt: skip
    for name, (result, hint, mistakes) in results.items():
        predicted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(
            name, predicted, expected=result, hint=hint, mistakes=mistakes, show_expected=False
        )


@exercise(points=2)
def heads_side_by_side(answer: Callable[[Any, Any, Any, int], Any]) -> Iterator[Case]:
    """Check attention in several heads, merged, for queries, keys and values `(T, d)`.

    Args:
        answer: `answer(q, k, v, num_heads)`.

    Example:
        >>> bool(heads_side_by_side(lambda q, k, v, h: _heads(q, k, v, h)))
        True
        >>> bool(heads_side_by_side(lambda q, k, v, h: _heads(q, k, v, 1)))
        False
        >>> bool(heads_side_by_side(lambda q, k, v, h: ...))
        False
    """
    values = np.array([[8.0, 0.0], [0.0, 4.0]])
    yield case(
        "one head is attention as you know it",
        answer,
        _PAIR,
        _PAIR,
        values,
        1,
        expected=_heads(_PAIR, _PAIR, values, 1),
        hint="Scores over the root of the length, softmax along the keys, times the values.",
    )
    yield from _cases_of_several_heads(answer, values)


def _cases_of_several_heads(answer: Any, values: np.ndarray) -> Iterator[Case]:
    """Two small heads, then larger ones."""
    whole = "Divide by the root of the number of terms in a head's dot product."
    rng = np.random.default_rng(0)
    for claim, (q, k, v), h in (
        ("two heads of one number each", (_PAIR, _PAIR, values), 2),
        ("two heads of three numbers", tuple(rng.normal(size=(3, 5, 6))), 2),
        ("three heads of two numbers", tuple(rng.normal(size=(3, 5, 6))), 3),
        ("as many heads as tokens", tuple(rng.normal(size=(3, 4, 8))), 4),
    ):
        yield case(
            claim,
            answer,
            q,
            k,
            v,
            h,
            expected=_heads(q, k, v, h),
            hint="Each head has the columns of its own slice, in queries, keys and values.",
            mistakes=[
                (_heads(q, k, v, h, scale=q.shape[1]), whole),
                (_heads(q, k, v, h, scale=h), "The number of heads is not the length of a head."),
                (_heads(q, k, v, h, scale=1), "The scores are not divided by any root."),
                (_heads(q, k, v, 1), "That is a single head of the whole length."),
            ],
        )


@exercise(points=2)
def heads_output_without(answer: Callable[[Any, Any, Any, int, int], Any]) -> Iterator[Case]:
    """Check the output of an attention layer whose head number `head` returns zeros.

    Args:
        answer: `answer(merged, weight, bias, num_heads, head)`.

    Example:
        >>> def without(merged, weight, bias, num_heads, head):
        ...     of_head = np.arange(merged.shape[1]) // (merged.shape[1] // num_heads)
        ...     return (merged * (of_head != head)) @ weight + bias
        >>> bool(heads_output_without(without))
        True
        >>> bool(heads_output_without(lambda merged, weight, bias, n, i: merged @ weight + bias))
        False
    """
    rng = np.random.default_rng(1)
    merged = np.array([[1.0, 2.0, 3.0, 4.0]])
    readable = merged, np.eye(4), np.zeros(4)
    small = merged, np.eye(4), np.full(4, 10.0)
    larger = rng.normal(size=(5, 6)), rng.normal(size=(6, 6)), rng.normal(size=6)
    cases: list[tuple[str, tuple[Any, Any, Any], int, int]] = [
        ("without the first of two heads", readable, 2, 0),
        ("without the last of two heads", readable, 2, 1),
        ("keeps the bias", small, 2, 0),
        ("without the middle one of three", larger, 3, 1),
        ("without one of six", larger, 6, 4),
        ("the only head", larger, 1, 0),
    ]
    for claim, given, h, head in cases:
        yield case(
            claim,
            answer,
            *given,
            h,
            head,
            expected=_without(*given, h, head),
            hint="Head i is the i-th slice of d / h columns of `merged`.",
            mistakes=_slips_without(*given, h, head),
        )


def _without(
    merged: np.ndarray, weight: np.ndarray, bias: np.ndarray, h: int, head: int
) -> np.ndarray:
    size = merged.shape[1] // h
    others = [slice(i * size, (i + 1) * size) for i in range(h) if i != head]
    return sum((merged[:, own] @ weight[own] for own in others), start=bias + 0 * merged[:, :1])


def _slips_without(
    merged: np.ndarray, weight: np.ndarray, bias: np.ndarray, h: int, head: int
) -> list[tuple[Any, str]]:
    """What comes of the mistakes that one makes here, and what to say about each."""
    columns = weight.copy()
    columns[:, np.arange(len(weight)) // (len(weight) // h) == head] = 0.0
    strided = np.where(np.arange(len(weight)) % h == head, 0.0, merged)
    return [
        (merged @ weight + bias, "All heads still speak."),
        (_without(merged, weight, 0 * bias, h, head), "The bias belongs to no head; add it."),
        (merged @ weight + bias - _without(merged, weight, 0 * bias, h, head),
            "That is this head alone, and the others should stay."),
        (merged @ columns + bias, "A head owns *rows* of the weight, columns belong to outputs."),
        (strided @ weight + bias, "A head is a run of neighbouring columns, not every h-th one."),
    ]  # fmt: skip


@exercise(points=3)
def heads_attention(answer: Callable[[int, int], Any]) -> Iterator[Case]:
    """Check a layer of multi-head self-attention with the parameters of `MultiHeadAttention`.

    Args:
        answer: a `Module` class, called as `answer(embed_dim, num_heads, dropout_prob)`; its layer
            as `layer(x, mask=mask)`.

    Example:
        >>> bool(heads_attention(MultiHeadAttention))
        True
        >>> class Empty(MultiHeadAttention):
        ...     def forward(self, x, mask=None): ...
        >>> bool(heads_attention(Empty))
        False
    """

    def output(x: Any, num_heads: int, mask: Any) -> Any:
        return _layer(answer, _copy_of(x.shape[-1], num_heads))(Tensor(x), mask=mask)

    yield from _cases_of_plain_weights(answer)
    for claim, shape, h, masked in (
        ("two heads of two numbers", (1, 3, 4), 2, False),
        ("two heads and a causal mask", (1, 3, 4), 2, True),
        ("a batch and four heads", (3, 5, 8), 4, True),
    ):
        x = np.random.default_rng(5).normal(size=shape).astype(np.float32)
        mask = causal_mask(shape[1]) if masked else None
        yield case(
            claim,
            output,
            x,
            h,
            mask,
            expected=_copy_of(shape[-1], h)(x, mask=mask),
            hint="Split all three, attend in every head, undo the split, then out_proj.",
            mistakes=_slips_of_attention(x, h, mask),
        )
    yield from _cases_of_use(answer)


def _cases_of_plain_weights(answer: Any) -> Iterator[Case]:
    """Projections that leave everything as it is, so that the numbers can be followed."""

    def output(x: Any, num_heads: int) -> Any:
        return _layer(answer, _plain(2, num_heads))(Tensor(x))

    for claim, h in (("one head, plain projections", 1), ("two heads, plain projections", 2)):
        yield case(
            claim,
            output,
            _PAIR[None],
            h,
            expected=_heads(_PAIR, _PAIR, _PAIR, h)[None],
            hint="Here every projection returns its input, so the output is the merged heads.",
            mistakes=[(_heads(_PAIR, _PAIR, _PAIR, 3 - h)[None], "Use `num_heads` for the split.")],
        )


def _cases_of_use(answer: Any) -> Iterator[Case]:
    """Gradients, and a whole model with the layer in it."""

    def gradients(x: Any) -> Any:
        layer = _layer(answer, _copy_of(4, 2))
        came = layer(Tensor(x))
        if not isinstance(came, Tensor):
            raise NotYet("a result that is no Tensor, so no gradient can flow")
        if not came.requires_grad:
            raise NotYet("a Tensor that requires no gradient: it was cut from its operands")
        came.sum().backward()
        return [np.zeros(p.shape) if p.grad is None else p.grad for p in _named(layer).values()]

    def logits(ids: Any) -> Any:
        theirs = GPT(7, 4, 2, 2, 5, attention=answer)
        theirs.load_state_dict(GPT(7, 4, 2, 2, 5, rng=0).state_dict())
        return theirs(ids)

    x = np.random.default_rng(6).normal(size=(2, 3, 4)).astype(np.float32)
    layer = _copy_of(4, 2)
    layer(x).sum().backward()
    yield case(
        "gradients reach every parameter",
        gradients,
        x,
        expected=[p.grad for p in _named(layer).values()],
        rtol=1e-3,  # another order of the same steps rounds differently, and these add up
        hint="Compute with tensors from end to end: .data and .numpy() leave the gradient behind.",
    )
    ids = np.array([[1, 2, 3, 1, 6]])
    yield case(
        "takes the place of ours in a model",
        logits,
        ids,
        expected=GPT(7, 4, 2, 2, 5, rng=0)(ids),
        hint="Models build it as (embed_dim, num_heads, dropout) and call it with mask=.",
    )


def _heads(q: Any, k: Any, v: Any, num_heads: int, scale: float | None = None) -> np.ndarray:
    """Attention head by head, merged, for `(T, d)`; scores over the root of `scale`."""
    size = q.shape[1] // num_heads
    outputs = []
    for i in range(num_heads):
        own = slice(i * size, (i + 1) * size)
        scores = q[:, own] @ k[:, own].T / np.sqrt(size if scale is None else scale)
        outputs.append(functional.softmax(scores).numpy() @ v[:, own])
    return np.concatenate(outputs, axis=1)


def _copy_of(embed_dim: int, num_heads: int) -> MultiHeadAttention:
    """Our layer with weights and biases that are always the same, none of them zero."""
    layer = MultiHeadAttention(embed_dim, num_heads)
    rng = np.random.default_rng(4)
    for parameter in layer.parameters():
        parameter.data[...] = rng.normal(size=parameter.shape)
    return layer


def _plain(embed_dim: int, num_heads: int) -> MultiHeadAttention:
    """Our layer with projections that return their input."""
    layer = MultiHeadAttention(embed_dim, num_heads)
    for parameter in layer.parameters():
        parameter.data[...] = np.eye(embed_dim) if parameter.ndim == 2 else 0.0
    return layer


def _layer(answer: Any, like: MultiHeadAttention) -> Any:
    """The reader's layer with the weights of ours."""
    if not isinstance(answer, type):
        raise NotYet(f"{answer!r}, which is not a class")
    layer = answer(like.embed_dim, like.num_heads)
    layer.load_state_dict(like.state_dict())
    return layer


def _named(layer: Any) -> dict[str, Any]:
    return dict(sorted(layer.named_parameters()))


def _slips_of_attention(x: np.ndarray, num_heads: int, mask: Any) -> list[tuple[Any, str]]:
    """What comes of the mistakes that one makes here, and what to say about each."""

    def run(split: bool = True, merge: bool = True, out: bool = True, masked: bool = True) -> Any:
        layer = _copy_of(x.shape[-1], num_heads)
        batch, seq, d = x.shape

        def parts(y: Tensor) -> Tensor:
            if not split:
                return y.reshape(batch, num_heads, seq, -1)
            return y.reshape(batch, seq, num_heads, -1).permute(0, 2, 1, 3)

        q, k, v = (parts(p(x)) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
        mixed = functional.attention(q, k, v, mask=mask if masked else None)
        mixed = mixed.permute(0, 2, 1, 3) if merge else mixed
        merged = mixed.reshape(batch, seq, d)
        return layer.out_proj(merged) if out else merged

    shortcut = "A reshape alone mixes the tokens: split the last axis, then move the heads."
    slips = [
        (run(split=False), shortcut),
        (run(split=False, merge=False), shortcut),
        (run(merge=False), "Before the last reshape, move back the heads behind the positions."),
        (run(out=False), "The merged heads still have to pass through out_proj."),
        (_copy_of(x.shape[-1], 1)(x, mask=mask), "That is one head of the whole length."),
    ]
    return slips + ([] if mask is None else [(run(masked=False), "The mask is not used.")])
