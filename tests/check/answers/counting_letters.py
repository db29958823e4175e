"""Answers to the exercises of the chapter on counting letters."""

import math
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise

from tinytorch.stories import StoryGrammar

NUMBERS = {
    "strokes": 10,
    "different letters behind a": 3,
    "chance of b behind a": 0.5,
    "pairs with something behind": 7,
    "of these, certain": 7,
}


def guesses_by_two_sorts(strokes, letter):
    by_alphabet = sorted(strokes)
    return sorted(by_alphabet, key=strokes.get, reverse=True).index(letter) + 1


def guesses_by_counting(strokes, letter):
    mine = strokes[letter]
    before = [c for c, n in strokes.items() if n > mine or (n == mine and c < letter)]
    return len(before) + 1


def guesses_in_a_loop(strokes, letter):
    left, number = dict(strokes), 0
    while True:
        number += 1
        best = min(c for c in left if left[c] == max(left.values()))
        if best == letter:
            return number
        del left[best]


def guesses_by_most_common(strokes, letter):
    order = sorted(strokes.most_common(), key=lambda pair: (-pair[1], pair[0]))
    return [c for c, _ in order].index(letter) + 1


def count(text, length):
    followers = defaultdict(Counter)
    for i in range(length, len(text)):
        followers[text[i - length : i]][text[i]] += 1
    return followers


def mean_surprise(followers, text, length, extra=0.001, letters=38, log=math.log):
    nats = []
    for i in range(length, len(text)):
        strokes = followers.get(text[i - length : i], Counter())
        share = (strokes[text[i]] + extra) / (strokes.total() + extra * letters)
        nats.append(-log(share))
    return sum(nats) / len(nats)


def loss_by_chapter(read, unseen, length):
    return mean_surprise(count(read, length), unseen, length)


def loss_from_pairs(read, unseen, length):
    seen = Counter(read[i : i + length + 1] for i in range(len(read) - length))
    contexts = Counter(read[i : i + length] for i in range(len(read) - length))
    total = 0.0
    for i in range(length, len(unseen)):
        before = unseen[i - length : i]
        total += math.log((contexts[before] + 0.038) / (seen[before + unseen[i]] + 0.001))
    return total / (len(unseen) - length)


def loss_by_multiplying(read, unseen, length):
    followers, logs = count(read, length), []
    for before, letter in ((unseen[i - length : i], unseen[i]) for i in range(length, len(unseen))):
        strokes = followers[before]
        logs.append(math.log2((strokes[letter] + 0.001) / (sum(strokes.values()) + 0.038)))
    return -math.log(2) * sum(logs) / len(logs)


def words_by_chapter(text, length):
    return count(tuple(text.split()), length)


def words_from_lists(text, length):
    words, followers = text.split(), {}
    for *before, word in zip(*(words[i:] for i in range(length + 1)), strict=False):
        behind = followers.setdefault(tuple(before), {})
        behind[word] = behind.get(word, 0) + 1
    return followers


def words_from_runs(text, length):
    words = tuple(text.split())
    runs = Counter(words[i - length : i + 1] for i in range(length, len(words)))
    before = {run[:-1] for run in runs}
    return {key: Counter({r[-1]: n for r, n in runs.items() if r[:-1] == key}) for key in before}


GRAMMAR = StoryGrammar()
STORIES = GRAMMAR.generate(500, seed=1)
ALPHABET = sorted(set(STORIES))


@cache
def table(length):
    return count(STORIES, length)


def believe(votes, most=9):
    def belief(before, letter):
        p = 1 / len(ALPHABET)
        for length in range(min(most, len(before)) + 1):
            strokes = table(length).get(before[len(before) - length :])
            if not strokes:
                break
            n, kept = strokes.total(), votes(strokes)
            p = (strokes[letter] + kept * p) / (n + kept)
        return p

    return belief


def fixed(length, extra=0.001):
    def belief(before, letter):
        strokes = table(length).get(before[len(before) - length :], Counter())
        return (strokes[letter] + extra) / (strokes.total() + extra * len(ALPHABET))

    return belief


def longest_with_strokes(before, letter):
    for length in range(min(9, len(before)), -1, -1):
        if strokes := table(length).get(before[len(before) - length :]):
            break
    return (strokes[letter] + 0.001) / (strokes.total() + 0.001 * len(ALPHABET))


def not_quite_one(before, letter):
    return believe(len)(before, letter) + 0.001


def asks_the_grammar(before, letter):
    try:
        return GRAMMAR.next_character_probs(before).get(letter, 0.0)
    except ValueError:
        return 1 / 38


RIGHT = {
    "count_busiest": [
        lambda followers: min(followers, key=lambda c: (-followers[c].total(), c)),
        lambda followers: sorted(followers, key=lambda c: (-sum(followers[c].values()), c))[0],
        lambda followers: max(sorted(followers), key=lambda c: followers[c].total()),
    ],
    "count_pairs": [
        lambda text: Counter(pairwise(text)),
        lambda text: Counter(zip(*(text[:-1], text[1:]), strict=True)),
        lambda text: dict(Counter(pairwise(text))),
    ],
    "count_predict": [
        NUMBERS,
        NUMBERS | {"chance of b behind a": 2 / 4},
        dict(sorted(NUMBERS.items())),
    ],
    "count_guesses": [
        guesses_by_two_sorts,
        guesses_by_counting,
        guesses_in_a_loop,
        guesses_by_most_common,
    ],
    "count_words": [words_by_chapter, words_from_lists, words_from_runs],
    "count_loss": [loss_by_chapter, loss_from_pairs, loss_by_multiplying],
    "count_belief": [believe(len), believe(len, 8), believe(lambda strokes: 1.2 * len(strokes))],
}

WRONG = {
    "count_busiest": {
        "the most frequent pair": lambda f: min(f, key=lambda c: (-max(f[c].values()), c)),
        "the most different": lambda f: min(f, key=lambda c: (-len(f[c]), c)),
        "the first that came": lambda f: max(f, key=lambda c: f[c].total()),
        "the last of the alphabet": lambda f: max(f, key=lambda c: (f[c].total(), c)),
        "the rarest": lambda f: min(f, key=lambda c: (f[c].total(), c)),
        "the number": lambda f: max(f[c].total() for c in f),
        "a comprehension": lambda f: min((-f[c].total(), c) for c in f)[1],
        "as text": lambda f: max(sorted(f), key=lambda c: str(f[c].total())),
    },
    "count_pairs": {
        "every second pair": lambda text: Counter(zip(text[::2], text[1::2], strict=False)),
        "turned round": lambda text: Counter(zip(text[1:], text, strict=False)),
        "each once": lambda text: dict.fromkeys(pairwise(text), 1),
        "letters": lambda text: Counter(text),
        "in any order": lambda text: Counter(map(frozenset, pairwise(text))),
        "the last is followed by the first": lambda text: Counter(
            zip(text, text[1:] + text[:1], strict=False)
        ),
        "in a loop": lambda text: Counter([(text[i], text[i + 1]) for i in range(len(text) - 1)]),
        "a list": lambda text: list(pairwise(text)),
    },
    "count_predict": {
        "a stroke for every letter": NUMBERS | {"strokes": 11},
        "the last a counts": NUMBERS | {"different letters behind a": 4},
        "of five": NUMBERS | {"chance of b behind a": 2 / 5},
        "of three": NUMBERS | {"chance of b behind a": 1 / 3},
        "all pairs": NUMBERS | {"pairs with something behind": 9, "of these, certain": 9},
        "what comes back is not certain": NUMBERS | {"of these, certain": 4},
    },
    "count_guesses": {
        "from 0": lambda strokes, letter: guesses_by_counting(strokes, letter) - 1,
        "the rarest first": lambda s, c: sorted(s, key=lambda k: (s[k], k)).index(c) + 1,
        "ties as they come": lambda s, c: sorted(s, key=lambda k: -s[k]).index(c) + 1,
        "ties backwards": lambda s, c: sorted(s, key=lambda k: (s[k], k))[::-1].index(c) + 1,
        "by the alphabet": lambda s, c: sorted(s).index(c) + 1,
        "as they stand": lambda s, c: list(s).index(c) + 1,
        "as text": lambda s, c: sorted(s, key=lambda k: str(s[k]), reverse=True).index(c) + 1,
        "the most common first": lambda s, c: [k for k, _ in s.most_common()].index(c) + 1,
        "equals share a place": lambda s, c: 1 + sum(n > s[c] for n in s.values()),
        "the strokes": lambda s, c: s[c],
    },
    "count_words": {
        "letters": count,
        "joined words": lambda t, n: {" ".join(k): v for k, v in words_by_chapter(t, n).items()},
        "a word alone": lambda t, n: {k[-1]: v for k, v in words_by_chapter(t, n).items()},
        "always one": lambda t, n: words_by_chapter(t, 1),
        "each follower once": lambda t, n: {k: [*v] for k, v in words_by_chapter(t, n).items()},
        "how many": lambda t, n: {k: v.total() for k, v in words_by_chapter(t, n).items()},
        "what stands before": lambda t, n: count(tuple(t.split())[::-1], n),
        "no full stops": lambda t, n: words_by_chapter(t.replace(".", ""), n),
        "the last words as well": lambda t, n: (
            words_by_chapter(t, n) | {tuple(t.split()[-n:]): Counter()}
        ),
        "small letters": lambda t, n: words_by_chapter(t.lower(), n),
    },
    "count_loss": {
        "has read the unseen": lambda r, u, n: mean_surprise(count(r + u, n), u, n),
        "tests on what was read": lambda r, u, n: mean_surprise(count(r, n), r, n),
        "tests on both": lambda r, u, n: mean_surprise(count(r, n), r + u, n),
        "the other way round": lambda r, u, n: loss_by_chapter(u, r, n),
        "counts the unseen alone": lambda r, u, n: loss_by_chapter(u, u, n),
        "in bits": lambda r, u, n: mean_surprise(count(r, n), u, n, log=math.log2),
        "always fifteen": lambda r, u, n: loss_by_chapter(r, u, 15),
        "the sum": lambda r, u, n: loss_by_chapter(r, u, n) * (len(u) - n),
    },
    "count_belief": {
        "all alike": lambda before, letter: 1 / 38,
        "seven letters": fixed(7),
        "twelve letters": fixed(12),
        "two letters": fixed(2),
        "the longest that has strokes": longest_with_strokes,
        "half a vote, always": believe(lambda strokes: 0.5),
        "adds up to more": not_quite_one,
        "asks the grammar": asks_the_grammar,
        "certain of everything": lambda before, letter: 1.0,
        "never believes the unseen": fixed(7, extra=0.0),
    },
}

HINTS = {
    "count_busiest": {"the rarest": "Add up", "a comprehension": "zip, Counter and min"},
    "count_pairs": {"in a loop": "zip, Counter and min"},
    "count_guesses": {"ties as they come": "alphabet", "the most common first": "alphabet"},
    "count_words": {"letters": "a list of words", "joined words": "A key is a tuple"},
    "count_loss": {
        "has read the unseen": "counted on the unseen",
        "tests on what was read": "the text that was counted",
    },
    "count_belief": {
        "asks the grammar": "do not ask the grammar",
        "all alike": "Mix all",
        "two letters": "Mix all",
        "the longest that has strokes": "Close.",
        "half a vote, always": "Close.",
    },
}
