"""The checks of "Scaled dot-product attention": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import causal_mask, functional
from tinytorch.check import scaled_dot_product as check


def nothing(*_):
    return None


def mask_of(queries, keys):
    return np.triu(np.full((queries, keys), -np.inf), k=keys - queries + 1)


def attend(q, k, v, mask):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask
    largest = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(largest), 0, largest))
    total = e.sum(axis=-1, keepdims=True)
    return (e / np.where(total == 0, 1, total)) @ v


def softmax(x):
    return functional.softmax(x).data


def transposed(x):
    return x.swapaxes(-1, -2)


def scores_of(q, k):
    return q @ transposed(k) / np.sqrt(q.shape[-1])


def overflowing(q, k, v, mask):
    with np.errstate(all="ignore"):
        e = np.exp(scores_of(q, k) + mask)
        total = e.sum(axis=-1, keepdims=True)
        return (e / np.where(total == 0, 1, total)) @ v


def without_blocked_rows(q, k, v, mask):
    scores = scores_of(q, k) + mask
    with np.errstate(all="ignore"):
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (e / e.sum(axis=-1, keepdims=True)) @ v


def renormalised(scores, mask):
    kept = np.where(mask == 0, softmax(scores), 0.0)
    with np.errstate(all="ignore"):
        return kept / kept.sum(axis=-1, keepdims=True)


def score_gradient(w, v, g):
    h = g @ transposed(v)
    return w * (h - (h * w).sum(axis=-1, keepdims=True))


def score_gradient_over_queries(w, v, g):
    h = g @ transposed(v)
    return w * (h - (h * w).sum(axis=-2, keepdims=True))


def score_gradient_of_one_sequence(w, v, g):
    h = g @ v.T
    return w * (h - (h * w).sum(axis=1, keepdims=True))


RIGHT = {
    check.attend_causal_mask: mask_of,
    check.attend_numpy: attend,
    check.attend_masked_weights: lambda scores, mask: softmax(scores + mask),
    check.attend_score_gradient: score_gradient,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)
    assert not checked(lambda *_: ...)


@pytest.mark.parametrize(
    ("checked", "wrong", "claim", "hint"),
    [
        (check.attend_causal_mask, lambda n, m: np.tril(np.ones((n, m))),
            "three queries, three keys", "added"),
        (check.attend_causal_mask, lambda n, m: mask_of(n, m).T,
            "three queries, three keys", "hides the past"),
        (check.attend_causal_mask, lambda n, m: np.triu(np.full((n, m), -np.inf)),
            "three queries, three keys", "look at itself"),
        (check.attend_causal_mask, lambda n, m: np.triu(np.full((n, m), -np.inf), k=2),
            "three queries, three keys", "sees the next one"),
        (check.attend_causal_mask, lambda n, m: np.triu(np.full((n, m), -1e9), k=1),
            "three queries, three keys", "-inf"),
        (check.attend_causal_mask, lambda n, m: causal_mask(m), "one query, four keys", "One row"),
        (check.attend_causal_mask, lambda n, m: np.triu(np.full((n, m), -np.inf), k=1),
            "one query, four keys", "last of the keys"),
        (check.attend_causal_mask, lambda n, m: causal_mask(3) if n == m else np.zeros((n, m)),
            "2 queries, 4 keys", "position 2"),
        (check.attend_numpy, lambda q, k, v, mask: softmax(q @ transposed(k) + mask) @ v,
            "one query, two keys", "square root"),
        (check.attend_numpy,
            lambda q, k, v, mask: softmax(q @ transposed(k) / q.shape[-1] + mask) @ v,
            "one query, two keys", "divides by d"),
        (check.attend_numpy,
            lambda q, k, v, mask: functional.softmax(scores_of(q, k) + mask, axis=-2).data @ v,
            "one query, two keys", "over the keys"),
        (check.attend_numpy,
            lambda q, k, v, mask: (softmax(scores_of(q, k)) * (mask == 0)) @ v,
            "adds the mask before the softmax", "one half"),
        (check.attend_numpy, lambda q, k, v, mask: softmax(scores_of(q, k)) @ v,
            "adds the mask before the softmax", "no effect"),
        (check.attend_numpy, without_blocked_rows,
            "gives zeros to a query with everything blocked", "-inf"),
        (check.attend_numpy, overflowing, "scores of a thousand", "overflows"),
        (check.attend_numpy,
            lambda q, k, v, mask: softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v,
            "batch and heads, more keys than queries", "Swap"),
        (check.attend_masked_weights,
            lambda scores, mask: np.where(mask == 0, softmax(scores), 0.0),
            "each row sums to one", "denominator"),
        (check.attend_masked_weights, renormalised,
            "a blocked score of a thousand changes nothing", "too late"),
        (check.attend_masked_weights,
            lambda scores, mask: np.array([[1.0, 0.0], [0.5, 0.5]]), "a batch", "broadcast"),
        (check.attend_score_gradient, lambda w, v, g: w * (g @ transposed(v)),
            "two keys of unequal weight", "row sum"),
        (check.attend_score_gradient, lambda w, v, g: g @ transposed(v),
            "two keys of unequal weight", "go on"),
        (check.attend_score_gradient,
            lambda w, v, g: score_gradient(w, v, g) / w, "two keys of unequal weight", "Multiply"),
        (check.attend_score_gradient, score_gradient_over_queries,
            "two keys of unequal weight", "[4, 0]"),
        (check.attend_score_gradient, score_gradient_of_one_sequence, "a batch", "last axis"),
    ],
)  # fmt: skip
def test_a_plausible_wrong_answer_fails_where_it_is_wrong(checked, wrong, claim, hint):
    report = checked(wrong)
    assert not report
    assert report.cases[-1].claim == claim
    assert hint in report.cases[-1].hint


MEBIBYTES = {
    "1 sequence, 12 heads, T = 1024, float32": 48,
    "8 sequences, 12 heads, T = 1024, float32": 384,
    "8 sequences, 12 heads, T = 512, float32": 96,
    "1 sequence, 1 head, T = 8192, float16": 128,
}


def test_the_right_memory_is_solved():
    assert check.attend_memory(MEBIBYTES)
    assert check.attend_memory({name: float(value) for name, value in MEBIBYTES.items()})


@pytest.mark.parametrize("name", MEBIBYTES)
@pytest.mark.parametrize("wrong", [..., 192, 4])
def test_a_wrong_memory_fails_and_the_right_one_is_not_shown(name, wrong):
    report = check.attend_memory({**MEBIBYTES, name: wrong})
    assert not report
    assert report.cases[-1].claim == name
    assert report.cases[-1].expected == ""


def test_no_memory_at_all_is_not_solved():
    assert not check.attend_memory({})
    assert not check.attend_memory(...)
