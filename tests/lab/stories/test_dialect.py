"""The second dialect: known exactly, as the first grammar is, and no story is in both."""

import math

import pytest
from brute_force import derivations

from tinytorch_book.experiments.story_gpt import SEQ_LEN, story_tokenizer
from tinytorch_book.stories import story_dialect
from tinytorch_book.stories.dialect import DIALECT_CHANGES


@pytest.fixture(scope="module")
def dialect():
    return story_dialect()


def test_entropy_of_endings_and_food_is_the_sum_over_all_texts():
    """A small grammar with the new rules alone, whose stories can all be listed."""
    places = {place: 1 for place in ("forest", "pond")}
    food = DIALECT_CHANGES["food"]["food given place"]
    rules = {"story": "At the {place} they ate {food}. {end}\n", "end": {"So.": 2, "Yes.": 1}}
    cast = {"place": places, "food given place": {place: food[place] for place in places}}
    from tinytorch_book.stories import StoryGrammar

    grammar = StoryGrammar(rules, cast)
    ways = list(derivations(rules, cast, ["{story}"], {}))
    assert grammar.entropy.nats_per_story == pytest.approx(
        -math.fsum(p * math.log(p) for _, p in ways)
    )


def test_each_change_alone_changes_what_it_names(stories):
    first = stories.entropy.nats_per_story
    names, ending, food = (story_dialect(change) for change in DIALECT_CHANGES)
    assert names.entropy.nats_per_story == pytest.approx(first)  # other names, the same weights
    assert ending.rules["ending"].keys().isdisjoint(stories.rules["ending"])
    assert {k: v for k, v in ending.rules.items() if k != "ending"} == {
        k: v for k, v in stories.rules.items() if k != "ending"
    }
    assert food.rules == stories.rules and set(food.cast) ^ set(stories.cast) == {
        "food given animal",
        "food given place",
    }
    assert set(food.kinds["foods"]) == set(stories.kinds["foods"])


def test_food_in_the_dialect_depends_on_the_place_not_the_animal(dialect):
    """The food is as likely at the pond for a duck as for a goat; it was not before."""
    before = "On a sunny day Bella and her mother walked to the {}. There she met a little {} "
    after = 'that was very hungry. "I only eat '
    duck, goat = (
        dialect.next_character_probs(before.format("pond", animal) + after)
        for animal in ("duck", "goat")
    )
    assert duck == pytest.approx(goat) and set(duck) == {"b", "f", "s"}
    meadow = dialect.next_character_probs(before.format("meadow", "goat") + after)
    assert set(meadow) == {"c", "g", "h"}


def test_dialect_uses_the_same_alphabet_and_fits_the_window(stories, dialect):
    text = dialect.generate(2000, seed=5)
    assert set(text) <= set(stories.alphabet)
    tokenizer = story_tokenizer()
    assert max(len(tokenizer.encode(story)) for story in text.splitlines()) < SEQ_LEN
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_unknown_change_is_refused():
    with pytest.raises(ValueError, match=r"'weather'; the changes are 'names', 'ending', 'food'"):
        story_dialect("names", "weather")
