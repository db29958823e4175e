r"""What can be known of everybody and everything in a story once some of it has been read.

`beliefs` follows one thing along a text; this is all of the cast at the end of one, in one pass.

    >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": "{cat}"}, {"cat": {"Tom": 3, "Tim": 1}})
    >>> cast_beliefs(tiny, "a T")
    {'cat': {'Tom': 0.75, 'Tim': 0.25}}
"""

from __future__ import annotations

from tinytorch_book.stories.grammar import StoryGrammar

__all__ = ["cast_beliefs"]


def cast_beliefs(grammar: StoryGrammar, text: str) -> dict[str, dict[str, float]]:
    r"""The exact posterior over the value of each member of the cast, after a text.

    A member of the cast is chosen once per story, whether the story comes to mention it or not.

    Args:
        grammar: The grammar.
        text: The beginning of a story. A space at its end says that the last word has ended.

    Returns:
        For each member of the cast every value it can have, with its probability.

    Raises:
        ValueError: The grammar cannot produce the text.

    Example:
        >>> text = "It was a warm day, and Tom ran to the pond. "
        >>> after = cast_beliefs(StoryGrammar(), text)
        >>> {animal: round(p, 3) for animal, p in after["animal"].items() if p}
        {'goat': 0.1, 'duck': 0.5, 'frog': 0.4}
    """
    oracle, rules = grammar._oracle, grammar._rules
    belief = oracle.story
    for _, after in oracle.follow(text):
        belief = after
    found = {}
    for symbol, member in rules.members.items():
        found[symbol[1:-1]] = dict.fromkeys(member.texts, 0.0)
        for (_, _, known), p in belief.items():
            for q, value, _ in rules.values(symbol, known):
                found[symbol[1:-1]][value] += p * q
    return found
