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

__all__ = ["Holding", "Parameters", "Snapshot", "note_replaced"]

_ticks = itertools.count(1)  # of all threads
_latest = [0]


def note_replaced() -> None:
    """Note that a module was given another part; `Module` calls it."""
    _latest[0] = next(_ticks)


class Parameters(list[Any]):
    """A list of parameters that knows of which module they are.

    Args:
        found: the parameters.
        module: the module whose trainable parameters are all among them.
    """

    def __init__(self, found: Iterable[Any], module: Any) -> None:
        super().__init__(found)
        self.module = module


class Snapshot:
    """The parts of a module at one time.

    Args:
        module: a `Module`; anything else has no parts.

    Example:
        >>> from tinytorch import GPT, LayerNorm
        >>> model = GPT(5, 8, 2, 2)
        >>> parts = Snapshot(model)
        >>> before, model.ln_f = parts.is_current(), LayerNorm(8)
        >>> before, parts.is_current()
        (True, False)
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._take()

    def is_current(self) -> bool:
        """Whether the module has exactly these parts; a replaced number is no replaced part."""
        if self._latest == _latest[0] and all([_ids(x) == ids for x, ids in self._containers]):
            return True  # without a walk through the module (bench: decoding)
        before = self._parts
        self._take()
        if [*map(id, before)] == [*map(id, self._parts)]:
            return True
        self._parts, self._latest = before, -1
        return False

    def _take(self) -> None:
        self._latest = _latest[0]  # read first: another thread may replace a part
        inside: list[Any] = getattr(self._module, "inside", list)()
        self._parts = [part for _, part in inside]
        values = [
            v for x in (self._module, *self._parts) for v in getattr(x, "__dict__", {}).values()
        ]
        self._containers = [(v, _ids(v)) for v in values if isinstance(v, (list, dict))]


def _ids(container: Any) -> list[int]:
    return [*map(id, container.values() if isinstance(container, dict) else container)]


class Holding:
    """The parameters of an optimiser, compared with those of the module that they are of.

    Parameters that were left out on purpose stay out. A frozen one is followed, for it receives no
    gradient; so are new numbers.

    Args:
        params: those held.
        module: the module, or None if it is not known; then only shapes are compared.
    """

    def __init__(self, params: list[Any], module: Any) -> None:
        self._params, self._shapes = params, [p.shape for p in params]
        self._know(module, [])
        self._compare()  # the list may be older than the model's present parts

    def check(self) -> None:
        """Raise unless the optimiser still updates what there is to update.

        Raises:
            ValueError: the module has replaced, added or unfrozen a parameter, or one was given
                another shape, or all are frozen; nothing is changed.
        """
        if not self._snapshot.is_current() or any([p.requires_grad for p in self._frozen]):
            self._compare()
            self._know(self._module, self._left_out)
        if (shapes := [p.data.shape for p in self._params]) != self._shapes:
            pairs = zip(self._shapes, shapes, strict=True)
            old, new = next((old, new) for old, new in pairs if old != new)
            _refuse([f"a parameter of shape {old} has become one of {new}"])
        if self._params and not any(p.requires_grad for p in self._params):
            _refuse(["all parameters that it updates are frozen"])

    def of(self, module: Any) -> None:
        """The same for a whole model, which is that of the optimiser from now on."""
        self.check()
        if module is not self._module:
            self._know(module)
        self._compare()

    def _know(self, module: Any, left_out: list[Any] | None = None) -> None:
        self._module, self._snapshot = module, Snapshot(module)
        held = {*map(id, self._params)}
        others = [p for _, p in _named(module) if id(p) not in held]
        self._frozen = [p for p in others if not p.requires_grad]
        self._left_out = [p for p in others if p.requires_grad] if left_out is None else left_out

    def _compare(self) -> None:
        if self._module is None:
            return
        named = _named(self._module)
        own, known = {id(p) for _, p in named}, {*map(id, [*self._params, *self._left_out])}
        new = [name for name, p in named if p.requires_grad and id(p) not in known]
        gone = sum(id(p) not in own for p in self._params)
        names = ", ".join([*new[:3], *["..."] * (len(new) > 3)])
        told = [f"the model trains {len(new)} that it does not update ({names})"] * bool(new)
        told += [f"the model lacks {gone} of those that it updates"] * bool(gone)
        if told:
            _refuse(told)


def _named(module: Any) -> list[tuple[str, Any]]:
    return [] if module is None else module.named_parameters()


def _refuse(told: list[str]) -> None:
    what = f"the optimiser was made for other parameters: {' and '.join(told)}"
    raise ValueError(f"{what}; make a new one of model.trainable_parameters(), and a new Trainer")
