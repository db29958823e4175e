"""Answers to the exercises of the chapter on tokenisation."""

import codecs
import unicodedata
from collections import Counter, defaultdict
from itertools import pairwise

from tinytorch import BPETokenizer
from tinytorch.text.bpe_fast import join_by_rank, learn_merges
from tinytorch.text.pretokenization import split_like_gpt2
from tinytorch_book.stories import StoryGrammar


def cut(piece):
    return [bytes([byte]) for byte in piece]


def ids_of(tokens, ranks):
    return [ranks[token] for token in tokens]


def encode_with_a_number_for_infinity(piece, ranks):
    tokens = cut(piece)
    while len(tokens) > 1:
        pairs = [ranks.get(a + b, len(ranks)) for a, b in pairwise(tokens)]
        if min(pairs) == len(ranks):
            break
        i = pairs.index(min(pairs))
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return ids_of(tokens, ranks)


def encode_by_sorting(piece, ranks):
    tokens = cut(piece)
    for _ in piece:
        found = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(tokens)) if a + b in ranks]
        if found:
            i = min(found)[1]
            tokens = [*tokens[:i], tokens[i] + tokens[i + 1], *tokens[i + 2 :]]
    return ids_of(tokens, ranks)


def encode_from_the_left(piece, ranks):
    tokens, i = cut(piece), 0
    while i < len(tokens) - 1:
        if tokens[i] + tokens[i + 1] in ranks:
            tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
        else:
            i += 1
    return ids_of(tokens, ranks)


def train_with(count=pairwise, weight=lambda times: times, best=lambda p: p.most_common(1)[0][0]):
    """Training with other ways to count and to choose."""

    def answer(words, num_merges):
        merges, cuts = [], [(cut(word), times) for word, times in words.items()]
        while len(merges) < num_merges:
            pairs = Counter()
            for word, times in cuts:
                for pair in count(word):
                    pairs[pair] += weight(times)
            if not pairs:
                break
            merges.append(best(pairs))
            cuts = [(merge_exactly(word, merges[-1]), times) for word, times in cuts]
        return merges

    return answer


def merge_exactly(tokens, pair):
    out, i = [], 0
    while i < len(tokens):
        here = tuple(tokens[i : i + 2]) == pair
        out.append(pair[0] + pair[1] if here else tokens[i])
        i += 2 if here else 1
    return out


def without_overlap(word):
    i = 0
    while i + 1 < len(word):
        yield word[i], word[i + 1]
        i += 2 if word[i] == word[i + 1] else 1


def train_with_lists(words, num_merges):
    cuts = {tuple(cut(word)): times for word, times in words.items()}
    merges = []
    for _ in range(num_merges):
        pairs = defaultdict(int)
        for word, times in cuts.items():
            for i in range(len(word) - 1):
                pairs[word[i : i + 2]] += times
        if not pairs:
            break
        most = max(pairs.values())
        pair = next(pair for pair, times in pairs.items() if times == most)
        cuts = {tuple(merge_exactly(list(word), pair)): times for word, times in cuts.items()}
        merges.append(pair)
    return merges


def stream_by_codec(tokens):
    decoder = codecs.getincrementaldecoder("utf-8")()
    return [decoder.decode(token) for token in tokens]


def stream_by_differences(tokens):
    texts = [""]
    for i in range(len(tokens)):
        texts.append(b"".join(tokens[: i + 1]).decode(errors="ignore"))
    return [b[len(a) :] for a, b in pairwise(texts)]


def stream_replaced(tokens):
    waiting, shown = b"", []
    for token in tokens:
        waiting += token
        text = waiting.decode(errors="replace").rstrip("\ufffd")
        shown.append(text)
        waiting = waiting[len(text.encode()) :]
    return shown


def words_of(stories):
    return Counter(word for word in split_like_gpt2(stories) if len(word) > 1)


def words_by_letters_saved(stories, n):
    times = words_of(stories)
    return sorted(times, key=lambda word: (1 - len(word)) * times[word])[:n]


def words_by_hand(stories, n):
    times = Counter(" " + word.strip('.,?!"') for word in stories.split())
    known = [word for word in times if len(word) > 1 and word in stories]
    return set(sorted(known, key=lambda word: times[word] * (len(word) - 1))[-n:])


NUMBERS = {"The": 2, " then": 2, "other": 3, "hehen": 3, "café": 5, "\U0001f98a": 4}

RIGHT = {
    "tokenize_bytes": [
        lambda text: list(text.encode("utf-8")),
        lambda text: [byte for character in text for byte in character.encode()],
    ],
    "bpe_encode": [encode_with_a_number_for_infinity, encode_by_sorting],
    "tokenize_predict": [NUMBERS, {text: float(number) for text, number in NUMBERS.items()}],
    "bpe_train": [train_with_lists, train_with()],
    "bpe_fewer": [words_by_letters_saved, words_by_hand],
    "bpe_stream": [stream_by_codec, stream_by_differences],
}

WRONG = {
    "tokenize_bytes": {
        "… ord gives its code point": lambda text: list(map(ord, text)),
        "… A list of whole numbers": lambda text: text.encode(),
        "… UTF-8 writes them all": lambda text: list(text.encode("ascii")),
        "bytes of length one": lambda text: [bytes([byte]) for byte in text.encode()],
        "composed": lambda text: list(unicodedata.normalize("NFC", text).encode()),
    },
    "bpe_encode": {
        "… lowest rank": encode_from_the_left,
        "… Write it yourself": lambda piece, ranks: ids_of(join_by_rank(piece, ranks), ranks),
        "… list(...)": lambda piece, ranks: (id for id in encode_by_sorting(piece, ranks)),
    },
    "tokenize_predict": {"… Here é is one": NUMBERS | {"café": 6}},
    "bpe_train": {
        "… counts three times": train_with(weight=lambda times: 1),
        "… Write it yourself": lambda words, num_merges: learn_merges(words, num_merges),
        "… twice": train_with(count=without_overlap),
        "… not the first by alphabet": train_with(best=lambda p: min(p, key=lambda q: (-p[q], q))),
    },
    "bpe_fewer": {
        "… only steps": lambda stories, n: (
            [(a + b).decode() for a, b in BPETokenizer.train(stories, 256 + n).merges]
        ),
        "… given alone": lambda stories, n: (
            words_by_letters_saved(stories, n) if StoryGrammar().generate(1, seed=5) else []
        ),
        "… a list": lambda stories, n: (s for s in words_by_letters_saved(stories, n)),
    },
    "bpe_stream": {
        "… hold it back": lambda tokens: [token.decode(errors="replace") for token in tokens],
        "… is a character too": stream_replaced,
    },
}
