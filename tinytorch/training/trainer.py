"""Training a language model: read a batch, go one step, and keep the record.

    inputs, targets = batches[step]
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()

`Trainer` repeats these lines and adds what a run of minutes needs: a learning rate for every step,
clipping, held-out text, a progress line, and checkpoints from which a run that was killed goes on
to the same losses, bit for bit.
"""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import Any

import numpy as np

from tinytorch.core import seeding
from tinytorch.core.layers import Module, check_sizes
from tinytorch.core.optimizers import AdamW, Optimizer, clip_grad_norm
from tinytorch.text.batches import Batches
from tinytorch.training.checkpoint import load_safetensors, save_safetensors
from tinytorch.training.distributed import DataParallel, add_gradients
from tinytorch.training.evaluation import evaluate
from tinytorch.training.progress import Progress

__all__ = ["Trainer"]

_MEASURED = ("loss", "lr", "grad_norm", "validation")
_PARTS = ("model", "optimizer", "history")  # how the names in a checkpoint begin


class Trainer:
    """Trains a language model, and can stop and go on.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`.
        batches: what to read at every step.
        optimizer: by default `AdamW(lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)`, whose decay
            spares biases and norms.
        schedule: the learning rate of every step, for instance a `CosineSchedule`; None to leave
            the optimiser's.
        clip: the largest norm of the gradients, or None.
        accumulate: how many batches make one step. Their gradients are averaged: the step is that
            of one large batch, in the memory of a small one.
        workers: how many processes share the rows of a batch; see `DataParallel`.
        validation: inputs and targets that are held out, each `(n, seq)`.
        eval_every: how many steps lie between two evaluations.
        floor: the lowest loss that any model can expect on the validation windows, if it is known.
        checkpoint: a path where the run is kept; None for nowhere.
        save_every: how many steps lie between two checkpoints; the end of a run and an interrupt
            are saved in any case.
        progress: whether to show a progress line.

    Attributes:
        step_number: how many steps were made.
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

    def __init__(
        self,
        model: Module,
        batches: Batches,
        *,
        optimizer: Optimizer | None = None,
        schedule: Callable[[int], float] | None = None,
        clip: float | None = 1.0,
        accumulate: int = 1,
        workers: int = 1,
        validation: tuple[Any, Any] | None = None,
        eval_every: int = 100,
        floor: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        save_every: int = 100,
        progress: bool = True,
    ) -> None:
        check_sizes(
            accumulate=accumulate, workers=workers, eval_every=eval_every, save_every=save_every
        )
        self.model, self.batches = model, batches
        self.optimizer = _default_optimizer(model) if optimizer is None else optimizer
        self.schedule, self.clip, self.accumulate = schedule, clip, accumulate
        self.validation, self.eval_every, self.floor = validation, eval_every, floor
        self.checkpoint, self.save_every = checkpoint, save_every
        self.progress = progress
        self.workers = workers
        self.parallel = DataParallel(model, workers) if workers > 1 else None
        self.step_number = 0
        self.history: list[dict[str, Any]] = []

    def run(self, steps: int) -> list[dict[str, Any]]:
        """Make so many steps more.

        An interrupt (Ctrl-C, or the stop button of a notebook) lets the step finish and saves the
        checkpoint, if there is one, before it is raised; another `run` goes on from there.

        Args:
            steps: how many steps.

        Returns:
            The history, from the first step of the first run.

        Raises:
            FloatingPointError: the loss is not finite; the parameters are those before the step.
        """
        check_sizes(steps=steps)
        line = Progress(steps, self.floor) if self.progress else None
        shown: Any = nullcontext() if line is None else closing(line)
        seconds, validation = 0.0, None
        tokens = self.accumulate * self.batches.batch_size * self.batches.seq_len
        with shown, _interrupts_noted() as interrupts:
            for done in range(1, steps + 1):
                began = time.perf_counter()
                record = self._step()
                seconds += time.perf_counter() - began
                last = done == steps or bool(interrupts)
                if self.validation is not None and (last or self._is_due(self.eval_every)):
                    record["validation"] = validation = evaluate(self.model, *self.validation)
                if self.checkpoint is not None and (last or self._is_due(self.save_every)):
                    self.save(self.checkpoint)
                if line is not None:
                    line.update(done, record["loss"], done * tokens, seconds, validation)
                if last:  # an interrupt since then waits for the end of the next step
                    break
        if interrupts:
            raise KeyboardInterrupt(f"stopped after step {self.step_number}; run() goes on")
        return self.history

    def _is_due(self, every: int) -> bool:
        return self.step_number % every == 0

    def _add_gradients(self, inputs: Any, targets: Any, scale: float) -> float:
        """Add the gradients of one batch; if its loss is not finite there are none."""
        if self.parallel is not None:
            return self.parallel.backward(inputs, targets, scale)
        return add_gradients(self.model, inputs, targets, scale)

    def _step(self) -> dict[str, Any]:
        """One step: gradients of `accumulate` batches, clipped, and what the optimiser does."""
        self.model.train()
        self.model.zero_grad()
        loss = 0.0
        for part in range(self.accumulate):
            inputs, targets = self.batches[self.step_number * self.accumulate + part]
            loss += self._add_gradients(inputs, targets, 1 / self.accumulate)
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"the loss is {loss} at step {self.step_number}: the parameters have grown too "
                    "far; lower the learning rate, lengthen the warm-up or clip the gradients"
                )
        limit = math.inf if self.clip is None else self.clip
        norm = clip_grad_norm(self.optimizer.params, limit)
        if self.schedule is not None:
            self.optimizer.lr = self.schedule(self.step_number)
        self.optimizer.step()
        self.step_number += 1
        record = {"loss": loss, "lr": self.optimizer.lr, "grad_norm": norm, "validation": None}
        self.history.append(record)
        return record

    # Checkpoints -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything the run depends on to a safetensors file.

        The file holds the parameters, the optimiser's means, the history, the states of the random
        generators and the settings. The step's number is also the position in the data. A file
        that was there before is replaced in one move, or not at all.
        """
        saved = (
            self.model.state_dict(),
            self.optimizer.state_dict(),
            history_columns(self.history),
        )
        tensors = {
            f"{part}.{name}": array
            for part, arrays in zip(_PARTS, saved, strict=True)
            for name, array in arrays.items()
        }
        metadata = {
            "settings": json.dumps(self._settings()),
            "random": json.dumps(_random_states(self.model)),
        }
        save_safetensors(path, tensors, metadata)

    def load(self, path: str | os.PathLike[str], strict: bool = True) -> None:
        """Go on from a checkpoint.

        Args:
            path: a file that `save` has written.
            strict: whether the settings (data, schedule, clipping ...) must be those of the saved
                run; otherwise these ones are used from here on.

        Raises:
            ValueError: the file is damaged or is no checkpoint, its tensors do not match the model
                or the optimiser, or the settings differ; every mismatch is named. The trainer is
                then as it was.
        """
        tensors, metadata = load_safetensors(path)
        model, optimizer, history = (tensors_under(part, tensors) for part in _PARTS)
        try:
            settings, random = (json.loads(metadata[name]) for name in ("settings", "random"))
            columns = [history[name] for name in _MEASURED]
        except (KeyError, json.JSONDecodeError):
            raise ValueError(
                f"{os.fspath(path)} is not a training checkpoint; Trainer.save writes one"
            ) from None
        if strict:
            self._check_settings(path, settings)
        before = self.model.state_dict()
        self.model.load_state_dict(model)
        try:
            self.optimizer.load_state_dict(optimizer)
        except ValueError:
            self.model.load_state_dict(before)
            raise
        _restore_random_states(self.model, random)
        rows = np.stack(columns, axis=1).tolist()
        self.history = [dict(zip(_MEASURED, row, strict=True)) for row in rows]
        for record in self.history:
            if math.isnan(record["validation"]):
                record["validation"] = None
        self.step_number = len(self.history)

    def _settings(self) -> dict[str, str]:
        """What must be the same for the losses to go on as if nothing had happened."""
        b, o = self.batches, self.optimizer
        text = zlib.crc32(b.starts.tobytes(), zlib.crc32(b.tokens.tobytes()))
        names = ["betas", "eps", "weight_decay", "momentum", "decays"]
        if self.schedule is None:
            names.append("lr")
        shown = {name: getattr(o, name) for name in names if hasattr(o, name)}
        return {
            "data": f"{len(b.tokens)} tokens, checksum {text:08x}",
            "batches": f"{b.batch_size} windows of {b.seq_len}, seed {b.seed}",
            "accumulate": str(self.accumulate),
            "optimizer": f"{type(o).__name__} {shown}",
            "schedule": repr(self.schedule).split(" at 0x")[0],
            "clip": str(self.clip),
            "workers": str(self.workers),
        }

    def _check_settings(self, path: Any, saved: dict[str, str]) -> None:
        own, saved = self._settings(), {"workers": "1", **saved}
        differing = [
            f"{name}: saved {saved.get(name)}, here {own[name]}"
            for name in own
            if saved.get(name) != own[name]
        ]
        if differing:
            raise ValueError(
                f"{os.fspath(path)} belongs to another run; pass strict=False to go on with the "
                "settings of this one:\n  " + "\n  ".join(differing)
            )


# Helpers -------------------------------------------------------------------------------------


def history_columns(history: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """A history as one array for each thing measured, NaN where it was not.

    Example:
        >>> step = {"loss": 2.0, "lr": 0.1, "grad_norm": 1.0, "validation": None}
        >>> history_columns([step])["validation"]
        array([nan])
    """
    columns = {name: [record[name] for record in history] for name in _MEASURED}
    return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}


def tensors_under(part: str, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors of a checkpoint whose names begin with a part, without it.

    Example:
        >>> tensors_under("model", {"model.weight": np.zeros(2), "history.loss": np.ones(3)})
        {'weight': array([0., 0.])}
    """
    start = f"{part}."
    return {n.removeprefix(start): array for n, array in tensors.items() if n.startswith(start)}


def _default_optimizer(model: Module) -> AdamW:
    return AdamW(
        model.parameters(),
        lr=1e-3,
        betas=(0.9, 0.99),
        weight_decay=0.1,
        decay=lambda p: p.ndim >= 2,  # tables and matrices, but neither biases nor norms
    )


@contextmanager
def _interrupts_noted() -> Iterator[list[int]]:
    """Note a first interrupt instead of raising it; a second one is raised as ever."""
    noted: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield noted  # only the main thread receives interrupts
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        if noted:
            raise KeyboardInterrupt
        noted.append(number)

    signal.signal(signal.SIGINT, note)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _generators(model: Module) -> dict[str, np.random.Generator]:
    """The random generators that layers keep for themselves, by path."""
    found = {name: getattr(part, "rng", None) for name, part in model.named_modules()}
    return {name: rng for name, rng in found.items() if isinstance(rng, np.random.Generator)}


def _random_states(model: Module) -> dict[str, Any]:
    own = {name: rng.bit_generator.state for name, rng in _generators(model).items()}
    return {"default": seeding.default_state(), "layers": own}


def _restore_random_states(model: Module, saved: dict[str, Any]) -> None:
    default = seeding.default_rng()
    seeding.restore_default(saved["default"])
    parts = dict(model.named_modules())
    for name, rng in _generators(model).items():
        if rng is default:
            vars(parts[name])["rng"] = seeding.default_rng()  # still one generator, not two
        elif name in saved["layers"]:
            rng.bit_generator.state = saved["layers"][name]
