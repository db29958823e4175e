"""The judge of the sixty questions: what counts as an answer, and how sure the model was."""

from collections import Counter
from math import log

import numpy as np
import pytest

from tinytorch import GPT
from tinytorch.text.chat import IM_END, IM_START, add_special_tokens
from tinytorch.text.tokenization import BPETokenizer
from tinytorch_book.experiments.asked_questions import (
    KINDS,
    Judged,
    Question,
    asked_questions,
    judge,
    share_interval,
)
from tinytorch_book.experiments.talking import Talk

ASKED = Question("sums", "What is 1 + 1?", "1 + 1 =", "2")


@pytest.fixture(scope="module")
def tokenizer():
    return add_special_tokens(BPETokenizer.train("", 256), [IM_START, IM_END])


def test_there_are_fifteen_questions_of_each_kind_and_no_two_alike():
    questions = asked_questions()
    assert Counter(question.kind for question in questions) == dict.fromkeys(KINDS, 15)
    assert len({question.text for question in questions}) == 60


def test_sums_and_letters_have_the_answers_that_are_computed_here():
    for question in asked_questions():
        if question.kind == "sums":
            assert eval(question.begun.rstrip("=")) == int(question.answer)
        if question.kind == "letters":
            place, word = question.begun.split()[1], question.begun.split('"')[1]
            letters = {"first": word[0], "second": word[1], "last": word[-1]}
            assert question.answer == letters[place]


@pytest.mark.parametrize(
    ("written", "said", "counted"),
    [
        (" Rome.", "Rome", 5),
        (' "P".', "P", 3),
        ("15\n", "15", 2),
        (" naïve ", "naïve", 7),
        (f"2{IM_END}", "2", 1),
        (IM_END, "", 0),
        ("swimming pool", "swimming", 8),  # the most that is read
        ("....................", "", 8),
    ],
)
def test_the_first_word_counts_with_the_tokens_before_what_ends_it(
    monkeypatch, tokenizer, written, said, counted
):
    script = tokenizer.encode(written, allowed_special="all")
    scores = np.log(np.full((1, tokenizer.vocab_size), 0.4 / (tokenizer.vocab_size - 1)))

    def read(talk, ids):  # the next token of the script is likeliest
        assert talk.tokenizer.decode(ids).count(ASKED.begun) == 1
        new = scores.copy()
        new[0, script.pop(0)] = log(0.6)
        return new

    monkeypatch.setattr(Talk, "_scores", read)
    [answer] = judge(GPT(tokenizer.vocab_size, 8, 1, 2), tokenizer, [ASKED])
    assert answer.said == said and answer.share == pytest.approx(0.6**counted, rel=1e-4)
    assert answer.right is (said == "2")


def test_capital_letters_do_not_matter_and_another_word_does():
    asked = ASKED._replace(answer="Rome")
    rights = [Judged(asked, said, 0.5).right for said in ("rome", "ROME", "Romes", "Rom", "")]
    assert rights == [True, True, False, False, False]


@pytest.mark.parametrize(("right", "asked"), [(0, 15), (4, 15), (15, 15), (33, 60), (1, 1)])
def test_an_interval_ends_where_what_was_seen_is_1_96_errors_away(right, asked):
    low, high = share_interval(right, asked)
    assert 0 <= low <= right / asked <= high <= 1 and high - low > 0.1
    for share in (low, high):
        error = np.sqrt(share * (1 - share) / asked)
        assert abs(right / asked - share) == pytest.approx(1.959964 * error, abs=1e-6)


@pytest.mark.parametrize("given", [(-1, 5), (6, 5), (0, 0)])
def test_an_interval_of_impossible_counts_is_refused(given):
    with pytest.raises(ValueError, match=r"share_interval: cannot be right in -?\d of \d"):
        share_interval(*given)
