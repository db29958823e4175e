"""Fine-tuning the story GPT to a dialect: what it learns and what it forgets, known exactly.

`fine_tune` is one run, the same for a whole model and for LoRA: same stories, same steps, same
schedule; only the rate differs. `excess` measures it: by how many nats a story is the model more
surprised than the oracle of a grammar? For the dialect that is what is still to be learned, for the
first grammar what was forgotten.

`fine_tuning_results` gives the results of many such runs. To make them again:

    python -m tinytorch_book.experiments.fine_tuning

writes them to `fine_tuning.json`; with `--in-package` they replace those of the package.
"""

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.module import Module
from tinytorch.core.optimizers import AdamW
from tinytorch.core.schedules import CosineSchedule
from tinytorch.models.lora import EVERY_LINEAR, add_lora
from tinytorch.training.evaluation import surprise
from tinytorch.training.trainer import Trainer
from tinytorch_book.experiments.stored_results import read_results, run_recipe, write_results
from tinytorch_book.experiments.story_gpt import (
    StoryWindows,
    load_story_gpt,
    story_batches,
    story_tokenizer,
    story_windows,
)
from tinytorch_book.stories import StoryGrammar, story_dialect

__all__ = ["STEPS", "MixedBatches", "excess", "fine_tune", "fine_tuning_results"]

#: How many steps every run takes.
STEPS = 200
_FILE = Path(__file__).with_name("data") / "fine_tuning.json"
_DIALECTS = {"food": ("food",), "names": ("names",), "all": ()}
_RATES = {  # by rank, 0 for the whole model
    0: (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    **dict.fromkeys((1, 4, 16), (3e-3, 1e-2, 3e-2, 1e-1)),
}


class MixedBatches:
    """Batches in which some rows are replaced: mostly new data, and a little of the old.

    Args:
        batches: the new data.
        others: the source of the replaced rows.
        rows: how many rows of each batch to replace.

    Attributes:
        batch_size: that of `batches`; `seq_len` likewise.
    """

    def __init__(self, batches: Any, others: Any, rows: int) -> None:
        self.batches, self.others, self.rows = batches, others, rows
        self.batch_size, self.seq_len = batches.batch_size, batches.seq_len

    def __getitem__(self, step: int) -> tuple[np.ndarray, ...]:
        kept = self.batch_size - self.rows
        both = zip(self.batches[step], self.others[step], strict=True)
        return tuple(np.concatenate([new[:kept], old[: self.rows]]) for new, old in both)


def fine_tune(model: Any, batches: Any, lr: float, steps: int = STEPS) -> Any:
    """Train the parameters of a model that are not frozen further.

    Args:
        model: a trained model; changed in place.
        batches: the training data.
        lr: the highest rate, after a tenth of the steps; then it falls.
        steps: how many.

    Returns:
        The model.

    Raises:
        FloatingPointError: the rate was so high that the loss is no longer finite.
    """
    Trainer(
        model,
        batches,
        optimizer=AdamW(model.trainable_parameters(), betas=(0.9, 0.99), weight_decay=0.0),
        schedule=CosineSchedule(lr=lr, warmup_steps=max(1, steps // 10), total_steps=steps),
        progress=False,
    ).run(steps)
    return model


def excess(
    model: Any, grammar: StoryGrammar | None = None, seed: int = 2, num_stories: int = 100
) -> float:
    """How much more surprised a model is than the best possible reader, in nats a story.

    Measured on the same unread stories: the luck of which stories they are is in both surprises,
    and cancels in the difference.

    Args:
        model: maps ids `(batch, seq)` to logits.
        grammar: whose stories: by default that of the book, or a dialect.
        seed: which stories.
        num_stories: how many.

    Example:
        >>> adapted = load_story_gpt()
        >>> excess(adapted) < 1 < 10 < excess(adapted, story_dialect())
        True
    """
    held_out, of_story = _held_out(grammar, seed, num_stories)
    above = surprise(model, held_out.inputs, held_out.targets) - held_out.floor
    return float(above[of_story].sum() / len(above))


def fine_tuning_results() -> dict[str, list[dict[str, Any]]]:
    """The results of the runs of the recipe.

    Returns:
        `"rates"`: every rate that was tried, on the whole dialect; `"ranks"`: the best rate of
        each rank (0 for the whole model) on three dialects, from several seeds; `"mixed"`: the same
        with some old stories in each batch; `"table"`: the whole model with its token table held
        (rank 0), and LoRA with the token table free to learn (rank 16). Each run is a dictionary
        with `rank`, `lr`, `dialect`, `seed`, `old_rows`, and the excess in nats a story of the
        dialect, `new`, and of the first grammar, `old`, or None for a run that was stopped because
        its loss was not finite.

    Example:
        >>> sorted(fine_tuning_results())
        ['mixed', 'ranks', 'rates', 'table']
    """
    return read_results(_FILE)


# Helpers -------------------------------------------------------------------------------------


@cache
def _held_out(
    grammar: StoryGrammar | None, seed: int, num_stories: int
) -> tuple[StoryWindows, np.ndarray]:
    """Stories, and which targets belong to the story that a row begins with."""
    held_out = story_windows(num_windows=num_stories, seed=seed, grammar=grammar)
    newline = story_tokenizer().encode("\n")
    return held_out, (held_out.inputs == newline).cumsum(axis=1) == 1


def _adapted(rank: int, seed: int, learns: bool | None = None) -> Module:
    """The story GPT, whole or with LoRA of a rank; whether its token table learns, if not None."""
    model = load_story_gpt()
    if rank:
        add_lora(model, rank, targets=EVERY_LINEAR, rng=seed)
    if learns is not None:
        model.token_embedding.weight.requires_grad = learns
    return model


def _run(
    rank: int,
    lr: float,
    dialect: str,
    seed: int,
    old_rows: int = 0,
    test: int = 2,
    learns: bool | None = None,
) -> dict[str, Any]:
    """One run, and its result."""
    grammar = _dialect(dialect)
    batches: Any = story_batches(num_stories=2000, seed=seed, grammar=grammar)
    if old_rows:
        batches = MixedBatches(batches, story_batches(num_stories=2000, seed=seed), old_rows)
    result: dict[str, Any] = {"rank": rank, "lr": lr, "dialect": dialect, "seed": seed}
    result["old_rows"] = old_rows
    try:
        model = fine_tune(_adapted(rank, seed, learns), batches, lr)
        result["new"] = round(excess(model, grammar, test), 4)
        result["old"] = round(excess(model, None, test), 4)
    except FloatingPointError:
        result["new"] = result["old"] = None
    return result


@cache
def _dialect(name: str) -> StoryGrammar:
    return story_dialect(*_DIALECTS[name])


def _make(path: Path) -> None:
    """All runs; the rates are chosen on other stories than those that are reported."""
    rates = [_run(rank, lr, "all", 10, test=3) for rank, tried in _RATES.items() for lr in tried]
    best = {}
    for rank in _RATES:
        done = [run for run in rates if run["rank"] == rank and run["new"] is not None]
        best[rank] = min(done, key=lambda run: run["new"])["lr"]
    ranks = [
        _run(rank, best[rank], name, seed)
        for seed in (11, 12, 13)
        for name in _DIALECTS
        for rank in _RATES
    ]
    mixed = [
        _run(rank, best[rank], "all", seed, old_rows)
        for seed in (11, 12)
        for rank in (0, 16)
        for old_rows in (1, 2)
    ]
    table = [
        _run(rank, best[rank], "all", seed, learns=rank > 0)
        for seed in (11, 12, 13)
        for rank in (0, 16)
    ]
    write_results(path, {"rates": rates, "ranks": ranks, "mixed": mixed, "table": table})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Fine-tune the story GPT to dialects in many ways (an hour or so)."
    return run_recipe("fine_tuning", about, _make, _FILE, arguments)


if __name__ == "__main__":
    sys.exit(main())
