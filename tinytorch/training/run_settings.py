"""The settings of a run: what must be the same for it to continue as if it had not stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.core.module import Module
from tinytorch.core.optimizers import Optimizer
from tinytorch.core.tensor import Tensor
from tinytorch.training.resuming import generators


def settings_of(
    batches: Any, optimizer: Optimizer, schedule: Callable[[int], float] | None
) -> dict[str, str]:
    """The data, the optimiser and the schedule of a run, as texts that can be compared."""
    rate = ["lr"] if schedule is None else []
    names = ["betas", "eps", "weight_decay", "momentum", "decays", *rate]
    shown = {name: getattr(optimizer, name) for name in names if hasattr(optimizer, name)}
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


_STEPS = 0, *(2**i for i in range(21))  # functions can only be compared by their values


def _rate(schedule: Callable[[int], float], step: int) -> str:
    """The learning rate of a step, in few digits: a cosine may differ in the last one elsewhere."""
    try:
        return f"{schedule(step):.6g}"
    except Exception as error:  # a schedule of one's own may end anywhere, and in any way
        return type(error).__name__


class ModelOptions:
    """The options of a model that stay as they are while it runs.

    Attributes:
        working: the names of those that change as parts of the model run: they are no settings.
    """

    def __init__(self, model: Module) -> None:
        self.model, self.working = model, set[str]()
        self.begin()

    def begin(self) -> None:
        """A run begins with the options that the model has now."""
        self._begun = options_of(self.model)

    def note_changes(self) -> None:
        """Whatever has changed since the run began is working."""
        now = options_of(self.model)
        self.working |= {name for name in now if self._begun.get(name) != now[name]}

    def settings(self) -> dict[str, str]:
        """The others, and the names of the random generators."""
        options = options_of(self.model).items()
        named = " ".join(generators(self.model))
        return {"generators": named, **{n: x for n, x in options if n not in self.working}}


def check_settings(
    saved: dict[str, str], own: dict[str, str], working: set[str], remedy: str
) -> None:
    """Raise a ValueError that names every setting which has changed.

    An option that changes while a model runs is none: those that are `working` here, and those of
    the model that were not saved.
    """
    names = [n for n in own if n.split(".")[0] != "model" or n in saved]
    names += [n for n in saved if n not in own and n not in working]
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
