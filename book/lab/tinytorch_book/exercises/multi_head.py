"""Checks for the exercises of the chapter on multi-head attention."""

from functools import partial
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.attention import MultiHeadAttention, causal_mask
from tinytorch.core.tensor import Tensor
from tinytorch_book.exercises.cases import Cases, NotYet, alone, case, cases, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.gpt import lively, lively_gpt
from tinytorch_book.exercises.normalisation_and_mlp import built, gradients_of
from tinytorch_book.exercises.rules import Rule, functions_of, no_loop, package_only
from tinytorch_book.exercises.scaled_dot_product import attention

__all__ = ["heads_attention", "heads_output_without", "heads_owner", "heads_predict",
           "heads_side_by_side"]  # fmt: skip

_PAIR = np.array([[1.0, 0.0], [0.0, 1.0]])  # two tokens, d = 2


@exercise(points=1)
def heads_predict(answer: dict[str, Any]) -> Cases:
    """Check six predictions about `MultiHeadAttention(64, 4)` with 10 queries and 7 keys."""
    count, every = 4 * (64 * 64 + 64), "Every query of every head has a weight for each key."
    order = "The axis of the heads moves in front of the positions."
    yield from predictions(answer, {
        "queries, split": (
            (2, 4, 10, 16), "Batch, heads, queries, d / h.", ((2, 10, 4, 16), order)),
        "values, split": ((2, 4, 7, 16), "There is one value for each key.",
            ((2, 7, 4, 16), order), ((2, 4, 10, 16), "Values come from the other sequence.")),
        "weights": ((2, 4, 10, 7), every, ((2, 4, 7, 10), "Rows are queries, columns keys.")),
        "output": ((2, 10, 64), "Each query gets one vector, the heads merged."),
        "parameters": (count, "Four projections: count all.",
            (4 * 64 * 64, "Four matrices of (d, d), and each has a bias.")),
        "parameters with 8 heads": (count, "More heads divide the same matrices."),
    })  # fmt: skip


# Side by side --------------------------------------------------------------------------------


def _heads(q: Any, k: Any, v: Any, num_heads: int, root: Any = None, one: Any = attention) -> Any:
    """Attention head by head, merged, for `(T, d)`; scores over the square root of `root`."""
    q = q * np.sqrt(q.shape[1] / num_heads / root) if root else q
    split = (np.split(x, num_heads, axis=1) for x in (q, k, v))
    return np.concatenate([one(*head) for head in zip(*split, strict=True)], axis=1)


_WRONG_HEADS = [
    (lambda q, k, v, h: _heads(q, k, v, h, q.shape[1]),
        "Divide by the root of the number of terms in a head's dot product."),
    (lambda q, k, v, h: _heads(q, k, v, h, h),
        "Here is one head of two numbers: divide by the root of 2, the length of a head."),
    (lambda q, k, v, h: _heads(q, k, v, 1), "That is a single head of the whole length."),
    (lambda q, k, v, h: _heads(k, q, v, h), "Rows of scores are queries, columns are keys."),
    (partial(_heads, one=lambda q, k, v: attention(k, q, np.eye(len(q))).T @ v),
        "Softmax along the keys: the weights of each query sum to 1."),
]  # fmt: skip


@exercise(points=2, reference=_heads, mistakes=_WRONG_HEADS)
def heads_side_by_side(answer: Any) -> Cases:
    """`answer(q, k, v, num_heads)` is attention in several heads, merged, all `(T, d)`."""
    pair = _PAIR, _PAIR, np.diag([8.0, 4.0])
    six, two, eight, wide, many = drawn((3, 5, 6), (3, 5, 6), (3, 4, 8), (3, 3, 24), (3, 50, 32))
    usual = "Scores over the root of the length, softmax along the keys, times the values."
    own = "Each head: its own slice of columns, and the root of the slice's width under its scores."
    large = "exp(1000) is too large for a float: functional.softmax subtracts the largest first."
    yield from cases(answer, {
        "one head is attention as you know it": (usual, *pair, 1),
        "two heads of one number each": (own, *pair, 2),
        "two heads of three numbers": (own, *six, 2),
        "three heads of two numbers": (own, *two, 3),
        "as many heads as tokens": (own, *eight, 4),
        "six heads of four numbers": (own, *wide, 6),
        "fifty tokens": (own, *many, 8),
        "scores in the thousands": (large, *(100 * six), 2),
    })  # fmt: skip


# One head switched off -----------------------------------------------------------------------


def _without(merged: Any, weight: Any, bias: Any, num_heads: int, head: int) -> np.ndarray:
    return (merged * (_head_of(merged, num_heads) != head)) @ weight + bias


def _head_of(merged: np.ndarray, num_heads: int) -> np.ndarray:
    """To which head each column belongs, `(d,)`."""
    return np.arange(merged.shape[1]) // (merged.shape[1] // num_heads)


_WRONG_WITHOUT = [
    (lambda m, w, b, h, i: m @ w + b, "All heads are still heard."),
    (lambda m, w, b, h, i: _without(m, w, 0 * b, h, i), "The bias belongs to no head; add it."),
    (lambda m, w, b, h, i: m @ w + 2 * b - _without(m, w, b, h, i),
        "That is this head alone, and the others should stay."),
    (lambda m, w, b, h, i: m @ (w * (_head_of(m, h) != i)) + b,
        "A head owns *rows* of the weight, columns belong to outputs."),
    (lambda m, w, b, h, i: (m * (np.arange(m.shape[1]) % h != i)) @ w + b,
        "A head is a run of neighbouring columns, not every h-th one."),
    (lambda m, w, b, h, i: _without(m, w.T, b, h, i), "The product is `merged @ weight`."),
]  # fmt: skip


@exercise(points=2, reference=_without, mistakes=_WRONG_WITHOUT)
def heads_output_without(answer: Any) -> Cases:
    """`answer(merged, weight, bias, num_heads, head)` is the output if a head returns zeros."""
    readable = np.array([[1.0, 2.0, 3.0, 4.0]]), np.eye(4), np.zeros(4)
    larger, wide = drawn((5, 6), (6, 6), 6, seed=1), drawn((3, 96), (96, 96), 96)
    hint = "Head i is the i-th slice of d / h columns of `merged`."
    only = "No other head is left: every one of the T rows is the bias, and the shape stays (T, d)."
    yield from cases(answer, {
        "without the first of two heads": (hint, *readable, 2, 0),
        "without the last of two heads": (hint, *readable, 2, 1),
        "keeps the bias": (hint, *readable[:2], np.full(4, 10.0), 2, 0),
        "without the middle one of three": (hint, *larger, 3, 1),
        "without one of six": (hint, *larger, 6, 4),
        "the only head": (only, *larger, 1, 0),
        "a head of eight numbers": (hint, *wide, 12, 10),
    })  # fmt: skip


# A layer of the reader's own -----------------------------------------------------------------


class _Slip(MultiHeadAttention):
    """Our layer with the mistakes that one makes here."""

    def __init__(self, embed_dim: int, num_heads: int, slips: str) -> None:
        super().__init__(embed_dim, num_heads)
        self.slips = slips

    def forward(self, query: Any, *others: Any, mask: Any = None, **options: Any) -> Tensor:
        (B, T, _), h, parts = query.shape, self.num_heads, []
        for project in (self.q_proj, self.k_proj, self.v_proj):
            y = project(query)
            split = y.reshape(B, T, h, -1).permute(0, 2, 1, 3)  # (B, h, T, d/h)
            parts.append(y.reshape(B, h, T, -1) if "reshaped" in self.slips else split)
        parts[0] = parts[0] * h**-0.5 if "wide" in self.slips else parts[0]
        mixed = functional.attention(*parts, mask=None if "unmasked" in self.slips else mask)
        merged = mixed if "unmoved" in self.slips else mixed.permute(0, 2, 1, 3)
        merged = merged.reshape(*query.shape)
        return merged if "unprojected" in self.slips else self.out_proj(merged)


_RESHAPED = "A reshape alone mixes the tokens: split the last axis, then move the heads."
_UNMOVED = "Before the last reshape, move the heads back behind the positions."
_ONE = "That is one head of the whole length: use `num_heads` for the split."
_SLIPS = [
    (partial(_Slip, slips="reshaped"), _RESHAPED),
    (partial(_Slip, slips="reshaped, unmoved"), _RESHAPED),
    (partial(_Slip, slips="unmoved"), _UNMOVED),
    (partial(_Slip, slips="unprojected"), "The merged heads still have to pass through out_proj."),
    (lambda embed_dim, num_heads, *rest: MultiHeadAttention(embed_dim, 1), _ONE),
    (partial(_Slip, slips="unmasked"), "The mask is not used."),
    (partial(_Slip, slips="wide"), "Divide the scores by the root of the length of a head, d / h."),
]


def _calls(answer: Any) -> str:
    called = any(function.__name__ == "attend_at_once" for function in functions_of(answer))
    return "it calls attend_at_once" if called else ""


def _makes(module: str, called: Any) -> str:
    ours = called is MultiHeadAttention.__init__.__code__
    return "it makes a MultiHeadAttention" if ours else ""


_LAYER = "Write the layer yourself, as a Module, from tensors."
OWN = [package_only(_LAYER, "tinytorch.core", "tinytorch.models"), Rule(_LAYER, _calls, _makes)]


def _layer(answer: Any, embed_dim: int, num_heads: int, plain: bool = False) -> Any:
    """The reader's layer with lively weights; with `plain`, every projection changes nothing."""
    state = lively(MultiHeadAttention(embed_dim, num_heads)).state_dict()
    for name, value in state.items() if plain else ():
        state[name] = np.eye(embed_dim) if value.ndim == 2 else np.zeros(embed_dim)
    layer = built(answer, embed_dim, num_heads)
    layer.load_state_dict(state)
    return layer


def _output(answer: Any, x: Any, num_heads: int, mask: Any = None, plain: bool = False) -> Any:
    return _layer(answer, x.shape[-1], num_heads, plain)(Tensor(x), mask=mask)


def _gradients(answer: Any, x: Any) -> Any:
    return gradients_of(_layer(answer, x.shape[-1], 2), x, np.ones(x.shape))


@exercise(3, _SLIPS, stub="forward", reference=MultiHeadAttention, rules=OWN, run=_output)
def heads_attention(answer: Any) -> Cases:
    """Check a `Module` class of self-attention with the parameters of `MultiHeadAttention`."""
    plain = "Here every projection returns its input, so the output is the merged heads."
    hint = "Split all three, attend in every head, undo the split, then out_proj."
    masked = "The mask is added to the scores as it is: 0 keeps a pair, -inf blocks it."
    cut = "Compute with tensors from end to end: .data and .numpy() leave the gradient behind."
    built_as = "Models build it as (embed_dim, num_heads, dropout) and call it with mask=."
    small, batch, wide, x = map(np.float32, drawn((1, 3, 4), (3, 5, 8), (2, 4, 12), (2, 3, 4)))
    through = alone(run=partial(_output, plain=True))
    # another order of the same steps rounds differently, and gradients add up
    summed, ids = alone(run=_gradients, rtol=1e-3, show_expected=False), np.array([[1, 2, 6]])
    model = alone(run=lambda answer, ids: lively_gpt(7, 4, 2, 2, 5, attention=answer)(ids))
    yield from cases(answer, {
        "one head, plain projections": (plain, _PAIR[None], 1, through),
        "two heads, plain projections": (plain, _PAIR[None], 2, through),
        "two heads of two numbers": (hint, small, 2, None),
        "two heads and a causal mask": (masked, small, 2, causal_mask(3)),
        "a batch and four heads": (hint, batch, 4, causal_mask(5)),
        "three heads of four numbers": (hint, wide, 3, None),
        "gradients reach every parameter": (cut, x, summed),
        "takes the place of ours in a model": (built_as, ids, model),
    }, rtol=1e-4)  # fmt: skip


def _integers(result: Any) -> Any:
    if np.asarray(result).dtype.kind == "f":
        raise NotYet("floats, where integers are needed: divide with //")
    return result


@exercise(points=1, reference=lambda d, h: np.arange(d) // (d // h), rules=[no_loop])
def heads_owner(answer: Any) -> Cases:
    """Check which head reads each column."""
    run = "A head owns d/h neighbouring columns: divide the number of the column by that."
    for d, h in ((6, 2), (6, 3), (8, 1), (4, 4), (12, 3), (10, 5), (768, 12)):
        claim = f"shares {d} columns among {h}"
        yield case(claim, answer, d, h, hint=run, part=("heads", _integers))
