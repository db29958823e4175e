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
    check: Callable[[dict[str, str], list[dict[str, Any]]], None] | None,
) -> tuple[int, list[dict[str, Any]]]:
    """Take up a run from its file: weights, optimiser, generators; returns step and history.

    Args:
        path: a file that `save_run` has written.
        model: takes the weights.
        optimizer: takes its state.
        check: raises a ValueError if the saved settings or history are not those wanted.

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
        parts = ("model.", "optimizer.", "history.")
        weights, state, columns = (without_prefix(tensors, part) for part in parts)
        history = history_records(columns)
        if type(step) is not int or step < len(history):
            raise ValueError(f"its history has {len(history)} steps, its step is {step!r}")
        if check:
            check(dict(settings), history if step == len(history) else [])
        _check_state(model, weights)
        _check_state(optimizer, state)
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
    """The data and the schedule of a run, as texts that can be compared."""
    data = type(batches).__name__  # batches of one's own come from anywhere
    if hasattr(batches, "checksum"):
        data += f" of {len(batches.tokens)} tokens, checksum {batches.checksum:08x}"
    seed = getattr(batches, "seed", None)
    rates = f"{optimizer.lr:.6g} always"
    if schedule is not None:
        rates = " ".join(_rate(schedule, step) for step in _STEPS)
    return {
        "data": data,
        "batches": f"{batches.batch_size} windows of {batches.seq_len}, seed {seed}",
        "schedule": repr(schedule).split(" at 0x")[0],
        "rates": rates,
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


_STEPS = 0, *(2**i for i in range(21))  # of those to come; `check_rates` compares the past ones


def _rate(schedule: Callable[[int], float], step: int) -> str:
    """The learning rate of a step, in few digits: a cosine may differ in the last one elsewhere."""
    try:
        return f"{schedule(step):.6g}"
    except Exception as error:  # a schedule of one's own may end anywhere, and in any way
        return type(error).__name__


class Options:
    """The options of a model and its optimiser: all but parameters, saved state and rate.

    An attribute that the model makes while it runs is something it leaves for the reader, like
    attention weights. An option that *changes* is neither an option nor saved, so that the next
    step would depend on a number that no checkpoint contains.
    """

    def __init__(self, model: Module, optimizer: Optimizer) -> None:
        self.model, self.optimizer = model, optimizer
        self._made, self._changed = set[str](), set[str]()
        self.begin()

    def begin(self) -> None:
        """A run begins with the options that there are now."""
        self._begun = self._now()

    def note_changes(self) -> None:
        """Note what has been made and what has changed since the run began."""
        for name, value in self._now().items():
            if name not in self._begun:
                self._made.add(name)
            elif name not in self._made and value != self._begun[name]:
                self._changed.add(name)

    def check(self) -> None:
        """Raise a ValueError if a checkpoint would not contain all that the run depends on."""
        if self._changed:
            names = ", ".join(sorted(self._changed)[:5])
            why = f"{names} changed while the run went on, and a checkpoint would not contain it"
            remedy = "keep what the next step depends on in a frozen Parameter or, of an optimiser"
            remedy += ", in arrays that _state() returns; begin the name of anything else with _"
            raise ValueError(f"{why}; {remedy}")

    def settings(self) -> dict[str, str]:
        """As texts, with the names of the random generators and the dtype."""
        kinds = {str(p.dtype) for p in self.model.parameters()}
        named = {"generators": " ".join(generators(self.model)), "dtype": " ".join(sorted(kinds))}
        return named | {n: _text(x) for n, x in self._all() if n not in self._made}

    def _all(self) -> Iterator[tuple[str, Any]]:
        yield from _of_model(self.model)
        yield from _of_optimizer(self.optimizer)

    def _now(self) -> dict[str, Any]:
        arrays = {n: x.tobytes() if isinstance(x, np.ndarray) else x for n, x in self._all()}
        return {n: zlib.crc32(x) if isinstance(x, bytes) else _text(x) for n, x in arrays.items()}


def check_settings(saved: dict[str, str], own: dict[str, str], remedy: str) -> None:
    """Raise a ValueError that names every setting which has changed."""
    pairs = [(n, saved.get(n), own.get(n)) for n in dict.fromkeys([*own, *saved])]
    wrong = [f"\n  {n}: saved {old}, here {new}" for n, old, new in pairs if old != new]
    if wrong:
        wrong[12:] = [f"\n  and {len(wrong) - 12} more"] if len(wrong) > 12 else []
        raise ValueError(f"this belongs to another run; {remedy}:{''.join(wrong)}")


def check_rates(
    schedule: Callable[[int], float], history: list[dict[str, Any]], remedy: str
) -> None:
    """Raise a ValueError if the schedule would have given another rate at a step of the past."""
    for step, record in enumerate(history):
        if _rate(schedule, step) != f"{record['lr']:.6g}":
            told = f"saved {record['lr']:.6g}, here {_rate(schedule, step)}"
            raise ValueError(f"this belongs to another run; {remedy}:\n  rate {step}: {told}")


def options_of(model: Module) -> dict[str, str]:
    """What a model computes with besides its parameters: the class and the options of each part.

    Example:
        >>> from tinytorch import LayerNorm
        >>> options_of(LayerNorm(8, eps=1e-6))
        {'model': 'LayerNorm', 'model.normalized_shape': '(8,)', 'model.eps': '1e-06'}
    """
    return {path: _text(value) for path, value in _of_model(model)}


def _of_model(model: Module) -> Iterator[tuple[str, Any]]:
    for path, part in model.named_modules():
        yield from _of_part(f"model.{path}".rstrip("."), part)


def _of_part(where: str, owner: object) -> Iterator[tuple[str, Any]]:
    yield where, type(owner).__name__
    for name, value in vars(owner).items():
        path, value = f"{where}.{name}", value.data if type(value) is Tensor else value
        method = callable(getattr(type(owner), name, None))
        if method or name.startswith("_") or name in ("init_std", "rng"):
            continue  # of no use after the start, or among the generators
        if _is_plain(value) or (isinstance(value, np.ndarray) and value.dtype.kind in "fiub"):
            yield path, value
        elif hasattr(value, "__name__"):  # a function
            yield path, value.__name__
        elif isinstance(owner, Module) and hasattr(value, "__dict__"):  # a `Rotary` for instance
            if not isinstance(value, (Module, np.random.Generator)):
                yield from _of_part(path, value)


def _of_optimizer(optimizer: Optimizer) -> Iterator[tuple[str, Any]]:
    yield "optimizer", type(optimizer).__name__
    saved = {*map(id, optimizer._state().values())}
    for name, value in vars(optimizer).items():
        inside = [*value] if isinstance(value, (list, tuple)) else [value]
        if name in ("params", "lr", "_steps") or not inside:
            continue  # the model's, the schedule's, and saved if the next step depends on it
        if _is_plain(value):
            yield f"optimizer.{name}", plain(value)
        elif all(isinstance(x, np.ndarray) and id(x) not in saved for x in inside):
            yield f"optimizer.{name}", np.concatenate([x.ravel() for x in inside])


_PLAIN = bool, int, float, str, type(None), np.generic


def _is_plain(value: object) -> bool:
    inside = value if isinstance(value, (list, tuple)) else [value]
    return all(isinstance(x, _PLAIN) for x in inside)


def _text(value: Any) -> str:
    """Few digits of a table: its sines may differ in the last one on another machine."""
    if not isinstance(value, np.ndarray):
        return str(value)
    some = value.reshape(-1)[:: value.size // 4096 | 1].astype(np.float64)
    finite = np.isfinite(some)
    total = np.where(finite, some, 0) @ np.linspace(1, 2, some.size)
    return f"{value.shape}, {finite.sum()} finite, sum {total:.4g}"


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
