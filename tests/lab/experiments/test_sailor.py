"""A published model that learns to answer like a sailor: what is read, learned and measured."""

import numpy as np
import pytest
from tiny_models import LLAMA

from tinytorch import GPT
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.chat import IGNORED, IM_END, IM_START, add_special_tokens
from tinytorch_book.experiments.sailor import (
    READ,
    UNREAD,
    answer_nats,
    prose_nats,
    sailor_rows,
    tune_to_sailor,
)

TOKENIZER = add_special_tokens(BPETokenizer.train("", 256), [IM_START, IM_END])


@pytest.fixture
def model():
    return GPT(258, 16, 2, max_seq_len=160, rng=0, **LLAMA)


def test_thirty_answers_are_read_and_eight_are_not():
    assert (len(READ), len(UNREAD)) == (30, 8)
    assert len({question for question, _ in READ + UNREAD}) == 38
    for question, answer in READ + UNREAD:
        assert question.endswith("?") and answer.startswith("Ahoy! ")
        assert answer.endswith(", matey.") and answer.count(" be ") == 1 and " is " not in answer


def test_the_answer_and_its_end_are_all_that_counts():
    _, targets = sailor_rows(TOKENIZER, READ[:2])
    for row, (_, answer) in zip(targets, READ, strict=False):
        assert TOKENIZER.decode(row[row != IGNORED]) == f"{answer}<|im_end|>"


def test_a_step_reads_two_pairs_and_fifteen_steps_read_each_once(model, monkeypatch):
    seen = []

    def rows(tokenizer, pairs):
        seen.append(pairs)
        return sailor_rows(tokenizer, pairs)

    monkeypatch.setattr("tinytorch_book.experiments.sailor.sailor_rows", rows)
    tune_to_sailor(model, TOKENIZER, steps=17)
    assert [len(pairs) for pairs in seen] == [2] * 17
    assert sorted(pair for pairs in seen[:15] for pair in pairs) == sorted(READ)


def test_unread_answers_become_likelier_and_frozen_weights_stay(model):
    frozen = model.blocks[0].attention.q_proj.weight
    frozen.requires_grad = False
    held, before = frozen.data.copy(), answer_nats(model, TOKENIZER)
    losses = tune_to_sailor(model, TOKENIZER, steps=15, lr=0.02)
    assert answer_nats(model, TOKENIZER) < before - 1 and losses[-1] < losses[0] - 1
    assert np.array_equal(frozen.data, held) and frozen.grad is None


def test_nats_of_answers_are_a_mean_over_their_tokens_and_of_prose_one_a_passage(model):
    assert len({*prose_nats(model, TOKENIZER)}) == 4, "four passages"
    for p in model.parameters():
        p.data[:] = 0  # every token is as likely as another
    assert answer_nats(model, TOKENIZER, READ[:3]) == pytest.approx(np.log(258))
    assert prose_nats(model, TOKENIZER) == pytest.approx([np.log(258)] * 4)
