"""Checks for the exercises of the chapter on tokenisation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise

__all__ = [
    "bpe_encode",
    "bpe_stream",
    "bpe_train",
    "tokenize_predict",
]


@exercise(points=2)
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
    ranks = {b"e": 0, b"h": 1, b"n": 2, b"t": 3, b"he": 4, b"the": 5}
    hint = "Begin with single bytes; merge as long as two neighbours together are a token."
    for piece in (b"n", b"hen"):
        claim = f"encodes {piece.decode()!r}"
        yield case(claim, encode, piece, ranks, expected=_encoded(piece, ranks), hint=hint)
    small = {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"ab": 4}
    hint = "bc was merged before ab: of all pairs, merge the one with the lowest rank."
    claim = "merges by rank, not from left to right"
    yield case(claim, encode, b"abc", small, expected=[0, 3], hint=hint)
    hint = "After every merge look at all pairs again: t and he have become neighbours."
    yield case("looks again after a merge", encode, b"then", ranks, expected=[5, 2], hint=hint)
    hint = (
        "Of equal pairs the first is merged first, and the tokens of a pair cannot be used twice."
    )
    ranks = {b"a": 0, b"aa": 1, b"aaaa": 2}
    claim = "merges equal pairs from the left"
    yield case(claim, encode, b"aaaaaaa", ranks, expected=[2, 1, 0], hint=hint)
    hint = "No bytes, no pairs: return an empty list."
    yield case("gives no ids for no bytes", encode, b"", ranks, expected=[], hint=hint)
    rng = np.random.default_rng(0)
    words = [bytes(rng.choice(list(b"abcd"), size=9).tolist()) for _ in range(30)]
    ranks = {token: i for i, token in enumerate([b"a", b"b", b"c", b"d"])}
    for left, right in _trained(dict.fromkeys(words, 1), 25):
        ranks[left + right] = len(ranks)
    for _ in range(4):
        piece = bytes(rng.choice(list(b"abcd"), size=14).tolist())
        claim, expected = f"encodes {piece.decode()}", _encoded(piece, ranks)
        hint = "After every merge look at all pairs again, and take the lowest rank."
        yield case(claim, encode, piece, ranks, expected=expected, hint=hint)


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
    for text, (number, hint) in numbers.items():
        predicted = answer.get(text, ...) if isinstance(answer, dict) else answer
        claim = f"the number of tokens of {text!r}"
        yield case(claim, predicted, expected=number, hint=hint, show_expected=False)


@exercise(points=3)
def bpe_train(train: Callable[..., Any]) -> Iterator[Case]:
    """`train(words, num_merges)` returns the merges, pairs of bytes, in the order they were made.

    `words` maps each different piece of the text, bytes, to the number of times it occurs. Of
    pairs that are equally frequent the first in the text is merged; when no pair is left, training
    stops.

    Example:
        >>> from tinytorch.check.tokenization import _trained
        >>> bool(bpe_train(_trained)), bool(bpe_train(lambda words, num_merges: ...))
        (True, False)
    """
    toy = dict.fromkeys((b"then", b" the", b" other", b" hen", b" hid"), 1)
    hint = "Count the pairs of neighbours in all words; the most frequent is the merge."
    yield case("finds the most frequent pair", train, toy, 1, expected=[(b"h", b"e")], hint=hint)
    words = {b"hid": 1, b"hut": 1, b"he": 3}
    hint = "A word that occurs three times counts three times."
    claim = "counts a word as often as it occurs"
    yield case(claim, train, words, 1, expected=[(b"h", b"e")], hint=hint)
    words = {b"ab": 2, b"ba": 1}
    claim, expected = "keeps words apart, and stops when no pair is left", _trained(words, 5)
    hint = "Here two merges are possible; after them every word is a single token."
    crossed = [(_trained({b"ababba": 1}, 5), "Pairs do not cross from one word to the next.")]
    yield case(claim, train, words, 5, expected=expected, hint=hint, mistakes=crossed)
    hint = "Replace the pair by its token in every word, then count again."
    claim, expected = "goes on with the merged words", _trained(toy, 2)
    yield case(claim, train, toy, 2, expected=expected, hint=hint)
    hint = (
        "All pairs occur once now: the first in the text is the merge, not the first by alphabet."
    )
    yield case("settles a tie", train, toy, 3, expected=_trained(toy, 3), hint=hint)
    words = {b"xaaay": 1, b"aaa": 2}
    claim, expected = "merges equal neighbours from the left", _trained(words, 4)
    hint = "In aaa the first two are merged; the third has nobody left."
    yield case(claim, train, words, 4, expected=expected, hint=hint)
    rng = np.random.default_rng(0)
    for num_merges in (12, 30):
        drawn = [bytes(rng.choice(list(b"abcde"), size=6).tolist()) for _ in range(40)]
        words = {word: int(rng.integers(1, 9)) for word in dict.fromkeys(drawn)}
        claim, expected = f"makes {num_merges} merges", _trained(words, num_merges)
        yield case(claim, train, words, num_merges, expected=expected)


@exercise(points=3)
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
    hint = "A token of whole characters is written at once: one string for each token."
    yield case("writes plain tokens", stream, [b"o", b"the"], expected=["o", "the"], hint=hint)
    fox = "\U0001f98a"
    fox_bytes = [bytes([byte]) for byte in fox.encode()]
    hint = "Write nothing, an empty string, until the last byte of the character has come."
    for claim, tokens, written in (
        ("holds half a character back", [b"No", b"\xc3", b"\xab"], ["No", "", "ë"]),
        ("waits for the last of four bytes", [*fox_bytes, b"!"], ["", "", "", fox, "!"]),
    ):
        single = [token.decode(errors="replace") for token in tokens]
        mistakes = [(single, "Half a character, decoded by itself, is replaced: hold it back.")]
        yield case(claim, stream, tokens, expected=written, hint=hint, mistakes=mistakes)
    claim = "writes what is complete, and holds the rest"
    tokens, written = [b"No\xc3", b"\xabl \xf0\x9f", b"\xa6\x8a"], ["No", "ël ", fox]
    hint = "Show what is complete; keep only the bytes that were not used."
    yield case(claim, stream, tokens, expected=written, hint=hint)
    kept = "\ufffd is a character too; only bytes that are incomplete wait."
    claim = "keeps a replacement character that is in the text"
    yield case(claim, stream, ["a\ufffd".encode()], expected=["a\ufffd"], hint=kept)
    rng = np.random.default_rng(0)
    for _ in range(3):
        data = "".join(chr(int(i)) for i in rng.integers(0x20, 0x3000, size=12)).encode()
        cuts = [0, *sorted(rng.choice(len(data), size=6, replace=False).tolist()), len(data)]
        tokens = [data[a:b] for a, b in pairwise(cuts)]
        yield case("holds for any cuts", stream, tokens, expected=_streamed(tokens), hint=hint)


# Helpers -------------------------------------------------------------------------------------


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
