"""What a model and an optimiser hold besides parameters and saved state: options and changes.

An attribute that stays as it is while a run goes on is an option, which must be the same where the
run is resumed. One that changes, a counter or a running mean for instance, is part of the state and
goes into the checkpoint. So neither has to be declared.
"""

from __future__ import annotations

import json
import pickle
import random
import re
import zlib
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from tinytorch.core.module import Module, Parameter
from tinytorch.core.optimizers import Optimizer
from tinytorch.core.tensor import Tensor

__all__ = [
    "Changes",
    "attributes",
    "check_places",
    "decoded",
    "encoded",
    "options",
    "restore_attributes",
]

Value = Any  # of an attribute
Attribute = tuple[object, str, Value]  # its owner, its name there, its value

# saved elsewhere, or of no use after the start
_LEFT_OUT = {"params", "holding", "lr", "init_std", "rng", "_training"}


def _owners(root: Module | Optimizer) -> Iterator[tuple[str, object]]:
    """A model with its parts or an optimiser, and the objects in their attributes, by path."""
    paths: list[tuple[str, object]] = [("optimizer", root)]
    if isinstance(root, Module):
        paths = [(f"model.{path}".rstrip("."), part) for path, part in root.named_modules()]
    seen = set[int]()
    while paths:
        path, owner = paths.pop(0)
        if id(owner) in seen and not isinstance(owner, Module):
            continue
        seen.add(id(owner))
        yield path, owner
        inside = [(f"{path}.{name}", x) for name, x in vars(owner).items() if _is_owner(x)]
        paths[:0] = [(name, x) for name, x in inside if name != "optimizer.holding"]


def _is_owner(value: object) -> bool:
    """Whether a value has attributes of its own, as a `Rotary` has."""
    content = np.ndarray, dict, list, tuple, set, str, random.Random  # not in the attributes
    other = Module, Tensor, Enum, partial, *content
    return (
        hasattr(value, "__dict__")
        and not hasattr(value, "__name__")
        and not isinstance(value, other)
    )


def attributes(model: Module, optimizer: Optimizer) -> dict[str, Attribute]:
    """The attributes by path; parts, parameters, generators and `optimizer._state()` are none.

    Example:
        >>> from tinytorch import SGD, Linear
        >>> layer = Linear(2, 1, rng=0)
        >>> [*attributes(layer, SGD(layer.parameters(), lr=0.1))][2:]
        ['optimizer._steps', 'optimizer.momentum', 'optimizer.weight_decay', 'optimizer.velocity']
    """
    saved = {*map(id, optimizer._state().values())}
    found: dict[str, Attribute] = {}
    for path, owner in [*_owners(model), *_owners(optimizer)]:
        for name, value in vars(owner).items():
            is_method = callable(getattr(type(owner), name, None))
            is_part = isinstance(owner, Module) and isinstance(value, np.random.Generator)
            is_left_out = name in _LEFT_OUT and isinstance(owner, (Module, Optimizer))
            if is_part or is_left_out or is_method or _is_owner(value) or _has_part(value):
                continue
            inside = [*value] if isinstance(value, list) else [value]
            if not (inside and all(id(x) in saved for x in inside)):
                found[f"{path}.{name}"] = owner, name, value
    return found


def _has_part(value: object) -> bool:
    """Whether a value is, or contains, what is saved or compared in another way."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        return any(map(_has_part, value))
    return isinstance(value, (Module, Parameter))


def options(model: Module, optimizer: Optimizer, changing: set[str]) -> dict[str, str]:
    """The classes and the attributes that do not change, as texts that can be compared.

    Example:
        >>> from tinytorch import SGD, Dropout, Linear, Sequential
        >>> model = Sequential(Linear(2, 1, rng=0), Dropout(0))
        >>> found = options(model, SGD(model.parameters(), lr=0.1), changing=set())
        >>> found["model.layers.1"], found["model.layers.1.p"], found["optimizer.momentum"]
        ('Dropout', '0', '0')
    """
    owners = [*_owners(model), *_owners(optimizer)]
    classes = {path: type(owner).__name__ for path, owner in owners}
    found = attributes(model, optimizer).items()
    texts = {p: _text(x) for p, (_, n, x) in found if p not in changing and not n.startswith("_")}
    return classes | texts


def _text(value: Value) -> str:
    """The one form in which equal options are equal: 0 and 0.0, a list and a tuple.

    Of a table few digits: its sines may differ in the last one on another machine.
    """
    value = value.data if isinstance(value, Tensor) else value
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        finite, signs = np.isfinite(value), np.sign(value).astype(np.float32)
        wide = np.where(finite, value, 0).astype(np.float64).ravel()
        size = np.abs(wide).mean() if wide.size else 0.0
        total = wide @ np.linspace(1, 2, wide.size) / (wide.size * size or 1)
        infinite = zlib.crc32(np.where(finite, 0, signs).tobytes())
        where = f"{finite.sum()} finite" if finite.all() else f"infinities {infinite:08x}"
        return f"{value.dtype} {value.shape}, {where}, mean size {size:.4g}, sum {total:.4f}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
        return f"{value.shape}, checksum {zlib.crc32(value.astype(np.int64).tobytes()):08x}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_text(x)}' for key, x in value.items())}}}"
    if type(value) is float:
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else str(value)
    if isinstance(value, partial):
        return f"{_text(value.func)}, {_text(value.args)}, {_text(value.keywords)}"
    return str(getattr(value, "__name__", re.sub(" at 0x[0-9a-f]+", "", repr(value))))


class Changes:
    """Which attributes have changed since a run began.

    Attributes:
        names: the paths of those that have changed in any run, or have been made in one.
    """

    def __init__(self) -> None:
        self.names, self._before = set[str](), dict[str, Any]()

    def begin(self, found: dict[str, Attribute]) -> None:
        """A run begins with these."""
        self._before = {path: _exact(value) for path, (_, _, value) in found.items()}

    def note(self, found: dict[str, Attribute]) -> None:
        """Whatever differs from what the run began with is state from now on."""
        now = {path: _exact(value) for path, (_, _, value) in found.items()}
        self.names |= {path for path in now if now[path] != self._before.get(path)}


def _exact(value: Value) -> object:
    """Something that differs whenever the value does."""
    arrays: list[np.ndarray] = []
    try:
        shown = json.dumps(encoded(value, arrays))
        return shown, [(a.dtype.str, a.shape, zlib.crc32(a.tobytes())) for a in arrays]
    except TypeError:
        pass
    try:
        return pickle.dumps(value)
    except Exception:  # whatever an object of one's own raises
        return _text(value)


# To a checkpoint and back ---------------------------------------------------------------------


def encoded(value: Value, arrays: list[np.ndarray]) -> Value:
    """A value as JSON can store it; its arrays are appended to `arrays`.

    Raises:
        TypeError: it is none of what a checkpoint can contain.

    Example:
        >>> arrays = []
        >>> saved = encoded({"mean": np.ones(2), "seen": (3, 0.5)}, arrays)
        >>> decoded(saved, arrays)
        {'mean': array([1., 1.]), 'seen': (3, 0.5)}
    """
    if type(value) in (bool, int, str, type(None)):
        return value
    if type(value) is float:
        return {"float": value.hex()}  # nan and inf as well
    if type(value) in (list, tuple):
        return {type(value).__name__: [encoded(each, arrays) for each in value]}
    if type(value) is dict:
        pairs = [[encoded(key, arrays), encoded(x, arrays)] for key, x in value.items()]
        return {"dict": pairs}
    array = value.data if isinstance(value, Tensor) else value
    if isinstance(array, (np.ndarray, np.generic)) and array.dtype.kind in "fiub":
        kind = "tensor" if isinstance(value, Tensor) else type(array).__name__ == "ndarray"
        arrays.append(np.array(array))
        return {{"tensor": "tensor", True: "array", False: "scalar"}[kind]: len(arrays) - 1}
    raise TypeError(f"a checkpoint cannot contain {value!r:.60}")


def decoded(saved: Value, arrays: list[np.ndarray]) -> Value:
    """The value that `encoded` was given."""
    if not isinstance(saved, dict):
        return saved
    ((kind, content),) = saved.items()
    makers: dict[str, Callable[[Any], Any]] = {
        "float": float.fromhex,
        "list": lambda parts: [decoded(part, arrays) for part in parts],
        "tuple": lambda parts: tuple(decoded(part, arrays) for part in parts),
        "dict": lambda pairs: {decoded(k, arrays): decoded(x, arrays) for k, x in pairs},
        "array": lambda i: arrays[i].copy(),
        "scalar": lambda i: arrays[i][()],
        "tensor": lambda i: Tensor(arrays[i], dtype=arrays[i].dtype),
    }
    return makers[kind](content)


def check_places(model: Module, optimizer: Optimizer, values: dict[str, Any]) -> None:
    """Raise a ValueError unless there is an owner for every path."""
    owners = dict([*_owners(model), *_owners(optimizer)])
    if lost := [path for path in values if path.rpartition(".")[0] not in owners]:
        raise ValueError(f"it contains {', '.join(lost[:5])}, which belongs to another model")
    for path in values:
        owner, _, name = path.rpartition(".")
        if _has_part(vars(owners[owner]).get(name)):
            raise ValueError(f"{path} is a value there, and here a part of the model")


def restore_attributes(model: Module, optimizer: Optimizer, values: dict[str, Any]) -> None:
    """Set attributes by path, in place where an array of the same kind is there."""
    owners = dict([*_owners(model), *_owners(optimizer)])
    written: dict[int, np.ndarray] = {}
    for path, value in values.items():
        owner, _, name = path.rpartition(".")
        there = vars(owners[owner])
        there[name] = _put(value, there.get(name), written)


def _put(new: Value, old: Value, written: dict[int, np.ndarray]) -> Value:
    """The new value, in the old object if that can hold it: others may refer to it.

    An array to which several attributes refer is written for the first; the others share it only
    if they have the same numbers.
    """
    if isinstance(new, np.ndarray) and isinstance(old, np.ndarray):
        fits = (new.shape, new.dtype) == (old.shape, old.dtype) and old.flags.writeable
        if fits and np.array_equal(written.setdefault(id(old), new), new, equal_nan=True):
            old[...] = new
            return old
    if type(new) is type(old) is Tensor:
        old.data = new.data
        return old
    if type(new) is type(old) is list:
        before = [*old, *[None] * len(new)]  # a list may have grown
        old[:] = [_put(value, before[i], written) for i, value in enumerate(new)]
        return old
    if type(new) is type(old) is dict:
        values = {key: _put(value, old.get(key), written) for key, value in new.items()}
        old.clear()
        old.update(values)
        return old
    return new
