"""Answers to the exercises of the chapter on counting letters."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache

from tinytorch_book.stories import StoryGrammar


def guesses_by_counting(strokes, letter):
    mine = strokes[letter]
    before = [c for c, n in strokes.items() if n > mine or (n == mine and c < letter)]
    return len(before) + 1


def count(text, length):
    followers = defaultdict(Counter)
    for i in range(length, len(text)):
        followers[text[i - length : i]][text[i]] += 1
    return followers


def loss_from_pairs(read, unseen, length):
    seen = Counter(read[i : i + length + 1] for i in range(len(read) - length))
    contexts = Counter(read[i : i + length] for i in range(len(read) - length))
    total = 0.0
    for i in range(length, len(unseen)):
        before = unseen[i - length : i]
        total += math.log((contexts[before] + 0.038) / (seen[before + unseen[i]] + 0.001))
    return total / (len(unseen) - length)


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
    "count_chance": [lambda strokes, letter: Fraction(strokes[letter], strokes.total())],
    "count_guesses": [guesses_by_counting],
    "count_words": [words_from_lists],
    "count_loss": [loss_from_pairs],
    "count_belief": [believe(len)],
}

SHARE = "strokes[letter] / strokes.total()"
WRONG = {
    "count_chance": {
        "… This is the number of strokes": (" / strokes.total()", ""),
        "… different letters": ("strokes.total()", "len(strokes)"),
        "… `//` divides": ("/", "//"),
        "… a probability is at most 1": (SHARE, "strokes.total() / strokes[letter]"),
        "… Right, but rounded": (SHARE, "round(strokes[letter] / strokes.total(), 2)"),
        "… A letter that never came": (SHARE, "1 / (strokes.total() / strokes[letter])"),
        "as if every letter came once more": (
            SHARE,
            "(strokes[letter] + 1) / (strokes.total() + 38)",
        ),
        "of the letters that come most": (
            "strokes.total()",
            "sum(n for _, n in strokes.most_common(20))",
        ),
    },
    "count_predict": {
        "a stroke for every letter": {"strokes": 11},
        "the last a counts": {"different letters behind a": 4},
    },
    "count_guesses": {
        "… alphabet": ("(-strokes[c], c)", "-strokes[c]"),
        "… The letter with the most strokes": ("-strokes[c]", "strokes[c]"),
        "… The first guess has": (" + 1", ""),
        "of the first twenty": lambda s, c: min(guesses_by_counting(s, c), 20),
    },
    "count_words": {
        "tidied up": ("text.split()", r"text.replace('\0', '').replace('\u200b', '').split()"),
        "plain dictionaries": lambda t, n: {k: {**v} for k, v in words_from_lists(t, n).items()},
        "… a list of words": ("tuple(text.split())", "text"),
        "… A key is a tuple": lambda t, n: {
            " ".join(k): v for k, v in words_from_lists(t, n).items()
        },
        "… make it a tuple": ("tuple(text.split())", "text.split()"),
    },
    "count_loss": {
        "… counted on the unseen": ("(read, length)", "(read + unseen, length)"),
        "… the text that was counted": ("(followers, unseen)", "(followers, read)"),
        "… are the test": ("(followers, unseen)", "(followers, read + unseen)"),
        "… test on the other": ("(read, length)", "(unseen, length)", "s, unseen)", "s, read)"),
        "… counts of the unseen": ("(read, length)", "(unseen, length)"),
    },
    "count_belief": {
        "… before[-0:] is all": believe(len, last=lambda before, n: before[-n:]),
        "… Nothing was counted behind this text": lambda b, c: (
            table(3).get(b[-3:], {}).get(c, 0) / len(table(3)[b[-3:]])
        ),
        "… do not ask the grammar": asks_the_grammar,
    },
}
