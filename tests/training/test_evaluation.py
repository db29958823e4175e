"""How good a model is, token by token and character by character: by hand, and by brute force."""

import math

import numpy as np
import pytest
from tiny_models import message, stirred, tiny_gpt
from training_runs import held_out

from tinytorch import Tensor
from tinytorch.text.tokenization import BPETokenizer
from tinytorch.training.evaluation import character_surprise, evaluate, surprise


def log_softmax(logits):
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


# surprise and evaluate ---------------------------------------------------------------------------


def test_surprise_is_minus_the_log_of_what_the_model_gave_the_target():
    model = stirred(tiny_gpt())
    inputs, targets = held_out(5)
    expected = np.empty(inputs.shape)
    for row, ids in enumerate(inputs):
        log_probs = log_softmax(model(ids).data)
        for at in range(inputs.shape[1]):
            expected[row, at] = -log_probs[at, targets[row, at]]
    np.testing.assert_allclose(surprise(model, inputs, targets), expected, rtol=1e-10)
    assert evaluate(model, inputs, targets) == pytest.approx(expected.mean(), rel=1e-10)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 100])
def test_batch_size_does_not_change_the_result(batch_size):
    model = stirred(tiny_gpt())
    whole = surprise(model, *held_out(5), batch_size=5)
    np.testing.assert_allclose(surprise(model, *held_out(5), batch_size), whole, rtol=1e-12)


def test_evaluation_records_no_gradient_and_disables_dropout():
    model = tiny_gpt(dropout=0.5)
    assert evaluate(model, *held_out()) == evaluate(model, *held_out())
    assert model.training and all(p.grad is None for p in model.parameters())


# character_surprise, by hand ----------------------------------------------------------------------

BYTES = [bytes([byte]) for byte in range(256)]


def with_tokens(*longer, special_tokens=()):
    """A tokenizer of the 256 bytes, some longer tokens and special ones, in this order."""
    ranks = {token: i for i, token in enumerate([*BYTES, *longer])}
    return BPETokenizer(ranks, {name: len(ranks) + i for i, name in enumerate(special_tokens)})


def always(logits):
    """A model that says the same, whatever it has read."""
    return lambda ids: Tensor(np.tile(logits, (*ids.shape, 1)), dtype=np.float64)


def guess(tokenizer, text, before="\n"):
    """One over the probability of each character, when all tokens are equally likely."""
    return np.exp(
        character_surprise(always(np.zeros(tokenizer.vocab_size)), tokenizer, text, before)
    )


def test_a_byte_costs_the_probability_of_the_tokens_it_rules_out():
    tokenizer = with_tokens(b"lo", b"low")
    # 258 tokens; l, lo and low begin with "l", lo and low with "lo"; in the end it is low alone
    np.testing.assert_allclose(guess(tokenizer, "low"), [258 / 3, 3 / 2, 2 / 1])


def test_character_of_several_bytes_is_charged_for_all_of_them():
    tokenizer = with_tokens()
    np.testing.assert_allclose(guess(tokenizer, "né🙂!"), [256, 256**2, 256**4, 256])


def test_character_may_be_shared_by_two_tokens():
    tokenizer = with_tokens(b"n\xc3")  # "n" and the first byte of "é"
    assert tokenizer.pieces("né") == [b"n\xc3", b"\xa9"]
    np.testing.assert_allclose(guess(tokenizer, "né"), [257 / 2, 2 / 1 * 257])


def test_logits_beyond_the_vocabulary_count_too():
    tokenizer = with_tokens()
    nats = character_surprise(always(np.zeros(300)), tokenizer, "ab")
    np.testing.assert_allclose(np.exp(nats), [300, 300])


def test_tokens_of_the_highest_byte_are_found():
    tokenizer = with_tokens(b"ab", b"a\xff", b"a\xff\xff", b"a\xff\xff\xff\xff", b"b\xff", b"`\xff")
    # those that begin with "a": a, ab, and three of \xff
    np.testing.assert_allclose(guess(tokenizer, "ab"), [262 / 5, 5 / 1])


def test_ids_need_not_be_in_alphabetical_order():
    tokenizer = with_tokens(b"zz", b"ab", b"abc", b"aa")
    ids = tokenizer.ranks
    logits = np.zeros(260)
    logits[ids[b"ab"]], logits[ids[b"abc"]], logits[ids[b"aa"]] = np.log([2.0, 3.0, 5.0])
    nats = character_surprise(always(logits), tokenizer, "abc")
    total = 257 + 2 + 3 + 5
    np.testing.assert_allclose(np.exp(nats), [total / 11, 11 / 5, 5 / 3])  # a, aa, ab, abc


def test_very_unlikely_characters_are_measured_exactly():
    tokenizer = with_tokens(b"lo", b"low")
    logits = np.zeros(258)
    logits[[ord("l"), 256, 257]] = -1000.0, -2000.0, -3000.0
    nats = character_surprise(always(logits), tokenizer, "low")
    np.testing.assert_allclose(nats, [1000 + math.log(255), 1000, 1000], rtol=1e-12)


def test_certainty_costs_positive_zero():
    tokenizer = with_tokens(b"lo", b"low")
    logits = np.full(258, -1000.0)
    logits[257] = 0.0
    nats = character_surprise(always(logits), tokenizer, "low")
    assert [f"{n:.1f}" for n in nats] == ["0.0", "0.0", "0.0"]


@pytest.mark.parametrize("count", [3, 5, 7, 12, 14, 19, 24, 26])
def test_rounding_in_float32_gives_no_negative_surprise(count):
    tokenizer = with_tokens(*(b"l" + BYTES[ord("a") + i] for i in range(count)))
    logits = np.full(tokenizer.vocab_size, -1000.0, dtype=np.float32)
    logits[256:] = 0.0  # the first byte is certain, the second one open

    def model(ids):
        return np.tile(logits, (*ids.shape, 1))

    first, second = character_surprise(model, tokenizer, "la")
    assert 0.0 <= first < 1e-6 and second == pytest.approx(math.log(count))


# character_surprise, by brute force ---------------------------------------------------------------

TEXT = "\nlow lower lowest né née nèfle lo l \U0001f642\U0001f643\U0001f642 slow slower naïve low\n"


@pytest.fixture(scope="module")
def tokenizer():
    return BPETokenizer.train(TEXT * 3, 280, special_tokens=["<|end|>"])


@pytest.fixture(scope="module")
def model(tokenizer):
    return stirred(tiny_gpt(tokenizer.vocab_size, max_seq_len=160, pos_encoding="rotary"))


def nats_by_brute_force(model, tokenizer, text, before):
    """Every byte by a search through the whole vocabulary, then the bytes of each character."""
    read, tokens, nats = tokenizer.encode_ordinary(before), tokenizer.pieces(text), []
    for token in tokens:
        probs = np.exp(log_softmax(model(np.array(read)).data[-1]))
        held = 1.0
        for n in range(1, len(token) + 1):
            alike = [i for t, i in tokenizer.ranks.items() if t.startswith(token[:n])]
            now = sum(probs[i] for i in (alike if n < len(token) else [tokenizer.ranks[token]]))
            nats.append(math.log(held / now))
            held = now
        read.append(tokenizer.ranks[token])
    bytes_of_each = iter(nats)
    return [sum(next(bytes_of_each) for _ in char.encode()) for char in text]


@pytest.mark.parametrize("before", ["\n", "\nlow", "née!\n"])
@pytest.mark.parametrize("text", [" lower low", " née \U0001f643.", " slowest\n", "\n", "!", " é"])
def test_every_byte_matches_a_search_through_the_vocabulary(model, tokenizer, text, before):
    expected = nats_by_brute_force(model, tokenizer, text, before)
    result = character_surprise(model, tokenizer, text, before)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-12)


def assert_tokens_add_up(model, tokenizer, text, before):
    ids = np.array(tokenizer.encode_ordinary(before + text))
    skip = len(tokenizer.encode_ordinary(before))
    tokens = surprise(model, ids[None, :-1], ids[None, 1:])[0, skip - 1 :]
    characters = character_surprise(model, tokenizer, text, before)
    assert characters.shape == (len(text),) and (characters >= 0).all()
    assert characters.sum() == pytest.approx(tokens.sum(), rel=1e-10)
    ends = np.cumsum([len(piece) for piece in tokenizer.pieces(text)])
    if text.isascii():
        by_token = np.diff(characters.cumsum()[ends - 1], prepend=0.0)
        np.testing.assert_allclose(by_token, tokens, rtol=1e-9)


@pytest.mark.parametrize("text", [TEXT.strip() + "\n", "slow slower low\n", "l", "<|end|>", "\n"])
@pytest.mark.parametrize("before", ["\n", "a lower\n"])
def test_sum_over_a_tokens_characters_is_the_tokens_surprise(model, tokenizer, text, before):
    assert_tokens_add_up(model, tokenizer, text, before)


def test_the_context_is_read_but_not_charged(model, tokenizer):
    whole = character_surprise(model, tokenizer, "low slow née lower\n")
    for known in ("low", "low slow", "low slow née"):
        rest = "low slow née lower\n"[len(known) :]
        result = character_surprise(model, tokenizer, rest, before="\n" + known)
        np.testing.assert_allclose(result, whole[len(known) :], rtol=1e-10)


# character_surprise: what is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "before"),
    [("", "\n"), ("low", ""), ("", ""), ("w", "\nlo"), ("low", " "), ("low", "\na ")],
)
def test_text_that_does_not_begin_with_a_token_is_refused(text, before):
    tokenizer = with_tokens(b"lo", b"low", b" low", b"  ")
    told = message(ValueError, lambda: guess(tokenizer, text, before))
    assert told == (
        "character_surprise: neither text may be empty, and before must end with a "
        f"whole token, as \\n does; got {before!r} before {text!r}"
    )


def test_text_longer_than_the_window_is_refused(tokenizer):
    model = tiny_gpt(tokenizer.vocab_size, max_seq_len=4)
    assert len(character_surprise(model, tokenizer, "!!!!")) == 4  # reads the newline and three
    assert message(ValueError, lambda: character_surprise(model, tokenizer, "!!!!!")).startswith(
        "length 5 exceeds max_seq_len 4"
    )
