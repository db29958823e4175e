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


def merge_exactly(tokens, pair):
    out, i = [], 0
    while i < len(tokens):
        here = tuple(tokens[i : i + 2]) == pair
        out.append(pair[0] + pair[1] if here else tokens[i])
        i += 2 if here else 1
    return out


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


def words_of(stories):
    return Counter(word for word in split_like_gpt2(stories) if len(word) > 1)


def words_by_letters_saved(stories, n):
    times = words_of(stories)
    return sorted(times, key=lambda word: (1 - len(word)) * times[word])[:n]


def words_by_hand(stories, n):
    times = Counter(" " + word.strip('.,?!"') for word in stories.split())
    known = [word for word in times if len(word) > 1 and word in stories]
    return set(sorted(known, key=lambda word: times[word] * (len(word) - 1))[-n:])


RIGHT = {
    "tokenize_bytes": [lambda text: [byte for character in text for byte in character.encode()]],
    "bpe_encode": [encode_by_sorting],
    "bpe_train": [train_with_lists],
    "bpe_fewer": [words_by_letters_saved, words_by_hand],
    "bpe_stream": [stream_by_codec],
}

WRONG = {
    "tokenize_bytes": {
        "… ord gives its code point": ("text.encode()", "map(ord, text)"),
        "… A list of whole numbers": ("list(text.encode())", "text.encode()"),
        "… UTF-8 is the rule": ("encode()", "encode('utf-16')"),
        "… UTF-8 writes them all": ("encode()", "encode('ascii')"),
        "bytes of length one": lambda text: [bytes([byte]) for byte in text.encode()],
        "composed": lambda text: list(unicodedata.normalize("NFC", text).encode()),
    },
    "bpe_encode": {
        "… lowest rank": encode_from_the_left,
        "… Write it yourself": lambda piece, ranks: ids_of(join_by_rank(piece, ranks), ranks),
        "… list(...)": lambda piece, ranks: (id for id in encode_by_sorting(piece, ranks)),
    },
    "tokenize_predict": {"… Here é is one": {"café": 6}},
    "bpe_train": {
        "… counts three times": ("pairs[pair] += times", "pairs[pair] += 1"),
        "… Pairs do not cross": (
            "cut = [([bytes",
            "words = {b''.join(w * n for w, n in words.items()): 1}\n    cut = [([bytes",
        ),
        "… Write it yourself": lambda words, num_merges: learn_merges(words, num_merges),
        "… twice": (
            "for pair in pairwise(word):",
            "for last, *pair in zip([b'', *word], word, word[1:]):\n"
            "                if last == pair[0] == pair[1]:\n"
            "                    continue\n"
            "                pair = tuple(pair)",
        ),
        "… not the first by alphabet": (
            "max(pairs, key=pairs.get)",
            "min(pairs, key=lambda p: (-pairs[p], p))",
        ),
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
        "… is a character too": (
            'waiting.decode(errors="ignore")',
            "waiting.decode(errors='replace').rstrip('\ufffd')",
        ),
    },
}
