"""Sixty questions for a published model, in four kinds, judged by code.

The model does not answer freely. The answer is begun for it, *The capital of Italy is*, and the
next word is what it says. So its form is known, code can compare it with what is right, and the
probability of just this word is how sure the model is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from statistics import NormalDist
from typing import NamedTuple

from tinytorch.models.transformer import GPT
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch_book.experiments.talking import SYSTEM, Talk

__all__ = ["KINDS", "Judged", "Question", "asked_questions", "judge", "share_interval"]

#: The kinds of questions, fifteen of each.
KINDS = ("capitals", "sums", "words", "letters")
_MOST_TOKENS = 8  # of one answer
_WORD = re.compile(r"\W*(\w+)")
_ENDED = re.compile(r"\W*\w+\W")  # a word, and what shows that it is over

_CAPITALS = """France Paris, Italy Rome, Japan Tokyo, Egypt Cairo, Canada Ottawa, Spain Madrid,
Australia Canberra, Poland Warsaw, Greece Athens, Norway Oslo, Kenya Nairobi, Peru Lima,
Turkey Ankara, Cuba Havana, Portugal Lisbon"""
_SUMS = "3 4, 8 1, 2 2, 6 9, 5 7, 12 5, 20 30, 14 13, 9 16, 12 29, 25 25, 38 47, 61 18, 76 8, 46 55"
_WORDS = """opposite hot cold, opposite early late, opposite full empty, opposite heavy light,
opposite young old, plural mouse mice, plural child children, plural leaf leaves,
plural tooth teeth, plural sheep sheep, past_tense go went, past_tense think thought,
past_tense swim swam, past_tense buy bought, past_tense put put"""
_LETTERS = """first garden, first piano, first yellow, first knife, first umbrella, last garden,
last piano, last yellow, last knife, last umbrella, second garden, second piano, second yellow,
second knife, second umbrella"""
_PLACES = {"first": 0, "second": 1, "last": -1}


class Question(NamedTuple):
    """What is asked, how the answer begins, and the word that is right.

    Example:
        >>> Question("sums", "What is 1 + 1?", "1 + 1 =", "2").answer
        '2'
    """

    kind: str
    text: str
    begun: str
    answer: str


class Judged(NamedTuple):
    """What a model said to a question.

    Attributes:
        question: what was asked.
        said: the word, or "" where there was none.
        share: the probability of its tokens, in the model's own forecast.
    """

    question: Question
    said: str
    share: float

    @property
    def right(self) -> bool:
        """Whether the word is the right one; capital letters or small ones do not matter.

        Example:
            >>> Judged(Question("sums", "What is 1 + 1?", "1 + 1 =", "2"), "2", 0.9).right
            True
        """
        return self.said.lower() == self.question.answer.lower()


def asked_questions() -> list[Question]:
    """The sixty questions, kind by kind.

    Example:
        >>> questions = asked_questions()
        >>> len(questions), questions[1].text, questions[1].begun, questions[1].answer
        (60, 'What is the capital of Italy?', 'The capital of Italy is', 'Rome')
    """
    return [*_questions()]


def judge(
    model: GPT,
    tokenizer: BPETokenizer,
    questions: Iterable[Question],
    system: str | None = SYSTEM,
) -> list[Judged]:
    """Ask a model in ChatML, each question in a conversation of its own.

    What counts is the first word of its likeliest tokens.

    Args:
        model: a GPT.
        tokenizer: its tokenizer, with the special tokens of ChatML.
        questions: what is asked.
        system: the first message of each conversation; None for none.

    Example:
        >>> from tinytorch.text.chat import IM_END, IM_START, add_special_tokens
        >>> tokenizer = add_special_tokens(BPETokenizer.train("", 256), [IM_START, IM_END])
        >>> model = GPT(tokenizer.vocab_size, 8, 1, 2, rng=0)
        >>> [judged] = judge(model, tokenizer, asked_questions()[:1])
        >>> judged.right, 0 < judged.share < 1
        (False, True)
    """
    talk = Talk(model, tokenizer, system, window=min(1024, model.max_seq_len))
    return [_judged(talk, question) for question in questions]


def share_interval(right: int, asked: int, level: float = 0.95) -> tuple[float, float]:
    """An interval for a share of which `right` out of `asked` have been seen.

    It holds the shares that the sample does not contradict: those whose own standard error,
    `sqrt(p (1 - p) / asked)`, allows for what was seen (Wilson, 1927, "Probable inference, the law
    of succession, and statistical inference"). Even 15 of 15 leave room for less than all.

    Args:
        right: how many were.
        asked: of how many, at least 1.
        level: how often such an interval holds the true share.

    Raises:
        ValueError: the counts do not fit each other, or the level is not between 0 and 1.

    Example:
        >>> [round(end, 3) for end in share_interval(15, 15)]
        [0.796, 1.0]
        >>> [round(end, 3) for end in share_interval(30, 60)]
        [0.377, 0.623]
    """
    if not 0 <= right <= asked or asked < 1 or not 0 < level < 1:
        rule = "0 <= right <= asked, asked >= 1, and a level between 0 and 1"
        raise ValueError(f"share_interval: expected {rule}; got {right}, {asked}, {level}")
    z2 = NormalDist().inv_cdf((1 + level) / 2) ** 2
    middle = (right + z2 / 2) / (asked + z2)
    reach = math.sqrt(z2 * (right * (asked - right) / asked + z2 / 4)) / (asked + z2)
    return max(0.0, middle - reach), min(1.0, middle + reach)


# Helpers -------------------------------------------------------------------------------------


def _questions() -> Iterator[Question]:
    for country, capital in _rows(_CAPITALS):
        begun = f"The capital of {country} is"
        yield Question("capitals", f"What is the capital of {country}?", begun, capital)
    for a, b in _rows(_SUMS):
        yield Question("sums", f"What is {a} + {b}?", f"{a} + {b} =", str(int(a) + int(b)))
    for form, word, answer in _rows(_WORDS):
        asked = f'{form.replace("_", " ")} of "{word}"'
        yield Question("words", f"What is the {asked}?", f'The {asked} is "', answer)
    for place, word in _rows(_LETTERS):
        asked = f'{place} letter of "{word}"'
        yield Question(
            "letters", f"What is the {asked}?", f'The {asked} is "', word[_PLACES[place]]
        )


def _rows(table: str) -> Iterator[list[str]]:
    return (row.split() for row in table.split(","))


def _judged(talk: Talk, question: Question) -> Judged:
    text, share = "", 1.0
    asked = [{"role": "user", "content": question.text}]
    for token in talk.answer(asked, _MOST_TOKENS, begun=question.begun):
        if _ENDED.match(text + token["text"]):
            break
        text, share = text + token["text"], share * token["share"]
    found = _WORD.match(text)
    return Judged(question, found[1] if found else "", share)
