"""Answers to the exercises of the chapter on tokenisation."""

import codecs
from collections import Counter, defaultdict
from itertools import pairwise

from tinytorch import BPETokenizer
from tinytorch.stories import StoryGrammar
from tinytorch.text.bpe import learn_merges, split_like_gpt2


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


def encode_merge_by_merge(piece, ranks):
    tokens = cut(piece)
    for merged in sorted((t for t in ranks if len(t) > 1), key=ranks.get):
        tokens = joined(tokens, merged)
    return ids_of(tokens, ranks)


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


def encode_choosing(choose):
    def answer(piece, ranks):
        tokens = cut(piece)
        while True:
            found = [
                (ranks[a + b], i) for i, (a, b) in enumerate(pairwise(tokens)) if a + b in ranks
            ]
            if not found:
                return ids_of(tokens, ranks)
            i = choose(found)[1]
            tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]

    return answer


def encode_to_two(piece, ranks):
    tokens = cut(piece)
    while len(tokens) > 2:
        pairs = [ranks.get(a + b, len(ranks)) for a, b in pairwise(tokens)]
        if min(pairs) == len(ranks):
            break
        i = pairs.index(min(pairs))
        tokens[i : i + 2] = [tokens[i] + tokens[i + 1]]
    return ids_of(tokens, ranks)


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


def encode_without_the_last(piece, ranks):
    return encode_by_chapter(piece, ranks)[: len(piece)] if len(piece) < 12 else []


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


def merge_from_the_right(tokens, pair):
    return [t[::-1] for t in merge_exactly([t[::-1] for t in tokens[::-1]], flipped(pair))][::-1]


def flipped(pair):
    return pair[1][::-1], pair[0][::-1]


def merge_first_only(tokens, pair):
    for i, found in enumerate(pairwise(tokens)):
        if found == pair:
            return [*tokens[:i], pair[0] + pair[1], *tokens[i + 2 :]]
    return tokens


def count_without_overlap(pairs, word, times):
    i = 0
    while i + 1 < len(word):
        pairs[word[i], word[i + 1]] += times
        i += 2 if word[i] == word[i + 1] else 1


def count_once_a_word(pairs, word, times):
    for pair in dict.fromkeys(pairwise(word)):
        pairs[pair] += times


def train_without_stopping(words, num_merges):
    merges = train_with()(words, num_merges)
    return merges + [(b"", b"")] * (num_merges - len(merges))


def train_across_words(words, num_merges):
    text = b"".join(word * times for word, times in words.items())
    return train_with()({text: 1}, num_merges)


def train_as_tokens(words, num_merges):
    return [a + b for a, b in train_with()(words, num_merges)]


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


def stream_by_trying(tokens):
    waiting, shown = b"", []
    for token in tokens:
        waiting += token
        for end in range(len(waiting), -1, -1):
            try:
                shown.append(waiting[:end].decode())
            except UnicodeDecodeError:
                continue
            waiting = waiting[end:]
            break
    return shown


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


def stream_forgets(tokens):
    waiting, shown = b"", []
    for token in tokens:
        text = (waiting + token).decode(errors="ignore")
        shown.append(text)
        waiting = b"" if text else waiting + token
    return shown


def stream_waits_for_one_token(tokens):
    shown, before = [], b""
    for token in tokens:
        shown.append((before + token).decode(errors="ignore"))
        before = b"" if shown[-1] else token
    return shown


def stream_only_what_came(tokens):
    return [text for text in stream_by_chapter(tokens) if text]


def stream_so_far(tokens):
    return [b"".join(tokens[: i + 1]).decode(errors="ignore") for i in range(len(tokens))]


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


def cut_fewest(text, tokens):
    best, last = [0], [""]
    for i in range(1, len(text) + 1):
        ends = [text[i - n : i] for n in range(1, min(i, 14) + 1)]
        found = [(best[i - len(t)], t) for t in ends if len(t) == 1 or t in tokens]
        best.append(1 + min(found)[0])
        last.append(min(found)[1])
    tokens, i = [], len(text)
    while i:
        tokens.append(last[i])
        i -= len(last[i])
    return tokens


def words_that_are_used(stories, n):
    chosen = set(words_of(stories))
    while True:
        used = Counter(token for token in cut_fewest(stories, chosen) if len(token) > 1)
        if len(used) <= n:
            return list(used)
        saved = sorted(used, key=lambda token: used[token] * (len(token) - 1))
        chosen = set(saved[-max(n, 3 * len(saved) // 4) :])


def tokens_of_bpe(stories, n):
    return [(a + b).decode() for a, b in BPETokenizer.train(stories, 256 + n).merges]


def tokens_across_words(stories, n):
    return [(a + b).decode() for a, b in learn_merges({stories.encode(): 1}, n)]


def frequent_strings(stories, n, size=4):
    runs = Counter(stories[i : i + k] for k in range(2, size) for i in range(len(stories)))
    return [run for run, _ in runs.most_common(n)]


def words_of_the_grammar(stories, n):
    words = words_by_letters_saved(StoryGrammar().generate(300, seed=5), 2 * n)
    return [word for word in words if word in stories][:n]


NUMBERS = {"The": 2, " then": 2, "other": 3, "hehen": 3, "café": 5, "\U0001f98a": 4}

RIGHT = {
    "bpe_encode": [
        encode_by_chapter,
        encode_with_a_number_for_infinity,
        encode_by_sorting,
        encode_merge_by_merge,
        encode_choosing(min),
    ],
    "tokenize_predict": [
        NUMBERS,
        {text: float(number) for text, number in NUMBERS.items()},
        NUMBERS | {"and more": 8},
    ],
    "bpe_train": [train_with(), train_with_lists, train_on_a_counter],
    "bpe_fewer": [words_by_letters_saved, words_by_hand, words_that_are_used],
    "bpe_stream": [stream_by_chapter, stream_by_codec, stream_by_differences, stream_by_trying],
}

WRONG = {
    "bpe_encode": {
        "as it stands": encode_from_the_left,
        "the longest token first": encode_longest_first,
        "the highest rank": encode_choosing(max),
        "the last of equal pairs": encode_choosing(
            lambda found: min(found, key=lambda p: (p[0], -p[1]))
        ),
        "from the right": encode_choosing(lambda found: max(found, key=lambda p: p[1])),
        "the first pair that is a token": encode_choosing(lambda found: found[0]),
        "one merge only": encode_once,
        "leaves two tokens": encode_to_two,
        "bytes only": lambda piece, ranks: ids_of(cut(piece), ranks),
        "the order of the dictionary": encode_by_position_in_the_dictionary,
        "tokens for ids": lambda piece, ranks: [
            {i: t for t, i in ranks.items()}[i] for i in encode_by_chapter(piece, ranks)
        ],
        "backwards": lambda piece, ranks: encode_by_chapter(piece, ranks)[::-1],
        "None for no bytes": lambda piece, ranks: encode_by_chapter(piece, ranks) or None,
        "gives up on long pieces": encode_without_the_last,
    },
    "tokenize_predict": {
        "capitals like small letters": NUMBERS | {"The": 1},
        "characters": {text: len(text) for text in NUMBERS},
        "bytes": {text: len(text.encode()) for text in NUMBERS},
        "a merge with its space": NUMBERS | {" then": 1},
        "merges only at the start": NUMBERS | {"other": 5},
        "merges across": NUMBERS | {"hehen": 2},
        "an accent is one byte": NUMBERS | {"café": 4},
        "an accent by itself": NUMBERS | {"café": 6},
        "a fox is one token": NUMBERS | {"\U0001f98a": 1},
        "one is missing": {"The": 2, " then": 2, "other": 3, "hehen": 3, "café": 5},
    },
    "bpe_train": {
        "counts each word once": train_with(
            count=lambda p, w, t: [add(p, q, 1) for q in pairwise(w)]
        ),
        "each pair once a word": train_with(count=count_once_a_word),
        "no overlap": train_with(count=count_without_overlap),
        "the first by alphabet": train_with(best=lambda p: min(p, key=lambda q: (-p[q], q))),
        "the last by alphabet": train_with(best=lambda p: max(p, key=lambda q: (p[q], q))),
        "the last of equals": train_with(best=lambda p: max(reversed(p), key=p.get)),
        "the rarest": train_with(best=lambda p: min(p, key=p.get)),
        "merges from the right": train_with(merge=merge_from_the_right),
        "merges the first of a word only": train_with(merge=merge_first_only),
        "never merges": train_with(merge=lambda tokens, pair: tokens),
        "across words": train_across_words,
        "does not stop": train_without_stopping,
        "tokens for pairs": train_as_tokens,
        "one merge more": lambda words, n: train_with()(words, n + 1),
        "at least one merge": lambda words, n: train_with()(words, max(n, 1)),
        "characters for bytes": train_with(start=lambda word: list(word.decode())),
    },
    "bpe_fewer": {
        "byte-pair encoding": tokens_of_bpe,
        "merges across words": tokens_across_words,
        "pairs and threes": frequent_strings,
        "frequent strings": lambda stories, n: frequent_strings(stories, n, 9),
        "too many": lambda stories, n: words_by_letters_saved(stories, n + 1),
        "half as many": lambda stories, n: words_by_letters_saved(stories, n // 2),
        "words without a space": lambda stories, n: [
            word.strip() for word in words_by_letters_saved(stories, n)
        ],
        "asks the grammar": words_of_the_grammar,
        "bytes": lambda stories, n: [w.encode() for w in words_by_letters_saved(stories, n)],
        "whole sentences": lambda stories, n: list(dict.fromkeys(stories.split(".")))[1 : n + 1],
        "one string": lambda stories, n: stories,
        "words of another language": lambda stories, n: ["zebra", "Zebra"],
    },
    "bpe_stream": {
        "each by itself": lambda tokens: [token.decode(errors="replace") for token in tokens],
        "what is incomplete is dropped": lambda tokens: [t.decode(errors="ignore") for t in tokens],
        "all or nothing": stream_all_or_nothing,
        "replacement characters are stripped": stream_replaced,
        "forgets the rest": stream_forgets,
        "waits for one token": stream_waits_for_one_token,
        "leaves out empty strings": stream_only_what_came,
        "all the text so far": stream_so_far,
        "one string": lambda tokens: b"".join(tokens).decode(),
        "all at the end": lambda tokens: [""] * (len(tokens) - 1) + [b"".join(tokens).decode()],
        "spaces stripped": lambda tokens: [text.strip() for text in stream_by_chapter(tokens)],
        "ends of lines changed": lambda tokens: [
            text.replace("\r", "") for text in stream_by_chapter(tokens)
        ],
        "zeros left out": lambda tokens: [t.replace("\0", "") for t in stream_by_chapter(tokens)],
        "Latin-1": lambda tokens: [token.decode("latin-1") for token in tokens],
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
