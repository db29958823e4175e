"""The oracle: what the best possible reader expects next, exactly.

A reader of a story does not see the choices, only their text so far. What it knows is a *belief*:
a probability for every hypothesis that is consistent with the text. Reading one more character is
a step of the forward algorithm: keep the hypotheses that predict the character, divide by their
total probability, and move those that have finished a part on to the next one. That total is the
probability of the character given everything before it. No model can do better.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from tinytorch_book.stories.entropy import expected_visits
from tinytorch_book.stories.rules import WORD, Known, Parts, Rules, is_letter, listed

__all__ = ["Oracle"]

Belief = dict[tuple[str, Parts, Known], float]  # (characters to come, then, cast): probability


class Oracle:
    """Follows a text with a belief; `StoryGrammar` documents its methods.

    Args:
        rules: The grammar.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def log_probs(self, text: str, start: str, strict: bool) -> np.ndarray:
        """The log-probability of every character, given all characters before it."""
        known = [math.log(prob) for prob, _ in self.follow(text, start, strict)]
        return np.array(known + [-math.inf] * (len(text) - len(known)))

    def word_log_probs(self, text: str) -> np.ndarray:
        """The log-probability of every word, given all words before it."""
        result = np.zeros(len(text))
        belief = self.story
        for position, (prob, after) in enumerate(self.follow(text)):
            result[position] += math.log(prob)
            if position and is_letter(text[position - 1]) and not is_letter(text[position]):
                probs = next_characters(belief)
                over = math.log(math.fsum(p for c, p in probs.items() if not is_letter(c)))
                result[position - 1] += over
                result[position] -= over
            belief = after
        if text and not text.endswith("\n"):
            raise ValueError("the last story is cut off; every story ends with a newline")
        sums = np.concatenate([[0.0], np.cumsum(result)])
        ends = [0, *(match.end() for match in WORD.finditer(text))]
        return np.diff(sums[ends])

    def next_character_probs(self, prefix: str, start: str) -> dict[str, float]:
        """The distribution of the character that follows."""
        belief = self.first_belief(start)
        for _, after in self.follow(prefix, start):
            belief = after
        return dict(sorted(next_characters(belief).items()))

    def follow(
        self, text: str, start: str = "story", strict: bool = True
    ) -> Iterator[tuple[float, Belief]]:
        """For each character of a text: its probability, and the belief after it."""
        if not isinstance(text, str):
            raise TypeError(f"the oracle reads a string, got {type(text).__name__}")
        belief = self.first_belief(start)
        for position, char in enumerate(text):
            prob, after = self.read(belief, char)
            if after:
                yield prob, after
            elif not strict:
                return
            else:
                allowed = listed(sorted(next_characters(belief)))
                raise ValueError(
                    f"no story has {char!r} at position {position}, after "
                    f"{text[max(0, position - 30) : position]!r}; only {allowed} can be there"
                )
            belief = after

    def read(self, belief: Belief, char: str) -> tuple[float, Belief]:
        """The probability of a character, and the belief after it (empty if it is impossible)."""
        kept = {key: p for key, p in belief.items() if key[0][0] == char}
        prob = 1.0 if len(kept) == len(belief) else min(1.0, math.fsum(kept.values()))
        after: Belief = {}
        for (text, rest, known), p in kept.items():
            one = [(1.0, (text[1:], rest, known))]
            for q, key in one if len(text) > 1 else self.unfold(rest, known):
                after[key] = after.get(key, 0.0) + q * p / prob
        return prob, after

    def unfold(
        self, parts: Parts, known: Known
    ) -> Iterator[tuple[float, tuple[str, Parts, Known]]]:
        """Every hypothesis that these parts can begin with; after a story comes another one."""
        if not parts:
            parts, known = self.rules.start, self.rules.nothing
        for p, part, rest in self.rules.openings(parts):
            for q, text, after in self.rules.values(part, known):
                yield p * q, (text, rest, after)

    def first_belief(self, start: str) -> Belief:
        """What is known before the first character is read."""
        if start not in ("story", "anywhere"):
            raise ValueError(f"start must be 'story' or 'anywhere', got {start!r}")
        return self.story if start == "story" else self.anywhere

    @cached_property
    def story(self) -> Belief:
        """The beginning of a story."""
        return {key: p for p, key in self.unfold((), self.rules.nothing)}

    @cached_property
    def anywhere(self) -> Belief:
        """The stationary distribution: where in a story a random character of the endless text is.

        Members of the cast that have not appeared in a window yet are left open. The rules do not
        look at them, so it makes no difference whether they were chosen before the window began.
        """
        belief: Belief = defaultdict(float)
        for (parts, _), counts in expected_visits(self.rules, list).items():
            if parts[0] not in self.rules.choices:
                visits = math.fsum(counts.values())
                for p, text, known in self.rules.values(parts[0], self.rules.nothing):
                    for offset in range(len(text)):
                        belief[text[offset:], parts[1:], known] += visits * p
        total = math.fsum(belief.values())  # the expected number of characters of a story
        return {key: p / total for key, p in belief.items()}


def next_characters(belief: Belief) -> dict[str, float]:
    """The distribution of the next character under a belief."""
    probs: dict[str, list[float]] = defaultdict(list)
    for (text, _, _), p in belief.items():
        probs[text[0]].append(p)
    return {char: math.fsum(values) for char, values in probs.items()}
