"""A conversation that reads no token twice, and a look at what it could have said."""

import numpy as np
import pytest

from tinytorch import GPT, LayerNorm
from tinytorch.inside.stream import logit_lens, residual_stream
from tinytorch.models.sampling import next_token_probs
from tinytorch.text.chat import IM_END, IM_START, add_special_tokens, chatml_prompt
from tinytorch.text.tokenization import BPETokenizer
from tinytorch_book.experiments.talking import Talk

ASKED = [{"role": "user", "content": "Why?"}]


@pytest.fixture(scope="module")
def tokenizer():
    return add_special_tokens(BPETokenizer.train("to be or not to be", 260), [IM_START, IM_END])


@pytest.fixture
def model(tokenizer):
    return GPT(tokenizer.vocab_size, 16, 3, 2, max_seq_len=300, init_std=0.3, rng=0)


@pytest.fixture
def talk(model, tokenizer):
    return Talk(model, tokenizer, system=None, window=200)


def ids_of(tokens):
    return [token["id"] for token in tokens]


def continued(model, tokenizer, messages, count, system=None):
    """The likeliest tokens, without a cache."""
    ids = chatml_prompt(tokenizer, messages, system)
    return model.generate(ids, count, temperature=0, use_cache=False).data[len(ids) :].tolist()


def test_an_answer_is_what_the_model_writes_after_the_prompt(talk, model, tokenizer):
    expected = continued(model, tokenizer, ASKED, 20)
    assert ids_of(talk.answer(ASKED, 20)) == expected
    longer = [*ASKED, {"role": "assistant", "content": "to be"}, {"role": "user", "content": "?"}]
    assert ids_of(talk.answer(longer, 20)) == continued(model, tokenizer, longer, 20)
    assert ids_of(talk.answer(ASKED, 20)) == expected, "after another conversation"
    with_system = Talk(model, tokenizer, system="Be not.", window=200)
    assert ids_of(with_system.answer(ASKED, 9)) == continued(model, tokenizer, ASKED, 9, "Be not.")


def test_an_answer_that_is_begun_goes_on_from_there(talk, model, tokenizer):
    ids = [*chatml_prompt(tokenizer, ASKED), *tokenizer.encode_ordinary("to be")]
    expected = model.generate(ids, 9, temperature=0, use_cache=False).data[len(ids) :].tolist()
    assert ids_of(talk.answer(ASKED, 9, begun="to be")) == expected
    assert expected != continued(model, tokenizer, ASKED, 9)


def test_what_has_been_read_is_not_read_again(talk, monkeypatch):
    said = [*talk.answer(ASKED, 5)]
    read, logits = [], talk._logits
    monkeypatch.setattr(talk, "_logits", lambda ids: [read.append(ids.size), logits(ids)][1])
    text = "".join(token["name"] for token in said)
    [*talk.answer([*ASKED, {"role": "assistant", "content": text}, *ASKED], 3)]
    known = len(chatml_prompt(talk.tokenizer, ASKED))
    assert sum(read) < known + 40 and read[1:] == [1, 1]


def test_parts_that_have_been_replaced_read_it_all_again(talk, model, tokenizer):
    before = ids_of(talk.answer(ASKED, 9))
    model.ln_f = LayerNorm(16)
    model.ln_f.gamma.data = np.linspace(-3, 3, 16, dtype=np.float32)
    model.blocks[0].ln1 = LayerNorm(16, eps=1.0)
    after = ids_of(talk.answer(ASKED, 9))
    assert after == continued(model, tokenizer, ASKED, 9) != before


def test_each_token_has_its_probability_and_five_others(talk, model, tokenizer):
    ids = chatml_prompt(tokenizer, ASKED)
    for token in talk.answer(ASKED, 4, temperature=0.3, rng=0):
        probs = next_token_probs(model(ids).data[-1])
        assert token["share"] == pytest.approx(probs[token["id"]], abs=1e-5)
        best = [i for i in np.argsort(-probs, kind="stable") if i != token["id"]][:5]
        assert [share for _, share in token["others"]] == pytest.approx(probs[best], abs=1e-5)
        names = [tokenizer.decode_bytes([i]).decode("utf-8", "backslashreplace") for i in best]
        assert [name for name, _ in token["others"]] == names
        ids.append(token["id"])


def test_characters_of_several_tokens_come_when_they_are_whole(talk, monkeypatch):
    end = talk.tokenizer.special_tokens[IM_END]
    script = [*"é".encode(), *b"t", end]
    one_hot = np.eye(talk.tokenizer.vocab_size)
    monkeypatch.setattr(talk, "_scores", lambda ids: one_hot[[script.pop(0)]] * 99)
    said = [*talk.answer(ASKED, 20)]
    assert [token["text"] for token in said] == ["", "é", "t"]
    assert [token["name"] for token in said] == ["\\xc3", "\\xa9", "t"]


@pytest.mark.parametrize("cached", [True, False])
def test_the_first_choice_is_that_of_the_logit_lens(talk, model, cached, monkeypatch):
    if not cached:
        monkeypatch.setattr(type(model), "new_cache", lambda self: None)
        talk = Talk(model, talk.tokenizer, system=None, window=200)
    said = ids_of(talk.answer(ASKED, 12, temperature=0.3, rng=1))
    prompt = chatml_prompt(talk.tokenizer, ASKED)
    found = []
    for n in (12, 3, 1, *range(2, 12)):  # in any order
        stream = residual_stream(model, [[*prompt, *said[: n - 1]]])[:, 0, -1]
        first = logit_lens(model, stream).argmax(-1) == said[n - 1]
        stays = [stage for stage in range(4) if first[stage:].all()]
        found.append(talk.first_choice(ASKED, said[:n]))
        assert found[-1] == (stays[0] if stays else None)
    assert {*found} == {None, 0, 2, 3}
    again = ids_of(talk.answer(ASKED, 12, temperature=0.3, rng=1))
    assert again == said, "it goes on after a look"


def test_a_full_window_ends_an_answer_and_a_longer_conversation_is_refused(talk, model, tokenizer):
    prompt = len(chatml_prompt(tokenizer, ASKED))
    assert len([*talk.answer(ASKED, 500)]) == 200 - prompt + 1
    with pytest.raises(ValueError, match=r"has \d+ tokens, and 200 fit; begin a new one"):
        next(talk.answer([{"role": "user", "content": "x" * 200}]))
    with pytest.raises(ValueError, match="window must be at most 300, got 301"):
        Talk(model, tokenizer, window=301)
