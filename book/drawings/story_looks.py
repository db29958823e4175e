"""What the heads of the story GPT look at in the story that the drawing `what-it-looks-at` shows.

`python -m drawings.story_looks`, called in `book`, writes `story_looks.json` again; a test says
whether it is still what the package gives.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.inside.heads import attention_weights
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer

STORED = Path(__file__).with_suffix(".json")
STORY = (
    "Once upon a time there was a boy named Ben. One day he walked to the meadow. A fluffy cow ran "
    "after him and asked for some corn. Ben gave it some corn, and it ate and ate and ate. The cow "
    "was happy, and Ben was happy too."
)
LEAST = 0.1  # a share that is kept


def computed() -> dict[str, Any]:
    """Let the model read the story.

    Returns:
        The tokens; by head, as `0.3`, for every token that asks the keys that get a tenth of its
        attention or more, the largest share first, as `[key, share]`.
    """
    ids = np.array([story_tokenizer().encode("\n" + STORY)])
    weights = attention_weights(load_story_gpt(), ids)[:, 0]  # (blocks, heads, queries, keys)
    heads = {
        f"{block}.{head}": [
            [[int(k), round(float(row[k]), 2)] for k in np.argsort(-row) if row[k] >= LEAST]
            for row in weights[block, head]
        ]
        for block in range(weights.shape[0])
        for head in range(weights.shape[1])
    }
    return {"tokens": [story_tokenizer().decode([i]) for i in ids[0]], "heads": heads}


if __name__ == "__main__":
    STORED.write_text(json.dumps(computed(), separators=(",", ":")) + "\n", encoding="utf-8")
