"""What the package computes of the model that answers, and of happy endings."""

import itertools

import numpy as np

from tinytorch_book.experiments.answering import believed, load_answering_gpt
from tinytorch_book.experiments.preferences import KINDNESS
from tinytorch_book.experiments.story_questions import (
    QUESTIONS,
    UNSURE,
    StoryQuestion,
    answers_to,
    story_questions,
)
from tinytorch_book.stories import StoryGrammar, cast_beliefs
from tinytorch_book.stories.tilted import reward_of

NO_STORIES = "The dragon said", "Mia was a brave girl. One dragon", "One  sunny", "🦊"


def questions():
    """What it believes of every answer, and the posterior after stories and parts of them."""
    model, grammar, found = load_answering_gpt(), StoryGrammar(), []
    texts = [each.text for each in story_questions(12, seed=21)]
    texts += [story.strip() for story in grammar.generate(3, seed=22).splitlines()]
    for text, about in itertools.product(["", *texts, *NO_STORIES], QUESTIONS):
        if text in NO_STORIES:
            known = None
        else:  # after a part of a story a space says that the last word is over
            part = not grammar.is_story(f"{text}\n")
            known = [*cast_beliefs(grammar, text + " " * (part and text != ""))[about].values()]
        [belief] = believed(model, [StoryQuestion(text, about, "", np.zeros(1))])
        found.append({"text": text, "about": about, "answers": answers_to(about),
                      "believed": belief, "posterior": known})  # fmt: skip
    return {"asked": found, "questions": QUESTIONS, "unsure": UNSURE}


NO_POINTS = (
    "",
    "unhappy Happy bedtime constructor",
    "bed's bed-bed sad'x 'sad' glad\u00e9 _sad sad_",
)


def rewards():
    """The points of texts, of stories and of what looks like them."""
    texts = [*NO_POINTS, *StoryGrammar().generate(40, seed=23).splitlines()]
    return {"texts": [[text, reward_of(text, KINDNESS)] for text in texts]}
