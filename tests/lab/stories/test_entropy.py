"""The entropy of the stories, against the sum over all of them and against many samples."""

import itertools
import math
from collections import Counter, defaultdict

import numpy as np
import pytest
from brute_force import all_stories

from tinytorch_book.stories import StoryGrammar


def test_entropy_of_the_tiny_grammar_is_the_sum_over_all_its_stories(tiny):
    ways = all_stories(tiny)
    entropy = tiny.entropy
    assert math.fsum(p for _, p in ways) == pytest.approx(1)
    assert entropy.nats_per_story == pytest.approx(-math.fsum(p * math.log(p) for _, p in ways))
    assert entropy.characters_per_story == pytest.approx(math.fsum(p * len(t) for t, p in ways))
    assert entropy.words_per_story == pytest.approx(
        math.fsum(p * len(tiny.words(t)) for t, p in ways)
    )
    assert entropy.nats_per_character * entropy.characters_per_story == entropy.nats_per_story


@pytest.mark.parametrize("unit", ["character", "word"])
def test_unigram_and_bigram_entropy_are_those_of_all_stories(tiny, unit):
    pairs = defaultdict(float)
    for text, p in all_stories(tiny):
        tokens = ["\n", *(list(text) if unit == "character" else tiny.words(text))]
        for pair in itertools.pairwise(tokens):
            pairs[pair] += p
    joint = nats(pairs.values())
    left = nats(sums_by(pairs, 0))
    assert getattr(tiny.entropy, f"unigram_nats_per_{unit}") == pytest.approx(left)
    assert getattr(tiny.entropy, f"bigram_nats_per_{unit}") == pytest.approx(joint - left)


def sums_by(pairs, side):
    sums = Counter()
    for pair, count in pairs.items():
        sums[pair[side]] += count
    return sums.values()


def nats(counts):
    p = np.array(list(counts)) / sum(counts)
    return float(-(p * np.log(p)).sum())


def test_entropy_is_the_mean_surprise_of_many_sampled_stories(stories):
    sample = list(itertools.islice(stories.stories(11), 1500))
    surprise = np.array([-stories.log_probs(story).sum() for story in sample])
    length = np.array([len(story) for story in sample])
    words = np.array([len(stories.words(story)) for story in sample])
    entropy = stories.entropy
    for values, expected in (
        (surprise, entropy.nats_per_story),
        (length, entropy.characters_per_story),
        (words, entropy.words_per_story),
    ):
        standard_error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - expected) < 4 * standard_error
        assert standard_error < 0.01 * expected, "the test can tell"


def test_entropy_of_a_long_story_is_summed_over_states():
    """Two texts of different length, 200 times: 2 ** 200 stories, but few states."""
    rules = {"story": ", ".join(["{x}"] * 200) + ".\n", "x": {"{y} b": 1, "a": 1}, "y": "c"}
    entropy = StoryGrammar(rules).entropy
    assert entropy.nats_per_story == pytest.approx(200 * math.log(2))
    assert entropy.words_per_story == pytest.approx(200 * 1.5 + 199 + 2)
