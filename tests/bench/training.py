"""A training step: forward, loss, backward and AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from models import batch, gpt
from torch.nn import functional as F
from torch_gpt import TorchGPT

from tinytorch import AdamW, functional


def ours(size: str) -> Callable[[], float]:
    """A step of ours, through the public classes."""
    model, (inputs, targets) = gpt(size), batch(size)
    optimizer = AdamW(model.parameters(), lr=1e-4)

    def step() -> float:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def theirs(size: str, **adamw: Any) -> Callable[[], float]:
    """The same step in PyTorch eager."""
    model, (inputs, targets) = TorchGPT(gpt(size)), map(torch.tensor, batch(size))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **adamw)

    def step() -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def products(size: str) -> tuple[Callable[[], object], Callable[[], object]]:
    """The products of a step's linear layers alone: what NumPy's BLAS takes, and what PyTorch's.

    Every layer makes three: its output, the gradient of its input and that of its weights.
    """
    model, (inputs, _) = gpt(size), batch(size)
    d, tokens = model.embed_dim, inputs.size
    widths = [(d, d)] * 4 + [(d, 4 * d), (4 * d, d)]  # queries, keys, values, output; the MLP
    layers = widths * len(model.blocks) + [(d, model.vocab_size)]
    rng = np.random.default_rng(0)
    arrays = [
        tuple(
            rng.normal(size=shape).astype(np.float32)
            for shape in ((tokens, a), (a, b), (tokens, b))
        )
        for a, b in layers
    ]
    tensors = [tuple(map(torch.from_numpy, each)) for each in arrays]

    def run(triples: Any) -> None:
        for x, weight, gradient in triples:
            _ = x @ weight, gradient @ weight.T, x.T @ gradient

    return lambda: run(arrays), lambda: run(tensors)


def check_equal_losses(a: Callable[[], float], b: Callable[[], float]) -> None:
    """Both programs must do the same work: their losses agree for three steps."""
    for _ in range(3):
        one, other = a(), b()
        if not abs(one - other) < 1e-4 * abs(other):
            raise AssertionError(f"the two programs differ: losses {one} and {other}")
