"""The floor, exactly: the entropy of a grammar's stories, summed over them all, not estimated.

A story has exactly one derivation, so its surprise (the negative log-likelihood) is the sum of the
surprises of its choices. The expected sum is, over all states in which a choice is made::

    (how often a story is expected to be in this state) * (the entropy of the choice)

`expected_visits` computes the first factor: it follows all stories at once, state by state. Few
states need to be distinguished because the rules do not look at the cast: the next sentence does
not depend on which animal the story is about.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import pairwise

from tinytorch_book.stories.rules import Chosen, Rules, State

__all__ = ["StoryEntropy", "expected_pairs", "expected_visits", "story_entropy"]

Split = Callable[[str], list[str]]  # characters to tokens: `list`, or `StoryGrammar.words`
Visits = dict[State, dict[str, float]]  # how often in a state, after each possible last token
Pairs = dict[tuple[str, str], float]  # the expected number of each pair of neighbours in a story


@dataclass(frozen=True)
class StoryEntropy:
    """The exact entropy of a grammar's endless text, and the lowest losses of simpler models.

    Stories follow one another independently, so `n` of them carry `n * nats_per_story` nats and, by
    the law of large numbers, have about `n * characters_per_story` characters: the entropy rate of
    the endless text is the ratio. No model can have a lower mean loss. (It is not the mean of the
    ratios of single stories, which would give short stories too much weight.) A *word* is a token
    of `StoryGrammar.words`: punctuation marks and the newline count too.

    The other figures are the lowest mean loss of a model that sees less. *Uniform*: it knows only
    the alphabet or the vocabulary. *Unigram*: it also knows how frequent each token is. *Bigram*:
    it sees one character (or word) before the one it predicts, and nothing else.

    Attributes:
        nats_per_story: Entropy of one story.
        characters_per_story: Expected number of characters of a story, its newline included.
        words_per_story: Expected number of tokens of a story, its newline included.
        num_characters: Size of the alphabet.
        num_words: Size of the vocabulary.
        unigram_nats_per_character: Entropy of the frequencies of the characters.
        unigram_nats_per_word: Entropy of the frequencies of the words.
        bigram_nats_per_character: Entropy of a character given the one before it.
        bigram_nats_per_word: Entropy of a word given the one before it.

    Example:
        >>> from tinytorch_book.stories import StoryGrammar
        >>> entropy = StoryGrammar().entropy
        >>> round(entropy.nats_per_word, 3), round(entropy.bigram_nats_per_word, 3)
        (0.458, 1.668)
    """

    nats_per_story: float
    characters_per_story: float
    words_per_story: float
    num_characters: int
    num_words: int
    unigram_nats_per_character: float
    unigram_nats_per_word: float
    bigram_nats_per_character: float
    bigram_nats_per_word: float

    @property
    def nats_per_character(self) -> float:
        """The entropy rate: the lowest possible mean loss of a next-character model."""
        return self.nats_per_story / self.characters_per_story

    @property
    def nats_per_word(self) -> float:
        """The lowest possible mean loss of a next-word model."""
        return self.nats_per_story / self.words_per_story

    @property
    def uniform_nats_per_character(self) -> float:
        """The loss of a model that considers all characters equally likely."""
        return math.log(self.num_characters)

    @property
    def uniform_nats_per_word(self) -> float:
        """The loss of a model that considers all words equally likely."""
        return math.log(self.num_words)

    def __str__(self) -> str:
        """The floors as a table."""
        rows = [f"{'nats per':<28}{'character':>10}{'word':>8}"]
        for name, label in (
            ("uniform_", "all equally likely"),
            ("unigram_", "how frequent each is"),
            ("bigram_", "seeing the one before"),
            ("", "seeing everything before"),
        ):
            values = (getattr(self, f"{name}nats_per_{unit}") for unit in ("character", "word"))
            rows.append(f"{label:<28}{next(values):>10.4f}{next(values):>8.4f}")
        return "\n".join(rows)


def story_entropy(rules: Rules, characters: Pairs, words: Pairs) -> StoryEntropy:
    """The exact entropy of a grammar whose expected pairs of characters and words are known."""
    unigram_character, bigram_character = _unigram_and_bigram_nats(characters)
    unigram_word, bigram_word = _unigram_and_bigram_nats(words)
    return StoryEntropy(
        nats_per_story=math.fsum(
            sum(counts.values()) * _nats_of_choice(rules, parts[0], chosen)
            for (parts, chosen), counts in expected_visits(rules, list).items()
        ),
        characters_per_story=math.fsum(characters.values()),
        words_per_story=math.fsum(words.values()),
        num_characters=len({char for _, char in characters}),
        num_words=len({word for _, word in words}),
        unigram_nats_per_character=unigram_character,
        unigram_nats_per_word=unigram_word,
        bigram_nats_per_character=bigram_character,
        bigram_nats_per_word=bigram_word,
    )


def _nats_of_choice(rules: Rules, part: str, chosen: Chosen) -> float:
    """The entropy of the choices when a part is written; for the cast, given its parents."""
    if part in rules.choices:
        return rules.choices[part].nats
    nats = 0.0
    for symbol in rules.unchosen(part, chosen):
        _, parent, rows = rules.members[symbol]
        nats += sum(p * rows[case].nats for p, case, _ in rules.values(parent, rules.nothing))
    return nats


def expected_visits(rules: Rules, split: Split) -> Visits:
    """How often a story is expected to be in each state, by the last token before it."""
    visits: Visits = {state: defaultdict(float) for state in rules.states}
    visits[rules.start, frozenset()]["\n"] = 1.0
    for (parts, chosen), counts in visits.items():
        tokens = _slots(rules, parts[0], split)
        for p, rest, after in rules.steps(parts, chosen):
            for last, count in counts.items() if rest else ():
                visits[rest, after][tokens[-1] if tokens else last] += p * count
    return visits


def expected_pairs(rules: Rules, split: Split) -> Pairs:
    """How often a story is expected to contain each pair of neighbouring tokens.

    The first token of a story is the neighbour of the newline before it. Pairs of *slots*, tokens
    or symbols of the cast, are counted first; then the cast is filled in.
    """
    slots: Pairs = defaultdict(float)
    for (parts, _), counts in expected_visits(rules, split).items():
        tokens = _slots(rules, parts[0], split)
        for last, count in counts.items():
            for pair in pairwise([last, *tokens]):
                slots[pair] += count
    pairs: Pairs = defaultdict(float)
    for (left, right), count in slots.items():
        for p, before, known in rules.values(left, rules.nothing):
            for q, after, _ in rules.values(right, known):
                for pair in pairwise([split(before)[-1], *split(after)]):
                    pairs[pair] += count * p * q
    return dict(pairs)


def _slots(rules: Rules, part: str, split: Split) -> list[str]:
    """What a part adds to the text: tokens, a member of the cast, or (a rule) nothing yet."""
    if part in rules.choices:
        return []
    return [part] if part in rules.members else split(part)


def _unigram_and_bigram_nats(pairs: Pairs) -> tuple[float, float]:
    """Entropy of a token, and of a token given the one before it."""
    tokens: dict[str, float] = defaultdict(float)
    for (_, token), count in pairs.items():
        tokens[token] += count
    unigram = _nats(tokens.values())
    return unigram, _nats(pairs.values()) - unigram


def _nats(counts: Collection[float]) -> float:
    total = math.fsum(counts)
    return -math.fsum(n / total * math.log(n / total) for n in counts)
