"""Whether a model still has the parts that something took hold of.

An optimiser holds parameters, and a text that is being written the parts that read it. Meanwhile a
model may change: `add_lora` freezes its weights and puts others beside them, a layer is replaced.
So those that hold parts compare them with the model's. `Module` notes that a part was replaced, so
as long as none is, a comparison costs next to nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from tinytorch.core.tracing import Node

__all__ = ["Holding", "Parameters", "Snapshot", "note_replaced"]

PLAIN = frozenset({bool, int, float, str, type(None)})  # what is no part and has none

_ticks = itertools.count(1)  # of all threads
_latest = [0]


def note_replaced() -> None:
    """Note that a module was given another part; `Module` calls it."""
    _latest[0] = next(_ticks)


class Parameters(list[Any]):
    """All parameters of a module that can be trained, in a list that knows the `module`."""

    def __init__(self, found: Iterable[Any], module: Any) -> None:
        super().__init__(found)
        self.module = module


class Snapshot:
    """The parts of a module at one time; anything else than a `Module` has none.

    Example:
        >>> from tinytorch import GPT, LayerNorm
        >>> model = GPT(5, 8, 2, 2)
        >>> parts = Snapshot(model)
        >>> before, model.ln_f = parts.is_current(), LayerNorm(8)
        >>> before, parts.is_current()
        (True, False)
    """

    def __init__(self, module: Any) -> None:
        self._module, self._latest = module, _latest[0]  # first: another thread may replace a part
        self._parts: list[Any] = []
        lists: list[Any] = []
        todo, seen = [vars(module)] if hasattr(module, "named_parameters") else [], set[int]()
        for held in todo:  # which grows meanwhile: half the time of the walk for names
            for value in _values(held):
                if type(value) in PLAIN or id(value) in seen:
                    continue
                if isinstance(value, (list, tuple, dict)):
                    lists.append(value)
                    todo.append(value)
                elif hasattr(value, "named_parameters"):
                    todo.append(vars(value))
                elif not isinstance(value, Node):
                    continue
                seen.add(id(value))
                self._parts.append(value)
        self._containers = [
            (x, _ids(x)) for x in lists if not x or {*map(type, _values(x))} - PLAIN
        ]

    def is_current(self) -> bool:
        """Whether the module has exactly these parts; new numbers make no new part."""
        if self._latest == _latest[0] and all([_ids(x) == ids for x, ids in self._containers]):
            return True  # without a walk through the module (bench: decoding)
        now = Snapshot(self._module)
        if _ids(now._parts) != _ids(self._parts):
            return False
        vars(self).update(vars(now))
        return True


def _values(container: Any) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _ids(container: Any) -> list[int]:
    return [*map(id, _values(container))]


class Holding:
    """The parameters of an optimiser, compared with those of the module that they are of.

    What was left out on purpose stays out. A frozen parameter is followed, for it receives no
    gradient; so are new numbers.

    Args:
        params: those held.
        module: the module whose trainable parameters they are, or None if it is not known.

    Raises:
        ValueError: here and in `check`: the module has replaced, added or unfrozen a parameter, or
            given it another shape, or all are frozen; nothing is changed.
    """

    def __init__(self, params: list[Any], module: Any) -> None:
        self._params, self._shapes, self._module = params, [p.shape for p in params], module
        self._left_out: list[Any] = []
        self._compare()

    def check(self) -> None:
        """Raise unless the optimiser still updates all that there is to update."""
        same = [p.data.shape for p in self._params] == self._shapes and self._snapshot.is_current()
        thawed = any([p.requires_grad for p in self._frozen])
        if not same or thawed or not any(p.requires_grad for p in self._params):
            self._compare()

    def of(self, module: Any) -> None:
        """The same for a whole model, which is that of the optimiser from now on."""
        self._compare()
        if module is not self._module:
            held, self._module = {*_ids(self._params)}, module
            self._left_out = [p for p in module.trainable_parameters() if id(p) not in held]
            self._compare()

    def _compare(self) -> None:
        named = [] if self._module is None else self._module.named_parameters()
        own, known = {id(p) for _, p in named}, {*_ids([*self._params, *self._left_out])}
        new = [name for name, p in named if p.requires_grad and id(p) not in known]
        gone = sum(id(p) not in own for p in self._params) if named else 0
        grown = [p for p, old in zip(self._params, self._shapes, strict=True) if p.shape != old]
        frozen = self._params and not any(p.requires_grad for p in self._params)
        names = ", ".join([*new[:3], *["..."] * (len(new) > 3)])
        told = [f"the model trains {len(new)} that it does not update ({names})"] * bool(new)
        told += [f"the model lacks {gone} of those that it updates"] * bool(gone)
        told += [f"{len(grown)} have another shape, {p.shape} for instance" for p in grown[:1]]
        told += ["all that it updates are frozen"] * bool(frozen)
        if told:
            what = f"the optimiser was made for other parameters: {' and '.join(told)}"
            remedy = "make a new one of model.trainable_parameters(), and a new Trainer"
            raise ValueError(f"{what}; {remedy}")
        self._snapshot = Snapshot(self._module)
        self._frozen = [p for _, p in named if not p.requires_grad and id(p) not in known]
