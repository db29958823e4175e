"""Fixed numbers in float64, where a difference of 1e-12 is seen, and the text of an error."""

import numpy as np
import pytest

from tinytorch import Tensor

__all__ = ["exact", "in_float64", "message", "normal", "widened"]


def message(error, f):
    with pytest.raises(error) as caught:
        f()
    return str(caught.value)


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).normal(size=shape)


def exact(*shape, seed=0):
    """Normal numbers in float64 that require a gradient: only the order of additions may differ."""
    return Tensor(normal(*shape, seed=seed), requires_grad=True, dtype=np.float64)


def in_float64(module):
    """The same layer or model, computing in float64."""
    for p in module.parameters():
        p.data = p.data.astype(np.float64)
    return module


def widened(layer):
    """The matrix that a quantized layer stands for, in float64."""
    parts = {name: p.data.astype(np.float64) for name, p in layer.named_parameters()}
    return parts["weight"] * parts.get("weight.scales", np.ones(len(parts["weight"])))[:, None]
