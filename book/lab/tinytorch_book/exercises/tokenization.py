"""Checks for the exercises of the chapter on tokenisation."""

from functools import partial
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import numpy as np

from tinytorch.text.bpe_fast import join_by_rank, learn_merges
from tinytorch.text.tokenization import BPETokenizer
from tinytorch_book.exercises.cases import Cases, NotYet, case, cases, measured, predictions
from tinytorch_book.exercises.drawn_numbers import generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import package_only
from tinytorch_book.exercises.values import STRANGE, show
from tinytorch_book.stories import StoryGrammar

__all__ = ["bpe_encode", "bpe_fewer", "bpe_stream", "bpe_train", "tokenize_bytes",
           "tokenize_predict"]  # fmt: skip

_OWN = package_only("Write it yourself: the package does it already.")

# A reference -------------------------------------------------------------------------------


def _streamed(tokens: list[bytes]) -> list[str]:
    """For each token the text that is complete when it comes, beyond what was complete before."""
    whole = [b"".join(tokens[:i]).decode(errors="ignore") for i in range(len(tokens) + 1)]
    return [text[len(before) :] for before, text in pairwise(whole)]


# The exercises -----------------------------------------------------------------------------


def _encoded(piece: bytes, ranks: dict[bytes, int]) -> list[int]:
    return [ranks[token] for token in join_by_rank(piece, ranks)]


@exercise(points=2, reference=_encoded, rules=[_OWN])
def bpe_encode(encode: Any) -> Cases:
    """`encode(piece, ranks)` returns the ids of a piece, merging the lowest rank first.

    `piece` is bytes; `ranks` maps every token to its id, and a lower id was merged earlier.
    """
    toy = {b"e": 0, b"h": 1, b"n": 2, b"t": 3, b"he": 4, b"the": 5}
    abcd = {b"a": 0, b"b": 1, b"c": 2, b"d": 3, b"ab": 4, b"cd": 5, b"bcd": 6, b"abcd": 7}
    begin = "Begin with single bytes; merge as long as two neighbours together are a token."
    lowest = "bc was merged before ab: of all pairs, merge the one with the lowest rank."
    again = "After every merge look at all pairs again: t and he have become neighbours."
    first = "Of equal pairs the first is merged first; no token is used twice."
    number = "The rank is the number that `ranks` gives, wherever it stands in the dictionary."
    alone = "A token is reached by merges alone, the lowest rank first."
    every = "After every merge look at all pairs again, and take the lowest rank."
    yield from cases(encode, {
        "encodes 'n'": (begin, b"n", toy),
        "encodes 'hen'": (begin, b"hen", toy),
        "merges by rank, not from left to right":
            (lowest, b"abc", {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"ab": 4}),
        "looks again after a merge": (again, b"then", toy),
        "encodes 'the' as a single token": (begin, b"the", toy),
        "merges equal pairs from the left": (first, b"aaaaaaa", {b"a": 0, b"aa": 1, b"aaaa": 2}),
        "gives no ids for no bytes": ("No bytes, no pairs: return an empty list.", b"", toy),
        "asks the ranks, not their order":
            (number, b"abc", {b"ab": 4, b"c": 2, b"bc": 3, b"a": 1, b"b": 0}),
        "changes no byte": (every, STRANGE.encode(), {bytes([i]): i for i in range(256)}),
        "does not search for the longest token": (alone, b"bcdabcd", abcd),
    })  # fmt: skip
    rng = generator()
    for letters, length in ((b"abcd", 14), (b"z\xffy \x00", 14), (b"xw", 60)):
        words = _words(rng, letters, 30, 9)
        merges = learn_merges(dict.fromkeys(words, 1), 25)
        tokens = [*(bytes([i]) for i in range(256)), *(a + b for a, b in merges)]
        ranks = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
        for piece in _words(rng, letters, 3, length):
            yield case(f"encodes {piece!r}", encode, piece, ranks, hint=every)


def _words(rng: "np.random.Generator", letters: bytes, number: int, length: int) -> list[bytes]:
    return [bytes(rng.choice([*letters], length).tolist()) for _ in range(number)]


@exercise(points=1, reference=lambda text: list(text.encode()))
def tokenize_bytes(answer: Any) -> Cases:
    """`answer(text)` returns the numbers of the bytes of a text in UTF-8, a list."""
    whole = "A list of whole numbers: list(...) makes one of the bytes."
    several = "In UTF-8 this character is more than one byte; ord gives its code point."
    mistakes = [
        (lambda text: [ord(c) for c in text], several),
        (lambda text: list(text.encode("utf-16")), "UTF-8 is the rule of this chapter."),
        (UnicodeEncodeError, "Not every character is in that code: UTF-8 writes them all."),
    ]
    yield from cases(answer, {
        "gives the ids of plain letters": (whole, "the hen"),
        "gives two ids for an e with an accent": (several, "caf\u00e9"),
        "gives three for an e and its accent": (several, "e\u0301"),
        "gives four for a fox": (several, "\U0001f98a"),
        "gives none for no text": ("No characters, no bytes: an empty list.", ""),
        "changes nothing": ("Every character is encoded as it is.", STRANGE),
    }, mistakes)  # fmt: skip
    yield case("gives a list", answer, "hen", expected="list",
               run=lambda f, text: type(f(text)).__name__, hint=whole)  # fmt: skip


@exercise(points=1)
def tokenize_predict(answer: Any) -> Cases:
    """Check the predicted numbers of tokens: `answer` maps a text to its number of tokens.

    The merges are those of the chapter's toy: `he`, then `the`, then `then`.
    """
    yield from predictions(answer, {
        "The": (2, "T and t are different bytes; which merge is still possible?"),
        " then": (2, "No merge has a space in it."),
        "other": (3, "A merge applies wherever its pair stands in a word."),
        "hehen": (3, "No merge joins he with anything to its right."),
        "café": (5, "é takes more than one byte.", (6, "Here é is one character.")),
        "\U0001f98a": (4, "How many bytes does it have in UTF-8? None of them was merged."),
    }, "the number of tokens of {!r}")  # fmt: skip


@exercise(points=3, reference=learn_merges, rules=[_OWN])
def bpe_train(train: Any) -> Cases:
    """`train(words, num_merges)` returns the merges, pairs of bytes, in the order they were made.

    `words` maps each different piece of the text, bytes, to the number of times it occurs. Of
    pairs that are equally frequent the first in the text is merged; when no pair is left, training
    stops.
    """
    toy = dict.fromkeys((b"then", b" the", b" other", b" hen", b" hid"), 1)
    count = "Count the pairs of neighbours in all words; the most frequent is the merge."
    often = "A word that occurs three times counts three times."
    apart = "Here two merges are possible; after them every word is a single token."
    again = "Replace the pair by its token in every word, then count again."
    tie = "All occur once now: take the first in the text, not the first by alphabet."
    left = "In aaa the first two are merged; the third has no neighbour left."
    twice = "aaa holds the pair of a and a twice, at its start and at its end."
    crossed = "Pairs do not cross between words."
    yield from cases(train, {
        "finds the most frequent pair": (count, toy, 1),
        "counts a word as often as it occurs": (often, {b"hid": 1, b"hut": 1, b"he": 3}, 1),
        "keeps words apart, and stops when no pair is left": (apart, {b"ab": 2, b"ba": 1}, 5),
        "continues with the merged words": (again, toy, 2),
        "settles a tie": (tie, toy, 3),
        "merges equal neighbours from the left": (left, {b"xaaay": 1, b"aaa": 2}, 4),
        "counts pairs that overlap": (twice, {b"bcbcb": 1, b"aaa": 1, b"aab": 1}, 1),
        "makes no merge if none is wanted": ("Return an empty list.", toy, 0),
        "makes none of single bytes": (crossed, {b"a": 9, b"b": 8}, 3),
        "changes no byte": (again, {STRANGE.encode(): 1}, 99),
        "goes on to rarer pairs": (often, {b"ab": 1000, b"cd": 300, b"ce": 701}, 3),
    }, [(lambda words, n: learn_merges({b"ababba": 1}, n), crossed)])  # fmt: skip
    rng = generator()
    for num_merges, letters in ((12, b"abcde"), (30, b"e \xc3d\x00")):
        words = {word: int(rng.integers(1, 9)) for word in _words(rng, letters, 40, 6)}
        yield case(f"makes {num_merges} merges", train, words, num_merges, hint=again)


@exercise(points=3, reference=_streamed, rules=[_OWN])
def bpe_stream(stream: Any) -> Cases:
    """`stream(tokens)` returns for each token, bytes, the text that can be written when it comes.

    Bytes of a character that is not complete yet are held back until it is. Together the tokens
    are valid UTF-8.
    """
    plain = "A token of whole characters is written at once: one string for each token."
    wait = "Write nothing, an empty string, until the last byte of the character has come."
    rest = "Show what is complete; keep only the bytes that were not used."
    mark = "\ufffd is a character too; only bytes that are incomplete wait."
    same = "Decode the bytes, and do nothing else to the text."
    single = "Half a character, decoded by itself, is replaced: hold it back."
    fox = [bytes([byte]) for byte in "\U0001f98a".encode()]
    marks = ["a\ufffd".encode(), b"\xef\xbf", b"\xbdb"]
    yield from cases(stream, {
        "writes plain tokens": (plain, [b"o", b"the"]),
        "holds half a character back": (wait, [b"No", b"\xc3", b"\xab"]),
        "waits for the last of four bytes": (wait, [*fox, b"!"]),
        "writes what is complete, and holds the rest":
            (rest, [b"No\xc3", b"\xabl \xf0\x9f", b"\xa6\x8a"]),
        "keeps a replacement character that is in the text": (mark, marks),
        "changes no space and no end of a line": (same, [b" a\r", b"\n\x00\t", b"b \n"]),
        "changes no character": (same, [STRANGE.encode()]),
        "writes nothing for no tokens": ("One string for each token: none.", []),
        "writes nothing for an empty token": (wait, [b"", b"No\xc3", b"", b"\xab", b""]),
        "keeps a mark at the beginning": (same, ["\ufeff\ufeffa".encode(), b"b"]),
    }, [(lambda tokens: [token.decode(errors="replace") for token in tokens], single)])  # fmt: skip
    rng = generator()
    for letters in ("ab \n", "aéßλ", "é€中 ", "a€🦊🎲"):
        data = "".join(rng.choice([*letters], size=12)).encode()
        cuts = [0, *sorted(rng.choice(range(1, len(data)), size=6, replace=False)), len(data)]
        tokens = [data[a:b] for a, b in pairwise(cuts)]
        yield case("holds for any cuts", stream, tokens, hint=rest)


# Fewer tokens ------------------------------------------------------------------------------

NUMBER, AIM = 200, 0.75  # of tokens to choose, and of the tokens that byte-pair encoding needs


_LISTED = "Return a list of at most n strings, each of which stands in the stories as it is."


def _chosen(choose: Any, stories: str) -> set[str]:
    """The reader's tokens, if they are as the statement wants them."""
    tokens = choose(stories, NUMBER)
    if not isinstance(tokens, (list, tuple, set, dict)):
        raise NotYet(f"{show(tokens)}, which is not a list of strings", _LISTED)
    for token in tokens:
        if not (isinstance(token, str) and token and token in stories):
            told = f"{show(token)} among them, which is not a string from the stories"
            raise NotYet(told, _LISTED)
    if len(set(tokens)) > NUMBER:
        told = f"{len(set(tokens))} different strings, of which {NUMBER} are allowed"
        raise NotYet(told, _LISTED)
    return set(tokens)


def _fewest(text: str, tokens: set[str]) -> int:
    """Into how few of the tokens, or single letters, a text can be cut."""
    known, lengths, best = tokens | set(text), {1, *map(len, tokens)}, [0]
    for i in range(1, len(text) + 1):
        ends = (n for n in lengths if n <= i and text[i - n : i] in known)
        best.append(1 + min(best[i - n] for n in ends))
    return best[-1]


def _share(choose: Any, stories: str, new: str) -> tuple[float, int, int]:
    """The reader's tokens in new stories, in those of byte-pair encoding; and both numbers."""
    count = _fewest(new, _chosen(choose, stories))
    bpe = len(BPETokenizer.train(stories, 256 + NUMBER).encode(new))
    return count / bpe, count, bpe


def _exchanged() -> dict[int, int]:
    """Another letter for each, so that an answer must read the stories: it cannot know them."""
    letters = "".join(generator().permutation([*ascii_lowercase]))
    return str.maketrans(ascii_lowercase + ascii_uppercase, letters + letters.upper())


_READ = package_only("Choose from the stories that you are given alone.", "tinytorch.text")


@exercise(points=4, show_expected=False, rules=[_READ])
def bpe_fewer(answer: Any) -> Cases:
    """`answer(stories, n)` chooses n strings as tokens beside the single letters.

    New stories, cut into as few of them as possible, have at most three quarters of the tokens that
    byte-pair encoding makes of them with n merges.
    """
    stories, new = StoryGrammar().generate(100, seed=100), StoryGrammar().generate(40, seed=40)
    stories, new = (text.translate(_exchanged()) for text in (stories, new))
    spent = "How many of the tokens are only steps towards longer ones, and hardly used afterwards?"
    claim = f"at most {NUMBER} strings cut new stories into {AIM:.0%} of the tokens"
    yield from measured(claim, answer, run=partial(_share, stories=stories, new=new), aim=AIM,
                        told="{1:,} tokens, {0:.1%} of {2:,}", hint=spent)  # fmt: skip
