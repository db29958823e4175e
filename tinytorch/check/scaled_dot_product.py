"""Checks for the chapter "Scaled dot-product attention"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise
from tinytorch.core import functional
from tinytorch.core.attention import causal_mask

__all__ = [
    "attend_causal_mask",
    "attend_masked_weights",
    "attend_memory",
    "attend_numpy",
    "attend_score_gradient",
]

_BLOCK = -np.inf


@exercise(points=2)
def attend_causal_mask(answer: Callable[[int, int], Any]) -> Iterator[Case]:
    """Check a causal mask whose queries are the last of the keys.

    Example:
        >>> right = lambda n, m: np.triu(np.full((n, m), -np.inf), k=m - n + 1)
        >>> bool(attend_causal_mask(right))
        True
        >>> bool(attend_causal_mask(lambda n, m: np.triu(np.full((n, m), -np.inf), k=1)))
        False
    """
    square = np.array([[0, _BLOCK, _BLOCK], [0, 0, _BLOCK], [0, 0, 0]])
    seen = square == 0
    added = "The mask is added to the scores: 0 keeps a pair, -inf blocks it."
    mistakes = [
        (seen, added),
        (~seen, added),
        (seen * 1.0, added),
        (~seen * 1.0, added),
        (np.where(seen, 0, -1e9), "Block with -inf: no other number gives a weight of exactly 0."),
        (square.T, "This one hides the past. The columns are the keys: block those to the right."),
        (np.where(np.eye(3), _BLOCK, square), "A token may look at itself: the diagonal is kept."),
        (np.where(np.eye(3, k=1), 0, square), "One too many: each token sees the next one."),
    ]
    hint = "Rows are queries, columns are keys; block every key that stands after its query."
    yield case(
        "three queries, three keys",
        answer,
        3,
        3,
        expected=square,
        hint=hint,
        mistakes=mistakes,
    )
    hint = "A single query is the last of the keys, so none of them comes after it."
    shape = "One row for each query, one column for each key."
    yield case(
        "one query, four keys",
        answer,
        1,
        4,
        expected=np.zeros((1, 4)),
        hint=hint,
        mistakes=[(causal_mask(4), shape), (causal_mask(1), shape)],
    )
    for queries, keys in [(2, 4), (3, 7)]:
        first = keys - queries
        stands = np.arange(keys) - first  # of each key, counted from the first query
        expected = np.where(stands > np.arange(queries)[:, None], _BLOCK, 0.0)
        hint = f"Here query 0 stands at position {first}."
        yield case(
            f"{queries} queries, {keys} keys",
            answer,
            queries,
            keys,
            expected=expected,
            hint=hint,
        )


def _sigmoid(score: float) -> np.ndarray:
    """The weight of the first of two keys with the scores `score` and 0."""
    return np.array([[1 / (1 + np.exp(-score))]])


@exercise(points=3)
def attend_numpy(answer: Callable[[Any, Any, Any, Any], Any]) -> Iterator[Case]:
    """Check attention written in NumPy.

    Example:
        >>> bool(attend_numpy(lambda q, k, v, mask: functional.attention(q, k, v, mask=mask)))
        True
        >>> bool(attend_numpy(lambda q, k, v, mask: functional.softmax(q @ k.T + mask) @ v))
        False
    """
    q, k = np.array([[2.0, 0.0, 0.0, 0.0]]), np.eye(4)[:2]
    v, open_ = np.array([[1.0], [0.0]]), np.zeros((1, 2))
    yield case(
        "one query, two keys",
        answer,
        q,
        k,
        v,
        open_,
        expected=_sigmoid(1.0),
        hint="The scores are 1 and 0 here, after the division.",
        mistakes=[
            (_sigmoid(2.0), "Divide the scores by the square root of d, the length of a query."),
            (_sigmoid(0.5), "That divides by d; it is the square root of d."),
            (np.ones((1, 1)), "The softmax runs over the keys, the last axis of the scores."),
            (_sigmoid(1 / 2**0.5), "d is the length of a query, here 4, not the number of keys."),
        ],
    )
    yield from _masked_cases(answer)
    yield case(
        "scores of a thousand",
        answer,
        np.array([[4000.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]]),
        k,
        v,
        np.zeros((2, len(k))),
        expected=_rows_of(4000.0, 2.0, k, v),
        hint="exp(2000) overflows. Subtract each row's own largest score first.",
    )
    rng = np.random.default_rng(2)
    q, k, v = (rng.normal(size=(2, 3, n, d)) for n, d in [(4, 5), (6, 5), (6, 7)])
    mask = np.where(rng.random((4, 6)) < 0.3, _BLOCK, 0.0)
    yield case(
        "batch and heads, more keys than queries",
        answer,
        q,
        k,
        v,
        mask,
        expected=functional.attention(q, k, v, mask=mask).data,
        hint="Swap the last two axes of k and no others; d is the last axis of q.",
    )


def _masked_cases(answer: Callable[[Any, Any, Any, Any], Any]) -> Iterator[Case]:
    """Equal scores, so that the weights can be seen: first a causal mask, then a blocked row."""
    q, v = np.zeros((2, 4)), np.array([[2.0], [4.0]])
    yield case(
        "adds the mask before the softmax",
        answer,
        q,
        q,
        v,
        causal_mask(2),
        expected=np.array([[2.0], [3.0]]),
        hint="Query 0 may see key 0 alone, so it gets value 0; query 1 gets the mean of both.",
        mistakes=[
            (np.array([[1.0], [3.0]]), "Masked after the softmax, row 0 sums to one half only."),
            (np.array([[3.0], [3.0]]), "The mask has had no effect."),
            (np.array([[3.0], [4.0]]), "Blocked and kept are exchanged: 0 keeps, -inf blocks."),
        ],
    )
    mask = np.array([[_BLOCK, _BLOCK], [0.0, 0.0]])
    yield case(
        "gives zeros to a query with everything blocked",
        answer,
        q,
        q,
        v,
        mask,
        expected=np.array([[0.0], [3.0]]),
        hint="The largest score of such a row is -inf: subtract 0 there, and divide by 1.",
    )


@exercise(points=2)
def attend_masked_weights(answer: Callable[[Any, Any], Any]) -> Iterator[Case]:
    """Check attention weights under a mask.

    Example:
        >>> bool(attend_masked_weights(lambda s, mask: functional.softmax(s + mask)))
        True
        >>> bool(attend_masked_weights(lambda s, mask: functional.softmax(s).data * (mask == 0)))
        False
    """
    scores, mask = np.zeros((2, 2)), causal_mask(2)
    yield case(
        "each row sums to one",
        answer,
        scores,
        mask,
        expected=np.array([[1.0, 0.0], [0.5, 0.5]]),
        hint="The row must be shared out among the keys that are kept.",
        mistakes=[
            (
                np.array([[0.5, 0.0], [0.5, 0.5]]),
                "The first row sums to one half: the blocked score is still in the denominator.",
            )
        ],
    )
    yield case(
        "a blocked score of a thousand changes nothing",
        answer,
        np.array([[0.0, 1000.0], [0.0, 0.0]]),
        mask,
        expected=np.array([[1.0, 0.0], [0.5, 0.5]]),
        hint="After the softmax it is too late: the kept weights have been rounded to zero. "
        "Block before it.",
    )
    scores = np.random.default_rng(3).normal(size=(2, 5, 5))
    mask = causal_mask(5)
    yield case(
        "a batch",
        answer,
        scores,
        mask,
        expected=functional.softmax(scores + mask).data,
        hint="The mask is broadcast over the axes in front.",
    )


@exercise(points=2)
def attend_score_gradient(answer: Callable[[Any, Any, Any], Any]) -> Iterator[Case]:
    """Check the gradient of the scores that go into the softmax of attention.

    Example:
        >>> bool(attend_score_gradient(lambda w, v, g: w * (g @ v.swapaxes(-1, -2))))
        False
    """
    unequal = np.array([[0.25, 0.75]])
    v = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    g = np.array([[4.0, 0.0, 0.0, 0.0]])
    yield case(
        "two keys of unequal weight",
        answer,
        unequal,
        v,
        g,
        expected=np.array([[0.75, -0.75]]),
        hint="The gradient of the weights is [4, 0] here, and its weighted mean is 1.",
        mistakes=[
            (np.array([[1.0, 0.0]]), "The row sum is missing: one weight grows at another's cost."),
            (np.array([[4.0, 0.0]]), "That is the gradient of the weights: go on to the scores."),
            (np.array([[3.0, -1.0]]), "Multiply by the weight of each key."),
            (np.array([[0.0, -3.0]]), "The sum takes each gradient times its own weight."),
            (np.array([[0.5, -1.5]]), "Weight the mean: each gradient times its own weight."),
            (np.array([[0.375, -0.375]]), "These scores are already divided by the root of d."),
        ],
    )
    yield case(
        "equal values",
        answer,
        np.array([[0.25, 0.75]]),
        np.full((2, 4), 3.0),
        g,
        expected=np.zeros((1, 2)),
        hint="If all values are equal the weights do not matter, so no score does.",
    )
    rng = np.random.default_rng(4)
    for claim, front in [("three queries, causal", ()), ("a batch", (2,))]:
        scores, v, g = (rng.normal(size=(*front, 3, n)) for n in (3, 2, 2))
        w = functional.softmax(scores + causal_mask(3)).data.astype(np.float64)
        o = w @ v
        expected = w * ((g[..., None, :] * (v[..., None, :, :] - o[..., None, :])).sum(axis=-1))
        yield case(
            claim,
            answer,
            w,
            v,
            g,
            expected=expected,
            hint="One sum for each query: over the last axis, which is kept (keepdims).",
        )


@exercise(points=1)
def attend_memory(answer: dict[str, Any]) -> Iterator[Case]:
    """Check the predicted MiB of attention weights.

    Example:
        >>> attend_memory({"1 sequence, 12 heads, T = 1024, float32": 4})
        attend_memory: not yet
          [ ] 1 sequence, 12 heads, T = 1024, float32
              came      4
              hint      Every head has a table of its own.
    """
    results = {
        "1 sequence, 12 heads, T = 1024, float32": (48, "Every head has a table of its own."),
        "8 sequences, 12 heads, T = 1024, float32": (384, "So does every sequence."),
        "8 sequences, 12 heads, T = 512, float32": (96, "Half the length: a quarter of the table."),
        "1 sequence, 1 head, T = 8192, float16": (
            128,
            "Eight times the length of the table of 4 MiB, and two bytes for each number.",
        ),
    }
    for name, (result, hint) in results.items():
        predicted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(name, predicted, expected=result, hint=hint, show_expected=False)


def _rows_of(first: float, second: float, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What two queries along the first axis receive, the larger one from its best key alone."""
    rows = []
    for length in (first, second):
        scores = length * k[:, 0] / k.shape[1] ** 0.5
        weights = np.exp(scores - scores.max())
        rows.append(weights @ v / weights.sum())
    return np.array(rows)
