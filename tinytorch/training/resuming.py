"""Resuming: all that a run depends on, written to a checkpoint and taken up again.

Besides the weights and the optimiser's state that is the number of the step, which is the position
in the data, the history, the states of all random generators, the settings (`run_settings.py`), and
a checksum that shows whether the file is still as it was saved.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core import seeding
from tinytorch.core.module import Module
from tinytorch.core.optimizers import Optimizer
from tinytorch.core.state_dicts import restore
from tinytorch.files.atomic_files import StrPath
from tinytorch.files.safetensors import load_safetensors, save_safetensors
from tinytorch.files.strict_json import parse_json
from tinytorch.training.weight_files import without_prefix

# Checkpoints ---------------------------------------------------------------------------------

_NOTES = "step", "settings", "random"


def save_run(
    path: StrPath,
    model: Module,
    optimizer: Optimizer,
    history: list[dict[str, Any]],
    step: int,
    settings: dict[str, str],
) -> None:
    """Write a run to a file, as `Trainer.save` does."""
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    saved["history"] = history_columns(history)
    tensors = {f"{part}.{n}": array for part in saved for n, array in saved[part].items()}
    values = step, settings, random_states(model)
    notes = {name: json.dumps(value) for name, value in zip(_NOTES, values, strict=True)}
    save_safetensors(path, tensors, {**notes, "checksum": checksum(tensors, notes)})


def load_run(
    path: StrPath,
    model: Module,
    optimizer: Optimizer,
    check: Callable[[dict[str, str]], None] | None,
) -> tuple[list[dict[str, Any]], int]:
    """Take up a run from its file: weights, optimiser, generators; returns history and step.

    Args:
        path: a file that `save_run` has written.
        model: takes the weights.
        optimizer: takes its state.
        check: raises a ValueError if the saved settings are not those wanted.

    Raises:
        ValueError: something does not fit; nothing is changed.
    """
    tensors, notes = load_safetensors(path)
    try:  # nothing is changed before everything is checked
        if {*notes} != {*_NOTES, "checksum"}:
            raise ValueError("this is not a training checkpoint; Trainer.save writes one")
        if notes.pop("checksum") != checksum(tensors, notes):
            raise ValueError("the file is damaged: its checksum is wrong; use another copy")
        step, settings, random = (parse_json(notes[n].encode()) for n in _NOTES)
        if check:
            check(dict(settings))
        parts = ("model.", "optimizer.", "history.")
        weights, state, columns = (without_prefix(tensors, part) for part in parts)
        _check_state(model, weights)
        _check_state(optimizer, state)
        history = history_records(columns)
        if type(step) is not int or step < len(history):
            raise ValueError(f"its history has {len(history)} steps, its step is {step!r}")
        restore_states(model, random)  # all or none
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        reason = error if isinstance(error, ValueError) else f"it is damaged: {error!r}"
        raise ValueError(f"{path}: {reason}") from error
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    return history, step


def _check_state(part: Module | Optimizer, saved: dict[str, np.ndarray]) -> None:
    """Raise unless `part.load_state_dict(saved)` will succeed; numbers must not overflow."""
    with np.errstate(over="raise"):
        restore(part.state_dict(), saved, type(part).__name__)  # into a copy


# The history ---------------------------------------------------------------------------------

_MEASURED = ("loss", "lr", "grad_norm", "validation")


def history_columns(history: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """A history as one array for each quantity measured, NaN where it was not.

    Example:
        >>> step = {"loss": 2.0, "lr": 0.1, "grad_norm": 1.0, "validation": None}
        >>> history_columns([step])["validation"]
        array([nan])
    """
    columns = {name: [record[name] for record in history] for name in _MEASURED}
    return {name: np.array(column, dtype=np.float64) for name, column in columns.items()}


def history_records(columns: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """The history from which `history_columns` made these columns.

    Example:
        >>> step = {"loss": 2.0, "lr": 0.1, "grad_norm": 1.0, "validation": None}
        >>> history_records(history_columns([step])) == [step]
        True
    """
    kinds = {name: (str(column.dtype), column.shape) for name, column in columns.items()}
    one_kind = len({*kinds.values()}) == 1 and kinds.get("loss", ((), ()))[0] == "float64"
    if {*kinds} != {*_MEASURED} or not one_kind or columns["loss"].ndim != 1:
        raise ValueError(f"its history must be float64 (steps,) for {_MEASURED}, got {kinds}")
    rows = zip(*(columns[name].tolist() for name in _MEASURED), strict=True)
    nan_to_none = ((*others, None if math.isnan(last) else last) for *others, last in rows)
    return [dict(zip(_MEASURED, row, strict=True)) for row in nan_to_none]


# Random generators ---------------------------------------------------------------------------


def generators(model: Module) -> dict[str, tuple[Module, str, np.random.Generator]]:
    """The random generators that parts of a model keep: owner, attribute and generator by path."""
    return {
        f"{path}.{attribute}".lstrip("."): (part, attribute, value)
        for path, part in model.named_modules()
        for attribute, value in vars(part).items()
        if isinstance(value, np.random.Generator)
    }


def random_states(model: Module) -> dict[str, Any]:
    """The states of the default generator and of those in a model, as JSON can store them."""
    own = {name: rng.bit_generator.state for name, (_, _, rng) in generators(model).items()}
    return {"default": seeding.default_state(), "layers": _plain(own)}


def _plain(state: object) -> Any:
    return json.loads(json.dumps(state, default=np.ndarray.tolist))


def restore_states(model: Module, saved: dict[str, Any]) -> None:
    """Set the default generator and those of a model, all or none; shared ones stay shared."""
    trials: dict[str, Any] = {}
    for name, (_, _, rng) in generators(model).items():
        if name in saved["layers"]:
            trials[name] = type(rng.bit_generator)()
            trials[name].state = saved["layers"][name]
            if _plain(trials[name].state) != saved["layers"][name]:
                raise ValueError(f"the state of the random generator {name} does not fit its type")
    before = seeding.default_rng()
    seeding.restore_default(saved["default"])
    for name, (part, attribute, rng) in generators(model).items():
        if rng is before:
            vars(part)[attribute] = seeding.default_rng()
        elif name in trials:
            rng.bit_generator.state = trials[name].state


# The checksum --------------------------------------------------------------------------------


def checksum(tensors: dict[str, np.ndarray], notes: dict[str, str]) -> str:
    """The CRC-32 of all names, dtypes, shapes, numbers and texts."""
    kinds = {name: (array.dtype.str, array.shape) for name, array in sorted(tensors.items())}
    total = zlib.crc32(json.dumps([kinds, notes], sort_keys=True).encode())
    for name in kinds:
        total = zlib.crc32(np.asarray(tensors[name], order="C").data, total)
    return f"{total:08x}"
