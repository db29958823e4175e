"""Text to ids and back: characters; byte-pair encoding, with known merges and with any text."""

import json
import os
import unicodedata

import numpy as np
import pytest
from hub_folders import tokenizer_files, tokenizer_json
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tinytorch import Tensor
from tinytorch.text import bpe as loop
from tinytorch.text import bpe_fast as fast
from tinytorch.text.bpe_fast import join_by_rank, learn_merges
from tinytorch.text.corpus import book_prose
from tinytorch.text.pretokenization import LLAMA_PATTERN
from tinytorch.text.tokenization import BPETokenizer, CharTokenizer, split_like, split_like_gpt2
from tinytorch.text.tokenizer_files import bytes_to_letters, letters_to_bytes

BYTES = {bytes([byte]): byte for byte in range(256)}
END = "<|endoftext|>"
NASTY = [
    "",
    " ",
    "\n\n \t x \r\n",
    "\x00\x1c\x1f\x7f\x85\xa0",
    "naïve café, ⅷ² ½ ४२ 三",
    "e\u0301 \u202b\u200d\ufeff",
    "👩‍👩‍👧‍👦🇩🇪 I'm'll",
    "\U0010ffff\uffff",
    "_under_score__ 12_000",
    "أهلا 你好，世界 שלום",
]
any_text = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from([*NASTY, "'s", "'S", "the", " 7", "   ", "\u3000", END])
).map("".join)


@pytest.fixture(scope="module")
def bpe(stories):
    return BPETokenizer.train(stories.generate(200) + book_prose()[:30_000], 700, [END])


def with_tokens(*tokens, special_tokens=None):
    return BPETokenizer({**BYTES, **{t: 256 + i for i, t in enumerate(tokens)}}, special_tokens)


# -------------------------------------------------------------------------------- pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("Hello, world!", ["Hello", ",", " world", "!"]),
        ("I'll say it's 'sad'", ["I", "'ll", " say", " it", "'s", " '", "sad", "'"]),
        ("DON'T we've", ["DON", "'", "T", " we", "'ve"]),  # capitals are not in the pattern
        ("a  b\n\n c   ", ["a", " ", " b", "\n\n", " c", "   "]),
        ("a\nb\n", ["a", "\n", "b", "\n"]),
        ("x=1_000 _y", ["x", "=", "1", "_", "000", " _", "y"]),
        ("10km² Ⅷa", ["10", "km", "²", " Ⅷ", "a"]),  # categories No and Nl
        ("三 café", ["三", " café"]),  # a number to str.isnumeric, a letter to the pattern
        ("cafe\u0301s", ["cafe", "\u0301", "s"]),  # a combining mark is neither
        ("a\xa0b\u3000c", ["a", "\xa0", "b", "\u3000", "c"]),  # spaces, but not " "
        ("a\x1cb \x1f", ["a", "\x1c", "b", " \x1f"]),  # separators to re, not White_Space
        ("a \u200bb", ["a", " \u200b", "b"]),  # a space of no width is no White_Space either
        ("\ud800a", ["\ud800", "a"]),
        ("a\U0001e030b 7\U0001e4f0", ["a\U0001e030b", " 7\U0001e4f0"]),  # of Unicode 15
        ("\u1c89a\U00016d40 \U0001ccf0!", ["\u1c89a\U00016d40", " \U0001ccf0", "!"]),  # of 16
        ("a\u088fb \u0378", ["a", "\u088f", "b", " \u0378"]),  # a letter of 17, and none yet
        ("—🦊𝔞a 👩 𝟙1…👩a", ["—🦊", "𝔞a", " 👩", " 𝟙1", "…👩", "a"]),  # above U+FFFF and below
    ],
)
def test_text_is_split_as_by_gpt2(text, pieces):
    assert split_like_gpt2(text) == split_like("gpt-2", text) == pieces


@pytest.mark.parametrize(
    ("text", "smollm", "llama"),
    [
        (" 1234", [" ", *"1234"], [" ", "123", "4"]),  # to GPT-2 one piece
        ("½Ⅷ४२\U0001d7d9", [*"½Ⅷ४२\U0001d7d9"], ["½Ⅷ४", "२\U0001d7d9"]),
        ("a  7", ["a", "  ", "7"], ["a", " ", " ", "7"]),
        ("we'RE it's", ["we", "'", "RE", " it", "'s"], ["we", "'RE", " it", "'s"]),
        ("'ſo (so)", ["'", "ſo", " (", "so", ")"], ["'ſ", "o", " (", "so", ")"]),
        ("(so\tso", ["(", "so", "\t", "so"], ["(so", "\tso"]),
        ("a.\r\n\r\n b", ["a", ".", "\r\n\r\n", " b"], ["a", ".\r\n\r\n", " b"]),
        ("a \n  b", ["a", " \n ", " b"], ["a", " \n", " ", " b"]),
    ],
)
def test_text_is_split_as_files_ask(text, smollm, llama):
    assert split_like("smollm", text) == smollm
    assert split_like("llama-bpe", text) == llama


def test_another_way_to_split_is_refused():
    with pytest.raises(ValueError, match="must be 'gpt-2', 'smollm' or 'llama-bpe', got 'qwen2'"):
        BPETokenizer(BYTES, pretokenizer="qwen2")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "one", "count"), [("L", "x", 141_028), ("N", "7", 1_911)])
def test_letters_and_numbers_are_those_of_unicode_16_in_every_python(kind, one, count):
    every = [chr(c) for c in range(0x110000) if chr(c) != " "]
    found = {*"".join(piece for piece in split_like_gpt2(one.join(every)) if one in piece)}
    assert len(found) == count
    if unicodedata.unidata_version.split(".") < ["17"]:
        known = [c for c in every if unicodedata.category(c) != "Cn"]
        assert found.intersection(known) == {c for c in known if unicodedata.category(c)[0] == kind}


def test_white_space_follows_unicode():
    code_points = [*range(9, 14), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B)]
    code_points += [0x2028, 0x2029, 0x202F, 0x205F, 0x3000]  # PropList.txt, but for " "
    pieces = split_like_gpt2("!" + "!".join(map(chr, range(0x110000))) + "!")
    alone = [c for c in pieces if len(c) == 1 and not c.isalnum() and c != "!"]
    assert [ord(c) for c in alone if unicodedata.category(c) != "Cn"] == code_points


# ---------------------------------------------------------------- the loop, and the fast form


def spelt_out(piece_counts):
    """Each piece as often as it occurs, which is how the loop reads a text."""
    return [piece for piece, count in piece_counts.items() for _ in range(count)]


def test_the_loop_merges_the_most_frequent_pair_of_neighbours_again_and_again():
    pieces = [b"then", b" the", b" other", b" hen", b" hid"]  # the example of the chapter
    assert loop.train(pieces, 3) == [(b"h", b"e"), (b"t", b"he"), (b"the", b"n")]
    assert loop.train([b"ab"], 9) == [(b"a", b"b")]  # no pair is left


def test_the_loop_encodes_by_merging_in_the_order_of_learning():
    merges = [(b"b", b"c"), (b"a", b"b"), (b"a", b"bc")]
    assert loop.encode(b"abcab", merges) == [258, 257]
    assert loop.decode([258, 257], merges) == b"abcab"
    assert loop.merge([b"a", b"a", b"a"], (b"a", b"a")) == [b"aa", b"a"]


# ------------------------------------------------------------------------------ training


def test_of_equally_frequent_pairs_the_first_in_the_text_is_merged():
    assert learn_merges({b"xy": 1, b"ab": 1}, 1) == [(b"x", b"y")]
    assert learn_merges({b"ab": 1, b"xy": 1}, 1) == [(b"a", b"b")]
    assert learn_merges({b"abc": 2}, 1) == [(b"a", b"b")]


def test_overlapping_pairs_are_all_counted_and_merged_from_left_to_right():
    # (a, a) counts three times in "aaaa" and wins against (x, y)
    assert learn_merges({b"xy": 2, b"aaaa": 1}, 1) == [(b"a", b"a")]
    tokenizer = BPETokenizer.train("aaa", 257)
    assert tokenizer.pieces("aaa") == [b"aa", b"a"]


small = st.text("ab", max_size=40) | st.text("ab c'1", max_size=60) | st.text("aé ", max_size=40)


@given(st.lists(st.tuples(small.filter(bool), st.integers(1, 4)), max_size=12))
@example([("aaaa", 1), ("aa", 3), ("aaaaaaa", 1)])
@settings(max_examples=150)
def test_the_fast_form_matches_the_loop(pieces):
    counts = {piece.encode(): count for piece, count in pieces}
    merges = loop.train(spelt_out(counts), 1000)
    assert learn_merges(counts, 1000) == merges
    ranks = {token: i for i, token in enumerate(loop._vocabulary(merges))}
    for piece in [*counts, b"aabaab", "bé ab'1".encode()]:
        ids = [ranks[token] for token in join_by_rank(piece, ranks)]
        assert ids == loop.encode(piece, merges)


def test_the_bytes_come_first_then_the_merges_then_the_special_tokens(bpe):
    assert list(bpe.ranks.items())[:256] == list(BYTES.items())
    assert [a + b for a, b in bpe.merges] == list(bpe.ranks)[256:]
    assert list(bpe.ranks.values()) == list(range(699))
    assert bpe.special_tokens == {END: 699}
    assert bpe.vocab_size == 700


def test_a_special_token_splits_the_training_text_and_is_not_learned():
    tokenizer = BPETokenizer.train("ab<|x|>ab<|x|>", 258, ["<|x|>"])
    assert tokenizer.merges == [(b"a", b"b")]
    with pytest.raises(ValueError, match="allows only 1 merges"):
        BPETokenizer.train("ab<|x|>ab<|x|>", 259, ["<|x|>"])


def test_a_text_with_too_few_pairs_says_how_many_merges_it_allows():
    message = r"allows only 3 merges; pass vocab_size=260 or less, or a longer text"
    with pytest.raises(ValueError, match=message):
        BPETokenizer.train("ab abc", 400, ["<s>"])
    assert len(BPETokenizer.train("ab abc", 260, ["<s>"]).merges) == 3


def test_a_vocabulary_too_small_for_the_bytes_is_refused():
    with pytest.raises(
        ValueError, match="vocab_size=257 is too small: the 256 bytes and 2 special"
    ):
        BPETokenizer.train("abc", 257, ["<a>", "<b>"])
    with pytest.raises(ValueError, match="vocab_size=255 is too small"):
        BPETokenizer.train("abc", 255)
    assert BPETokenizer.train("", 256).merges == []


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (TypeError, "vocab_size must be an integer, got 300.0", ("abc", 300.0)),
        (TypeError, "a text is a string, got bytes", (b"abc", 256)),
        (TypeError, r"special_tokens is a list of names .*, got '<s>'", ("abc", 300, "<s>")),
        (TypeError, r"special_tokens is a list of names .*, got 7", ("abc", 300, 7)),
        (TypeError, "special token is one character or more, got 7", ("abc", 300, [7])),
        (TypeError, "special token is one character or more, got ''", ("abc", 300, [""])),
        (ValueError, "'<s>' is named twice", ("abc", 300, ["<s>", "<s>"])),
        (ValueError, "'\\\\ud800' at position 1 is a lone surrogate", ("a\ud800", 256)),
    ],
)
def test_training_on_anything_but_text_is_refused(error, match, arguments):
    with pytest.raises(error, match=match):
        BPETokenizer.train(*arguments)


def test_a_merge_visits_only_occurrences_of_its_pair(monkeypatch):
    rng = np.random.default_rng(0)
    words = ["".join(chr(97 + int(c)) for c in rng.integers(0, 26, n)) for n in [2, 4, 6, 8] * 500]
    weights = 1 / np.arange(1, len(words) + 1)
    text = " ".join(rng.choice(words, 40_000, p=weights / weights.sum()))
    assert len(text) > 150_000
    counted = []
    count = fast._LinkedTokens._count

    def counting(text, position, sign=1):
        if sign > 0:
            counted.append(position)
        return count(text, position, sign)

    monkeypatch.setattr(fast._LinkedTokens, "_count", counting)
    tokenizer = BPETokenizer.train(text, 1500)
    bytes_of_pieces = sum(len(piece) + 1 for piece in set(split_like_gpt2(text)))
    assert len(counted) < 3 * bytes_of_pieces  # once at first, then two for each place merged
    assert tokenizer.decode(tokenizer.encode(text)) == text


# ------------------------------------------------------------------------------ encoding


def test_only_the_listed_pairs_are_merged_in_their_order():
    ranks = with_tokens(b"abc", b"ab", b"bc").ranks
    listed = BPETokenizer(ranks, merges=[(b"b", b"c"), (b"a", b"b"), (b"ab", b"c")])
    assert listed.pieces("abc ab") == [b"a", b"bc", b" ", b"ab"]  # b"abc" is never reached
    whole = BPETokenizer(ranks, merges=listed.merges, pretokenizer="llama-bpe")
    assert whole.pieces("abc") == [b"abc"] and whole.pieces("abcd") == [b"a", b"bc", b"d"]


def test_merges_and_pretokenizer_are_saved(tmp_path):
    ranks = with_tokens(b"bc", b"ab").ranks
    tokenizer = BPETokenizer(ranks, {"<s>": 300}, [(b"a", b"b"), (b"b", b"c")], "smollm")
    tokenizer.save(tmp_path / "bpe.json")
    loaded = BPETokenizer.load(tmp_path / "bpe.json")
    assert vars(loaded) == vars(tokenizer)
    assert loaded.pieces("abc 12") == [b"ab", b"c", b" ", b"1", b"2"]


def test_the_lowest_rank_is_merged_first_not_the_longest_match():
    assert with_tokens(b"bc", b"ab", b"abcd").pieces("abcd") == [b"abcd"]  # a token as it is
    assert with_tokens(b"bc", b"ab", b"abc").pieces("abcd") == [b"abc", b"d"]
    assert with_tokens(b"bc", b"ab").pieces("abcd") == [b"a", b"bc", b"d"]
    assert with_tokens(b"ab", b"bc").pieces("abcd") == [b"ab", b"c", b"d"]


@pytest.mark.parametrize("text", ["a" * 20_000, "ab" * 10_000, "é" * 10_000, " " * 20_000])
def test_a_long_unbroken_piece_takes_few_steps_per_byte(text):
    class Counting(dict):
        looks = 0

        def get(self, *args):
            self.looks += 1
            return super().get(*args)

    tokenizer = BPETokenizer.train(text[:4096], 256 + 6)
    ranks = Counting(tokenizer.ranks)
    pieces = join_by_rank(text.encode(), ranks)
    assert ranks.looks < 4 * len(text.encode())  # looking at all pairs again: 2,000 times as many
    assert b"".join(pieces).decode() == text == tokenizer.decode(tokenizer.encode(text))
    assert len(pieces) < len(text) / 30


def test_the_cache_of_pieces_is_bounded_and_changes_nothing(bpe, monkeypatch):
    monkeypatch.setattr("tinytorch.text.bpe_tokenizer._CACHE_SIZE", 10)
    text = book_prose()[:5000]
    fresh = BPETokenizer(bpe.ranks, bpe.special_tokens)
    assert fresh.encode(text) == fresh.encode(text) == bpe.encode(text)
    fresh.encode("x" * 1000)
    assert len(fresh._cache) <= 10
    assert all(len(piece) <= 64 for piece in fresh._cache)


@given(any_text)
@settings(max_examples=100)
def test_decoding_restores_every_text(bpe, text):
    ids = bpe.encode_ordinary(text)
    assert bpe.decode(ids, errors="strict") == text
    assert all(type(i) is int and 0 <= i < bpe.vocab_size - 1 for i in ids)
    assert b"".join(bpe.pieces(text)) == bpe.decode_bytes(ids) == text.encode()


def test_a_lone_surrogate_is_refused_with_its_position(bpe):
    message = r"'\\ud83d' at position 3 is a lone surrogate.*errors=\"ignore\""
    for encode in (bpe.encode, bpe.encode_ordinary, bpe.pieces):
        with pytest.raises(ValueError, match=message):
            encode("abc\ud83d")


def test_only_strings_are_encoded(bpe):
    for encode in (bpe.encode, bpe.encode_ordinary, bpe.pieces, CharTokenizer("a").encode):
        with pytest.raises(TypeError, match="a text is a string, got bytes"):
            encode(b"a")


# ------------------------------------------------------------------------ special tokens


def test_a_special_token_is_one_id_where_it_is_allowed(bpe):
    ids = bpe.encode(f"one{END} two", allowed_special={END})
    assert ids == [*bpe.encode("one"), 699, *bpe.encode(" two")]
    assert ids == bpe.encode(f"one{END} two", allowed_special="all")
    assert bpe.decode(ids) == f"one{END} two"


def test_a_disallowed_special_token_is_refused_with_two_remedies(bpe):
    message = (
        r"special token '<\|endoftext\|>' at position 3: pass "
        r"allowed_special=\{'<\|endoftext\|>'\}.*or use encode_ordinary"
    )
    with pytest.raises(ValueError, match=message):
        bpe.encode(f"one{END}")


def test_ordinary_encoding_ignores_special_tokens(bpe):
    ids = bpe.encode_ordinary(END)
    assert 699 not in ids
    assert bpe.decode(ids) == END
    assert bpe.encode("<|endoftext") == bpe.encode_ordinary("<|endoftext")


def test_the_longer_of_two_matching_special_tokens_wins():
    tokenizer = BPETokenizer(BYTES, {"<a>": 256, "<a><b>": 257, "<a": 258})
    assert tokenizer.encode("<a><b><a><a", allowed_special="all") == [257, 256, 258]
    with pytest.raises(ValueError, match=r"'<a><b>' at position 2"):
        tokenizer.encode("..<a><b>", allowed_special={"<a>"})


def test_regex_characters_in_a_special_token_are_literal():
    tokenizer = BPETokenizer(BYTES, {".*": 256, "a|b": 257})
    assert tokenizer.encode("ab.*a|b", allowed_special="all") == [97, 98, 256, 257]


def test_a_special_token_may_be_allowed_only_if_it_exists(bpe):
    with pytest.raises(ValueError, match=r"'<pad>' is not a special token.*'<\|endoftext\|>'"):
        bpe.encode("text", allowed_special={"<pad>"})
    with pytest.raises(ValueError, match="there are none"):
        BPETokenizer(BYTES).encode("text", allowed_special=["<pad>"])
    for allowed in (END, 7, None):
        with pytest.raises(TypeError, match=r"allowed_special is a list of names .*, got"):
            bpe.encode("text", allowed_special=allowed)


# ------------------------------------------------------------------------------ decoding


@pytest.mark.parametrize(
    ("error", "match", "ids"),
    [
        (IndexError, r"token id 700 at position 1 is outside 0\.\.699", [0, 700]),
        (IndexError, r"token id -1 at position 0 is outside 0\.\.699", np.array([-1, 3])),
        (TypeError, "must be integers, got float64", [1.0]),
        (TypeError, "must be integers, got float32", Tensor([1.0])),
        (TypeError, "must be integers, got bool", [True]),
        (TypeError, "must be integers, got None", [None]),
        (TypeError, "must be integers, got None", None),
        (TypeError, "must be integers, got 'abc'; encode the text first", "abc"),
        (TypeError, "must be integers, got 'a'", ["a", "b"]),
        (TypeError, "must be integers, got b'abc'", b"abc"),
        (TypeError, r"must be integers, got \{1, 2\}", {1, 2}),
        (ValueError, r"shape \(n,\), got \(2, 3\); pass one row at a", np.zeros((2, 3), int)),
        (ValueError, r"shape \(n,\), got \(\); pass \[id\]", 7),
        (ValueError, "must form one sequence, got rows of several lengths", [[1, 2], [3]]),
    ],
)
def test_invalid_ids_are_refused(bpe, error, match, ids):
    characters = CharTokenizer([chr(0x100 + i) for i in range(700)])
    for decode in (bpe.decode, bpe.decode_bytes, characters.decode):
        with pytest.raises(error, match=match):
            decode(ids)


def test_an_unknown_id_is_refused():
    tokenizer = BPETokenizer(BYTES, {END: 300})
    assert tokenizer.vocab_size == 301
    with pytest.raises(IndexError, match="id 299 at position 1 is not in this vocabulary; was"):
        tokenizer.decode([300, 299])
    with pytest.raises(IndexError, match=r"id -1 at position 1 is outside 0\.\.255"):
        loop.decode([97, -1], [])


def test_incomplete_utf_8_is_replaced_or_refused():
    tokenizer = BPETokenizer(BYTES)
    ids = tokenizer.encode("a🦆")
    assert tokenizer.decode(ids[:3]) == "a\ufffd"
    assert tokenizer.decode_bytes(ids[:3]) == b"a\xf0\x9f"
    with pytest.raises(ValueError, match=r'not UTF-8 at byte 1 .*pass errors="replace"'):
        tokenizer.decode(ids[:3], errors="strict")


# ---------------------------------------------------------------------- the vocabulary


@pytest.mark.parametrize(
    ("error", "match", "ranks", "special_tokens"),
    [
        (ValueError, "2 of the 256 single bytes have no id, the first is b'a'", None, None),
        (ValueError, r"b'a' and b'ab' both have the id 97", {**BYTES, b"ab": 97}, None),
        (ValueError, r"b'a' and '<s>' both have the id 97", BYTES, {"<s>": 97}),
        (ValueError, "id of b'ab' must be 0 or more, got -1", {**BYTES, b"ab": -1}, None),
        (TypeError, "id of b'ab' must be an integer, got 256.0", {**BYTES, b"ab": 256.0}, None),
        (TypeError, "id of '<s>' must be an integer, got True", BYTES, {"<s>": True}),
        (TypeError, "a token is one byte or more, got 'ab'", {**BYTES, "ab": 256}, None),
        (TypeError, "a token is one byte or more, got b''", {**BYTES, b"": 256}, None),
        (TypeError, "special token is one character or more, got ''", BYTES, {"": 256}),
        (ValueError, "lone surrogate", BYTES, {"<\ud800>": 256}),
        (TypeError, "ranks must map tokens to ids, got list", list(BYTES), None),
        (TypeError, "special_tokens must map tokens to ids, got list", BYTES, ["<s>"]),
    ],
)
def test_a_vocabulary_that_cannot_write_every_text_is_refused(error, match, ranks, special_tokens):
    if ranks is None:
        ranks = {token: i for token, i in BYTES.items() if token not in (b"a", b"z")}
    with pytest.raises(error, match=match):
        BPETokenizer(ranks, special_tokens)


def test_a_given_vocabulary_has_no_merges():
    assert with_tokens(b"ab", b"abab").merges == [(b"a", b"b"), (b"ab", b"ab")]
    with pytest.raises(
        ValueError,
        match=r"the token b'abc' \(id 256\) is not two earlier tokens.*but \[b'a', b'b', b'c'\]",
    ):
        _ = with_tokens(b"abc").merges


# ---------------------------------------------------------------------------- characters


def test_characters_are_numbered_in_sorted_order():
    tokenizer = CharTokenizer("the cat")
    assert tokenizer.alphabet == " aceht"
    assert tokenizer.vocab_size == 6
    assert tokenizer.encode("a hat") == [1, 0, 4, 1, 5]
    assert tokenizer.decode([5, 4, 3]) == "the"
    assert CharTokenizer(["e", "th", "ca", "t "]).alphabet == tokenizer.alphabet


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_decoding_restores_every_text_of_the_alphabet(text):
    tokenizer = CharTokenizer(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_unknown_character_is_refused_with_its_position():
    message = (
        r"'é' \(U\+00E9\) at position 3 is not in the alphabet of 3 characters; build the tokenizer"
    )
    with pytest.raises(ValueError, match=message):
        CharTokenizer("fac").encode("café éf")


def test_an_empty_or_numeric_alphabet_is_refused():
    with pytest.raises(ValueError, match="the alphabet is empty"):
        CharTokenizer("")
    for alphabet in ([1, 2], 7, None, b"abc"):
        with pytest.raises(TypeError, match="an alphabet is a string, or a list of characters"):
            CharTokenizer(alphabet)
    with pytest.raises(ValueError, match="lone surrogate"):
        CharTokenizer("a\udc00")


# ------------------------------------------------------------------------------ own files


def test_a_loaded_tokenizer_equals_the_saved_one(bpe, tmp_path):
    bpe.save(tmp_path / "bpe.json")
    loaded = BPETokenizer.load(tmp_path / "bpe.json")
    assert list(loaded.ranks.items()) == list(bpe.ranks.items())
    assert loaded.special_tokens == bpe.special_tokens
    text = book_prose()[:3000] + END
    assert loaded.encode(text, allowed_special="all") == bpe.encode(text, allowed_special="all")


def test_a_saved_tokenizer_is_readable_json(tmp_path):
    with_tokens(b" the", b"\xc3\xa9\n", special_tokens={END: 258}).save(tmp_path / "bpe.json")
    text = (tmp_path / "bpe.json").read_text(encoding="utf-8")
    assert '"Ġthe": 256,\n' in text
    content = json.loads(text)
    assert content["format"] == "tinytorch byte-pair encoding"
    assert content["version"] == 1
    assert content["size"] == 259
    assert content["special_tokens"] == {END: 258}
    assert content["tokens"]["Ã©Ċ"] == 257
    assert [file.name for file in tmp_path.iterdir()] == ["bpe.json"]


def test_the_letters_of_bytes_are_those_of_gpt2():
    assert bytes_to_letters(bytes(range(256)))[:34] == "".join(
        [chr(0x100 + i) for i in range(33)] + ["!"]
    )
    assert bytes_to_letters(b" \n\t\r\x00\x7f\xa0\xad\xff") == "ĠĊĉčĀġłŃÿ"
    assert letters_to_bytes(bytes_to_letters(bytes(range(256)))) == bytes(range(256))
    with pytest.raises(ValueError, match="'a b' is not a token: ' ' is not one of the 256"):
        letters_to_bytes("a b")


@pytest.mark.parametrize(
    ("match", "old", "new"),
    [
        (r"it is incomplete or not JSON: .*line 4 column 2 \(", '"size"', "size"),
        ("decode byte 0xff in position 3: invalid start byte", "{", "{\n \udcff"),
        ("it has the name 'a' twice", '"b": 98', '"a": 98'),
        ("the id of 'b' is '98', not an integer", '"b": 98', '"b": "98"'),
        ("the id of 'b' is 98.0, not an integer", '"b": 98', '"b": 98.0'),
        ("the id of 'b' is True, not an integer", '"b": 98', '"b": true'),
        ("b'a' and b'b' both have the id 97", '"b": 98', '"b": 97'),
        ("the id of b'b' must be 0 or more, got -98", '"b": 98', '"b": -98'),
        (
            "257 tokens and 1 special tokens, but declares the size 259",
            '"size": 258',
            '"size": 259',
        ),
        ("has 256 tokens and 1 special", ' "b": 98,\n', ""),
        ("'日' is not a token: '日' is not one of the 256 letters", '"b": 98', '"日": 98'),
        ("1 of the 256 single bytes have no id, the first is b'b'", '"b": 98', '"bb": 98'),
        ("its version is 2; this package reads version 1", '"version": 1', '"version": 2'),
        ("its format is 'tinytorch bytes'.*`save` did not", "byte-pair encoding", "bytes"),
        ("one of its tokens is empty", '"b": 98', '"": 98'),
        ("one of its special tokens is empty", '"<s>"', '""'),
        ("its checksum is wrong; use another copy", '"ab": 256', '"ac": 256'),
        ("its tokens are NoneType, not names with their ids", '"tokens"', '"words"'),
        (
            "special tokens are list",
            '"special_tokens": {\n  "<s>": 257\n }',
            '"special_tokens": []',
        ),
        ("read it with CharTokenizer.load", "byte-pair encoding", "characters"),
    ],
)
def test_a_damaged_file_is_refused_with_a_reason(match, old, new, tmp_path):
    path = tmp_path / "bpe.json"
    with_tokens(b"ab", special_tokens={"<s>": 257}).save(path)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_bytes(text.replace(old, new, 1).encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=rf"^cannot read .*bpe\.json' as a tokenizer: .*({match})"):
        BPETokenizer.load(path)


MUTATIONS = {
    "a letter": lambda byte: bytes([byte ^ 1]),
    "another case": lambda byte: bytes([byte ^ 0x20]),
    "lost": lambda byte: b"",
}


@pytest.mark.parametrize("mutation", MUTATIONS)
@pytest.mark.parametrize("kind", [BPETokenizer, CharTokenizer])
def test_a_file_with_one_changed_byte_is_refused_or_equivalent(tmp_path, kind, mutation):
    path = tmp_path / "saved.json"
    (with_tokens(b"ab") if kind is BPETokenizer else CharTokenizer("a\n é🦆")).save(path)
    whole, expected = path.read_bytes(), vocabulary_of(kind.load(path))
    for place, byte in enumerate(whole):
        path.write_bytes(whole[:place] + MUTATIONS[mutation](byte) + whole[place + 1 :])
        try:
            assert vocabulary_of(kind.load(path)) == expected, place
        except ValueError as error:
            assert str(error).startswith(f"cannot read {str(path)!r} as a tokenizer: "), place


def vocabulary_of(tokenizer):
    names = ("ranks", "special_tokens", "alphabet")
    return {name: getattr(tokenizer, name, None) for name in names}


ALPHABET = '{"format": "tinytorch characters", "version": 1, "alphabet": %s}'


@pytest.mark.parametrize(
    ("match", "content"),
    [
        ("its format is None.*`save` did not write it", "[]"),
        ("its format is None", "null"),
        ("its format is None", '{"alphabet": "abc"}'),
        ("nested too deeply", "[" * 100_000),
        ("its alphabet is None, not a string", '{"format": "tinytorch characters", "version": 1}'),
        ("not a string of sorted characters", ALPHABET % '"ba"'),
        ("'aa', not a string of sorted", ALPHABET % '"aa"'),
        (r"its format is \[\]", '{"format": []}'),
        ("is empty", ALPHABET % '""'),
        ("surrogate", ALPHABET % r'"\ud800"'),
        ("BPETokenizer.load", '{"format": "tinytorch byte-pair encoding", "version": 1}'),
    ],
)
def test_a_damaged_alphabet_is_refused_with_a_reason(match, content, tmp_path):
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(ValueError, match=rf"^cannot read .*c\.json' as a tokenizer: .*{match}"):
        CharTokenizer.load(tmp_path / "c.json")


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "none.json"
    for load in (BPETokenizer.load, CharTokenizer.load):
        with pytest.raises(FileNotFoundError, match=r"there is no file '.*none\.json'"):
            load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are those of POSIX")
def test_a_named_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for load in (BPETokenizer.load, CharTokenizer.load):
        with pytest.raises(ValueError, match=r"cannot read .*pipe' is a named pipe; pass the path"):
            load(tmp_path / "pipe")


# ------------------------------------------------------------------------ files of others


@pytest.fixture
def read_json(tmp_path):
    """What is read of the `tokenizer.json` of transformers 5, changed by a function."""

    def read(change=lambda content: None):
        content = tokenizer_json()
        change(content)
        (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
        return BPETokenizer.from_tokenizer_json(tmp_path / "tokenizer.json")

    return read


def at(*names, value):
    """What puts a value into a place of a `tokenizer.json`."""

    def change(content):
        for name in names[:-1]:
            content = content[name]
        content[names[-1]] = value

    return change


DIGITS = {"type": "Digits", "individual_digits": True}
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
SPLIT["pattern"] = {"Regex": LLAMA_PATTERN}


def steps(first, ignore_merges=True, **last):
    last = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, **last}

    def change(content):
        content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [first, last]}
        content["model"]["ignore_merges"] = ignore_merges

    return change


def lacking(**settings):
    """What takes a byte from the vocabulary."""

    def change(content):
        del content["model"]["vocab"]["q"]
        content["model"] |= settings

    return change


def added(**flags):
    return lambda content: content["added_tokens"].append({"id": 300, "content": "<new>", **flags})


def test_a_tokenizer_json_gives_the_same_ids_as_the_two_files(read_json, tmp_path):
    for name, content in tokenizer_files().items():
        (tmp_path / name).write_bytes(content)
    two = BPETokenizer.from_gpt2_files(tmp_path / "vocab.json", tmp_path / "merges.txt")
    one = read_json()
    assert vocabulary_of(one) == vocabulary_of(two) and one.merges == two.merges
    assert one.encode("to do<|endoftext|> to", "all") == [83, 78, 220, 67, 78, 258, 257]


@pytest.mark.parametrize(
    "change",
    [
        at("model", "merges", value=["Ġ t", "Ġt o"]),  # the layout of older files
        at("post_processor", value=None),
        at("post_processor", value={"type": "ByteLevel", "trim_offsets": False}),
        at("model", "unk_token", value="<|endoftext|>"),
        at("model", "dropout", value=0.0),
    ],
)
def test_settings_that_change_no_id_are_accepted(read_json, change):
    assert vocabulary_of(read_json(change)) == vocabulary_of(read_json())


@pytest.mark.parametrize(("first", "name"), [(DIGITS, "smollm"), (SPLIT, "llama-bpe")])
def test_a_file_may_cut_its_text_in_two_steps(read_json, first, name):
    change = steps(first, first is SPLIT, use_regex=first is DIGITS)
    assert read_json(change).pretokenizer == name


def test_a_byte_that_a_file_lacks_is_left_out_of_a_text(read_json):
    tokenizer = read_json(lacking())
    assert tokenizer.encode(" qtqo") == tokenizer.encode(" to") == [257]


@pytest.mark.parametrize(
    ("match", "change"),
    [
        ("its tokenizer.ggml.model is 'llama', not 'gpt2'; encode with", {"model": "llama"}),
        ("its tokenizer.ggml.pre is None, not 'gpt-2' or 'smollm' or", {"pre": None}),
        ("3 tokens, 3 different texts, and 2 types", {"token_type": [1, 1]}),
        ("3 tokens, 2 different", {"tokens": ["a", "b", "a"]}),
        ("its merges are NoneType", {"merges": None}),
        ("a merge makes b'ba', which has no id", {"merges": ["b a"]}),
        ("'é€' is not a token", {"tokens": ["a", "b", "é€"]}),
    ],
)
def test_a_gguf_with_another_tokenizer_is_refused(match, change):
    said = {"model": "gpt2", "pre": "gpt-2", "tokens": ["a", "b", "ab"], "token_type": [1, 1, 1]}
    said |= {"merges": ["a b"], **change}
    with pytest.raises(ValueError, match=match):
        BPETokenizer.from_gguf({f"tokenizer.ggml.{name}": value for name, value in said.items()})


def test_an_added_token_need_not_be_in_the_vocabulary(read_json):
    tokenizer = read_json(added(special=False))
    assert tokenizer.special_tokens == {"<|endoftext|>": 258, "<new>": 300}
    assert tokenizer.encode(" to<new>", "all") == [257, 300]


@pytest.mark.parametrize(
    ("match", "change"),
    [
        ('its model.type is "Unigram", not "BPE": .*', at("model", "type", value="Unigram")),
        ("its model.type is null", at("model", value=None)),
        ("model.dropout is 0.1, not null or 0", at("model", "dropout", value=0.1)),
        ("model.ignore_merges is true", at("model", "ignore_merges", value=True)),
        ("end_of_word_suffix is", at("model", "end_of_word_suffix", value="</w>")),
        ("continuing_subword_prefix", at("model", "continuing_subword_prefix", value="##")),
        ('normalizer is {"type": "NFC"}, not null', at("normalizer", value={"type": "NFC"})),
        ("pre_tokenizer.type is null", at("pre_tokenizer", value=None)),
        ("add_prefix_space is true", at("pre_tokenizer", "add_prefix_space", value=True)),
        ("use_regex is false", at("pre_tokenizer", "use_regex", value=False)),
        ("decoder.type is null, not", at("decoder", value=None)),
        ("truncation is {.*}, not null", at("truncation", value={"max_length": 5})),
        ("padding is {.*}, not null", at("padding", value={"pad_id": 0})),
        ("adds tokens to every text", at("post_processor", "single", value=[{"SpecialToken": {}}])),
        ("adds tokens to every text", at("post_processor", "single", value=7)),
        ('post_processor.type is "Bert', at("post_processor", value={"type": "BertProcessing"})),
        ("added token '<new>' has lstrip, which changes where", added(lstrip=True)),
        ("added_tokens are not a list of objects", at("added_tokens", value=["<new>"])),
        ("one of its added tokens is empty", at("added_tokens", 0, "content", value=5)),
        ("no merge makes the token '<|endoftext|>'", at("added_tokens", value=[])),
        ("no merge makes the token '<|endoftext|>'", at("added_tokens", 0, "id", value=9)),
        ("its tokens are list", at("model", "vocab", value=[])),
        ("its merges are NoneType", at("model", "merges", value=None)),
        (r"its merge \['Ġ'\] is not two tokens", at("model", "merges", value=["Ġ"])),
        ("its merge 7 is not two tokens", at("model", "merges", value=[7])),
        (
            "a merge makes b'to', which has no id",
            at("model", "merges", value=["Ġ t", "t o", "Ġ to"]),
        ),
        ("model.unk_token would stand for the bytes", lacking(unk_token="<|endoftext|>")),
        ("model.byte_fallback would stand for", lacking(byte_fallback=True)),
        ('pre_tokenizer.type is "Sequence"', steps({**DIGITS, "individual_digits": False}, None)),
        ("use_regex is false, not null or true", steps(DIGITS, None, use_regex=False)),
        ("use_regex is true, not false", steps(SPLIT, use_regex=True)),
        ("ignore_merges is null, not true", steps(SPLIT, None, use_regex=False)),
        ("its model.type is null", dict.clear),
    ],
)
def test_settings_that_would_change_ids_are_refused(read_json, match, change):
    with pytest.raises(ValueError, match=rf"^cannot read .*tokenizer\.json' as a tok.*{match}"):
        read_json(change)


def write_gpt2_files(folder, tokenizer):
    """GPT-2's layout: the visible bytes have the first ids; the end of the text has the last."""
    visible_first = sorted(BYTES, key=lambda byte: (ord(bytes_to_letters(byte)) >= 0x100, byte))
    tokens = [bytes_to_letters(t) for t in [*visible_first, *list(tokenizer.ranks)[256:]]]
    merges = [" ".join(map(bytes_to_letters, pair)) for pair in tokenizer.merges]
    encoder, bpe = folder / "encoder.json", folder / "vocab.bpe"
    encoder.write_text(json.dumps({t: i for i, t in enumerate([*tokens, END])}))
    bpe.write_text("\n".join(["#version: 0.2", *merges, ""]), encoding="utf-8")
    return encoder, bpe


def test_the_two_files_of_gpt2_give_its_tokens_and_ids(bpe, tmp_path):
    loaded = BPETokenizer.from_gpt2_files(*write_gpt2_files(tmp_path, bpe))
    assert loaded.merges == bpe.merges
    assert loaded.special_tokens == {END: 699}
    assert loaded.encode("!") == [0]  # GPT-2 counts from the first visible character
    assert loaded.encode(" ") == [220]  # as in the published encoder.json
    assert loaded.encode("\n") == [198]
    text = book_prose()[:5000] + "".join(NASTY)
    assert loaded.pieces(text) == bpe.pieces(text)
    assert loaded.decode(loaded.encode(text)) == text


@pytest.mark.parametrize(
    ("match", "file", "old", "new"),
    [
        ("encoder.json'.*vocab.bpe' does not.*no merge makes the token 'abc'", 1, "ab c\n", ""),
        (
            "encoder.json'.*vocab.bpe' does not belong.*'abc', which has no id",
            0,
            ', "abc": 257',
            "",
        ),
        (
            "encoder.json'.*vocab.bpe' does not belong.*'bc', which has no id",
            1,
            "a b\nab c",
            "b c\na bc",
        ),
        ("line 3 is 'ab c', not two tokens of the lines above", 1, "a b\nab c", "b c\nab c"),
        ("line 3 is 'abc', not two tokens of the lines above with a space", 1, "ab c", "abc"),
        ("line 2 is 'a  b', not two tokens", 1, "a b", "a  b"),
        ("it is incomplete or not JSON", 0, '"a": 64', '"a" 64'),
        ("the id of 'abc' is None", 0, '"abc": 257', '"abc": null'),
        ("both have the id 256", 0, '"<|endoftext|>": 258', '"<|endoftext|>": 256'),
        ("1 of the 256 single bytes have no id, the first is b'z'", 0, '"z": 89, ', ""),
        ("its tokens are list", 0, "", "[]"),
        ("decode byte 0xff in position", 1, "a b", "a \udcff"),
    ],
)
def test_mismatched_vocabulary_and_merges_are_refused(match, file, old, new, tmp_path):
    paths = write_gpt2_files(tmp_path, with_tokens(b"ab", b"abc"))
    text = paths[file].read_text(encoding="utf-8")
    assert old in text
    changed = text.replace(old, new, 1) if old else new
    paths[file].write_bytes(changed.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=f"^cannot read '.*{match}"):
        BPETokenizer.from_gpt2_files(*paths)


def test_merges_out_of_order_are_refused(tmp_path):
    encoder, merges = write_gpt2_files(tmp_path, with_tokens(b"ab", b"cd"))
    merges.write_text("#version: 0.2\nc d\na b\n")
    with pytest.raises(ValueError, match="'ab' is merged after 'cd', but has a lower id"):
        BPETokenizer.from_gpt2_files(encoder, merges)
