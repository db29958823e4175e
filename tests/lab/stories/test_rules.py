"""Grammars that cannot be read are refused, with a word about the remedy."""

import pytest

from tinytorch_book.stories import StoryGrammar


def refuse(match, rules, cast=None, error=ValueError):
    with pytest.raises(error, match=match):
        StoryGrammar(rules, cast)


@pytest.mark.parametrize(
    ("match", "rules"),
    [
        ("no rule 'story' to start from; the rules are 'tale'", {"tale": "x\n"}),
        ("'story' refers to 'cat', which is neither in the rules", {"story": "A {cat}.\n"}),
        ("no story can reach 'dog'", {"story": "A.\n", "dog": "d"}),
        (r"contains itself \(a -> b -> a\)", {"story": "{a}\n", "a": "x {b}", "b": "y {a}"}),
        ("weight of 'A.\\\\n' is 0; weights are positive", {"story": {"A.\n": 0}}),
        ("weight of 'A.\\\\n' is nan", {"story": {"A.\n": float("nan")}}),
        ("rule 'story' has no options", {"story": {}}),
        ("rule 'a' has an empty option", {"story": "{a}.\n", "a": {"": 1, "x": 1}}),
        ("does not end with a newline", {"story": "A."}),
        ("a newline inside", {"story": "A.\nB.\n"}),
        ("rule 'a': a newline inside", {"story": "{a}.\n", "a": "x\n"}),
        ("an unmatched brace", {"story": "A {cat.\n"}),
        ("touches a letter or another symbol", {"story": "A{x}.\n", "x": "b"}),
        ("touches a letter or another symbol", {"story": "{x}'s.\n", "x": "b"}),
        ("touches a letter or another symbol", {"story": "{x}{x}.\n", "x": "b"}),
        ("rule 'a b': a name is one word", {"story": "A.\n", "a b": "x"}),
    ],
)
def test_invalid_rules_are_refused(match, rules):
    refuse(match, rules)


@pytest.mark.parametrize(
    ("match", "cast"),
    [
        ("'pet given owner': 'owner' is not one of the cast", {"pet given owner": {}}),
        (
            "missing: 'cow'; unknown: 'dog'",
            {"pet": {"cat": 1, "cow": 1}, "x given pet": {"cat": "a", "dog": "b"}},
        ),
        ("has braces, a newline or spaces around it", {"pet": {"{cat}": 1}}),
        ("has braces, a newline or spaces around it", {"pet": "cat "}),
        ("'story': this name is defined twice", {"story": "x"}),
        ("or 'name given parent'", {"my pet": "x"}),
    ],
)
def test_an_invalid_cast_is_refused(match, cast):
    refuse(match, {"story": "{pet}.\n"}, cast)


def test_arguments_of_the_wrong_type_are_refused():
    refuse("rules must be a dictionary", ["A.\n"], error=TypeError)
    refuse("cast must be a dictionary", {"story": "A.\n"}, ["x"], error=TypeError)
    refuse(
        "weight of 'A.\\\\n' must be a number, got '1'", {"story": {"A.\n": "1"}}, error=TypeError
    )
    refuse("a text or a dictionary from texts to weights", {"story": ["A.\n"]}, error=TypeError)
    refuse("an option must be a text", {"story": {3: 1}}, error=TypeError)
    table = {"pet": "cat", "food given pet": "fish"}
    refuse("a row for each value", {"story": "{food}.\n"}, table, error=TypeError)
