"""Speculative decoding: its law by enumeration, its rates, its text beside that of `generate`."""

from itertools import product

import numpy as np
import pytest
from tiny_models import stirred, tiny_gpt

from tinytorch import GPT, Tensor
from tinytorch.core.softmax import softmax_array
from tinytorch.models import speculative
from tinytorch.models.draft_quality import best_draft, expected_readings, expected_tokens
from tinytorch.models.sampling import next_token_probs
from tinytorch.models.speculative import (
    SpeculativeText,
    accept_or_resample,
    acceptance_rate,
    speculative_generate,
)

RNG = np.random.default_rng(0)
P, Q = RNG.dirichlet(np.ones(4), 2)


class Scripted:
    """A generator whose numbers are known: `random()` gives them in turn."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)


@pytest.fixture
def scripted(monkeypatch):
    monkeypatch.setattr(speculative, "default_rng", lambda rng: rng)
    return Scripted


# One token --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q"),
    [(P, Q), ([0.5, 0.25, 0.25], [0.25, 0.75, 0.0]), ([1.0, 0.0], [0.0, 1.0]), (P, P)],
)
def test_the_law_of_what_is_written_is_that_of_the_target(p, q, scripted):
    """Both numbers of chance run over the middles of a fine grid."""
    p, q, found, kept = np.array(p), np.array(q), np.zeros(len(p)), 0.0
    grid = (np.arange(400) + 0.5) / 400
    for token in np.flatnonzero(q):
        for u in grid:
            accepted, written = accept_or_resample(int(token), p, q, scripted(u, 0.5))
            kept += accepted * q[token] / 400
            if accepted:
                found[written] += q[token] / 400
        rejected = next((u for u in grid if u * q[token] >= p[token]), None)
        if rejected is not None:
            share = q[token] * np.mean(grid * q[token] >= p[token])
            for v in grid:
                written = accept_or_resample(int(token), p, q, scripted(rejected, v))[1]
                found[written] += share / 400
    assert found == pytest.approx(p, abs=5e-3)
    assert kept == pytest.approx(float(acceptance_rate(p, q)), abs=5e-3)


def test_a_token_that_the_target_never_writes_is_never_kept(scripted):
    for u, v in product((0.0, 0.5, 0.999), (0.0, 0.999)):
        assert accept_or_resample(0, [0.0, 1.0], [0.5, 0.5], scripted(u, v)) == (False, 1)


def test_no_table_with_these_margins_has_more_on_its_diagonal():
    """Every coupling of two distributions in eighths."""

    def tables(rows, columns):
        if len(rows) == 1:
            yield [columns]
            return
        for first in product(*(range(column + 1) for column in columns)):
            if sum(first) == rows[0]:
                left = [c - taken for c, taken in zip(columns, first, strict=True)]
                yield from ([first, *others] for others in tables(rows[1:], left))

    for rows, columns in (([4, 3, 1], [2, 2, 4]), ([8, 0, 0], [3, 3, 2]), ([3, 3, 2], [3, 3, 2])):
        most = max(np.trace(np.array(table)) for table in tables(rows, columns))
        assert most == 8 * acceptance_rate(np.array(rows) / 8, np.array(columns) / 8)


def test_the_rate_is_one_minus_the_total_variation():
    p, q = RNG.dirichlet(np.ones(6), (2, 5))
    assert acceptance_rate(p, q) == pytest.approx(1 - np.abs(p - q).sum(axis=-1) / 2)
    assert acceptance_rate(p, q[0]).shape == (5,)


# Many tokens ------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5])
def test_the_mean_number_of_tokens_is_that_of_all_outcomes_listed(k):
    rate, mean = 0.7, 0.0
    for kept in product((True, False), repeat=k):
        chance = np.prod([rate if each else 1 - rate for each in kept])
        first = kept.index(False) if False in kept else k
        mean += chance * (first + 1)
    assert expected_tokens(rate, k) == pytest.approx(mean)
    assert expected_tokens(rate, k) == pytest.approx((1 - rate ** (k + 1)) / (1 - rate))
    assert expected_tokens(1.0, k) == k + 1 and expected_tokens(0.0, k) == 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_readings_of_a_text_are_those_of_all_outcomes_listed(k):
    kept, mean = RNG.random(6), 0.0
    for outcome in product((True, False), repeat=6):  # of each token, if it is drafted
        chance = np.prod(np.where(outcome, kept, 1 - kept))
        at = readings = 0
        while at < 6:
            drafted = min(k, 6 - at - 1)
            right = 0
            while right < drafted and outcome[at + right]:
                right += 1
            at, readings = at + right + 1, readings + 1
        mean += chance * readings
    assert expected_readings(kept, k) == pytest.approx(mean)


def test_a_long_even_text_has_the_tokens_of_the_formula():
    assert 20_000 / expected_readings(np.full(20_000, 0.8), 4) == pytest.approx(
        expected_tokens(0.8, 4), rel=1e-3
    )


# A draft for many contexts ----------------------------------------------------------------------


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 5.0]])
def test_no_draft_in_twentieths_is_above_the_best(weights):
    targets = RNG.multinomial(20, np.full(3, 1 / 3), size=3) / 20
    shares = np.ones(3) if weights is None else np.array(weights)
    every = [np.array([a, b, 20 - a - b]) / 20 for a in range(21) for b in range(21 - a)]
    rates = [shares @ acceptance_rate(targets, q) for q in every]
    found = best_draft(targets, weights)
    assert found.sum() == pytest.approx(1) and (found >= 0).all()
    assert shares @ acceptance_rate(targets, found) == pytest.approx(max(rates))


# Writing ----------------------------------------------------------------------------------------


def models():
    large = stirred(tiny_gpt(max_seq_len=32))
    small = stirred(tiny_gpt(num_layers=1, max_seq_len=32), deviation=0.2)
    return large, small


class WithoutCache:
    """A model that has no cache to offer."""

    def __init__(self, model):
        self.model, self.max_seq_len = model, model.max_seq_len

    def __call__(self, ids):
        return self.model(ids)


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize("wrap", [lambda model: model, WithoutCache])
def test_without_chance_the_text_is_that_of_generate(k, wrap):
    large, small = models()
    alone = large.generate([1, 2, 3], 25, temperature=0).data
    text = speculative_generate(
        wrap(large), wrap(small), [1, 2, 3], 25, num_drafted=k, temperature=0
    )
    assert isinstance(text, SpeculativeText) and text.ids.data.tolist() == alone.tolist()
    itself = speculative_generate(large, large, [1, 2, 3], 25, num_drafted=k, temperature=0)
    assert itself.ids.data.tolist() == alone.tolist()
    assert itself.readings == -(-25 // (k + 1)) and itself.accepted == itself.drafted


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"temperature": 0.5}, {"top_k": 3}, {"top_p": 0.7}])
def test_the_law_of_two_tokens_is_that_of_the_large_model(options):
    """Of 400 texts, beside the exact probabilities."""
    large, small = stirred(tiny_gpt(vocab_size=4)), stirred(tiny_gpt(vocab_size=4), deviation=0.2)
    rng, counts = np.random.default_rng(1), np.zeros((4, 4))
    for _ in range(400):
        text = speculative_generate(large, small, [0], 2, num_drafted=2, rng=rng, **options)
        counts[tuple(text.ids.data[1:])] += 1
    exact = np.zeros((4, 4))
    first = next_token_probs(large([[0]]).data[0, -1], **options)
    for token in range(4):
        second = next_token_probs(large([[0, token]]).data[0, -1], **options)
        exact[token] = first[token] * second
    error = np.sqrt(exact * (1 - exact) / 400)
    assert (np.abs(counts / 400 - exact) <= 4 * error + 1e-12).all()
    assert (counts[exact == 0] == 0).all()


@pytest.mark.slow
def test_the_mean_of_the_readings_is_the_expected_one():
    large, small = models()
    counted, expected = [], []
    for seed in range(60):
        text = speculative_generate(large, small, [1], 20, num_drafted=3, rng=seed)
        ids = text.ids.data
        p, q = (softmax_array(m(ids[None, :-1]).data[0], -1) for m in (large, small))
        at = np.arange(20), ids[1:]
        expected.append(expected_readings(np.minimum(1, q[at] / p[at]), 3))
        counted.append(text.readings)
        assert text.accepted + text.readings == 20
    error = np.std(np.array(counted) - expected) / 60**0.5
    assert np.mean(counted) == pytest.approx(np.mean(expected), abs=4 * error)


def test_the_window_may_be_filled_and_not_more():
    large, small = models()
    text = speculative_generate(large, small, [1, 2], 31, num_drafted=6, rng=0)
    assert text.ids.shape == (33,)  # the last token is written, not read
    with pytest.raises(ValueError, match="a text of 34 tokens exceeds max_seq_len 32"):
        speculative_generate(large, small, [1, 2], 32)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_drafted": 0}, "num_drafted must be"),
        ({"max_new_tokens": 0}, "max_new_tokens must be"),
        ({"prompt_tokens": []}, "the prompt must be integer ids"),
        ({"prompt_tokens": [[1]]}, "the prompt must be integer ids"),
        ({"draft": tiny_gpt(vocab_size=7)}, r"vocabularies have \[11, 7\] tokens"),
    ],
)
def test_bad_input_is_named(options, message):
    large, small = models()
    given = {"model": large, "draft": small, "prompt_tokens": [1], "max_new_tokens": 9} | options
    with pytest.raises(ValueError, match=message):
        speculative_generate(**given, rng=0)


def test_gradients_and_dropout_stay_as_they_were():
    large, small = models()
    large.train()
    speculative_generate(large, small, [1], 3, rng=0)
    assert large.training and large([[1]]).requires_grad and isinstance(large([[1]]), Tensor)


def test_the_text_ends_with_its_first_stop_token():
    large, small = (GPT(9, 8, layers, 2, max_seq_len=64, rng=1) for layers in (2, 1))
    options = {"temperature": 0, "stop_tokens": [3, 5]}
    for first in range(9):
        text = speculative_generate(large, small, [first], 40, **options)
        wanted = large.generate([first], 40, **options)
        assert text.ids.data.tolist() == wanted.data.tolist()
        drawn = speculative_generate(large, small, [first], 40, stop_tokens=[3, 5], rng=first)
        ended = [t in (3, 5) for t in drawn.ids.data.tolist()[1:]]
        assert not any(ended[:-1])
        assert ended[-1] or len(ended) == 40


def test_models_of_different_vocabularies_are_refused_before_they_read():
    large, small = (GPT(size, 8, 1, 2, max_seq_len=8, rng=0) for size in (9, 12))
    with pytest.raises(ValueError, match=r"\[9, 12\] tokens; draft with a model of the same"):
        speculative_generate(large, small, [1], 1)
