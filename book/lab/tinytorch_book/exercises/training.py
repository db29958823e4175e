"""Training a reader's model, for the checks of several chapters."""

from collections.abc import Iterable
from typing import Any

from tinytorch.core.optimizers import AdamW


def train(model: Any, loss: Any, rates: Iterable[float], **options: Any) -> None:
    """Train a model by AdamW, one step for each learning rate.

    Args:
        model: a `Module`, trained in place.
        loss: a function without arguments, the loss of the next batch.
        rates: the learning rate of every step.
        options: of `AdamW`.

    Example:
        >>> import numpy as np
        >>> from tinytorch import Linear
        >>> line, x = Linear(1, 1, bias=False, rng=0), np.array([[1.0], [2.0]])
        >>> train(line, lambda: ((line(x) - 3 * x) ** 2).mean(), [0.1] * 200, weight_decay=0.0)
        >>> round(line.weight.item(), 1)
        3.0
    """
    optimizer = AdamW(model.parameters(), **options)
    for rate in rates:
        optimizer.lr = rate
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
