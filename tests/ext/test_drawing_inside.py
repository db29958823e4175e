"""The drawing of "What it learned" shows what the oracle believes and what the model forecasts."""

import numpy as np
import pytest
from drawings import inside

from tinytorch import functional
from tinytorch.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch.stories import StoryGrammar, hidden_values, next_token_table, token_beliefs


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
