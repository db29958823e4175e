"""The story GPT, trained in one process or in several, the *ranks*.

    mpiexec -n 4 python -m tinytorch_book.experiments.distributed --steps 200 --checkpoint run

trains it in four; over two machines:

    python -m tinytorch_book.experiments.distributed --hosts first,second --ranks 4 --steps 200

which starts `mpiexec -hosts first,second -n 4` by ssh: each machine needs the package and the same
Python at the same path, and rank 0, on the first of them, keeps the checkpoint. The same command
resumes from it, with any number of ranks.
"""

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.optimizers import AdamW, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.core.seeding import manual_seed
from tinytorch.files.atomic_files import write_atomically
from tinytorch.files.command_line import file_name, real, run_command, whole
from tinytorch.models.transformer import GPT
from tinytorch.training.distributed import RankTrainer, run_ranks
from tinytorch.training.ranks import INSTALL, PATIENCE, Ranks
from tinytorch_book.experiments.story_gpt import SEQ_LEN, VOCAB_SIZE, story_batches, story_windows

__all__ = ["measured_ranks"]

_MEASURED = Path(__file__).with_name("data") / "ranks.json"


def measured_ranks() -> dict[str, Any]:
    """The times of training steps on several ranks that the book shows, and the machine.

    Returns:
        `machine`, a dictionary of texts, and `runs`: one dictionary each with `scaling` (strong or
        weak), `width`, `layers`, `ranks`, `batch`, and the seconds of a `step` and, of these, of
        `waiting`.

    Example:
        >>> sorted({run["ranks"] for run in measured_ranks()["runs"]})
        [1, 2, 4]
    """
    return json.loads(_MEASURED.read_text())


# The command -----------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tinytorch_book.experiments.distributed",
        description="Train the story GPT, in one process or in several ranks.",
    )

    def add(name: str, read: Any, default: Any, text: str, kind: str = "N") -> None:
        shown = "" if default is None else f" ({default})"
        parser.add_argument(name, type=read, default=default, metavar=kind, help=text + shown)

    add("--steps", whole(1), 200, "of the whole run, including those of a checkpoint")
    add("--batch-size", whole(1), 8, "rows of a batch, over all ranks")
    add("--accumulate", whole(1), 1, "batches in a step")
    add("--dropout", real(0, 1, without=1), 0.0, "fraction dropped in training", "X")
    add("--embed-dim", _width, 64, "the model's width; its heads are 16 wide")
    add("--layers", whole(1), 2, "blocks of the model")
    add("--learning-rate", real(0), 6e-3, "the highest rate, after a tenth of the steps", "X")
    add("--num-stories", whole(2), 20_000, "to train on")
    add("--seed", whole(0), 0, "of the initial weights")
    add("--checkpoint", file_name, None, "resume from it if it exists, and save to it", "FILE")
    add("--save-every", whole(1), 100, "steps from one checkpoint to the next")
    add("--eval-every", whole(1), 100, "steps from one evaluation to the next")
    parser.add_argument("--shard-optimizer", action="store_true",
                        help="each rank keeps its part of the state")  # fmt: skip
    add("--patience", real(0, without=0), PATIENCE, "seconds to wait for the slowest rank", "X")
    add("--report", file_name, None, "write the losses and times to it, as JSON", "FILE")
    add("--ranks", whole(1), None, "start this many ranks with mpiexec")
    add("--hosts", _hosts, None, "on these machines", "A,B")
    return parser


def _width(text: str) -> int:
    width = whole(1)(text)
    heads = max(1, width // 16)
    if width % (2 * heads):
        what = f"{width} does not divide into {heads} heads of an even width"
        raise argparse.ArgumentTypeError(f"{what}; take a multiple of 16")
    return width


def _hosts(text: str) -> str:
    if not all(re.fullmatch(r"\w[\w.:-]*", host) for host in text.split(",")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of machines such as first,second")
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status, or becomes mpiexec."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    return run_command(lambda: _begin(options, arguments))


def _begin(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    if options.hosts or (options.ranks or 1) > 1:
        _launch(options, _without_launch(arguments))
    run_ranks(lambda ranks: _train(ranks, options), options.patience)


def _launch(options: argparse.Namespace, arguments: Sequence[str]) -> None:
    """Become an mpiexec that starts this command on the machines named."""
    mpiexec = Path(sys.executable).with_name("mpiexec")
    found = str(mpiexec) if mpiexec.exists() else shutil.which("mpiexec")
    if found is None:
        raise OSError(f"no mpiexec beside {sys.executable} or on the PATH; {INSTALL}")
    hosts = ["-hosts", options.hosts] if options.hosts else []
    ranks = options.ranks or len(options.hosts.split(","))
    module = [sys.executable, "-m", "tinytorch_book.experiments.distributed"]
    os.execv(found, [found, *hosts, "-n", str(ranks), *module, *arguments])


def _without_launch(arguments: Sequence[str]) -> list[str]:
    """The arguments that are meant for the ranks."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--ranks")
    parser.add_argument("--hosts")
    return parser.parse_known_args(arguments)[1]


class _CommandTrainer(RankTrainer):
    """A trainer that keeps the command's options in its checkpoints, and names what differs."""

    _remedy = "repeat the options of that run, or name another --checkpoint"

    def __init__(self, ranks: Ranks, options: argparse.Namespace, *given: Any, **more: Any) -> None:
        self.options = {
            f"--{name.replace('_', '-')}": str(vars(options)[name]) for name in _OF_THE_RUN
        }
        super().__init__(ranks, *given, **more)

    def _settings(self, step: int) -> dict[str, str]:
        return {**super()._settings(step), **self.options}

    def _check_settings(self, step: int, saved: dict[str, str], changing: set[str]) -> None:
        there = {name: saved.get(name, own) for name, own in self.options.items()}  # or of old
        wrong = [f"{n} {there[n]}, not {own}" for n, own in self.options.items() if there[n] != own]
        if wrong:
            raise ValueError(f"its run has {', and '.join(wrong)}; {self._remedy}")
        super()._check_settings(step, {**self.options, **saved}, changing)


# Options that must not change during a run.
_OF_THE_RUN = (
    "steps", "batch_size", "accumulate", "dropout", "embed_dim", "layers", "learning_rate",
    "num_stories", "seed",
)  # fmt: skip


def _train(ranks: Ranks, options: argparse.Namespace) -> None:
    """Train a story GPT of the size and for the steps that the options say."""
    manual_seed(options.seed)
    width, held_out = options.embed_dim, story_windows()
    model = GPT(
        VOCAB_SIZE, width, options.layers, max(1, width // 16), SEQ_LEN, pos_encoding="rotary",
        init_std=0.8 / width**0.5, dropout=options.dropout, rng=options.seed,
    )  # fmt: skip
    trainer = _CommandTrainer(
        ranks, options, model, story_batches(options.batch_size, num_stories=options.num_stories),
        optimizer=AdamW(
            model.parameters(), betas=(0.9, 0.99), weight_decay=0.01, decay=only_matrices
        ),
        schedule=CosineSchedule(options.learning_rate, options.steps // 10, options.steps),
        accumulate=options.accumulate, shard_optimizer=options.shard_optimizer,
        validation=(held_out.inputs, held_out.targets), floor=float(held_out.floor.mean()),
        eval_every=options.eval_every, checkpoint=options.checkpoint, save_every=options.save_every,
    )  # fmt: skip
    begun = ranks.rank == 0 and options.checkpoint is not None and options.checkpoint.exists()
    if ranks.bytes_from_first(b"yes" if begun else b""):
        trainer.load(options.checkpoint)
    _go_on(trainer, options)
    if options.report and ranks.rank == 0:
        step, waiting = np.median(trainer.times or [(0, 0)], axis=0).tolist()  # seconds
        report = {"step": step, "waiting": waiting, "history": trainer.history}
        write_atomically(options.report, json.dumps(report).encode())


def _go_on(trainer: RankTrainer, options: argparse.Namespace) -> None:
    """Take the remaining steps."""
    left = options.steps - trainer.step_number
    if left <= 0 and trainer.ranks.rank == 0:
        sys.stdout.write(f"{options.checkpoint}: all {options.steps} steps are done already\n")
    try:
        if left > 0:
            trainer.run(left)
    except KeyboardInterrupt:
        kept = "the same command goes on from there" if options.checkpoint else "nothing is kept"
        step = f"stopped after step {trainer.step_number} of {options.steps}"
        raise KeyboardInterrupt(f"{step}; {kept}") from None


if __name__ == "__main__":
    sys.exit(main())
