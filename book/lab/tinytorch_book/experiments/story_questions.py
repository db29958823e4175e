"""Questions about stories, with the answer that is true and the exact belief in each that may be.

A question is about one of the cast, such as the animal, and stands after a story that may be cut
off. If the story has named the animal, the answer is known; if not, the question is *open*, and the
best that a reader can have is the posterior over the animals.

Of each story only what it names sooner or later is asked, so every question has a true answer. That
gives nothing away: where a story is cut and what it names depends on its sentences alone, and in
this grammar these do not look at the cast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.chat import add_special_tokens, chat_answer, chat_prompt
from tinytorch_book.experiments.story_gpt import story_tokenizer
from tinytorch_book.stories import StoryGrammar, cast_beliefs, hidden_values

__all__ = ["QUESTIONS", "UNSURE", "StoryQuestion", "answers_to", "question_chats",
           "question_tokenizer", "story_questions"]  # fmt: skip

#: What is asked about each of the cast.
QUESTIONS = {
    "hero": "Who?",
    "place": "Where?",
    "animal": "Which animal?",
    "food": "What food?",
    "thing": "Which thing?",
}
#: What can be said instead of an answer.
UNSURE = "I do not know"
_FIRST = 3  # words that every cut leaves


class StoryQuestion(NamedTuple):
    """A question after a story or a part of one.

    Attributes:
        text: as much of the story as is told, up to the end of a word.
        about: which of the cast is asked about.
        answer: the true one, which the whole story names.
        posterior: how probable each of `answers_to(about)` is, given the text.
    """

    text: str
    about: str
    answer: str
    posterior: np.ndarray

    @property
    def stated(self) -> bool:
        """Whether the text leaves no choice."""
        return bool(self.posterior.max() > 1 - 1e-9)


def answers_to(about: str) -> tuple[str, ...]:
    """The answers that a question can have.

    Example:
        >>> answers_to("place")[:3]
        ('forest', 'garden', 'meadow')
    """
    return hidden_values(_grammar(), about)  # type: ignore[return-value]  # never None in a cast


def story_questions(count: int, seed: int = 0, share_open: float = 0.5) -> list[StoryQuestion]:
    """Questions about stories, one a story.

    Args:
        count: how many.
        seed: which stories, which cuts and which questions.
        share_open: how often an open question is asked, where there is one.

    Example:
        >>> [first] = story_questions(1)
        >>> first.text[-14:], first.about, first.answer, first.stated
        ('asked for some', 'animal', 'hen', True)
    """
    rng = np.random.default_rng([seed, 28])
    asked = (_ask(story, rng, share_open) for story in _grammar().stories(seed))
    return list(islice(asked, count))


@cache
def question_tokenizer() -> BPETokenizer:
    """The tokenizer of the stories, with the three special tokens of a chat."""
    return add_special_tokens(story_tokenizer())


def question_chats(
    questions: Sequence[StoryQuestion], answers: Sequence[str] | None = None
) -> list[tuple[list[int], list[int]]]:
    """The ids of each prompt and of its answer, as `answer_rows` takes them.

    Args:
        questions: what is asked.
        answers: one for each; by default the true ones.

    Example:
        >>> [(prompt, answer)] = question_chats(story_questions(1))
        >>> question_tokenizer().decode(prompt[-15:]), question_tokenizer().decode(answer)
        (' for some<|user|>Which animal?<|assistant|>', ' hen<|end|>')
    """
    cut, said = question_tokenizer(), answers or [question.answer for question in questions]
    return [
        (chat_prompt(cut, "\n" + each.text, QUESTIONS[each.about]), chat_answer(cut, answer))
        for each, answer in zip(questions, said, strict=True)
    ]


# Helpers -------------------------------------------------------------------------------------


_grammar = cache(StoryGrammar)


def _ask(story: str, rng: np.random.Generator, share_open: float) -> StoryQuestion:
    """Cut a story at the end of a word, and ask about something that the whole of it names."""
    words = story.rstrip("\n").split(" ")
    end = int(rng.integers(_FIRST, len(words) + 1))
    text = " ".join(words[:end])
    named = dict(_named(story.rstrip("\n")))
    # the space says that the last word is over, as the special token after it does
    after = cast_beliefs(_grammar(), text + " " * (end < len(words)))
    left = [about for about in named if max(after[about].values()) < 1 - 1e-9]
    told = [about for about in named if about not in left]
    asked = left if left and (not told or rng.random() < share_open) else told
    about = asked[int(rng.integers(len(asked)))]
    return StoryQuestion(text, about, named[about], np.array([*after[about].values()]))


def _named(story: str) -> Iterator[tuple[str, str]]:
    """What a whole story names, of what can be asked."""
    after = cast_beliefs(_grammar(), story)
    for about in QUESTIONS:
        answer, p = max(after[about].items(), key=lambda item: item[1])
        if p > 1 - 1e-9:
            yield about, answer
