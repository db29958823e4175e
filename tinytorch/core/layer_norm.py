"""Layer normalisation (Ba et al., 2016, section 3); its formula is `functional.layer_norm`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.arguments import check_not_negative, check_sizes
from tinytorch.core.module import Module, Parameter
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike


class LayerNorm(Module):
    """Normalise the last axis to mean 0 and variance 1, then scale by `gamma` and shift by `beta`.

    Args:
        normalized_shape: the length d of the last axis, or `(d,)`.
        eps: added to the variance; a constant row becomes `beta`, even without it.

    Attributes:
        normalized_shape: `(d,)`.
        gamma: `(d,)`, the scale, ones at the start.
        beta: `(d,)`, the shift, zeros at the start.

    Example:
        >>> LayerNorm(4)(Tensor([[2.0, 4.0, 6.0, 8.0]]))
        Tensor([[-1.3416, -0.4472,  0.4472,  1.3416]], requires_grad=True)
    """

    def __init__(self, normalized_shape: int | tuple[int], eps: float = 1e-5) -> None:
        size: Any = normalized_shape
        if isinstance(size, (tuple, list)) and len(size) == 1:
            size = size[0]
        check_sizes(normalized_shape=size)
        check_not_negative(eps=eps)
        self.normalized_shape = (size,)
        self.gamma = Parameter(np.ones(size))
        self.beta = Parameter(np.zeros(size))
        self.eps = eps

    def forward(self, x: TensorLike) -> Tensor:
        """Normalise `(..., d)`; the shape stays."""
        return functional.layer_norm(x, self.gamma, self.beta, eps=self.eps)
