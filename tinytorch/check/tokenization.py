"""Checks for the exercises of the chapter on tokenisation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise, predictions

__all__ = [
    "bpe_encode",
    "bpe_stream",
    "bpe_train",
    "tokenize_predict",
]

# The references ----------------------------------------------------------------------------


def _counted(words: Mapping[tuple[bytes, ...], int]) -> dict[tuple[bytes, bytes], int]:
    """How often each pair of neighbours occurs, in the order of first occurrence."""
    pairs: Counter[tuple[bytes, bytes]] = Counter()
    for word, times in words.items():
        for pair in pairwise(word):
            pairs[pair] += times
    return dict(pairs)


def _merged(word: tuple[bytes, ...], pair: tuple[bytes, bytes]) -> tuple[bytes, ...]:
    """`word` with every occurrence of `pair`, from the left, as one token."""
    tokens: list[bytes] = []
    i = 0
    while i < len(word):
        size = 2 if word[i : i + 2] == pair else 1
        tokens.append(b"".join(word[i : i + size]))
        i += size
    return tuple(tokens)


def _trained(words: Mapping[bytes, int], num_merges: int) -> list[tuple[bytes, bytes]]:
    """The merges of byte-pair encoding, recounting everything after each."""
    tokens = {tuple(bytes([byte]) for byte in word): times for word, times in words.items()}
    merges: list[tuple[bytes, bytes]] = []
    while len(merges) < num_merges:
        pairs = _counted(tokens)
        if not pairs:
            break
        best = max(pairs, key=lambda pair: pairs[pair])  # the first of equals
        tokens = {_merged(word, best): times for word, times in tokens.items()}
        merges.append(best)
    return merges


def _encoded(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """The ids of a piece: the pair of lowest rank is merged until none is left."""
    tokens = tuple(bytes([byte]) for byte in piece)
    while len(tokens) > 1:
        pairs = list(pairwise(tokens))
        best = min(pairs, key=lambda pair: ranks.get(b"".join(pair), math.inf))
        if b"".join(best) not in ranks:
            break
        tokens = _merged(tokens, best)
    return [ranks[token] for token in tokens]


def _streamed(tokens: Sequence[bytes]) -> list[str]:
    """For each token the text that is complete when it comes, beyond what was complete before."""
    written, parts = "", []
    for i in range(len(tokens)):
        so_far = b"".join(tokens[: i + 1]).decode("utf-8", errors="ignore")
        parts.append(so_far[len(written) :])
        written = so_far
    return parts


# The exercises -----------------------------------------------------------------------------


@exercise(points=2, reference=_encoded)
def bpe_encode(encode: Callable[..., Any]) -> Iterator[Case]:
    """`encode(piece, ranks)` returns the ids of a piece, merging the lowest rank first.

    `piece` is bytes; `ranks` maps every token to its id, and a lower id was merged earlier.

    Example:
        >>> def encode(piece, ranks):
        ...     tokens = [bytes([byte]) for byte in piece]
        ...     while len(tokens) > 1:
        ...         pairs = [a + b for a, b in zip(tokens, tokens[1:])]
        ...         best = min(pairs, key=lambda pair: ranks.get(pair, 10**9))
        ...         if best not in ranks:
        ...             break
        ...         i = pairs.index(best)
        ...         tokens[i : i + 2] = [best]
        ...     return [ranks[token] for token in tokens]
        >>> bool(bpe_encode(encode)), bool(bpe_encode(lambda piece, ranks: ...))
        (True, False)
    """
    toy = {b"e": 0, b"h": 1, b"n": 2, b"t": 3, b"he": 4, b"the": 5}
    small = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"ab": 4}
    begin = "Begin with single bytes; merge as long as two neighbours together are a token."
    lowest = "bc was merged before ab: of all pairs, merge the one with the lowest rank."
    again = "After every merge look at all pairs again: t and he have become neighbours."
    equal = (
        "Of equal pairs the first is merged first, and the tokens of a pair cannot be used twice."
    )
    ids = "The rank is the number that `ranks` gives, wherever it stands in the dictionary."
    whole = "A token is reached by merges alone: a and bcd are neighbours only if bcd was merged."
    every = "After every merge look at all pairs again, and take the lowest rank."
    yield case("encodes 'n'", encode, b"n", toy, hint=begin)
    yield case("encodes 'hen'", encode, b"hen", toy, hint=begin)
    yield case("merges by rank, not from left to right", encode, b"abc", small, hint=lowest)
    yield case("looks again after a merge", encode, b"then", toy, hint=again)
    repeated = {b"a": 0, b"aa": 1, b"aaaa": 2}
    yield case("merges equal pairs from the left", encode, b"aaaaaaa", repeated, hint=equal)
    empty = "No bytes, no pairs: return an empty list."
    yield case("gives no ids for no bytes", encode, b"", toy, hint=empty)
    shuffled = {b"ab": 4, b"c": 2, b"bc": 3, b"a": 1, b"b": 0}
    yield case("asks the ranks, not their order", encode, b"abcab", shuffled, hint=ids)
    abcd = {b"a": 0, b"b": 1, b"c": 2, b"d": 3, b"ab": 4, b"cd": 5, b"bcd": 6, b"abcd": 7}
    yield case("does not search for the longest token", encode, b"bcdabcd", abcd, hint=whole)
    rng = np.random.default_rng(0)
    words = [bytes(rng.choice(list(b"abcd"), size=9).tolist()) for _ in range(30)]
    ranks = {token: i for i, token in enumerate([b"a", b"b", b"c", b"d"])}
    for left, right in _trained(dict.fromkeys(words, 1), 25):
        ranks[left + right] = len(ranks)
    for _ in range(6):
        piece = bytes(rng.choice(list(b"abcd"), size=14).tolist())
        yield case(f"encodes {piece.decode()}", encode, piece, ranks, hint=every)


@exercise(points=1)
def tokenize_predict(answer: Any) -> Iterator[Case]:
    """Check the predicted numbers of tokens: `answer` maps a text to its number of tokens.

    The merges are those of the chapter's toy: `he`, then `the`, then `then`.

    Example:
        >>> numbers = {
        ...     "The": 2,
        ...     " then": 2,
        ...     "other": 3,
        ...     "hehen": 3,
        ...     "café": 5,
        ...     "\U0001f98a": 4,
        ... }
        >>> bool(tokenize_predict(numbers)), bool(tokenize_predict({"The": ...}))
        (True, False)
    """
    numbers = {
        "The": (2, "T and t are different bytes; which merge is still possible?"),
        " then": (2, "No merge has a space in it."),
        "other": (3, "Merges do not ask where in a word they are."),
        "hehen": (3, "No merge joins he with anything to its right."),
        "café": (5, "The letter outside ASCII is encoded in more than one byte."),
        "\U0001f98a": (4, "How many bytes has this character in UTF-8? None of them was merged."),
    }
    for predicted in predictions(answer, numbers):
        claim = f"the number of tokens of {predicted.claim!r}"
        yield replace(predicted, claim=claim)


@exercise(points=3, reference=_trained)
def bpe_train(train: Callable[..., Any]) -> Iterator[Case]:
    """`train(words, num_merges)` returns the merges, pairs of bytes, in the order they were made.

    `words` maps each different piece of the text, bytes, to the number of times it occurs. Of
    pairs that are equally frequent the first in the text is merged; when no pair is left, training
    stops.

    Example:
        >>> bool(bpe_train(_trained)), bool(bpe_train(lambda words, num_merges: ...))
        (True, False)
    """
    toy = dict.fromkeys((b"then", b" the", b" other", b" hen", b" hid"), 1)
    count = "Count the pairs of neighbours in all words; the most frequent is the merge."
    times = "A word that occurs three times counts three times."
    stops = "Here two merges are possible; after them every word is a single token."
    crossed = [(_trained({b"ababba": 1}, 5), "Pairs do not cross from one word to the next.")]
    again = "Replace the pair by its token in every word, then count again."
    tie = "All pairs occur once now: the first in the text is the merge, not the first by alphabet."
    left = "In aaa the first two are merged; the third has nobody left."
    twice = "aaa holds the pair of a and a twice, at its start and at its end."
    none = "No merges are asked for: return an empty list."
    yield case("finds the most frequent pair", train, toy, 1, hint=count)
    words = {b"hid": 1, b"hut": 1, b"he": 3}
    yield case("counts a word as often as it occurs", train, words, 1, hint=times)
    claim, words = "keeps words apart, and stops when no pair is left", {b"ab": 2, b"ba": 1}
    yield case(claim, train, words, 5, hint=stops, mistakes=crossed)
    yield case("goes on with the merged words", train, toy, 2, hint=again)
    yield case("settles a tie", train, toy, 3, hint=tie)
    words = {b"xaaay": 1, b"aaa": 2}
    yield case("merges equal neighbours from the left", train, words, 4, hint=left)
    words = {b"bcbcb": 1, b"aaa": 1, b"aab": 1}
    yield case("counts pairs that overlap", train, words, 1, hint=twice)
    yield case("makes no merge if none is wanted", train, toy, 0, hint=none)
    rng = np.random.default_rng(0)
    for num_merges in (12, 30):
        drawn = [bytes(rng.choice(list(b"abcde"), size=6).tolist()) for _ in range(40)]
        words = {word: int(rng.integers(1, 9)) for word in dict.fromkeys(drawn)}
        yield case(f"makes {num_merges} merges", train, words, num_merges, hint=again)


@exercise(points=3, reference=_streamed)
def bpe_stream(stream: Callable[..., Any]) -> Iterator[Case]:
    """`stream(tokens)` returns for each token, bytes, the text that can be written when it comes.

    Bytes of a character that is not complete yet are held back until it is. Together the tokens
    are valid UTF-8.

    Example:
        >>> import codecs
        >>> def stream(tokens):
        ...     decode = codecs.getincrementaldecoder("utf-8")().decode
        ...     return [decode(token) for token in tokens]
        >>> bool(bpe_stream(stream)), bool(bpe_stream(lambda tokens: ...))
        (True, False)
    """
    whole = "A token of whole characters is written at once: one string for each token."
    wait = "Write nothing, an empty string, until the last byte of the character has come."
    rest = "Show what is complete; keep only the bytes that were not used."
    kept = "\ufffd is a character too; only bytes that are incomplete wait."
    single = "Half a character, decoded by itself, is replaced: hold it back."
    alone = [(lambda tokens: [token.decode(errors="replace") for token in tokens], single)]
    fox = [bytes([byte]) for byte in "\U0001f98a".encode()]
    yield case("writes plain tokens", stream, [b"o", b"the"], hint=whole)
    for claim, tokens in (
        ("holds half a character back", [b"No", b"\xc3", b"\xab"]),
        ("waits for the last of four bytes", [*fox, b"!"]),
    ):
        yield case(claim, stream, tokens, hint=wait, mistakes=alone)
    claim = "writes what is complete, and holds the rest"
    tokens = [b"No\xc3", b"\xabl \xf0\x9f", b"\xa6\x8a"]
    yield case(claim, stream, tokens, hint=rest)
    claim = "keeps a replacement character that is in the text"
    yield case(claim, stream, ["a\ufffd".encode(), b"\xef\xbf", b"\xbdb"], hint=kept)
    yield case("writes nothing for no tokens", stream, [], hint="One string for each token: none.")
    rng = np.random.default_rng(0)
    for bound in (0x80, 0x800, 0x3000, 0x20000):
        codes = rng.integers(0 if bound == 0x80 else 0x20, bound, size=12).tolist()
        data = "".join(chr(i) for i in codes if not 0xD800 <= i < 0xE000).encode()
        cuts = [0, *sorted(rng.choice(range(1, len(data)), size=6, replace=False)), len(data)]
        tokens = [data[a:b] for a, b in pairwise(cuts)]
        yield case("holds for any cuts", stream, tokens, hint=rest)
