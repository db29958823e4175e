"""Resuming: all that a run depends on, written to a checkpoint and restored from it.

Besides the weights and the optimiser's state, a checkpoint contains the number of the step (which
is the position in the data), the history, the states of all random generators, the attributes that
changed during the run (`run_attributes.py`), the settings that a run must keep, and a checksum of
it all. `save_run` and `load_run` say what happens; the sections below them follow in that order.
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
from tinytorch.training.run_attributes import (
    attributes,
    check_places,
    decoded,
    encoded,
    restore_attributes,
)
from tinytorch.training.weight_files import without_prefix

# Checkpoints ---------------------------------------------------------------------------------


def save_run(
    path: StrPath,
    model: Module,
    optimizer: Optimizer,
    step: int,
    history: list[dict[str, Any]],
    settings: dict[str, str],
    changing: set[str],
) -> None:
    """Write a run to a file, as `Trainer.save` does.

    Raises:
        ValueError: an attribute that changed during the run is of a kind that no file contains.
    """
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    saved["history"] = history_columns(history)
    changed, arrays = _encoded_changes(model, optimizer, changing)
    saved["changed"] = {str(i): array for i, array in enumerate(arrays)}
    tensors = {f"{part}.{n}": array for part in saved for n, array in saved[part].items()}
    notes = {"step": step, "settings": settings, "random": random_states(model)}
    texts = {name: json.dumps(value) for name, value in {**notes, "changed": changed}.items()}
    save_safetensors(path, tensors, {**texts, "checksum": checksum(tensors, texts)})


def load_run(
    path: StrPath,
    model: Module,
    optimizer: Optimizer,
    check: Callable[[int, dict[str, str], set[str]], None] | None,
) -> tuple[int, list[dict[str, Any]], set[str]]:
    """Restore a run from its file; returns step, history and the names of what changed in it.

    Args:
        path: a file that `save_run` has written.
        model: receives the weights.
        optimizer: receives its state.
        check: raises a ValueError if the saved settings are not those wanted; it is given the
            step, the settings, and the names of the attributes that changed.

    Raises:
        ValueError: something does not fit; nothing is changed.
    """
    tensors, notes = load_safetensors(path)
    try:  # nothing is changed before everything is checked
        if {*notes} != {"step", "settings", "random", "changed", "checksum"}:
            raise ValueError("this is not a training checkpoint; Trainer.save writes one")
        if notes.pop("checksum") != checksum(tensors, notes):
            raise ValueError("the file is damaged: its checksum is wrong; use another copy")
        names = "step", "settings", "random", "changed"
        step, settings, random, changed = (parse_json(notes[name].encode()) for name in names)
        parts = ("model.", "optimizer.", "history.", "changed.")
        weights, state, columns, arrays = (without_prefix(tensors, part) for part in parts)
        history = history_records(columns)
        if type(step) is not int or step < len(history):
            raise ValueError(f"its history has {len(history)} steps, its step is {step!r}")
        if check:
            check(step, dict(settings), {*changed})
        _check_state(model, weights)
        _check_state(optimizer, state)
        listed = [arrays[str(i)] for i in range(len(arrays))]
        values = {name: decoded(saved, listed) for name, saved in dict(changed).items()}
        check_places(model, optimizer, values)
        restore_states(model, random)  # all or none
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        reason = error if isinstance(error, ValueError) else f"it is damaged: {error!r}"
        raise ValueError(f"{path}: {reason}") from error
    restore_attributes(model, optimizer, values)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    return step, history, {*values}


def _encoded_changes(
    model: Module, optimizer: Optimizer, changing: set[str]
) -> tuple[dict[str, Any], list[np.ndarray]]:
    arrays: list[np.ndarray] = []
    changed = {}
    for path, (_, _, value) in attributes(model, optimizer).items():
        if path in changing:
            try:
                changed[path] = encoded(value, arrays)
            except TypeError:
                what = (
                    f"{path} changed during the run, and a checkpoint cannot contain {value!r:.60}"
                )
                remedy = "keep numbers, arrays, texts, and lists or dictionaries of these"
                raise ValueError(f"{what}; {remedy}") from None
    return changed, arrays


def _check_state(part: Module | Optimizer, saved: dict[str, np.ndarray]) -> None:
    """Raise unless `part.load_state_dict(saved)` will succeed; numbers must not overflow."""
    with np.errstate(over="raise"):
        restore(part.state_dict(), saved, type(part).__name__)  # into a copy


# The settings --------------------------------------------------------------------------------
# What must be the same for a run to continue as if it had not stopped.


def settings_of(
    batches: Any, optimizer: Optimizer, schedule: Callable[[int], float] | None, step: int
) -> dict[str, str]:
    """The data and the learning rates of a run up to a step, as texts that can be compared."""
    data = type(batches).__name__  # custom batches may come from anywhere
    if hasattr(batches, "checksum"):
        data += f" of {len(batches.tokens)} tokens, checksum {batches.checksum:08x}"
    seed = getattr(batches, "seed", None)
    rates = {"rates": f"{optimizer.lr:.6g} always"}
    if schedule is not None:
        past = " ".join(_rate(schedule, i) for i in range(step))
        rates = {"rates": " ".join(_rate(schedule, i) for i in _COMPARED)}
        rates[f"rates before step {step}"] = f"checksum {zlib.crc32(past.encode()):08x}"
    return {
        "data": data,
        "batches": f"{batches.batch_size} windows of {batches.seq_len}, seed {seed}",
        "schedule": repr(schedule).split(" at 0x")[0],
        **rates,
    }


_COMPARED = 0, *(2**i for i in range(21))  # steps, past or to come


def _rate(schedule: Callable[[int], float], step: int) -> str:
    """The learning rate of a step, in few digits: a cosine may differ in the last one elsewhere."""
    try:
        return f"{schedule(step):.6g}"
    except Exception as error:  # a custom schedule may end anywhere, and in any way
        return type(error).__name__


def model_settings(model: Module, optimizer: Optimizer) -> dict[str, str]:
    """What is trained of a model and in which dtype, and which parts share a random generator."""
    kinds = {str(p.dtype) for p in model.parameters()}
    shared: dict[int, list[str]] = {}
    for name, (_, _, rng) in generators(model).items():
        shared.setdefault(id(rng), []).append(name)
    named = " ".join("=".join(names) for names in shared.values())
    paths = {id(p): name for name, p in model.named_parameters()}
    trained = [paths.get(id(p), "?") for p in optimizer.params]
    summed = f"{len(trained)} parameters, checksum {zlib.crc32(' '.join(trained).encode()):08x}"
    return {"trained": summed, "generators": named, "dtype": " ".join(sorted(kinds))}


def check_settings(saved: dict[str, str], own: dict[str, str], remedy: str) -> None:
    """Raise a ValueError that names every setting which differs."""
    pairs = [(n, saved.get(n), own.get(n)) for n in dict.fromkeys([*own, *saved])]
    wrong = [f"\n  {n}: saved {old}, here {new}" for n, old, new in pairs if old != new]
    if wrong:
        wrong[12:] = [f"\n  and {len(wrong) - 12} more"] if len(wrong) > 12 else []
        raise ValueError(f"this belongs to another run; {remedy}:{''.join(wrong)}")


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
