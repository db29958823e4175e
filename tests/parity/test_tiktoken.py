"""Our tokenizer against tiktoken: the pieces, the merges, the ids and the files are the same.

tiktoken encodes with the very ranks of ours, so that every id must be equal; its teaching trainer
must learn the same merges. Nothing is downloaded: the files are made from a tokenizer of our own,
in the layout of the published ones.
"""

import json
import unicodedata

import pytest
import regex
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tiktoken._educational import bpe_train
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import r50k_pat_str
from transformers import GPT2Tokenizer

from tinytorch.text.corpus import book_prose
from tinytorch.text.tokenization import BPETokenizer, split_like_gpt2
from tinytorch.text.tokenizer_files import bytes_to_letters
from tinytorch_book.stories import StoryGrammar

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
END, PAD = "<|endoftext|>", "<|pad|>"

# Characters that this Python's Unicode does not know yet may be known to the others.
text = st.text(st.characters(exclude_categories=["Cs", "Cn"]))
SPACES = [" ", "   ", "\n", "\r\n", "\t", "\x1c", "\x85", "\xa0", "\u3000", "\u200b"]
SIGNS = [
    "'s",
    "'S",
    "'ll",
    "the",
    " duck",
    " 7",
    "½",
    "é",
    "e\u0301",
    "日本",
    "👩‍🚀",
    "_",
    "<|",
    "|>",
]
bits = st.sampled_from([*SPACES, *SIGNS, "endoftext", "\x00"])
texts = text | st.lists(bits, max_size=20).map("".join)
special_texts = st.lists(bits | st.sampled_from([END, PAD]), max_size=12).map("".join)


@pytest.fixture(scope="module")
def stories():
    return StoryGrammar().generate(300)


@pytest.fixture(scope="module")
def ours(stories):
    return BPETokenizer.train(stories + book_prose(), 1500, [END, PAD])


@pytest.fixture(scope="module")
def theirs(ours):
    return tiktoken.Encoding(
        "ours", pat_str=PATTERN, mergeable_ranks=ours.ranks, special_tokens=ours.special_tokens
    )


# -------------------------------------------------------------------------------- pieces


@given(texts)
@settings(max_examples=300)
def test_the_pieces_are_those_of_the_pattern(text):
    assert split_like_gpt2(text) == regex.findall(PATTERN, text)
    assert split_like_gpt2(text) == regex.findall(r50k_pat_str, text)


def test_every_unicode_character_is_in_the_class_of_the_pattern():
    known = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cs", "Cn")]
    assert len(known) > 250_000
    for text in (" ".join(known), "x".join(known), "7".join(known), "!".join(known)):
        assert split_like_gpt2(text) == regex.findall(PATTERN, text)


# ------------------------------------------------------------------------------ training


def assert_same_merges(text, most):
    """All the merges that the text allows, or the first of them."""
    allowed = merges_allowed(text)
    vocab_size = 256 + min(allowed, most)
    theirs = bpe_train(text, vocab_size, PATTERN, visualise=None)
    assert BPETokenizer.train(text, vocab_size).ranks == theirs
    if allowed <= most:
        with pytest.raises(ValueError):  # the largest number of no pairs
            bpe_train(text, vocab_size + 1, PATTERN, visualise=None)


def merges_allowed(text):
    try:
        BPETokenizer.train(text, 10_000)
    except ValueError as error:
        return int(str(error).split("only ")[1].split()[0])
    raise AssertionError("the text is too long for this test")


@given(st.text("ab", max_size=60) | st.text("abc 1'", max_size=80) | st.text("é☃ \n", max_size=40))
@settings(max_examples=60)
def test_short_texts_full_of_ties_give_the_same_merges(text):
    assert_same_merges(text, 300)


def test_prose_gives_the_same_merges():
    assert_same_merges(book_prose()[:12_000], 250)


# ------------------------------------------------------------------------------ encoding


@given(texts)
@settings(max_examples=300)
def test_any_text_has_the_same_ids(ours, theirs, text):
    ids = ours.encode_ordinary(text)
    assert ids == theirs.encode_ordinary(text)
    assert ours.pieces(text) == theirs.decode_tokens_bytes(ids)
    assert ours.decode(ids) == theirs.decode(ids) == text


def test_long_pieces_have_the_same_ids():
    for text in ("a" * 5000, "ab" * 3000, "acgt" * 400 + "tgca" * 400, " " * 3001, "é" * 999):
        ours = BPETokenizer.train(text[:2000], 261)
        theirs = tiktoken.Encoding(
            "ours", pat_str=PATTERN, mergeable_ranks=ours.ranks, special_tokens={}
        )
        assert ours.encode(text) == theirs.encode(text)


@given(special_texts, st.sets(st.sampled_from([END, PAD])))
@settings(max_examples=150)
def test_special_tokens_are_allowed_and_refused_alike(ours, theirs, text, allowed):
    assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)
    assert ours.encode(text, "all") == theirs.encode(text, allowed_special="all")
    try:
        ids = theirs.encode(text, allowed_special=allowed)
    except ValueError:
        with pytest.raises(ValueError, match="the text has the special token"):
            ours.encode(text, allowed)
    else:
        assert ours.encode(text, allowed) == ids


@given(st.lists(st.integers(0, 1499)))
def test_any_ids_have_the_same_text(ours, theirs, ids):
    assert ours.decode_bytes(ids) == theirs.decode_bytes(ids)
    assert ours.decode(ids) == theirs.decode(ids)


# --------------------------------------------------------------------------------- files


@pytest.fixture
def gpt2_files(ours, tmp_path):
    """Our tokenizer in the layout of GPT-2's two files."""
    by_letter = sorted((bytes([byte]) for byte in range(256)), key=bytes_to_letters)
    tokens = [*by_letter, *list(ours.ranks)[256:], END.encode()]
    encoder = {bytes_to_letters(token): i for i, token in enumerate(tokens)}
    merges = [" ".join(map(bytes_to_letters, pair)) for pair in ours.merges]
    (tmp_path / "encoder.json").write_text(json.dumps(encoder))
    (tmp_path / "vocab.bpe").write_text("\n".join(["#version: 0.2", *merges, ""]), "utf-8")
    return tmp_path / "encoder.json", tmp_path / "vocab.bpe"


def test_gpt2s_two_files_are_read_as_tiktoken_reads_them(gpt2_files, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # or it would keep a copy
    encoder, merges = gpt2_files
    ranks = data_gym_to_mergeable_bpe_ranks(str(merges), str(encoder))
    loaded = BPETokenizer.from_gpt2_files(encoder, merges)
    assert loaded.ranks == ranks
    assert loaded.special_tokens == {END: 1498}


def test_gpt2s_two_files_give_the_ids_of_transformers(gpt2_files, stories):
    encoder, merges = gpt2_files
    theirs = GPT2Tokenizer(vocab=str(encoder), merges=str(merges))
    loaded = BPETokenizer.from_gpt2_files(encoder, merges)
    for text in (stories[:5000], book_prose()[:5000], f"I'll go.{END}  2²\n\n é 👩‍🚀"):
        assert loaded.encode(text, "all") == theirs(text)["input_ids"]
