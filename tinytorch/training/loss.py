"""The training loss of a language model, and its gradients: one process and several use the same.

loss = cross_entropy(model(inputs), targets)
loss.backward()
"""

import math
from typing import Any

from tinytorch.core.functional import cross_entropy
from tinytorch.core.layers import Module
from tinytorch.core.tensor import Tensor


def add_gradients(model: Module, inputs: Any, targets: Any, scale: float = 1.0) -> float:
    """Add the gradients of `scale` times the mean cross-entropy to those of the parameters.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`.
        inputs: ids `(batch, seq)`.
        targets: the ids that follow, of the same shape.
        scale: what the loss is multiplied by.

    Returns:
        The loss in nats a token, times `scale`. If it is not finite, no gradient is added.

    Example:
        >>> import numpy as np
        >>> from tinytorch import Linear
        >>> layer = Linear(2, 3)
        >>> round(add_gradients(layer, np.zeros((1, 2)), np.array([0])), 4)  # ln 3
        1.0986
    """
    loss: Tensor = cross_entropy(model(inputs), targets) * scale
    if math.isfinite(loss.item()):
        loss.backward()
    return loss.item()
