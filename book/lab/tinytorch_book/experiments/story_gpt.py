"""The model of this book: a small GPT that has read stories for a minute or two.

`train_story_gpt` is the whole recipe. The result of one run is kept in the package:
`load_story_gpt` gives the model, `story_gpt_run` its record. To train it again:

    python -m tinytorch_book.experiments.story_gpt

writes both to `story_gpt.safetensors`; with `--in-package` they replace those of the package.
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.optimizers import AdamW, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.files.command_line import add_output, run_command, whole
from tinytorch.models.transformer import GPT
from tinytorch.text.batches import Batches, windows
from tinytorch.text.tokenization import BPETokenizer
from tinytorch.training import weight_files
from tinytorch.training.resuming import history_columns
from tinytorch.training.trainer import Trainer
from tinytorch_book.stories import StoryGrammar

VOCAB_SIZE = 512
SEQ_LEN = 112  # tokens; enough for a whole story
STEPS = 4000
_FILE = Path(__file__).with_name("data") / "story_gpt.safetensors"


class StoryWindows(NamedTuple):
    """Held-out windows of stories, and the surprise of the best possible reader.

    Attributes:
        inputs: ids `(n, seq)`; every row begins with the newline before a story.
        targets: the ids that follow, `(n, seq)`.
        floor: the surprise of the oracle at every target, in nats, `(n, seq)`; its mean is the
            lowest loss that any model can expect on these windows.
        characters: how many characters every target has, `(n, seq)`: the sum of a model's surprise
            over the sum of these is its loss in nats a character.
    """

    inputs: np.ndarray
    targets: np.ndarray
    floor: np.ndarray
    characters: np.ndarray


@cache
def story_tokenizer() -> BPETokenizer:
    """The tokenizer of the stories: byte-pair encoding, trained on a thousand of them.

    Example:
        >>> story_tokenizer().vocab_size
        512
    """
    return BPETokenizer.train(_grammar().generate(1000, seed=0), VOCAB_SIZE)


def story_batches(
    batch_size: int = 8,
    seq_len: int = SEQ_LEN,
    num_stories: int = 20_000,
    seed: int = 0,
    grammar: StoryGrammar | None = None,
) -> Batches:
    """Windows to train on, each beginning with the newline before a story.

    A window that began in the middle of a story could not know who the story is about, and its
    best possible loss would be higher.

    Args:
        batch_size: windows in a batch.
        seq_len: tokens in a window.
        num_stories: how many stories are written; about 69 tokens each.
        seed: which stories, and which windows of them.
        grammar: which grammar writes them: by default that of the book, or a dialect.
    """
    ids, _ = _story_ids(num_stories, seed, grammar or _grammar())
    return Batches(ids, batch_size, seq_len, seed, starts=_newlines(ids))


def story_windows(
    num_windows: int = 64,
    seq_len: int = SEQ_LEN,
    seed: int = 1,
    grammar: StoryGrammar | None = None,
) -> StoryWindows:
    """Stories that the model has not read, with the surprise of the grammar's oracle.

    Args:
        num_windows: how many; one a story.
        seq_len: tokens in a window.
        seed: which stories; those to train on have seed 0.
        grammar: which grammar writes them and gives the oracle: by default that of the book.

    Example:
        >>> held_out = story_windows(num_windows=2, seq_len=8)
        >>> held_out.inputs.shape, held_out.floor.shape
        ((2, 8), (2, 8))
    """
    enough = num_windows + seq_len // 20 + 1  # the last windows reach into the stories after them
    grammar = grammar or _grammar()
    ids, text = _story_ids(enough, seed, grammar)
    starts = _newlines(ids)[:num_windows]
    inputs, targets = windows(ids, seq_len, starts)
    characters = np.array([len(piece) for piece in story_tokenizer().pieces(text)])
    ends = characters.cumsum()
    known = np.append(0.0, -grammar.log_probs(text[1:])).cumsum()  # nats up to a character
    floor = np.diff(known[ends - 1], prepend=0.0)
    rows = starts[:, None] + np.arange(1, seq_len + 1)  # the positions of the targets
    return StoryWindows(inputs, targets, floor[rows], characters[rows])


def new_story_gpt(rng: Any = 0) -> GPT:
    """The model before it has read anything.

    Example:
        >>> new_story_gpt().num_parameters()["total"]
        132864
    """
    sizes = VOCAB_SIZE, 64, 2, 4, SEQ_LEN  # vectors of 64, in 2 layers of 4 heads
    return GPT(*sizes, pos_encoding="rotary", init_std=0.1, rng=rng)


def train_story_gpt(steps: int = STEPS, **options: Any) -> Trainer:
    """Train the model of this book.

    Args:
        steps: how many steps of 8 windows.
        options: passed on to `Trainer`, for instance `checkpoint=`.

    Returns:
        The trainer, with the model and the history.
    """
    trainer = story_trainer(steps, **options)
    trainer.run(steps)
    return trainer


def story_trainer(steps: int = STEPS, rng: Any = 0, **options: Any) -> Trainer:
    """The run that trains the model of this book, before its first step.

    Args:
        steps: how many there will be, for the schedule.
        rng: where the initial weights come from.
        options: passed on to `Trainer`.
    """
    model, held_out = new_story_gpt(rng), story_windows()
    betas = (0.9, 0.99)
    return Trainer(
        model,
        story_batches(),
        optimizer=AdamW(model.parameters(), betas=betas, weight_decay=0.01, decay=only_matrices),
        schedule=CosineSchedule(lr=6e-3, warmup_steps=50, total_steps=steps),
        validation=(held_out.inputs, held_out.targets),
        floor=float(held_out.floor.mean()),
        **options,
    )


def load_story_gpt() -> GPT:
    r"""The trained model that comes with the package.

    Returns:
        A model in evaluation mode, with new arrays at every call.

    Example:
        >>> model, tokenizer = load_story_gpt(), story_tokenizer()
        >>> prompt = tokenizer.encode("\nOnce upon")  # no space at the end: it begins a token
        >>> tokenizer.decode(model.generate(prompt, 5, temperature=0))
        '\nOnce upon a time there was a'
    """
    model = new_story_gpt()
    weight_files.load_weights(_FILE, model, prefix="model.")
    model.eval()
    return model


def story_gpt_run() -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The record of the run that made the trained model.

    Returns:
        Arrays by name, one number a step: `loss`, `lr`, `grad_norm`, `validation` (NaN where it
        was not measured); and facts about the run: `seconds`, `tokens_per_second`, `floor`,
        `machine`, `date`, as text.
    """
    tensors, metadata = weight_files.load_safetensors(_FILE)
    return weight_files.without_prefix(tensors, "history."), metadata


# Helpers -------------------------------------------------------------------------------------


_grammar = cache(StoryGrammar)  # to read and check its rules takes a moment


def _story_ids(num_stories: int, seed: int, grammar: StoryGrammar) -> tuple[np.ndarray, str]:
    """The stories as ids, and as they are written, with a newline before the first one."""
    text = "\n" + grammar.generate(num_stories, seed)
    return np.array(story_tokenizer().encode(text)), text


def _newlines(ids: np.ndarray) -> np.ndarray:
    """Where the newlines are; the last one has no story after it."""
    return np.flatnonzero(ids == story_tokenizer().encode("\n")[0])[:-1]


def _store(trainer: Trainer, seconds: float, path: Path) -> None:
    """Write a run to a file: the weights in half precision, and its record."""
    weights, columns = trainer.model.state_dict(), history_columns(trainer.history)
    tensors = {f"model.{name}": array.astype(np.float16) for name, array in weights.items()}
    tensors |= {f"history.{name}": column.astype(np.float32) for name, column in columns.items()}
    tokens = trainer.step_number * trainer.batches.batch_size * trainer.batches.seq_len
    metadata = {
        "seconds": f"{seconds:.0f}",
        "tokens_per_second": f"{tokens / seconds:.0f}",
        "floor": f"{trainer.floor:.6f}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}",
        "date": time.strftime("%Y-%m-%d"),
    }
    weight_files.save_safetensors(path, tensors, metadata)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytorch_book.experiments.story_gpt",
        description="Train the model of the book (some minutes), and write it with its record.",
    )
    steps = f"train for N steps, the first 50 of which warm up ({STEPS})"
    parser.add_argument("--steps", type=whole(51), default=STEPS, metavar="N", help=steps)
    add_output(parser, _FILE.name, _FILE)
    options = parser.parse_args(arguments)

    def work() -> None:
        began = time.perf_counter()
        done = train_story_gpt(options.steps)
        _store(done, time.perf_counter() - began, options.output)

    return run_command(work, options.output)


if __name__ == "__main__":
    sys.exit(main())
