"""The weights of a GPT: how they start, and how many there are."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinytorch.core.block_weights import numbers_in_blocks
from tinytorch.core.seeding import default_rng, drawing_from
from tinytorch.core.types import Rng


@contextmanager
def initial_weights(model: Any, rng: Rng) -> Iterator[None]:
    """A context that gives the parts of a GPT made in it the weights of `initialise`."""
    weights = default_rng(rng)
    # the parts also draw weights, later replaced: from a copy, if `rng` is given
    with drawing_from(weights if rng is None else copy.deepcopy(weights)):
        yield
    initialise(model, weights)


def initialise(model: Any, rng: np.random.Generator) -> None:
    """GPT-2's initialisation, but positions start as large as tokens."""
    into_the_stream = ("attention.out_proj.weight", "mlp.linear2.weight")
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            deviation = model.init_std
            if name.endswith(into_the_stream):
                deviation /= math.sqrt(2 * len(model.blocks))
            parameter.data[...] = rng.normal(0.0, deviation, size=parameter.shape)


def count_parameters(model: Any) -> dict[str, int]:
    """How many numbers each part learns, as `GPT.num_parameters` says."""
    parts = ("token_embedding", "position_embedding", "attention", "mlp", "norms", "lm_head")
    count = dict.fromkeys(parts, 0)
    kinds = {part: part for part in parts} | dict.fromkeys(("ln1", "ln2", "ln_f"), "norms")
    in_blocks = numbers_in_blocks(model)
    for name, parameter in model.named_parameters():
        if not name.endswith(".scales"):
            kind = next((kinds[part] for part in name.split(".") if part in kinds), "other")
            count[kind] = count.get(kind, 0) + in_blocks.get(id(parameter), parameter.size)
    return {**count, "total": sum(count.values())}
