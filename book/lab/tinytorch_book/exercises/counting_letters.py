"""Checks for the exercises of the chapter on counting letters."""

import math
from collections import Counter, defaultdict
from functools import partial
from typing import Any

from tinytorch_book.exercises.cases import Cases, NotYet, case, cases, predictions
from tinytorch_book.exercises.drawn_numbers import seed_of
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import package_only
from tinytorch_book.exercises.values import STRANGE, show
from tinytorch_book.stories import StoryGrammar

__all__ = ["count_belief", "count_chance", "count_guesses", "count_loss", "count_predict",
           "count_words"]  # fmt: skip

# References --------------------------------------------------------------------------------

ALPHABET = 38  # different letters in the stories
EXTRA = 0.001  # of a stroke for every letter, as in the chapter


def _followers(text: str | tuple[str, ...], length: int) -> dict[Any, Counter[str]]:
    followers: dict[Any, Counter[str]] = defaultdict(Counter)
    for i in range(length, len(text)):
        followers[text[i - length : i]][text[i]] += 1
    return followers


def _loss(read: str, unseen: str, length: int) -> float:
    """The mean surprise on the unseen text, having counted the one that was read."""
    followers, nats = _followers(read, length), 0.0
    for i in range(length, len(unseen)):
        strokes = followers[unseen[i - length : i]]
        nats -= math.log((strokes[unseen[i]] + EXTRA) / (strokes.total() + EXTRA * ALPHABET))
    return nats / (len(unseen) - length)


def _kind(counted: Any) -> str:
    if not isinstance(counted, Counter):
        raise NotYet(f"{show(counted)}, which is not a Counter")
    return "a Counter"


def _letters() -> tuple[Counter[str], list[str]]:
    """The letters of some stories, more of them than in an example; every ninth by frequency."""
    letters = Counter(StoryGrammar().generate(5, seed=seed_of(8)))
    return letters, [letter for letter, _ in letters.most_common()[::9]]


def _guesses(strokes: dict[str, int], letter: str) -> int:
    return sorted(strokes, key=lambda c: (-strokes[c], c)).index(letter) + 1


# The exercises -----------------------------------------------------------------------------


@exercise(points=1, reference=lambda strokes, letter: strokes[letter] / strokes.total())
def count_chance(answer: Any) -> Cases:
    """`answer(strokes, letter)` returns the share of the strokes that belongs to a letter."""
    letters, every_ninth = _letters()
    share = "Of all the strokes, how many are for this letter? Divide."
    never = "A letter that never came has no strokes: its probability is 0."
    total = "Divide by the number of strokes, not by that of the different letters."
    mistakes = [
        (lambda s, c: s[c], "This is the number of strokes: divide it by that of all strokes."),
        (lambda s, c: s[c] / len(s), total),
        (lambda s, c: s[c] // s.total(), "`//` divides whole numbers: use `/`."),
        (lambda s, c: s.total() / s[c], "The other way round: a probability is at most 1."),
        (
            lambda s, c: round(s[c] / s.total(), 2),
            "Right, but rounded: return the quotient as it is.",
        ),
        (ZeroDivisionError, never),
        (KeyError, never),
    ]
    yield from cases(answer, {
        "gives the h two of six": (share, Counter({"h": 2, "a": 1, "i": 1, " ": 2}), "h"),
        "gives the only letter everything": (share, Counter({"e": 7}), "e"),
        "gives nothing to what never came": (never, Counter({"e": 3, "a": 1}), "z"),
        "gives a rare letter little": (share, Counter({"e": 999, "\n": 1}), "\n"),
        **{f"gives {letter!r} its share of some stories": (share, letters, letter)
           for letter in ("z", *every_ninth)},
    }, mistakes)  # fmt: skip


@exercise(points=1)
def count_predict(answer: Any) -> Cases:
    """Check what was predicted about counting the letters of "abracadabra"."""
    yield from predictions(answer, {
        "strokes": (10, "Every letter but the last has one behind it."),
        "different letters behind a": (3, "The last a has nothing behind it."),
        "probability of b behind a": (0.5, "Of the strokes for a, how many are for b?"),
        "pairs with something behind":
            (7, "Write them down from left to right; a pair that comes back is the same one."),
        "of these, certain": (7, "For each pair look at all that stands behind it."),
    })  # fmt: skip


def _words(text: str, length: int) -> dict[Any, Counter[str]]:
    return _followers(tuple(text.split()), length)


@exercise(points=2, reference=_words)
def count_words(answer: Any) -> Cases:
    """`answer(text, length)` maps each run of `length` words to a count of the words behind it."""
    key = "A key is a tuple of `length` words, even of a single one: ('the',)."
    count = "For each run of `length` words: how often does which word come right behind it?"
    same = "`text.split()` cuts at white space alone, and changes no word."
    none = "A run is a key only if a word follows it; the last one has none behind it."
    white = "`text.split()` takes any white space, and makes no empty words."
    known = [
        (_followers, "These are letters. `text.split()` is a list of words."),
        (lambda text, n: {" ".join(k): v for k, v in _words(text, n).items()}, key),
        (TypeError, "A list cannot be a key of a dictionary: make it a tuple."),
    ]
    yield from cases(answer, {
        "counts what follows a word": (count, "the cat saw the dog", 1),
        "counts what follows two": (count, "the cat saw the cat saw a dog", 2),
        "keeps a full stop with its word": (same, "the cat's café sat.\nThe cat, ran.", 1),
        "changes no word": (same, STRANGE, 1),
        "finds nothing behind the last words": (none, "the cat sat", 3),
        "finds nothing in nothing": (none, "", 1),
        "takes any white space between words": (white, "\n a  b\n\na\tb a\n", 1),
        "counts some stories": (count, StoryGrammar().generate(5, seed=seed_of(8)), 4),
    }, known)  # fmt: skip
    counter = "Count with Counter(), which knows its most_common: a dictionary alone does not."
    yield case("counts in a Counter", answer, "the cat saw the dog", 1, expected={"a Counter"},
               run=lambda f, *given: set(map(_kind, f(*given).values())), hint=counter)  # fmt: skip


@exercise(points=2, reference=_guesses)
def count_guesses(answer: Any) -> Cases:
    """`answer(strokes, letter)` returns at which guess a letter is found, the likeliest first."""
    letters, every_ninth = _letters()
    first = "The letter with the most strokes is the first guess, and its number is 1."
    order = "Guess by the strokes alone, wherever a letter stands in the dictionary."
    tie = "Of letters with equally many strokes the first of the alphabet is guessed first."
    numbers = "3 is less than 20: compare the strokes as numbers."
    from_0 = (lambda s, c: _guesses(s, c) - 1, "The first guess has the number 1.")
    by_strokes = (lambda s, c: sorted(s, key=lambda k: -s[k]).index(c) + 1, tie)
    upwards = (lambda s, c: sorted(s, key=lambda k: (s[k], k)).index(c) + 1, first)
    yield from cases(answer, {
        "finds the likeliest at the first guess": (first, Counter({"e": 5, "a": 2}), "e"),
        "finds the rarest at the last": (first, Counter({"a": 6, "e": 5, "i": 2}), "i"),
        "asks the strokes, not the order": (order, Counter({"u": 1, "a": 2, "e": 7, "o": 3}), "a"),
        "compares numbers": (numbers, Counter({"x": 3, "y": 20, "z": 100}), "x"),
        "settles a tie": (tie, Counter({"z": 2, "q": 2, " ": 2, "b": 2}), "q"),
        "settles a tie below the first": (tie, Counter({"o": 1, "e": 9, "i": 1, "a": 1}), "o"),
        "finds the only one": (first, Counter({"u": 4}), "u"),
        **{f"finds {letter!r} among all letters": (order, letters, letter)
           for letter in every_ninth},
    }, [by_strokes, upwards, from_0])  # fmt: skip


@exercise(points=2, reference=_loss)
def count_loss(answer: Any) -> Cases:
    """`answer(read, unseen, length)` counts one text and returns the loss on the other, in nats."""
    grammar = StoryGrammar()
    read, unseen = (grammar.generate(n, seed=seed_of(n)) for n in (12, 4))
    cheats = [
        (lambda r, u, n: _loss(r + u, u, n),
         "The followers were counted on the unseen stories as well: whoever has read a story "
         "knows how it goes on."),
        (lambda r, u, n: _loss(r, r, n), "This is the surprise on the text that was counted."),
        (lambda r, u, n: _loss(r, r + u, n), "Only the unseen stories are the test."),
        (lambda r, u, n: _loss(u, r, n), "Count the one that is read, test on the other."),
        (lambda r, u, n: _loss(u, u, n), "These are counts of the unseen stories."),
    ]  # fmt: skip
    look = "Which text is counted, and which one is tested?"
    yield from cases(answer, {
        "is honest with one letter": (look, read, unseen, 1),
        "is honest with five": (look, read, unseen, 5),
        "is honest with fifteen": (look, read, unseen, 15),
        "takes the texts in their order": (look, unseen, read, 3),
    }, cheats, rtol=1e-6)  # fmt: skip


AIM = 0.28  # nats: no single length comes near it on new stories, several ways to mix them do
_COUNT = "Count the stories that you have; do not ask the grammar."


_CLOSE = "Close. Mix the lengths; a shorter one counts more where many different letters came."
_MIX = (
    "Mix all lengths: what a shorter one says is the forecast before a longer one has spoken, "
    "and a beginning that was seen once is trusted little."
)
_ALIKE = f"{_MIX} With length 0, before[-0:] is all of `before`: cut at len(before) - length."


def _sum(forecast: Any, alphabet: str, before: str) -> float:
    shares = [float(forecast(before, letter)) for letter in alphabet]
    if min(shares) < 0:
        raise NotYet(f"a probability of {min(shares):.3g}", "A probability is at least 0.")
    return sum(shares)


def _reaches(forecast: Any, stories: str, start: int, aim: float) -> str:
    """Say that the mean surprise from `start` on is as low as it should be, or raise what it is."""
    nats = 0.0
    for i in range(start, len(stories)):
        before, letter = stories[max(0, i - 50) : i], stories[i]
        if not 0 < (p := float(forecast(before, letter))) <= 1:
            raise NotYet(f"a probability of {p:.3g} for {letter!r} after {before[-12:]!r}")
        nats -= math.log(p) / (len(stories) - start)
    if nats > aim:
        hint = _CLOSE if nats < 0.31 else _ALIKE if abs(nats - math.log(38)) < 1e-9 else _MIX
        raise NotYet(f"{nats:.3f} nats a letter", hint)
    return "reached"


@exercise(points=4, show_expected=False)
def count_belief(answer: Any) -> Cases:
    """`answer(before, letter)` is a probability whose mean surprise on new stories is low."""
    grammar = StoryGrammar()
    stories, alphabet = grammar.generate(40, seed=seed_of(7)), grammar.alphabet
    one = "Add up the probabilities of all 38 letters."
    behind = "Nothing was counted behind this text: keep what the shorter lengths have said."
    known = [(ArithmeticError, behind), (KeyError, behind)]
    for before in ("", stories[:1], stories[:40], stories[:133], stories[:500], "Zz9"):
        yield case(f"adds up to 1 after {before[-12:]!r}", answer, alphabet, before, run=_sum,
                   expected=1.0, rules=[package_only(_COUNT)], mistakes=known,
                   hint=one)  # fmt: skip
    aim = AIM if seed_of(7) == 7 else AIM + 0.05  # six deviations: some are harder to foresee
    reaches = partial(_reaches, stories=stories, start=20, aim=aim)
    yield case(f"is at most {AIM} nats on new stories", answer, run=reaches, expected="reached",
               hint=_MIX, mistakes=known)  # fmt: skip
