"""Temperature, the two filters, their order, and the draw: against brute force and by hand."""

import math
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tiny_models import message

from tinytorch import Tensor
from tinytorch.models.sampling import choose, keep_top_k, keep_top_p, next_token_probs

INF = np.inf


@st.composite
def probabilities(draw):
    """Rows of probabilities with equals and zeros among them."""
    rows, vocab = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    counts = st.lists(st.integers(0, 4), min_size=vocab, max_size=vocab).filter(any)
    table = np.array([draw(counts) for _ in range(rows)], dtype=float)
    return table / table.sum(axis=1, keepdims=True)


# Temperature -------------------------------------------------------------------------------------


@given(
    logits=st.lists(st.floats(-30, 30) | st.just(-INF), min_size=1, max_size=6),
    temperature=st.floats(0.05, 20),
)
def test_probabilities_are_the_softmax_of_the_divided_logits(logits, temperature):
    assume(max(logits) > -INF)
    powers = [math.exp((x - max(logits)) / temperature) for x in logits]
    expected = [power / math.fsum(powers) for power in powers]
    found = next_token_probs(logits, temperature)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)


def test_temperature_zero_takes_the_lowest_id_among_ties():
    assert next_token_probs([1.0, 3.0, 3.0], 0).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_computes_in_float64_whatever_the_logits_are(dtype):
    logits = np.array([0.5, 1.5, -2.0], dtype=dtype)
    expected = np.exp([0.5, 1.5, -2.0]) / np.exp([0.5, 1.5, -2.0]).sum()
    for given_logits in (logits, Tensor(logits, dtype=dtype), logits.tolist()):
        np.testing.assert_allclose(next_token_probs(given_logits), expected, rtol=1e-15)


# Top-k -------------------------------------------------------------------------------------------


@given(table=probabilities(), k=st.integers(1, 8))
def test_top_k_is_the_sort_by_hand(table, k):
    found = keep_top_k(table, k)
    for row, kept in zip(table, found, strict=True):
        best = sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
        total = math.fsum(row[i] for i in best)
        expected = [row[i] / total if i in best else 0.0 for i in range(len(row))]
        np.testing.assert_allclose(kept, expected, rtol=1e-14, atol=0)


def test_top_k_keeps_exactly_k_and_prefers_lower_ids_among_ties():
    assert keep_top_k([0.25] * 4, 3).tolist() == [1 / 3, 1 / 3, 1 / 3, 0]
    assert keep_top_k([0.2, 0.2, 0.4, 0.2], 2).tolist() == pytest.approx([1 / 3, 0, 2 / 3, 0])


# Top-p -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        (0.01, [0, 1, 0, 0]),  # at least one
        (0.5, [0, 1, 0, 0]),  # 0.5 is reached
        (0.51, [0, 5 / 8, 3 / 8, 0]),
        (0.8, [0, 5 / 8, 3 / 8, 0]),
        (0.9, [1 / 9, 5 / 9, 3 / 9, 0]),  # 0.1 twice: the lower id
        (0.91, [0.1, 0.5, 0.3, 0.1]),
        (1, [0.1, 0.5, 0.3, 0.1]),
    ],
)
def test_top_p_by_hand(p, expected):
    np.testing.assert_allclose(keep_top_p([0.1, 0.5, 0.3, 0.1], p), expected, rtol=1e-15)


def test_top_p_tolerates_rounding_of_the_sum():
    assert 0.6 + 0.3 < 0.9  # in binary
    np.testing.assert_allclose(keep_top_p([0.6, 0.3, 0.1], 0.9), [2 / 3, 1 / 3, 0], rtol=1e-15)
    assert 0.7 + 0.1 < 0.8
    np.testing.assert_allclose(keep_top_p([0.7, 0.1, 0.1, 0.1], 0.8), [7 / 8, 1 / 8, 0, 0])


def test_filters_normalise_their_input():
    np.testing.assert_allclose(keep_top_p([5.0, 3.0, 2.0], 0.8), [5 / 8, 3 / 8, 0], rtol=1e-15)
    np.testing.assert_allclose(keep_top_k([5.0, 3.0, 2.0], 2), [5 / 8, 3 / 8, 0], rtol=1e-15)


# The order ---------------------------------------------------------------------------------------


def test_top_p_applies_after_top_k():
    logits = np.log([0.4, 0.2, 0.2, 0.2])
    # top-k leaves 2/3 and 1/3, and 2/3 is more than 0.6: one token
    np.testing.assert_allclose(next_token_probs(logits, top_k=2, top_p=0.6), [1, 0, 0, 0])
    # in the other order 0.6 takes 0.4 + 0.2, two tokens, and top-k has nothing to do
    other = keep_top_k(keep_top_p([0.4, 0.2, 0.2, 0.2], 0.6), 2)
    np.testing.assert_allclose(other, [2 / 3, 1 / 3, 0, 0])


# The draw ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_with_their_probabilities(temperature):
    p = next_token_probs([2.0, 0.0, -1.0, -INF], temperature)
    rng, n = np.random.default_rng(0), 4000
    drawn = np.bincount([choose(p, rng) for _ in range(n)], minlength=4)
    # four standard deviations of a share of n draws; what has probability 0 never comes
    assert (np.abs(drawn / n - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()


@pytest.mark.parametrize(("drawn", "expected"), [(0.0, 1), (0.49, 1), (0.51, 3), (1 - 2**-53, 3)])
def test_extreme_draws_choose_allowed_tokens(drawn, expected):
    class Fixed:
        def random(self):
            return drawn

    assert choose([0, 0.5, 0, 0.5, 0], Fixed()) == expected
    assert choose([0, 0.1, 0, 0.1, 0], Fixed()) == expected  # shares, whatever their sum


@st.composite
def unlikely(draw):
    """Probabilities with exact zeros, and numbers beside which others vanish, in either precision.

    The smallest of them, times a number next to 1, is rounded to itself.
    """
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    smallest, tiny = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny
    parts = st.sampled_from([0.0, smallest, tiny, 1e-20, 1e-7, 0.1, 0.3, 1.0])
    row = np.array(draw(st.lists(parts, min_size=1, max_size=8).filter(any)), dtype)
    return row if draw(st.booleans()) else (row / row.sum()).astype(dtype)


RANDOM = st.sampled_from([0.0, 1e-300, 0.5, 1 - 2**-53, 1.0]) | st.floats(0, 1, exclude_max=True)
SHARES = st.sampled_from([5e-324, 1e-300, 1e-13, 1e-12, 1 - 2**-53, 1]) | st.floats(5e-324, 1)
COUNTS = st.integers(1, 9) | st.sampled_from([10**9, 2**63, 10**30])


@given(row=unlikely(), k=COUNTS, p=SHARES, number=RANDOM)
def test_drawn_tokens_have_positive_probability(row, k, p, number):
    rng = Mock(random=lambda: number)
    for probs in (row, keep_top_k(row, k), keep_top_p(row, p), keep_top_p(keep_top_k(row, k), p)):
        assert row[choose(probs, rng)] > 0
        assert probs[choose(probs, rng)] > 0
        assert (probs is row) or probs.sum() == pytest.approx(1, rel=1e-12)


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (ValueError, lambda: next_token_probs([0.0], -0.5), "temperature must be >= 0, got -0.5"),
        (TypeError, lambda: next_token_probs([0.0], None), "temperature must be a number, got Non"),
        (TypeError, lambda: next_token_probs([0.0], True), "temperature must be a number, got"),
        (ValueError, lambda: keep_top_k([1.0], 0), "top_k must be at least 1, got 0"),
        (ValueError, lambda: next_token_probs([0.0], top_k=-3), "top_k must be at least 1, got -3"),
        (TypeError, lambda: keep_top_k([1.0], 2.5), "top_k must be an integer, got 2.5"),
        (ValueError, lambda: keep_top_p([1.0], 0), "top_p must be in 0 < top_p <= 1, got 0"),
        (ValueError, lambda: next_token_probs([0.0], top_p=1.5), "top_p must be in 0 < top_p <= 1"),
        (TypeError, lambda: next_token_probs([0.0], top_p="1"), "top_p must be a number, got '1'"),
        (ValueError, lambda: next_token_probs([[0.0], [np.nan]], 0), "a logit is nan or inf; did"),
        (ValueError, lambda: next_token_probs([[0.0], [INF]]), "a logit is nan or inf; did traini"),
        (ValueError, lambda: next_token_probs([[0.0, 1.0], [-INF, -INF]], 0), "every logit is -in"),
        (ValueError, lambda: next_token_probs([[0.0, 1.0], [-INF, -INF]]), "every logit is -inf"),
        (ValueError, lambda: next_token_probs(np.zeros((2, 0))), "logits must be (..., vocab), go"),
        (ValueError, lambda: keep_top_k([[1.0, 0.0], [0.0, 0.0]], 1), "keep_top_k: probabilities"),
        (ValueError, lambda: keep_top_p([[1.0, 0.0], [-0.5, 1.5]], 0.5), "keep_top_p: probabiliti"),
        (ValueError, lambda: keep_top_p([np.nan, 1.0], 0.5), "finite and not all 0; pass logits t"),
        (ValueError, lambda: keep_top_k(np.ones(()), 1), "probabilities must be (..., vocab), got"),
        (ValueError, lambda: choose([0.5, -0.5], np.random.default_rng(0)), "must be >= 0, finite"),
        (ValueError, lambda: choose([0.0], np.random.default_rng(0)), "must be >= 0, finite and n"),
        (ValueError, lambda: choose(np.ones((1, 3)), None), "probabilities must be (vocab,), got"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)
