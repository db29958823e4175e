"""Temperature, the two filters, their order, and the draw: against brute force and by hand."""

import math
import warnings
from fractions import Fraction
from itertools import combinations
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tiny_models import message

from tinytorch import GPT, Tensor
from tinytorch.models.generation import generate
from tinytorch.models.sampling import (
    choose,
    keep_top_k,
    keep_top_p,
    next_token_probs,
    next_tokens,
)

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


def test_temperature_zero_is_certain_of_the_most_likely_token():
    assert next_token_probs([[1.0, 3.0, 2.0], [5.0, -INF, 0.0]], 0).tolist() == [
        [0, 1, 0],
        [1, 0, 0],
    ]


def test_temperature_zero_takes_the_lower_id_among_equals():
    assert next_token_probs([1.0, 3.0, 3.0], 0).tolist() == [0, 1, 0]


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 0.1}, {"top_k": 2, "top_p": 1.0}])
def test_filters_do_not_change_certainty(options):
    assert next_token_probs([1.0, 3.0, 2.0], 0, **options).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_computes_in_float64_whatever_the_logits_are(dtype):
    logits = np.array([0.5, 1.5, -2.0], dtype=dtype)
    expected = np.exp([0.5, 1.5, -2.0]) / np.exp([0.5, 1.5, -2.0]).sum()
    for given_logits in (logits, Tensor(logits, dtype=dtype), logits.tolist()):
        np.testing.assert_allclose(next_token_probs(given_logits), expected, rtol=1e-15)


@pytest.mark.parametrize("temperature", [1e-320, 1e-3, 1.0, 1e300])
def test_extreme_logits_and_temperatures_neither_overflow_nor_warn(temperature):
    logits = np.array([3e38, -3e38, -INF], dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = next_token_probs(logits, temperature)
    assert found[2] == 0 and found.sum() == 1
    assert found[0] == (1 if temperature <= 1 else 0.5)


@given(table=probabilities())
def test_forbidden_tokens_keep_probability_zero(table):
    with np.errstate(divide="ignore"):
        logits = np.log(table)
    for options in ({}, {"temperature": 7.0}, {"top_k": 6}, {"top_p": 1.0}, {"temperature": 0}):
        found = next_token_probs(logits, **options)
        assert (found[table == 0] == 0).all()
        np.testing.assert_allclose(found.sum(axis=-1), 1, rtol=1e-14)


# Top-k -------------------------------------------------------------------------------------------


@given(table=probabilities(), k=st.integers(1, 8))
def test_top_k_is_the_sort_by_hand(table, k):
    found = keep_top_k(table, k)
    for row, kept in zip(table, found, strict=True):
        best = sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
        total = math.fsum(row[i] for i in best)
        expected = [row[i] / total if i in best else 0.0 for i in range(len(row))]
        np.testing.assert_allclose(kept, expected, rtol=1e-14, atol=0)


def test_top_k_by_hand():
    np.testing.assert_allclose(
        keep_top_k([0.1, 0.4, 0.3, 0.2], 2), [0, 4 / 7, 3 / 7, 0], rtol=1e-15
    )


def test_top_k_keeps_exactly_k_among_equals_those_with_lower_ids():
    assert keep_top_k([0.25] * 4, 3).tolist() == [1 / 3, 1 / 3, 1 / 3, 0]
    assert keep_top_k([0.2, 0.2, 0.4, 0.2], 2).tolist() == pytest.approx([1 / 3, 0, 2 / 3, 0])


def test_top_k_of_all_and_more_changes_nothing():
    for k in (3, 4, 1000):
        assert keep_top_k([0.5, 0.25, 0.25], k).tolist() == [0.5, 0.25, 0.25]


# Top-p -------------------------------------------------------------------------------------------


@given(table=probabilities(), p=st.floats(0.01, 1.0))
def test_top_p_is_a_smallest_set_that_holds_p(table, p):
    for row, kept in zip(table, keep_top_p(table, p), strict=True):
        chosen = np.flatnonzero(kept)
        share = math.fsum(row[chosen])
        assume(abs(share - p) > 1e-9)  # or rounding decides; by hand below
        assert share > p or (kept > 0).sum() == (row > 0).sum()
        for smaller in combinations(range(len(row)), len(chosen) - 1):  # none of them is enough
            assert math.fsum(row[list(smaller)]) < p + 1e-9
        np.testing.assert_allclose(kept[chosen], row[chosen] / share, rtol=1e-13)


@given(table=probabilities(), p=st.floats(0.01, 1.0))
def test_top_p_prefers_the_likely_and_then_the_lower_id(table, p):
    for row, kept in zip(table, keep_top_p(table, p), strict=True):
        order = sorted(np.flatnonzero(row), key=lambda i: (-row[i], i))
        chosen = set(np.flatnonzero(kept).tolist())
        assert chosen == set(order[: len(chosen)])


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


def test_sum_that_misses_p_by_rounding_has_reached_it():
    assert 0.6 + 0.3 < 0.9  # in binary
    np.testing.assert_allclose(keep_top_p([0.6, 0.3, 0.1], 0.9), [2 / 3, 1 / 3, 0], rtol=1e-15)
    assert 0.7 + 0.1 < 0.8
    np.testing.assert_allclose(keep_top_p([0.7, 0.1, 0.1, 0.1], 0.8), [7 / 8, 1 / 8, 0, 0])


def test_top_p_of_one_keeps_even_the_rarest():
    probs = np.array([1.0, 1e-300, 1e-20])
    assert (keep_top_p(probs, 1.0) > 0).all()


@pytest.mark.parametrize("keep", [lambda x: keep_top_k(x, 2), lambda x: keep_top_p(x, 0.6)])
def test_filters_are_pure_and_treat_every_row_alike(keep):
    table = np.array([[[0.1, 0.5, 0.3, 0.1], [0.7, 0.1, 0.1, 0.1]]])
    before = table.copy()
    found = keep(table)
    np.testing.assert_array_equal(table, before)
    assert found.shape == (1, 2, 4)
    for row in range(2):
        np.testing.assert_array_equal(found[0, row], keep(table[0, row]))


def test_filters_read_shares_of_what_they_are_given():
    np.testing.assert_allclose(keep_top_p([5.0, 3.0, 2.0], 0.8), [5 / 8, 3 / 8, 0], rtol=1e-15)
    np.testing.assert_allclose(keep_top_k([5.0, 3.0, 2.0], 2), [5 / 8, 3 / 8, 0], rtol=1e-15)


# The order ---------------------------------------------------------------------------------------


def test_top_p_is_a_share_of_what_top_k_has_left():
    logits = np.log([0.4, 0.2, 0.2, 0.2])
    # top-k leaves 2/3 and 1/3, and 2/3 is more than 0.6: one token
    np.testing.assert_allclose(next_token_probs(logits, top_k=2, top_p=0.6), [1, 0, 0, 0])
    # in the other order 0.6 takes 0.4 + 0.2, two tokens, and top-k has nothing to do
    other = keep_top_k(keep_top_p([0.4, 0.2, 0.2, 0.2], 0.6), 2)
    np.testing.assert_allclose(other, [2 / 3, 1 / 3, 0, 0])


def test_filters_come_after_the_temperature():
    logits = np.log([0.5, 0.3, 0.2])
    # squared: 0.25, 0.09, 0.04 of 0.38, so 0.658 and 0.237 hold 0.89 of it and 0.658 holds 0.6
    np.testing.assert_allclose(next_token_probs(logits, 0.5, top_p=0.6), [1, 0, 0])
    # as they are: 0.5 does not hold 0.6; squared afterwards, 25 : 9
    nucleus = keep_top_p([0.5, 0.3, 0.2], 0.6)
    np.testing.assert_allclose(nucleus**2 / (nucleus**2).sum(), [25 / 34, 9 / 34, 0])


@given(
    table=probabilities(),
    temperature=st.sampled_from([0.5, 1.0, 2.0]),
    k=st.none() | st.integers(1, 7),
    p=st.none() | st.floats(0.05, 1.0),
)
def test_all_together_is_one_after_the_other(table, temperature, k, p):
    with np.errstate(divide="ignore"):
        logits = np.log(table)
    expected = next_token_probs(logits, temperature)
    expected = expected if k is None else keep_top_k(expected, k)
    expected = expected if p is None else keep_top_p(expected, p)
    np.testing.assert_array_equal(next_token_probs(logits, temperature, k, p), expected)


# The draw ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_with_their_probabilities(temperature):
    p = next_token_probs([2.0, 0.0, -1.0, -INF], temperature)
    rng, n = np.random.default_rng(0), 4000
    drawn = np.bincount([choose(p, rng) for _ in range(n)], minlength=4)
    # four standard deviations of a share of n draws; what has probability 0 never comes
    assert (np.abs(drawn / n - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()


@given(seed=st.integers(0, 10_000), size=st.integers(1, 6))
def test_forbidden_token_is_never_chosen(seed, size):
    rng = np.random.default_rng(seed)
    logits = rng.permuted(np.concatenate([rng.normal(size=size), np.full(size, -INF)]))
    for temperature in (0.0, 0.3, 1.0):
        assert np.isfinite(logits[choose(next_token_probs(logits, temperature), rng)])


@pytest.mark.parametrize(("drawn", "expected"), [(0.0, 1), (0.49, 1), (0.51, 3), (1 - 2**-53, 3)])
def test_ends_of_the_range_choose_tokens_that_are_allowed(drawn, expected):
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
TEMPERATURES = (
    st.sampled_from([0, 5e-324, 1e-300, 1e308, 10**300, Fraction(1, 3), Fraction(1, 10**400)])
    | st.floats(0, 1e308)
    | st.sampled_from([np.float16(6e-8), np.float32(1e-45)])
)


@given(row=unlikely(), k=COUNTS, p=SHARES, number=RANDOM)
def test_what_is_drawn_has_a_probability_above_zero(row, k, p, number):
    rng = Mock(random=lambda: number)
    for probs in (row, keep_top_k(row, k), keep_top_p(row, p), keep_top_p(keep_top_k(row, k), p)):
        assert row[choose(probs, rng)] > 0
        assert probs[choose(probs, rng)] > 0
        assert (probs is row) or probs.sum() == pytest.approx(1, rel=1e-12)


@given(
    logits=st.lists(st.sampled_from([-INF, -3e38, -1.0, 0.0, 1e-30, 2.0, 3e38]), min_size=1),
    dtype=st.sampled_from([np.float32, np.float64]),
    temperature=TEMPERATURES,
    k=st.none() | COUNTS,
    p=st.none() | SHARES,
    number=RANDOM,
)
def test_what_is_written_was_allowed_at_every_limit(logits, dtype, temperature, k, p, number):
    assume(max(logits) > -INF)
    logits = np.array([logits], dtype)
    probs = next_token_probs(logits, temperature, k, p)
    rngs = [Mock(random=lambda: number)]
    (token,) = next_tokens(logits, rngs, temperature, k, p)
    assert probs[0, token] > 0 and logits[0, token] > -INF


@given(table=unlikely(), k=st.none() | COUNTS, p=st.none() | SHARES, temperature=TEMPERATURES)
def test_generate_writes_tokens_that_exist_and_are_allowed(table, k, p, temperature):
    with np.errstate(divide="ignore"):
        logits = np.log(table.astype(np.float64))

    class Model:
        max_seq_len = 4

        def __call__(self, ids):
            return Tensor(np.broadcast_to(logits, (*np.shape(ids), len(logits))), dtype=np.float64)

    options = {"temperature": temperature, "top_k": k, "top_p": p}
    written = generate(Model(), [[0], [0]], 3, rng=0, **options).data[:, 1:]
    assert (table[written] > 0).all()


def test_gpt_writes_tokens_of_its_vocabulary_at_the_smallest_share():
    model = GPT(20, 16, 1, 2, 8, rng=0)
    written = model.generate([1, 2], 5, top_p=1e-13, rng=0).data.tolist()
    assert written == model.generate([1, 2], 5, temperature=0).data.tolist()


@pytest.mark.parametrize("row", [[0.0], [0.5, -0.5], [-0.5, 1.5], [np.nan, 1.0], [1.0, INF]])
def test_choice_of_what_is_no_probability_is_refused(row):
    assert message(ValueError, lambda: choose(row, np.random.default_rng(0))) == (
        "choose: probabilities must be >= 0, finite and not all 0; pass logits through "
        "next_token_probs first"
    )


@pytest.mark.parametrize("shape", [(), (0,), (1, 3)])
def test_choice_from_anything_but_one_row_is_refused(shape):
    assert message(ValueError, lambda: choose(np.ones(shape), np.random.default_rng(0))) == (
        f"choose: probabilities must be (vocab,), got shape {shape}"
    )


def test_choice_is_a_plain_integer():
    assert type(choose([0.0, 1.0], np.random.default_rng(0))) is int


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [-1, -0.5, float("nan")])
def test_bad_temperature_is_refused(temperature):
    assert message(ValueError, lambda: next_token_probs([0.0], temperature)) == (
        f"temperature must be >= 0, got {temperature}"
    )


@pytest.mark.parametrize("temperature", [INF, 10**400], ids=["inf", "beyond floats"])
def test_infinite_temperature_is_refused_with_a_remedy(temperature):
    assert message(ValueError, lambda: next_token_probs([0.0], temperature)) == (
        "temperature must be finite, got inf; for even chances set all logits to 0"
    )


@pytest.mark.parametrize("k", [0, -3])
def test_bad_top_k_is_refused(k):
    for f in (lambda: keep_top_k([1.0], k), lambda: next_token_probs([0.0], top_k=k)):
        assert message(ValueError, f) == f"top_k must be at least 1, got {k}"


@pytest.mark.parametrize("k", [2.5, float("nan"), True])
def test_top_k_that_is_no_integer_is_refused(k):
    assert message(TypeError, lambda: keep_top_k([1.0], k)) == f"top_k must be an integer, got {k}"


@pytest.mark.parametrize("bad", ["1", None, True, [1.0]])
def test_options_that_are_no_numbers_are_refused_by_name(bad):
    for name, wanted in (
        ("temperature", "a number"),
        ("top_k", "an integer"),
        ("top_p", "a number"),
    ):
        if bad is None and name != "temperature":  # None asks for no filter
            continue
        said = message(TypeError, lambda name=name: next_token_probs([0.0], **{name: bad}))
        assert said == f"{name} must be {wanted}, got {bad!r}"


@pytest.mark.parametrize("p", [0, -0.5, 1.5, float("nan")])
def test_bad_top_p_is_refused(p):
    for f in (lambda: keep_top_p([1.0], p), lambda: next_token_probs([0.0], top_p=p)):
        assert message(ValueError, f) == f"top_p must be in 0 < top_p <= 1, got {p}"


@pytest.mark.parametrize("bad", [float("nan"), INF])
def test_logits_that_are_no_numbers_are_refused(bad):
    for temperature in (0, 1):
        logits = [[0.0, 1.0], [bad, 0.0]]
        assert message(ValueError, lambda t=temperature, x=logits: next_token_probs(x, t)) == (
            "next_token_probs: a logit is nan or inf; did training diverge? "
            "look at the weights and lower the learning rate"
        )


def test_row_in_which_nothing_is_allowed_is_refused():
    for temperature in (0, 1):
        logits = [[0.0, 1.0], [-INF, -INF]]
        assert message(ValueError, lambda t=temperature, x=logits: next_token_probs(x, t)) == (
            "next_token_probs: every logit is -inf; leave at least one token that may be chosen"
        )


@pytest.mark.parametrize("row", [[0.0, 0.0], [-0.5, 1.5], [float("nan"), 1.0], [INF, 1.0]])
def test_what_is_no_probability_is_refused_by_the_filters(row):
    said = (
        "probabilities must be >= 0, finite and not all 0; pass logits through "
        "next_token_probs first"
    )
    assert message(ValueError, lambda: keep_top_k([[1.0, 0.0], row], 1)) == f"keep_top_k: {said}"
    assert message(ValueError, lambda: keep_top_p([[1.0, 0.0], row], 0.5)) == f"keep_top_p: {said}"


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_no_vocabulary_is_refused(shape):
    x = np.zeros(shape)
    assert message(ValueError, lambda: next_token_probs(x)) == (
        f"next_token_probs: logits must be (..., vocab), got shape {shape}"
    )
    assert message(ValueError, lambda: keep_top_k(x, 1)) == (
        f"keep_top_k: probabilities must be (..., vocab), got shape {shape}"
    )
