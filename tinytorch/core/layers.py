"""Layers: the modules that everything is built from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.arguments import check_not_negative, check_probability, check_sizes
from tinytorch.core.module import Module as Module
from tinytorch.core.module import Parameter as Parameter
from tinytorch.core.module import evaluation_mode as evaluation_mode
from tinytorch.core.quantization import QuantizedLinear, quantized_by
from tinytorch.core.seeding import default_rng
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import Rng, TensorLike


def xavier_uniform(shape: tuple[int, int], rng: Rng = None) -> np.ndarray:
    """Uniform numbers within `sqrt(6 / (rows + columns))` (Glorot and Bengio, 2010, equation 16).

    Args:
        shape: `(rows, columns)`.
        rng: a generator, a seed, or None for the default generator.

    Example:
        >>> bool(np.abs(xavier_uniform((4, 2), rng=0)).max() <= 1.0)
        True
    """
    limit = math.sqrt(6 / (shape[0] + shape[1]))
    return default_rng(rng).uniform(-limit, limit, size=shape).astype(np.float32)


class Linear(Module):
    """`x @ weight + bias`, the weight Xavier uniform and the bias zero at the start.

    Args:
        in_features: length of the last axis of the input.
        out_features: length of the last axis of the output.
        bias: whether to add a bias.
        rng: where the initial weights come from.

    Attributes:
        in_features: as given; `out_features` likewise.
        weight: `(in_features, out_features)`.
        bias: `(out_features,)`, or None.

    Example:
        >>> Linear(3, 2)(Tensor([[1.0, 2.0, 3.0]])).shape
        (1, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, rng: Rng = None
    ) -> None:
        check_sizes(in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(xavier_uniform((in_features, out_features), rng))
        self.bias = Parameter(np.zeros(out_features)) if bias else None

    @quantized_by(QuantizedLinear.of)
    def forward(self, x: TensorLike) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        if self.bias is None:
            return functional.linear(x, self.weight)
        return functional.linear(x, self.weight, self.bias)


class LayerNorm(Module):
    """Normalise the last axis to mean 0 and variance 1, then scale by `gamma` and shift by `beta`.

    Layer normalisation (Ba et al., 2016, section 3); its formula is `functional.layer_norm`.

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


class Dropout(Module):
    """In training, zero each element with probability `p` and scale up the rest; else do nothing.

    Args:
        p: the probability.
        rng: where the choices come from.

    Raises:
        ValueError: `p` is not in `0 <= p < 1`.

    Example:
        >>> Dropout(0.5).eval()(Tensor([1.0, 2.0]))
        Tensor([1., 2.])
    """

    def __init__(self, p: float = 0.5, rng: Rng = None) -> None:
        check_probability(p, "Dropout: p")
        self.p = p
        self.rng = default_rng(rng) if rng is not None else None

    def forward(self, x: TensorLike) -> Tensor:
        """Zero elements of `x`; the shape stays."""
        if not self.training or self.p == 0:
            return x if isinstance(x, Tensor) else Tensor(x)
        return functional.dropout(x, p=self.p, rng=self.rng)


class Sequential(Module):
    """Layers applied one after the other.

    Args:
        layers: the layers, or one list of them.

    Raises:
        TypeError: one of them cannot be called, or is a class.

    Example:
        >>> Sequential(Linear(2, 3), Linear(3, 1))(Tensor([[1.0, 2.0]])).shape
        (1, 1)
    """

    def __init__(self, *layers: Callable[..., Any] | Sequence[Callable[..., Any]]) -> None:
        is_list = len(layers) == 1 and isinstance(layers[0], (list, tuple))
        self.layers: list[Any] = list(layers[0] if is_list else layers)  # type: ignore[arg-type]
        for i, layer in enumerate(self.layers):
            if isinstance(layer, type) or not callable(layer):
                remedy = f"; write {layer.__name__}(...)" if isinstance(layer, type) else ""
                raise TypeError(f"Sequential: item {i} must be a layer, got {layer!r:.60}{remedy}")

    def forward(self, x: TensorLike) -> Any:
        """Pass `x` through every layer in turn."""
        for layer in self.layers:
            x = layer(x)
        return x
