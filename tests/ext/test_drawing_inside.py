"""The drawings of the part "Inside" show what the model looks at, and what the oracle believes."""

import json
from itertools import pairwise

import numpy as np
import pytest
from drawings import inside, story_looks

from tinytorch import functional
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.stories import StoryGrammar, hidden_values, next_token_table, token_beliefs


def test_the_drawings_numbers_are_those_of_the_oracle_and_of_the_model():
    grammar, tokenizer = StoryGrammar(), story_tokenizer()
    animals = hidden_values(grammar, "animal")
    story = "It was a sunny day, and Mia " + " ".join(inside.WORDS).replace(" .", ".")
    ids = tokenizer.encode(story)
    beliefs = token_beliefs(grammar, tokenizer, ids, "animal")
    pond = len(tokenizer.encode(story[: story.index(" pond")]))
    assert dict(inside.BEFORE) == pytest.approx(
        dict(zip(animals, beliefs[pond], strict=True)), abs=5e-4
    )
    for belief in beliefs[pond + 1 :]:
        shown = {name: p for name, p in zip(animals, belief, strict=True) if p}
        assert dict(inside.AT_THE_POND) == pytest.approx(shown)
    newline = tokenizer.encode("\n")
    said = functional.softmax(load_story_gpt()(np.array([newline + ids])).data[0, -1]).data
    assert next_token_table(grammar, tokenizer, ids, 512)[-1].argmax() == said.argmax()
    for name, share in inside.FORECAST:
        assert said[tokenizer.encode(f" {name}")[0]] == pytest.approx(share, abs=1e-3)


def test_the_stored_looks_are_those_of_the_packages_heads():
    stored, found = json.loads(inside.LOOKS.read_text(encoding="utf-8")), story_looks.computed()
    assert stored["tokens"] == found["tokens"] and stored["heads"].keys() == found["heads"].keys()
    for head, rows in found["heads"].items():
        for row, kept in zip(rows, stored["heads"][head], strict=True):
            for key, share in row:
                assert dict(kept).get(key, story_looks.LEAST) == pytest.approx(share, abs=0.011)


def test_each_job_that_is_drawn_is_before_a_word_it_names():
    stored = inside.read_story()
    tokens = stored["tokens"]
    due = {head: [tokens[q + 1].strip() for q in asks] for head, asks in inside.JOBS.items()}
    assert due == {"0.3": ["cow", "c", "c", "cow"], "1.0": ["he", "hi", "Ben", "Ben"]}
    sought = {h: {tokens[stored["heads"][h][q][0][0]] for q in a} for h, a in inside.JOBS.items()}
    assert sought == {"0.3": {" meadow", " cow"}, "1.0": {" Ben"}}


def test_the_story_fits_into_the_panel_and_no_token_covers_another():
    places = inside.places_of(inside.read_story()["tokens"])
    assert all(x >= 0 and x + wide <= 334 for x, _, wide in places)
    for (x, y, wide), (to, at, _) in pairwise(places):
        assert at > y or to >= x + wide - 1e-9
