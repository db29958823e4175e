"""The initial weights of a GPT."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

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
    """GPT-2's initialisation for every matrix; vectors keep their zeros and ones."""
    into_the_stream = ("attention.out_proj.weight", "mlp.linear2.weight")
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            deviation = model.init_std
            if name.endswith(into_the_stream):
                deviation /= math.sqrt(2 * len(model.blocks))
            parameter.data[...] = rng.normal(0.0, deviation, size=parameter.shape)
