"""The drawing of "A model that answers" shows the posterior, and what the stored model believes."""

import numpy as np
import pytest
from drawings import after_answers

from tinytorch_book.experiments.answering import believed, load_answering_gpt
from tinytorch_book.experiments.story_questions import StoryQuestion, answers_to
from tinytorch_book.stories import StoryGrammar, cast_beliefs

TOLD = "One sunny morning Tom walked to the pond. There he met a"


def test_the_bars_are_those_of_the_grammar_and_of_the_model():
    known = cast_beliefs(StoryGrammar(), f"{TOLD} ")["animal"]
    shown = {name: p for name, p in known.items() if p}
    assert dict(after_answers.AT_THE_POND) == pytest.approx(shown)
    truth = np.array([*known.values()])
    [belief] = believed(load_answering_gpt(), [StoryQuestion(TOLD, "animal", "duck", truth)])
    share = belief[:-1] / belief[:-1].sum()
    for name, p in after_answers.BELIEVED:
        assert share[answers_to("animal").index(name)] == pytest.approx(p, abs=2e-3)
    assert sum(p for _, p in after_answers.BELIEVED) > 0.97
