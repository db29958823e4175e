"""Dialects that differ in words, and their two ideal readers: against every dialect and text."""

from itertools import product

import numpy as np
import pytest

from tinytorch_book.stories import (
    WORDS,
    StoryGrammar,
    all_dialects,
    dialect_posterior,
    dialect_table,
    draw_dialects,
    family_forecast,
    listed_forecast,
    speak,
)
from tinytorch_book.stories.word_dialects import WORD_PAIRS

LIST = np.array([[0, 0], [0, 1], [1, 1]])  # three dialects of two things


def joint(table, words):
    """The probability of a dialect and all these words, by Bayes' product, `(dialects,)`."""
    return np.array([np.prod([row[word] for word in words]) for row in table]) / len(table)


@pytest.mark.parametrize("loyalty", [0.6, 0.9])
def test_posterior_and_forecast_of_every_text(loyalty):
    table = dialect_table(LIST, loyalty)
    texts = np.array([*product(range(4), repeat=4)])
    beliefs, forecasts = dialect_posterior(table, texts), listed_forecast(table, texts)
    assert beliefs.shape == (256, 4, 3) and forecasts.shape == (256, 4, 4)
    for text, belief, forecast in zip(texts, beliefs, forecasts, strict=True):
        for i in range(4):
            now = joint(table, text[:i])
            nexts = [joint(table, [*text[:i], word]).sum() for word in range(4)]
            assert np.allclose(belief[i], now / now.sum(), atol=1e-12)
            assert np.allclose(forecast[i], nexts / now.sum(), atol=1e-12)


@pytest.mark.parametrize(("things", "loyalty"), [(1, 0.9), (2, 0.9), (3, 0.6), (4, 0.99)])
def test_the_family_reader_is_who_lists_every_dialect(things, loyalty):
    words = np.random.default_rng(0).integers(2 * things, size=(50, 40))
    table = dialect_table(all_dialects(things), loyalty)
    exact = listed_forecast(table, words)
    assert np.allclose(family_forecast(words, things, loyalty), exact, rtol=1e-10, atol=0)


def test_the_family_reader_is_exact_for_all_4096():
    said = speak(draw_dialects(3, 0), 10, 0)
    exact = listed_forecast(dialect_table(all_dialects()), said)
    assert np.allclose(family_forecast(said), exact, rtol=1e-10, atol=0)


def test_the_words_are_those_of_a_grammar_and_of_its_oracle():
    dialects = draw_dialects(3, rng=1)
    table, texts = dialect_table(dialects), speak(dialects, 4, rng=2)
    rules = [dict(zip(WORDS, row.tolist(), strict=True)) for row in table]
    grammars = [StoryGrammar({"story": "{w} {w} {w} {w}.\n", "w": each}, {}) for each in rules]
    for text in texts:
        story = " ".join(WORDS[i] for i in text) + ".\n"
        exact = np.mean([np.exp(grammar.log_probs(story).sum()) for grammar in grammars])
        assert listed_forecast(table, text)[range(4), text].prod() == pytest.approx(exact, 1e-9)


def test_a_thousand_words_do_not_underflow():
    words = np.zeros(1000, dtype=int)
    posterior = dialect_posterior(dialect_table(LIST), words)
    assert np.allclose(posterior[-1], [0.5, 0.5, 0]) and np.isfinite(posterior).all()
    for word in (0, 1):  # in float64 9**1000 is infinite
        assert np.isfinite(family_forecast(words + word)).all()


def test_the_forecast_of_a_word_does_not_know_it():
    table = dialect_table(LIST)
    one, other = np.array([0, 2, 1]), np.array([0, 2, 3])
    for reader in (lambda words: listed_forecast(table, words),
                   lambda words: family_forecast(words, 2)):  # fmt: skip
        assert np.array_equal(reader(one), reader(other))


def test_words_come_as_often_as_they_should():
    dialect = draw_dialects(1, rng=0)
    said = speak(dialect.repeat(2000, axis=0), 50, rng=0)
    often = np.bincount(said.ravel(), minlength=24) / said.size
    assert np.abs(often - dialect_table(dialect)[0]).max() < 0.002
    assert len({*map(tuple, said[:50])}) == 50  # each speaker says other words


def test_dialects_are_drawn_once_each_and_nested():
    every = draw_dialects(4096, rng=3)
    assert len({*map(tuple, every)}) == 4096
    assert np.array_equal(draw_dialects(7, rng=3), every[:7])
    assert not np.array_equal(draw_dialects(7, rng=4), every[:7])


def test_no_word_is_two_things():
    assert len({*WORDS}) == len(WORDS) == 2 * len(WORD_PAIRS) == 24
    assert WORDS[2:4] == WORD_PAIRS[1]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: draw_dialects(4097), "there are 4096 dialects; got count=4097"),
        (lambda: draw_dialects(0), "got count=0"),
        (lambda: dialect_posterior([[0.0, 1.0]], [0]), "each word must be possible"),
        (lambda: listed_forecast([[0.5, 0.5]], [2]), "the ids of 2 words are 0 to 1, got 2"),
        (lambda: family_forecast([0, -1]), "the ids of 24 words are 0 to 23, got -1"),
    ],
)
def test_says_what_is_wrong(call, told):
    with pytest.raises(ValueError, match=told):
        call()
