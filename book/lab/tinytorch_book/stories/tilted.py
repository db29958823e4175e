r"""The best that a reward can make of a grammar's stories, exactly.

A reward gives *points* for words, each time they are written, and a story has the sum. Of all ways
to write stories, the one with the largest expected reward minus `beta` times its divergence from
the grammar writes a story with the grammar's probability times `exp(reward / beta)`, over a
constant Z. No story needs to be listed for it. From the end of the stories to their beginning::

    value(state) = sum over the next steps of  p * exp(points / beta) * value(state after it)

Z is the value at the beginning, and the optimum takes a step with its term's share of the sum. What
cannot matter any more is forgotten on the way (whom a story is about, once nothing that scores
depends on it), so that few states are left.

    >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1}})
    >>> best = TiltedStories(tiny, {"cow": 1.0}, beta=1 / math.log(6))
    >>> round(math.exp(best.log_z), 4)  # 3/4 + 1/4 of 6
    2.25
    >>> round(best.reward, 4)  # a cow now has 6/9, no longer 1/4
    0.6667
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate

import numpy as np

from tinytorch_book.stories.grammar import StoryGrammar
from tinytorch_book.stories.rules import WORD, Choice, Known, Parts, Rules

__all__ = ["TiltedStories", "every_story", "reward_distribution", "reward_of"]

Points = Mapping[str, float]  # of a word, each time that it is written; others have none
State = tuple[Parts, Known]
Step = tuple[float, float, str, State]  # probability, points, characters, the state after it


def reward_of(text: str, points: Points) -> float:
    """The reward of any text, a story or not: the sum of the points of its words.

    Args:
        text: Split as by `StoryGrammar.words`.
        points: The points of each word that has any.

    Example:
        >>> reward_of("The cow was happy, and Mia was happy too.", {"happy": 1.0, "cow": -0.5})
        1.5
    """
    return math.fsum(points.get(word, 0.0) for word in WORD.findall(text))


def every_story(grammar: StoryGrammar, most: int = 100_000) -> dict[str, float]:
    r"""Every story that a grammar can write, with its probability.

    Raises:
        ValueError: There are more than `most`.

    Example:
        >>> every_story(StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1}}))
        {'a cat.\n': 0.75, 'a cow.\n': 0.25}
    """
    walk, found = _Steps(grammar._rules, {}), {}
    todo = [(1.0, "", walk.start)]
    while todo:
        prob, text, state = todo.pop()
        if not state[0]:
            found[text] = prob
        todo += [(prob * p, text + piece, after) for p, _, piece, after in walk.steps(state)[::-1]]
        if len(found) + len(todo) > most:
            raise ValueError(
                f"the grammar can write more than {most} stories; pass a larger most=, or use "
                "TiltedStories, which lists none"
            )
    return found


def reward_distribution(grammar: StoryGrammar, points: Points) -> tuple[np.ndarray, np.ndarray]:
    r"""Every reward that a story can have, and how probable it is, exactly.

    Tilting multiplies a story's probability by a function of its reward alone. So this is all one
    needs for Z, the expected reward and the divergence, at every `beta`.

    Args:
        grammar: The grammar.
        points: The points of each word that has any; only a few different numbers, or there are
            too many sums.

    Returns:
        The rewards `(n,)`, rising, and their probabilities `(n,)`, which sum to 1.

    Example:
        >>> tiny = StoryGrammar({"story": "{a} and {a}\n", "a": {"cat": 3, "cow": 1}})
        >>> reward_distribution(tiny, {"cow": 1.0})
        (array([0., 1., 2.]), array([0.5625, 0.375 , 0.0625]))
    """
    walk = _Steps(grammar._rules, points)
    known: dict[State, dict[float, float]] = {}
    for state in walk.backwards():
        sums: dict[float, float] = defaultdict(float)
        for p, earned, _, after in walk.steps(state):
            for later, q in known[walk.forget(after)].items():
                sums[round(earned + later, 9)] += p * q
        known[state] = sums if state[0] else {0.0: 1.0}
    found = sorted(known[walk.start].items())
    return np.array([reward for reward, _ in found]), np.array([p for _, p in found])


class TiltedStories:
    """The stories that are the optimum of expected reward minus `beta` times the divergence.

    Args:
        grammar: What is tilted: the reference from which the divergence is measured.
        points: The points of each word that has any.
        beta: What a nat of divergence costs, in points; `math.inf` leaves the grammar as it is.

    Attributes:
        beta: As given.
        log_z: The logarithm of the constant Z; `beta * log_z` is the value of the optimum.
        reward: The expected reward of a story of the optimum.
        kl: The divergence of the optimum from the grammar, in nats a story.

    Raises:
        ValueError: `beta` is not positive.

    Example:
        >>> best = TiltedStories(StoryGrammar(), {"happy": 1.0}, beta=0.5)
        >>> round(best.reward, 3), round(best.kl, 3)
        (1.203, 1.207)
        >>> abs(best.reward - best.beta * best.kl - best.beta * best.log_z) < 1e-9
        True
    """

    def __init__(self, grammar: StoryGrammar, points: Points, beta: float) -> None:
        if not beta > 0:
            raise ValueError(f"beta must be above 0, got {beta}; the smaller, the further it goes")
        self.beta, self._walk = beta, _Steps(grammar._rules, points)
        self._logs: dict[State, float] = {}  # of the value of each state
        for state in self._walk.backwards():
            self._logs[state] = self._log_value(state)
        self.log_z = self._logs[self._walk.start]
        self.reward = self.expected(points)
        self.kl = max(0.0, self.reward / beta - self.log_z)

    def expected(self, points: Points) -> float:
        """What a story of the optimum earns on average, by the same or by other points.

        Example:
            >>> best = TiltedStories(StoryGrammar(), {"happy": 1.0}, beta=0.5)
            >>> round(best.expected({"happy": 1.0, "glad": 1.0}), 3)
            1.285
        """
        walk = _Steps(self._walk.rules, {**self._walk.points}, also=points)
        expected: dict[State, float] = {}
        for state in walk.backwards():
            total = 0.0
            for share, text, after in self._shares(walk, state):
                total += share * (reward_of(text, points) + expected[walk.forget(after)])
            expected[state] = total
        return expected[walk.start]

    def stories(self, seed: int = 0) -> Iterator[str]:
        """Write stories of the optimum endlessly, as `StoryGrammar.stories` those of the grammar.

        Example:
            >>> best = TiltedStories(StoryGrammar(), {"owl": 1.0}, beta=0.1)
            >>> "owl" in next(best.stories(seed=1))
            True
        """
        uniform = np.random.Generator(np.random.PCG64(seed)).random
        while True:
            state, text = self._walk.start, ""
            while state[0]:
                shares, pieces, states = zip(*self._shares(self._walk, state), strict=True)
                drawn = Choice(
                    tuple(map(str, range(len(shares)))), shares, tuple(accumulate(shares))
                )
                index = int(drawn.draw(uniform))
                text, state = text + pieces[index], states[index]
            yield text

    def _log_value(self, state: State) -> float:
        """The logarithm of a sum of exponentials, the largest taken out."""
        logs = [
            math.log(p) + earned / self.beta + self._logs[self._walk.forget(after)]
            for p, earned, _, after in self._walk.steps(state)
        ] or [0.0]
        largest = max(logs)
        return largest + math.log(math.fsum(math.exp(log - largest) for log in logs))

    def _shares(self, walk: _Steps, state: State) -> list[tuple[float, str, State]]:
        """The steps that the optimum takes from a state, with their probabilities."""
        value = self._logs[self._walk.forget(state)]
        return [
            (
                p * math.exp(earned / self.beta + self._logs[self._walk.forget(after)] - value),
                text,
                after,
            )
            for p, earned, text, after in walk.steps(state)
        ]


class _Steps:
    """The steps of a grammar, the points that each earns, and what a state may forget."""

    def __init__(self, rules: Rules, points: Points, also: Points | None = None) -> None:
        self.rules, self.points = rules, points
        self.start: State = (rules.start, rules.nothing)
        self._later: dict[Parts, frozenset[str]] = {(): frozenset()}
        self._earned: dict[str, float] = {}
        self._telling = self._members_that_tell([points, also or {}])

    def steps(self, state: State) -> list[Step]:
        """Each (probability, points, characters, state after it) of the next piece of a story."""
        parts, known = state
        return [
            (p * q, self._points(text), text, (rest, after))
            for p, part, rest in (self.rules.openings(parts) if parts else ())
            for q, text, after in self.rules.values(part, known)
        ]

    def forget(self, state: State) -> State:
        """The state without the choices that nothing to come depends on."""
        parts, known = state
        kept = set()
        for symbol in self._written_later(parts):
            while symbol:
                number, parent, _ = self.rules.members[symbol]
                kept.add(number)
                symbol = parent if known[number] is None else ""
        return parts, tuple(v if i in kept else None for i, v in enumerate(known))

    def backwards(self) -> Iterator[State]:
        """Every state, without what it may forget, after all those that can follow it."""
        done: set[State] = set()
        todo = [self.start]
        while todo:
            state = todo[-1]
            new = {self.forget(after) for *_, after in self.steps(state)} - done
            if new:
                todo.extend(new)
                continue
            todo.pop()
            if state not in done:
                done.add(state)
                yield state

    def _points(self, text: str) -> float:
        if text not in self._earned:
            self._earned[text] = reward_of(text, self.points)
        return self._earned[text]

    def _members_that_tell(self, rewards: list[Points]) -> set[str]:
        """The members of the cast whose value decides about points when it is written.

        `forget` keeps the parents of those that are still to be chosen.
        """
        return {
            symbol
            for symbol, member in self.rules.members.items()
            if any(len({reward_of(text, p) for text in member.texts}) > 1 for p in rewards)
        }

    def _written_later(self, parts: Parts) -> frozenset[str]:
        """The members that tell and may still be written."""
        if parts not in self._later:
            first = parts[0]
            found = set(self._written_later(parts[1:])) | ({first} & self._telling)
            for text in self.rules.choices[first].texts if first in self.rules.choices else ():
                found |= self._written_later(self.rules.parts[text])
            self._later[parts] = frozenset(found)
        return self._later[parts]
