"""Sixty questions for a published model, in four kinds, judged by code.

The model does not answer freely. The answer is begun for it, *The capital of Italy is*, and the
next word is what it says. So its form is known, code can compare it with what is right, and the
probability of just this word is how sure the model is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

from tinytorch.models.transformer import GPT
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch_book.experiments.talking import Talk

__all__ = ["KINDS", "Judged", "Question", "asked_questions", "judge", "share_interval"]

_MOST_TOKENS = 8  # of one answer
_WORD = re.compile(r"\W*(\w+)")
_ENDED = re.compile(r"\W*\w+\W")  # a word, and what shows that it is over

_FORMS = {  # what is asked, and after the bar how the answer goes on
    "capitals": "the capital of {}| is",
    "sums": "{} + {}| =",
    "words": 'the {} of "{}"| is "',
    "letters": 'the {} letter of "{}"| is "',
}
_ASKED = {  # what is put in, and the answer
    "capitals": """France Paris, Italy Rome, Japan Tokyo, Egypt Cairo, Canada Ottawa,
        Spain Madrid, Australia Canberra, Poland Warsaw, Greece Athens, Norway Oslo,
        Kenya Nairobi, Peru Lima, Turkey Ankara, Cuba Havana, Portugal Lisbon""",
    "sums": """3 4 7, 8 1 9, 2 2 4, 6 9 15, 5 7 12, 12 5 17, 20 30 50, 14 13 27, 9 16 25,
        12 29 41, 25 25 50, 38 47 85, 61 18 79, 76 8 84, 46 55 101""",
    "words": """opposite hot cold, opposite early late, opposite full empty,
        opposite heavy light, opposite young old, plural mouse mice, plural child children,
        plural leaf leaves, plural tooth teeth, plural sheep sheep, past_tense go went,
        past_tense think thought, past_tense swim swam, past_tense buy bought,
        past_tense put put""",
    "letters": """first garden g, first piano p, first yellow y, first knife k,
        first umbrella u, last garden n, last piano o, last yellow w, last knife e,
        last umbrella a, second garden a, second piano i, second yellow e, second knife n,
        second umbrella m""",
}
#: The kinds of questions, fifteen of each.
KINDS = tuple(_FORMS)


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
    questions = []
    for kind, rows in _ASKED.items():
        for *words, answer in map(str.split, rows.split(",")):
            what, on = _FORMS[kind].format(*words).replace("_", " ").split("|")
            begun = what[0].upper() + what[1:] + on
            questions.append(Question(kind, f"What is {what}?", begun, answer))
    return questions


def judge(model: GPT, tokenizer: BPETokenizer, questions: Iterable[Question]) -> list[Judged]:
    """Ask a model in ChatML, each question in a conversation of its own.

    What counts is the first word of its likeliest tokens.

    Args:
        model: a GPT.
        tokenizer: its tokenizer, with the special tokens of ChatML.
        questions: what is asked.

    Example:
        >>> from tinytorch.text.chat import IM_END, IM_START, add_special_tokens
        >>> tokenizer = add_special_tokens(BPETokenizer.train("", 256), [IM_START, IM_END])
        >>> model = GPT(tokenizer.vocab_size, 8, 1, 2, rng=0)
        >>> [judged] = judge(model, tokenizer, asked_questions()[:1])
        >>> judged.right, 0 < judged.share < 1
        (False, True)
    """
    talk = Talk(model, tokenizer, window=min(1024, model.max_seq_len))
    return [_judged(talk, question) for question in questions]


def share_interval(right: int, asked: int) -> tuple[float, float]:
    """An interval for the share of which `right` out of `asked` are a sample, at a level of 95 %.

    It holds every share `p` from which the sample is at most 1.96 errors away, `sqrt(p (1 - p) /
    asked)` each (Wilson, 1927, "Probable inference, the law of succession, and statistical
    inference"). So even 15 of 15 leave room for less than all.

    Args:
        right: how many were.
        asked: of how many, at least 1.

    Raises:
        ValueError: the counts do not fit each other.

    Example:
        >>> [round(end, 3) for end in share_interval(15, 15)]
        [0.796, 1.0]
        >>> [round(end, 3) for end in share_interval(30, 60)]
        [0.377, 0.623]
    """
    if not 0 <= right <= asked or asked < 1:
        raise ValueError(f"share_interval: cannot be right in {right} of {asked}")
    z2 = NormalDist().inv_cdf(0.975) ** 2  # 1.96²
    middle = (right + z2 / 2) / (asked + z2)
    reach = math.sqrt(z2 * (right * (asked - right) / asked + z2 / 4)) / (asked + z2)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def _judged(talk: Talk, question: Question) -> Judged:
    text, share = "", 1.0
    asked = [{"role": "user", "content": question.text}]
    for token in talk.answer(asked, _MOST_TOKENS, begun=question.begun):
        if _ENDED.match(text + token["text"]):
            break
        text, share = text + token["text"], share * token["share"]
    found = _WORD.match(text)
    return Judged(question, found[1] if found else "", share)
