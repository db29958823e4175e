"""The stories of this book, as data: what a story can say, and who can be in it.

`tinytorch_book.stories.grammar` turns this file into text; change a word and the stories change. To
read it, begin at the rule `"story"` and replace what is in braces, from left to right:

* `STORY_RULES` say what a symbol may become. `{opening}` in a text is replaced by one of the texts
  of the rule `"opening"`, drawn each time with probability proportional to its weight, the number
  beside it.
* `STORY_CAST` is what is chosen *once per story*, at the first mention, and then stays: the hero's
  name, the animal. `"food given animal"` is a choice whose weights depend on the animal, and a word
  alone, as in `"girl": "she"`, leaves no choice.
* `STORY_KINDS` name classes of words: the words of the kind `"animals"` are those that `{animal}`
  can become.

A story ends with its only newline.
"""

from typing import Any

STORY_RULES: dict[str, dict[str, float]] = {
    "story": {"{opening} {adventure} {ending}\n": 1},
    "opening": {
        "One {weather} {time} {hero} {went} to the {place}.": 5,
        "Once upon a time there was a {child} named {hero}. "
        "One {time} {he} {went} to the {place}.": 4,
        "{hero} was a {brave} {child}. One {weather} {time} {he} {went} to the {place}.": 3,
        "On a {weather} {time} {hero} and {his} {mother} {went} to the {place}.": 2,
        "It was a {weather} {time}, and {hero} {went} to the {place}.": 2,
    },
    "adventure": {
        "{lost} {found}": 4,
        "{hungry} {shared}": 4,
        "{lonely} {cheered}": 3,
    },
    "lost": {
        "{He} took {his} {colour} {thing}, but the wind blew it away.": 4,
        "{He} had lost {his} {colour} {thing} and was very {sad}.": 3,
        "There {he} dropped {his} {colour} {thing}, and it rolled down the hill.": 2,
    },
    "found": {
        "Soon a {little} {animal} came along with the {thing} on its head.": 4,
        "A {little} {animal} found it and gave it back.": 3,
        "Behind a tree, a {little} {animal} was trying to eat it.": 2,
        "A {little} {animal} had it, and wanted some {food} for it.": 2,
        "The {thing} was in a tree, and a {little} {animal} was asleep on it.": 1,
    },
    "hungry": {
        "There {he} met a {little} {animal} that was very hungry.": 4,
        'A {little} {animal} sat by the path. "I am so hungry!" it said.': 3,
        "A {little} {animal} ran after {him} and asked for some {food}.": 2,
    },
    "shared": {
        "{hero} gave it some {food}, and it ate and ate and ate.": 4,
        '"I only eat {food}," said the {animal}, so {he} went to find some.': 3,
        "{He} gave it some {food} on a {colour} {thing}, and the {animal} ate the {thing} too.": 3,
    },
    "lonely": {
        "There {he} saw a {little} {animal} that looked very {sad}.": 4,
        "In the grass sat a {little} {animal}, all alone and {sad}.": 3,
        'A {little} {animal} came up to {him}. "I am so {sad}!" it said.': 2,
    },
    "cheered": {
        "{hero} put {his} {colour} {thing} on its head, and the {animal} laughed.": 4,
        '"Oh, do not be {sad}," said {hero}, and gave it a {colour} {thing}.': 3,
        "{He} sang a song about {food} until the {animal} smiled.": 3,
        "{He} told it a story about a {brave} {animal} and a {colour} {thing}.": 2,
    },
    "ending": {
        "They {danced} until the stars came out.": 5,
        "So {hero} and the {animal} became best friends.": 4,
        "That night {hero} told {his} {mother} all about the {animal}.": 4,
        "{He} was so {happy} that {he} {went} all the way home.": 4,
        "After that, the {animal} came to tea every {time}.": 3,
        "The {animal} was {happy}, and {hero} was {happy} too.": 3,
        'At home {his} {mother} said, "Take that {animal} out of my bed!"': 2,
        "And they both had {food} for tea.": 2,
    },
    "weather": {"sunny": 5, "windy": 3, "rainy": 3, "warm": 2, "snowy": 2, "foggy": 1},
    "time": {"morning": 5, "day": 4, "evening": 3, "afternoon": 2},
    "went": {"walked": 5, "ran": 4, "hopped": 3, "skipped": 3, "marched": 2, "hurried": 1},
    "danced": {"danced": 5, "played": 5, "sang": 3, "talked": 2, "rested": 1},
    "brave": {"brave": 5, "kind": 4, "clever": 3, "funny": 2, "silly": 2, "polite": 1},
    "little": {"little": 6, "small": 4, "big": 4, "fat": 2, "tiny": 2, "fluffy": 2, "sleepy": 1},
    "happy": {"happy": 6, "glad": 3, "proud": 2, "merry": 1},
    "mother": {"mother": 4, "father": 4, "sister": 2, "brother": 2, "grandmother": 1},
}

STORY_CAST: dict[str, dict[str, Any]] = {
    "child": {"girl": 1, "boy": 1},
    "hero given child": {
        "girl": {"Mia": 5, "Anna": 4, "Lily": 3, "Sara": 2, "Ida": 1},
        "boy": {"Tom": 5, "Ben": 4, "Max": 3, "Leo": 2, "Hugo": 1, "Otto": 1},
    },
    "he given child": {"girl": "she", "boy": "he"},
    "He given child": {"girl": "She", "boy": "He"},
    "him given child": {"girl": "her", "boy": "him"},
    "his given child": {"girl": "her", "boy": "his"},
    "place": {
        "forest": 6, "garden": 5, "meadow": 4, "pond": 4,
        "barn": 3, "park": 3, "village": 2, "cave": 1,
    },
    "animal given place": {
        "forest": {"fox": 5, "bear": 4, "owl": 3, "rabbit": 2},
        "garden": {"rabbit": 4, "cat": 3, "mouse": 2, "hen": 1},
        "meadow": {"cow": 5, "goat": 3, "rabbit": 2, "mouse": 1},
        "pond": {"duck": 5, "frog": 4, "goat": 1},
        "barn": {"hen": 4, "cow": 3, "mouse": 3, "owl": 1, "cat": 1},
        "park": {"dog": 5, "duck": 2, "cat": 2},
        "village": {"dog": 4, "cat": 3, "hen": 2, "goat": 1},
        "cave": {"bear": 5, "fox": 2, "owl": 1},
    },
    "food given animal": {
        "fox": {"grapes": 5, "berries": 2, "cheese": 2},
        "bear": {"honey": 6, "berries": 3, "fish": 2},
        "owl": {"nuts": 3, "berries": 2, "soup": 1},
        "rabbit": {"carrots": 6, "apples": 2, "grass": 1},
        "cat": {"fish": 5, "cheese": 2, "cake": 1},
        "mouse": {"cheese": 6, "bread": 2, "nuts": 2},
        "hen": {"corn": 5, "bread": 2, "nuts": 1},
        "cow": {"grass": 6, "apples": 2, "corn": 1},
        "goat": {"grass": 3, "apples": 2, "carrots": 2, "cake": 1},
        "duck": {"bread": 6, "corn": 2, "grapes": 1},
        "frog": {"soup": 3, "berries": 2, "cake": 2},
        "dog": {"cake": 3, "fish": 2, "bread": 2, "soup": 1},
    },
    "sad": {"sad": 5, "lonely": 3, "tired": 2, "cold": 1},
    "colour": {"red": 5, "blue": 4, "green": 3, "yellow": 3, "white": 1, "golden": 1},
    "thing": {
        "hat": 5, "ball": 4, "kite": 4, "drum": 3, "boat": 3, "boot": 2, "sock": 2, "spoon": 1,
    },
}  # fmt: skip

STORY_KINDS: dict[str, tuple[str, ...]] = {
    "names": ("hero",),
    "animals": ("animal",),
    "foods": ("food",),
    "places": ("place",),
    "colours": ("colour",),
    "things": ("thing",),
    "sizes": ("little",),
    "family": ("mother",),
    "times": ("time",),
    "weather": ("weather",),
    "traits": ("brave",),
    "troubles": ("sad",),
    "joys": ("happy",),
    "movements": ("went",),
    "pastimes": ("danced",),
}
