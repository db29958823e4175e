"""Every story of a small grammar with its probability: all choices, one after the other."""

import re

TINY_RULES = {
    "story": {"{hello} {pet}. {act}\n": 3, "No {pet}.\n": 1},
    "hello": {"A {size}": 2, "The": 1},
    "size": {"big": 1, "tiny": 2},
    "act": {"{It} ate {food}.": 2, "The {pet} ran.": 1},
}
TINY_CAST = {
    "pet": {"cat": 3, "cow": 2},
    "It given pet": {"cat": "She", "cow": "It"},
    "food given pet": {"cat": {"fish": 3, "pie": 1}, "cow": {"pie": 1, "pies": 2}},
}


def derivations(rules, cast, todo, values, prefix=None):
    """Every (text, probability) of a list of pieces, by brute force over all choices.

    With a `prefix`, only the derivations of exactly that text: a backtracking parser.
    """
    if not todo:
        if not prefix:
            yield "", 1.0
        return
    first, rest = todo[0], todo[1:]
    if not first.startswith("{"):
        if prefix is None or prefix.startswith(first):
            left = None if prefix is None else prefix[len(first) :]
            for text, p in derivations(rules, cast, rest, values, left):
                yield first + text, p
        return
    name = first[1:-1]
    for new_todo, new_values, p in choices(rules, cast, name, rest, values):
        for text, q in derivations(rules, cast, new_todo, new_values, prefix):
            yield text, p * q


def choices(rules, cast, name, rest, values):
    if name in rules:
        for template, p in normalised(rules[name]):
            yield re.findall(r"\{\w+\}|[^{]+", template) + rest, values, p
    elif name in values:
        yield [values[name], *rest], values, 1.0
    else:
        for new_values, p in cast_choices(cast, name, values):
            yield [new_values[name], *rest], new_values, p


def cast_choices(cast, name, values):
    key = next(key for key in cast if key.split(" given ")[0] == name)
    parent = key.partition(" given ")[2]
    if not parent:
        for value, p in normalised(cast[key]):
            yield {**values, name: value}, p
    else:
        cases = [(values, 1.0)] if parent in values else cast_choices(cast, parent, values)
        for known, p in cases:
            for value, q in normalised(cast[key][known[parent]]):
                yield {**known, name: value}, p * q


def normalised(options):
    options = {options: 1} if isinstance(options, str) else options
    total = sum(options.values())
    return [(text, weight / total) for text, weight in options.items()]


def all_stories(grammar):
    return list(derivations(grammar.rules, grammar.cast, ["{story}"], {}))
