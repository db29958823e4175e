"""What a reader believes: against every story of small grammars, with every cast."""

import math
from collections import defaultdict

import numpy as np
import pytest
from brute_force import TINY_CAST, TINY_RULES, cast_choices, derivations, normalised

from tinytorch.text.tokenization import BPETokenizer, CharTokenizer
from tinytorch_book.experiments.story_gpt import story_tokenizer
from tinytorch_book.stories import StoryGrammar, beliefs, hidden_values, token_beliefs

# A rule within a rule, one that a story may not have, and one that it may have twice.
DEEP_RULES = {
    "story": {"{start} {middle}, {end}.\n": 2, "{start}.\n": 1},
    "start": {"the {pet} is {size}": 3, "a {pet}": 1},
    "middle": {"so {end}": 1, "and {size}": 2},
    "end": {"it ran": 2, "it sat": 1, "no": 1},
    "size": {"big": 1, "small": 3},
}
DEEP_CAST = {
    "place": {"barn": 1, "bay": 2},
    "pet given place": {"barn": {"hen": 3, "cow": 1}, "bay": {"cod": 1, "calf": 2}},
}
GRAMMARS = {"tiny": (TINY_RULES, TINY_CAST), "deep": (DEEP_RULES, DEEP_CAST)}


def marked(rules, name):
    """The rules, with a mark before each option of one rule, which says which one it was."""
    options = [(f"<{i}>{text}", p) for i, (text, p) in enumerate(normalised(rules[name]))]
    return {**rules, name: dict(options)}


def every_cast(cast, names, values):
    """Every cast, all of it chosen before the story begins."""
    if not names:
        yield values, 1.0
        return
    known = [(values, 1.0)] if names[0] in values else cast_choices(cast, names[0], values)
    for chosen, p in known:
        for full, q in every_cast(cast, names[1:], chosen):
            yield full, p * q


def hidden_stories(rules, cast, name):
    """Every (text, what is hidden, probability), by brute force."""
    if name in rules:
        texts = [text for text, _ in normalised(rules[name])]
        for text, p in derivations(marked(rules, name), cast, ["{story}"], {}):
            plain, first = text, None
            for i, option in enumerate(texts):
                at = text.find(f"<{i}>")
                if at >= 0 and (first is None or at < first[0]):
                    first = at, option
                plain = plain.replace(f"<{i}>", "")
            yield plain, first and first[1], p
    else:
        names = [key.split(" given ")[0] for key in cast]
        for values, p in every_cast(cast, names, {}):
            for text, q in derivations(rules, cast, ["{story}"], values):
                yield text, values[name], p * q


NAMED = [
    (which, name)
    for which, (rules, cast) in GRAMMARS.items()
    for name in [*rules, *(key.split(" given ")[0] for key in cast)]
    if name != "story"
]


@pytest.mark.parametrize(("which", "name"), NAMED)
def test_belief_after_each_character_matches_all_stories_with_that_beginning(which, name):
    rules, cast = GRAMMARS[which]
    grammar = StoryGrammar(rules, cast)
    values = hidden_values(grammar, name)
    mass = defaultdict(lambda: defaultdict(float))
    stories = list(hidden_stories(rules, cast, name))
    assert math.fsum(p for *_, p in stories) == pytest.approx(1)
    for text, hidden, p in stories:
        for n in range(len(text)):
            mass[text[:n]][hidden] += p
    for text in dict.fromkeys(text for text, *_ in stories):
        found = beliefs(grammar, text, name)
        exact = [[mass[text[:n]][value] for value in values] for n in range(len(text))]
        exact = np.array(exact) / np.sum(exact, axis=1, keepdims=True)
        np.testing.assert_allclose(found[:-1], exact, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found[-1], exact[0], rtol=0, atol=1e-12)  # another story
    assert set(values) == {hidden for _, hidden, _ in stories}


@pytest.mark.parametrize(("which", "name"), NAMED)
@pytest.mark.parametrize("merges", [None, 6])
def test_belief_after_each_token_matches_all_stories_with_those_tokens(which, name, merges):
    rules, cast = GRAMMARS[which]
    grammar = StoryGrammar(rules, cast)
    text = grammar.generate(200, seed=0)
    letters = CharTokenizer(grammar.alphabet)
    tokenizer = letters if merges is None else BPETokenizer.train(text, 256 + merges)
    mass = defaultdict(lambda: defaultdict(float))
    stories = list(hidden_stories(rules, cast, name))
    for story, hidden, p in stories:
        ids = tokenizer.encode(story)
        for n in range(len(ids)):
            mass[tuple(ids[:n])][hidden] += p
    values = hidden_values(grammar, name)
    for story in dict.fromkeys(story for story, *_ in stories):
        ids = tokenizer.encode(story)
        exact = [[mass[tuple(ids[:n])][value] for value in values] for n in range(len(ids))]
        exact = np.array(exact) / np.sum(exact, axis=1, keepdims=True)
        found = token_beliefs(grammar, tokenizer, ids, name)
        np.testing.assert_allclose(found[:-1], exact, rtol=0, atol=1e-12)


def test_place_determines_which_animals_can_come(stories):
    values = hidden_values(stories, "animal")
    at_the_pond = beliefs(stories, "One sunny morning Mia ran to the pond.", "animal")[-1]
    told = {value: round(p, 6) for value, p in zip(values, at_the_pond, strict=True) if p}
    assert told == {"duck": 0.5, "frog": 0.4, "goat": 0.1}


def test_a_name_that_hides_nothing_is_refused(tiny):
    with pytest.raises(ValueError, match="no story hides 'food_', which is neither in the rules"):
        beliefs(tiny, "", "food_")


def test_error_names_the_position_where_a_text_becomes_impossible(tiny):
    with pytest.raises(ValueError, match="no story has 'x' at position 4"):
        beliefs(tiny, "The x", "pet")
    letters = CharTokenizer(tiny.alphabet + "x")
    with pytest.raises(ValueError, match="no story has 'x' at position 4"):
        token_beliefs(tiny, letters, letters.encode("The x"), "pet")


def test_a_text_with_impossible_tokens_is_refused(stories):
    tokenizer = story_tokenizer()
    whole = tokenizer.encode("It was a")
    parts = [*whole[:2], *tokenizer.encode(" "), *tokenizer.encode("a")]
    with pytest.raises(ValueError, match="no story is cut with ' ' as token 2"):
        token_beliefs(stories, tokenizer, parts, "hero")
