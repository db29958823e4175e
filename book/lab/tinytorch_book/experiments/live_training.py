"""A story GPT trained from random numbers while someone watches, and may stop it at any step.

    trainer = live_trainer("story", seed=0)
    trainer.run(10)  # again and again: `trainer.history` has the loss of every step
    save_trained("yours.safetensors", trainer)
    gpt = load_trained("yours.safetensors")

The recipe is that of `story_gpt`, shortened: the learning rate falls over a thousand steps instead
of four thousand, and then stays low. `Trainer.save` and `Trainer.load` keep the whole run.
"""

from pathlib import Path

import numpy as np

from tinytorch.core.optimizers import AdamW, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.files.atomic_files import StrPath
from tinytorch.models.transformer import GPT
from tinytorch.training.trainer import Trainer
from tinytorch.training.weight_files import load_safetensors, save_safetensors
from tinytorch_book.experiments.story_gpt import SEQ_LEN, VOCAB_SIZE, story_batches, story_windows

SIZES = {"smaller": 32, "story": 64, "larger": 96}  # the length of a token's vector
LAYERS, HEADS = 2, 4  # of every size
STEPS = 1000  # over which the learning rate falls
VERSION = "1"  # of the weights' files; the page's playground refuses another


def live_trainer(size: str = "story", seed: int = 0) -> Trainer:
    """A run from random numbers, before its first step.

    Args:
        size: one of `SIZES`; "story" is the size of the book's model.
        seed: where the first weights come from; the stories stay the same.

    Raises:
        ValueError: there is no such size.

    Example:
        >>> trainer = live_trainer("smaller")
        >>> history = trainer.run(10)
        >>> history[-1]["loss"] < history[0]["loss"]
        True
    """
    model, held_out = _new_model(size, seed), story_windows(16)
    return Trainer(
        model,
        story_batches(num_stories=4000),
        optimizer=AdamW(
            model.parameters(), betas=(0.9, 0.99), weight_decay=0.01, decay=only_matrices
        ),
        schedule=CosineSchedule(lr=6e-3, warmup_steps=50, total_steps=STEPS, min_lr=3e-4),
        validation=(held_out.inputs, held_out.targets),
        floor=float(held_out.floor.mean()),
        progress=False,
    )


def save_trained(path: StrPath, trainer: Trainer) -> None:
    """Write the weights of a run's model to a safetensors file, with what they do not show.

    Args:
        path: the file; an old one is replaced.
        trainer: its model and its number of steps are written.
    """
    model = trainer.model
    sizes = {"num_heads": HEADS, "max_seq_len": SEQ_LEN, "step": trainer.step_number}
    metadata = {"version": VERSION, **{name: str(size) for name, size in sizes.items()}}
    save_safetensors(path, model.state_dict(), metadata)


def load_trained(path: StrPath) -> GPT:
    """Read a model that `save_trained` has written.

    Returns:
        The model, in evaluation mode. Its tokenizer is `story_tokenizer()`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is another kind of file, or the weights do not fit together.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "yours.safetensors"
        >>> save_trained(path, live_trainer("smaller", seed=7))
        >>> load_trained(path).num_parameters()["total"]
        41856
    """
    weights, metadata = load_safetensors(path)
    table = weights.get("token_embedding.weight", np.empty(0))
    found = [size for size, width in SIZES.items() if table.shape == (VOCAB_SIZE, width)]
    if metadata.get("version") != VERSION or not found:
        raise ValueError(f"{Path(path).name} is not a model that save_trained has written")
    model = _new_model(found[0], 0)
    model.load_state_dict(weights)
    model.eval()
    return model


def _new_model(size: str, seed: int) -> GPT:
    """A model of one of the sizes, which has read nothing."""
    if size not in SIZES:
        raise ValueError(f"the size is one of {', '.join(SIZES)}, got {size!r}")
    sizes = VOCAB_SIZE, SIZES[size], LAYERS, HEADS, SEQ_LEN
    return GPT(*sizes, pos_encoding="rotary", init_std=0.1, rng=seed)
