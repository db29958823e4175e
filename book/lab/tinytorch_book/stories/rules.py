r"""The rules and the cast of a grammar, in the format of `tinytorch_book.stories.story_rules`.

What remains to be written of a story is a tuple of *parts*: characters, and symbols in braces.

    >>> rules = Rules({"story": "A {pet}.\n", "pet": {"cat": 3, "dog": 1}}, cast={})
    >>> rules.parts["A {pet}.\n"]
    ('A ', '{pet}', '.\n')
    >>> rules.openings(("{pet}", ".\n"))
    [(0.75, 'cat', ('.\n',)), (0.25, 'dog', ('.\n',))]

Everything else about stories is built on three questions that `Rules` answers: where a story can go
from here (`steps`), what it can begin with (`openings`), and which values the cast can have
(`values`), each with its probability.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Choice", "Member", "Rules"]

Parts = tuple[str, ...]  # characters and symbols, in the order of the text
Chosen = frozenset[str]  # the members of the cast that have been chosen
State = tuple[Parts, Chosen]  # what is still to come, and who has been chosen
Known = tuple[str | None, ...]  # the value of each member of the cast, None before it is chosen

WORD = re.compile(r"\w+(?:'\w+)*|[^\w ]")  # a word, a punctuation mark, or a newline


class Choice(NamedTuple):
    """A choice between texts, in the order of the grammar."""

    texts: tuple[str, ...]
    probs: tuple[float, ...]
    cumulative: tuple[float, ...]  # weights, not probabilities: sums of integers are exact

    def draw(self, uniform: Callable[[], float]) -> str:
        """The text on which a uniform number in [0, 1) falls (the inverse of the CDF)."""
        if len(self.texts) == 1:
            return self.texts[0]
        index = bisect_right(self.cumulative, uniform() * self.cumulative[-1])
        return self.texts[min(index, len(self.texts) - 1)]

    @property
    def nats(self) -> float:
        """Its entropy in nats."""
        return -math.fsum(p * math.log(p) for p in self.probs)

    def pairs(self) -> Iterator[tuple[str, float]]:
        """Each text with its probability."""
        return zip(self.texts, self.probs, strict=True)


class Member(NamedTuple):
    """A member of the cast: its number, its parent, and its choice for each value of the parent."""

    number: int
    parent: str  # a symbol, or "" without a parent
    rows: dict[str, Choice]  # by the value of the parent, or "" without a parent

    @property
    def texts(self) -> tuple[str, ...]:
        """Every value it can have."""
        return tuple(dict.fromkeys(text for row in self.rows.values() for text in row.texts))


class Rules:
    """A grammar, parsed and checked: every symbol exists, none contains itself, all are used.

    Args:
        rules: As for `StoryGrammar`.
        cast: As for `StoryGrammar`.

    Attributes:
        choices: The choice that each rule makes, by its symbol: `choices["{story}"]`.
        members: The cast, by symbol; parents come before their children.
        parts: The parts of each text of each rule.
        nothing: The cast of a story before anything has been chosen.
    """

    start: Parts = ("{story}",)

    def __init__(self, rules: Mapping[str, Any], cast: Mapping[str, Any]) -> None:
        self.choices = _read_rules(rules)
        self.members = _read_cast(cast, self.choices)
        self.parts = {
            text: _parse(symbol, text)
            for symbol, choice in self.choices.items()
            for text in choice.texts
        }
        self.nothing: Known = (None,) * len(self.members)
        self._openings: dict[Parts, list[tuple[float, str, Parts]]] = {}
        _check_references(self)

    def unchosen(self, part: str, chosen: Chosen) -> list[str]:
        """The members that are chosen when a part is written: the part itself and its parents."""
        symbols = []
        while part in self.members and part not in chosen:
            symbols.append(part)
            part = self.members[part].parent
        return symbols

    def steps(self, parts: Parts, chosen: Chosen) -> list[tuple[float, Parts, Chosen]]:
        """What is still to come and who has been chosen after one step, with probabilities."""
        if not parts:
            return []
        first, rest = parts[0], parts[1:]
        if first in self.choices:
            return [(p, self.parts[text] + rest, chosen) for text, p in self.choices[first].pairs()]
        return [(1.0, rest, chosen.union(self.unchosen(first, chosen)))]

    @cached_property
    def states(self) -> list[State]:
        """Every state in which something is still to come, in topological order."""
        following: dict[State, list[State]] = {}
        todo: list[State] = [(self.start, frozenset())]
        while todo:
            state = todo.pop()
            if state not in following:
                following[state] = [(rest, chosen) for _, rest, chosen in self.steps(*state)]
                todo.extend(following[state])
        order = list(TopologicalSorter(following).static_order())
        return [state for state in reversed(order) if state[0]]

    def values(self, part: str, known: Known) -> list[tuple[float, str, Known]]:
        """Every (probability, characters, cast afterwards) of a part that is not a rule."""
        if part not in self.members:
            return [(1.0, part, known)]
        number, parent, rows = self.members[part]
        value = known[number]
        if value is not None:
            return [(1.0, value, known)]
        return [
            (p * q, text, (*after[:number], text, *after[number + 1 :]))
            for p, case, after in self.values(parent, known)
            for text, q in rows[case].pairs()
        ]

    def openings(self, parts: Parts) -> list[tuple[float, str, Parts]]:
        """Every (probability, first part, rest) of a text once its leading rules are expanded."""
        if parts not in self._openings:
            first, rest = parts[0], parts[1:]
            options = self.choices[first].pairs() if first in self.choices else ()
            self._openings[parts] = [
                (p * q, opening, following)
                for text, p in options
                for q, opening, following in self.openings(self.parts[text] + rest)
            ] or [(1.0, first, rest)]
        return self._openings[parts]


def _read_rules(rules: Mapping[str, Any]) -> dict[str, Choice]:
    if not isinstance(rules, Mapping):
        raise TypeError(f"rules must be a dictionary, got {type(rules).__name__}")
    if "story" not in rules:
        raise ValueError(f"there is no rule 'story' to start from; the rules are {listed(rules)}")
    return {
        _symbol(name, "rule"): _read_choice(f"rule {name!r}", options)
        for name, options in rules.items()
    }


def _read_cast(cast: Mapping[str, Any], rules: Iterable[str]) -> dict[str, Member]:
    if not isinstance(cast, Mapping):
        raise TypeError(f"cast must be a dictionary, got {type(cast).__name__}")
    members: dict[str, Member] = {}
    for key, options in cast.items():
        name, *given = key.split(" given ", 1) if isinstance(key, str) else (key,)
        symbol = _symbol(name, "cast")
        if symbol in members or symbol in rules:
            raise ValueError(f"cast {name!r}: this name is defined twice; give it another one")
        if not given:
            members[symbol] = Member(len(members), "", {"": _read_choice(f"cast {key!r}", options)})
        elif (parent := f"{{{given[0]}}}") in members:
            rows = _read_rows(key, options, members[parent].texts)
            members[symbol] = Member(len(members), parent, rows)
        else:
            raise ValueError(
                f"cast {key!r}: {given[0]!r} is not one of the cast before it ({listed(members)})"
            )
        for text in members[symbol].texts:
            if re.search(r"[{}\n]", text) or text != text.strip():
                raise ValueError(
                    f"cast {name!r}: {text!r} has braces, a newline or spaces around it; "
                    "a value is plain text"
                )
    return members


def _read_rows(key: str, table: Any, cases: tuple[str, ...]) -> dict[str, Choice]:
    """A choice for every value of the parent: none missing, none unknown."""
    if not isinstance(table, Mapping):
        raise TypeError(
            f"cast {key!r} must be a dictionary with a row for each value, got {table!r}"
        )
    if set(table) != set(cases):
        missing = [case for case in cases if case not in table]
        unknown = [case for case in table if case not in cases]
        raise ValueError(
            f"cast {key!r}: there must be one row for each value of the parent; "
            f"missing: {listed(missing)}; unknown: {listed(unknown)}"
        )
    return {case: _read_choice(f"cast {key!r}, row {case!r}", table[case]) for case in cases}


def _read_choice(where: str, options: Any) -> Choice:
    """Weights normalised to probabilities; a single text is certain."""
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
    return Choice(tuple(options), tuple(w / total for w in weights), tuple(accumulate(weights)))


def _symbol(name: Any, where: str) -> str:
    """A name as it appears in a text: in braces."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(
            f"{where} {name!r}: a name is one word of letters, digits and underscores"
            + (", or 'name given parent'" if where == "cast" else "")
        )
    return f"{{{name}}}"


def _parse(symbol: str, text: str) -> Parts:
    """The parts of a text; a symbol is separated from the words beside it."""
    where = f"rule {symbol[1:-1]!r}"
    parts = tuple(re.findall(r"\{[^{}]*\}|[^{}]+", text))
    if "".join(parts) != text:
        raise ValueError(f"{where}: an unmatched brace in {text!r}")
    for left, right in pairwise(parts):
        if left[-1] + right[0] == "}{" or is_letter(left[-1]) or is_letter(right[0]):
            raise ValueError(
                f"{where}: in {text!r} a symbol touches a letter or another symbol; put a space "
                "or a punctuation mark between them, or give the whole word its own name"
            )
    remedy = "a story ends with '\\n', and has no other newline"
    if symbol == "{story}" and not text.endswith("\n"):
        raise ValueError(f"{where}: {text!r} does not end with a newline; {remedy}")
    if "\n" in text.removesuffix("\n" if symbol == "{story}" else ""):
        raise ValueError(f"{where}: a newline inside {text!r}; {remedy}")
    return parts


def _check_references(rules: Rules) -> None:
    """Raise unless every symbol exists, none contains itself, and all are used."""
    used: set[str] = set()

    def visit(symbol: str, path: Parts) -> None:
        if symbol in path:
            cycle = " -> ".join(name[1:-1] for name in (*path[path.index(symbol) :], symbol))
            raise ValueError(f"rule {symbol[1:-1]!r} contains itself ({cycle}); a story must end")
        if symbol in rules.choices and symbol not in used:
            for text in rules.choices[symbol].texts:
                for part in rules.parts[text]:
                    if part.startswith("{"):
                        visit(part, (*path, symbol))
        elif symbol in rules.members:
            used.update(rules.unchosen(symbol, frozenset()))
        elif symbol not in rules.choices:
            raise ValueError(
                f"rule {path[-1][1:-1]!r} refers to {symbol[1:-1]!r}, which is neither in the "
                f"rules ({listed(rules.choices)}) nor in the cast ({listed(rules.members)})"
            )
        used.add(symbol)

    visit("{story}", ())
    unused = [symbol for symbol in (*rules.choices, *rules.members) if symbol not in used]
    if unused:
        raise ValueError(f"no story can reach {listed(unused)}; refer to it or remove it")


def is_letter(char: str) -> bool:
    """Whether a character could be part of a word of `StoryGrammar.words`."""
    return char.isalnum() or (char != "" and char in "_'")


def listed(names: Iterable[str]) -> str:
    """Names for an error message; symbols lose their braces."""
    return ", ".join(repr(name.strip("{}")) for name in names) or "none"
