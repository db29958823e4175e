"""Answers to the exercises of the chapter on tokenisation."""

import codecs
from collections import Counter, defaultdict
from itertools import pairwise

from tinytorch import BPETokenizer
from tinytorch.stories import StoryGrammar
from tinytorch.text.bpe import split_like_gpt2


def cut(piece):
    return [bytes([byte]) for byte in piece]


def ids_of(tokens, ranks):
    return [ranks[token] for token in tokens]


def encode_by_chapter(piece, ranks):
    tokens = cut(piece)
    while len(tokens) > 1:
        pairs = [a + b for a, b in pairwise(tokens)]
        best = min(pairs, key=lambda pair: ranks.get(pair, float("inf")))
        if best not in ranks:
            break
        i = pairs.index(best)
        tokens[i : i + 2] = [best]
    return ids_of(tokens, ranks)


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
    while True:
        found = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(tokens)) if a + b in ranks]
        if not found:
            return ids_of(tokens, ranks)
        i = min(found)[1]
        tokens = [*tokens[:i], tokens[i] + tokens[i + 1], *tokens[i + 2 :]]


def joined(tokens, merged):
    out, i = [], 0
    while i < len(tokens):
        here = i + 1 < len(tokens) and tokens[i] + tokens[i + 1] == merged
        out.append(merged if here else tokens[i])
        i += 2 if here else 1
    return out


def encode_from_the_left(piece, ranks):
    tokens, i = cut(piece), 0
    while i < len(tokens) - 1:
        if tokens[i] + tokens[i + 1] in ranks:
            tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
        else:
            i += 1
    return ids_of(tokens, ranks)


def encode_longest_first(piece, ranks):
    out = []
    while piece:
        n = max(n for n in range(1, len(piece) + 1) if piece[:n] in ranks)
        out.append(ranks[piece[:n]])
        piece = piece[n:]
    return out


def encode_once(piece, ranks):
    tokens = cut(piece)
    found = sorted((ranks[a + b], i) for i, (a, b) in enumerate(pairwise(tokens)) if a + b in ranks)
    if found:
        i = found[0][1]
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return ids_of(tokens, ranks)


def encode_by_position_in_the_dictionary(piece, ranks):
    order = {token: i for i, token in enumerate(ranks)}
    return [ranks[list(ranks)[i]] for i in encode_by_chapter(piece, order)]


# ---------------------------------------------------------------------------------------------


def train_with(count=None, best=None, merge=joined, start=cut):
    """Training with other ways to count, to choose and to merge."""
    count = count or (lambda pairs, word, times: [add(pairs, p, times) for p in pairwise(word)])
    best = best or (lambda pairs: max(pairs, key=pairs.get))

    def answer(words, num_merges):
        cuts = [(start(word), times) for word, times in words.items()]
        merges = []
        while len(merges) < num_merges:
            pairs = Counter()
            for word, times in cuts:
                count(pairs, word, times)
            if not pairs:
                break
            pair = best(pairs)
            merges.append(pair)
            cuts = [(merge_pair(word, pair, merge), times) for word, times in cuts]
        return merges

    return answer


def add(pairs, pair, times):
    pairs[pair] += times


def merge_pair(tokens, pair, merge):
    return merge_exactly(tokens, pair) if merge is joined else merge(tokens, pair)


def merge_exactly(tokens, pair):
    out, i = [], 0
    while i < len(tokens):
        here = tuple(tokens[i : i + 2]) == pair
        out.append(pair[0] + pair[1] if here else tokens[i])
        i += 2 if here else 1
    return out


def count_without_overlap(pairs, word, times):
    i = 0
    while i + 1 < len(word):
        pairs[word[i], word[i + 1]] += times
        i += 2 if word[i] == word[i + 1] else 1


def train_across_words(words, num_merges):
    text = b"".join(word * times for word, times in words.items())
    return train_with()({text: 1}, num_merges)


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


def train_on_a_counter(words, num_merges):
    merges, cuts = [], [[cut(word), times] for word, times in words.items()]
    for _ in range(num_merges):
        pairs = Counter()
        for word, times in cuts:
            pairs.update({pair: 0 for pair in pairwise(word)})
            for pair in pairwise(word):
                pairs[pair] += times
        if not pairs:
            return merges
        pair = pairs.most_common(1)[0][0]
        merges.append(pair)
        for item in cuts:
            item[0] = merge_exactly(item[0], pair)
    return merges


# ---------------------------------------------------------------------------------------------


def stream_by_chapter(tokens):
    waiting, shown = b"", []
    for token in tokens:
        waiting += token
        text = waiting.decode(errors="ignore")
        shown.append(text)
        waiting = waiting[len(text.encode()) :]
    return shown


def stream_by_codec(tokens):
    decoder = codecs.getincrementaldecoder("utf-8")()
    return [decoder.decode(token) for token in tokens]


def stream_by_differences(tokens):
    texts = [""]
    for i in range(len(tokens)):
        texts.append(b"".join(tokens[: i + 1]).decode(errors="ignore"))
    return [b[len(a) :] for a, b in pairwise(texts)]


def stream_all_or_nothing(tokens):
    waiting, shown = b"", []
    for token in tokens:
        waiting += token
        try:
            shown.append(waiting.decode())
            waiting = b""
        except UnicodeDecodeError:
            shown.append("")
    return shown


def stream_replaced(tokens):
    waiting, shown = b"", []
    for token in tokens:
        waiting += token
        text = waiting.decode(errors="replace").rstrip("\ufffd")
        shown.append(text)
        waiting = waiting[len(text.encode()) :]
    return shown


# ---------------------------------------------------------------------------------------------


def words_of(stories):
    return Counter(word for word in split_like_gpt2(stories) if len(word) > 1)


def words_by_letters_saved(stories, n):
    times = words_of(stories)
    return sorted(times, key=lambda word: (1 - len(word)) * times[word])[:n]


def words_by_hand(stories, n):
    times = Counter(" " + word.strip('.,?!"') for word in stories.split())
    known = [word for word in times if len(word) > 1 and word in stories]
    return set(sorted(known, key=lambda word: times[word] * (len(word) - 1))[-n:])


def tokens_of_bpe(stories, n):
    return [(a + b).decode() for a, b in BPETokenizer.train(stories, 256 + n).merges]


def words_of_the_grammar(stories, n):
    return words_by_letters_saved(stories, n) if StoryGrammar().generate(1, seed=5) else []


KNOWN = words_by_letters_saved(StoryGrammar().generate(300, seed=5), 300)
NUMBERS = {"The": 2, " then": 2, "other": 3, "hehen": 3, "café": 5, "\U0001f98a": 4}

RIGHT = {
    "bpe_encode": [encode_with_a_number_for_infinity, encode_by_sorting],
    "tokenize_predict": [NUMBERS, {text: float(number) for text, number in NUMBERS.items()}],
    "bpe_train": [train_with_lists, train_on_a_counter],
    "bpe_fewer": [words_by_letters_saved, words_by_hand],
    "bpe_stream": [stream_by_codec, stream_by_differences],
}

WRONG = {
    "bpe_encode": {
        "as it stands": encode_from_the_left,
        "the longest token first": encode_longest_first,
        "one merge only": encode_once,
        "the order of the dictionary": encode_by_position_in_the_dictionary,
    },
    "tokenize_predict": {
        "characters": {text: len(text) for text in NUMBERS},
        "an accent is one byte": NUMBERS | {"café": 4},
        "an accent by itself": NUMBERS | {"café": 6},
    },
    "bpe_train": {
        "counts each word once": train_with(
            count=lambda p, w, t: [add(p, q, 1) for q in pairwise(w)]
        ),
        "no overlap": train_with(count=count_without_overlap),
        "the first by alphabet": train_with(best=lambda p: min(p, key=lambda q: (-p[q], q))),
        "across words": train_across_words,
    },
    "bpe_fewer": {
        "byte-pair encoding": tokens_of_bpe,
        "too many": lambda stories, n: words_by_letters_saved(stories, n + 1),
        "asks the grammar": words_of_the_grammar,
        "known by heart": lambda stories, n: [word for word in KNOWN if word in stories][:n],
    },
    "bpe_stream": {
        "each by itself": lambda tokens: [token.decode(errors="replace") for token in tokens],
        "a mark dropped": lambda tokens: [
            text.replace("\ufeff", "") for text in stream_by_chapter(tokens)
        ],
        "all or nothing": stream_all_or_nothing,
        "replacement characters are stripped": stream_replaced,
        "spaces stripped": lambda tokens: [text.strip() for text in stream_by_chapter(tokens)],
    },
}

HINTS = {
    "bpe_encode": {
        "as it stands": "lowest rank",
        "one merge only": "After every merge",
        "the order of the dictionary": "wherever it stands",
    },
    "tokenize_predict": {
        "an accent is one byte": "more than one byte",
        "an accent by itself": "Here é is one",
    },
    "bpe_train": {
        "counts each word once": "counts three times",
        "across words": "do not cross",
        "the first by alphabet": "not the first by alphabet",
        "no overlap": "twice",
    },
    "bpe_fewer": {
        "byte-pair encoding": "only steps",
        "asks the grammar": "given alone",
    },
    "bpe_stream": {
        "each by itself": "hold it back",
        "all or nothing": "Show what is complete",
        "replacement characters are stripped": "is a character too",
    },
}
