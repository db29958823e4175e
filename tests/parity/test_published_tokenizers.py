"""The tokenizers that files name: pieces, ids and chats are those of tokenizers and transformers.

The vocabularies are made here and have what published ones may have: ids that do not follow the
merges, bytes without an id, several merges that make one token. The last tests need SmolLM2's own
file, in the build's cache or where the variable SMOLLM2 says.
"""

import random
import unicodedata

import pytest
from smollm2_file import smollm2_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split
from transformers import PreTrainedTokenizerFast
from transformers.integrations.gguf import (
    convert_gguf_tokenizer,
    get_gguf_tokenizer,
    read_gguf_metadata,
)

from tinytorch.text.chat import _CHATML, IM_END, IM_START, chatml_prompt, chatml_system
from tinytorch.text.corpus import book_prose
from tinytorch.text.pretokenization import LLAMA_PATTERN, PRETOKENIZERS, split_like
from tinytorch.text.tokenization import BPETokenizer
from tinytorch.text.tokenizer_files import bytes_to_letters

GPT2, BYTES = (ByteLevel(add_prefix_space=False, use_regex=regex) for regex in (True, False))
STEPS = {
    "gpt-2": GPT2,
    "smollm": Sequence([Digits(individual_digits=True), GPT2]),
    "llama-bpe": Sequence([Split(Regex(LLAMA_PATTERN), "isolated"), BYTES]),
}
SPECIALS = [IM_START, IM_END, "<|end|>"]
LACKING = bytes([4, 6, 0x13, 0x14, 0x16, 0x1D, 0xC0, 0xC1, 0xF1, 0xF2, *range(0xF5, 0x100)])
# Of characters that this Python's Unicode does not know, the others may know some to be numbers.
KNOWN = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cs", "Cn")]
NUMBERS = [c for c in KNOWN if unicodedata.category(c)[0] == "N"]
SIGNS = "'s 'S 'ſ 'RE 'll 'Ll 'm 'D the duck 7 ½ e\u0301 日本 👩‍🚀 _ !! <| |> im_end".split()
SIGNS += [" ", "  ", "\n", "\r\n", "\r", "\t", "\x00", "\x04", "\x1c", "\x85", "\xa0", "\u200b"]


def strings(count, names):
    """Prose cut anywhere, long words, and signs, numbers and characters of any kind in a row."""
    rng, prose = random.Random(0), book_prose()
    for i in range(count):
        start = rng.randrange(len(prose))
        kinds = rng.choices([SIGNS, SIGNS, [*names], NUMBERS, KNOWN], k=rng.randrange(1, 20))
        row = [rng.choice(kind) for kind in kinds]
        long = row[0] * rng.randrange(200) if i % 50 == 0 else ""
        yield prose[start : start + 20 * (i % 4)] + "".join(row) + long


def vocabulary(several):
    """The ids, in an order of their own, and the merges, all in letters."""
    trained = BPETokenizer.train(book_prose(), 1500)
    there = [token for token in trained.ranks if not set(token) & set(LACKING)]
    ranks = {token: i for i, token in enumerate(random.Random(1).sample(there, len(there)))}
    pairs = [pair for pair in trained.merges if b"".join(pair) in ranks]
    if several:  # as in Llama 3: all the ways to make a token
        ways = [(token[:i], token[i:]) for token in there for i in range(1, len(token))]
        pairs = [pair for pair in ways if {*pair} <= ranks.keys()]
    letters = {bytes_to_letters(token): i for token, i in ranks.items()}
    return letters, [tuple(map(bytes_to_letters, pair)) for pair in pairs]


@pytest.fixture(scope="module", params=PRETOKENIZERS)
def named(request):
    """With each pre-tokenizer: the metadata of a GGUF, and the tokenizer of `tokenizers`."""
    llama = request.param == "llama-bpe"
    ids, merges = vocabulary(several=llama)
    theirs = Tokenizer(models.BPE(ids, merges, ignore_merges=llama))
    theirs.pre_tokenizer, theirs.decoder = STEPS[request.param], decoders.ByteLevel()
    theirs.add_special_tokens([AddedToken(name, normalized=False) for name in SPECIALS])
    said = {
        "model": "gpt2",
        "pre": request.param,
        "tokens": [*sorted(ids, key=ids.get), *SPECIALS],
        "token_type": [1] * len(ids) + [3] * len(SPECIALS),
        "merges": [" ".join(pair) for pair in merges],
    }
    return {f"tokenizer.ggml.{key}": value for key, value in said.items()}, theirs


def assert_same_ids(ours, theirs):
    texts = [*strings(20_000, ours.special_tokens)]
    for ordinary in (False, True):
        theirs.encode_special_tokens = ordinary
        encode = ours.encode_ordinary if ordinary else lambda text: ours.encode(text, "all")
        for text, there in zip(texts, theirs.encode_batch(texts), strict=True):
            assert encode(text) == there.ids, repr(text)
    theirs.encode_special_tokens = False


@pytest.mark.parametrize("name", PRETOKENIZERS)
def test_the_pieces_of_every_unicode_character_are_the_same(name):
    for sign in "x7":
        text = sign.join(KNOWN)
        pieces = [bytes_to_letters(piece.encode()) for piece in split_like(name, text)]
        assert pieces == [piece for piece, _ in STEPS[name].pre_tokenize_str(text)]


def test_any_text_has_the_same_ids(named):
    metadata, theirs = named
    assert_same_ids(BPETokenizer.from_gguf(metadata), theirs)


def test_their_file_is_read_alike(named, tmp_path):
    metadata, theirs = named
    theirs.save(str(tmp_path / "tokenizer.json"))
    read = BPETokenizer.from_tokenizer_json(tmp_path / "tokenizer.json")
    assert vars(read) == vars(BPETokenizer.from_gguf(metadata))


# A chat ------------------------------------------------------------------------------------------

HELLO = [{"role": "user", "content": " Who  came in 1987?\n"}]
TURNS = [*HELLO, {"role": "assistant", "content": "A <cow>."}, {"role": "user", "content": "'S"}]
CHATS = [HELLO, TURNS, [{"role": "system", "content": "Be brief.\n\n"}, *TURNS]]


def assert_same_chats(ours, theirs, template):
    theirs = PreTrainedTokenizerFast(tokenizer_object=theirs, chat_template=template)
    for messages in CHATS:
        ids = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert chatml_prompt(ours, messages, chatml_system(template)) == ids


LOOP, BEFORE, AFTER, REST = _CHATML
TEMPLATE = f"{LOOP}{BEFORE}You play the drum.{AFTER}{REST}"


@pytest.mark.parametrize("template", [TEMPLATE, TEMPLATE.replace("\n", "\\n"), LOOP + REST])
def test_a_chat_has_the_ids_of_the_template(named, template):
    metadata, theirs = named
    assert_same_chats(BPETokenizer.from_gguf(metadata), theirs, template)


# The published file ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def published():
    path = smollm2_file()
    arrays = ("tokens", "token_type", "merges")
    metadata, _ = read_gguf_metadata(path, [f"tokenizer.ggml.{name}" for name in arrays])
    theirs, _ = convert_gguf_tokenizer(*get_gguf_tokenizer(path)[:2])
    theirs.pre_tokenizer = STEPS["smollm"]  # as in its tokenizer.json; this reading leaves it out
    return metadata, theirs


def test_any_text_has_the_ids_of_smollm2(published):
    metadata, theirs = published
    ours = BPETokenizer.from_gguf(metadata)
    assert (len(ours.ranks), len(ours.special_tokens), ours.vocab_size) == (49_135, 17, 49_152)
    assert_same_ids(ours, theirs)


def test_a_chat_with_smollm2_has_the_ids_of_its_template(published):
    metadata, theirs = published
    assert_same_chats(BPETokenizer.from_gguf(metadata), theirs, metadata["tokenizer.chat_template"])
