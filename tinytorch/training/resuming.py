"""Resuming: all that a run depends on, written to a checkpoint and taken up again.

Besides the weights and the optimiser's state, a checkpoint contains the number of the step (which
is the position in the data), the history, the states of all random generators, the settings that a
run must keep, and a checksum of it all. `save_run` and `load_run` say what happens; the sections
below them follow in that order.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.core import seeding
from tinytorch.core.module import Module
from tinytorch.core.optimizers import Optimizer
from tinytorch.core.state_dicts import restore
from tinytorch.core.tensor import Tensor
from tinytorch.files.atomic_files import StrPath
from tinytorch.files.safetensors import load_safetensors, save_safetensors
from tinytorch.files.strict_json import parse_json
from tinytorch.training.weight_files import without_prefix

# Checkpoints ---------------------------------------------------------------------------------


def save_run(
    path: StrPath,
    model: Module,
    optimizer: Optimizer,
    step: int,
    history: list[dict[str, Any]],
    settings: dict[str, str],
) -> None:
    """Write a run to a file, as `Trainer.save` does."""
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    saved["history"] = history_columns(history)
    tensors = {f"{part}.{n}": array for part in saved for n, array in saved[part].items()}
    said = {"step": step, "settings": settings, "random": random_states(model)}
    notes = {name: json.dumps(value) for name, value in said.items()}
    save_safetensors(path, tensors, {**notes, "checksum": checksum(tensors, notes)})


def load_run(
    path: StrPath,
    model: Module,
    optimizer: Optimizer,
    check: Callable[[dict[str, str]], None] | None,
) -> tuple[int, list[dict[str, Any]]]:
    """Take up a run from its file: weights, optimiser, generators; returns step and history.

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
        if {*notes} != {"step", "settings", "random", "checksum"}:
            raise ValueError("this is not a training checkpoint; Trainer.save writes one")
        if notes.pop("checksum") != checksum(tensors, notes):
            raise ValueError("the file is damaged: its checksum is wrong; use another copy")
        names = "step", "settings", "random"
        step, settings, random = (parse_json(notes[name].encode()) for name in names)
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
    return step, history


def _check_state(part: Module | Optimizer, saved: dict[str, np.ndarray]) -> None:
    """Raise unless `part.load_state_dict(saved)` will succeed; numbers must not overflow."""
    with np.errstate(over="raise"):
        restore(part.state_dict(), saved, type(part).__name__)  # into a copy


# The settings --------------------------------------------------------------------------------
# What must be the same for a run to continue as if it had not stopped.


def settings_of(
    batches: Any, optimizer: Optimizer, schedule: Callable[[int], float] | None
) -> dict[str, str]:
    """The data, the optimiser and the schedule of a run, as texts that can be compared."""
    rate = ["lr"] if schedule is None else []
    names = ["betas", "eps", "weight_decay", "momentum", "decays", *rate]
    shown = {name: plain(getattr(optimizer, name)) for name in names if hasattr(optimizer, name)}
    data = type(batches).__name__  # batches of one's own come from anywhere
    if hasattr(batches, "checksum"):
        data = f"{len(batches.tokens)} tokens, checksum {batches.checksum:08x}"
    seed = getattr(batches, "seed", None)
    return {
        "data": data,
        "batches": f"{batches.batch_size} windows of {batches.seq_len}, seed {seed}",
        "optimizer": f"{type(optimizer).__name__} {shown}",
        "schedule": repr(schedule).split(" at 0x")[0],
        "rates": "None" if schedule is None else " ".join(_rate(schedule, i) for i in _STEPS),
    }


def plain(value: Any) -> Any:
    """A setting in the one form that is compared: numbers as floats, lists as tuples.

    >>> plain([1, np.float64(0.5)])
    (1.0, 0.5)
    """
    if isinstance(value, (list, tuple)):
        return tuple(plain(each) for each in value)
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return float(value) if is_number else value


_STEPS = 0, *(2**i for i in range(21))  # functions can only be compared by their values


def _rate(schedule: Callable[[int], float], step: int) -> str:
    """The learning rate of a step, in few digits: a cosine may differ in the last one elsewhere."""
    try:
        return f"{schedule(step):.6g}"
    except Exception as error:  # a schedule of one's own may end anywhere, and in any way
        return type(error).__name__


class ModelOptions:
    """The options of a model, without those that change while it runs.

    Attributes:
        changing: the names of those that change as parts of the model run: they are no settings.
    """

    def __init__(self, model: Module) -> None:
        self.model, self.changing = model, set[str]()
        self.begin()

    def begin(self) -> None:
        """A run begins with the options that the model has now."""
        self._begun = options_of(self.model)

    def note_changes(self) -> None:
        """Whatever has changed since the run began is no option but a state."""
        now = options_of(self.model)
        self.changing |= {name for name in now if self._begun.get(name) != now[name]}

    def settings(self) -> dict[str, str]:
        """The others, and the names of the random generators."""
        options = options_of(self.model).items()
        named = " ".join(generators(self.model))
        return {"generators": named, **{n: x for n, x in options if n not in self.changing}}


def check_settings(
    saved: dict[str, str], own: dict[str, str], changing: set[str], remedy: str
) -> None:
    """Raise a ValueError that names every setting which has changed.

    An option that changes while a model runs is none: those that are `changing` here, and those of
    the model that were not saved.
    """
    names = [n for n in own if n.split(".")[0] != "model" or n in saved]
    names += [n for n in saved if n not in own and n not in changing]
    pairs = [(n, saved.get(n), own.get(n)) for n in names]
    wrong = [f"\n  {n}: saved {old}, here {new}" for n, old, new in pairs if old != new]
    if wrong:
        wrong[12:] = [f"\n  and {len(wrong) - 12} more"] if len(wrong) > 12 else []
        raise ValueError(f"this belongs to another run; {remedy}:{''.join(wrong)}")


def options_of(model: Module) -> dict[str, str]:
    """What a model computes with besides its parameters: the class and the options of each part.

    Example:
        >>> from tinytorch import LayerNorm
        >>> options_of(LayerNorm(8, eps=1e-6))
        {'model': 'LayerNorm', 'model.normalized_shape': '(8,)', 'model.eps': '1e-06'}
    """
    parts = ((f"model.{path}".rstrip("."), part) for path, part in model.named_modules())
    return {path: text for where, part in parts for path, text in _options(where, part)}


def _options(where: str, owner: object) -> Iterator[tuple[str, str]]:
    yield where, type(owner).__name__
    for name, value in vars(owner).items():
        path, value = f"{where}.{name}", value.data if type(value) is Tensor else value
        method = callable(getattr(type(owner), name, None))
        if method or name.startswith("_") or name in ("init_std", "rng"):
            continue  # of no use after the start, or among the generators
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            yield path, _summary(value)
        elif isinstance(value, _PLAIN) or (
            isinstance(value, (list, tuple)) and all(isinstance(x, _PLAIN) for x in value)
        ):
            yield path, str(value)
        elif hasattr(value, "__name__"):  # a function
            yield path, value.__name__
        elif isinstance(owner, Module) and hasattr(value, "__dict__"):  # a `Rotary` for instance
            if not isinstance(value, (Module, np.random.Generator)):
                yield from _options(path, value)


_PLAIN = bool, int, float, str, type(None), np.generic


def _summary(array: np.ndarray) -> str:
    """Few digits of a table: its sines may differ in the last one on another machine."""
    some = array.reshape(-1)[:: array.size // 4096 | 1].astype(np.float64)
    finite = np.isfinite(some)
    total = np.where(finite, some, 0) @ np.linspace(1, 2, some.size)
    return f"{array.shape}, {finite.sum()} finite, sum {total:.4g}"


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
