"""Whether a model still has the parts that something else holds.

An optimiser holds parameters, and a text that is being written the parts that read it. Meanwhile a
model may change: `add_lora` freezes its weights and puts others beside them, a layer is replaced.
So those that hold parts compare them with the model's. `Module` notes that a part was replaced, so
as long as none is, a comparison costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.core.graph import Node
from tinytorch.core.types import ModuleLike

__all__ = ["Holding", "Parameters", "Snapshot", "note_replaced"]

PLAIN = frozenset({bool, int, float, str, type(None)})  # what is no part and has none

_latest = [object()]  # another one whenever any module was given another part


def note_replaced() -> None:
    """Note that a module was given another part; `Module` calls it."""
    _latest[0] = object()


class Parameters(list[Any]):
    """Parameters of a module, in a list that knows the `module`."""

    def __init__(self, found: Iterable[Any], module: object) -> None:
        super().__init__(found)
        self.module = module


class Snapshot:
    """The parts of a module at one time; anything other than a `Module` has none.

    Example:
        >>> from tinytorch import GPT, LayerNorm
        >>> model = GPT(5, 8, 2, 2)
        >>> parts = Snapshot(model)
        >>> before, model.ln_f = parts.is_current(), LayerNorm(8)
        >>> before, parts.is_current()
        (True, False)
    """

    def __init__(self, module: object) -> None:
        self._module, self._latest = module, _latest[0]  # first: another thread may replace a part
        self._parts: dict[int, Any] = {}
        if hasattr(module, "named_parameters"):
            _enter(module, self._parts)
        lists = [x for x in self._parts.values() if isinstance(x, (list, dict))]
        self._lists = [(x, _ids(x)) for x in lists if not x or {*map(type, _values(x))} - PLAIN]

    def is_current(self) -> bool:
        """Whether the module has exactly these parts; new numbers make no new part."""
        if self._latest is _latest[0] and all([_ids(x) == ids for x, ids in self._lists]):
            return True  # without a walk through the module (bench: decoding)
        now = Snapshot(self._module)
        if [*now._parts] != [*self._parts]:
            return False
        vars(self).update(vars(now))
        return True


def _enter(value: Any, parts: dict[int, Any]) -> None:
    """Enter a part and all inside it, by identity: half the time of the walk for names."""
    is_module = hasattr(value, "named_parameters")
    if id(value) in parts or not (is_module or isinstance(value, (Node, list, tuple, dict))):
        return
    parts[id(value)] = value
    if not isinstance(value, Node):
        for inside in _values(vars(value) if is_module else value):
            _enter(inside, parts)


def _values(container: Iterable[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


def _ids(container: Iterable[Any]) -> list[int]:
    return [*map(id, _values(container))]


class Holding:
    """The parameters of an optimiser, compared with those of their module.

    What was left out on purpose stays out. A parameter may be frozen, for it then receives no
    gradient, or get new numbers. A parameter that the module has replaced, added, unfrozen or
    reshaped since is an error, as is a module that is frozen whole.
    """

    def __init__(self, params: list[Any], module: ModuleLike | None) -> None:
        self._params, self._shapes, self._module = params, [p.shape for p in params], module
        self._left_out: list[Any] = []
        self._compare()

    def check(self) -> None:
        """Raise unless the optimiser still updates all that there is to update."""
        if self._now() != self._then or not self._snapshot.is_current():
            self._compare()

    def watch(self, module: ModuleLike) -> None:
        """Check at once; from now on the parameters of `module` are watched as well."""
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
        shapes = zip(self._params, self._shapes, strict=True)
        grown = [str(p.shape) for p, before in shapes if p.shape != before]
        told = []
        if new:
            names = ", ".join([*new[:3], *["..."] * (len(new) > 3)])
            told.append(f"it does not update {len(new)} that the model trains ({names})")
        if gone:
            told.append(f"it updates {gone} that the model lacks")
        if grown:
            told.append(f"{len(grown)} changed shape, to {grown[0]} for instance")
        if self._params and not any(p.requires_grad for p in self._params):
            told.append("all that it updates are frozen")
        if told:
            what = f"the optimiser was made for other parameters: {' and '.join(told)}"
            remedy = "make a new one from model.trainable_parameters(), and a new Trainer"
            raise ValueError(f"{what}; {remedy}")
        self._snapshot, self._all = Snapshot(self._module), [p for _, p in named] or self._params
        self._then = self._now()

    def _now(self) -> list[Any]:
        return [(p.data.shape, p.requires_grad) for p in self._all]
