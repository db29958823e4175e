"""The stories that a grammar writes, and their words."""

import itertools

import pytest

from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.story_rules import STORY_CAST


def test_the_first_story_of_seed_0_never_changes(stories):
    assert stories.generate(1, seed=0) == (
        "Mia was a brave girl. One snowy afternoon she hopped to the barn. "
        "A tiny hen ran after her and asked for some bread. "
        "Mia gave it some bread, and it ate and ate and ate. "
        "After that, the hen came to tea every morning.\n"
    )


def test_stories_are_short_paragraphs_in_a_small_alphabet(stories):
    lengths = [len(story) for story in itertools.islice(stories.stories(7), 2000)]
    assert min(lengths) >= 120 and max(lengths) <= 280
    assert len(stories.alphabet) <= 40
    assert set(stories.generate(3000, seed=8)) == set(stories.alphabet)


def test_hero_stays_the_same_within_a_story(stories):
    girls = set(STORY_CAST["hero given child"]["girl"])
    animals = set(stories.kinds["animals"])
    for story in itertools.islice(stories.stories(9), 500):
        words = stories.words(story)
        assert len({word for word in words if word in stories.kinds["names"]}) == 1
        assert len({word for word in words if word in animals}) == 1
        girl = bool(girls & set(words))
        assert not {"he", "He", "his", "him"} & set(words) if girl else "she" not in words


@pytest.mark.parametrize(
    ("count", "error"), [(-1, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_a_bad_number_of_stories_is_refused(stories, count, error):
    with pytest.raises(error, match="num_stories must be"):
        stories.generate(count)


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("1", TypeError), (None, TypeError)])
def test_a_bad_seed_is_refused_at_once(stories, seed, error):
    with pytest.raises(error, match="seed must be"):
        stories.stories(seed)


def test_words_are_the_whole_text_but_its_spaces(stories):
    text = stories.generate(3000, seed=4)
    assert "".join(stories.words(text)) == text.replace(" ", "")
    assert set(stories.words(text)) == set(stories.vocabulary)


def test_words_of_one_kind_are_single_words_of_the_vocabulary(stories):
    assert {"names", "animals", "places", "foods", "colours"} <= set(stories.kinds)
    words = [word for kind in stories.kinds.values() for word in kind]
    assert set(words) <= set(stories.vocabulary)
    assert len(words) == len(set(words)), "the kinds are disjoint"


def test_kinds_of_a_custom_grammar_are_its_choices_between_words(tiny):
    assert tiny.kinds == {
        "size": ("big", "tiny"),
        "pet": ("cat", "cow"),
        "It": ("She", "It"),
        "food": ("fish", "pie", "pies"),
    }


def test_cast_and_kinds_need_their_own_rules():
    with pytest.raises(ValueError, match="need their own rules"):
        StoryGrammar(cast={"pet": "cat"})


def test_a_kind_of_unknown_words_is_refused():
    with pytest.raises(ValueError, match="kind 'x' names 'y'"):
        StoryGrammar({"story": "A.\n"}, None, {"x": ("y",)})
