"""The forecast that the drawing `sampling` shows: what the story GPT expects after a beginning.

`python -m drawings.forecast`, called in `book`, writes `forecast.json` again; a test says whether
it is still what the package gives.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.stories import StoryGrammar

STORED = Path(__file__).with_suffix(".json")
BEGINNING = "Once upon a time there was a boy named Tom. One day he walked to the meadow. A fluffy"
ANIMALS = ("cow", "goat", "rabbit", "mouse")  # that live in the meadow


def computed() -> dict[str, Any]:
    """Give every token with its logit: the animals first, the others from likely to unlikely.

    Returns:
        The tokens; their logits; what the grammar says of each of the animals.
    """
    model, tokenizer = load_story_gpt(), story_tokenizer()
    logits = model(tokenizer.encode("\n" + BEGINNING)).data[-1]
    first = [tokenizer.encode(f" {animal}")[0] for animal in ANIMALS]
    others = [int(i) for i in np.argsort(-logits, kind="stable") if i not in first]
    truth = StoryGrammar().next_character_probs(BEGINNING + " ")
    return {
        "tokens": [*ANIMALS, *(json.dumps(tokenizer.decode([i])) for i in others)],
        "logits": [round(float(logits[i]), 3) for i in first + others],
        "truth": [round(truth[animal[0]], 4) for animal in ANIMALS],
    }


if __name__ == "__main__":
    STORED.write_text(json.dumps(computed(), separators=(",", ":")) + "\n", encoding="utf-8")
