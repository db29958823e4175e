r"""The exact beliefs of the best possible reader about what a story has not said yet.

The oracle predicts the next character from its beliefs about the story: who it is about, which
animal will come, how it will end. Here each belief is computed after every character or every token
of a beginning.

    >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1, "dog": 4}})
    >>> hidden_values(tiny, "pet")
    ('cat', 'cow', 'dog')
    >>> beliefs(tiny, "a co", "pet").round(3)  # before "a", after "a", ..., after "a co"
    array([[0.375, 0.125, 0.5  ],
           [0.375, 0.125, 0.5  ],
           [0.375, 0.125, 0.5  ],
           [0.75 , 0.25 , 0.   ],
           [0.   , 1.   , 0.   ]])
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tinytorch_book.stories.grammar import StoryGrammar
from tinytorch_book.stories.oracle import Belief, Oracle
from tinytorch_book.stories.rules import Known, Parts, Rules, listed
from tinytorch_book.stories.tokens import Tokenizer, next_token_probs, words_at_every_token

__all__ = ["beliefs", "hidden_values", "token_beliefs"]


def hidden_values(grammar: StoryGrammar, name: str) -> tuple[str | None, ...]:
    """What a name can hide: the values of a member of the cast, or the options of a rule.

    Args:
        grammar: The grammar.
        name: A name of the cast or of a rule, without braces.

    Returns:
        The values, in the order of the grammar; `None` at the end if a story need not have the
        rule at all.

    Raises:
        ValueError: There is no such name.

    Example:
        >>> hidden_values(StoryGrammar(), "adventure")
        ('{lost} {found}', '{hungry} {shared}', '{lonely} {cheered}')
    """
    return _Reader(grammar._rules, name).values


def beliefs(grammar: StoryGrammar, text: str, name: str) -> np.ndarray:
    r"""The exact posterior over what is hidden, before a text and after each of its characters.

    It is about the story that the next character belongs to: after a newline, a new one. A member
    of the cast is chosen once per story, whether mentioned or not. For a rule, the first option
    that the story takes counts.

    Args:
        grammar: The grammar.
        text: Any number of stories, one after another; the last one may be cut off.
        name: A name of the cast or of a rule, without braces.

    Returns:
        Probabilities `(len(text) + 1, values)`, in the order of `hidden_values`; rows sum to 1.

    Raises:
        ValueError: There is no such name, or the grammar cannot produce the text.

    Example:
        >>> stories = StoryGrammar()
        >>> posterior = beliefs(stories, "Mia was a brave girl.", "child")
        >>> hidden_values(stories, "child"), posterior[[0, 1, 2]].round(3).tolist()
        (('girl', 'boy'), [[0.5, 0.5], [0.64, 0.36], [1.0, 0.0]])
    """
    reader = _Reader(grammar._rules, name)
    after = [reader.story, *(belief for _, belief in reader.follow(text))]
    return np.array([reader.posterior(belief) for belief in after])


def token_beliefs(grammar: StoryGrammar, tokenizer: Tokenizer, ids: Any, name: str) -> np.ndarray:
    r"""The exact posterior over what is hidden, before a text and after each of its tokens.

    A token can say more than its characters: see `tinytorch_book.stories.next_token_probs`, which
    cuts texts in the same way.

    Args:
        grammar: The grammar.
        tokenizer: As for `next_token_probs`.
        ids: The tokens `(n,)` of a text that begins where a story begins, as the tokenizer cuts
            it; the last word may be cut off.
        name: A name of the cast or of a rule, without braces.

    Returns:
        Probabilities `(n + 1, values)`, in the order of `hidden_values`; rows sum to 1.

    Raises:
        ValueError: There is no such name, the grammar cannot produce the text, or its stories are
            never cut like this.

    Example:
        >>> from tinytorch.text.tokenization import BPETokenizer
        >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1}})
        >>> tokenizer = BPETokenizer.train("a cat. a cat. a cow.", 259)  # " cat" is one token
        >>> token_beliefs(tiny, tokenizer, tokenizer.encode("a c"), "pet")[-1]
        array([0., 1.])
    """
    reader = _Reader(grammar._rules, name)
    given = np.asarray(ids, dtype=np.int64).tolist()
    rows = []
    for _, words in words_at_every_token(reader, tokenizer, given):
        if not words:
            next_token_probs(grammar, tokenizer, given)  # raises, and names the position
        posteriors = [reader.posterior(belief) for _, _, belief in words]
        rows.append(np.average(posteriors, axis=0, weights=[p for p, _, _ in words]))
    return np.array(rows)


class _Reader(Oracle):
    """An oracle whose hypotheses also remember which option of a rule was taken first.

    The option is stored after the cast, like one more member: `None` before it is taken.
    """

    def __init__(self, rules: Rules, name: str) -> None:
        super().__init__(rules)
        self.symbol = f"{{{name}}}"
        self._following: dict[Parts, list[tuple[float, str, Parts, str | None]]] = {}
        self._first: dict[Parts, dict[str | None, float]] = {(): {None: 1.0}}
        if self.symbol in rules.members:
            self.values: tuple[str | None, ...] = rules.members[self.symbol].texts
        elif self.symbol in rules.choices:
            self.values = rules.choices[self.symbol].texts
            if None in self.first_option(rules.start):
                self.values = (*self.values, None)
        else:
            there = f"rules ({listed(rules.choices)}) nor in the cast ({listed(rules.members)})"
            raise ValueError(f"no story hides {name!r}, which is neither in the {there}")

    def posterior(self, belief: Belief) -> np.ndarray:
        """The probability of each value under a belief, `(values,)`."""
        total = dict.fromkeys(self.values, 0.0)
        for (_, rest, known), p in belief.items():
            for value, q in self.expected(rest, known):
                total[value] += p * q
        return np.array(list(total.values()))

    def expected(self, rest: Parts, known: Known) -> Iterable[tuple[str | None, float]]:
        """Each value with its probability, given what is still to come and the known cast."""
        if self.symbol in self.rules.members:
            return ((text, p) for p, text, _ in self.rules.values(self.symbol, known))
        return self.first_option(rest).items() if known[-1] is None else [(known[-1], 1.0)]

    def first_option(self, parts: Parts) -> dict[str | None, float]:
        """Which option of the rule comes first in these parts, `None` if it does not come."""
        if parts not in self._first:
            first, rest = parts[0], parts[1:]
            options = self.rules.choices[first].pairs() if first in self.rules.choices else ()
            result: dict[str | None, float] = defaultdict(float)
            for text, p in options:
                if first == self.symbol:
                    result[text] += p
                    continue
                for value, q in self.first_option(self.rules.parts[text] + rest).items():
                    result[value] += p * q
            self._first[parts] = result or self.first_option(rest)
        return self._first[parts]

    def unfold(
        self, parts: Parts, known: Known
    ) -> Iterator[tuple[float, tuple[str, Parts, Known]]]:
        """As the oracle's, with the option noted."""
        if not parts:
            parts, known = self.rules.start, (*self.rules.nothing, None)
        for p, part, rest, option in self.openings(parts):
            noted = (*known[:-1], option) if known[-1] is None else known
            for q, text, after in self.rules.values(part, noted):
                yield p * q, (text, rest, after)

    def openings(self, parts: Parts) -> list[tuple[float, str, Parts, str | None]]:
        """As those of the rules, and which option of the rule each takes."""
        if parts not in self._following:
            first, rest = parts[0], parts[1:]
            options = self.rules.choices[first].pairs() if first in self.rules.choices else ()
            self._following[parts] = [
                (p * q, opening, following, text if first == self.symbol else option)
                for text, p in options
                for q, opening, following, option in self.openings(self.rules.parts[text] + rest)
            ] or [(1.0, first, rest, None)]
        return self._following[parts]
