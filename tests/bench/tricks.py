"""What each trick of the package gains: a training step with it, beside the textbook's form.

A trick that gains less than 3 % of a step at every size is to be written by the textbook; the
comment `bench: NAME` in the package names the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
from models import batch, gpt

from tinytorch import AdamW, functional, primitive
from tinytorch_book.experiments.story_gpt import new_story_gpt

C, K = math.sqrt(2 / math.pi), 0.044715


@primitive
def gelu(x: Any) -> Any:
    """On whole arrays, a new one for each operation."""
    phi = 0.5 * (1 + np.tanh(C * (x + K * x * x * x)))
    return x * phi, lambda g: g * (phi + 2 * C * x * phi * (1 - phi) * (1 + 3 * K * x * x))


@primitive
def layer_norm(x: Any, gamma: Any, beta: Any, *, eps: float = 1e-5) -> Any:
    """Means by `mean` and sums by `sum`."""
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse_std = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)
    normalised, tokens = centred * inverse_std, tuple(range(x.ndim - 1))

    def pullback(g: np.ndarray) -> tuple[Any, Any, Any]:
        h = g * gamma
        along = (h * normalised).mean(axis=-1, keepdims=True)
        grad = inverse_std * (h - h.mean(axis=-1, keepdims=True) - normalised * along)
        return grad, (g * normalised).sum(axis=tokens), g.sum(axis=tokens)

    return normalised * gamma + beta, pullback


@primitive
def attention(q: Any, k: Any, v: Any, *, mask: Any, **_: Any) -> Any:
    """The whole table of scores at once."""
    scale = 1 / math.sqrt(q.shape[-1])
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)

    def pullback(g: np.ndarray) -> tuple[Any, Any, Any]:
        h = g @ v.swapaxes(-1, -2)
        h = weights * (h - (h * weights).sum(axis=-1, keepdims=True)) * scale
        return h @ k, h.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g

    return weights @ v, pullback


TWINS: dict[str, dict[str, Any]] = {
    "gelu": {"gelu": gelu},
    "layer_norm": {"layer_norm": layer_norm},
    "attention": {"attention": attention},
}


def programs() -> Iterator[tuple[str, Callable[[], float], Callable[[], float]]]:
    """A name, a step of ours and the step with one textbook form, for each trick and size."""
    for size in ("story", "S", "M", "L"):
        for trick, forms in TWINS.items():
            own = {name: getattr(functional, name) for name in forms}  # patching takes time, too
            ours, textbook = _step(size, own), _step(size, forms)
            one, other = ours(), textbook()
            if not abs(one - other) < 1e-4 * abs(other):
                raise AssertionError(f"{trick}: losses {one} and {other} differ")
            yield f"trick {trick}, step {size}, textbook", ours, textbook


def _step(size: str, forms: dict[str, Any]) -> Callable[[], float]:
    if size == "story":
        model, ids = new_story_gpt(), np.random.default_rng(0).integers(0, 512, (8, 113))
        inputs, targets = ids[:, :-1], ids[:, 1:]
    else:
        model, (inputs, targets) = gpt(size), batch(size)
    optimizer = AdamW(model.parameters(), lr=1e-4)

    def step() -> float:
        with mock.patch.multiple(functional, **forms):
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        return loss.item()

    return step
