"""The staircase of this book: each part's model, what it writes, and its distance to the floor.

Each part ends by training the model built so far, from the embeddings on by one recipe
(`train_on_stories`), and by measuring it with one number (`nats_per_letter`) on a hundred stories
that no model has read.
A model is anything that maps ids `(batch, seq)` of `story_tokenizer` to logits.

    model = train_on_stories(GPT(512, 64, 1, 4, max_seq_len=112))
    print(nats_per_letter(model), [write_on(model, each) for each in BEGINNINGS])
"""

from functools import cache
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.schedules import CosineSchedule
from tinytorch.core.seeding import default_rng
from tinytorch.training.evaluation import surprise
from tinytorch.training.trainer import Trainer
from tinytorch_book.experiments.story_gpt import (
    SEQ_LEN,
    StoryWindows,
    story_batches,
    story_tokenizer,
    story_windows,
)

__all__ = [
    "BEGINNINGS",
    "COUNTING_AT_BEST",
    "STEPS",
    "floor_per_letter",
    "nats_per_letter",
    "steps_up_to",
    "train_on_stories",
    "write_on",
]

#: The beginnings that every model of the book continues.
BEGINNINGS = ("Once upon a time there", "One rainy evening", "Mia was")

#: The loss of every step, in nats a letter. A page recomputes its own, asserts it, and draws these.
STEPS = {
    "1 letter, counted": 2.088,
    "3 letters, counted": 0.719,
    "pairs of tokens": 0.563,
    "two tokens and an MLP": 0.233,
    "one head": 0.203,
    "four heads": 0.197,
    "rotated heads": 0.181,
    "one block": 0.175,
    "two blocks, a GPT": 0.168,
    "trained longer": 0.119,
}
#: The loss of the best table that counts letters: seven, in `first-words/counting-letters`.
COUNTING_AT_BEST = 0.309


def steps_up_to(name: str) -> dict[str, float]:
    """The steps of the staircase as far as one of them, from the highest loss to the lowest.

    Args:
        name: the last step wanted, one of `STEPS`.

    Returns:
        The loss of each step in nats a letter, by name.

    Raises:
        ValueError: there is no such step.

    Example:
        >>> list(steps_up_to("pairs of tokens"))
        ['1 letter, counted', '3 letters, counted', 'pairs of tokens']
    """
    if name not in STEPS:
        raise ValueError(f"the staircase has no step {name!r}; its steps are {', '.join(STEPS)}")
    names = list(STEPS)
    return {each: STEPS[each] for each in names[: names.index(name) + 1]}


def train_on_stories(model: Any, steps: int = 300) -> Any:
    """Train a model as every step of the staircase is trained: a rate of 0.01, with warm-up.

    Args:
        model: a `Module` that maps ids `(batch, seq)` to logits; trained in place.
        steps: how many steps of 4 windows, from 2,000 stories.

    Returns:
        The model.

    Example:
        >>> from tinytorch import Embedding
        >>> table = Embedding(512, 512, rng=0)  # one row of logits a token
        >>> before = nats_per_letter(table)
        >>> nats_per_letter(train_on_stories(table, steps=20)) < before
        True
    """
    schedule = CosineSchedule(lr=0.01, warmup_steps=20, total_steps=max(steps, 21))
    batches = story_batches(batch_size=4, num_stories=2000)
    Trainer(model, batches, schedule=schedule, progress=False).run(steps)
    return model


def nats_per_letter(model: Any) -> float:
    """How surprised a model is by the hundred stories of the staircase, in nats a letter.

    A letter is any character. Tokens of several letters are counted as such, so that models of
    letters and models of tokens can be compared.

    Args:
        model: maps ids `(batch, seq)` to logits.

    Example:
        >>> from tinytorch_book.experiments.story_gpt import load_story_gpt
        >>> round(nats_per_letter(load_story_gpt()), 2)
        0.12
    """
    (inputs, targets, _, characters), whole = _unread(), _first_stories()
    return float(surprise(model, inputs, targets)[whole].sum() / characters[whole].sum())


def floor_per_letter() -> float:
    """The surprise of the oracle at the same hundred stories, in nats a letter.

    Example:
        >>> round(floor_per_letter(), 3)
        0.119
    """
    whole = _first_stories()
    return float(_unread().floor[whole].sum() / _unread().characters[whole].sum())


def write_on(model: Any, beginning: str, rng: Any = 0) -> str:
    """Let a model continue a story to its end: each token is drawn from the model's prediction.

    Args:
        model: maps ids `(batch, seq)` to logits.
        beginning: the first words of a story, without a space after them.
        rng: where the draws come from.

    Returns:
        The story with its beginning, cut off after one window.

    Example:
        >>> from tinytorch_book.experiments.story_gpt import load_story_gpt
        >>> write_on(load_story_gpt(), "Mia was").split()[:4]
        ['Mia', 'was', 'a', 'brave']
    """
    tokenizer, rng = story_tokenizer(), default_rng(rng)
    ids = tokenizer.encode("\n" + beginning)
    while len(ids) < SEQ_LEN and (len(ids) == 1 or tokenizer.decode(ids[-1:]) != "\n"):
        with no_grad():
            forecast = functional.softmax(model(np.array([ids]))).data[0, -1].astype(float)
        ids.append(int(rng.choice(len(forecast), p=forecast / forecast.sum())))
    return tokenizer.decode(ids).strip()


@cache
def _unread() -> StoryWindows:
    """A hundred stories not read in training, one a row."""
    return story_windows(num_windows=100, seed=2)


def _first_stories() -> np.ndarray:
    """Which targets belong to the story that a row begins with, `(100, seq)`."""
    newline = story_tokenizer().encode("\n")
    return (_unread().inputs == newline).cumsum(axis=1) == 1
