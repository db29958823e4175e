"""Whoever reads a story can tell every choice: it has exactly one derivation."""

import itertools
import math

import numpy as np
import pytest
from brute_force import all_stories, derivations

from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.ambiguity import check_unambiguous
from tinytorch_book.stories.rules import Rules
from tinytorch_book.stories.story_rules import STORY_CAST, STORY_RULES


def test_the_book_s_own_grammar_is_unambiguous():
    """It is not checked when it is made."""
    check_unambiguous(Rules(STORY_RULES, STORY_CAST))


def test_sampled_stories_have_exactly_one_derivation(stories):
    for story in itertools.islice(stories.stories(21), 100):
        ways = list(derivations(stories.rules, stories.cast, ["{story}"], {}, story))
        assert [text for text, _ in ways] == [story]
        assert stories.log_probs(story).sum() == pytest.approx(math.log(ways[0][1]), abs=1e-9)


@pytest.mark.parametrize(
    "rules",
    [
        {"story": {"A {x}.\n": 1, "A b.\n": 1}, "x": {"b": 1, "c": 1}},
        {"story": "{x} {y}.\n", "x": {"a": 1, "a b": 1}, "y": {"b c": 1, "c": 1}},
        {
            "story": "{x}.\n",
            "x": {"{y}.": 1, "{z}.": 1},
            "y": {"a": 1, "b": 1},
            "z": {"b": 1, "c": 1},
        },
    ],
)
def test_a_choice_that_cannot_be_read_off_the_text_is_refused(rules):
    with pytest.raises(ValueError, match="can begin with the same complete text"):
        StoryGrammar(rules)


def test_a_value_that_two_parents_share_must_come_after_its_parent():
    cast = {
        "pet": {"cat": 1, "cow": 1},
        "food given pet": {"cat": {"pie": 1, "fish": 1}, "cow": "pie"},
    }
    with pytest.raises(
        ValueError, match=r"'pie' and 'pie' cannot be told apart .* mention \{pet\} before"
    ):
        StoryGrammar({"story": "{food}.\n"}, cast)
    StoryGrammar({"story": "The {pet} ate {food}.\n"}, cast)


def test_a_value_that_identifies_its_parent_may_come_first():
    cast = {
        "child": {"girl": 3, "boy": 1},
        "hero given child": {"girl": {"Mia": 1, "Ida": 2}, "boy": "Tom"},
    }
    tiny = StoryGrammar({"story": "{hero} is a {child}.\n"}, cast)
    p = np.array([0.25, 0.5, 0.25])
    assert tiny.entropy.nats_per_story == pytest.approx(-(p * np.log(p)).sum())
    assert tiny.log_probs("Ida is a girl.\n").sum() == pytest.approx(math.log(0.5))


def random_grammar(rng):
    """A grammar of a few short rules over three characters; most are not sound."""

    def text(symbols):
        pieces = [
            "{" + rng.choice(symbols) + "}"
            if symbols and rng.random() < 0.4
            else rng.choice(LETTERS)
            for _ in range(rng.integers(1, 4))
        ]
        return " ".join(pieces)

    def options(symbols):
        return {text(symbols): int(rng.integers(1, 5)) for _ in range(rng.integers(1, 4))}

    cast = {"p": options([])}
    cast["c given p"] = {value: options([]) for value in cast["p"]}
    rules = {"story": {}, "x": options(["y", "p", "c"]), "y": options(["c", "p"])}
    while len(rules["story"]) < 2:
        rules["story"][text(["x", "y", "p", "c"]) + ".\n"] = int(rng.integers(1, 5))
    return rules, cast


LETTERS = ["a", "b", "ab", "a,", "b a"]


def test_accepted_grammars_are_unambiguous_and_have_exact_entropy():
    rng = np.random.default_rng(5)
    accepted = 0
    for _ in range(1500):
        try:
            grammar = StoryGrammar(*random_grammar(rng))
        except ValueError:
            continue
        accepted += 1
        ways = all_stories(grammar)
        assert len({text for text, _ in ways}) == len(ways)
        expected = -math.fsum(p * math.log(p) for _, p in ways)
        assert grammar.entropy.nats_per_story == pytest.approx(expected, abs=1e-12)
        for text, p in ways[:5]:
            assert grammar.log_probs(text).sum() == pytest.approx(math.log(p), abs=1e-9)
    assert accepted > 50
