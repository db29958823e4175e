"""What is known of the whole cast, against every story of small grammars."""

from collections import defaultdict

import pytest
from brute_force import TINY_CAST, TINY_RULES, derivations
from test_posteriors import DEEP_CAST, DEEP_RULES, every_cast

from tinytorch_book.stories import StoryGrammar, beliefs, cast_beliefs, hidden_values

GRAMMARS = {"tiny": (TINY_RULES, TINY_CAST), "deep": (DEEP_RULES, DEEP_CAST)}


def with_its_cast(rules, cast):
    """Every (story, cast, probability), the cast chosen before the story begins."""
    names = [key.split(" given ")[0] for key in cast]
    for values, p in every_cast(cast, names, {}):
        for text, q in derivations(rules, cast, ["{story}"], values):
            yield text, values, p * q


@pytest.mark.parametrize("name", GRAMMARS)
def test_it_is_the_share_of_all_stories_that_begin_so(name):
    rules, cast = GRAMMARS[name]
    stories, grammar = list(with_its_cast(rules, cast)), StoryGrammar(rules, cast)
    for text in {story[:end] for story, _, _ in stories for end in range(len(story))}:
        among = [(values, p) for story, values, p in stories if story.startswith(text)]
        total = sum(p for _, p in among)
        for member, known in cast_beliefs(grammar, text).items():
            expected = defaultdict(float)
            for values, p in among:
                expected[values[member]] += p / total
            assert known == pytest.approx({value: expected[value] for value in known}), text


def test_it_agrees_with_what_is_known_along_a_text():
    grammar, text = StoryGrammar(), "On a windy day Leo and his father ran to the barn. A tiny"
    after = cast_beliefs(grammar, text)
    for name in ("hero", "place", "animal", "food"):
        assert tuple(after[name]) == hidden_values(grammar, name)
        assert [*after[name].values()] == pytest.approx(beliefs(grammar, text, name)[-1])


def test_a_text_that_no_story_has_is_refused():
    with pytest.raises(ValueError, match="no story has 'x'"):
        cast_beliefs(StoryGrammar(), "Mia x")
