"""The sentence that travels through the book: what it shows comes from its numbers."""

import numpy as np
import pytest

from tinytorch_book.experiments import six_tokens
from tinytorch_book.experiments.six_tokens import HEADS, VOCABULARY, WORDS, journey

ANNA, DOGS, THEY = (WORDS.index(word) for word in ("Anna", "dogs", "they"))


def test_after_each_word_the_likeliest_is_the_one_that_follows_by_a_clear_margin():
    for row, follows in zip(journey()["forecast"], WORDS[1:], strict=False):
        second, first = np.argsort(row)[-2:]
        assert VOCABULARY[first] == follows
        assert row[first] > 0.7 and row[second] < 0.26


def test_they_looks_mostly_at_dogs_because_both_are_plurals(monkeypatch):
    weights = journey()["weights"][0, THEY]
    assert weights[DOGS] == pytest.approx(0.76, abs=0.005)
    assert weights[ANNA] == pytest.approx(0.10, abs=0.005)
    query, *others = HEADS[0]
    without = query.copy()
    without[1, 1] = 0  # what a plural looks for in plurals
    monkeypatch.setattr(six_tokens, "HEADS", [(without, *others), HEADS[1]])
    weights = journey()["weights"][0, THEY]
    assert weights[DOGS] == weights[ANNA] == weights.max()


def test_the_second_head_looks_one_position_back():
    weights = journey()["weights"][1]
    assert (np.diag(weights, -1) > 0.95).all()


def test_had_they_looked_at_anna_the_two_actions_would_tie(monkeypatch):
    query, *others = HEADS[0]
    at_anna = query.copy()
    at_anna[1] = [100, -100, 0, 0]  # a plural looks for a thing that is no plural
    monkeypatch.setattr(six_tokens, "HEADS", [(at_anna, *others), HEADS[1]])
    way = journey()
    assert way["weights"][0, THEY, ANNA] == pytest.approx(1)
    of = dict(zip(VOCABULARY, way["forecast"][THEY], strict=True))
    assert of["feeds"] == pytest.approx(of["bark"], rel=0.001)
