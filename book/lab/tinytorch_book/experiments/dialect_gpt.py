"""A small GPT that listens to speakers of some dialects: which of two ideal readers does it become?

It reads the words of `tinytorch_book.stories.word_dialects` and has to find out from those so far
how the next thing will be called. Two readers are exact: one knows the dialects of the training and
no other, one thinks any dialect possible. `distances` says how far the model's forecasts are from
each, word by word. The question, and the comparison, are those of Raventós et al., 2023.

`dialect_runs` gives the results for many numbers of dialects. To make them again:

    python -m tinytorch_book.experiments.dialect_gpt

writes them to `dialect_gpt.json`; `--in-package` adds the missing ones to those of the package.
Every run is saved as soon as it is done, so this can be stopped and started again.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.module import evaluation_mode
from tinytorch.core.optimizers import AdamW, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.models.transformer import GPT
from tinytorch.training.trainer import Trainer
from tinytorch_book.experiments.stored_results import read_results, run_recipe, write_results
from tinytorch_book.stories.dialect_posterior import family_forecast, listed_forecast
from tinytorch_book.stories.word_dialects import WORDS, dialect_table, draw_dialects, speak

__all__ = ["LENGTH", "START", "Speakers", "dialect_runs", "distances", "forecasts",
           "new_dialect_gpt", "train_on_dialects"]  # fmt: skip

LENGTH = 32  # words of each speaker
START = len(WORDS)  # the id that stands before the first word
STEPS = 4000
_FILE = Path(__file__).with_name("data") / "dialect_gpt.json"
_COUNTS = tuple(2**i for i in range(1, 11))  # of dialects in training
_MEASURED = 250, 500, 1000, 2000, STEPS
_TEST = 500  # speakers of seen dialects, and as many of unseen ones


class Speakers:
    """Batches that never end: each row is a new speaker of one of some dialects.

    Args:
        dialects: bits `(dialects, 12)`.
        batch_size: speakers in a batch.
        seq_len: words of each.
        seed: which speakers.
    """

    def __init__(
        self, dialects: Any, batch_size: int = 32, seq_len: int = LENGTH, seed: int = 0
    ) -> None:
        self.dialects = np.asarray(dialects)
        self.batch_size, self.seq_len, self.seed = batch_size, seq_len, seed

    def __getitem__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The inputs, which begin with `START`, and the targets: each `(batch_size, seq_len)`."""
        rng = np.random.default_rng([self.seed, step])
        chosen = self.dialects[rng.integers(len(self.dialects), size=self.batch_size)]
        words = speak(chosen, self.seq_len, rng)
        return _shifted(words), words


def new_dialect_gpt(seed: int = 0) -> GPT:
    """The model before it has read anything: two blocks, 32 numbers a word.

    Args:
        seed: which first weights.

    Example:
        >>> new_dialect_gpt().num_parameters()["total"]
        26272
    """
    return GPT(len(WORDS) + 1, 32, 2, 2, LENGTH, pos_encoding="rotary", init_std=0.14,
               rng=seed)  # fmt: skip


def train_on_dialects(dialects: Any, steps: int = STEPS, seed: int = 0) -> Trainer:
    """Train a model on speakers of these dialects.

    Args:
        dialects: bits `(dialects, 12)`.
        steps: how many steps of 32 speakers.
        seed: which first weights, and which speakers.

    Returns:
        The trainer, with the model and the history.
    """
    trainer = _trainer(dialects, steps, seed)
    trainer.run(steps)
    return trainer


def forecasts(model: Any, words: Any) -> np.ndarray:
    """A model's forecast of every word, given those before it.

    Args:
        model: maps ids `(speakers, n)` to logits.
        words: ids `(speakers, n)`.

    Returns:
        Log-probabilities `(speakers, n, 24)` in float64, without that of `START`.

    Example:
        >>> forecasts(new_dialect_gpt(), speak(draw_dialects(3, 0), 8, 0)).shape
        (3, 8, 24)
    """
    with evaluation_mode(), no_grad():
        logits = model(_shifted(np.asarray(words))).data[..., : len(WORDS)]
    return functional.log_softmax(logits.astype(np.float64)).data


def distances(logs: np.ndarray, words: Any, dialects: Any) -> dict[str, np.ndarray]:
    """How far forecasts are from the two ideal readers: the mean divergence at each word, in nats.

    On words of a reader's own speakers, the divergence is its excess: how much more surprised the
    forecaster is by the next word than that reader, on average.

    Args:
        logs: log-probabilities `(speakers, n, 24)`.
        words: ids `(speakers, n)`.
        dialects: those of the training, bits `(dialects, 12)`.

    Returns:
        `"listed"`, from the reader who knows these dialects only; `"family"`, from the one who
        thinks any dialect possible: each `(n,)`.

    Example:
        >>> dialects = draw_dialects(4, rng=0)
        >>> words = speak(dialects, 3, rng=0)
        >>> distances(np.log(family_forecast(words)), words, dialects)["family"].tolist()
        [0.0, 0.0, 0.0]
    """
    readers = {"listed": listed_forecast(dialect_table(dialects), words),
               "family": family_forecast(words)}  # fmt: skip
    return {
        name: (exact * (np.log(exact) - logs)).sum(axis=-1).mean(axis=0)
        for name, exact in readers.items()
    }


def dialect_runs() -> list[dict[str, Any]]:
    """The results of the runs of the recipe.

    Returns:
        One dictionary a run: `dialects`, how many were in training, `seed`, `steps`; `along`, at
        some steps, and at the end `seen` and `unseen`: the `distances` from the two readers, word
        by word, on 500 speakers of dialects of the training and as many of others; `seconds` of a
        processor, `machine` and `date`.

    Example:
        >>> sorted({run["dialects"] for run in dialect_runs()})
        [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    """
    found: list[dict[str, Any]] = read_results(_FILE)
    return found


# Helpers -------------------------------------------------------------------------------------


def _shifted(words: np.ndarray) -> np.ndarray:
    """What the model reads to forecast these words: the start, and all but the last."""
    return np.concatenate([np.full_like(words[:, :1], START), words[:, :-1]], axis=1)


def _trainer(dialects: Any, steps: int, seed: int) -> Trainer:
    model, warmup = new_dialect_gpt(seed), max(1, min(50, steps // 10))
    speakers: Any = Speakers(dialects, seed=seed)
    return Trainer(
        model,
        speakers,
        optimizer=AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.01,
                        decay=only_matrices),
        schedule=CosineSchedule(lr=0.01, warmup_steps=warmup, total_steps=max(steps, 2)),
        progress=False,
    )  # fmt: skip


def _run(count: int, seed: int, steps: int) -> dict[str, Any]:
    """One run, measured on the way."""
    every = draw_dialects(4096, rng=seed)
    seen, unseen, rng = every[:count], every[count:], np.random.default_rng([seed, 1])
    spoken = {name: speak(known[rng.integers(len(known), size=_TEST)], LENGTH, rng)
              for name, known in (("seen", seen), ("unseen", unseen))}  # fmt: skip
    trainer, along = _trainer(seen, steps, seed), []
    for step in sorted({*_MEASURED, steps}):
        if step > steps:
            break
        trainer.run(step - trainer.step_number)
        found = {name: distances(forecasts(trainer.model, words), words, seen)
                 for name, words in spoken.items()}  # fmt: skip
        means = {name: _rounded(of, np.mean) for name, of in found.items()}
        along.append({"step": step, **means})
    last = {name: _rounded(of, np.asarray) for name, of in found.items()}
    return {"dialects": count, "seed": seed, "steps": steps, "along": along, **last}


def _rounded(found: dict[str, np.ndarray], of: Any) -> dict[str, Any]:
    return {name: np.round(of(each), 5).tolist() for name, each in found.items()}


def _wanted() -> list[tuple[int, int, int]]:
    """The number of dialects, the seed and the steps of every run of the recipe."""
    return [(count, seed, STEPS) for seed in range(3) for count in _COUNTS]


def _order(run: dict[str, Any]) -> tuple[int, int, int]:
    return run["dialects"], run["steps"], run["seed"]


def _make(path: Path) -> None:
    """All runs that are not in a file yet."""
    for run in _wanted():
        runs = read_results(path) if path.exists() else []
        if run in {(done["dialects"], done["seed"], done["steps"]) for done in runs}:
            continue
        began = time.process_time()
        done = _run(*run)
        done["seconds"] = round(time.process_time() - began, 1)
        done["machine"] = f"{platform.machine()}, NumPy {np.__version__}"
        done["date"] = time.strftime("%Y-%m-%d")
        write_results(path, sorted([*runs, done], key=_order))
        sys.stdout.write(f"{json.dumps(done)[:200]}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Train on 2 to 1,024 dialects, what the file lacks (an hour or two)."
    stopped = "stopped; what is done is kept, and the same command goes on from there"
    return run_recipe("dialect_gpt", about, _make, _FILE, arguments, stopped)


if __name__ == "__main__":
    sys.exit(main())
