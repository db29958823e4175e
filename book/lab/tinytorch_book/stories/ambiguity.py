"""Check that a reader can tell every choice of a story from its text alone.

If so, a story has exactly one derivation, and its probability is the product of its choices'
probabilities: everything that the book knows exactly about its stories rests on this.

It is enough that no option's text is a prefix of another option's. For suppose that a text had two
derivations, and take the first choice in which they differ: both options begin at the same
character, so the text of one is a prefix of the text of the other.
"""

from __future__ import annotations

from itertools import combinations

from tinytorch_book.stories.rules import Chosen, Parts, Rules, is_letter

__all__ = ["check_unambiguous"]


def check_unambiguous(rules: Rules) -> None:
    r"""Refuse a grammar unless every choice can be read off the text."""
    _check_rules(rules)
    _check_cast(rules)


def _check_rules(rules: Rules) -> None:
    """Raise if an option's text is a prefix of another's."""
    for symbol, choice in rules.choices.items():
        for one, other in combinations(choice.texts, 2):
            if _one_begins_the_other(rules, rules.parts[one], rules.parts[other]):
                raise ValueError(
                    f"rule {symbol[1:-1]!r}: {one!r} and {other!r} can begin with the same "
                    "complete text, so a reader could not tell which one was chosen; "
                    "let every option differ from the others before it ends"
                )


def _check_cast(rules: Rules) -> None:
    """Raise unless the first mention of a member of the cast reveals all that it chooses."""
    for symbol, chosen in _mentions(rules):
        parent = rules.members[rules.unchosen(symbol, chosen)[-1]].parent
        for _, _, known in rules.values(parent, rules.nothing):
            values = [text for _, text, _ in rules.values(symbol, known)]
            for one, other in combinations(values, 2):
                if _one_begins_the_other(rules, (one,), (other,)):
                    before = f"mention {rules.members[symbol].parent} before {symbol}"
                    remedy = before if one == other else "choose other words"
                    raise ValueError(
                        f"cast {symbol[1:-1]!r}: the values {one!r} and {other!r} cannot be told "
                        f"apart where {symbol} is mentioned first; {remedy}"
                    )


def _mentions(rules: Rules) -> list[tuple[str, Chosen]]:
    """Every first mention of a member of the cast: its symbol, and who was chosen before."""
    mentions = ((parts[0], chosen) for parts, chosen in rules.states)
    return [mention for mention in dict.fromkeys(mentions) if rules.unchosen(*mention)]


def _one_begins_the_other(rules: Rules, one: Parts, other: Parts) -> bool:
    """Whether a text of one is a text of the other, or the beginning of one, in whole words."""
    todo = [(one, other)]
    seen = set(todo)
    while todo:
        left, right = todo.pop()
        for a, a_rest in _beginnings(rules, left):
            for b, b_rest in _beginnings(rules, right):
                size = min(len(a), len(b))
                if a[:size] != b[:size]:
                    continue
                pair = (_parts(a[size:], a_rest), _parts(b[size:], b_rest))
                inside_a_word = is_letter(a[size - 1]) and is_letter((a[size:] + b[size:])[:1])
                if not all(pair) and not inside_a_word:
                    return True
                if pair not in seen:
                    seen.add(pair)
                    todo.append(pair)
    return False


def _beginnings(rules: Rules, parts: Parts) -> list[tuple[str, Parts]]:
    """The characters that a text can begin with, whatever the cast, and the parts after them."""
    return [
        (value, rest)
        for _, first, rest in (rules.openings(parts) if parts else ())
        for _, value, _ in rules.values(first, rules.nothing)
    ]


def _parts(text: str, rest: Parts) -> Parts:
    return (text, *rest) if text else rest
