"""The training that the drawing `word-vectors` shows: where 24 words stand, from step to step.

It is the training of the chapter on token embeddings. `python -m drawings.word_vectors`, called in
`book`, writes `word_vectors.json` again; a test says whether it is still what the package gives.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch import SGD, CrossEntropyLoss, Embedding, Linear, Sequential, manual_seed
from tinytorch_book.stories import StoryGrammar

STORED = Path(__file__).with_suffix(".json")
KINDS = ("names", "animals", "foods", "colours", "sizes", "movements")
EACH = 4  # words of a kind
STEPS = (0, 2, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400, 600, 800,
         1200, 2000)  # fmt: skip


def tables(grammar: StoryGrammar) -> list[np.ndarray]:
    """Train the chapter's word model; give its table after each of `STEPS`."""
    id_of = {word: i for i, word in enumerate(grammar.vocabulary)}
    ids = np.array([id_of[word] for word in grammar.words(grammar.generate(4000, seed=1))])
    rng, last = manual_seed(0), STEPS[-1]
    model = Sequential(Embedding(len(id_of), 16), Linear(16, len(id_of)))
    loss_of, optimizer = CrossEntropyLoss(), SGD(model.parameters(), lr=6.0)
    kept = []
    for step in range(last + 1):
        if step in STEPS:
            kept.append(model.layers[0].weight.data.copy())
        optimizer.lr = 6.0 * (1 - min(step / last, 1))
        at = rng.integers(0, len(ids) - 1, size=256)
        loss = loss_of(model(ids[at]), ids[at + 1])
        model.zero_grad()
        loss.backward()
        optimizer.step()
    return kept


def unit(table: np.ndarray) -> np.ndarray:
    """Make every row one long."""
    return table / np.linalg.norm(table, axis=1, keepdims=True)


def found(table: np.ndarray, kinds: np.ndarray) -> int:
    """Count the words of a kind whose nearest row is one of the same kind."""
    near = unit(table) @ unit(table).T
    np.fill_diagonal(near, -2)  # a word is not its own neighbour
    return int(((kinds == kinds[near.argmax(axis=1)]) & (kinds != "")).sum())


def computed() -> dict[str, Any]:
    """Project the words, at all steps, on the two directions in which they differ most at the end.

    Returns:
        The words with their kinds; the steps; at each step every word's two numbers, and of how
        many of all words that have a kind the nearest other word is of the same kind.
    """
    grammar = StoryGrammar()
    kind_of = {word: kind for kind, words in grammar.kinds.items() for word in words}
    kinds = np.array([kind_of.get(word, "") for word in grammar.vocabulary])
    words = [word for kind in KINDS for word in grammar.kinds[kind][:EACH]]
    rows = [list(grammar.vocabulary).index(word) for word in words]
    kept = tables(grammar)
    shown = [unit(table[rows].astype(np.float64)) for table in kept]
    mean = shown[-1].mean(axis=0)
    axes = np.linalg.svd(shown[-1] - mean, full_matrices=False)[2][:2]
    axes *= np.sign(axes.sum(axis=1, keepdims=True))  # either sign would do
    return {
        "words": words,
        "kinds": [kind_of[word] for word in words],
        "steps": list(STEPS),
        "points": [((table - mean) @ axes.T).round(4).tolist() for table in shown],
        "same": [found(table, kinds) for table in kept],
        "of": int((kinds != "").sum()),
    }


if __name__ == "__main__":
    STORED.write_text(json.dumps(computed(), separators=(",", ":")) + "\n", encoding="utf-8")
