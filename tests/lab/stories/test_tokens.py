"""The truth in tokens: against every story of small grammars, and against the characters."""

import math
import re
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from brute_force import TINY_CAST, TINY_RULES, all_stories

from tinytorch.text.tokenization import BPETokenizer, CharTokenizer
from tinytorch_book.experiments.story_gpt import story_tokenizer
from tinytorch_book.stories import StoryGrammar, next_token_probs, next_token_table

# What GPT-2's split could trip over: endings with an apostrophe and what only looks like one,
# spaces in a row, letters of two bytes, numbers, words that begin others, a story that begins with
# a space.
AWKWARD_RULES = {
    "story": {"{who} isn't {here}\n": 3, "{oh}, {who}.\n": 2, " «é», said {who}!\n": 1},
    "oh": {"'ll": 2, "'l": 1, "'very": 1, "''s": 1, '"': 1},
    "who": {"we": 2, "were": 1, "we're": 2, "we'r": 1, "école": 1, "étude": 1},
    "here": {"in": 1, "inn": 1, "at 22   B-st.": 1, "at\t2 .": 1},
}
GRAMMARS = {"tiny": (TINY_RULES, TINY_CAST), "awkward": (AWKWARD_RULES, {})}


def cuts(grammar):
    """Tokenizers that cut the stories differently: characters, bytes, parts of words, words."""
    text = grammar.generate(200, seed=0)
    most = int(re.search(r"only (\d+)", message(BPETokenizer.train, text, 10_000))[1])
    few = [BPETokenizer.train(text, 256 + number) for number in (0, 6, most // 2, most)]
    return [CharTokenizer(grammar.alphabet), *few]


def message(function, *arguments):
    with pytest.raises(ValueError) as error:
        function(*arguments)
    return str(error.value)


@pytest.mark.parametrize("name", GRAMMARS)
def test_next_token_is_exact_for_every_beginning_and_end_of_a_story(name):
    grammar = StoryGrammar(*GRAMMARS[name])
    for tokenizer in cuts(grammar):
        mass = defaultdict(lambda: defaultdict(float))
        for (story, p), (another, q) in product(all_stories(grammar), repeat=2):
            ids = tokenizer.encode(story + another)
            for end in range(len(tokenizer.encode(story)) + 1):
                mass[tuple(ids[:end])][ids[end]] += p * q
        assert len(mass) > 100
        for ids, following in mass.items():
            total = math.fsum(following.values())
            exact = {token: p / total for token, p in following.items()}
            assert next_token_probs(grammar, tokenizer, ids) == pytest.approx(exact, abs=1e-12)


def test_a_short_token_rules_out_the_longer_one(stories):
    """ " sunny" is one token, so " s" begins nothing but " snowy"."""
    tokenizer = story_tokenizer()
    before = tokenizer.encode("One")
    (sunny,), (s, n, *_) = tokenizer.encode(" sunny"), tokenizer.encode(" snowy")
    following = next_token_probs(stories, tokenizer, before)
    assert following[sunny] == pytest.approx(5 / 16) and following[s] == pytest.approx(2 / 16)
    assert next_token_probs(stories, tokenizer, [*before, s]) == {n: 1.0}


def test_error_names_the_position_where_a_text_becomes_impossible(stories):
    tokenizer = story_tokenizer()
    place = "no story has 'x' at position 4, after 'One '; only 'f', 'r', 's', 'w' can be there"
    assert message(next_token_probs, stories, tokenizer, tokenizer.encode("One xylo")) == place
    later = tokenizer.encode("One xylophone fell")
    assert message(next_token_probs, stories, tokenizer, later) == place
    assert "no story has '\ufffd' at position 3" in message(
        next_token_probs, stories, tokenizer, [*tokenizer.encode("One"), 0xF0]
    )


def test_error_names_the_first_impossible_token(stories):
    tokenizer = story_tokenizer()
    whole = tokenizer.encode("It was a sunny day, and Mia ran")
    parts = [*whole[:2], *tokenizer.encode(" "), *tokenizer.encode("a"), *whole[3:]]
    assert tokenizer.decode(parts) == tokenizer.decode(whole) and len(parts) == len(whole) + 1
    for ids in (parts[:3], parts[:4], parts):
        assert message(next_token_probs, stories, tokenizer, ids) == (
            "no story is cut with ' ' as token 2, after 'It was'; only ' a' can be there"
        )


def test_invalid_ids_are_refused(stories):
    with pytest.raises(TypeError, match="must be integers"):
        next_token_probs(stories, story_tokenizer(), ["One"])
    with pytest.raises(IndexError, match=r"outside 0\.\.511"):
        next_token_probs(stories, story_tokenizer(), [512])


def test_the_table_of_a_text_is_the_distribution_after_each_of_its_tokens(stories):
    tokenizer = story_tokenizer()
    ids = tokenizer.encode(stories.generate(2, seed=24))
    table = next_token_table(stories, tokenizer, ids, tokenizer.vocab_size)
    assert table.shape == (len(ids) + 1, 512)
    for n, row in enumerate(table):
        found = {int(token): row[token] for token in np.flatnonzero(row)}
        exact = next_token_probs(stories, tokenizer, ids[:n])
        assert found == pytest.approx(exact, abs=1e-12)
    with pytest.raises(ValueError, match="no story has 'x' at position 4"):
        next_token_table(stories, tokenizer, tokenizer.encode("One xy"), tokenizer.vocab_size)
