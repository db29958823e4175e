"""A small grammar that writes children's stories, and knows exactly how surprising they are.

    >>> import textwrap
    >>> print(textwrap.fill(StoryGrammar().generate(1, seed=0), 70))
    Mia was a brave girl. One snowy afternoon she hopped to the barn. A
    tiny hen ran after her and asked for some bread. Mia gave it some
    bread, and it ate and ate and ate. After that, the hen came to tea
    every morning.

A grammar is data, in two dictionaries that you can read like a page:

* ``rules`` say what a symbol may become. ``{opening}`` in a text stands for one of the texts of the
  rule ``"opening"``, drawn anew every time with probability proportional to its weight.
* ``cast`` holds what is chosen *once in a story*, at the first mention, and stays: the hero's name,
  the animal. ``"food given animal"`` is a choice whose weights depend on the animal.

Three facts make everything about such stories computable:

* *Every choice can be read off the text.* No text of one option is the beginning of a text of
  another one, so whoever reads a story from left to right can tell every choice that was made: a
  story has exactly one derivation, and its probability is the product of its choices'
  probabilities. The constructor checks this.
* *The rules do not look at the cast.* Which sentence comes next does not depend on which animal
  the story is about, so expectations can be summed over rules and cast separately.
* *A story ends with the only newline it has.* Stories follow each other independently, and the
  entropy of one story divided by its expected length is the entropy rate of the endless text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, islice, pairwise, repeat
from typing import Any, NamedTuple

import numpy as np

__all__ = ["STORY_CAST", "STORY_KINDS", "STORY_RULES", "StoryEntropy", "StoryGrammar"]

# ------------------------------------------------------------------------------ the stories

STORY_RULES: dict[str, dict[str, float]] = {
    "story": {"{opening} {adventure} {ending}\n": 1},
    "opening": {
        "One {weather} {time} {hero} {went} to the {place}.": 5,
        "Once upon a time there was a {child} named {hero}. "
        "One {time} {he} {went} to the {place}.": 4,
        "{hero} was a {brave} {child}. One {weather} {time} {he} {went} to the {place}.": 3,
        "On a {weather} {time} {hero} and {his} {mother} {went} to the {place}.": 2,
        "It was a {weather} {time}, and {hero} {went} to the {place}.": 2,
    },
    "adventure": {
        "{lost} {found}": 4,
        "{hungry} {shared}": 4,
        "{lonely} {cheered}": 3,
    },
    "lost": {
        "{He} took {his} {colour} {thing}, but the wind blew it away.": 4,
        "{He} had lost {his} {colour} {thing} and was very {sad}.": 3,
        "There {he} dropped {his} {colour} {thing}, and it rolled down the hill.": 2,
    },
    "found": {
        "Soon a {little} {animal} came along with the {thing} on its head.": 4,
        "A {little} {animal} found it and gave it back.": 3,
        "Behind a tree, a {little} {animal} was trying to eat it.": 2,
        "A {little} {animal} had it, and wanted some {food} for it.": 2,
        "The {thing} was in a tree, and a {little} {animal} was asleep on it.": 1,
    },
    "hungry": {
        "There {he} met a {little} {animal} that was very hungry.": 4,
        'A {little} {animal} sat by the path. "I am so hungry!" it said.': 3,
        "A {little} {animal} ran after {him} and asked for some {food}.": 2,
    },
    "shared": {
        "{hero} gave it some {food}, and it ate and ate and ate.": 4,
        '"I only eat {food}," said the {animal}, so {he} went to find some.': 3,
        "{He} gave it some {food} on a {colour} {thing}, and the {animal} ate the {thing} too.": 3,
    },
    "lonely": {
        "There {he} saw a {little} {animal} that looked very {sad}.": 4,
        "In the grass sat a {little} {animal}, all alone and {sad}.": 3,
        'A {little} {animal} came up to {him}. "I am so {sad}!" it said.': 2,
    },
    "cheered": {
        "{hero} put {his} {colour} {thing} on its head, and the {animal} laughed.": 4,
        '"Oh, do not be {sad}," said {hero}, and gave it a {colour} {thing}.': 3,
        "{He} sang a song about {food} until the {animal} smiled.": 3,
        "{He} told it a story about a {brave} {animal} and a {colour} {thing}.": 2,
    },
    "ending": {
        "They {danced} until the stars came out.": 5,
        "So {hero} and the {animal} became best friends.": 4,
        "That night {hero} told {his} {mother} all about the {animal}.": 4,
        "{He} was so {happy} that {he} {went} all the way home.": 4,
        "After that, the {animal} came to tea every {time}.": 3,
        "The {animal} was {happy}, and {hero} was {happy} too.": 3,
        'At home {his} {mother} said, "Take that {animal} out of my bed!"': 2,
        "And they both had {food} for tea.": 2,
    },
    "weather": {"sunny": 5, "windy": 3, "rainy": 3, "warm": 2, "snowy": 2, "foggy": 1},
    "time": {"morning": 5, "day": 4, "evening": 3, "afternoon": 2},
    "went": {"walked": 5, "ran": 4, "hopped": 3, "skipped": 3, "marched": 2, "hurried": 1},
    "danced": {"danced": 5, "played": 5, "sang": 3, "talked": 2, "rested": 1},
    "brave": {"brave": 5, "kind": 4, "clever": 3, "funny": 2, "silly": 2, "polite": 1},
    "little": {"little": 6, "small": 4, "big": 4, "fat": 2, "tiny": 2, "fluffy": 2, "sleepy": 1},
    "happy": {"happy": 6, "glad": 3, "proud": 2, "merry": 1},
    "mother": {"mother": 4, "father": 4, "sister": 2, "brother": 2, "grandmother": 1},
}

STORY_CAST: dict[str, dict[str, Any]] = {
    "child": {"girl": 1, "boy": 1},
    "hero given child": {
        "girl": {"Mia": 5, "Anna": 4, "Lily": 3, "Sara": 2, "Ida": 1},
        "boy": {"Tom": 5, "Ben": 4, "Max": 3, "Leo": 2, "Hugo": 1, "Otto": 1},
    },
    "he given child": {"girl": "she", "boy": "he"},
    "He given child": {"girl": "She", "boy": "He"},
    "him given child": {"girl": "her", "boy": "him"},
    "his given child": {"girl": "her", "boy": "his"},
    "place": {
        "forest": 6, "garden": 5, "meadow": 4, "pond": 4,
        "barn": 3, "park": 3, "village": 2, "cave": 1,
    },
    "animal given place": {
        "forest": {"fox": 5, "bear": 4, "owl": 3, "rabbit": 2},
        "garden": {"rabbit": 4, "cat": 3, "mouse": 2, "hen": 1},
        "meadow": {"cow": 5, "goat": 3, "rabbit": 2, "mouse": 1},
        "pond": {"duck": 5, "frog": 4, "goat": 1},
        "barn": {"hen": 4, "cow": 3, "mouse": 3, "owl": 1, "cat": 1},
        "park": {"dog": 5, "duck": 2, "cat": 2},
        "village": {"dog": 4, "cat": 3, "hen": 2, "goat": 1},
        "cave": {"bear": 5, "fox": 2, "owl": 1},
    },
    "food given animal": {
        "fox": {"grapes": 5, "berries": 2, "cheese": 2},
        "bear": {"honey": 6, "berries": 3, "fish": 2},
        "owl": {"nuts": 3, "berries": 2, "soup": 1},
        "rabbit": {"carrots": 6, "apples": 2, "grass": 1},
        "cat": {"fish": 5, "cheese": 2, "cake": 1},
        "mouse": {"cheese": 6, "bread": 2, "nuts": 2},
        "hen": {"corn": 5, "bread": 2, "nuts": 1},
        "cow": {"grass": 6, "apples": 2, "corn": 1},
        "goat": {"grass": 3, "apples": 2, "carrots": 2, "cake": 1},
        "duck": {"bread": 6, "corn": 2, "grapes": 1},
        "frog": {"soup": 3, "berries": 2, "cake": 2},
        "dog": {"cake": 3, "fish": 2, "bread": 2, "soup": 1},
    },
    "sad": {"sad": 5, "lonely": 3, "tired": 2, "cold": 1},
    "colour": {"red": 5, "blue": 4, "green": 3, "yellow": 3, "white": 1, "golden": 1},
    "thing": {
        "hat": 5, "ball": 4, "kite": 4, "drum": 3, "boat": 3, "boot": 2, "sock": 2, "spoon": 1,
    },
}  # fmt: skip

STORY_KINDS: dict[str, tuple[str, ...]] = {
    "names": ("hero",),
    "animals": ("animal",),
    "foods": ("food",),
    "places": ("place",),
    "colours": ("colour",),
    "things": ("thing",),
    "sizes": ("little",),
    "family": ("mother",),
    "times": ("time",),
    "weather": ("weather",),
    "traits": ("brave",),
    "troubles": ("sad",),
    "joys": ("happy",),
    "movements": ("went",),
    "pastimes": ("danced",),
}

# ------------------------------------------------------------------------------ small parts

_WORD = re.compile(r"\w+(?:'\w+)*|[^\w ]")  # a word, or one mark of punctuation, or a newline
_REFERENCE = re.compile(r"\{([^{}]*)\}")
_NO_SPACE_BEFORE = frozenset(".,!?;:\n")


class _Part(NamedTuple):
    """A piece of a template: characters, or the name of the symbol that stands there."""

    text: str
    is_symbol: bool = False


class _Choice(NamedTuple):
    """A probability distribution over options, in the order of the grammar."""

    options: tuple[str, ...]
    probs: tuple[float, ...]
    cumulative: tuple[float, ...]

    def draw(self, uniform: float) -> int:
        """The index of the option that a uniform number in [0, 1) falls on (inverse CDF)."""
        index = bisect_right(self.cumulative, uniform * self.cumulative[-1])
        return min(index, len(self.options) - 1)

    @property
    def nats(self) -> float:
        return -math.fsum(p * math.log(p) for p in self.probs)


class _Member(NamedTuple):
    """One of the cast: where its value is kept, what it depends on, its choice for each case."""

    number: int
    parent: str | None
    rows: dict[str | None, _Choice]


_Bound = tuple[str | None, ...]  # the value of each member of the cast, None before it is chosen
_State = tuple[int, frozenset[str]]  # what is still to come, and which of the cast are chosen
_Belief = dict[tuple[str, int, _Bound], float]  # (text to finish, what follows, cast): probability
_END = 0  # the number of the empty continuation: the story is over


# ------------------------------------------------------------------------------ entropy


@dataclass(frozen=True)
class StoryEntropy:
    """How surprising a grammar's endless text is, exactly, and what a smaller view can reach.

    Stories follow each other independently, so `n` of them carry `n * nats_per_story` nats and, by
    the law of large numbers, take `n * characters_per_story` characters: the entropy rate of the
    endless text is the ratio. No model can have a lower mean loss. (It is not the mean of the
    stories' own ratios, which gives short stories too much weight.) A *word* is a token of
    `StoryGrammar.words`: punctuation marks and the newline count too.

    The other figures are the best mean loss of a model that sees less. *Uniform*: it knows the
    alphabet or the vocabulary alone. *Unigram*: it also knows how frequent each is. *Bigram*: it
    sees one character (or word) before the one it predicts, and nothing else.

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
        """The entropy rate: the least possible mean loss of a next-character model."""
        return self.nats_per_story / self.characters_per_story

    @property
    def bits_per_character(self) -> float:
        """The entropy rate in bits."""
        return self.nats_per_character / math.log(2)

    @property
    def nats_per_word(self) -> float:
        """The least possible mean loss of a next-word model."""
        return self.nats_per_story / self.words_per_story

    @property
    def bits_per_word(self) -> float:
        """The entropy per word in bits."""
        return self.nats_per_word / math.log(2)

    @property
    def uniform_nats_per_character(self) -> float:
        """The loss of a model that finds every character equally likely."""
        return math.log(self.num_characters)

    @property
    def uniform_nats_per_word(self) -> float:
        """The loss of a model that finds every word equally likely."""
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


# ------------------------------------------------------------------------------ the grammar


class StoryGrammar:
    r"""A probabilistic grammar of stories: it writes them, and it is the oracle of its own text.

    Args:
        rules: A text, or a dictionary from texts to weights, for every symbol; `{name}` in a text
            refers to a rule or to the cast. The start is the rule `"story"`, whose texts end with
            the only newline there is. Without `rules` you get the stories of this book.
        cast: What is chosen once in a story: for every name a word, a dictionary from words to
            weights, or, when the key is `"name given parent"`, a dictionary with one of these for
            every value of the parent. Values are plain characters, without references.
        kinds: Classes of words, each a tuple of the names of rules and cast whose words it holds;
            by default one class for every symbol that chooses between single words.

    Attributes:
        rules: The rules, as they were given.
        cast: The cast, as it was given.
        kinds: The words of each kind, for instance `kinds["animals"]`.

    Raises:
        TypeError: `rules`, `cast` or a weight is of the wrong type.
        ValueError: The grammar is not sound (unknown, unreachable or recursive symbols, weights
            that are not positive, a choice that cannot be read off the text ...); the message says
            which symbol and what to do.

    Example:
        >>> tiny = StoryGrammar(
        ...     rules={"story": "{pet} eats {food}.\n", "pet": {"Rex": 3, "Tom": 1}},
        ...     cast={"food": {"pie": 1, "fish": 1}},
        ... )
        >>> tiny.generate(2, seed=0)
        'Rex eats pie.\nRex eats pie.\n'
        >>> round(tiny.entropy.nats_per_story, 4)  # log 2 + the entropy of (3/4, 1/4)
        1.2555
        >>> tiny.next_character_probs("Rex eats ")
        {'f': 0.5, 'p': 0.5}
    """

    def __init__(
        self,
        rules: Mapping[str, Any] | None = None,
        cast: Mapping[str, Any] | None = None,
        kinds: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Read the grammar and check that it is sound."""
        if rules is None:
            if cast is not None or kinds is not None:
                raise ValueError("cast and kinds need their own rules; pass rules= as well")
            rules, cast, kinds = STORY_RULES, STORY_CAST, STORY_KINDS
        self._choices = _compile_rules(rules)
        self._members = _compile_cast({} if cast is None else cast, self._choices)
        self.rules = dict(rules)
        self.cast = dict(cast or {})
        self._templates = {
            name: tuple(_parse(name, text) for text in choice.options)
            for name, choice in self._choices.items()
        }
        _check_references(self._templates, self._members)
        _check_newlines(self._templates, self._members)
        self._nothing: _Bound = (None,) * len(self._members)
        self._nodes: list[tuple[_Part, int]] = [(_Part(""), _END)]  # what comes next, what follows
        self._numbers: dict[tuple[_Part, int], int] = {}
        self._fronts: dict[int, list[tuple[float, _Part, int]]] = {}
        self._root = self._push((_Part("story", True),), _END)
        self._visits = self._expected_visits()
        self._check_choices_can_be_read()
        self.kinds = self._collect_kinds(kinds)

    # -------------------------------------------------------------------- writing

    def generate(self, num_stories: int, seed: int = 0) -> str:
        r"""Write stories, each on a line of its own.

        Args:
            num_stories: How many, 0 or more.
            seed: The same seed gives the same text on every platform and NumPy version; a larger
                `num_stories` only adds to it.

        Returns:
            The stories, one after the other; every one ends with a newline.

        Example:
            >>> StoryGrammar().generate(3, seed=1).count("\n")
            3
        """
        if isinstance(num_stories, bool) or not isinstance(num_stories, (int, np.integer)):
            raise TypeError(f"num_stories must be an integer, got {num_stories!r}")
        if num_stories < 0:
            raise ValueError(f"num_stories must be 0 or more, got {num_stories}")
        return "".join(islice(self.stories(seed), int(num_stories)))

    def stories(self, seed: int = 0) -> Iterator[str]:
        """Write stories without end.

        Args:
            seed: An integer, 0 or more.

        Yields:
            One story at a time, with its newline.

        Example:
            >>> next(StoryGrammar().stories(seed=1)) == StoryGrammar().generate(1, seed=1)
            True
        """
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise TypeError(f"seed must be an integer, got {seed!r}")
        if seed < 0:
            raise ValueError(f"seed must be 0 or more, got {seed}")
        uniform = np.random.Generator(np.random.PCG64(int(seed))).random
        return (self._write(draw) for draw in repeat(uniform))

    def _write(self, uniform: Callable[[], float]) -> str:
        """One story, from top to bottom; `uniform` gives numbers in [0, 1)."""
        pieces: list[str] = []
        values: dict[str, str] = {}
        todo = [_Part("story", True)]
        while todo:
            part = todo.pop()
            if not part.is_symbol:
                pieces.append(part.text)
            elif part.text in self._members:
                pieces.append(self._cast_value(part.text, values, uniform))
            else:
                choice = self._choices[part.text]
                option = choice.draw(uniform()) if len(choice.options) > 1 else 0
                todo.extend(reversed(self._templates[part.text][option]))
        return "".join(pieces)

    def _cast_value(self, name: str, values: dict[str, str], uniform: Callable[[], float]) -> str:
        """The value of one of the cast, chosen now (after its parent) if it was not before."""
        if name not in values:
            member = self._members[name]
            parent = self._cast_value(member.parent, values, uniform) if member.parent else None
            row = member.rows[parent]
            values[name] = row.options[row.draw(uniform()) if len(row.options) > 1 else 0]
        return values[name]

    # -------------------------------------------------------------------- words

    @staticmethod
    def words(text: str) -> list[str]:
        """Split a text into words, punctuation marks and newlines; spaces are dropped.

        Args:
            text: Any text.

        Returns:
            The tokens. For the stories of this book nothing is lost: `join_words` inverts it.

        Example:
            >>> StoryGrammar.words('"I am so sad!" it said.')
            ['"', 'I', 'am', 'so', 'sad', '!', '"', 'it', 'said', '.']
        """
        return _WORD.findall(text)

    @staticmethod
    def join_words(words: Iterable[str]) -> str:
        r"""Write tokens of `words` as text again, with spaces where they belong.

        Args:
            words: Tokens; quotation marks open and close by turns, and every newline closes them.

        Returns:
            The text.

        Example:
            >>> StoryGrammar.join_words(["He", "said", ",", '"', "Oh", "!", '"', "\n", "A"])
            'He said, "Oh!"\nA'
        """
        pieces: list[str] = []
        quoted, glue = False, True  # glue: no space before the next token
        for word in words:
            closing = word == '"' and quoted
            if not (glue or closing or word in _NO_SPACE_BEFORE):
                pieces.append(" ")
            pieces.append(word)
            quoted = (quoted != (word == '"')) and word != "\n"
            glue = word == "\n" or (word == '"' and quoted)
        return "".join(pieces)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        r"""Every token that `words` can find in a story, sorted.

        Example:
            >>> StoryGrammar().vocabulary[:8]
            ('\n', '!', '"', ',', '.', 'A', 'After', 'And')
        """
        return tuple(sorted({word for pair in self._word_pairs for word in pair}))

    @cached_property
    def alphabet(self) -> str:
        r"""Every character that a story can contain, sorted.

        Example:
            >>> StoryGrammar().alphabet
            '\n !",.ABHILMOSTabcdefghiklmnoprstuvwxy'
        """
        return "".join(sorted({char for pair in self._character_pairs for char in pair}))

    # -------------------------------------------------------------------- what is known exactly

    @cached_property
    def entropy(self) -> StoryEntropy:
        """The exact entropy of the stories, and the floors of models that see less of them.

        A story has exactly one derivation, so its surprise is the sum of the surprises of its
        choices, and the expected sum is, over all places where a choice is made,

            (how often a story is expected to come there) * (the entropy of the choice).

        Example:
            >>> print(StoryGrammar().entropy)
            nats per                     character    word
            all equally likely              3.6376  5.4116
            how frequent each is            2.9627  4.7210
            seeing the one before           2.0936  1.6678
            seeing everything before        0.1144  0.4577
        """
        characters, words = self._character_pairs, self._word_pairs
        return StoryEntropy(
            nats_per_story=math.fsum(
                visits * self._nats_of_choice(state) for state, visits in self._visits.items()
            ),
            characters_per_story=math.fsum(characters.values()),
            words_per_story=math.fsum(words.values()),
            num_characters=len(self.alphabet),
            num_words=len(self.vocabulary),
            unigram_nats_per_character=_unigram_nats(characters),
            unigram_nats_per_word=_unigram_nats(words),
            bigram_nats_per_character=_bigram_nats(characters),
            bigram_nats_per_word=_bigram_nats(words),
        )

    @cached_property
    def _character_pairs(self) -> dict[tuple[str, str], float]:
        return self._pairs(list)

    @cached_property
    def _word_pairs(self) -> dict[tuple[str, str], float]:
        return self._pairs(self.words)

    def _nats_of_choice(self, state: _State) -> float:
        """The entropy of the choice that is made in a state, the parents' values averaged over."""
        (part, _), chosen = self._nodes[state[0]], state[1]
        if not part.is_symbol:
            return 0.0
        if part.text in self._choices:
            return self._choices[part.text].nats
        nats = 0.0
        for name in self._unchosen(part.text, chosen):
            member = self._members[name]
            for p, value, _ in self._parent_draws(member, self._nothing):
                nats += p * member.rows[value].nats
        return nats

    def _unchosen(self, name: str | None, chosen: frozenset[str]) -> list[str]:
        """The member of the cast and its ancestors, as far as they are still to be chosen."""
        chain = []
        while name is not None and name not in chosen:
            chain.append(name)
            name = self._members[name].parent
        return chain

    def _expected_visits(self) -> dict[_State, float]:
        """How often a story is expected to come to each state, in an order that time respects."""
        start: _State = (self._root, frozenset())
        order: list[_State] = []
        seen = {start}
        todo = [(start, iter(self._next_states(start)))]
        while todo:  # depth first, without recursion: a story may be long
            state, following = todo[-1]
            for _, after in following:
                if after not in seen:
                    seen.add(after)
                    todo.append((after, iter(self._next_states(after))))
                    break
            else:
                order.append(todo.pop()[0])
        visits = dict.fromkeys(reversed(order), 0.0)
        visits[start] = 1.0
        for state in visits:
            for p, after in self._next_states(state):
                visits[after] += p * visits[state]
        return {state: count for state, count in visits.items() if state[0] != _END}

    def _next_states(self, state: _State) -> list[tuple[float, _State]]:
        """Where a story goes from a state, with probabilities."""
        node, chosen = state
        if node == _END:
            return []
        part, rest = self._nodes[node]
        if part.is_symbol and part.text in self._choices:
            return [(p, (after, chosen)) for p, after in self._options(part.text, rest)]
        if part.is_symbol:
            chosen = chosen.union(self._unchosen(part.text, chosen))
        return [(1.0, (rest, chosen))]

    def _pairs(self, split: Callable[[str], list[str]]) -> dict[tuple[str, str], float]:
        """Expected number per story of each pair of neighbouring tokens in the endless text.

        The first token of a story is the neighbour of the newline before it. Rules do not look at
        the cast, so pairs of *slots* are counted first and the cast is filled in afterwards.
        """
        arriving: dict[_State, dict[_Part, float]] = defaultdict(lambda: defaultdict(float))
        arriving[(self._root, frozenset())][_Part("\n")] = 1.0
        slots: dict[tuple[_Part, _Part], float] = defaultdict(float)
        for state, visits in self._visits.items():
            before = arriving.pop(state)
            part, _ = self._nodes[state[0]]
            if part.is_symbol:
                tokens = [part] if part.text in self._members else []
            else:
                tokens = [_Part(token) for token in split(part.text)]
            if tokens:
                for token, number in before.items():
                    slots[token, tokens[0]] += number
                for pair in pairwise(tokens):
                    slots[pair] += visits
                before = {tokens[-1]: visits}
            for p, after in self._next_states(state):
                for token, number in before.items():
                    arriving[after][token] += p * number
        return self._fill_in(slots, split)

    def _fill_in(
        self, slots: dict[tuple[_Part, _Part], float], split: Callable[[str], list[str]]
    ) -> dict[tuple[str, str], float]:
        """Replace the names of the cast in pairs of slots by the values they take together."""
        pairs: dict[tuple[str, str], float] = defaultdict(float)
        for (left, right), count in slots.items():
            for p, left_value, bound in self._slot_values(left, self._nothing):
                for q, right_value, _ in self._slot_values(right, bound):
                    tokens = [split(left_value)[-1], *split(right_value)]
                    for pair in pairwise(tokens):
                        pairs[pair] += count * p * q
        return dict(pairs)

    def _slot_values(self, part: _Part, bound: _Bound) -> list[tuple[float, str, _Bound]]:
        """Every (probability, text, cast afterwards) of characters or one of the cast."""
        if part.is_symbol:
            return self._draws(part.text, bound)
        return [(1.0, part.text, bound)]

    # -------------------------------------------------------------------- the oracle

    def log_probs(self, text: str, *, start: str = "story", strict: bool = True) -> np.ndarray:
        r"""Exact log-probability of every character of a text, given all characters before it.

        The mean of the negative values over a long text comes as near to the grammar's entropy per
        character as a model's loss can.

        Args:
            text: Any number of stories, one after the other; the last one may be cut off.
            start: `"story"`: the text begins where a story begins. `"anywhere"`: it is a window
                that was cut out of the endless text at a random character, and what was before
                it is unknown.
            strict: Raise an error for a text that the grammar cannot produce. With `False`, the
                first impossible character and all after it get minus infinity.

        Returns:
            Natural logarithms, float64, shape `(len(text),)`.

        Raises:
            TypeError: `text` is not a string.
            ValueError: The text is impossible (and `strict`), or `start` is unknown.

        Example:
            >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1}})
            >>> np.exp(tiny.log_probs("a cow.\na c")).round(2).tolist()
            [1.0, 1.0, 1.0, 0.25, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
            >>> tiny.log_probs("a dog.")
            Traceback (most recent call last):
                ...
            ValueError: no story has 'd' at position 2, after 'a '; only 'c' can be there
        """
        result = np.full(len(text), -np.inf)
        for position, (prob, _) in enumerate(self._follow(text, start, strict)):
            result[position] = math.log(prob)
        return result

    def word_log_probs(self, text: str) -> np.ndarray:
        r"""Exact log-probability of every word of `words(text)`, given all words before it.

        A word is known to be over when the next character is no letter; that part of the surprise
        belongs to the word, not to the one that follows. The sum is the sum of `log_probs(text)`.

        Args:
            text: Any number of complete stories.

        Returns:
            Natural logarithms, float64, one for each of `words(text)`.

        Raises:
            ValueError: The text is impossible, or its last story is cut off.

        Example:
            >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cats": 1}})
            >>> np.exp(tiny.word_log_probs("a cats.\n")).round(2).tolist()
            [1.0, 0.25, 1.0, 1.0]
        """
        if text and not text.endswith("\n"):
            raise ValueError("the last story is cut off; every story ends with a newline")
        result = np.zeros(len(text))
        for position, (prob, belief) in enumerate(self._follow(text, "story", strict=True)):
            result[position] += math.log(prob)
            if position and _is_letter(text[position - 1]) and not _is_letter(text[position]):
                probs = _next_characters(belief)
                over = math.fsum(p for char, p in probs.items() if not _is_letter(char))
                result[position - 1] += math.log(over)
                result[position] -= math.log(over)
        sums = np.concatenate([[0.0], np.cumsum(result)])
        ends = [0, *(match.end() for match in _WORD.finditer(text))]
        return np.diff(sums[ends])

    def next_character_probs(self, prefix: str, *, start: str = "story") -> dict[str, float]:
        """The exact distribution of the character that follows a text.

        Args:
            prefix: As the `text` of `log_probs`; may be empty.
            start: As in `log_probs`.

        Returns:
            Probabilities (their sum is 1) of the characters that can follow, sorted by character.

        Raises:
            ValueError: The grammar cannot produce `prefix`.

        Example:
            >>> probs = StoryGrammar().next_character_probs("One sunny ")
            >>> {char: round(p, 3) for char, p in probs.items()}
            {'a': 0.143, 'd': 0.286, 'e': 0.214, 'm': 0.357}
        """
        belief = self._first_belief(prefix, start)
        for _, before in self._follow(prefix, start, strict=True):
            belief = before
        if prefix:
            _, belief = self._read(belief, prefix[-1])
        return dict(sorted(_next_characters(belief).items()))

    def is_story(self, text: str) -> bool:
        r"""Whether a text is exactly one complete story, its newline included.

        Args:
            text: Any text.

        Returns:
            True for what `stories` can write.

        Example:
            >>> story = next(StoryGrammar().stories(seed=1))
            >>> StoryGrammar().is_story(story), StoryGrammar().is_story(story[:-1])
            (True, False)
        """
        if text.find("\n") != len(text) - 1:
            return False
        return bool(text) and bool(np.isfinite(self.log_probs(text, strict=False)[-1]))

    def _first_belief(self, text: str, start: str) -> _Belief:
        """What is known before the first character is read."""
        if not isinstance(text, str):
            raise TypeError(f"the oracle reads a string, got {type(text).__name__}")
        if start == "story":
            return self._story_start
        if start == "anywhere":
            return self._anywhere
        raise ValueError(f"start must be 'story' or 'anywhere', got {start!r}")

    def _follow(self, text: str, start: str, strict: bool) -> Iterator[tuple[float, _Belief]]:
        """For each character of a text: its probability, and the belief before it was read."""
        belief = self._first_belief(text, start)
        for position, char in enumerate(text):
            prob, after = self._read(belief, char)
            if not after and strict:
                raise ValueError(_impossible(text, position, _next_characters(belief)))
            if not after:
                return
            yield prob, belief
            belief = after

    def _read(self, belief: _Belief, char: str) -> tuple[float, _Belief]:
        """The probability of a character, and the belief after it (empty if it is impossible).

        This is the forward algorithm: keep the hypotheses that agree with the character, divide by
        what is left of the probability, and let those that have finished a text move on.
        """
        kept = {key: p for key, p in belief.items() if key[0][0] == char}
        prob = 1.0 if len(kept) == len(belief) else min(1.0, math.fsum(kept.values()))
        after: _Belief = {}
        for (text, node, bound), p in kept.items():
            if len(text) > 1:
                key = (text[1:], node, bound)
                after[key] = after.get(key, 0.0) + p / prob
                continue
            for q, key in self._unfold(node, bound):
                after[key] = after.get(key, 0.0) + q * p / prob
        return prob, after

    def _unfold(self, node: int, bound: _Bound) -> Iterator[tuple[float, tuple[str, int, _Bound]]]:
        """Every hypothesis that a continuation can begin with, and its probability."""
        if node == _END:
            node, bound = self._root, self._nothing
        for p, part, rest in self._front(node):
            for q, text, after in self._slot_values(part, bound):
                yield p * q, (text, rest, after)

    @cached_property
    def _story_start(self) -> _Belief:
        return {key: p for p, key in self._unfold(_END, self._nothing)}

    @cached_property
    def _anywhere(self) -> _Belief:
        """The stationary distribution: where a character picked from the endless text stands.

        The cast that a window has not shown yet is left open: rules do not look at it, so whether
        it was chosen before the window began or is chosen now makes no difference.
        """
        belief: _Belief = defaultdict(float)
        for (node, _), visits in self._visits.items():
            part, rest = self._nodes[node]
            if part.is_symbol and part.text in self._choices:
                continue
            for p, text, bound in self._slot_values(part, self._nothing):
                for offset in range(len(text)):
                    belief[text[offset:], rest, bound] += visits * p
        total = math.fsum(belief.values())  # the expected number of characters of a story
        return {key: p / total for key, p in belief.items()}

    # -------------------------------------------------------------------- the machine

    def _push(self, parts: Iterable[_Part], rest: int) -> int:
        """The number of the continuation "these parts, and then `rest`"."""
        for part in reversed(tuple(parts)):
            key = (part, rest)
            if key not in self._numbers:
                self._numbers[key] = len(self._nodes)
                self._nodes.append(key)
            rest = self._numbers[key]
        return rest

    def _options(self, name: str, rest: int) -> list[tuple[float, int]]:
        """(probability, continuation) of every option of a rule."""
        templates = self._templates[name]
        probs = self._choices[name].probs
        return [(p, self._push(parts, rest)) for p, parts in zip(probs, templates, strict=True)]

    def _front(self, node: int) -> list[tuple[float, _Part, int]]:
        """(probability, part, rest) with which a continuation can begin, rules unfolded."""
        if node not in self._fronts:
            part, rest = self._nodes[node]
            if part.is_symbol and part.text in self._choices:
                self._fronts[node] = [
                    (p * q, first, following)
                    for p, option in self._options(part.text, rest)
                    for q, first, following in self._front(option)
                ]
            else:
                self._fronts[node] = [(1.0, part, rest)]
        return self._fronts[node]

    def _draws(self, name: str, bound: _Bound) -> list[tuple[float, str, _Bound]]:
        """Every (probability, value, cast afterwards) of one of the cast, its parents included."""
        member = self._members[name]
        value = bound[member.number]
        if value is not None:
            return [(1.0, value, bound)]
        return [
            (p * q, value, (*after[: member.number], value, *after[member.number + 1 :]))
            for p, parent, after in self._parent_draws(member, bound)
            for value, q in zip(*member.rows[parent][:2], strict=True)
        ]

    def _parent_draws(
        self, member: _Member, bound: _Bound
    ) -> Sequence[tuple[float, str | None, _Bound]]:
        """The same of the parent; without a parent, the one case that there is."""
        if member.parent is None:
            return [(1.0, None, bound)]
        return self._draws(member.parent, bound)

    # -------------------------------------------------------------------- soundness

    def _check_choices_can_be_read(self) -> None:
        """No option's text may be the beginning of another's: then every text has one derivation.

        Say a text had two derivations. Take the first choice in which they differ; both options
        begin at the same character, and the text of one is the beginning of the text of the other.
        """
        for name, templates in self._templates.items():
            starts = [self._push(parts, _END) for parts in templates]
            for one, other in combinations(range(len(starts)), 2):
                if self._overlap(starts[one], starts[other]):
                    options = self._choices[name].options
                    raise ValueError(
                        f"rule {name!r}: {options[one]!r} and {options[other]!r} can begin with "
                        "the same complete text, so a reader could not tell which one was chosen; "
                        "let every option differ from the others before it ends"
                    )
        for (node, chosen), _ in self._visits.items():
            part, _ = self._nodes[node]
            if part.is_symbol and part.text in self._members and part.text not in chosen:
                self._check_member(part.text, chosen)

    def _check_member(self, name: str, chosen: frozenset[str]) -> None:
        """The value of one of the cast must tell everything that is chosen at this mention."""
        top = self._members[self._unchosen(name, chosen)[-1]]
        for _, _, known in self._parent_draws(top, self._nothing):
            values = [value for _, value, _ in self._draws(name, known)]
            for one, other in combinations(values, 2):
                if _begins_another(one, other):
                    parent = self._members[name].parent
                    remedy = (
                        f"mention {{{parent}}} before {{{name}}}"
                        if one == other
                        else "choose other words"
                    )
                    raise ValueError(
                        f"cast {name!r}: the values {one!r} and {other!r} cannot be told apart "
                        f"where {{{name}}} is mentioned first; {remedy}"
                    )

    def _overlap(self, one: int, other: int) -> bool:
        """Whether a text of one continuation is a text of the other, or the beginning of one."""
        todo = [((_Part(""), one), (_Part(""), other))]
        seen = set(todo)
        while todo:
            left, right = todo.pop()
            for a, a_rest in self._texts(*left):
                for b, b_rest in self._texts(*right):
                    size = min(len(a), len(b))
                    if a[:size] != b[:size]:
                        continue
                    if (not a[size:] and a_rest == _END and _ends_here(a, b[size:])) or (
                        not b[size:] and b_rest == _END and _ends_here(b, a[size:])
                    ):
                        return True
                    pair = ((_Part(a[size:]), a_rest), (_Part(b[size:]), b_rest))
                    if pair not in seen:
                        seen.add(pair)
                        todo.append(pair)
        return False

    def _texts(self, part: _Part, rest: int) -> Iterator[tuple[str, int]]:
        """The texts a continuation can begin with, whatever the cast."""
        if part.text:
            yield part.text, rest
        elif rest != _END:
            for _, first, following in self._front(rest):
                for _, value, _ in self._slot_values(first, self._nothing):
                    yield value, following

    def _collect_kinds(
        self, kinds: Mapping[str, Sequence[str]] | None
    ) -> dict[str, tuple[str, ...]]:
        """The words of each kind, in the order of the grammar."""
        words = {name: choice.options for name, choice in self._choices.items()}
        for name, member in self._members.items():
            options = (option for row in member.rows.values() for option in row.options)
            words[name] = tuple(dict.fromkeys(options))
        if kinds is None:
            kinds = {
                name: (name,)
                for name, options in words.items()
                if len(options) > 1 and all(_WORD.fullmatch(option) for option in options)
            }
        for kind, names in kinds.items():
            for name in names:
                if name not in words:
                    raise ValueError(
                        f"kind {kind!r} names {name!r}, which is neither in the rules nor in the "
                        f"cast; there are {_listed(words)}"
                    )
        return {
            kind: tuple(dict.fromkeys(word for name in names for word in words[name]))
            for kind, names in kinds.items()
        }


# ------------------------------------------------------------------------------ reading the data


def _compile_rules(rules: Mapping[str, Any]) -> dict[str, _Choice]:
    if not isinstance(rules, Mapping):
        raise TypeError(f"rules must be a dictionary, got {type(rules).__name__}")
    if "story" not in rules:
        raise ValueError(f"there is no rule 'story' to start from; there are {_listed(rules)}")
    for name in rules:
        _check_name(name, "rule")
    return {name: _compile_choice(f"rule {name!r}", options) for name, options in rules.items()}


def _compile_cast(cast: Mapping[str, Any], rules: Iterable[str]) -> dict[str, _Member]:
    if not isinstance(cast, Mapping):
        raise TypeError(f"cast must be a dictionary, got {type(cast).__name__}")
    members: dict[str, _Member] = {}
    for key, options in cast.items():
        name, *given = key.split(" given ", 1) if isinstance(key, str) else (key,)
        _check_name(name, "cast")
        if name in members or name in rules:
            raise ValueError(f"cast {name!r}: this name is defined twice; give it another one")
        if not given:
            choice = _compile_choice(f"cast {name!r}", options)
            members[name] = _Member(len(members), None, {None: choice})
        elif given[0] not in members:
            raise ValueError(
                f"cast {key!r}: {given[0]!r} is not one of the cast before it ({_listed(members)})"
            )
        else:
            parent = members[given[0]]
            members[name] = _Member(len(members), given[0], _compile_rows(key, options, parent))
    return members


def _compile_rows(key: str, table: Any, parent: _Member) -> dict[str | None, _Choice]:
    """A choice for every value of the parent: none missing, none too many."""
    if not isinstance(table, Mapping):
        raise TypeError(
            f"cast {key!r} must be a dictionary with a row for each value, got {table!r}"
        )
    values = dict.fromkeys(option for row in parent.rows.values() for option in row.options)
    missing = [value for value in values if value not in table]
    extra = [value for value in table if value not in values]
    if missing or extra:
        raise ValueError(
            f"cast {key!r}: there must be one row for each value of the parent; "
            f"missing: {_listed(missing)}; unknown: {_listed(extra)}"
        )
    return {
        value: _compile_choice(f"cast {key!r}, row {value!r}", table[value]) for value in values
    }


def _compile_choice(where: str, options: Any) -> _Choice:
    """Weights made probabilities; a text alone is certain."""
    if isinstance(options, str):
        options = {options: 1}
    if not isinstance(options, Mapping):
        raise TypeError(
            f"{where} must be a text or a dictionary from texts to weights, got {options!r}"
        )
    if not options:
        raise ValueError(f"{where} has no options")
    for text, weight in options.items():
        if not isinstance(text, str):
            raise TypeError(f"{where}: an option must be a text, got {text!r}")
        if not text:
            raise ValueError(f"{where} has an empty option; write the texts with and without it")
        if isinstance(weight, bool) or not isinstance(weight, (int, float, np.number)):
            raise TypeError(f"{where}: the weight of {text!r} must be a number, got {weight!r}")
        if not (weight > 0 and math.isfinite(weight)):
            raise ValueError(
                f"{where}: the weight of {text!r} is {weight}; weights are positive and finite "
                "(leave out what never happens)"
            )
    weights = [float(weight) for weight in options.values()]
    total = math.fsum(weights)
    probs = tuple(weight / total for weight in weights)
    return _Choice(tuple(options), probs, tuple(accumulate(weights)))


def _check_name(name: Any, where: str) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(
            f"{where} {name!r}: a name is one word of letters, digits and underscores"
            + (", or 'name given parent'" if where == "cast" else "")
        )


def _parse(name: str, template: str) -> tuple[_Part, ...]:
    """The characters and symbols of a template; a symbol stands apart from words beside it."""
    parts: list[_Part] = []
    pieces = _REFERENCE.split(template)  # characters, name, characters, ..., name, characters
    last = len(pieces) - 1
    for index, text in enumerate(pieces):
        if index % 2:
            parts.append(_Part(text, True))
            continue
        if "{" in text or "}" in text:
            raise ValueError(f"rule {name!r}: a brace without its partner in {template!r}")
        glued = (index > 0 and _is_letter(text[:1])) or (index < last and _is_letter(text[-1:]))
        if glued or (not text and 0 < index < last):
            raise ValueError(
                f"rule {name!r}: in {template!r} a symbol touches a letter or another symbol; put "
                "a space or a punctuation mark between, or give the whole word a name of its own"
            )
        if text:
            parts.append(_Part(text))
    return tuple(parts)


def _check_references(
    templates: Mapping[str, Sequence[Sequence[_Part]]], members: Mapping[str, _Member]
) -> None:
    """Every symbol exists, none contains itself, each rule and member of the cast is used."""
    used: set[str] = set()
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            cycle = " -> ".join([*path[path.index(name) :], name])
            raise ValueError(f"rule {name!r} contains itself ({cycle}); a story must end")
        if name in done:
            return
        for part in (part for parts in templates[name] for part in parts if part.is_symbol):
            if part.text in templates:
                visit(part.text, (*path, name))
            elif part.text not in members:
                raise ValueError(
                    f"rule {name!r} refers to {part.text!r}, which is neither in the rules "
                    f"({_listed(templates)}) nor in the cast ({_listed(members)})"
                )
            used.add(part.text)
        done.add(name)

    visit("story", ())
    for name in reversed(list(members)):  # a parent comes before its children
        parent = members[name].parent
        if name in used and parent is not None:
            used.add(parent)
    unused = [name for name in (*templates, *members) if name not in used | {"story"}]
    if unused:
        raise ValueError(f"no story can reach {_listed(unused)}; refer to it or take it out")


def _check_newlines(
    templates: Mapping[str, Sequence[Sequence[_Part]]], members: Mapping[str, _Member]
) -> None:
    """The only newline of a story is its last character."""
    remedy = "a story ends with '\\n', and has no other newline"
    for name, options in templates.items():
        for parts in options:
            characters = "".join("*" if part.is_symbol else part.text for part in parts)
            if name == "story" and not characters.endswith("\n"):
                raise ValueError(
                    f"rule 'story': {characters!r} does not end with a newline; {remedy}"
                )
            if "\n" in characters.removesuffix("\n" if name == "story" else ""):
                raise ValueError(f"rule {name!r}: a newline inside {characters!r}; {remedy}")
    for name, member in members.items():
        for option in (option for row in member.rows.values() for option in row.options):
            if "\n" in option or "{" in option or "}" in option or option != option.strip():
                raise ValueError(
                    f"cast {name!r}: {option!r} has braces, a newline or space around it; "
                    "a value is plain characters"
                )


# ------------------------------------------------------------------------------ helpers


def _is_letter(char: str) -> bool:
    """Whether a character could be part of a word of `StoryGrammar.words`."""
    return char.isalnum() or (char != "" and char in "_'")


def _ends_here(text: str, others: str) -> bool:
    """Whether a text may be complete where another one goes on: not in the middle of a word."""
    return not (others and _is_letter(text[-1]) and _is_letter(others[0]))


def _begins_another(one: str, other: str) -> bool:
    """Whether one value is the other, or the words that the other begins with."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and _ends_here(short, long[len(short) :])


def _unigram_nats(pairs: Mapping[tuple[str, str], float]) -> float:
    """Entropy of the second of each pair."""
    counts: dict[str, float] = defaultdict(float)
    for (_, right), count in pairs.items():
        counts[right] += count
    total = math.fsum(counts.values())
    return -math.fsum(n / total * math.log(n / total) for n in counts.values())


def _bigram_nats(pairs: Mapping[tuple[str, str], float]) -> float:
    """Entropy of the second of each pair, given the first."""
    counts: dict[str, float] = defaultdict(float)
    for (left, _), count in pairs.items():
        counts[left] += count
    total = math.fsum(counts.values())
    return -math.fsum(n / total * math.log(n / counts[left]) for (left, _), n in pairs.items())


def _next_characters(belief: _Belief) -> dict[str, float]:
    """The distribution of the next character under a belief."""
    probs: dict[str, list[float]] = defaultdict(list)
    for (text, _, _), p in belief.items():
        probs[text[0]].append(p)
    return {char: math.fsum(values) for char, values in probs.items()}


def _impossible(text: str, position: int, allowed: Iterable[str]) -> str:
    before = text[max(0, position - 30) : position]
    return (
        f"no story has {text[position]!r} at position {position}, after {before!r}; "
        f"only {_listed(sorted(allowed))} can be there"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names) or "none"
