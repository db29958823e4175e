"""Training a language model: read a batch, take one step, record it.

    inputs, targets = batches[step]
    optimizer.zero_grad()
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()

`Trainer` repeats these lines and adds what a longer run needs: a learning rate for every step,
clipping, held-out text, a progress line, and checkpoints from which a run that was killed resumes
to the same losses, bit for bit.
"""

from __future__ import annotations

import io
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np

from tinytorch.core.arguments import check_number, check_sizes
from tinytorch.core.gradient_clipping import clip_grad_norm
from tinytorch.core.losses import cross_entropy
from tinytorch.core.module import Module
from tinytorch.core.optimizers import AdamW, Optimizer, only_matrices
from tinytorch.core.types import TokenIds
from tinytorch.files.atomic_files import StrPath
from tinytorch.text.batches import Batches
from tinytorch.training import resuming
from tinytorch.training.evaluation import check_windows, evaluate
from tinytorch.training.progress import Progress
from tinytorch.training.run_attributes import Changes, attributes, options


class Trainer:
    """Trains a language model, and can stop and resume.

    On a busy machine give NumPy one thread (`tinytorch.core.blas_threads`).

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`.
        batches: the data: `batches[step]` gives inputs and targets.
        optimizer: by default `AdamW(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)` of the
            parameters that are not frozen, without decay of biases and norms.
        schedule: the learning rate of a step, a function of its number alone, for instance a
            `CosineSchedule`; None to keep the optimiser's.
        clip: the largest norm of the gradients, or None.
        accumulate: how many batches make one step. Their gradients are averaged: the step is that
            of one large batch, in the memory of a small one.
        validation: held-out inputs and targets, each `(n, seq)`.
        eval_every: how many steps there are between two evaluations.
        floor: the lowest loss that any model can expect on the validation windows, if it is known.
        checkpoint: a path where the run is saved, replacing the file there; None for nowhere. Two
            runs need two paths.
        save_every: how many steps there are between two checkpoints; at the end of a run and at an
            interrupt one is always saved.
        progress: whether to show a progress line.

    Raises:
        TypeError: `batches`, `optimizer`, `schedule` or `validation` is something else, or `clip`
            or `floor` is not a number.
        IndexError: an id of `validation` is not in the vocabulary.
        ValueError: a number of steps is less than 1, `clip` is not above 0, or the windows of
            `validation` do not fit the model.

    Attributes:
        step_number: how many steps have been taken.
        history: one dictionary a step with `loss`, `lr`, `grad_norm` and `validation` (None where
            it was not measured).

    Example:
        >>> from tinytorch import GPT
        >>> batches = Batches(np.arange(50) % 5, batch_size=4, seq_len=8)
        >>> trainer = Trainer(GPT(5, 16, 1, 2, max_seq_len=8, rng=0), batches, progress=False)
        >>> history = trainer.run(30)
        >>> len(history), history[-1]["loss"] < history[0]["loss"]
        (30, True)
    """

    # what the error for a checkpoint of another run says to do
    _remedy = "pass strict=False to resume with the settings of this trainer"

    def __init__(
        self,
        model: Module,
        batches: Batches,
        *,
        optimizer: Optimizer | None = None,
        schedule: Callable[[int], float] | None = None,
        clip: float | None = 1.0,
        accumulate: int = 1,
        validation: tuple[TokenIds, TokenIds] | None = None,
        eval_every: int = 100,
        floor: float | None = None,
        checkpoint: StrPath | None = None,
        save_every: int = 100,
        progress: bool = True,
    ) -> None:
        check_sizes(accumulate=accumulate, eval_every=eval_every, save_every=save_every)
        _check_kinds(batches, optimizer, schedule, validation)
        for name, value in (("clip", clip), ("floor", floor)):
            if value is not None:
                check_number(value, f"Trainer: {name}")
        if clip is not None and not clip > 0:
            raise ValueError(f"Trainer: clip must be > 0 or None, got {clip}")
        if validation is not None:
            check_windows(model, *validation)
        self.model, self.batches = model, batches
        self.optimizer = optimizer or AdamW(
            model.trainable_parameters(), betas=(0.9, 0.99), weight_decay=0.1, decay=only_matrices
        )
        self.optimizer.holding.watch(model)
        self.schedule, self.clip, self.accumulate = schedule, clip, accumulate
        self.validation, self.eval_every, self.floor = validation, eval_every, floor
        self.checkpoint, self.save_every = checkpoint, save_every
        self.progress, self.step_number = progress, 0
        self.history: list[dict[str, Any]] = []
        self._changes = Changes()

    def run(self, steps: int) -> list[dict[str, Any]]:
        """Train for more steps.

        An interrupt (Ctrl-C, or the stop button of a notebook) lets the step finish and saves the
        checkpoint, if there is one, before it is raised; another `run` resumes from there.

        The progress line depends on the clock: pass `progress=False` to `Trainer` in a notebook
        whose outputs are compared, as nbval does.

        Args:
            steps: how many steps.

        Returns:
            The history, from the first step of the first run.

        Raises:
            FloatingPointError: the loss is not finite; the parameters are those before the step.
                Or that on the validation windows is not; the checkpoint is then the last good one.
            OSError: the checkpoint cannot be written; the run is kept in memory and can resume.
            ValueError: the schedule gives no learning rate, or the model's parameters have changed
                since its optimiser was made.
        """
        check_sizes(steps=steps)
        self.optimizer.holding.watch(self.model)
        self._changes.begin(attributes(self.model, self.optimizer))
        seconds, validation, first = 0.0, None, self.step_number
        tokens = self.accumulate * self.batches.batch_size * self.batches.seq_len
        stream = None if self.progress else io.StringIO()  # discarded
        progress = Progress(first + steps, self.floor, stream, first)
        with closing(progress), self._noting_errors(), _interrupts() as interrupts:
            for done in range(1, steps + 1):
                began = time.perf_counter()
                record = self._step()
                seconds += time.perf_counter() - began
                stopped = self._stops(interrupts)
                last, number = stopped or done == steps, self.step_number
                if self.validation is not None and (last or number % self.eval_every == 0):
                    record["validation"] = validation = self._evaluate(*self.validation)
                    self._check_loss(validation, "loss on the validation windows")
                if last or number % self.save_every == 0:
                    self._note_changes()
                    if self.checkpoint is not None:
                        self.save(self.checkpoint)
                progress.update(number, record["loss"], done * tokens, seconds, validation)
                if stopped:
                    break
        if stopped or interrupts:  # or since the last step asked
            raise KeyboardInterrupt(f"stopped after step {self.step_number}; run() resumes")
        return self.history

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """A context after whose error the changes of the steps before it are noted."""
        try:
            yield
        except BaseException:
            self._changes.note(attributes(self.model, self.optimizer))
            raise

    def _step(self) -> dict[str, Any]:
        """Take one step; `distributed.py` has the form for several processes."""
        self.model.train()
        self.model.zero_grad()
        total = 0.0
        for part in range(self.accumulate):
            inputs, targets = self.batches[self.step_number * self.accumulate + part]
            loss = cross_entropy(self.model(inputs), targets) * (1 / self.accumulate)
            total += loss.item()
            self._check_loss(total)
            loss.backward()
        norm = clip_grad_norm(self.optimizer.params, self._max_norm)
        self.optimizer.lr = self._learning_rate()
        self.optimizer.step()
        return self._record(total, norm)

    @property
    def _max_norm(self) -> float:
        return math.inf if self.clip is None else self.clip

    def _learning_rate(self) -> float:
        """The schedule's for the step to come, or else the optimiser's own."""
        if self.schedule is None:
            return self.optimizer.lr
        rate, step = self.schedule(self.step_number), self.step_number
        if not isinstance(rate, (int, float, np.number)) or not 0 <= rate < math.inf:
            wanted = "the schedule must give a finite rate >= 0"
            raise ValueError(f"{wanted}, got {rate!r} at step {step}")
        return float(rate)

    def _check_loss(self, loss: float, what: str = "loss") -> None:
        if not math.isfinite(loss):
            remedy = "lower the learning rate, lengthen the warm-up or clip the gradients"
            if not self.step_number:
                remedy = "look for a parameter that is not finite: nothing has been trained yet"
            raise FloatingPointError(f"the {what} is {loss} at step {self.step_number}: {remedy}")

    def _record(self, loss: float, norm: float) -> dict[str, Any]:
        """Count the step, and add it to the history."""
        self.step_number += 1
        record = {"loss": loss, "lr": self.optimizer.lr, "grad_norm": norm, "validation": None}
        self.history.append(record)
        return record

    # Several processes, in `distributed.py`, do these two together.

    def _evaluate(self, inputs: TokenIds, targets: TokenIds) -> float:
        return evaluate(self.model, inputs, targets)

    def _stops(self, interrupts: list[int]) -> bool:
        return bool(interrupts)

    # Checkpoints -----------------------------------------------------------------------------

    def save(self, path: StrPath) -> None:
        """Write everything the run depends on to a safetensors file.

        The file contains the parameters, the optimiser's state, the history, the states of the
        random generators that parts of the model keep as attributes, whatever else changed in them
        during the run, the settings and a checksum. The step number is also the position in the
        data, so `batches[step]` must depend on the step alone. An existing file is replaced
        atomically.

        Raises:
            ValueError: the model's parameters have changed since its optimiser was made, or what
                changed during the run is no number, array, text, or list or dictionary of these.
        """
        self.optimizer.holding.watch(self.model)
        settings = self._settings(self.step_number)
        settings |= options(self.model, self.optimizer, self._changes.names)
        state = self.step_number, self.history, settings, self._changes.names
        resuming.save_run(path, self.model, self.optimizer, *state)

    def load(self, path: StrPath, strict: bool = True) -> None:
        """Resume from a checkpoint.

        Args:
            path: a file that `save` has written.
            strict: whether the settings (data, schedule, clipping, the options and classes of the
                model's parts ...) must be those of the saved run; if False, this trainer's settings
                are used from here on. Of a schedule the past rates and some others are compared.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file is damaged or not a checkpoint, its tensors do not match the model
                or the optimiser, or the settings differ; every mismatch is named. The trainer, the
                model, the optimiser and the random generators are then unchanged.
        """
        self.optimizer.holding.watch(self.model)
        check = self._check_settings if strict else None
        loaded = resuming.load_run(path, self.model, self.optimizer, check)
        self.step_number, self.history, self._changes.names = loaded

    def _note_changes(self) -> None:
        self._changes.note(attributes(self.model, self.optimizer))

    def _settings(self, step: int) -> dict[str, str]:
        """What must be the same for the run to continue as if it had not stopped."""
        rules = {
            "accumulate": str(self.accumulate),
            "clip": f"{self.clip:g}" if self.clip else "None",
        }
        settings = resuming.settings_of(self.batches, self.optimizer, self.schedule, step)
        settings |= resuming.model_settings(self.model, self.optimizer)
        return {**rules, **settings}

    def _check_settings(self, step: int, saved: dict[str, str], changing: set[str]) -> None:
        """Options that changed in the saved run are in the file; all others must be equal."""
        own = self._settings(step) | options(self.model, self.optimizer, changing)
        resuming.check_settings(saved, own, self._remedy)


# Helpers -------------------------------------------------------------------------------------


def _check_kinds(batches: object, optimizer: object, schedule: object, validation: object) -> None:
    """Raise before a run begins rather than in the middle of it."""
    has_sizes = hasattr(batches, "batch_size") and hasattr(batches, "seq_len")
    is_pair = isinstance(validation, (tuple, list)) and len(validation) == 2
    for name, value, wanted, fits in (
        ("batches", batches, "a Batches", has_sizes and hasattr(batches, "__getitem__")),
        ("optimizer", optimizer, "an Optimizer", isinstance(optimizer, (Optimizer, type(None)))),
        ("schedule", schedule, "a function of the step", schedule is None or callable(schedule)),
        ("validation", validation, "inputs and targets", validation is None or is_pair),
    ):
        if not fits:
            raise TypeError(f"Trainer: {name} must be {wanted}, got {value!r:.60}")


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Note a first interrupt instead of raising it; a second one is raised as usual."""
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts  # only the main thread receives interrupts
        return

    def note(number: int, frame: object) -> None:
        if interrupts:
            raise KeyboardInterrupt
        interrupts.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
