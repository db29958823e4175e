"""Answers to the exercises of the chapter on counting letters."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise

from tinytorch_book.stories import StoryGrammar

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


def count(text, length):
    followers = defaultdict(Counter)
    for i in range(length, len(text)):
        followers[text[i - length : i]][text[i]] += 1
    return followers


def mean_surprise(followers, text, length):
    nats = []
    for i in range(length, len(text)):
        strokes = followers.get(text[i - length : i], Counter())
        nats.append(-math.log((strokes[text[i]] + 0.001) / (strokes.total() + 0.038)))
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


def words_by_chapter(text, length):
    return count(tuple(text.split()), length)


def words_from_lists(text, length):
    words, followers = text.split(), {}
    for *before, word in zip(*(words[i:] for i in range(length + 1)), strict=False):
        followers.setdefault(tuple(before), Counter())[word] += 1
    return followers


GRAMMAR = StoryGrammar()
STORIES = GRAMMAR.generate(500, seed=1)
ALPHABET = sorted(set(STORIES))


@cache
def table(length):
    return count(STORIES, length)


def believe(votes, most=9, last=lambda before, n: before[len(before) - n :]):
    def belief(before, letter):
        p = 1 / len(ALPHABET)
        for length in range(min(most, len(before)) + 1):
            strokes = table(length).get(last(before, length))
            if not strokes:
                break
            n, kept = strokes.total(), votes(strokes)
            p = (strokes[letter] + kept * p) / (n + kept)
        return p

    return belief


def asks_the_grammar(before, letter):
    try:
        return GRAMMAR.next_character_probs(before).get(letter, 0.0)
    except ValueError:
        return 1 / 38


RIGHT = {
    "count_chance": [
        lambda strokes, letter: strokes[letter] / sum(strokes.values()),
        lambda strokes, letter: Fraction(strokes[letter], strokes.total()),
    ],
    "count_busiest": [
        lambda followers: min(followers, key=lambda c: (-followers[c].total(), c)),
        lambda followers: sorted(followers, key=lambda c: (-sum(followers[c].values()), c))[0],
    ],
    "count_pairs": [
        lambda text: Counter(pairwise(text)),
        lambda text: Counter(zip(*(text[:-1], text[1:]), strict=True)),
    ],
    "count_predict": [NUMBERS, NUMBERS | {"chance of b behind a": Fraction(1, 2)}],
    "count_guesses": [guesses_by_two_sorts, guesses_by_counting],
    "count_words": [words_by_chapter, words_from_lists],
    "count_loss": [loss_by_chapter, loss_from_pairs],
    "count_belief": [believe(len), believe(len, 8)],
}

WRONG = {
    "count_chance": {
        "… the number of strokes": lambda strokes, letter: strokes[letter],
        "… different letters": lambda strokes, letter: strokes[letter] / len(strokes),
        "as if every letter came once more": (
            lambda strokes, letter: (strokes[letter] + 1) / (strokes.total() + 38)
        ),
        "of the letters that come most": (
            lambda strokes, letter: strokes[letter] / sum(n for _, n in strokes.most_common(20))
        ),
        "rounded to percent": lambda strokes, letter: round(strokes[letter] / strokes.total(), 2),
    },
    "count_busiest": {
        "… zip, Counter and min": lambda f: min((-f[c].total(), c) for c in f)[1],
        "… Add up all the strokes": lambda f: max(
            sorted(f), key=lambda c: sum(sorted(f[c].values())[-20:])
        ),
    },
    "count_pairs": {
        "a plain dictionary": (lambda text: dict(Counter(pairwise(text)))),
        "without the ends": (lambda text: Counter(pairwise(text.strip()))),
        "every second pair": lambda text: Counter(zip(text[::2], text[1::2], strict=False)),
        "… zip, Counter and min": lambda text: Counter(
            [(text[i], text[i + 1]) for i in range(len(text) - 1)]
        ),
    },
    "count_predict": {
        "a stroke for every letter": NUMBERS | {"strokes": 11},
        "the last a counts": NUMBERS | {"different letters behind a": 4},
    },
    "count_guesses": {
        "… on a copy": lambda s, c: (guesses_by_two_sorts(s, c), s.clear())[0],
        "… alphabet": lambda s, c: sorted(s, key=lambda k: -s[k]).index(c) + 1,
        "of the first twenty": lambda s, c: min(guesses_by_counting(s, c), 20),
    },
    "count_words": {
        "tidied up": (lambda t, n: words_by_chapter(t.replace("\0", "").replace("\u200b", ""), n)),
        "plain dictionaries": (lambda t, n: {k: {**v} for k, v in words_by_chapter(t, n).items()}),
        "… a list of words": count,
        "… A key is a tuple": lambda t, n: {
            " ".join(k): v for k, v in words_by_chapter(t, n).items()
        },
        "… make it a tuple": lambda text, length: count(text.split(), length),
    },
    "count_loss": {
        "… counted on the unseen": lambda r, u, n: mean_surprise(count(r + u, n), u, n),
        "… the text that was counted": lambda r, u, n: mean_surprise(count(r, n), r, n),
    },
    "count_belief": {
        "… before[-0:] is all": believe(len, last=lambda before, n: before[-n:]),
        "… Nothing was counted behind this text": lambda b, c: (
            table(3).get(b[-3:], {}).get(c, 0) / len(table(3)[b[-3:]])
        ),
        "… do not ask the grammar": asks_the_grammar,
    },
}
