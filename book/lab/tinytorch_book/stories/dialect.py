"""A second dialect of the stories: other names, another ending, a changed rule.

The same words appear in the same kinds of sentences, so the tokenizer of the stories also fits a
dialect, and a model of the stories can be fine-tuned to it. What it has learned and what it has
forgotten are both known exactly: a dialect is a `StoryGrammar`, with its own entropy and oracle.

Each change replaces some of `STORY_RULES` and `STORY_CAST`, and leaves the rest:

* `"names"`: all names are different, so no story of the dialect is one of the first grammar.
* `"ending"`: every story ends with other sentences.
* `"food"`: what is eaten depends on the *place*, no longer on the animal. The words are the same;
  a reader has to look elsewhere for what they follow from.
"""

from __future__ import annotations

from typing import Any

from tinytorch_book.stories.grammar import StoryGrammar
from tinytorch_book.stories.rules import listed
from tinytorch_book.stories.story_rules import STORY_CAST, STORY_KINDS, STORY_RULES

__all__ = ["DIALECT_CHANGES", "story_dialect"]

#: What each change replaces: a key of `STORY_RULES` or `STORY_CAST`, and its new value.
DIALECT_CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "names": {
        "hero given child": {
            "girl": {"Bella": 5, "Hanna": 4, "Olga": 3, "Tilda": 2, "Ines": 1},
            "boy": {"Albert": 5, "Henry": 4, "Oskar": 3, "Sam": 2, "Milo": 1, "Ivo": 1},
        },
    },
    "ending": {
        "ending": {
            "Then it began to rain, and {his} {mother} called them in.": 4,
            "The {animal} gave {him} a {colour} stone to keep.": 4,
            "{hero} fell asleep in the grass, and the {animal} sat by {him}.": 3,
            "{He} was {happy}, but nobody at home believed {him}.": 3,
            "And so they {danced} in the rain until the {animal} was cold.": 2,
            "{He} never saw that {animal} again.": 2,
        },
    },
    "food": {
        "food given place": {
            "forest": {"berries": 6, "nuts": 3, "soup": 1},
            "garden": {"carrots": 5, "grapes": 3, "apples": 2},
            "meadow": {"grass": 4, "honey": 4, "cheese": 1},
            "pond": {"fish": 6, "bread": 2, "soup": 1},
            "barn": {"corn": 5, "cheese": 2, "apples": 2},
            "park": {"cake": 5, "bread": 3, "nuts": 1},
            "village": {"bread": 4, "cake": 3, "soup": 2},
            "cave": {"honey": 3, "fish": 2, "nuts": 1},
        },
    },
}  # fmt: skip


def story_dialect(*changes: str) -> StoryGrammar:
    """The grammar of a dialect.

    Args:
        changes: which of `DIALECT_CHANGES` to make; by default all of them.

    Returns:
        A grammar with its own entropy and oracle.

    Raises:
        ValueError: there is no such change.

    Example:
        >>> import textwrap
        >>> print(textwrap.fill(story_dialect().generate(1, seed=0), 70))
        Bella was a brave girl. One snowy afternoon she hopped to the barn. A
        tiny hen ran after her and asked for some apples. Bella gave it some
        apples, and it ate and ate and ate. She was happy, but nobody at home
        believed her.
        >>> round(story_dialect().entropy.nats_per_story, 2)
        23.12
        >>> StoryGrammar().is_story(story_dialect("food").generate(1, seed=0))
        False
    """
    unknown = [change for change in changes if change not in DIALECT_CHANGES]
    if unknown:
        allowed = f"the changes are {listed(DIALECT_CHANGES)}"
        raise ValueError(f"story_dialect: there is no change called {listed(unknown)}; {allowed}")
    rules, cast = dict(STORY_RULES), dict(STORY_CAST)
    for change in changes or DIALECT_CHANGES:
        for key, value in DIALECT_CHANGES[change].items():
            held = rules if key in rules else cast
            for old in [old for old in held if old.split()[0] == key.split()[0]]:
                del held[old]  # "food given animal" makes way for "food given place"
            held[key] = value
    return StoryGrammar(rules, cast, STORY_KINDS)
