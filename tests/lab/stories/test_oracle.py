"""The oracle, against brute force and against the entropy."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from brute_force import all_stories


def test_every_prefix_of_the_tiny_grammar_has_the_exact_next_character(tiny):
    ways = all_stories(tiny)
    for prefix in {text[:end] for text, _ in ways for end in range(len(text))}:
        mass = defaultdict(float)
        for text, p in ways:
            if text.startswith(prefix):
                mass[text[len(prefix)]] += p
        total = sum(mass.values())
        expected = {char: p / total for char, p in mass.items()}
        assert tiny.next_character_probs(prefix) == pytest.approx(expected)


def test_log_probs_are_those_of_the_next_character_distributions(stories):
    text = stories.generate(2, seed=6)[:250]
    result = stories.log_probs(text)
    assert result.shape == (250,) and result.dtype == np.float64
    for position, char in enumerate(text):
        probs = stories.next_character_probs(text[:position])
        assert sum(probs.values()) == pytest.approx(1, abs=1e-12)
        assert math.exp(result[position]) == pytest.approx(probs[char], abs=1e-12)


def test_words_of_the_tiny_grammar_have_their_exact_probability(tiny):
    ways = [(tiny.words(text), text, p) for text, p in all_stories(tiny)]
    for words, text, _ in ways:
        expected = []
        for end in range(len(words)):
            before = math.fsum(p for other, _, p in ways if other[:end] == words[:end])
            after = math.fsum(p for other, _, p in ways if other[: end + 1] == words[: end + 1])
            expected.append(math.log(after / before))
        np.testing.assert_allclose(tiny.word_log_probs(text), expected, atol=1e-12)


def test_the_surprise_of_the_words_is_the_surprise_of_the_characters(stories):
    text = stories.generate(20, seed=13)
    result = stories.word_log_probs(text)
    assert len(result) == len(stories.words(text)) and result.max() <= 1e-12
    assert result.sum() == pytest.approx(stories.log_probs(text).sum())
    assert len(stories.word_log_probs("")) == 0


def test_word_log_probs_require_complete_stories(stories):
    with pytest.raises(ValueError, match="the last story is cut off"):
        stories.word_log_probs("One sunny")


def test_error_names_the_impossible_character_its_position_and_the_allowed_ones(stories):
    with pytest.raises(
        ValueError,
        match=r"'x' at position 4, after 'One '; only 'f', 'r', 's', 'w' can be there",
    ):
        stories.log_probs("One xylophone")
    with pytest.raises(ValueError, match="'x' at position 4"):
        stories.next_character_probs("One xylophone")


def test_impossible_characters_get_minus_infinity_when_not_strict(stories):
    result = stories.log_probs("One xylophone", strict=False)
    assert np.isfinite(result[:4]).all() and (result[4:] == -np.inf).all()


def test_oracle_refuses_anything_but_strings(stories):
    with pytest.raises(TypeError, match="reads a string, got list"):
        stories.log_probs([1, 2])
    with pytest.raises(ValueError, match="'story' or 'anywhere'"):
        stories.log_probs("A", start="middle")


def test_a_window_from_anywhere_has_its_exact_probability(tiny):
    """Brute force: every place of every pair of stories, weighted as the endless text has them."""
    ways = all_stories(tiny)
    size = 9
    exact = defaultdict(float)
    for (first, p), (second, q), (third, r) in itertools.product(ways, repeat=3):
        text = first + second + third
        for offset in range(len(first)):
            exact[text[offset : offset + size]] += p * q * r / tiny.entropy.characters_per_story
    assert sum(exact.values()) == pytest.approx(1)
    for window, p in exact.items():
        assert tiny.log_probs(window, start="anywhere").sum() == pytest.approx(math.log(p))
