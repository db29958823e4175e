"""The weights of a file in a model: all are checked before any is read, then each put in its place.

A `GPT` made in `undrawn()` has no weights yet: drawing millions of numbers only to replace them
would be slow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.seeding import drawing_from
from tinytorch.files.atomic_files import StrPath
from tinytorch.files.safetensors import load_safetensors, safetensors_contents
from tinytorch.models.transformer import GPT

__all__ = ["HEAD", "Places", "check_stored", "fill", "fill_from_hub", "undrawn"]

#: Each tensor of a file: its shape, and the parameters that it contains side by side.
Places = dict[str, tuple[tuple[int, ...], list[str]]]
Stored = tuple[StrPath, str, np.dtype, tuple[int, ...]]  # file, name, dtype, shape
HEAD = "lm_head.weight"


class _Placeholders(np.random.Generator):
    """Draws a single zero instead of a matrix, whose values come from a file."""

    def uniform(self, *limits: Any, size: Any = ()) -> Any:
        return np.zeros((1,) * len(size))

    def normal(self, *moments: Any, size: Any = ()) -> Any:
        return np.zeros((1,) * len(size))


def undrawn() -> AbstractContextManager[None]:
    """A context in which a model is made with a single zero for each matrix."""
    return drawing_from(_Placeholders(np.random.PCG64(0)))


def check_stored(places: Places, stored: Iterable[Stored], asks: str = "config.json") -> None:
    """Raise unless files have all the tensors of a model, none twice, in its shapes."""
    missing = dict(places)
    file: StrPath = ""
    for file, name, dtype, found in stored:
        if name not in missing:
            raise ValueError(f"{file}: {name!r} is not a weight of this model, or comes twice")
        shape, _ = missing.pop(name)
        if found != shape or dtype.kind != "f":
            what = f"{name!r} is of {dtype} and shape {found}"
            raise ValueError(f"{file}: {what}, but {asks} asks for {shape}")
    if missing:
        some = ", ".join([*missing][:3])
        raise ValueError(f"{file}: missing weights: {len(missing)}, among them {some}")


def fill(model: GPT, places: Places, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
    """Put each array into the parameters whose numbers it has, in float32."""
    parameters = dict(model.named_parameters())
    for name, array in arrays:
        _, ours = places[name]
        for parameter, part in zip(ours, np.split(array, len(ours), axis=-1), strict=True):
            parameters[parameter].data = np.ascontiguousarray(part, dtype=np.float32)


def fill_from_hub(
    model: GPT,
    places: Places,
    files: Collection[Path],
    renamed: Callable[[str], str],
    oriented: Callable[[str, np.ndarray], np.ndarray],
) -> None:
    """Fill a model from safetensors files, whose table may be stored once more as a tied head.

    Args:
        model: made in `undrawn()`.
        places: the tensors, under the names that `renamed` gives them.
        files: one or several.
        renamed: the name of a tensor; an empty one is no weight.
        oriented: called with the name and the array; returns it as our layers keep it.
    """
    heads: list[np.ndarray] = []

    def is_weight(name: str) -> bool:
        return name != "" and not (name == HEAD and model.tie_weights)

    def arrays() -> Iterator[tuple[str, np.ndarray]]:
        for file in files:
            tensors, _ = load_safetensors(file, mapped=True)
            while tensors:  # one at a time, so that its copy replaces it in memory
                stored, array = tensors.popitem()
                if is_weight(name := renamed(stored)):
                    yield name, oriented(name, array)
                elif name == HEAD:
                    heads.append(array)  # the token table once more

    contents = (
        (f, renamed(n), *what) for f in files for n, what in safetensors_contents(f).items()
    )
    check_stored(places, (entry for entry in contents if is_weight(entry[1])))
    fill(model, places, arrays())
    if not all(np.array_equal(head, model.token_embedding.weight.data) for head in heads):
        what = f"{HEAD!r} is not the token table, but config.json ties the two"
        remedy = "if the head is separate, set tie_word_embeddings: false"
        raise ValueError(f"{[*files][-1]}: {what}; {remedy}")
