"""A small grammar that writes children's stories, and knows exactly how surprising they are.

    >>> import textwrap
    >>> print(textwrap.fill(StoryGrammar().generate(1, seed=0), 70))
    Mia was a brave girl. One snowy afternoon she hopped to the barn. A
    tiny hen ran after her and asked for some bread. Mia gave it some
    bread, and it ate and ate and ate. After that, the hen came to tea
    every morning.

The stories are data: `tinytorch_book.stories.story_rules` lists and explains them,
`tinytorch_book.stories.rules` reads them. Three facts make everything about them computable:

* *Every choice can be read off the text.* No option's text is a prefix of another option's, so a
  reader going from left to right can tell every choice that was made: a story has exactly one
  derivation. The constructor checks this.
* *The rules do not look at the cast.* Which sentence comes next does not depend on which animal
  the story is about, so expectations can be summed over rules and cast separately
  (`tinytorch_book.stories.entropy`).
* *A story ends with its only newline.* Stories follow one another independently, so the entropy of
  one story divided by its expected length is the entropy rate of the endless text: no reader can
  do better than `tinytorch_book.stories.oracle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, repeat
from typing import Any

import numpy as np

from tinytorch_book.stories.ambiguity import check_unambiguous
from tinytorch_book.stories.entropy import Pairs, StoryEntropy, expected_pairs, story_entropy
from tinytorch_book.stories.oracle import Oracle
from tinytorch_book.stories.rules import WORD, Rules, listed
from tinytorch_book.stories.story_rules import STORY_CAST, STORY_KINDS, STORY_RULES

__all__ = ["StoryGrammar"]


class StoryGrammar:
    r"""A probabilistic grammar of stories: it writes them, and knows how probable each text is.

    Args:
        rules: A text for every symbol, or a dictionary from texts to weights; `{name}` in a text
            refers to a rule or to the cast. The start symbol is `"story"`; its texts end with a
            newline, the only one in a story. By default, the stories of this book.
        cast: What is chosen once per story: for every name a word, a dictionary from words to
            weights, or, when the key is `"name given parent"`, a dictionary with one of these for
            each value of the parent. Values are plain text, without references.
        kinds: Classes of words, each a tuple of the names of rules and cast whose words belong to
            it; by default one class for every symbol that chooses between single words.

    Attributes:
        rules: The rules, as given.
        cast: The cast, as given.
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
        own = rules is None  # the book's grammar: a test checks it, which takes a while
        if rules is None:
            if cast is not None or kinds is not None:
                raise ValueError("cast and kinds need their own rules; pass rules= as well")
            rules, cast, kinds = STORY_RULES, STORY_CAST, STORY_KINDS
        self._rules = Rules(rules, {} if cast is None else cast)
        if not own:
            check_unambiguous(self._rules)
        self._oracle = Oracle(self._rules)
        self.rules = dict(rules)
        self.cast = dict(cast or {})
        self.kinds = self._collect_kinds(kinds)

    # -------------------------------------------------------------------- writing

    def generate(self, num_stories: int, seed: int = 0) -> str:
        r"""Write stories, one per line.

        Args:
            num_stories: How many, 0 or more.
            seed: The same seed gives the same text on every platform and NumPy version; a larger
                `num_stories` only adds to it.

        Returns:
            The stories, one after another; each ends with a newline.

        Example:
            >>> StoryGrammar().generate(3, seed=1).count("\n")
            3
        """
        return "".join(islice(self.stories(seed), _natural("num_stories", num_stories)))

    def stories(self, seed: int = 0) -> Iterator[str]:
        """Write stories endlessly.

        Args:
            seed: An integer, 0 or more.

        Yields:
            One story at a time, with its newline.

        Example:
            >>> next(StoryGrammar().stories(seed=1)) == StoryGrammar().generate(1, seed=1)
            True
        """
        uniform = np.random.Generator(np.random.PCG64(_natural("seed", seed))).random
        return (self._write(draw) for draw in repeat(uniform))

    def _write(self, uniform: Callable[[], float]) -> str:
        """One story, expanded from the start symbol; `uniform` draws numbers from [0, 1)."""
        pieces: list[str] = []
        values = {"": ""}
        todo = list(self._rules.start)
        while todo:
            part = todo.pop()
            if part in self._rules.choices:
                text = self._rules.choices[part].draw(uniform)
                todo.extend(reversed(self._rules.parts[text]))
            elif part in self._rules.members:
                pieces.append(self._value(part, values, uniform))
            else:
                pieces.append(part)
        return "".join(pieces)

    def _value(self, symbol: str, values: dict[str, str], uniform: Callable[[], float]) -> str:
        """The value of a member of the cast, chosen now (after its parent) if it is new."""
        if symbol not in values:
            _, parent, rows = self._rules.members[symbol]
            values[symbol] = rows[self._value(parent, values, uniform)].draw(uniform)
        return values[symbol]

    # -------------------------------------------------------------------- words

    @staticmethod
    def words(text: str) -> list[str]:
        """Split a text into words, punctuation marks and newlines; spaces are dropped.

        Args:
            text: Any text.

        Returns:
            The tokens. Of the stories of this book, only spaces are lost.

        Example:
            >>> StoryGrammar.words('"I am so sad!" it said.')
            ['"', 'I', 'am', 'so', 'sad', '!', '"', 'it', 'said', '.']
        """
        return WORD.findall(text)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        r"""Every token that `words` can return for a story, sorted.

        Example:
            >>> StoryGrammar().vocabulary[:8]
            ('\n', '!', '"', ',', '.', 'A', 'After', 'And')
        """
        return tuple(sorted({word for _, word in self._word_pairs}))

    @cached_property
    def alphabet(self) -> str:
        r"""Every character that a story can contain, sorted.

        Example:
            >>> StoryGrammar().alphabet
            '\n !",.ABHILMOSTabcdefghiklmnoprstuvwxy'
        """
        return "".join(sorted({char for _, char in self._character_pairs}))

    # -------------------------------------------------------------------- what is known exactly

    @cached_property
    def entropy(self) -> StoryEntropy:
        """The exact entropy of the stories, and the floors of models that see less of them.

        Example:
            >>> print(StoryGrammar().entropy)
            nats per                     character    word
            all equally likely              3.6376  5.4116
            how frequent each is            2.9627  4.7210
            seeing the one before           2.0936  1.6678
            seeing everything before        0.1144  0.4577
        """
        return story_entropy(self._rules, self._character_pairs, self._word_pairs)

    @cached_property
    def _character_pairs(self) -> Pairs:
        return expected_pairs(self._rules, list)

    @cached_property
    def _word_pairs(self) -> Pairs:
        return expected_pairs(self._rules, self.words)

    # -------------------------------------------------------------------- the oracle

    def log_probs(self, text: str, *, start: str = "story", strict: bool = True) -> np.ndarray:
        r"""Exact log-probability of every character of a text, given all characters before it.

        Over a long text, their negative mean approaches the grammar's entropy per character: the
        lowest loss that any model can reach.

        Args:
            text: Any number of stories, one after another; the last one may be cut off.
            start: `"story"`: the text begins where a story begins. `"anywhere"`: it is a window
                cut from the endless text at a random character, and what came before it is
                unknown.
            strict: Raise an error for a text that the grammar cannot produce. With `False`, the
                first impossible character and all those after it get minus infinity.

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
        return self._oracle.log_probs(text, start, strict)

    def word_log_probs(self, text: str) -> np.ndarray:
        r"""Exact log-probability of every word of `words(text)`, given all words before it.

        That a word has ended is known only when the next character is not a letter; this part of
        the surprise (the negative log-likelihood) is counted with the word, not with the one that
        follows. The sum equals that of `log_probs(text)`.

        Args:
            text: Any number of complete stories.

        Returns:
            Natural logarithms, float64, one for each word of `words(text)`.

        Raises:
            ValueError: The text is impossible, or its last story is cut off.

        Example:
            >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cats": 1}})
            >>> np.exp(tiny.word_log_probs("a cats.\n")).round(2).tolist()
            [1.0, 0.25, 1.0, 1.0]
        """
        return self._oracle.word_log_probs(text)

    def next_character_probs(self, prefix: str, *, start: str = "story") -> dict[str, float]:
        """The exact distribution of the character that follows a text.

        Args:
            prefix: As `text` in `log_probs`; may be empty.
            start: As in `log_probs`.

        Returns:
            The probabilities, which sum to 1, of the characters that can follow, in sorted order.

        Raises:
            ValueError: The grammar cannot produce `prefix`.

        Example:
            >>> probs = StoryGrammar().next_character_probs("One sunny ")
            >>> {char: round(p, 3) for char, p in probs.items()}
            {'a': 0.143, 'd': 0.286, 'e': 0.214, 'm': 0.357}
        """
        return self._oracle.next_character_probs(prefix, start)

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

    def _collect_kinds(
        self, kinds: Mapping[str, Sequence[str]] | None
    ) -> dict[str, tuple[str, ...]]:
        """The words of each kind, in the order of the grammar."""
        words = {symbol[1:-1]: choice.texts for symbol, choice in self._rules.choices.items()}
        words |= {symbol[1:-1]: member.texts for symbol, member in self._rules.members.items()}
        if kinds is None:
            kinds = {
                name: (name,)
                for name, texts in words.items()
                if len(texts) > 1 and all(WORD.fullmatch(text) for text in texts)
            }
        for kind, names in kinds.items():
            for name in names:
                if name not in words:
                    raise ValueError(
                        f"kind {kind!r} names {name!r}, which is neither in the rules nor in the "
                        f"cast; there are {listed(words)}"
                    )
        return {
            kind: tuple(dict.fromkeys(word for name in names for word in words[name]))
            for kind, names in kinds.items()
        }


def _natural(name: str, number: int) -> int:
    """A non-negative integer, checked."""
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {number!r}")
    if number < 0:
        raise ValueError(f"{name} must be 0 or more, got {number}")
    return int(number)
