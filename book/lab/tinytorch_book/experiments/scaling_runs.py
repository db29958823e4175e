"""Story GPTs of many sizes, trained on many tokens: what a scaling law is fitted to.

`scaling_run` is one training run, from a size and a number of steps to the loss on unread stories.
No token is read twice, and the rate falls to 0 at the end of every run, however long it is
(Hoffmann et al., 2022, section 3): a run stopped in the middle of a longer schedule would look
worse than its tokens allow.

`scaling_runs` gives the results of these runs. To make them again:

    python -m tinytorch_book.experiments.scaling_runs

writes them to `scaling.json`; `--in-package` adds the missing ones to those of the package. Every
run is saved as soon as it is done, so this can be stopped and started again.
"""

import json
import platform
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.arguments import check_sizes
from tinytorch.core.optimizers import AdamW, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.models.transformer import GPT
from tinytorch.text.batches import Batches
from tinytorch.training.trainer import Trainer
from tinytorch_book.experiments.fine_tuning import excess
from tinytorch_book.experiments.stored_results import read_results, run_recipe, write_results
from tinytorch_book.experiments.story_gpt import SEQ_LEN, VOCAB_SIZE, story_batches
from tinytorch_book.stories import StoryGrammar

__all__ = ["FreshStories", "scaling_model", "scaling_rate", "scaling_rates", "scaling_run",
           "scaling_runs"]  # fmt: skip

BATCH_SIZE = 8
_FILE = Path(__file__).with_name("data") / "scaling.json"
_FIRST_SEED = 100  # other models are tested on the stories of smaller seeds
_SIZES = (  # width, depth
    (8, 1), (8, 2), (16, 1), (16, 2), (24, 2), (32, 1), (32, 2),
    (32, 4), (64, 1), (64, 2), (64, 4), (96, 3), (128, 3),
)  # fmt: skip
_STEPS = (64, 128, 256, 512, 1024, 2048, 4096)
_SEEDS_AT = ((8, 1, 256), (16, 2, 1024), (32, 2, 256), (32, 2, 1024), (64, 2, 256), (64, 2, 1024))
_RATES_TRIED = {  # by width, depth, steps
    (8, 1, 256): (0.012, 0.024, 0.048, 0.096, 0.192),
    (8, 1, 2048): (0.048, 0.096, 0.192),
    (32, 2, 256): (0.006, 0.012, 0.024, 0.048),
    (32, 2, 1024): (0.012, 0.024, 0.048),
    (128, 1, 256): (0.0015, 0.003, 0.006, 0.012),
}
_MOST = 2.45e11  # parameters times tokens of the longest run


class FreshStories(Batches):
    """Batches to read once: windows that each begin with a story, and share no token."""

    def __init__(self, steps: int, seed: int = 0) -> None:
        check_sizes(steps=steps)
        enough = steps * BATCH_SIZE * 5 // 2 + 20  # a window reaches over 2.1 stories on average
        every = story_batches(BATCH_SIZE, num_stories=enough, seed=_FIRST_SEED + seed)
        apart = [every.starts[0]]
        following = np.searchsorted(every.starts, every.starts + SEQ_LEN)
        position = following[0]
        while position < len(every.starts) and len(apart) < steps * BATCH_SIZE:
            apart.append(every.starts[position])
            position = following[position]
        super().__init__(every.tokens, BATCH_SIZE, SEQ_LEN, seed, starts=np.array(apart))
        self.steps = steps

    def __getitem__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The inputs and targets of a step, each `(8, 112)`."""
        if not 0 <= step < self.steps:
            raise IndexError(f"these stories are enough for {self.steps} steps, got step {step}")
        first = self.starts[step * BATCH_SIZE : (step + 1) * BATCH_SIZE]
        rows = self.tokens[first[:, None] + np.arange(SEQ_LEN + 1)]  # (8, 113)
        return rows[:, :-1], rows[:, 1:]


def scaling_model(embed_dim: int, num_layers: int, seed: int = 0) -> GPT:
    """The story GPT in another size, before it has read anything.

    Heads are 16 wide, and a wider model starts with smaller weights, so the initial scores are
    alike at every width; at a width of 64 both are those of `new_story_gpt`.
    """
    return GPT(
        VOCAB_SIZE, embed_dim, num_layers, max(1, embed_dim // 16), SEQ_LEN,
        pos_encoding="rotary", init_std=0.8 / embed_dim**0.5, rng=seed,
    )  # fmt: skip


def scaling_rate(embed_dim: int) -> float:
    """The highest learning rate of a run: the narrower the model, the higher.

    It is within a factor of two of the best rate tried at each of three widths (`scaling_rates`).
    """
    return 0.8 / embed_dim


def scaling_run(
    embed_dim: int, num_layers: int, steps: int, seed: int = 0, lr: float | None = None
) -> dict[str, Any]:
    """Train one model, and measure it.

    Args:
        embed_dim: the width.
        num_layers: the depth.
        steps: how many steps of 8 windows of 112 tokens.
        seed: which first weights, and which stories.
        lr: the highest rate; by default `scaling_rate`.

    Returns:
        The arguments by name; `parameters`, and `body`, those of them that are not in the token
        table; `tokens`, how many were read; `loss` on 500 unread stories, in nats a letter. The
        luck of which stories they are is removed: the loss is the exact entropy plus the model's
        excess surprise over the oracle.

    Example:
        >>> run = scaling_run(8, 1, steps=2)
        >>> run["parameters"], run["body"], run["tokens"]
        (4984, 888, 1792)
    """
    model, lr = scaling_model(embed_dim, num_layers, seed), lr or scaling_rate(embed_dim)
    betas, warmup = (0.9, 0.99), max(1, steps // 10)
    Trainer(
        model,
        FreshStories(steps, seed),
        optimizer=AdamW(model.parameters(), betas=betas, weight_decay=0.01, decay=only_matrices),
        schedule=CosineSchedule(lr=lr, warmup_steps=warmup, total_steps=max(steps, 2)),
        progress=False,
    ).run(steps)
    count, entropy = model.num_parameters(), _entropy()
    loss = (
        entropy.nats_per_story + excess(model, seed=2, num_stories=500)
    ) / entropy.characters_per_story
    return {
        "embed_dim": embed_dim,
        "num_layers": num_layers,
        "steps": steps,
        "seed": seed,
        "lr": lr,
        "parameters": count["total"],
        "body": count["total"] - count["token_embedding"],
        "tokens": steps * BATCH_SIZE * SEQ_LEN,
        "loss": round(loss, 7),
    }


def scaling_runs() -> list[dict[str, Any]]:
    """The results of the runs of the recipe, from the least compute to the most.

    Returns:
        One dictionary a run: that of `scaling_run`, and `seconds` of a processor, `machine` and
        `date`. Those whose rate was tried, to choose that of all, are in `scaling_rates`.

    Example:
        >>> len(scaling_runs()) >= 80
        True
    """
    return _read(_FILE)["runs"]


def scaling_rates() -> list[dict[str, Any]]:
    """The results of the runs with which the rates were chosen, as in `scaling_runs`.

    Example:
        >>> sorted({run["embed_dim"] for run in scaling_rates()})
        [8, 32, 128]
    """
    return _read(_FILE)["rates"]


# Helpers -------------------------------------------------------------------------------------


_entropy = cache(lambda: StoryGrammar().entropy)  # cached: the sum takes a moment


def _read(path: Path) -> dict[str, list[dict[str, Any]]]:
    if not path.exists():
        return {"rates": [], "runs": []}
    return read_results(path)


def _cost(run: dict[str, Any]) -> int:
    """Parameters times tokens: the order in which the runs are made."""
    d, layers = run["embed_dim"], run["num_layers"]
    parameters = layers * (12 * d * d + 13 * d) + 2 * d + VOCAB_SIZE * d
    return parameters * run["steps"] * BATCH_SIZE * SEQ_LEN


def _wanted() -> dict[str, list[dict[str, Any]]]:
    """The arguments of every run of the recipe."""
    names = "embed_dim", "num_layers", "steps", "seed", "lr"
    rates = [(*size, 0, lr) for size, tried in _RATES_TRIED.items() for lr in tried]
    runs = [(*size, steps, 0, scaling_rate(size[0])) for size in _SIZES for steps in _STEPS]
    runs += [(*run, seed, scaling_rate(run[0])) for run in _SEEDS_AT for seed in (1, 2)]
    named = [[dict(zip(names, run, strict=True)) for run in group] for group in (rates, runs)]
    kept = [sorted((run for run in g if _cost(run) <= _MOST), key=_cost) for g in named]
    return dict(zip(("rates", "runs"), kept, strict=True))


def _make(path: Path) -> None:
    """All runs that are not in a file yet, the cheapest first."""
    for name, wanted in _wanted().items():
        for run in wanted:
            groups = _read(path)
            if any(run.items() <= done.items() for done in groups[name]):
                continue
            began = time.process_time()
            done = scaling_run(**run)
            done["seconds"] = round(time.process_time() - began, 1)
            done["machine"] = f"{platform.machine()}, NumPy {np.__version__}"
            done["date"] = time.strftime("%Y-%m-%d")
            groups[name] = sorted([*groups[name], done], key=_cost)
            write_results(path, groups)
            sys.stdout.write(f"{json.dumps(done)}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Train the scaling law's models that the file lacks, and add them (an hour)."
    stopped = "stopped; what is done is kept, and the same command goes on from there"
    return run_recipe("scaling_runs", about, _make, _FILE, arguments, stopped)


if __name__ == "__main__":
    sys.exit(main())
