"""Models that read the same stories, to be compared: how surprised is each by every story?

`story_surprise` is what a test of two models begins with. `expected_surprise` is what only a
grammar makes possible: the surprise at everything that could have come next, not at what happened
to come. `compared_models` has both for the story GPT, for the same model with its weights rounded
to a few bits, and for ten more trainings by two recipes. To make them again:

    python -m tinytorch_book.experiments.compared_models

writes them to `compared_models.safetensors`; with `--in-package` it adds what is missing to the
file of the package. Every model is saved as soon as it is measured, so this can be stopped and
started again.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.module import evaluation_mode
from tinytorch.training.evaluation import surprise
from tinytorch.training.weight_files import load_safetensors, save_safetensors
from tinytorch_book.experiments.stored_results import run_recipe
from tinytorch_book.experiments.story_gpt import (
    STEPS,
    load_story_gpt,
    story_tokenizer,
    story_trainer,
)
from tinytorch_book.experiments.what_it_learned import StudyStories, story_truth, study_stories
from tinytorch_book.stories import StoryGrammar

__all__ = ["STORIES", "compared_models", "expected_surprise", "few_bits", "oracle_surprise",
           "story_surprise"]  # fmt: skip

#: How many of the stored stories have each number: read by the two models that the chapter
#: compares, by each of the ten trainings, and with everything that could have come.
STORIES = {"all": 10_000, "trainings": 2000, "expected": 1000}
DECAYS = 0.01, 0.1  # the recipes: that of the story GPT, and one with more weight decay
SEEDS = range(5)
BITS = 5
_FILE = Path(__file__).with_name("data") / "compared_models.safetensors"
_SEED = 6  # of the stories; no model was trained or chosen on them
_THOUSANDTHS = 1000  # in which surprise is stored


def story_surprise(model: Any, stories: StudyStories) -> np.ndarray:
    """How surprised a model is by each story, its newline included, in nats, `(n,)`.

    Example:
        >>> nats = story_surprise(load_story_gpt(), study_stories(2, seed=6))
        >>> nats.round(1)
        array([21.3, 26.1])
    """
    targets = _targets(stories)
    nats = surprise(model, stories.ids, targets)
    return np.where(_read(stories), nats, 0).sum(axis=1)


def expected_surprise(model: Any, stories: StudyStories, truth: np.ndarray) -> np.ndarray:
    """How surprised a model is on average by what can come next, added along each story, `(n,)`.

    At every token the surprise at each possible next one counts with its exact probability. The
    mean over stories is that of `story_surprise`, since this is its expectation at every token;
    but the luck of which token did come is gone.

    Args:
        model: maps ids `(n, seq)` to logits.
        stories: what it reads.
        truth: `story_truth(stories)`.
    """
    with evaluation_mode(), no_grad():
        log_probs = functional.log_softmax(model(stories.ids)).data
    nats = -np.einsum("nsv,nsv->ns", np.nan_to_num(truth), log_probs)
    return np.where(_read(stories), nats, 0).sum(axis=1)


def oracle_surprise(stories: StudyStories) -> np.ndarray:
    """How surprised the best possible reader is by each story, exactly, `(n,)`.

    Its true mean is the entropy of a story.
    """
    texts = (story_tokenizer().decode(row[1 : length + 1])
             for row, length in zip(_closed(stories), stories.lengths, strict=True))  # fmt: skip
    return np.array([-_grammar().log_probs(text).sum() for text in texts])


def few_bits(model: Any, bits: int) -> Any:
    """Round every matrix of a model, each row to `2**bits - 1` equally spaced numbers, in place.

    Args:
        model: a `Module`; norms and biases stay as they are.
        bits: at least 2.

    Returns:
        The model.

    Example:
        >>> from tinytorch import Linear
        >>> layer = Linear(4, 3, rng=0)
        >>> len(np.unique(few_bits(layer, 2).weight.data[0].round(6))) <= 3
        True
    """
    for parameter in model.parameters():
        if parameter.data.ndim == 2:
            weights = parameter.data
            largest = np.abs(weights).max(axis=1, keepdims=True)
            step = np.where(largest == 0, 1, largest) / (2 ** (bits - 1) - 1)
            parameter.data[...] = np.round(weights / step) * step
    return model


def compared_models() -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """What each model was surprised by every story, in nats.

    Returns:
        Arrays by name: `"oracle"`, `"story GPT"` and `"five bits"`, `(10,000,)`; the trainings,
        `"decay 0.01, seed 0"` and so on, `(2000,)`, of the first of these stories; and for each
        model that name with `", expected"`, `(1000,)`. And facts about the runs: `machine`, `date`,
        and the `seconds` of a training.

    Example:
        >>> nats, facts = compared_models()
        >>> nats["story GPT"].shape, nats["decay 0.1, seed 4, expected"].shape
        ((10000,), (1000,))
    """
    stored, facts = load_safetensors(_FILE)
    return {name: array / _THOUSANDTHS for name, array in stored.items()}, facts


# Helpers -------------------------------------------------------------------------------------

_grammar = cache(StoryGrammar)


def _closed(stories: StudyStories) -> np.ndarray:
    """The ids with one more column of newlines, which closes the longest story too."""
    newline = np.full((len(stories.ids), 1), story_tokenizer().encode("\n")[0])
    return np.concatenate([stories.ids, newline], axis=1)


def _targets(stories: StudyStories) -> np.ndarray:
    """The ids that follow, `(n, seq)`."""
    return _closed(stories)[:, 1:]


def _read(stories: StudyStories) -> np.ndarray:
    """Where a story is, not what its row is filled with, `(n, seq)`."""
    return np.arange(stories.ids.shape[1]) < stories.lengths[:, None]


def _trained(decay: float, seed: int) -> Any:
    """The story GPT, trained again with another weight decay and other first weights."""
    trainer = story_trainer(rng=seed, progress=False)
    optimizer: Any = trainer.optimizer
    optimizer.weight_decay = decay
    trainer.run(STEPS)
    return trainer.model


def _models() -> dict[str, Callable[[], Any]]:
    """How each model is made, by its name."""
    models: dict[str, Callable[[], Any]] = {
        "story GPT": load_story_gpt,
        "five bits": lambda: few_bits(load_story_gpt(), BITS),
    }
    for seed in SEEDS:
        for decay in DECAYS:
            models[f"decay {decay}, seed {seed}"] = partial(_trained, decay, seed)
    return models


def _first(stories: StudyStories, start: int, end: int) -> StudyStories:
    """Some of the stories."""
    return StudyStories(*(field[start:end] for field in stories))


@cache
def _known(count: int = STORIES["expected"], batch: int = 100) -> list[tuple[StudyStories, Any]]:
    """Stories, a hundred at a time, and what can come next at each of their tokens."""
    stories = study_stories(count, _SEED)
    parts = [_first(stories, i, i + batch) for i in range(0, count, batch)]
    return [(part, story_truth(part).astype(np.float32)) for part in parts]


def _make(path: Path) -> None:
    """Measure each model that the file does not have yet."""
    stored, facts = load_safetensors(path) if path.exists() else ({}, {})
    stories = study_stories(STORIES["all"], _SEED)
    if "oracle" not in stored:
        stored["oracle"] = _in_thousandths(oracle_surprise(stories))
    for name, make in _models().items():
        if name in stored:
            continue
        began = time.perf_counter()
        model = make()
        seconds = time.perf_counter() - began
        few = name.startswith("decay")
        read = _first(stories, 0, STORIES["trainings"] if few else STORIES["all"])
        expected = [expected_surprise(model, *part) for part in _known()]
        stored[name] = _in_thousandths(story_surprise(model, read))
        stored[f"{name}, expected"] = _in_thousandths(np.concatenate(expected))
        cores = f"{os.cpu_count()} cores, NumPy {np.__version__}"
        facts |= {"machine": f"{platform.machine()}, {cores}", "date": time.strftime("%Y-%m-%d")}
        facts |= {"seconds": f"{seconds:.0f}"} if few else {}
        save_safetensors(path, stored, facts)


def _in_thousandths(nats: np.ndarray) -> np.ndarray:
    """Surprise as it is stored: in thousandths of a nat, up to 65.5 nats."""
    return (nats * _THOUSANDTHS).round().astype(np.uint16)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Train ten story GPTs by two recipes, and let all models read the same stories."
    stopped = "stopped; what is done is kept, and the same command goes on from there"
    return run_recipe("compared_models", about, _make, _FILE, arguments, stopped)


if __name__ == "__main__":
    sys.exit(main())
