"""The checks of the chapter on tokenisation take right answers and catch the usual errors."""

import codecs
from collections import Counter
from itertools import pairwise

import pytest

from tinytorch.check import tokenization as checks


def stub(*_):
    """An empty answer."""
    ...


def right_encode(piece, ranks):
    tokens = [bytes([byte]) for byte in piece]
    while len(tokens) > 1:
        pairs = [a + b for a, b in pairwise(tokens)]
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        i = pairs.index(best)
        tokens[i : i + 2] = [best]
    return [ranks[token] for token in tokens]


def merge(word, pair):
    merged, i = [], 0
    while i < len(word):
        size = 2 if tuple(word[i : i + 2]) == pair else 1
        merged.append(b"".join(word[i : i + size]))
        i += size
    return merged


def most_frequent(pairs):
    return max(pairs, key=pairs.get)


def right_train(words, num_merges, best_of=most_frequent):
    words, merges = [([bytes([b]) for b in word], n) for word, n in words.items()], []
    while len(merges) < num_merges:
        pairs = Counter()
        for word, times in words:
            for pair in pairwise(word):
                pairs[pair] += times
        if not pairs:
            break
        merges.append(best_of(pairs))
        words = [(merge(word, merges[-1]), times) for word, times in words]
    return merges


def right_stream(tokens):
    decode = codecs.getincrementaldecoder("utf-8")().decode
    return [decode(token) for token in tokens]


PREDICTED = {"The": 2, " then": 2, "other": 3, "hehen": 3, "café": 5, "\U0001f98a": 4}
RIGHT = {
    "bpe_encode": right_encode,
    "bpe_stream": right_stream,
    "bpe_train": right_train,
    "tokenize_predict": PREDICTED,
}


def test_every_check_is_tested():
    assert sorted(RIGHT) == sorted(checks.__all__)


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_answer_is_solved(name):
    report = getattr(checks, name)(RIGHT[name])
    assert report, report


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("answer", [stub, ..., None, 3], ids=["stub", "ellipsis", "none", "number"])
def test_an_empty_answer_is_not(name, answer):
    report = getattr(checks, name)(answer)
    assert not report
    assert len(report.cases) == 1


def test_a_prediction_that_is_not_made_is_not_solved():
    assert not checks.tokenize_predict(dict.fromkeys(PREDICTED, ...))
    report = checks.tokenize_predict({**PREDICTED, "hehen": 2})
    assert "hehen" in report.cases[-1].claim
    assert report.cases[-1].expected == "", "a prediction is not given away"


def test_the_predicted_numbers_are_those_of_the_toy():
    toy = dict.fromkeys([b"then", b" the", b" other", b" hen", b" hid"], 1)
    ranks = {bytes([i]): i for i in range(256)}
    for left, right in right_train(toy, 3):
        ranks[left + right] = len(ranks)
    for text, number in PREDICTED.items():
        head, gap, tail = text.partition(" ")  # a space belongs to the word behind it
        pieces = [head, gap + tail] if head and gap else [text]
        assert sum(len(right_encode(piece.encode(), ranks)) for piece in pieces) == number


def left_to_right(piece, ranks):
    tokens, i = [bytes([byte]) for byte in piece], 0
    while i < len(tokens) - 1:
        if tokens[i] + tokens[i + 1] in ranks:
            tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
        else:
            i += 1
    return [ranks[token] for token in tokens]


def longest_first(piece, ranks):
    ids = []
    while piece:
        size = next(n for n in range(len(piece), 0, -1) if piece[:n] in ranks)
        ids.append(ranks[piece[:size]])
        piece = piece[size:]
    return ids


def single_bytes(piece, ranks):
    return [ranks[bytes([byte])] for byte in piece]


def highest_rank_first(piece, ranks):
    tokens = [bytes([byte]) for byte in piece]
    while True:
        pairs = [a + b for a, b in pairwise(tokens)]
        best = max(pairs, key=lambda pair: ranks.get(pair, -1), default=None)
        if best not in ranks:
            return [ranks[token] for token in tokens]
        i = pairs.index(best)
        tokens[i : i + 2] = [best]


def by_alphabet(words, num_merges):
    return right_train(words, num_merges, lambda pairs: max(sorted(pairs), key=pairs.get))


def last_of_equals(words, num_merges):
    return right_train(words, num_merges, lambda p: max(reversed(list(p)), key=p.get))


def without_borders(words, num_merges):
    text = b"".join(word * times for word, times in words.items())
    return right_train({text: 1}, num_merges)


def counting_once(words, num_merges):
    return right_train(dict.fromkeys(words, 1), num_merges)


def without_recounting(words, num_merges):
    pairs = Counter(pair for word, n in words.items() for pair in list(pairwise(word)) * n)
    return [(bytes([a]), bytes([b])) for (a, b), _ in pairs.most_common(num_merges)]


def never_stopping(words, num_merges):
    merges = right_train(words, num_merges)
    return merges + merges[-1:] * (num_merges - len(merges))


def hard_coded(words, num_merges):
    toy = dict.fromkeys([b"then", b" the", b" other", b" hen", b" hid"], 1)
    return right_train(toy, 3)[:num_merges]


def token_by_token(tokens):
    return [token.decode("utf-8", errors="replace") for token in tokens]


def dropping(tokens):
    return [token.decode("utf-8", errors="ignore") for token in tokens]


def as_latin(tokens):
    return [token.decode("latin-1") for token in tokens]


def all_or_nothing(tokens):
    """Holds a whole token back where only its end is incomplete."""
    written, held = [], b""
    for token in tokens:
        held += token
        try:
            written.append(held.decode())
            held = b""
        except UnicodeDecodeError:
            written.append("")
    return written


def all_at_the_end(tokens):
    return [""] * (len(tokens) - 1) + [b"".join(tokens).decode()]


BY_RANK = "merges by rank, not from left to right"
APART = "keeps words apart, and stops when no pair is left"
HALF = "holds half a character back"


@pytest.mark.parametrize(
    ("name", "answer", "where"),
    [
        ("bpe_encode", left_to_right, BY_RANK),
        ("bpe_encode", longest_first, BY_RANK),
        ("bpe_encode", highest_rank_first, BY_RANK),
        ("bpe_encode", single_bytes, "encodes 'hen'"),
        ("bpe_train", counting_once, "counts a word as often as it occurs"),
        ("bpe_train", without_borders, APART),
        ("bpe_train", never_stopping, APART),
        ("bpe_train", hard_coded, APART),
        ("bpe_train", without_recounting, "goes on with the merged words"),
        ("bpe_train", by_alphabet, "settles a tie"),
        ("bpe_train", last_of_equals, "settles a tie"),
        ("bpe_stream", token_by_token, HALF),
        ("bpe_stream", dropping, HALF),
        ("bpe_stream", as_latin, HALF),
        ("bpe_stream", all_at_the_end, "writes plain tokens"),
        ("bpe_stream", all_or_nothing, "writes what is complete, and holds the rest"),
    ],
)
def test_a_plausible_error_is_caught(name, answer, where):
    report = getattr(checks, name)(answer)
    assert not report
    assert report.cases[-1].claim == where
    assert report.cases[-1].came, "the report says what came"


def test_hints_fit_the_mistake():
    assert "lowest rank" in checks.bpe_encode(left_to_right).cases[-1].hint
    assert "counts three times" in checks.bpe_train(counting_once).cases[-1].hint
    assert "do not cross" in checks.bpe_train(without_borders).cases[-1].hint
    assert "hold it back" in checks.bpe_stream(token_by_token).cases[-1].hint
